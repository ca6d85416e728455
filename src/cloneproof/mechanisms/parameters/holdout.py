"""Parameters and claims of the hold-out mechanism, from a market or from a platform's own bounds.

horizon, agents     T and n; horizon="unknown" runs it in doubling epochs, which need neither
max_originals       L: the platform sets it and need not know it, since more arms than K >= L have no score
values              the means that items can have (the pairs theorem); or rates=(lowest, highest) and relative_gap
gap                 instead, the smallest distance of an agent's means; neither: m = (ln T)^3, and the claim says which
                    gaps that covers
agent_gap           the smallest distance of different best means of agents; unknown: from the values, or the T^(2/3)
                    schedule for W
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from cloneproof._checks import number_in
from cloneproof.bounds import (
    arm_rounds_without_gap,
    covered_gap,
    etc_rounds,
    h_etc_r_regret,
    holdout_regret,
    holdout_rounds,
    holdout_trial,
    pairs_regret,
    trial_rounds,
)
from cloneproof.errors import MechanismError, brief
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Claim, Mechanism
from cloneproof.mechanisms.parameters.known_values import (
    KnownValues,
    checked_sub_gaussian,
    declared_values,
    market_values,
)
from cloneproof.mechanisms.parameters.theorems import SMALLEST_GAP, Derived, Given, known_gap
from cloneproof.mechanisms.restarts.hold_out_epochs import HoldOutEpochs
from cloneproof.mechanisms.rule import Order, rounds_number
from cloneproof.mechanisms.rules.etc import etc

UNKNOWN = "unknown"
SOURCE = "the hold-out theorem"
CONTEST = "the contest theorem"
CAPPED = "the capped theorem"
UNREVIEWED = "our proof, not yet reviewed by others"


class PlatformBounds(NamedTuple):
    """What the platform knows; None where it does not know."""

    agents: int | None
    horizon: int | None
    max_originals: int
    gap: float | None
    agent_gap: float | None
    spread: float
    apart: tuple[str, ...] = ()  # agents whose originals have different priors, of whom the theorem does not speak
    values: KnownValues | None = None  # what the pairs theorem takes; None where a gap is all that is known

    @property
    def finding(self) -> str:
        """Return the status of a claim: who has proven it, and for whom it does not hold."""
        but = f"; not for {', '.join(self.apart)}, whose originals have different priors" if self.apart else ""
        return UNREVIEWED + but


def holdout_parameters(
    market: Market | None,
    given: Given,
    *,
    agents: int | None = None,
    horizon: int | Literal["unknown"] | None = None,
    max_originals: int | None = None,
    gap: float | None = None,
    agent_gap: float | None = None,
    values: Sequence[float] | None = None,
    rates: Sequence[float] | None = None,
    relative_gap: float | None = None,
    sub_gaussian: float | None = None,
) -> Derived:
    """Derive m, W and K by the pairs theorem, or by its corollary for a gap; given values override the market."""
    unknown = horizon == UNKNOWN
    bounds = platform_bounds(
        "holdout-h-etc", market, given, agents, None if unknown else horizon,  # type: ignore[arg-type]
        max_originals, gap, agent_gap, values, rates, relative_gap, sub_gaussian,
    )  # fmt: skip
    max_arms = rounds_number(given.get("max_arms", bounds.max_originals), "max_arms")
    if unknown:
        return _in_epochs(bounds, given, max_arms)
    if bounds.agents is None or bounds.horizon is None:
        raise MechanismError(
            "mechanism 'holdout-h-etc' needs agents and horizon to derive its rounds; give both (horizon='unknown' for "
            "doubling epochs), or market=.., or arm_rounds, score_rounds and max_arms themselves"
        )
    n, rounds = rounds_number(bounds.agents, "agents"), rounds_number(bounds.horizon, "horizon")
    m, w = arm_and_score_rounds(bounds, n, rounds)
    if market is not None and market.delays == "independent":  # docs/textbook/delays.md, part (a)
        gap = bounds.gap if bounds.values is None else bounds.values.gap
        m = max(m, holdout_rounds(n, bounds.max_originals, gap, gap, 2 * rounds, bounds.spread)[0])
    m = rounds_number(given.get("arm_rounds", m), "arm_rounds")
    w = rounds_number(given.get("score_rounds", w), "score_rounds")
    return Derived(
        {"arm_rounds": m, "score_rounds": w, "max_arms": max_arms}, _claims(bounds, n, rounds, m, w, max_arms)
    )


def platform_bounds(
    name: str,
    market: Market | None,
    given: Given,
    agents: int | None,
    horizon: int | None,
    max_originals: int | None,
    gap: float | None,
    agent_gap: float | None,
    values: Sequence[float] | None,
    rates: Sequence[float] | None,
    relative_gap: float | None,
    sub_gaussian: float | None,
) -> PlatformBounds:
    """Complete the declared bounds from the market; a declared gap overrides values."""
    spread = None if sub_gaussian is None else checked_sub_gaussian(sub_gaussian, market)
    declared = declared_values(values, rates, relative_gap, market, spread)
    if declared is not None and gap is not None:
        raise MechanismError(f"expected values or rates without a gap, got gap={brief(gap)} too; leave the gap out")
    by_gap = gap is not None or (market is not None and "gap" in market.declared)
    if declared is None and market is not None and not by_gap:
        declared = market_values(market, spread)
    if agent_gap is None and (declared is None or (market is not None and "agent_gap" in market.declared)):
        agent_gap = None if market is None else market.agent_gap
    least = _gap(market, "arm_rounds" not in given) if gap is None and declared is None else None
    return PlatformBounds(
        agents=len(market.agents) if agents is None and market is not None else agents,
        horizon=market.horizon if horizon is None and market is not None else horizon,
        max_originals=_originals(name, market, max_originals),
        gap=_distance(gap, "gap") if gap is not None else least if declared is None else declared.gap,
        agent_gap=None if agent_gap is None else _distance(agent_gap, "agent_gap"),
        spread=spread if spread is not None else market.family.spread if market else 0.5,
        apart=_apart(market),
        values=declared,
    )


def arm_and_score_rounds(bounds: PlatformBounds, agents: int, horizon: int) -> tuple[int, int]:
    """Derive m and W by the pairs theorem if values are known, W by the agents' gap if that was declared."""
    if bounds.values is None:
        return holdout_rounds(agents, bounds.max_originals, bounds.gap, bounds.agent_gap, horizon, bounds.spread)
    m = bounds.values.arm_rounds(bounds.max_originals, horizon)
    if bounds.agent_gap is None:
        return m, bounds.values.score_rounds(agents, horizon)
    return m, holdout_rounds(agents, 1, None, bounds.agent_gap, horizon, bounds.spread)[1]


