"""Confidence sequences for means of bounded observations: valid at all times together, so at any stopping time.

Let observations X_1, X_2, .. lie in intervals no longer than c, with conditional means m_i, and let Y_i be any guess of
X_i from the past that lies in the same interval. Fan, Grama and Liu (2015) show for 0 <= r < 1 that

    exp(r S / c - f(r) V / c^2),   S = sum (X_i - m_i),   V = sum (X_i - Y_i)^2,   f(r) = -ln(1 - r) - r,

is a supermartingale that starts at 1 (Howard, Ramdas, McAuliffe and Sekhon 2021, Theorem 4; Waudby-Smith and Ramdas
2023, Theorem 2): each rate r is a bet that S grows. So is a weighted sum of such bets over fixed rates, and by Ville's
inequality it reaches 2/alpha with probability at most alpha/2; likewise for -S. So with probability 1 - alpha, at all
times together, |S| stays below the solution s of

    sum_k w_k exp(r_k s / c - f(r_k) V / c^2) = 2 / alpha.

The underlying inequality, exp(r x - f(r) x^2) <= 1 + r x, holds for all x >= -1: a bet that S grows needs only that no
X_i lies more than c *below* its guess. So two guesses share the stake: the running mean with c the whole range, which
adapts to the variance; and, with c half the range, the running mean as far as that c allows, which is better for few
observations or those near the middle, such as differences of payoffs. The rates form a geometric grid. Nothing is
tuned, except that for differences of payoffs half of the stake is on the boldest bet.

For observations spread over their range the width is about 1.7 times that of the central limit theorem at one fixed
time, at 99 %. For observations that hardly vary it is about c (ln(2 / alpha) + ln 2) / n until n is as large as c^2
over the variance; no distribution-free bound can be less than c ln(1 / alpha) / n. Only S and V are needed, O(1) per
observation.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.market.market import Market, Means
from cloneproof.market.segments import marginal
from cloneproof.runs.estimate import BoundsName, Estimate

RATES: FloatArray = 0.97 * 1.5 ** -np.arange(35.0)  # down to 1e-6: best for V / c^2 near 10^13, beyond any sample
_RANKS = np.arange(1.0, len(RATES) + 1.0) ** -1.2  # heavy enough a tail that no sample size pays much
LOG_WEIGHTS: FloatArray = np.log(_RANKS / _RANKS.sum())
COSTS: FloatArray = -np.log1p(-RATES) - RATES
_STEPS = 100  # Newton needs about 6
FIRST_TIME = 16  # observations before which no limit is trusted
TIGHTEST, TIGHTEST_OF_SLOW = 256, 32  # observations at which the width is least for its alpha; of slow policies, few
UNLIKELY = 1e-3  # a best mean beyond this quantile of a continuous prior is not expected among few runs
CUT = 8.0
_ROUNDING = 1e-9


def deviations(variations: FloatArray, scales: FloatArray, alpha: float, bold: float = 0.0) -> FloatArray:
    """Return the largest |S| that is plausible at confidence 1 - alpha.

    The best single bet bounds the solution from above. The logarithm of the sum is convex and increasing in s, so
    Newton's steps descend from there without passing the solution, and the bound holds wherever they stop.
    """
    slopes, offsets = _bets(variations, scales, bold)
    goal = math.log(2.0 / alpha)
    widths = ((goal - offsets) / slopes).min(axis=-1)
    for _ in range(_STEPS):
        terms = widths[..., None] * slopes + offsets
        most = terms.max(axis=-1)
        bets = np.exp(terms - most[..., None])
        total = bets.sum(axis=-1)
        step = (most + np.log(total) - goal) * total / (bets * slopes).sum(axis=-1)
        widths = widths - np.maximum(step, 0.0)
        if not (step > 1e-9 * widths).any():
            break
    return round_up(widths)


def _bets(variations: FloatArray, scales: FloatArray, bold: float) -> tuple[FloatArray, FloatArray]:
    """Return the logarithm of each bet as a line in S: slope r / c, and ln w - f(r) V / c^2 at S = 0."""
    ways = variations.shape[-1]
    scales = np.broadcast_to(scales, variations.shape)
    slopes = RATES / scales[..., None]
    stakes = np.tile((1 - bold) / ways * np.exp(LOG_WEIGHTS), (ways, 1))
    stakes[-1, 0] += bold
    offsets = np.log(stakes) - COSTS * (variations / scales**2)[..., None]
    shape = (*variations.shape[:-1], ways * len(RATES))
    return slopes.reshape(shape), offsets.reshape(shape)


def round_up(values: FloatArray) -> FloatArray:
    """Round up to 32 bits, since the last bits of exp and ln differ between machines."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.ceil(mantissa * 2.0**32) * 2.0**-32, exponent)


