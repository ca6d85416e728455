"""Payoffs and regret in expectation over random means, where a family knows them at given laws of the means.

Continuous priors become the points of a Gauss rule, whose error is proven (`laws.points`) or, if the rule would need
too many points, estimated from two resolutions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import PART
from cloneproof.laws.best import best_mean
from cloneproof.laws.means import CopiedOriginal
from cloneproof.laws.points import PointRule, coin_distance, exact_points, points_for
from cloneproof.market.market import FullCopies, Market
from cloneproof.runs.estimate import Estimate, Evaluation

GENEROUS = 3.0  # the change between two resolutions is multiplied by this for the error
SAME = 1e-6  # a distance of coins that counts as proven: payoffs within a reward in a million rounds
FINE, COARSE = 64, 0.7  # the most points of the finer of two resolutions, and the part of them that the other one has
ARM_ROUNDING = 2.0**-51  # by which the power of a distribution function may be wrong for each arm

RegisteredOriginals = tuple[tuple[CopiedOriginal, ...], ...]  # of each agent


@dataclass(frozen=True)
class Expectations:
    """What agents earn with these copies, by a function of their registered originals with the atoms of their means.

    Numbers are right to PART of the largest payoff in the market, all rounds at the best mean; and to ARM_ROUNDING for
    each registered arm if `of_arms`, whose laws are powers of distribution functions.
    """

    market: Market
    copies: FullCopies
    earned: Callable[[RegisteredOriginals], Sequence[float]]
    of_arms: bool = False

    @property
    def listed(self) -> bool:
        """Whether all priors have atoms."""
        return all(prior.atoms is not None for agent in self.market.agents for prior in agent.priors)

    def exactly(self) -> Evaluation:
        """Return the expectations over priors that have atoms."""
        return self._evaluation(self._estimates(0, "closed form"))

    def by_coins(self, points: int, coins: int) -> Evaluation | None:
        """Return them by Gauss rules if these change the law of that many coins of an original by next to nothing."""
        points = min(points, points_for(coins))
        originals = [
            prior
            for agent in self.market.agents
            for prior, number in zip(agent.priors, self.copies[agent.name], strict=True)
            if number and prior.atoms is None
        ]
        apart = math.fsum(coin_distance(cast("Any", prior), points, coins) for prior in originals)
        if apart > SAME:
            return None
        return self._evaluation(self._estimates(points, f"closed form over Gauss rules of {points} points", apart))

    def by_two_resolutions(self, points: int, rule: PointRule = "gauss", jumps: bool = False) -> Evaluation:
        """Return them with an error that is estimated; with `jumps`, payoffs may jump between points.

        A misplaced jump moves about the weight of one point from one agent to another, at most 2 / points of all
        rounds.
        """
        method = "closed form over quadrature, error from two resolutions"
        coarse, fine = (self._estimates(number, method, rule=rule) for number in (math.ceil(COARSE * points), points))
        estimates = [_refine(a, b) for a, b in zip(coarse, fine, strict=True)]
        if jumps:
            moved = 2.0 * self.market.horizon / points
            shares = [*(self.market.share for _ in self.market.agents), 1.0]
            estimates = [
                replace(estimate, error=estimate.error + share * moved)
                for estimate, share in zip(estimates, shares, strict=True)
            ]
        return self._evaluation(estimates)

    def _evaluation(self, estimates: Sequence[Estimate]) -> Evaluation:
        names = [agent.name for agent in self.market.agents]
        return Evaluation(dict(zip(names, estimates[:-1], strict=True)), estimates[-1], "law")

    def _estimates(self, points: int, method: str, apart: float = 0.0, rule: PointRule = "gauss") -> list[Estimate]:
        """Return payoffs and regret, continuous priors replaced by points; `apart` bounds what that changes a round."""
        market = self.market
        different = {id(prior): prior for agent in market.agents for prior in agent.priors}
        rules = {key: exact_points(prior, points, rule) for key, prior in different.items()}
        priors = [[rules[id(prior)] for prior in agent.priors] for agent in market.agents]
        agents = tuple(
            tuple(CopiedOriginal(*pair) for pair in zip(own, self.copies[agent.name], strict=True) if pair[1])
            for agent, own in zip(market.agents, priors, strict=True)
        )
        most = max(value for own in priors for atoms in own for value, _ in atoms)
        earned = self.earned(agents)
        best, best_error = best_mean([prior for agent in market.agents for prior in agent.priors])
        arms = sum(original.copies for own in agents for original in own) if self.of_arms else 0
        lost = market.horizon * ((PART + ARM_ROUNDING * arms) * most + apart)
        payoffs = [Estimate(market.share * reward, market.share * lost, "exact", method) for reward in earned]
        regret = market.horizon * best - math.fsum(earned)
        return [*payoffs, Estimate(regret, lost + market.horizon * best_error, "exact", method)]


def _refine(coarse: Estimate, fine: Estimate) -> Estimate:
    change = abs(fine.value - coarse.value)
    error = GENEROUS * change + coarse.error + fine.error
    return Estimate(fine.value, error, "exact", fine.method, heuristic=True)


def law_or_reason(law: Callable[[], Evaluation]) -> Evaluation | str:
    """Return what a law says, or the sentence of its refusal."""
    try:
        return law()
    except EngineError as refusal:
        return refusal.reason
