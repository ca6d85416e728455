"""The smallest attack: of what pays, the fewest copies, rivals and rounds with which it still surely pays.

One after the other, each with what was found before: the copies of the fewest arms among the lists tried, then rivals
are left out one at a time, then rounds. An exact engine tries every horizon up to FEW_ROUNDS, and bisects beyond;
samples halve the rounds, and then the copies. So the rounds are the fewest if they are at most FEW_ROUNDS and computed
exactly, and else the fewest found.
"""

from __future__ import annotations

from collections.abc import Callable

from cloneproof.audits.deviations import CopiesOf, CopyVector, honesty
from cloneproof.audits.gain import PairedSampling, compared, exact_gain, exact_payoffs, sampled_gain
from cloneproof.audits.question import Question
from cloneproof.audits.result import Audit
from cloneproof.audits.search_result import Witness, pays
from cloneproof.errors import EngineError
from cloneproof.evaluation.search import Search
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.job import strata_of
from cloneproof.runs.statistics import FIRST_TIME

FEW_ROUNDS = 64  # up to here every horizon is tried
NEAR_ROUNDS = 1.05  # beyond, the search for fewer rounds ends at this factor
MOST_RIVALS = 16  # are tried to be left out
SURE, PAIRS = 0.999, 1000  # of a sampled step: its confidence, and the most pairs


def attack_in(
    market: Market, mechanism: Mechanism, deviation: CopiesOf, search: Search, clock: Deadline, exactly: bool
) -> Witness:
    """Return what these copies gain in a market, exactly or from pairs of runs; an `EngineError` where it cannot."""
    if exactly:
        with clock.for_engines():
            finding = exact_gain(market, mechanism, deviation)
    else:
        runs = search.runs or PAIRS
        in_passes = runs >= FIRST_TIME * len(strata_of(market).weights)
        sampling = PairedSampling(runs, SURE, search.seed, in_passes, seconds=clock.left, bounds=search.bounds)
        drawn = sampled_gain(market, mechanism, deviation, sampling)
        if not drawn.runs:
            raise EngineError("no pair of runs ended in time")
        finding = drawn.finding
    return Witness.of(deviation, market, finding)


def smallest_attack(audit: Audit, seconds: float | None = None) -> Witness | None:
    """Find the fewest copies, rivals and rounds with which what an audit found still surely pays.

    Parameters
    ----------
    audit : Audit
        What `cp.audit` returned.
    seconds : float, optional
        How long to try; left out, as long as the audit had.

    Returns
    -------
    Witness or None
        The smallest attack that was found; None if nothing pays against honest others.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, audit, mechanism, smallest_attack
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    >>> found = smallest_attack(audit(market, mechanism("ucb1")))
    >>> found.copies, found.horizon
    ((2, 1), 7)
    """
    question, search = audit.asked
    search = search.within(seconds)
    return _smallest(audit, question, search, Deadline(search.seconds))


def _smallest(audit: Audit, question: Question, search: Search, clock: Deadline) -> Witness | None:
    """Find it in time."""
    if audit.verdict != "exploitable" or question.opponents == "any":
        return None
    agent, tolerance = audit.worst.agent, question.tolerance
    of_agent = (witness for witness in (audit.worst, *audit.tried) if witness.agent == agent)
    paying = [witness for witness in of_agent if pays(witness, tolerance)]
    smallest = min(paying, key=lambda witness: (sum(witness.copies), witness.horizon))
    mechanism = question.cases[agent].mechanism
    exactly = smallest.gain.kind == "exact"
    if question.slow or smallest.market.segments:
        return smallest  # what a box plays is known only where it was played

    def still(market: Market, copies: CopyVector = smallest.copies) -> Witness | None:
        """Return the attack there if it surely pays and there was time to know."""
        deviation = CopiesOf(agent, copies)
        if clock.spent:
            return None
        try:
            attack = attack_in(market, mechanism, deviation, search, clock, exactly)
        except EngineError:
            return None
        return attack if pays(attack, tolerance) else None

    for rival in [own for own in smallest.market.agents if own.name != agent][:MOST_RIVALS]:
        market = smallest.market
        smallest = still(market.with_agents([own for own in market.agents if own is not rival])) or smallest
    few = _of_few_rounds(smallest, mechanism, tolerance, clock) if exactly else None
    smallest = few or _of_fewer_rounds(smallest, still, exactly)
    while not exactly and max(smallest.copies) > 1:
        fewer = still(smallest.market, tuple((number + 1) // 2 for number in smallest.copies))
        if fewer is None or max(fewer.copies) == 1:
            break
        smallest = fewer
    return smallest


def _of_few_rounds(attack: Witness, mechanism: Mechanism, tolerance: float, clock: Deadline) -> Witness | None:
    """Return the attack at the first horizon at which it surely pays, if that is at most FEW_ROUNDS."""
    deviation = CopiesOf(attack.agent, attack.copies)
    markets = [attack.market.with_horizon(rounds) for rounds in range(1, min(attack.horizon, FEW_ROUNDS) + 1)]
    try:
        with clock.for_engines():
            honest, paid = (
                exact_payoffs([(market, mechanism) for market in markets], registered)
                for registered in (honesty(attack.market, attack.agent), deviation)
            )
    except EngineError:
        return None
    gains = (
        Witness.of(deviation, market, compared(honest[market.horizon], paid[market.horizon])) for market in markets
    )
    return next((witness for witness in gains if pays(witness, tolerance)), None)


def _of_fewer_rounds(attack: Witness, still: Callable[[Market], Witness | None], exactly: bool) -> Witness:
    """Return the attack at fewer rounds, by bisection where that is exact, and else by halves."""
    too_few = FEW_ROUNDS if exactly else 0
    while attack.horizon > max(1, NEAR_ROUNDS * too_few):
        rounds = (attack.horizon + too_few) // 2
        shorter = still(attack.market.with_horizon(rounds))
        if shorter is None and not exactly:
            break
        attack, too_few = (attack, rounds) if shorter is None else (shorter, too_few)
    return attack
