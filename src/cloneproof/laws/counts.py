"""Laws of counts: binomial ones, their sums, powers and mixtures, in floats or in balls.

Binomial laws are computed in balls first, so that float tables are correctly rounded; where thousands of them are
needed, `binomial_floats` is a thousand times as fast. Only the window with all but NEGLIGIBLE of the probability is
kept. Terms fall away from the mode, so the cut on one side is at most its first term times the number of terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate

import numpy as np
import scipy
from flint import arb, ctx, fmpz

from cloneproof._arrays import FloatArray
from cloneproof._clock import check_time
from cloneproof.laws.arithmetic import NEGLIGIBLE, PRECISION, Arithmetic, Array, Number, ball, to_the_power

DEVIATIONS = 8.5  # half a window of floats in standard deviations; a normal tail beyond it has mass 2e-17
MARGIN = 20  # counts besides, which cover small means (Bernstein)
MISSING = 1e-12  # mass outside a window of floats, and rounding


@dataclass(frozen=True)
class CountLaw:
    """Weights of low, low + 1, .., which need not sum to 1 (a law of some event and a number together).

    Weights are nonnegative and are only ever added and multiplied, so each is right up to a relative error of
    `roundings` * 2^-53 to first order. `missing` bounds the mass outside the window.
    """

    low: int
    weights: Array
    roundings: int = 1
    cumulated: Array | None = None  # the weights up to each number, where they are known better than by adding up
    missing: float = 0.0

    @property
    def high(self) -> int:
        """Largest number of the window."""
        return self.low + len(self.weights) - 1

    @property
    def mean(self) -> float:
        """Expected number, of floats."""
        return float(np.dot(self.weights, np.arange(self.low, self.high + 1)) / self.weights.sum())

    def on(self, low: int, high: int, arithmetic: Arithmetic) -> tuple[Array, Array]:
        """Return the weight below each number from low to high, and the weight at it."""
        at, before = arithmetic.zeros(high - low + 1), arithmetic.zeros(high - low + 1)
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


def binomial_terms(rounds: int, chance: Fraction, count: int, step: int) -> Iterator[Number]:
    """Yield P(Bin(rounds, chance) = count), 0 < chance < 1, then of counts above (step 1) or below (-1), as balls."""
    p, up, down = ball(chance), arb(count + 1), arb(rounds - count + 1)
    ways = arb(rounds + 1).lgamma() - up.lgamma() - down.lgamma()
    term, odds = (ways + count * p.log() + (rounds - count) * (1 - p).log()).exp(), ball(chance / (1 - chance))
    while 0 <= count <= rounds:
        yield term
        if step > 0:
            term = term * odds * (rounds - count) / (count + 1)
        else:
            term = term * count / (odds * (rounds - count + 1))
        count += step


def _until_below(least: Number, terms: Iterable[Number]) -> Iterator[Number]:
    for term in terms:
        yield term
        if term < least:
            return


@lru_cache(maxsize=4096)
def binomial_window(rounds: int, mean: float | Fraction) -> tuple[int, tuple[Number, ...]]:
    """Return the first count of the window and the probabilities from there on, as balls."""
    chance = Fraction(mean)
    if rounds == 0 or chance == 0:
        return 0, (arb(1),)
    if chance == 1:
        return rounds, (arb(1),)
    with ctx.workprec(PRECISION):
        mode, least = min(rounds, int((rounds + 1) * chance)), ball(NEGLIGIBLE / (rounds + 1))
        above, below = (list(_until_below(least, binomial_terms(rounds, chance, mode, step))) for step in (1, -1))
    return mode - len(below) + 1, (*below[:0:-1], *above)


@lru_cache(maxsize=1024)
def binomial_below(rounds: int, mean: float | Fraction) -> tuple[Number, ...]:
    """Return the probability of at most each number of the window, as balls."""
    with ctx.workprec(PRECISION):
        return tuple(accumulate(binomial_window(rounds, mean)[1]))


@lru_cache(maxsize=2048)  # thousands of mixtures of a few hundred of them; a window has some 14 standard deviations
def binomial(rounds: int, mean: float, arithmetic: Arithmetic) -> CountLaw:
    """Return the law of the number of successes."""
    low, window = binomial_window(rounds, mean)
    weights = arithmetic.array(list(window))
    weights.flags.writeable = False
    return CountLaw(low, weights)


def binomial_with_cdf(rounds: int, mean: float | Fraction, arithmetic: Arithmetic) -> CountLaw:
    """Return the law with its distribution function, rounded once, so that high powers of it are accurate."""
    low, window = binomial_window(rounds, mean)
    return CountLaw(low, arithmetic.array(list(window)), 1, arithmetic.array(list(binomial_below(rounds, mean))))


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


def binomial_rows(rounds: int, means: Iterable[float]) -> FloatArray:
    """Return the probability of every number of successes from 0 on, fast, a row for each mean.

    >>> binomial_rows(2, (0.5, 1.0)).round(6).tolist()
    [[0.25, 0.5, 0.25], [0.0, 0.0, 1.0]]
    """
    laws = [binomial_floats(rounds, mean) for mean in means]
    return on_one_window(laws, 0, rounds)


def on_one_window(laws: Sequence[CountLaw], low: int, high: int) -> FloatArray:
    """Return the weights of each number from low to high, a row for each law of floats, which must lie in it."""
    rows = np.zeros((len(laws), high - low + 1))
    for row, law in zip(rows, laws, strict=True):
        row[law.low - low : law.high - low + 1] = law.weights
    return rows


@lru_cache(maxsize=256)
def expected_minimum(rounds: int, chance: Fraction, cap: int) -> Number:
    """Return E min(H, cap) for H = Bin(rounds, chance), as a ball.

    Below the mean it is cap - sum_{h < cap} (cap - h) P(H = h), above it E H - sum_{h > cap} (h - cap) P(H = h): both
    sums start at the cap and fall geometrically away from the mean, or within a few standard deviations of it.
    """
    mean = chance * rounds
    if cap >= rounds or chance == 0:
        return ball(min(mean, Fraction(cap)) if chance == 0 else mean)
    if chance == 1:
        return arb(min(rounds, cap))
    with ctx.workprec(PRECISION):
        step = -1 if cap <= mean else 1
        least = ball(Fraction(NEGLIGIBLE) / (rounds + 1) ** 2)
        excess, term = arb(0), arb(1)
        for distance, term in enumerate(_until_below(least, binomial_terms(rounds, chance, cap + step, step)), 1):
            excess += distance * term
        # what is left is at most rounds * rounds terms' worth of the last one, hence below NEGLIGIBLE
        excess += arb(NEGLIGIBLE / 2, NEGLIGIBLE / 2) if term < least else arb(0)
        return (ball(cap) if step < 0 else ball(mean)) - excess


def hypergeometric(marked: int, others: int, draws: int, arithmetic: Arithmetic) -> Iterator[tuple[int, Number]]:
    """Yield the number of marked items among the drawn, with probabilities that are not negligible.

    The ways are exact whole numbers, rounded once: ways(k + 1) = ways(k) (marked - k) (draws - k) / ((k + 1) (others -
    draws + k + 1)).

    >>> from cloneproof.laws.arithmetic import FLOATS
    >>> list(hypergeometric(2, 2, 2, FLOATS))
    [(0, 0.16666666666666666), (1, 0.6666666666666666), (2, 0.16666666666666666)]
    """
    least, most = max(0, draws - others), min(marked, draws)
    total = math.comb(marked + others, draws)
    ways = math.comb(marked, least) * math.comb(others, draws - least)
    for number in range(least, most + 1):
        chance = ways / total  # of whole numbers: rounded correctly, whatever their size
        if chance > NEGLIGIBLE:
            yield number, arb(fmpz(ways)) / arb(fmpz(total)) if arithmetic.proven else chance
        ways = ways * ((marked - number) * (draws - number)) // ((number + 1) * (others - draws + number + 1))


def convolve(a: CountLaw, b: CountLaw, arithmetic: Arithmetic) -> CountLaw:
    """Return the law of the sum of two independent numbers; a sum of positive products loses one rounding a term."""
    if len(a.weights) == 1 or len(b.weights) == 1:
        return CountLaw(a.low + b.low, a.weights * b.weights, a.roundings + b.roundings + 1)
    check_time("closed form")
    roundings = a.roundings + b.roundings + min(len(a.weights), len(b.weights))
    return trim(CountLaw(a.low + b.low, arithmetic.convolve(a.weights, b.weights), roundings))


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


def power(law: CountLaw, exponent: int, arithmetic: Arithmetic) -> CountLaw:
    """Return the law of the sum of that many independent numbers."""
    if exponent == 0:
        return CountLaw(0, arithmetic.array([1]), 0)
    return to_the_power(law, exponent, partial(convolve, arithmetic=arithmetic))


def scale(law: CountLaw, factor: Number) -> CountLaw:
    """Multiply every weight by a factor."""
    return replace(law, weights=law.weights * factor, roundings=law.roundings + 2, cumulated=None)


def add_laws(laws: Iterable[CountLaw], arithmetic: Arithmetic) -> CountLaw:
    """Add laws, weight by weight."""
    laws = list(laws)
    if len(laws) == 1:
        return laws[0]
    low, high = min(law.low for law in laws), max(law.high for law in laws)
    total = arithmetic.zeros(high - low + 1)
    for law in laws:
        total[law.low - low : law.high - low + 1] += law.weights
    roundings, missing = max(law.roundings for law in laws), max(law.missing for law in laws)
    return CountLaw(low, total, roundings + len(laws), missing=missing)


def trim(law: CountLaw) -> CountLaw:
    """Drop negligible weights at both ends."""
    kept = np.flatnonzero(~(law.weights < NEGLIGIBLE).astype(bool))
    if not len(kept):
        return CountLaw(law.low, law.weights[:1], law.roundings)
    return CountLaw(law.low + int(kept[0]), law.weights[kept[0] : kept[-1] + 1], law.roundings)
