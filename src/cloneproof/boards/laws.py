"""Distributions of counts: how many battles a model wins, and the best of several counts. Exact, on windows.

A law keeps the window that holds all but 1e-12 of its mass. The rest is its `missing` mass, and a number computed from
laws is off by at most the sum of theirs.

If opponents take turns (a *balanced* schedule), the count is a sum of coins with different means, less noisy than a
binomial count. Under Bradley-Terry the probability against opponent i is t / (t + w_i), so a count x has likelihood t^x
e_x(1 / w) / prod(1 + t / w_i). Its likelihood ratios rise with x, as the theorem of the reservoir board requires.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import gammaln

from cloneproof.boards.board import Floats

DEVIATIONS: Final = 8.5  # half a window in standard deviations; a normal tail beyond it has mass 2e-17
MISSING: Final = 1e-12
FREQUENCIES: Final = 14.0  # in standard deviations of the count


class CountLaw(NamedTuple):
    """Probabilities of the whole numbers from `low` on; `missing` bounds the mass outside the window and rounding."""

    low: int
    mass: Floats
    missing: float = MISSING

    @property
    def mean(self) -> float:
        return float(np.dot(self.mass, np.arange(self.low, self.low + len(self.mass))) / self.mass.sum())


def binomial_law(battles: int, mean: float) -> CountLaw:
    """The number of wins in so many battles against random opponents.

    >>> binomial_law(2, 0.5).mass.round(6).tolist()
    [0.25, 0.5, 0.25]
    """
    if mean <= 0 or mean >= 1:
        return CountLaw(battles if mean >= 1 else 0, np.ones(1), 0.0)
    low, high = _window(battles, battles * mean, battles * mean * (1 - mean))
    wins = np.arange(low, high + 1)
    logs = (
        gammaln(battles + 1) - gammaln(wins + 1) - gammaln(battles - wins + 1)
        + wins * math.log(mean) + (battles - wins) * math.log1p(-mean)
    )  # fmt: skip
    mass: Floats = np.exp(logs)
    return CountLaw(low, mass / mass.sum())


def balanced_law(battles: int, chances: Floats) -> CountLaw:
    """The number of wins if opponents take turns, from its Fourier transform on the window.

    >>> balanced_law(2, np.array([0.25, 0.75])).mass.round(6).tolist()
    [0.1875, 0.625, 0.1875]
    """
    times = schedule(battles, len(chances))
    mean, variance = float(times @ chances), float(times @ (chances * (1 - chances)))
    low, high = _window(battles, mean, variance)
    size = 1 << (high - low + 1).bit_length()
    # The transform falls like exp(-variance t^2 / 2): beyond these frequencies nothing is left that a float could hold.
    needed = min(size // 2, math.ceil(FREQUENCIES * size / (2 * math.pi * math.sqrt(max(variance, 1e-9)))))
    steps = np.exp(-2j * np.pi * np.arange(needed + 1) / size)
    met = times > 0
    transform = np.zeros(size // 2 + 1, dtype=complex)
    transform[: needed + 1] = np.exp(np.log(1 - chances[met, None] + chances[met, None] * steps).T @ times[met])
    whole = np.fft.irfft(transform, size)
    mass = np.maximum(np.roll(whole, -(low % size))[: high - low + 1], 0)
    return CountLaw(low, mass / mass.sum())


def normal_law(battles: int, mean: float, variance: float) -> CountLaw:
    """A rounded normal count: a quick approximation for searches."""
    low, high = _window(battles, battles * mean, battles * variance)
    wins = np.arange(low, high + 1)
    mass: Floats = np.exp(-((wins - battles * mean) ** 2) / (2 * max(battles * variance, 1e-9)))
    return CountLaw(low, mass / mass.sum())


@lru_cache(maxsize=1024)
def schedule(battles: int, opponents: int) -> Floats:
    """How often each opponent is met: as equally as possible, the remainder spread evenly over the panel."""
    each, rest = divmod(battles, opponents)
    times = np.full(opponents, float(each))
    times[((np.arange(rest) + 0.5) * opponents / max(rest, 1)).astype(int)] += 1
    return times


def best_of(laws: Sequence[CountLaw]) -> CountLaw:
    """The law of the largest of independent counts.

    >>> best_of([binomial_law(1, 0.5)] * 2).mass.tolist()
    [0.25, 0.75]
    """
    low, below = _distributions(laws)
    return CountLaw(low, np.diff(np.prod(below, axis=0), prepend=0.0), sum(law.missing for law in laws))


def champion_of_slots(laws: Sequence[CountLaw], weights: Floats, slots: int) -> list[CountLaw]:
    """For each model: the mass of "it holds the best of the slots, with this count". Slots are weighted draws.

    The best count is x with probability F(x)^s - F(x - 1)^s, F the law of one slot; given x, the model is a with
    probability proportional to w_a p_a(x).
    """
    low, below = _distributions(laws)
    mass = np.diff(below, prepend=0.0, axis=1) * weights[:, None]
    one = np.cumsum(mass.sum(axis=0))
    best = np.diff(one**slots, prepend=0.0)
    total = mass.sum(axis=0)
    shares = np.divide(mass, total, out=np.zeros_like(mass), where=total > 0)
    missing = slots * max(law.missing for law in laws)
    return [CountLaw(low, share * best, missing) for share in shares]


def champion_of_all(laws: Sequence[CountLaw]) -> list[CountLaw]:
    """For each model: the mass of "it has the best count, which is this"; ties go to the earlier model."""
    low, below = _distributions(laws)
    strictly = np.concatenate([np.zeros((len(laws), 1)), below[:, :-1]], axis=1)
    missing = sum(law.missing for law in laws)
    at = below - strictly
    masses = [at[i] * np.prod(strictly[:i], axis=0) * np.prod(below[i + 1 :], axis=0) for i in range(len(laws))]
    return [CountLaw(low, mass, missing) for mass in masses]


def published(champions: Sequence[CountLaw], fresh: Sequence[CountLaw], weight: int) -> CountLaw:
    """The law of `weight` times the champion's count plus its fresh count."""
    parts = []
    for champion, count in zip(champions, fresh, strict=True):
        if champion.mass.sum() < MISSING:
            continue
        if weight == 0:
            parts.append(CountLaw(count.low, count.mass * champion.mass.sum(), count.missing))
            continue
        spaced = np.zeros((len(champion.mass) - 1) * weight + 1)
        spaced[::weight] = champion.mass
        low, mass = champion.low * weight + count.low, np.maximum(fftconvolve(spaced, count.mass), 0)
        parts.append(CountLaw(low, mass, champion.missing + count.missing))
    return mixture(parts)


