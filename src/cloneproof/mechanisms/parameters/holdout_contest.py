"""Parameters and claims of the hold-out mechanism with a contest in place of an award: m and K, and no agent_gap."""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof.errors import MechanismError
from cloneproof.market.market import Market
from cloneproof.mechanisms.claim import Claim
from cloneproof.mechanisms.parameters.holdout import (
    PlatformBounds,
    arm_and_score_rounds,
    incentive_claim,
    pairs_claim,
    platform_bounds,
)
from cloneproof.mechanisms.parameters.theorems import Derived, Given
from cloneproof.mechanisms.rule import rounds_number

CONTEST = "the contest theorem"


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
    """M by the same condition as for an award (steady indices are monotone), K = L; the contest knows the horizon."""
    known = platform_bounds(
        "holdout-kl-ucb", market, given, agents, given.get("horizon"), max_originals, gap, None, values, rates,
        relative_gap, sub_gaussian,
    )  # fmt: skip
    if known.horizon is None:
        raise MechanismError(
            "mechanism 'holdout-kl-ucb' needs a horizon, for its index and its rounds; give it, or market=.."
        )
    horizon = rounds_number(known.horizon, "horizon")
    max_arms = rounds_number(given.get("max_arms", known.max_originals), "max_arms")
    m = given.get("arm_rounds") or arm_and_score_rounds(known, 1, horizon)[0]
    m = rounds_number(m, "arm_rounds")
    parameters = {"arm_rounds": m, "max_arms": max_arms, "horizon": horizon}
    return Derived(parameters, (_claim(known, horizon, m, max_arms),))


def _claim(known: PlatformBounds, horizon: int, m: int, max_arms: int) -> Claim:
    if max_arms < known.max_originals:
        return Claim(f"nothing where agents with more than {max_arms} originals take no part", CONTEST)
    proof, _ = pairs_claim(known, horizon, m) or incentive_claim(known, horizon, m, CONTEST)
    return Claim(proof.property, CONTEST, proof.finding)
