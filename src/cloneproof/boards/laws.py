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
from scipy.fft import next_fast_len
from scipy.special import gammaln

from cloneproof.boards.board import Floats
from cloneproof.bounds.scan import legendre_nodes, products_of_others, scan_law

DEVIATIONS: Final = 8.5  # half a window in standard deviations; a normal tail beyond it has mass 2e-17
MISSING: Final = 1e-12  # mass outside the window of a count
ROUGH: Final = 1e-7  # the same of a normal count
FREQUENCIES: Final = 9.0  # cut-off of a transform times the standard deviation; it is below 3e-18 beyond


class CountLaw(NamedTuple):
    """Probabilities of the whole numbers from `low` on; `missing` bounds the mass outside the window and rounding."""

    low: int
    mass: Floats
    missing: float = MISSING

    @property
    def mean(self) -> float:
        return float(np.dot(self.mass, np.arange(self.low, self.low + len(self.mass))) / self.mass.sum())


def binomial_law(battles: int, mean: float) -> CountLaw:
    """Return the law of the number of wins in `battles` battles against random opponents.

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
    """Return the law of the number of wins if opponents take turns, from its Fourier transform on the window.

    >>> balanced_law(2, np.array([0.25, 0.75])).mass.round(6).tolist()
    [0.1875, 0.625, 0.1875]
    """
    times = schedule(battles, len(chances))
    mean, variance = float(times @ chances), float(times @ (chances * (1 - chances)))
    low, high = _window(battles, mean, variance)
    size = 1 << (high - low + 1).bit_length()
    # The transform falls like exp(-variance t^2 / 2): beyond these frequencies it is lost in rounding.
    needed = min(size // 2, math.ceil(FREQUENCIES * size / (2 * math.pi * math.sqrt(max(variance, 1e-9)))))
    met = times > 0
    often, won = times[met], chances[met, None]
    angle = 2 * np.pi * np.arange(needed + 1) / size
    # One coin's transform is 1 - c + c exp(-i angle); its size and direction, as complex logarithms take long.
    with np.errstate(divide="ignore"):
        sizes = np.log1p(-4 * won * (1 - won) * np.sin(angle / 2) ** 2) / 2
    turns = np.arctan2(-won * np.sin(angle), 1 - 2 * won * np.sin(angle / 2) ** 2)
    transform = np.zeros(size // 2 + 1, dtype=complex)
    transform[: needed + 1] = np.exp(often @ sizes + 1j * (often @ turns))
    whole = np.fft.irfft(transform, size)
    mass = np.maximum(np.roll(whole, -(low % size))[: high - low + 1], 0)
    return CountLaw(low, mass / mass.sum())


def normal_law(battles: int, mean: float, variance: float, unit: int) -> CountLaw:
    """Return a normal law in units of `unit` battles: a quick approximation for searches."""
    centre, spread = battles * mean / unit, battles * variance / unit**2
    low, high = _window(-(-battles // unit), centre, spread)
    wins = np.arange(low, high + 1)
    mass: Floats = np.exp(-((wins - centre) ** 2) / (2 * max(spread, 1e-9)))
    return CountLaw(low, mass / mass.sum(), ROUGH) if mass.any() else CountLaw(round(centre), np.ones(1), ROUGH)


@lru_cache(maxsize=1024)
def schedule(battles: int, opponents: int) -> Floats:
    """Return how often each opponent is met: as equally as possible, the remainder spread evenly over the panel."""
    each, rest = divmod(battles, opponents)
    times = np.full(opponents, float(each))
    times[((np.arange(rest) + 0.5) * opponents / max(rest, 1)).astype(int)] += 1
    return times


def best_of(laws: Sequence[CountLaw]) -> CountLaw:
    """Return the law of the largest of independent counts.

    >>> best_of([binomial_law(1, 0.5)] * 2).mass.tolist()
    [0.25, 0.75]
    """
    hopeful = [law for law, hopes in zip(laws, _hopes(laws), strict=True) if hopes]
    low, below = _distributions(hopeful)
    return CountLaw(low, np.diff(np.prod(below, axis=0), prepend=0.0), sum(law.missing for law in laws))


def _hopes(laws: Sequence[CountLaw]) -> list[bool]:
    """Return whether each count can be the largest: not if its window ends before another one begins."""
    least = max(law.low for law in laws)
    return [law.low + len(law.mass) > least for law in laws]


def champion_of_slots(laws: Sequence[CountLaw], weights: Floats, slots: int) -> list[CountLaw]:
    """Return, for each model, the mass of "it holds the best of the slots, with this count". Slots are weighted draws.

    A scan in which no slot passes (`bounds.scan`).
    """
    low, below = _distributions(laws)
    _, best = scan_law(slots, np.diff(below, prepend=0.0, axis=1) * weights[:, None])
    missing = slots * max(law.missing for law in laws)
    return [CountLaw(low, mass, missing) for mass in best]


def champion_of_all(laws: Sequence[CountLaw]) -> list[CountLaw]:
    """Return, for each model, the mass of "it has the best count, which is this"; a lot decides between equal counts.

    Each model draws a lot u in (0, 1), so it is the champion with count x if every other is below x, or at x with a lot
    below u. The integral over u of a polynomial is exact by Gauss and Legendre's rule.

    >>> [each.mass.tolist() for each in champion_of_all([binomial_law(1, 0.5)] * 2)]
    [[0.125, 0.375], [0.125, 0.375]]
    """
    hopes = _hopes(laws)
    low, below = _distributions([law for law, hopeful in zip(laws, hopes, strict=True) if hopeful])
    at = np.diff(below, prepend=0.0, axis=1)
    masses = np.zeros_like(at)
    for lot, weight in zip(*legendre_nodes(len(below) // 2 + 1), strict=True):
        masses += weight * at * products_of_others(below - (1 - lot) * at)
    found = iter(masses)
    missing = sum(law.missing for law in laws)
    return [CountLaw(low, next(found) if hopeful else np.zeros(1), missing) for hopeful in hopes]


def published(champions: Sequence[CountLaw], fresh: Sequence[CountLaw], weight: int) -> CountLaw:
    """Return the law of `weight` times the champion's count plus its fresh count."""
    parts, dropped = [], 0.0
    for champion, count in zip(champions, fresh, strict=True):
        chance = float(champion.mass.sum())
        if chance <= champion.missing:
            dropped += chance
            continue
        if weight == 0:
            parts.append(CountLaw(count.low, count.mass * chance, count.missing))
            continue
        spaced = np.zeros((len(champion.mass) - 1) * weight + 1)
        spaced[::weight] = champion.mass
        low, mass = champion.low * weight + count.low, np.maximum(_convolved(spaced, count.mass), 0)
        parts.append(CountLaw(low, mass, champion.missing + count.missing))
    made = mixture(parts)
    return made._replace(missing=made.missing + dropped)