def asymptotic_widths(
    variances: FloatArray, count: int, alpha: float, unseen: FloatArray | float = 0.0, tightest: int = TIGHTEST
) -> FloatArray:
    """Return the half-widths of means of `count` observations with these sample variances; infinite for too few.

    They hold at all times together, whatever the number of observations `tightest` for which they are made.

    Few observations may all miss a rare one, and then look alike. So one more is counted at the distance `unseen`, for
    whichever side: without it, observations at 1 % that lose what the others win are taken for a gain in up to 99 % of
    samples, with it in at most 2 % (tests/runs/test_asymptotic_sequences.py).

    >>> asymptotic_widths(np.array([1.0]), 256, 0.01).round(3)
    array([0.223])
    """
    if count < FIRST_TIME:
        return np.full(variances.shape, math.inf)
    log = -2 * math.log(alpha)
    rate = (log + math.log(log + 1)) / tightest  # r^2, nearly the best for that time
    spread = 1 + count * rate
    variances = variances + np.square(unseen) / (count + 1)
    return np.asarray(np.sqrt(variances * 2 * spread / (count**2 * rate) * math.log(math.sqrt(spread) / alpha))) + (
        unseen / (count + 1)
    )


@dataclass(frozen=True)
class Bounds:
    """Bounds of a mean: it lies in [low, high]; so does an observation, up to sub-Gaussian noise that is cut off.

    >>> Bounds(0.0, 10.0, noise=0.5).least, Bounds(0.0, 10.0).bias
    (-4.0, 0.0)
    """

    low: float
    high: float
    noise: float = 0.0

    @property
    def least(self) -> float:
        return self.low - CUT * self.noise

    @property
    def most(self) -> float:
        return self.high + CUT * self.noise

    def __add__(self, other: Bounds) -> Bounds:
        """Return bounds of the sum of two observations with independent noise."""
        return Bounds(self.low + other.low, self.high + other.high, math.hypot(self.noise, other.noise))

    @property
    def middle(self) -> float:
        """First guess of an observation."""
        return (self.low + self.high) / 2

    @property
    def bias(self) -> float:
        """Largest change of the mean by cutting."""
        return 2.0 * self.noise * math.exp(-CUT * CUT / 2) / CUT


def with_sum(parts: Sequence[Any]) -> list[Any]:
    """Return the sum of the parts and, if there are several, the parts after it.

    >>> with_sum([3]), with_sum([1, 2])
    ([3], [3, 1, 2])
    """
    return [reduce(operator.add, parts), *(parts if len(parts) > 1 else ())]


def in_groups(columns: Sequence[Any], size: int) -> Iterator[Any]:
    """Yield the columns of the sum, then those of each part (`with_sum`)."""
    return (columns[k : k + size] for k in range(0, len(columns), size))


def payoff_bounds(market: Market) -> Bounds:
    """Bound an agent's payoff: it may be served in every round, or in none."""
    most = market.share * market.most_rounds * max(1, len(market.places))
    if math.isfinite(market.family.low) and math.isfinite(market.family.high):
        return Bounds(most * min(market.family.low, 0.0), most * max(market.family.high, 0.0))
    return Bounds(0.0, most, market.share * market.family.spread * math.sqrt(market.most_rounds))


def regret_bounds(market: Market) -> Bounds:
    """Bound the regret, a sum of differences of means: the span of the priors."""
    if market.places:  # usual bandits may fill more places than there are agents
        most = market.most_rounds * market.page_attention
        return Bounds(-most, most)
    supports = [agent.support for agent in market.agents]
    if any(support is None for support in supports):
        return Bounds(0.0, float(market.most_rounds))
    values = [value for support in supports if support is not None for value in support]
    return Bounds(0.0, market.most_rounds * (max(values) - min(values)))


def served_bounds(market: Market, agent: str) -> Bounds:
    """Bound what an agent is served, in means of the arms pulled: at most all rounds, or pages, at its best mean."""
    support = next(provider.support for provider in market.agents if provider.name == agent)
    best = 1.0 if support is None else max(support)
    return Bounds(0.0, market.share * market.most_rounds * market.page_attention * best)


