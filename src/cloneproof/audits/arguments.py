"""Why no copies pay one agent at one horizon: the list of arguments, asked once before and once after a search.

`ARGUMENTS`, at the end, has them in the order in which they are asked. Those of `theorems` need the case alone; those
here need what a search found: a complete search, where no vector of fewer than k arms pays, and vectors of k or more
cannot because of their `ceiling` (`complete_search`). The proof that a function rests on is in its docstring.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from cloneproof.audits.copy_vectors import CopyVector, OriginalKinds, all_below, of_sum
from cloneproof.audits.gain import Payoff
from cloneproof.audits.question import AuditCase, Question, most_earned
from cloneproof.audits.search_result import KnownArguments, SearchResult, Witness, does_not_pay
from cloneproof.audits.theorems import (
    Argument,
    Basis,
    ceiling_words,
    elementary,
    random_end_theorem,
    rounds_are_given,
    same_prior,
    scan_theorem,
    theorem,
)
from cloneproof.bounds import smallest
from cloneproof.errors import EngineError
from cloneproof.market.market import MOST_ARMS, Market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rules.etc import etc
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate, weighted_sum

UNBOUNDED = math.inf  # The ceiling if none is known.
MOST_MORE = 200  # A search takes in at most this many vectors beyond the grid to become complete.
ON_SLOTS = (Basis.SCAN, Basis.COMPUTED)  # theorems on slots, which hold against any opponents
ANYBODY = "no proof covers any opponents, of whom only some lists were tried"
NOTHING = Estimate(0.0, 0.0, "exact", "a payoff is at least 0")


def ceiling(case: AuditCase, arms: int) -> float:
    """Bound the agent's payoff with at least this many arms against honest others from above; infinite if unknown.

    While an ETC (or any rule that gives every arm m rounds first) explores k arms of exchangeable originals, a round is
    worth the prior's mean, whatever is registered. After km rounds it is worth at most the best original. So H rounds
    with at least k arms are worth at most

        ceiling(H, k) = mean min(H, km) + E[best] max(0, H - km),

    which falls in k. It is the payoff of a commitment that never errs, so it is computed as the
    payoff in the same market with deterministic rewards. If honesty earns as much as the ceiling of k arms, no vector
    of k or more arms pays, and only finitely many remain.

    >>> from cloneproof import Agent, Discrete, mechanism
    >>> from cloneproof.audits.question import audit_case
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=100)
    >>> round(ceiling(audit_case(market, mechanism("etc", arm_rounds=10), "ana"), 3), 6)  # 30 at 1/2, 70 at 3/4
    67.5
    """
    if case.market.segments:
        return sum(ceiling(in_segment, arms) for in_segment in case.by_segment.values())
    agent, running = case.agent, case.mechanism
    if not same_prior(agent) or agent.support is None or running.arm_rounds == 0:
        return UNBOUNDED
    if running.draws or case.market.places:
        return UNBOUNDED
    copies = (max(1, arms - agent.count + 1), *(1,) * (agent.count - 1))
    try:
        return _never_erring(case, copies) if rounds_are_given(case) else _two_phases(case, copies)
    except EngineError:
        return UNBOUNDED


def arms_that_suffice(case: AuditCase, honest: Estimate, tolerance: float) -> int | None:
    """Return the smallest number of arms from which no vector pays, by the ceiling; None if there is no such number."""
    enough, originals = honest.low * (1 + tolerance), case.agent.count

    def low_enough(arms: int) -> bool:
        return ceiling(case, arms) <= enough

    most = originals + 1
    for in_segment in case.by_segment.values():
        running = in_segment.mechanism
        most = max(most, min(MOST_ARMS, in_segment.horizon // max(1, running.arm_rounds) + 1))
    if not low_enough(most):
        return None
    return max(originals + 1, smallest(lambda arms: arms >= most or low_enough(arms)))


def _never_erring(case: AuditCase, copies: CopyVector) -> float:
    """Return the payoff with deterministic rewards and a commitment, so that rounds do not depend on rewards."""
    market, running = case.market, case.mechanism
    sure = Market(market.agents, market.horizon, market.share, "deterministic")
    committing = running if running.arm.commits_to_mean else replace(running, arm=etc(running.arm_rounds))
    return _earned(sure, committing, case, copies)


def _two_phases(case: AuditCase, copies: CopyVector) -> float:
    """Return the ceiling of a trial for all followed by an award, which counts if the agent can win it."""
    running, rule = case.mechanism, case.mechanism.agent
    if rule is None or not rule.commits_to_mean:
        return UNBOUNDED
    trial, award = rule.explore, case.horizon - case.agents * rule.explore
    if not running.clears_at_award:
        return _alone(case, copies, trial + award)
    prize = _alone(case, copies, award) if award else 0.0
    return math.nextafter(_alone(case, copies, trial) + prize * (1 + 1e-15), math.inf)


def _alone(case: AuditCase, copies: CopyVector, rounds: int) -> float:
    """Return the ceiling if the agent alone has these rounds."""
    market = Market([case.agent], rounds, case.market.share, "deterministic")
    arm = case.mechanism.arm
    mechanism = Mechanism(arm=etc(arm.explore, order=arm.order))
    return _earned(market, mechanism, case, copies)


def _earned(market: Market, mechanism: Mechanism, case: AuditCase, copies: CopyVector) -> float:
    law = mechanism.law(market, full_copies(market.agents, {**case.others, case.name: copies}))
    return UNBOUNDED if isinstance(law, str) else law.payoff[case.name].high


def arms_in_play(case: AuditCase) -> int | None:
    """Return s of the following lemma; None if it does not apply to the mechanism.

    *Lemma.* Suppose that an agent that registers s or more arms affects the run only through a uniformly random set of
    s of them, and that agents are chosen without regard to how many arms they registered. Then the payoff of every
    vector c of s or more arms is an average of payoffs of vectors n <= c of exactly s arms, where n may have zeros.

    *Proof.* Given that the set has n_i arms of original i, the run is distributed as if the agent registered n. So the
    payoff of c is the average of the payoffs of n over the multivariate hypergeometric law of s draws without
    replacement from c.

    *Corollary.* If no n >= 0 of s arms and no replication of fewer than s gains more than x, no replication gains more
    than x.

    There is such a set if every reward of an agent counts, nothing is cleared, and the arm level pulls every arm once,
    in a random order, before any a second time (UCB, KL-UCB): with T or more arms and T rounds only new arms are
    pulled, so s = T.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> from cloneproof.audits.question import audit_case
    >>> market = Market([Agent(name, 2, Discrete([0, 1], [0.5, 0.5])) for name in ("ana", "bo")], horizon=100)
    >>> [arms_in_play(audit_case(market, mechanism(name), "ana")) for name in ("h-ucb", "ucb1")]
    [100, None]
    """
    running, arm = case.mechanism, case.mechanism.arm
    if case.box is not None or case.market.places or case.market.segments or (running.flat and case.agents > 1):
        return None
    if not running.never_clears or running.score != "all" or arm.draws or arm.order == "index":
        return None
    one_after_the_other = arm.explore >= 1 and (arm.order == "round-robin" or arm.explore == 1)
    return case.horizon if one_after_the_other else None


def limit_worlds(case: AuditCase) -> dict[int, CopyVector]:
    """Return, for one original of each kind, the limit of ever more copies of it: that original alone.

    With k copies of original i and one of each other, the set of s arms in play contains another original with
    probability at most (l - 1) s / (k + l - 1), for l originals. So as k grows, the payoff tends to that of registering
    i alone; the difference is at most share T (l - 1) s / (k + l - 1).
    """
    if arms_in_play(case) is None or case.kinds.count == 1:
        return {}
    return {k: alone(case, k) for k in case.kinds.first_of_each()}


def alone(case: AuditCase, original: int) -> CopyVector:
    """One original once, and no other."""
    return tuple(int(k == original) for k in range(case.kinds.count))


def more_vectors(case: AuditCase, honest: Payoff, arguments: KnownArguments, tolerance: float) -> list[CopyVector]:
    """Return the vectors that would make the search complete, if they are few enough."""
    enough = None if case in arguments else arms_that_suffice(case, honest.total, tolerance)
    return all_below(case.kinds, enough or 0, MOST_MORE) or []


def complete_search(evidence: Evidence) -> Argument | None:
    """Argue that every vector of few arms was evaluated and does not pay, and that more arms explore too long."""
    case, result, honest = evidence.case, evidence.result, evidence.honest
    if result is None or honest is None:
        return None
    arms = first_unsearched(case.kinds, result)
    bound = ceiling(case, arms)
    if bound > honest.low * (1 + evidence.tolerance) or evidence.unclear:
        return None
    gained = "" if evidence.tolerance else " and gains no more than 1e-12 of the payoff"
    words = (
        f"every vector of fewer than {arms} arms was evaluated{gained}, and {arms} or more explore too long: with a "
        f"commitment that never errs they would earn at most {bound:.6g}, honesty earns {honest.value:.6g}"
    )
    return Argument(Basis.SEARCH, words)


def not_ruled_out(evidence: Evidence) -> Argument | None:
    """Return what a search leaves open if nothing else covers it."""
    case, result, honest, unclear = evidence.case, evidence.result, evidence.honest, evidence.unclear
    if result is None or honest is None:
        return None
    doubtful = max([0.0, *(witness.gain_at_most for witness in unclear)])
    arms = first_unsearched(case.kinds, result)
    bound = ceiling(case, arms)
    if bound <= honest.low * (1 + evidence.tolerance):
        why = f"{len(unclear)} of the gains are too near the tolerance to tell"
        return Argument(Basis.SEARCH, why, settles=False, most=doubtful)
    room = min(bound, most_earned(case.market, case.name)) - max(0.0, honest.low)
    tried = "" if unclear else "none of those tried pays, but "
    why = f"{tried}no argument covers {arms} or more arms"
    return Argument(Basis.SEARCH, why, settles=False, most=max(doubtful, room))


def first_unsearched(kinds: OriginalKinds, result: SearchResult) -> int:
    """Return the smallest number of arms of a vector that was not evaluated."""
    arms = kinds.count + 1
    while all(vector in result.evaluated for vector in of_sum(kinds, arms)):
        arms += 1
    return arms


@dataclass(frozen=True)
class Evidence:
    """What is known of a case: nothing more before a search, its result afterwards."""

    case: AuditCase
    tolerance: float
    clock: Deadline
    result: SearchResult | None = None

    @property
    def honest(self) -> Estimate | None:
        """Honest payoff, if the search evaluated it."""
        return None if self.result is None or self.result.honest is None else self.result.honest.total

    @property
    def unclear(self) -> list[Witness]:
        """Deviations tried that may gain more than the tolerance."""
        tried = [] if self.result is None else self.result.witnesses
        return [witness for witness in tried if not does_not_pay(witness, self.tolerance)]


ARGUMENTS: tuple[Callable[[Evidence], Argument | None], ...] = (
    lambda evidence: scan_theorem(evidence.case),
    lambda evidence: random_end_theorem(evidence.case, evidence.tolerance, evidence.clock, evidence.honest),
    lambda evidence: elementary(evidence.case),
    complete_search,
    lambda evidence: theorem(evidence.case),
    not_ruled_out,
)


def in_every_segment(evidence: Evidence) -> Argument | None:
    """Return what the arguments of all segments come to.

    Registrations are for all segments, and a mechanism runs in each on that segment's rewards alone. So expectations
    add up: what pays in no segment does not pay, and what may be gained in each is a bound of what is gained in all.
    """
    honest, segments = evidence.honest, evidence.case.by_segment
    arguments = []
    for in_segment in segments.values():
        argument = ask(Evidence(in_segment, evidence.tolerance, evidence.clock))
        argument = argument or random_end_theorem(in_segment, evidence.tolerance, evidence.clock, NOTHING)
        arguments += [] if argument is None else [argument]
    if len(arguments) < len(segments):
        return None
    ceilings = [argument.ceiling for argument in arguments if argument.ceiling is not None]
    total = weighted_sum([(1.0, most) for most in ceilings]) if len(ceilings) == len(segments) else None
    most = sum(argument.most for argument in arguments)
    earned = evidence.tolerance * (0.0 if honest is None else max(0.0, honest.low))
    proven = total is not None and not total.heuristic and total.high <= earned
    words = f"in every segment, of which {next(iter(segments))!r}: {arguments[0].words}"
    if total is not None and most:
        words += f"; in all {len(segments)} segments together {ceiling_words(total)}"
    bases = {argument.basis for argument in arguments}
    on_slots = Basis.COMPUTED if bases == {Basis.SCAN, Basis.COMPUTED} else Basis.SEGMENTS
    basis = bases.pop() if len(bases) == 1 else on_slots
    settles = proven or all(argument.settles for argument in arguments)
    return Argument(basis, words, settles, most, total)


def ask(evidence: Evidence) -> Argument | None:
    """Return the first argument that settles the case; if none does, the first that bounds what copies gain."""
    bounding = None
    of_total = (in_every_segment, complete_search, not_ruled_out)
    for why in of_total if evidence.case.market.segments else ARGUMENTS:
        argument = why(evidence)
        if argument is not None and argument.settles:
            return argument
        bounding = bounding or argument
    return bounding


def before_search(question: Question, clock: Deadline) -> KnownArguments:
    """Return the argument of each case of which something is known before a search."""
    # Against any opponents honesty may earn next to nothing, so that no ceiling is within a tolerance.
    tolerance = question.tolerance if question.opponents == "market" else 0.0
    asked = {case: ask(Evidence(case, tolerance, clock)) for case in question.searched}
    return {case: argument for case, argument in asked.items() if argument is not None}


def against_anybody(case: AuditCase, argument: Argument | None) -> bool:
    """Return whether an argument settles the case whatever the others are and register.

    The theorems are about any opponents whose means and strategies do not depend on which of the agent's originals is
    better. A search is where the others cannot reach the agent: its rounds are given.
    """
    if argument is None or not argument.settles:
        return False
    return argument.basis is not Basis.SEARCH or rounds_are_given(case)


def _against_any(case: AuditCase, known: Argument | None, found: Argument | None) -> Argument | None:
    """Return the argument that holds against any opponents; else one that leaves everything open."""
    if found is None or found.basis in ON_SLOTS:
        return found
    if against_anybody(case, found):
        alone = found.basis is Basis.SEARCH and case.agents > 1
        return replace(found, words=f"the others do not change its rounds; {found.words}") if alone else found
    if against_anybody(case, known):
        return known
    return Argument(Basis.SEARCH, ANYBODY, settles=False, most=most_earned(case.market, case.name))


def after_search(
    question: Question, known: KnownArguments, results: Iterable[SearchResult], clock: Deadline
) -> KnownArguments:
    """Return the argument of each case with an honest payoff: the one its result rests on, or the first that holds.

    Against any opponents an argument about the market's is none.
    """
    covered = {
        result.case: result.argument or ask(Evidence(result.case, question.tolerance, clock, result))
        for result in results
        if result.honest is not None
    }
    if question.opponents == "any":
        covered |= {
            case: _against_any(case, known.get(case), covered[case]) for case in question.searched if case in covered
        }
    return {case: argument for case, argument in covered.items() if argument is not None}