def holdout_in_epochs(
    max_originals: int,
    max_arms: int,
    gap: float | None = None,
    agent_gap: float | None = None,
    sub_gaussian: float = 0.5,
    horizon: str = UNKNOWN,
    order: Order = "round-robin",
    agent_order: Order = "round-robin",
) -> Mechanism:
    """Build the hold-out mechanism for an unknown horizon: doubling epochs, each with the rounds for its own length."""
    restart = HoldOutEpochs(max_originals, max_arms, gap, agent_gap, sub_gaussian)
    return Mechanism(agent=etc(1, "commit", agent_order), arm=etc(1, "commit", order), restart=restart)


def _in_epochs(bounds: PlatformBounds, given: Given, max_arms: int) -> Derived:
    if bounds.values is not None and bounds.agent_gap is None:  # epochs know gaps, which values have
        bounds = bounds._replace(agent_gap=bounds.values.agent_gap)
    for fixed in ("arm_rounds", "score_rounds"):
        if fixed in given:
            raise MechanismError(
                f"expected no {fixed} where the horizon is unknown, got {brief(given[fixed])}; "
                "every epoch derives its own"
            )
    if bounds.gap is None and bounds.max_originals > 1:
        reach = ", ".join(f"{_covered(bounds, length):.3g} at {length:.0e}" for length in (10**4, 10**6, 10**9))
        proof = Claim(
            f"clone-proof in every epoch long enough to cover the gaps ({reach}), "
            f"for at most {bounds.max_originals} originals",
            SOURCE,
            f"{bounds.finding}; shorter epochs may be gamed, by no more than their rounds",
        )
    else:
        proof = Claim(f"clone-proof at every horizon for {_originals_words(bounds)}", SOURCE, bounds.finding)
    order = (
        "O(T^(2/3) ln(T)^(1/3))" if bounds.agent_gap is None else "O(ln(T)^4)" if bounds.gap is None else "O(ln(T)^2)"
    )
    regret = Claim(f"regret {order}, the sum of the epochs' bounds", SOURCE, UNREVIEWED)
    parameters: dict[str, Any] = {
        "horizon": UNKNOWN, "max_originals": bounds.max_originals, "max_arms": max_arms,
        "gap": bounds.gap, "agent_gap": bounds.agent_gap, "sub_gaussian": bounds.spread,
    }  # fmt: skip
    return Derived(parameters, (proof, regret), holdout_in_epochs)