def gain_bounds(market: Market, agent: str) -> Bounds:
    """Bound the difference of what an agent is served in two worlds."""
    width = served_bounds(market, agent).high
    return Bounds(-width, width)


def likely_part(market: Market, agent: str) -> float:
    """Return the agent's best mean but for a chance of UNLIKELY, by the best that `served_bounds` allows."""
    provider = next(provider for provider in market.agents if provider.name == agent)
    if provider.support is not None:
        return 1.0
    segments = market.segments or ("",)
    laws = [marginal(law, name) for law in provider.laws for name in segments]
    return max(law.quantile(1 - UNLIKELY / provider.count) for law in laws)


def reach_of(means: Sequence[Means], agent: str) -> tuple[float, ...]:
    """Return how far the bounds reach in each stratum: the agent's best mean there over its best mean in any.

    >>> reach_of([{"ana": (0.2, 0.8)}, {"ana": (0.2, 0.2)}], "ana")
    (1.0, 0.25)
    """
    best = [max(stratum[agent]) for stratum in means]
    return tuple(mean / max(best) if mean < max(best) else 1.0 for mean in best)


def cut(values: FloatArray, bounds: Sequence[Bounds], reach: FloatArray | None = None) -> FloatArray:
    """Cut observations (last axis: one column for each of the bounds) to their bounds, or raise an error.

    `reach` scales the bounds by stratum, the axis before the last.
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


@dataclass(frozen=True)
class Estimands:
    """Quantities to estimate: means of columns with known bounds, and the weights of the strata of one pass.

    `identity` names the job, including the seed; totals of different jobs must not be mixed. In each stratum the bounds
    are those of the columns times its `reach` (default 1). `bold` is the part of the stake on the boldest bet
    (`confidence_sequences`), `likely` the part of half its range by which an observation may move that was not seen yet
    (`asymptotic_widths`; 0: none is expected), `tightest` the observations for which asymptotic widths are made.
    """

    bounds: tuple[Bounds, ...]
    weights: tuple[float, ...] = (1.0,)
    identity: str = ""
    reach: tuple[float, ...] = ()
    bold: float = 0.0
    likely: float = 0.0
    tightest: int = TIGHTEST

    @property
    def reaches(self) -> FloatArray:
        return np.array(self.reach or (1.0,) * len(self.weights))

    @property
    def scale(self) -> FloatArray:
        """Most that a single run can move an observation, by column."""
        return float((np.array(self.weights) * self.reaches).max()) * np.array([b.most - b.least for b in self.bounds])

    @property
    def room(self) -> FloatArray:
        """Largest distance of a guess above the middle, by stratum and column, with half the scale: c / weight - c'.

        c is half the scale and c' half the stratum's own range, so that no run falls more than c / weight below it.
        """
        half = self.reaches[:, None] * np.array([(b.most - b.least) / 2 for b in self.bounds])
        return np.asarray(np.maximum(0.0, self.scale / 2 / np.array(self.weights)[:, None] - half))

    @property
    def mean_reach(self) -> float:
        """Reach of the mean that is sought."""
        return float(np.add.accumulate(np.array(self.weights) * self.reaches)[-1]) if self.reach else 1.0


@dataclass(frozen=True, eq=False)
class RunTotals:
    """Count, sums and squares of each stratum and column (from the middle of the bounds), and three V of each column.

    The first V is that of the running mean as the guess. The others, with half the scale, belong to a guess so low that
    no observation falls below it by more than that, and to one so high that none rises above it.
    """

    estimands: Estimands
    count: int
    sums: FloatArray
    squares: FloatArray
    variations: FloatArray

    @classmethod
    def empty(cls, estimands: Estimands) -> RunTotals:
        shape = (len(estimands.weights), len(estimands.bounds))
        return cls(estimands, 0, np.zeros(shape), np.zeros(shape), np.zeros((3, shape[1])))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RunTotals) or (self.estimands, self.count) != (other.estimands, other.count):
            return False
        sums = ("sums", "squares", "variations")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in sums)

    def __hash__(self) -> int:
        return hash((self.estimands, self.count))

    @property
    def runs(self) -> int:
        return self.count * len(self.estimands.weights)

    def plus(self, rows: FloatArray) -> RunTotals:
        """Return the totals after more runs (whole passes, strata in turn, one row per run)."""
        strata, columns = self.sums.shape
        reach = self.estimands.reaches
        middle = reach[:, None] * np.array([b.middle for b in self.estimands.bounds])
        values = cut(rows.reshape(-1, strata, columns), self.estimands.bounds, reach) - middle
        sums = _partial_sums(self.sums, values)
        # The guess is the mean of the stratum's past and of one invented observation in the middle, so it is bounded.
        guesses = sums[:-1] / np.arange(self.count + 1.0, self.count + len(values) + 1.0)[:, None, None]
        weights = np.array(self.estimands.weights)[:, None]
        room = self.estimands.room
        ways = (guesses, np.minimum(guesses, room), np.maximum(guesses, -room))
        passes = [np.add.accumulate((weights * (values - guess)) ** 2, axis=1)[:, -1] for guess in ways]
        return RunTotals(
            self.estimands,
            self.count + len(values),
            sums[-1],
            _partial_sums(self.squares, values**2)[-1],
            _partial_sums(self.variations, np.stack(passes, axis=1))[-1],
        )

    @property
    def means(self) -> FloatArray:
        middle = self.estimands.mean_reach * np.array([b.middle for b in self.estimands.bounds])
        if self.count == 0:
            return middle
        weighted = np.array(self.estimands.weights)[:, None] * self.sums
        return np.asarray(middle + np.add.accumulate(weighted, axis=0)[-1] / self.count)

    @property
    def variances(self) -> FloatArray:
        """Variance of one observation, by column, inside the strata; 0 for a single one."""
        weights = np.array(self.estimands.weights)[:, None]
        if self.count < 2:
            return np.zeros(len(self.estimands.bounds))
        inside = np.maximum(0.0, self.squares / self.count - (self.sums / self.count) ** 2)
        return np.asarray(np.add.accumulate(weights**2 * inside, axis=0)[-1] * (self.count / (self.count - 1)))

    def half_widths(self, alpha: float, bounds: BoundsName = "distribution-free") -> FloatArray:
        """Return the half-widths of the confidence sequences, each at confidence 1 - alpha by itself.

        Includes the bias of cutting and the rounding of the sums; at most the bounds of the mean. Each end holds at 1 -
        alpha / 2.
        """
        limits, reach = self.estimands.bounds, self.estimands.mean_reach
        ends = zip(limits, self.means, strict=True)
        widest: FloatArray = np.array([max(mean - reach * b.low, reach * b.high - mean) for b, mean in ends])
        if bounds == "asymptotic":
            unseen = self.estimands.likely * self.estimands.scale / 2
            widths = asymptotic_widths(self.variances, self.count, alpha, unseen, self.estimands.tightest)
            return np.asarray(np.minimum(widths, widest))
        if self.count == 0:
            return widest
        scale = np.where(self.estimands.scale > 0.0, self.estimands.scale, 1.0)
        any_guess, low_guess, high_guess = self.variations
        sides = np.stack([np.stack([any_guess, guess], axis=1) for guess in (low_guess, high_guess)])
        scales = np.stack([scale, scale / 2], axis=1)
        widths = deviations(sides, scales, alpha, self.estimands.bold).max(axis=0) / self.count
        bias = np.array([b.bias for b in limits])
        rounding = (self.count + len(self.estimands.weights) + 4) * 2.0**-53
        size = np.array([max(abs(b.least), abs(b.most)) for b in limits])
        return np.asarray(np.minimum(widths * (1 + rounding) + bias + rounding * size, widest))

    def estimates(self, confidence: float, how: str, bounds: BoundsName = "distribution-free") -> list[Estimate]:
        """Return the means with their half-widths, infinite before `FIRST_TIME`: few runs have no interval to tell."""
        words = "confidence sequence" if bounds == "distribution-free" else "asymptotic confidence sequence"
        method = f"{how}, {words} at {confidence * 100:.12g} %" if self.count else "no runs yet"
        few = self.count < FIRST_TIME
        widths = np.full(len(self.means), math.inf) if few else self.half_widths(1.0 - confidence, bounds)
        return [
            Estimate(float(m), float(w), "confidence", method, level=confidence)
            for m, w in zip(self.means, widths, strict=True)
        ]

    def check_same(self, estimands: Estimands) -> RunTotals:
        """Return itself if it belongs to that job; else raise an error."""
        if self.estimands != estimands:
            raise EngineError(
                f"expected totals of the job {estimands.identity}, got those of {self.estimands.identity}; "
                "resume with the same market, mechanism, copies and seed, or start over"
            )
        return self


def _partial_sums(start: FloatArray, values: FloatArray) -> FloatArray:
    """Return partial sums from `start`, added one at a time and in order, unlike sum()."""
    return np.add.accumulate(np.concatenate([start[None], values]), axis=0)
