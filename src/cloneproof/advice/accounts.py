"""What a second account pays a provider under a mechanism, beside what it pays under every mechanism that learns."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from cloneproof.advice.assessment import COMMITTED, LONGEST_SAMPLED, PULLS_A_SECOND, SamplingLimits
from cloneproof.analysis.audit.beside import BOTH, Split, account_names, split_market
from cloneproof.bounds import second_account_floor
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Job
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
