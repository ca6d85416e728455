"""Agents who know which of their items are better: what they gain, and what becomes of the regret.

Such an agent answers its own means, not the odds, so its deviations are those of a market whose priors are points. A
few realisations of everybody's means are audited in this way. Where each agent registers only its best item, the
market is one of agents with one item each, whose prior is the law of the best.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from cloneproof.advice.assessment import (
    TOLERANCE,
    SamplingLimits,
    exploration,
    regret_of,
    relative_gain,
)
from cloneproof.advice.recommendation import AssessedMechanism, WrongDeclaration
from cloneproof.advice.wrong_declarations import sampled_mistake
from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.verdict import Verdict
from cloneproof.analysis.evaluate import evaluate
from cloneproof.errors import CloneproofError
from cloneproof.market.agents import Agent
from cloneproof.market.market import Market
from cloneproof.market.priors import Discrete, Point, Prior
from cloneproof.mechanisms.mechanism import Mechanism

REALISATIONS = 3  # of everybody's means that are audited
QUANTILES = 12  # of a continuous prior


def assess_informed(market: Market, made: Mechanism, limits: SamplingLimits) -> AssessedMechanism | str:
    """The same as `assess` for agents who know their means: audited at a few realisations of them."""
    regret = regret_of(market, made, limits)
    if regret is None:
        return f"it has no closed form, and {market.horizon:,} rounds are too many to sample for an answer in seconds"
    verdict: Verdict = "clone-proof"
    gain = 0.0
    for known in realised_markets(market, limits.seed):
        try:
            audited = audit(known, made, tolerance=TOLERANCE, budget_seconds=max(0.3, limits.seconds), seed=limits.seed)
        except CloneproofError as refusal:
            return str(refusal)
        gain = max(gain, relative_gain(audited))
        if audited.verdict != "clone-proof" and verdict != "exploitable":
            verdict = audited.verdict
    said = {
        "clone-proof": f"No provider that knows its items gains by copies, at {REALISATIONS} draws of all rates.",
        "undecided": (
            f"No copies were found to pay for providers that know their items, at {REALISATIONS} draws of everybody's "
            f"rates; gains up to {gain:.1%} are not ruled out."
        ),
        "exploitable": "Copies pay for providers that know their items.",
    }[verdict]
    claims = "; ".join(str(claim) for claim in made.claims if "informed" in claim.property)
    return AssessedMechanism(
        made, regret, verdict, gain, *exploration(market, made), f"{said} Claimed: {claims}." if claims else said
    )


def if_informed(market: Market, made: Mechanism, limits: SamplingLimits) -> tuple[WrongDeclaration, ...]:
    """What is lost if agents know their items after all: one registers only its best item, or everybody does."""
    if market.most_originals == 1:
        return ()
    best_only = market_of_bests(market)
    regret = regret_of(best_only, made, limits)
    gain, why = 0.0, "the agent registers only its best item: computed"
    try:
        honest = evaluate(market, made, engine="closed-form")
        for number, agent in enumerate(market.agents):
            if agent.count == 1 or agent.priors in [each.priors for each in market.agents[:number]]:
                continue
            alone = [best_only.agents[k] if k == number else each for k, each in enumerate(market.agents)]
            knowing = evaluate(replace(market, agents=alone), made, engine="closed-form").payoff[agent.name]
            own = honest.payoff[agent.name]
            gain = max(gain, (knowing - own).value / own.value if own.value > 0 else math.inf)
    except CloneproofError:
        gain, why = math.inf, "no exact engine applies"
    what = "providers know which of their items are better (regret: if each registers only its best)"
    return (WrongDeclaration(what, regret, gain, why),)


def if_bayesian(market: Market, made: Mechanism, limits: SamplingLimits) -> tuple[WrongDeclaration, ...]:
    """What agents gain by copies if they know only the odds after all."""
    regret = regret_of(market, made, limits)
    return (sampled_mistake("providers know only the odds of their items", market, made, regret, limits),)


def market_of_bests(market: Market) -> Market:
    """Each agent with one item, as good as the best of its originals."""
    agents = [Agent(agent.name, 1, _law_of_best(agent.priors)) for agent in market.agents]
    return Market(agents, market.horizon, market.share, market.rewards)


def realised_markets(market: Market, seed: int) -> list[Market]:
    """A few realisations of everybody's means, as markets of points."""
    generator = np.random.default_rng([seed, 18])
    drawn = []
    for _ in range(REALISATIONS):
        agents = [
            Agent(agent.name, prior=[Point(float(prior.quantile(generator.random()))) for prior in agent.priors])
            for agent in market.agents
        ]
        drawn.append(Market(agents, market.horizon, market.share, market.rewards))
    return drawn


def _law_of_best(priors: tuple[Prior, ...]) -> Prior:
    atoms = [_atoms(prior) for prior in priors]
    values = sorted({value for own in atoms for value, _ in own})
    below = [math.prod(sum(weight for value, weight in own if value <= top) for own in atoms) for top in values]
    weights = [after - before for before, after in zip([0.0, *below], below, strict=False)]
    kept = [(value, weight) for value, weight in zip(values, weights, strict=True) if weight > 1e-15]
    if len(kept) == 1:
        return Point(kept[0][0])
    total = math.fsum(weight for _, weight in kept)
    return Discrete([value for value, _ in kept], [weight / total for _, weight in kept])


def _atoms(prior: Prior) -> list[tuple[float, float]]:
    if prior.atoms is not None:
        return list(prior.atoms)
    return [(float(prior.quantile((k + 0.5) / QUANTILES)), 1 / QUANTILES) for k in range(QUANTILES)]
