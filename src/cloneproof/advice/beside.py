"""Beside a recommendation: what a second account pays a provider, and how long a season should be if rates change."""

from __future__ import annotations

import math
from importlib.util import find_spec

import numpy as np

from cloneproof.advice.assessment import (
    COMMITTED,
    LONGEST_SAMPLED,
    PULLS_A_SECOND,
    SamplingLimits,
    expected_best,
    random_regret,
    regret_of,
    tuned_mechanism,
)
from cloneproof.advice.recommendation import AssessedMechanism
from cloneproof.analysis.audit.beside import BOTH, Split, account_names, split_market
from cloneproof.bounds import season_cost, season_length, second_account_floor
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.errors import CloneproofError
from cloneproof.market.market import Market, Means, full_copies
from cloneproof.mechanisms.mechanism import Mechanism

FEWEST, MOST = 20, 4000  # worlds that are played, each with and without the second account
PART = 0.25  # of the pulls that a regret is sampled with
ERRORS = 2.58  # standard errors: 99 %


def second_account_gain(market: Market, made: Mechanism, limits: SamplingLimits) -> Estimate | None:
    """The largest gain, in rewards, of a provider that registers all its items again under a second name.

    Sampled in worlds with given rates, the same with and without the account; the error is 2.58 standard errors. None
    if no compiled kernel plays the mechanism, or its runs are too long.
    """
    pulls = COMMITTED if made.rules[0].commits else market.horizon
    if pulls > LONGEST_SAMPLED or find_spec("numba") is None:
        return None
    from cloneproof.engines.monte_carlo.outcomes import kernel_for, outcomes  # late: without the compiler there is none

    runs = max(FEWEST, min(MOST, round(PART * limits.seconds * PULLS_A_SECOND / pulls)))
    dice = np.random.default_rng([limits.seed, 5])
    worlds: list[Means] = [
        {agent.name: tuple(float(prior.quantile(dice.random())) for prior in agent.priors) for agent in market.agents}
        for _ in range(runs)
    ]
    found = []
    for number, agent in enumerate(market.agents):
        if agent.priors in [each.priors for each in market.agents[:number]]:
            continue
        second = account_names(agent.name)[1]
        several = split_market(market, agent.name, Split((BOTH,) * agent.count))
        doubled = tuple({**world, second: world[agent.name]} for world in worlds)
        honest = Job(market, made, full_copies(market.agents, None), limits.seed, tuple(worlds))
        split = Job(several, made, full_copies(several.agents, None), limits.seed, doubled)
        if "reference" in (kernel_for(honest)[0], kernel_for(split)[0]):
            return None
        both = outcomes(split, 0, runs).served[:, number : number + 2].sum(1)  # the accounts stand side by side
        gains = (both - outcomes(honest, 0, runs).served[:, number]) / market.share
        error = ERRORS * float(gains.std(ddof=1)) / runs**0.5
        found.append(Estimate(float(gains.mean()), error, "asymptotic", f"{runs} worlds, with and without the account"))
    return max(found, key=lambda gain: gain.value)


def account_floor(market: Market) -> float | None:
    """What every mechanism that learns pays a second account in the long run, in rewards over the market's rounds.

    0 for continuous rates, where the gain grows more slowly than the rounds. None if providers differ.
    """
    priors = {agent.priors for agent in market.agents}
    if len(priors) > 1 or len(market.agents) == 1 or len(set(market.agents[0].priors)) > 1:
        return None
    atoms = market.agents[0].priors[0].atoms
    if atoms is None:
        return 0.0
    values, weights = zip(*atoms, strict=True)
    count = market.agents[0].count
    return market.horizon * second_account_floor(len(market.agents), values, weights, originals=count)


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
