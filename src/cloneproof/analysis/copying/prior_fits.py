"""The prior of means, fitted to the arms of the other agents: two fits, since no fit is right for every truth.

raw      penalised maximum likelihood on the grid (EM, one pseudo-arm spread evenly). It finds atoms, and so knows that
         honest arms are often equal; between few arms it leaves gaps, where any two arms that meet look like copies
smooth   the same with every step smoothed (EMS: Silverman, Jones, Wilson, Nychka 1990), with the bandwidth of
         Silverman's rule. It has no gaps, and knows of no atoms

Whoever judges takes both: a probability averages over them, an e-value is the smaller of the two.

Agents are dealt into at most eight folds, and a prior is fitted without the whole folds of the agents that it judges.
It depends on other agents' rewards alone, so that given those it is a fixed prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.fft import dct, idct

from cloneproof._arrays import FloatArray, IntArray

FOLDS: Final = 8
MOST_FITTED: Final = 3000  # arms; more change a prior little
PSEUDO: Final = 1.0
_STEPS: Final = 60
_SMALL: Final = 1e-4
_NOTHING: Final = 1e-100


@dataclass(frozen=True)
class FittedWithout:
    """Priors over a grid, fitted without one fold or without two: the two fits of each, as rows of `pair(..)`."""

    folds: IntArray
    raw: FloatArray
    smooth: FloatArray
    row: dict[tuple[int, int], int]

    def pair(self, first: int, second: int) -> FloatArray:
        """The priors to judge arms of these two folds by (twice the same for one)."""
        row = self.row[min(first, second), max(first, second)]
        return np.stack([self.raw[row], self.smooth[row]])


def deal_folds(agents: Sequence[str]) -> IntArray:
    """A fold for each arm, by its agent, in the order in which agents appear.

    >>> deal_folds(["ana", "ana", "bo", "ana"]).tolist()
    [0, 0, 1, 0]
    """
    order = {name: number % FOLDS for number, name in enumerate(dict.fromkeys(agents))}
    return np.array([order[name] for name in agents], dtype=np.int64)


def fit_without(
    log_likelihood: FloatArray, places: FloatArray, folds: IntArray, step: float, pairs: bool = False
) -> FittedWithout:
    """Fit a prior without each fold, and without each two where `pairs` says so.

    places   where each arm's rewards put it on the grid's scale, for the bandwidth
    step     the distance between two points of the grid
    """
    count = int(folds.max(initial=0)) + 1
    without = [(a, b) for a in range(count) for b in range(a, count if pairs else a + 1)]
    chosen = np.linspace(0, len(folds) - 1, min(len(folds), MOST_FITTED)).astype(np.int64)
    kept = np.array([(folds[chosen] != a) & (folds[chosen] != b) for a, b in without], dtype=float)
    likelihood = np.exp(log_likelihood[chosen])
    likelihood[likelihood < _NOTHING] = 0.0  # products with denormal numbers are a hundred times slower
    widths = np.array([bandwidth(places[chosen][row > 0], step) for row in kept])
    raw, smooth = em_fits(likelihood, kept), em_fits(likelihood, kept, widths / step)
    return FittedWithout(folds, raw, smooth, {pair: row for row, pair in enumerate(without)})


def bandwidth(places: FloatArray, step: float) -> float:
    """Silverman's rule, .9 min(sd, IQR / 1.34) n^(-1/5); two steps of the grid at least, all of it for no arms."""
    if len(places) < 2:
        return np.inf
    low, high = np.quantile(places, [0.25, 0.75])
    spread = min(places.std(), (high - low) / 1.34) or places.std()
    return max(2 * step, float(0.9 * spread * len(places) ** -0.2))


def em_fits(likelihood: FloatArray, kept: FloatArray, widths: FloatArray | None = None) -> FloatArray:
    """A prior for each row of `kept`, which says which arms (rows of the likelihood) count; all at once.

    widths   of the smoothing after every step, in steps of the grid
    """
    points = likelihood.shape[1]
    prior = np.full((len(kept), points), 1.0 / points)
    total = kept.sum(axis=1, keepdims=True) + PSEUDO
    gains = None
    if widths is not None:
        waves = np.pi * np.arange(points) / points
        gains = np.exp(-0.5 * (np.minimum(widths, points)[:, None] * waves) ** 2)
    for _ in range(_STEPS):
        step = prior * ((kept / (prior @ likelihood.T)) @ likelihood)
        if gains is not None:  # reflected at the ends
            step = np.maximum(idct(dct(step, axis=1, norm="ortho") * gains, axis=1, norm="ortho"), 0.0)
        step = (step + PSEUDO / points) / total
        change = float(np.abs(step - prior).sum(axis=1).max())
        prior = step
        if change < _SMALL:
            break
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))
