"""Where payoffs, regrets and gains can lie: what a confidence sequence must know beforehand.

Bounded rewards bound the payoff. Gaussian rewards do not, but their tails are thin. Given the adaptive choices, a
payoff is the share times the sum of the chosen means, which lies in [0, share T], plus a martingale whose increments
are conditionally sub-Gaussian with deviation share * sd, whatever was chosen. So the martingale exceeds x with
probability at most exp(-x^2 / (2 sd_T^2)), where sd_T = share sd sqrt(T), and cutting the payoff off `CUT` times sd_T
beyond [0, share T] moves its mean by at most

    integral of 2 exp(-x^2 / (2 sd_T^2)) over x >= CUT sd_T   <=   2 sd_T exp(-CUT^2 / 2) / CUT,

about 3e-15 sd_T for CUT = 8. The cut payoff is bounded, its variance is met and not assumed, and the bias is added to
the error. (A bound from a sub-Gaussian proxy would be as wide as Hoeffding's. Its proxy would be the square of the
*sum* share T / 2 + sd_T: which arms are chosen depends on the noise, so the two parts' proxies do not add.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.market.market import Market, Means

CUT = 8.0
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Bounds:
    """The mean lies in [low, high]; an observation does too, or strays beyond by sub-Gaussian noise that is cut off.

    >>> Bounds(0.0, 10.0, noise=0.5).least, Bounds(0.0, 10.0).bias
    (-4.0, 0.0)
    """

    low: float
    high: float
    noise: float = 0.0

    @property
    def least(self) -> float:
        """The smallest observation, once cut."""
        return self.low - CUT * self.noise

    @property
    def most(self) -> float:
        """The largest observation, once cut."""
        return self.high + CUT * self.noise

    @property
    def middle(self) -> float:
        """The first guess of an observation."""
        return (self.low + self.high) / 2

    @property
    def bias(self) -> float:
        """How far cutting can have moved the mean."""
        return 2.0 * self.noise * math.exp(-CUT * CUT / 2) / CUT


def payoff_bounds(market: Market) -> Bounds:
    """An agent's payoff; it may be served in every round, or in none."""
    most = market.share * market.horizon
    if math.isfinite(market.family.low) and math.isfinite(market.family.high):
        return Bounds(most * min(market.family.low, 0.0), most * max(market.family.high, 0.0))
    return Bounds(0.0, most, market.share * market.family.spread * math.sqrt(market.horizon))


def regret_bounds(market: Market) -> Bounds:
    """The regret: a sum of differences of means, so bounded for every family by the span of the priors."""
    supports = [agent.support for agent in market.agents]
    if any(support is None for support in supports):
        return Bounds(0.0, float(market.horizon))
    values = [value for support in supports if support is not None for value in support]
    return Bounds(0.0, market.horizon * (max(values) - min(values)))


def served_bounds(market: Market, agent: str) -> Bounds:
    """What an agent is served, rewards replaced by the means of the arms pulled: at most all rounds at its best mean.

    Each round adds the share of one mean, the agent's or nothing. So there is no noise to cut, whatever the rewards.
    """
    support = next(each.support for each in market.agents if each.name == agent)
    best = 1.0 if support is None else max(support)
    return Bounds(0.0, market.share * market.horizon * best)


def gain_bounds(market: Market, agent: str) -> Bounds:
    """The difference of what an agent is served in two worlds: each of the two lies in the bounds above."""
    width = served_bounds(market, agent).high
    return Bounds(-width, width)


def reach_of(means: Sequence[Means], agent: str) -> tuple[float, ...]:
    """How far the bounds above reach in each stratum: the agent's best mean there over its best mean in any.

    >>> reach_of([{"ana": (0.2, 0.8)}, {"ana": (0.2, 0.2)}], "ana")
    (1.0, 0.25)
    """
    best = [max(each[agent]) for each in means]
    return tuple(each / max(best) if each < max(best) else 1.0 for each in best)


def cut(values: FloatArray, bounds: Sequence[Bounds], reach: FloatArray | None = None) -> FloatArray:
    """Observations (the last axis: one column for each of the bounds) inside their bounds, or a clear error.

    `reach` scales the bounds, stratum by stratum: the axis before the last.
    """
    scale = np.ones((1, 1)) if reach is None else reach[:, None]
    least, most = (scale * np.array([getattr(b, end) for b in bounds]) for end in ("least", "most"))
    kept = np.clip(values, least, most)
    slack = np.array([math.inf if b.noise else _ROUNDING * max(1.0, b.high - b.low) for b in bounds])
    if not (np.abs(kept - values) <= slack).all():  # a NaN fails as well
        column = int(np.argmin((np.abs(kept - values) <= slack).reshape(-1, len(bounds)).all(axis=0)))
        raise EngineError(
            f"expected every run's outcome between {least[:, column].min():g} and {most[:, column].max():g}, "
            f"got {values[..., column].min():g} to {values[..., column].max():g}; check the rewards of the policy"
        )
    return np.asarray(kept)
