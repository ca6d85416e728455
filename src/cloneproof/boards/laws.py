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
from dataclasses import replace
from functools import lru_cache
from typing import Final

import numpy as np

from cloneproof.boards.board import Floats
from cloneproof.laws.arithmetic import legendre_nodes, products_of_others
from cloneproof.laws.counts import (
    MISSING,
    CountLaw,
    add_laws,
    convolve_rows,
    float_window,
    on_one_window,
    scale,
)
from cloneproof.laws.scan import scan_law

ROUGH: Final = 1e-7  # mass outside the window of a normal count
FREQUENCIES: Final = 9.0  # cut-off of a transform times the standard deviation; it is below 3e-18 beyond


def balanced_law(battles: int, chances: Floats) -> CountLaw:
    """Return the law of the number of wins if opponents take turns, from its Fourier transform on the window."""
    times = schedule(battles, len(chances))
    mean, variance = float(times @ chances), float(times @ (chances * (1 - chances)))
    low, high = float_window(battles, mean, variance)
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
    return CountLaw(low, mass / mass.sum(), missing=MISSING)


def normal_law(battles: int, mean: float, variance: float, unit: int) -> CountLaw:
    """Return a normal law in units of `unit` battles: a quick approximation for searches."""
    centre, spread = battles * mean / unit, battles * variance / unit**2
    low, high = float_window(-(-battles // unit), centre, spread)
    wins = np.arange(low, high + 1)
    mass: Floats = np.exp(-((wins - centre) ** 2) / (2 * max(spread, 1e-9)))
    return (
        CountLaw(low, mass / mass.sum(), missing=ROUGH)
        if mass.any()
        else CountLaw(round(centre), np.ones(1), missing=ROUGH)
    )


@lru_cache(maxsize=1024)
def schedule(battles: int, opponents: int) -> Floats:
    """Return how often each opponent is met: as equally as possible, the remainder spread evenly over the panel."""
    whole, rest = divmod(battles, opponents)
    times = np.full(opponents, float(whole))
    times[((np.arange(rest) + 0.5) * opponents / max(rest, 1)).astype(int)] += 1
    return times


def best_of(laws: Sequence[CountLaw]) -> CountLaw:
    """Return the law of the largest of independent counts.

    >>> from cloneproof.laws.counts import binomial_floats
    >>> best_of([binomial_floats(1, 0.5)] * 2).weights.tolist()
    [0.25, 0.75]
    """
    hopeful = [law for law, hopes in zip(laws, _hopes(laws), strict=True) if hopes]
    low, below = _distributions(hopeful)
    return CountLaw(low, np.diff(np.prod(below, axis=0), prepend=0.0), missing=sum(law.missing for law in laws))


def _hopes(laws: Sequence[CountLaw]) -> list[bool]:
    """Return whether each count can be the largest: not if its window ends before another one begins."""
    least = max(law.low for law in laws)
    return [law.high >= least for law in laws]


def champion_of_slots(laws: Sequence[CountLaw], weights: Floats, slots: int) -> list[CountLaw]:
    """Return, for each model, the mass of "it holds the best of the slots, with this count". Slots are weighted draws.

    A scan in which no slot passes (`laws.scan`).
    """
    low, below = _distributions(laws)
    _, best = scan_law(slots, np.diff(below, prepend=0.0, axis=1) * weights[:, None])
    missing = slots * max(law.missing for law in laws)
    return [CountLaw(low, mass, missing=missing) for mass in best]


def champion_of_all(laws: Sequence[CountLaw]) -> list[CountLaw]:
    """Return, for each model, the mass of "it has the best count, which is this"; a lot decides between equal counts.

    Each model draws a lot u in (0, 1), so it is the champion with count x if every other is below x, or at x with a lot
    below u. The integral over u of a polynomial is exact by Gauss and Legendre's rule.
    """
    hopes = _hopes(laws)
    low, below = _distributions([law for law, hopeful in zip(laws, hopes, strict=True) if hopeful])
    at = np.diff(below, prepend=0.0, axis=1)
    masses = np.zeros_like(at)
    for lot, weight in zip(*legendre_nodes(len(below) // 2 + 1), strict=True):
        masses += weight * at * np.array(products_of_others(below - (1 - lot) * at))
    hopeful_masses = iter(masses)
    missing = sum(law.missing for law in laws)
    return [CountLaw(low, next(hopeful_masses) if hopeful else np.zeros(1), missing=missing) for hopeful in hopes]


def published(champions: Sequence[CountLaw], fresh: Sequence[CountLaw], weight: int) -> CountLaw:
    """Return the law of `weight` times the champion's count plus its fresh count."""
    parts, dropped = [], 0.0
    for champion, count in zip(champions, fresh, strict=True):
        chance = float(champion.weights.sum())
        if chance <= champion.missing:
            dropped += chance
            continue
        if weight == 0:
            parts.append(scale(count, chance))
            continue
        spaced = np.zeros((len(champion.weights) - 1) * weight + 1)
        spaced[::weight] = champion.weights
        low, mass = champion.low * weight + count.low, convolve_rows(spaced, count.weights)
        parts.append(CountLaw(low, mass, missing=champion.missing + count.missing))
    law = mixture(parts)
    return replace(law, missing=law.missing + dropped)


def stretched(law: CountLaw, factor: float) -> CountLaw:
    """Return the law of a count times a factor, to the nearest whole number.

    >>> stretched(CountLaw(1, np.array([0.5, 0.5])), 2.5).weights.tolist()      # 2.5 goes to 2
    [0.5, 0.0, 0.0, 0.5]
    """
    if factor == 1:
        return law
    places = np.rint(np.arange(law.low, law.high + 1) * factor).astype(int)
    return CountLaw(int(places[0]), np.bincount(places - places[0], law.weights).astype(float), missing=law.missing)


def mixture(parts: Sequence[CountLaw]) -> CountLaw:
    """Add masses, on one window."""
    missing = max(law.missing for law in parts) + MISSING
    return replace(add_laws(parts), missing=missing)


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
        first, last = (min(max(0, place), width) for place in (start, start + len(law.weights)))
        inside = law.weights[max(0, first - start) : max(0, last - start)]
        return first, inside, float(law.weights[max(0, last - start) :].sum())


def _distributions(laws: Sequence[CountLaw]) -> tuple[int, Floats]:
    """Return distribution functions on one window: its first number, and one row per law."""
    low, high = min(law.low for law in laws), max(law.high for law in laws)
    return low, np.minimum(np.cumsum(on_one_window(laws, low, high), axis=1), 1.0)
