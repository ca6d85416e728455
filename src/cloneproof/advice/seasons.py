"""Drift: how long a season of the recommended mechanism should be if rates change."""

from __future__ import annotations

import math

from cloneproof.advice.assessment import SamplingLimits, expected_best, random_regret, regret_of, tuned_mechanism
from cloneproof.advice.recommendation import AssessedMechanism
from cloneproof.bounds import season_cost, season_length
from cloneproof.errors import CloneproofError
from cloneproof.market.market import Market

SHORTER = 16  # times: the second horizon at which the mechanism is tuned and judged


def season_words(market: Market, chosen: AssessedMechanism, lifetime: float, limits: SamplingLimits) -> str:
    """The cheapest season if a rate changes after so many rounds on average, in a sentence.

    The regret of a shorter season follows a power law through that of the horizon and of a sixteenth of it, each tuned.
    """
    gap = random_regret(market) / market.horizon
    power = _power(market, chosen, limits)

    def regret(rounds: int) -> float:
        return min(gap * rounds, chosen.regret.value * math.pow(rounds / market.horizon, power))

    if gap <= 0:
        return "All items are alike, so drift costs nothing."
    length, cost = season_length(regret, market.horizon, gap, lifetime)
    long = season_cost(market.horizon, regret(market.horizon), gap, lifetime)
    earned = expected_best(market)
    start = "one season of all rounds" if length == market.horizon else f"seasons of about {length:,} rounds"
    return (
        f"If a rate changes after {lifetime:,.0f} rounds on average, {start} cost least, at most about "
        f"{cost / earned:.1%} of what perfect knowledge would earn (one long season: {long / earned:.1%}). "
        "Then restart with parameters tuned to that length; the promise holds for rates that stay within a season."
    )


def variety_words(market: Market) -> str:
    """What a share of traffic for uniform draws costs."""
    cost = random_regret(market) / 100
    return (
        f"Each 1 % of traffic kept for variety (a provider at random, then one of its items) costs about {cost:,.3g} "
        "rewards and is neutral to copies."
    )


def _power(market: Market, chosen: AssessedMechanism, limits: SamplingLimits) -> float:
    """The exponent of the regret as a function of the rounds, between 0 and 1; a half if unknown."""
    shorter = market.with_horizon(max(len(market.agents), market.horizon // SHORTER))
    try:
        regret = regret_of(shorter, tuned_mechanism(chosen.name, shorter), limits)
    except CloneproofError:
        regret = None
    if regret is None or min(regret.value, chosen.regret.value) <= 0 or shorter.horizon == market.horizon:
        return 0.5
    power = math.log(chosen.regret.value / regret.value) / math.log(market.horizon / shorter.horizon)
    return min(1.0, max(0.0, power))