def _claims(bounds: PlatformBounds, n: int, horizon: int, m: int, w: int, max_arms: int) -> tuple[Claim, ...]:
    proof, reach = pairs_claim(bounds, horizon, m) or incentive_claim(bounds, horizon, m, SOURCE)
    if reach is None:
        return (proof,)
    if max_arms < bounds.max_originals:
        return (Claim(f"nothing where agents with more than {max_arms} originals have no score", SOURCE),)
    if horizon < n * holdout_trial(m, w, max_arms):
        return (proof, Claim("linear regret: there is no award at this horizon", SOURCE))
    least = bounds.gap or reach or math.inf  # one original has nothing to be told from: any gap is covered
    bound = holdout_regret(n, bounds.max_originals, m, w, horizon, least, bounds.agent_gap, max_arms, bounds.spread)
    told_apart = bounds.agent_gap is not None
    if bounds.values is not None and bounds.values.covered(bounds.max_originals, m, horizon):
        told_apart = told_apart or w >= bounds.values.score_rounds(n, horizon)
        if w >= bounds.values.score_rounds(n, horizon):
            extremes = (0.0, bounds.values.extent)
            bound = min(bound, pairs_regret(n, bounds.max_originals, m, w, extremes, max_arms))
    whatever = "" if told_apart else ", whatever the agents' gap"
    return (proof, Claim(f"regret at most {math.ceil(bound):,} of {horizon:,} rounds{whatever}", SOURCE, UNREVIEWED))


def pairs_claim(bounds: PlatformBounds, horizon: int, m: int) -> tuple[Claim, float] | None:
    """Return the claim of the pairs theorem for m rounds and the smallest gap; None if the theorem does not apply."""
    values = bounds.values
    if values is None or bounds.max_originals == 1 or math.isinf(values.gap):
        return None
    if not values.covered(bounds.max_originals, m, horizon):
        return None
    words = f"at most {bounds.max_originals} originals and {values.words}"
    return Claim(f"clone-proof over {horizon:,} rounds and fewer for {words}", SOURCE, bounds.finding), values.gap


def incentive_claim(bounds: PlatformBounds, horizon: int, m: int, source: str) -> tuple[Claim, float | None]:
    """Return the claim that m rounds suffice for gaps from some size on, and that size; None if for no gap.

    The hold-out and the capped theorem have the same condition, `holdout_applies`.
    """
    reach = covered_gap(bounds.max_originals, m, horizon, bounds.spread)
    if bounds.gap is not None and math.isinf(bounds.gap):
        reach = bounds.gap
    if math.isinf(reach) and bounds.gap != reach:
        return Claim(f"nothing at m = {m}: too few rounds for any gap over {horizon:,} rounds", source), None
    finding = bounds.finding
    if bounds.gap is not None and bounds.gap < reach:
        finding = f"the gap of {bounds.gap:g} is below that, so nothing is claimed here"
    words = _originals_words(bounds._replace(gap=reach if bounds.gap is None else max(reach, bounds.gap)))
    return Claim(f"clone-proof over {horizon:,} rounds and fewer for {words}", source, finding), reach


def _originals_words(bounds: PlatformBounds) -> str:
    if bounds.max_originals == 1:
        return "one original an agent"
    if bounds.gap is None or math.isinf(bounds.gap):
        return f"at most {bounds.max_originals} originals of the same mean"
    return f"at most {bounds.max_originals} originals and gaps of at least {_rounded_up(bounds.gap):g}"


def _rounded_up(gap: float) -> float:
    """Round up to four decimals, so that a claim stays true."""
    return gap if gap == round(gap, 4) else math.ceil(gap * 10**4) / 10**4


def _covered(bounds: PlatformBounds, length: int) -> float:
    return covered_gap(bounds.max_originals, arm_rounds_without_gap(length), length, bounds.spread)


def _originals(name: str, market: Market | None, declared: int | None) -> int:
    if declared is not None:
        return rounds_number(declared, "max_originals")
    if market is None:
        raise MechanismError(
            f"mechanism {name!r} needs max_originals, the originals that an agent may have: it is the platform's "
            "to set, as more arms have no score; give it, or market=.., or arm_rounds, score_rounds and max_arms"
        )
    return market.most_originals


def read_off(market: Market) -> PlatformBounds:
    """Read the bounds off the market, if the platform declared nothing."""
    most, agents = market.most_originals, len(market.agents)
    gap = math.inf if most == 1 else market.gap
    return PlatformBounds(agents, market.horizon, most, gap, market.agent_gap, market.family.spread, _apart(market))


def _gap(market: Market | None, needed: bool) -> float | None:
    """Return the market's gap; infinite for one original, None for continuous priors."""
    if market is None or market.gap is None or not needed:
        return None if market is None else market.gap
    return known_gap(market) if market.most_originals > 1 else math.inf