def _convolved(left: Floats, right: Floats) -> Floats:
    """Convolve by fast Fourier transforms."""
    length = len(left) + len(right) - 1
    size = next_fast_len(length, real=True)
    return np.asarray(np.fft.irfft(np.fft.rfft(left, size) * np.fft.rfft(right, size), size)[:length])


def mixture(parts: Sequence[CountLaw]) -> CountLaw:
    """Add masses, on one window."""
    low = min(part.low for part in parts)
    high = max(part.low + len(part.mass) for part in parts)
    mass = np.zeros(high - low)
    for part in parts:
        mass[part.low - low : part.low - low + len(part.mass)] += part.mass
    return CountLaw(low, mass, max(part.missing for part in parts) + MISSING)


class Field:
    """Scores of all others on one window, with their distribution functions."""

    def __init__(self, laws: Sequence[CountLaw]) -> None:
        self.low, self.below = _distributions(laws)
        self.middle: Floats = self.below - np.diff(self.below, prepend=0.0, axis=1) / 2
        self.together: Floats = self.middle.sum(axis=0)
        self.missing = max(law.missing for law in laws)

    def beaten(self, law: CountLaw) -> Floats:
        """Return the probability that a score of this law is above each of them; a tie counts one half."""
        first, mass, above = self._on_window(law)
        return np.asarray(self.middle[:, first : first + len(mass)] @ mass + above)

    def number_beaten(self, law: CountLaw, leave_out: int) -> float:
        """Return how many of them, all but one, are expected to be below a score of this law."""
        first, mass, above = self._on_window(law)
        band = slice(first, first + len(mass))
        return float((self.together[band] - self.middle[leave_out, band]) @ mass + above * (len(self.middle) - 1))

    def is_first(self, law: CountLaw, leave_out: int) -> tuple[float, float]:
        """Return the probability to be above all but one of them, and the half-width due to ties."""
        first, mass, above = self._on_window(law)
        others = np.delete(self.below[:, max(0, first - 1) : first + len(mass)], leave_out, axis=0)
        all_below = np.prod(others, axis=0) if first else np.concatenate([[0.0], np.prod(others, axis=0)])
        high, low = float(mass @ all_below[1:]) + above, float(mass @ all_below[:-1]) + above
        return (high + low) / 2, (high - low) / 2

    def _on_window(self, law: CountLaw) -> tuple[int, Floats, float]:
        """Return the law's start on the window, its masses there, and the mass above; mass below beats nobody."""
        start, width = law.low - self.low, self.below.shape[1]
        first, last = (min(max(0, place), width) for place in (start, start + len(law.mass)))
        inside = law.mass[max(0, first - start) : max(0, last - start)]
        return first, inside, float(law.mass[max(0, last - start) :].sum())


def _distributions(laws: Sequence[CountLaw]) -> tuple[int, Floats]:
    """Return distribution functions on one window: its first number, and one row per law."""
    low = min(law.low for law in laws)
    high = max(law.low + len(law.mass) for law in laws)
    rows = np.zeros((len(laws), high - low))
    for row, law in zip(rows, laws, strict=True):
        row[law.low - low : law.low - low + len(law.mass)] = law.mass
    return low, np.minimum(np.cumsum(rows, axis=1), 1.0)


def _window(battles: int, mean: float, variance: float) -> tuple[int, int]:
    """Return the window that holds a count but for a mass of `MISSING`; the 20 covers small means (Bernstein)."""
    half = DEVIATIONS * math.sqrt(variance) + 20
    return max(0, math.floor(mean - half)), min(battles, math.ceil(mean + half))
