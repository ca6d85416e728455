"""What a mechanism does in another market than the one its numbers were made for.

The mechanism stays as it is and the truth changes: the values of items lie half as far apart, agents have twice as many
items, there is half as much traffic. What an agent then gains, by copies or by leaving items out, is the scan theorem's
zero, or computed exactly over a few copies and leavings-out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from cloneproof.advice.assessment import TOLERANCE, SamplingLimits, regret_of, relative_gain
from cloneproof.advice.candidates import LONGEST_SAMPLED
from cloneproof.advice.recommendation import WrongDeclaration
from cloneproof.analysis.audit.api import audit
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.evaluate import evaluate
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import CloneproofError
from cloneproof.market.agents import Agent
from cloneproof.market.market import Market
from cloneproof.market.priors import Discrete, Prior
from cloneproof.mechanisms.mechanism import Mechanism


def wrong_declarations(market: Market, made: Mechanism, limits: SamplingLimits) -> tuple[WrongDeclaration, ...]:
    """Each way in which a declaration may be wrong, with the regret and the largest gain."""
    return tuple(_mistake(what, truth, made, limits) for what, truth in true_markets(market))


def true_markets(market: Market) -> Iterator[tuple[str, Market]]:
    """The markets that may be the true ones."""
    closer = [Agent(agent.name, prior=[_half_as_far(prior) for prior in agent.priors]) for agent in market.agents]
    if any(agent.support is None or len(agent.support) > 1 for agent in market.agents):
        yield "items differ half as much", Market(closer, market.horizon, market.share, market.rewards)
    more = [Agent(agent.name, prior=agent.priors * 2) for agent in market.agents]
    yield "twice as many items", Market(more, market.horizon, market.share, market.rewards)
    if market.horizon >= 2 * len(market.agents):
        yield "half the traffic", market.with_horizon(market.horizon // 2)


def _half_as_far(prior: Prior) -> Prior:
    """The same weights, each value half as far from the highest one, so that what is at stake stays comparable."""
    if prior.atoms is None or len(prior.atoms) == 1:
        return prior
    top = prior.atoms[-1][0]
    return Discrete([(value + top) / 2 for value, _ in prior.atoms], [weight for _, weight in prior.atoms])


def _mistake(what: str, truth: Market, made: Mechanism, limits: SamplingLimits) -> WrongDeclaration:
    regret = regret_of(truth, made, limits)
    if made.arm.draws:
        return WrongDeclaration(what, regret, 0.0, "the scan theorem asks for no number")
    try:
        gain, agent, vector = largest_gain(truth, made)
    except CloneproofError:
        return sampled_mistake(what, truth, made, regret, limits)
    if gain <= TOLERANCE:
        return WrongDeclaration(what, regret, 0.0, "no copies and no leaving out of items pay, of those computed")
    return WrongDeclaration(what, regret, gain, f"{agent} registers {vector}: computed")


def sampled_mistake(
    what: str, truth: Market, made: Mechanism, regret: Estimate | None, limits: SamplingLimits
) -> WrongDeclaration:
    """The same where no exact engine applies: what a sampled audit does not rule out."""
    if truth.horizon > LONGEST_SAMPLED:
        return WrongDeclaration(what, regret, math.inf, f"{truth.horizon:,} rounds are too many to sample here")
    try:
        audited = audit(truth, made, tolerance=TOLERANCE, budget_seconds=max(0.3, limits.seconds), seed=limits.seed)
    except CloneproofError as refusal:
        return WrongDeclaration(what, regret, math.inf, str(refusal))
    sure = "found by a sampled audit" if audited.verdict == "exploitable" else "not ruled out by a sampled audit"
    return WrongDeclaration(what, regret, relative_gain(audited), sure)


def largest_gain(truth: Market, made: Mechanism) -> tuple[float, str, CopyVector]:
    """The largest relative gain, its error included, of an agent of each kind, over a few copies and leavings-out."""
    honest = evaluate(truth, made, engine="closed-form").payoff
    best: tuple[float, str, CopyVector] = (0.0, truth.agents[0].name, (1,) * truth.agents[0].count)
    for number, agent in enumerate(truth.agents):
        if agent.priors in [each.priors for each in truth.agents[:number]] or honest[agent.name].value <= 0:
            continue
        for vector in tried_vectors(agent.count):
            payoff = evaluate(truth, made, {agent.name: vector}, engine="closed-form").payoff[agent.name]
            gain = (payoff - honest[agent.name]).high / honest[agent.name].value
            best = max(best, (gain, agent.name, vector), key=lambda found: found[0])
    return best


def tried_vectors(originals: int) -> list[CopyVector]:
    """2 or 8 copies of one original or of all; and one or half of the originals left out.

    >>> tried_vectors(2)
    [(2, 1), (8, 1), (2, 2), (8, 8), (1, 0)]
    """
    rest = (1,) * (originals - 1)
    copied = [(2, *rest), (8, *rest), (2,) * originals, (8,) * originals]
    kept = dict.fromkeys(number for number in (originals - 1, originals // 2) if number)
    return list(dict.fromkeys(copied)) + [(1,) * number + (0,) * (originals - number) for number in kept]