def mixture(parts: Sequence[CountLaw]) -> CountLaw:
    """The sum of masses, on one window."""
    low = min(part.low for part in parts)
    high = max(part.low + len(part.mass) for part in parts)
    mass = np.zeros(high - low)
    for part in parts:
        mass[part.low - low : part.low - low + len(part.mass)] += part.mass
    return CountLaw(low, mass, max(part.missing for part in parts) + MISSING)


class Field:
    """The scores of all others on one window, with their distribution functions."""

    def __init__(self, laws: Sequence[CountLaw]) -> None:
        self.low, self.below = _distributions(laws)
        self.middle: Floats = self.below - np.diff(self.below, prepend=0.0, axis=1) / 2
        self.missing = max(law.missing for law in laws)

    def beaten(self, law: CountLaw) -> Floats:
        """The probability that a score of this law is above each of them; a tie counts one half."""
        mass, before = self._on_window(law)
        return np.asarray(self.middle @ mass + (law.mass.sum() - mass.sum() - before))

    def is_first(self, law: CountLaw, leave_out: int) -> tuple[float, float]:
        """The probability to be above all but one of them, and the half-width due to ties."""
        mass, _ = self._on_window(law)
        others = np.delete(self.below, leave_out, axis=0)
        with_ties = np.prod(others, axis=0)
        without = np.concatenate([[0.0], np.prod(others[:, :-1], axis=0)])
        beyond = float(law.mass[max(0, self.low + self.below.shape[1] - law.low) :].sum())
        high, low = float(mass @ with_ties) + beyond, float(mass @ without) + beyond
        return (high + low) / 2, (high - low) / 2

    def _on_window(self, law: CountLaw) -> tuple[Floats, float]:
        """The part of the mass on the window, and the mass below it, which beats nobody."""
        mass = np.zeros(self.below.shape[1])
        start = law.low - self.low
        cut = max(0, -start)
        inside = law.mass[cut : max(cut, len(mass) - start)]
        mass[start + cut : start + cut + len(inside)] = inside
        return mass, float(law.mass[:cut].sum())


def _distributions(laws: Sequence[CountLaw]) -> tuple[int, Floats]:
    """Distribution functions on one window: its first number, and one row per law."""
    low = min(law.low for law in laws)
    high = max(law.low + len(law.mass) for law in laws)
    rows = np.zeros((len(laws), high - low))
    for row, law in zip(rows, laws, strict=True):
        row[law.low - low : law.low - low + len(law.mass)] = law.mass
    return low, np.minimum(np.cumsum(rows, axis=1), 1.0)


def _window(battles: int, mean: float, variance: float) -> tuple[int, int]:
    """The window that holds a count but for a mass of `MISSING`; the 20 covers small means (Bernstein's inequality)."""
    half = DEVIATIONS * math.sqrt(variance) + 20
    return max(0, math.floor(mean - half)), min(battles, math.ceil(mean + half))