def _apart(market: Market | None) -> tuple[str, ...]:
    agents = () if market is None else market.agents
    several = (agent for agent in agents if isinstance(agent.prior, Sequence))  # the others have one prior for all
    return tuple(agent.name for agent in several if any(prior != agent.priors[0] for prior in agent.priors))


def _distance(value: object, name: str) -> float:
    if value == math.inf:
        return math.inf  # nothing to tell apart
    return number_in(value, name, SMALLEST_GAP, 1, MechanismError)


def holdout_contest_parameters(
    market: Market | None,
    given: Given,
    *,
    agents: int | None = None,
    max_originals: int | None = None,
    gap: float | None = None,
    values: Sequence[float] | None = None,
    rates: Sequence[float] | None = None,
    relative_gap: float | None = None,
    sub_gaussian: float | None = None,
) -> Derived:
    """Derive m by the condition of an award, since steady indices are monotone, and K = L, for a known horizon."""
    bounds = platform_bounds(
        "holdout-kl-ucb", market, given, agents, given.get("horizon"), max_originals, gap, None, values, rates,
        relative_gap, sub_gaussian,
    )  # fmt: skip
    if bounds.horizon is None:
        raise MechanismError(
            "mechanism 'holdout-kl-ucb' needs a horizon, for its index and its rounds; give it, or market=.."
        )
    horizon = rounds_number(bounds.horizon, "horizon")
    max_arms = rounds_number(given.get("max_arms", bounds.max_originals), "max_arms")
    m = given.get("arm_rounds") or arm_and_score_rounds(bounds, 1, horizon)[0]
    m = rounds_number(m, "arm_rounds")
    parameters = {"arm_rounds": m, "max_arms": max_arms, "horizon": horizon}
    return Derived(parameters, (_claim(bounds, horizon, m, max_arms),))


def _claim(bounds: PlatformBounds, horizon: int, m: int, max_arms: int) -> Claim:
    if max_arms < bounds.max_originals:
        return Claim(f"nothing where agents with more than {max_arms} originals take no part", CONTEST)
    proof, _ = pairs_claim(bounds, horizon, m) or incentive_claim(bounds, horizon, m, CONTEST)
    return Claim(proof.property, CONTEST, proof.finding)


def h_etc_r_parameters(market: Market, given: Given, factor: float = 2.0) -> Derived:
    """Derive m by Theorem 4 and M by Theorem 5; with `max_arms`, add the claims of the capped theorem."""
    if "arm_rounds" in given:
        m = rounds_number(given["arm_rounds"], "arm_rounds")
    else:
        m = etc_rounds(market.most_originals, known_gap(market), market.horizon, factor)
    trial = trial_rounds(m, market.most_originals, market.horizon)
    claims: tuple[Claim, ...] = ()
    if given.get("max_arms") is not None:
        trial_given = rounds_number(given.get("agent_rounds", trial), "agent_rounds")
        max_arms = rounds_number(given["max_arms"], "max_arms")
        claims = _capped_claims(market, m, trial_given, max_arms, given.get("choice", "commit"))
    return Derived({"arm_rounds": m, "agent_rounds": trial}, claims)


def outside_capped_theorem(arm_rounds: int, agent_rounds: int, max_arms: int, choice: object) -> Claim | None:
    """Return the claim that the theorem does not apply, with the reason; None if it does."""
    if choice != "commit":
        return Claim("nothing where agents and arms are not committed to", CAPPED)
    explored = agent_rounds // arm_rounds
    if max_arms > explored:
        words = f"nothing where {max_arms} arms have a score: a trial of {agent_rounds:,} rounds explores {explored}"
        return Claim(f"{words} for {arm_rounds:,} rounds each", CAPPED, f"set max_arms to at most {explored}")
    return None


def _capped_claims(market: Market, m: int, trial: int, max_arms: int, choice: object) -> tuple[Claim, ...]:
    outside = outside_capped_theorem(m, trial, max_arms, choice)
    if outside is not None:
        return (outside,)
    if max_arms < market.most_originals:
        return (Claim(f"nothing where agents with more than {max_arms} originals have no score", CAPPED),)
    bounds = read_off(market)
    proof, _ = incentive_claim(bounds, market.horizon, m, CAPPED)
    if bounds.gap is None or bounds.agent_gap is None:
        return (proof,)
    bound = h_etc_r_regret(
        len(market.agents), bounds.max_originals, m, trial, market.horizon, bounds.gap, bounds.agent_gap, bounds.spread
    )
    if bound >= market.horizon:
        return (proof,)
    words = f"regret at most {math.ceil(bound):,} of {market.horizon:,} rounds"
    return (proof, Claim(words, "Theorem 5, in a sound form", UNREVIEWED))
