"""Laws of whole numbers: a window of probabilities, and how many roundings they have been through."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cloneproof.engines.closed_form.laws.arithmetic import NEGLIGIBLE, Arithmetic, Array, Number
from cloneproof.engines.closed_form.laws.binomial_law import binomial_below, binomial_window
from cloneproof.engines.time_limit import check_time


@dataclass(frozen=True)
class Law:
    """Weights of low, low + 1, .., which need not sum to 1 (a law of some event and a number together).

    Weights are nonnegative and are only ever added and multiplied, so each is right up to a relative error of
    `roundings` * 2^-53 to first order.
    """

    low: int
    weights: Array
    roundings: int = 1
    cumulated: Array | None = None  # the weights up to each number, where they are known better than by adding up

    @property
    def high(self) -> int:
        """The largest number of the window."""
        return self.low + len(self.weights) - 1

    def on(self, low: int, high: int, arithmetic: Arithmetic) -> tuple[Array, Array]:
        """The weight below each number from low to high, and the weight at it."""
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


@lru_cache(maxsize=2048)  # thousands of mixtures of a few hundred of them; a window has some 14 standard deviations
def binomial(rounds: int, mean: float, arithmetic: Arithmetic) -> Law:
    """The law of the number of successes."""
    low, window = binomial_window(rounds, mean)
    weights = arithmetic.array(list(window))
    weights.flags.writeable = False
    return Law(low, weights)


def binomial_with_cdf(rounds: int, mean: float, arithmetic: Arithmetic) -> Law:
    """The same with its distribution function, of which high powers may be taken: one rounding, not one a term."""
    low, window = binomial_window(rounds, mean)
    return Law(low, arithmetic.array(list(window)), 1, arithmetic.array(list(binomial_below(rounds, mean))))


def convolve(a: Law, b: Law, arithmetic: Arithmetic) -> Law:
    """The law of the sum of two independent numbers; a sum of positive products loses one rounding a term."""
    if len(a.weights) == 1 or len(b.weights) == 1:
        return Law(a.low + b.low, a.weights * b.weights, a.roundings + b.roundings + 1)
    check_time("closed form")
    roundings = a.roundings + b.roundings + min(len(a.weights), len(b.weights))
    return trim(Law(a.low + b.low, arithmetic.convolve(a.weights, b.weights), roundings))


def power(law: Law, exponent: int, arithmetic: Arithmetic) -> Law:
    """The law of the sum of that many independent numbers, by repeated squaring."""
    result: Law | None = None
    while exponent:
        if exponent & 1:
            result = law if result is None else convolve(result, law, arithmetic)
        exponent >>= 1
        if exponent:
            law = convolve(law, law, arithmetic)
    return Law(0, arithmetic.array([1]), 0) if result is None else result


def scale(law: Law, factor: Number) -> Law:
    """Every weight times a factor."""
    return Law(law.low, law.weights * factor, law.roundings + 2)


def add_laws(laws: Iterable[Law], arithmetic: Arithmetic) -> Law:
    """The sum of laws, weight by weight."""
    parts = list(laws)
    if len(parts) == 1:
        return parts[0]
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    total = arithmetic.zeros(high - low + 1)
    for part in parts:
        total[part.low - low : part.high - low + 1] += part.weights
    return Law(low, total, max(part.roundings for part in parts) + len(parts))


def trim(law: Law) -> Law:
    """Without negligible weights at both ends."""
    weights = law.weights
    if weights.dtype != object:
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        if not len(kept):
            return Law(law.low, weights[:1], law.roundings)
        return Law(law.low + int(kept[0]), weights[kept[0] : kept[-1] + 1], law.roundings)
    first, last = 0, len(weights) - 1
    while first < last and weights[first] < NEGLIGIBLE:
        first += 1
    while last > first and weights[last] < NEGLIGIBLE:
        last -= 1
    return Law(law.low + first, weights[first : last + 1], law.roundings)
