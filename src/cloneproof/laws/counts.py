"""Laws of counts: binomial ones, their sums, powers and mixtures.

Binomial laws are computed in long doubles first; where thousands of them are needed, `binomial_floats` is faster. Only
the window with all but NEGLIGIBLE of the probability is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray
from cloneproof.laws.arithmetic import NEGLIGIBLE, to_the_power

DEVIATIONS = 8.5  # half a window of floats in standard deviations; a normal tail beyond it has mass 2e-17
MARGIN = 20  # counts besides, which cover small means (Bernstein)
MISSING = 1e-12  # mass outside a window of floats, and rounding


@dataclass(frozen=True)
class CountLaw:
    """Weights of low, low + 1, .., which need not sum to 1 (a law of some event and a number together).

    Weights are nonnegative and are only ever added and multiplied. `missing` bounds the mass outside the window.
    """

    low: int
    weights: FloatArray
    cumulated: FloatArray | None = None  # the weights up to each number, where they are known better than by adding up
    missing: float = 0.0

    @property
    def high(self) -> int:
        """Largest number of the window."""
        return self.low + len(self.weights) - 1

    @property
    def mean(self) -> float:
        """Expected number, of floats."""
        return float(np.dot(self.weights, np.arange(self.low, self.high + 1)) / self.weights.sum())

    def on(self, low: int, high: int) -> tuple[FloatArray, FloatArray]:
        """Return the weight below each number from low to high, and the weight at it."""
        at, before = np.zeros(high - low + 1), np.zeros(high - low + 1)
        below = np.cumsum(self.weights) if self.cumulated is None else self.cumulated
        first, last = max(low, self.low), min(high, self.high)
        if first <= last:
            at[first - low : last - low + 1] = self.weights[first - self.low : last - self.low + 1]
        first, last = max(low, self.low + 1), min(high, self.high)
        if first <= last:
            before[first - low : last - low + 1] = below[first - 1 - self.low : last - self.low]
        if high > self.high:
            before[max(self.high + 1 - low, 0) :] = below[-1]
        return before, at


def count_window(rounds: int, mean: float, likely: float = -math.log(NEGLIGIBLE)) -> tuple[int, int]:
    """Return counts outside of which a binomial law has less than exp(-likely) on either side (Bernstein)."""
    half = math.sqrt(2 * likely * rounds * mean * (1 - mean)) + likely + 2
    return max(0, math.floor(rounds * mean - half)), min(rounds, math.ceil(rounds * mean + half))


@lru_cache(maxsize=1024)
def binomial_window(rounds: int, mean: float | Fraction) -> tuple[int, Any, Any]:
    """Return the first count of the window, the probabilities from there on and of at most each, in long doubles.

    By ratios of neighbouring terms from the mode on, scaled to a sum of 1.
    """
    chance = Fraction(mean)
    if rounds == 0 or chance in (0, 1):
        return rounds * int(chance), np.ones(1, np.longdouble), np.ones(1, np.longdouble)
    low, high = count_window(rounds, float(chance))
    mode = min(high, max(low, int((rounds + 1) * chance)))
    odds = _long(chance) / _long(1 - chance)
    above, below = np.arange(mode, high, dtype=np.longdouble), np.arange(mode, low, -1, dtype=np.longdouble)
    up = np.cumprod((rounds - above) / (above + 1) * odds)
    down = np.cumprod(below / ((rounds - below + 1) * odds))
    terms = np.concatenate([down[::-1], np.ones(1, np.longdouble), up])
    terms /= terms.sum()
    kept = np.flatnonzero(terms >= NEGLIGIBLE / (rounds + 1))
    terms = terms[kept[0] : kept[-1] + 1]
    return low + int(kept[0]), terms, np.minimum(np.cumsum(terms), 1)


def _long(value: Fraction) -> Any:  # noqa: ANN401 (a long double)
    return np.longdouble(value.numerator) / np.longdouble(value.denominator)


@lru_cache(maxsize=2048)  # thousands of mixtures of a few hundred of them; a window has some 14 standard deviations
def binomial(rounds: int, mean: float | Fraction) -> CountLaw:
    """Return the law of the number of successes, with its distribution function.

    >>> binomial(2, 0.5).weights.tolist()
    [0.25, 0.5, 0.25]
    """
    low, window, up_to = binomial_window(rounds, mean)
    weights, cumulated = window.astype(float), up_to.astype(float)
    weights.flags.writeable = cumulated.flags.writeable = False
    return CountLaw(low, weights, cumulated)


def float_window(rounds: int, mean: float, variance: float) -> tuple[int, int]:
    """Return the first and the last of the counts that matter in floats, given their mean and variance."""
    half = DEVIATIONS * math.sqrt(variance) + MARGIN
    return max(0, math.floor(mean - half)), min(rounds, math.ceil(mean + half))


def binomial_floats(rounds: int, mean: float) -> CountLaw:
    """Return the law of the number of successes, fast: by ratios of neighbouring terms, with errors of about 1e-13.

    >>> binomial_floats(2, 0.5).weights.round(6).tolist()
    [0.25, 0.5, 0.25]
    """
    if not 0 < mean < 1:
        return CountLaw(rounds if mean >= 1 else 0, np.ones(1))
    low, high = float_window(rounds, rounds * mean, rounds * mean * (1 - mean))
    counts = np.arange(low, high)
    logs = np.append(0.0, np.cumsum(np.log((rounds - counts) / (counts + 1) * (mean / (1 - mean)))))
    weights = np.exp(logs - logs.max())
    return CountLaw(low, weights / weights.sum(), missing=MISSING)


def on_one_window(laws: Sequence[CountLaw], low: int, high: int) -> FloatArray:
    """Return the weights of each number from low to high, a row for each law of floats, which must lie in it."""
    rows = np.zeros((len(laws), high - low + 1))
    for row, law in zip(rows, laws, strict=True):
        row[law.low - low : law.high - low + 1] = law.weights
    return rows


@lru_cache(maxsize=256)
def expected_minimum(rounds: int, chance: Fraction, cap: int) -> float:
    """Return E min(H, cap) for H = Bin(rounds, chance).

    It is c + (n p - c) F - c (1 - p) f, with F and f the chances that n - 1 rounds have fewer than c - 1 and exactly
    c - 1 successes: E[H; H < c] = n p F, and H < c if these have fewer than c - 1, or c - 1 and the last round fails.

    >>> expected_minimum(2, Fraction(1, 2), 1)
    0.75
    """
    if cap >= rounds or chance == 0:
        return float(chance * rounds)
    if cap <= 0 or chance == 1:
        return float(max(0, min(rounds, cap)))
    others, p = rounds - 1, float(chance)
    fewer = scipy.special.betaincc(cap - 1, others - cap + 2, p) if cap > 1 else 0.0
    exactly = _chance_of_count(others, cap - 1, chance)
    return float(cap + float(chance * rounds - cap) * fewer - cap * float(1 - chance) * exactly)


def _chance_of_count(rounds: int, count: int, chance: Fraction) -> float:
    """Return a binomial probability by its distance from the mean, right also for 10^15 rounds (Loader 2000)."""
    if count in (0, rounds):
        return math.exp(rounds * math.log(chance if count else 1 - chance))
    other, both = rounds - count, (_apart(count, rounds * chance), _apart(rounds - count, rounds * (1 - chance)))
    stirling = _beyond_stirling(rounds) - _beyond_stirling(count) - _beyond_stirling(other)
    return math.exp(stirling - sum(both)) * math.sqrt(rounds / (2 * math.pi * count * other))


def _apart(count: int, mean: Fraction) -> float:
    """Return count ln(count / mean) - (count - mean)."""
    x = float((count - mean) / mean)
    if abs(x) > 0.1:
        return count * math.log1p(x) - float(count - mean)
    return float(mean) * math.fsum((-x) ** k / (k * (k - 1)) for k in range(2, 20))


def _beyond_stirling(number: int) -> float:
    """Return ln n! - ln(sqrt(2 pi n) (n / e)^n)."""
    if number < 16:
        return math.lgamma(number + 1) - (number + 0.5) * math.log(number) + number - math.log(2 * math.pi) / 2
    square = float(number) ** 2
    return (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / square) / square) / square) / square) / number


def hypergeometric(marked: int, others: int, draws: int) -> Iterator[tuple[int, float]]:
    """Yield the number of marked items among the drawn, with probabilities that are not negligible.

    The ways are exact whole numbers, rounded once: ways(k + 1) = ways(k) (marked - k) (draws - k) / ((k + 1) (others -
    draws + k + 1)).

    >>> list(hypergeometric(2, 2, 2))
    [(0, 0.16666666666666666), (1, 0.6666666666666666), (2, 0.16666666666666666)]
    """
    least, most = max(0, draws - others), min(marked, draws)
    total = math.comb(marked + others, draws)
    ways = math.comb(marked, least) * math.comb(others, draws - least)
    for number in range(least, most + 1):
        chance = ways / total  # of whole numbers: rounded correctly, whatever their size
        if chance > NEGLIGIBLE:
            yield number, chance
        ways = ways * ((marked - number) * (draws - number)) // ((number + 1) * (others - draws + number + 1))


def convolve(a: CountLaw, b: CountLaw) -> CountLaw:
    """Return the law of the sum of two independent numbers, without cancellation."""
    if len(a.weights) == 1 or len(b.weights) == 1:
        return CountLaw(a.low + b.low, a.weights * b.weights)
    return trim(CountLaw(a.low + b.low, np.convolve(a.weights, b.weights)))


def convolve_rows(rows: FloatArray, law: FloatArray) -> FloatArray:
    """Convolve along the last axis by fast Fourier transforms, whose errors are absolute; a single coin directly."""
    size = rows.shape[-1] + len(law) - 1
    if len(law) == 2:
        padded = np.zeros((*rows.shape[:-1], size))
        padded[..., :-1] = rows * law[0]
        padded[..., 1:] += rows * law[1]
        return padded
    points = scipy.fft.next_fast_len(size, real=True)
    product = scipy.fft.rfft(rows, points) * scipy.fft.rfft(law, points)
    return np.asarray(np.maximum(scipy.fft.irfft(product, points)[..., :size], 0.0))


def power(law: CountLaw, exponent: int) -> CountLaw:
    """Return the law of the sum of that many independent numbers."""
    return CountLaw(0, np.ones(1)) if exponent == 0 else to_the_power(law, exponent, convolve)


def scale(law: CountLaw, factor: float) -> CountLaw:
    """Multiply every weight by a factor."""
    return replace(law, weights=law.weights * factor, cumulated=None)


def add_laws(laws: Iterable[CountLaw]) -> CountLaw:
    """Add laws, weight by weight."""
    laws = list(laws)
    if len(laws) == 1:
        return laws[0]
    low, high = min(law.low for law in laws), max(law.high for law in laws)
    total = np.zeros(high - low + 1)
    for law in laws:
        total[law.low - low : law.high - low + 1] += law.weights
    return CountLaw(low, total, missing=max(law.missing for law in laws))


def trim(law: CountLaw) -> CountLaw:
    """Drop negligible weights at both ends."""
    kept = np.flatnonzero(law.weights >= NEGLIGIBLE)
    if not len(kept):
        return CountLaw(law.low, law.weights[:1])
    return CountLaw(law.low + int(kept[0]), law.weights[kept[0] : kept[-1] + 1])
