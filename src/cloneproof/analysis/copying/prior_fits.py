"""The prior of means, fitted to the arms of the other agents: two fits, since no fit is right for every truth.

raw      penalised maximum likelihood on the grid (EM, one pseudo-arm spread evenly). It finds atoms, and so knows that
         honest arms are often equal; between few arms it leaves gaps, where any two arms that meet look like copies
smooth   the same with every step smoothed (EMS: Silverman, Jones, Wilson, Nychka 1990), with the bandwidth of
         Silverman's rule. It has no gaps, and knows of no atoms

Whoever judges takes both: a probability averages over them, an e-value is the smaller of the two. Where means have no
atoms and rewards are many, the raw fit has one at each arm, and two arms that meet look common. So a whole log is
searched with a *blend* in its place, b raw + (1 - b) smooth, where b is the share that explains each fitted arm best
by the others (maximum likelihood of b; the fits without the arm are taken after one step of theirs). With atoms
b is near 1, without them it falls as rewards grow.

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
MOST_BLENDED: Final = 400  # arms that the share of the raw fit is chosen by
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
    """Fit a prior without each fold; for `pairs` also without each two, with the blend in place of the raw fit.

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
    if pairs:
        share = raw_shares(likelihood, kept, raw, smooth, widths / step)[:, None]
        raw = share * raw + (1 - share) * smooth
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
        gains = _gains(widths, points)
    for _ in range(_STEPS):
        step = prior * ((kept / (prior @ likelihood.T)) @ likelihood)
        if gains is not None:  # reflected at the ends
            step = _smoothed(step, gains)
        step = (step + PSEUDO / points) / total
        change = float(np.abs(step - prior).sum(axis=1).max())
        prior = step
        if change < _SMALL:
            break
    return np.asarray(prior / prior.sum(axis=1, keepdims=True))


def raw_shares(
    likelihood: FloatArray, kept: FloatArray, raw: FloatArray, smooth: FloatArray, widths: FloatArray
) -> FloatArray:
    """The share of the raw fit in the blend, for each row of `kept`; the fits are those of `em_fits`.

    An arm's evidence by the others is that under the fit after one more step without it.
    """
    points, used = likelihood.shape[1], np.unique(np.linspace(0, len(likelihood) - 1, MOST_BLENDED).astype(np.int64))
    table = likelihood[used]
    shares = np.empty(len(kept))
    for row, gains in enumerate(_gains(widths, points)):
        arms = kept[row, used] > 0
        own = table[arms]
        by_others = []
        for prior, seen in ((raw[row], own), (smooth[row], _smoothed(own, gains))):
            step = prior * ((kept[row] / (likelihood @ prior)) @ likelihood)
            without = seen @ step - (seen * own) @ prior / (own @ prior)
            by_others.append(np.maximum(without, 0.0) + PSEUDO * own.mean(axis=1))
        shares[row] = _best_share(*by_others)
    return shares


def _best_share(first: FloatArray, second: FloatArray) -> float:
    """The share b that maximises the sum of ln(b first + (1 - b) second); a half for nothing.

    >>> [round(_best_share(np.array(one), np.ones(len(one))), 2) for one in ([9.0, 9.0, 9.0], [3.0, 0.2, 0.2], [])]
    [1.0, 0.08, 0.5]
    """
    share = 0.5
    for _ in range(_STEPS if len(first) else 0):
        part = share * first
        share = float((part / (part + (1 - share) * second)).mean())
    return share


def _gains(widths: FloatArray, points: int) -> FloatArray:
    """What smoothing makes of each wave on the grid."""
    waves = np.pi * np.arange(points) / points
    return np.asarray(np.exp(-0.5 * (np.minimum(widths, points)[:, None] * waves) ** 2))


def _smoothed(rows: FloatArray, gains: FloatArray) -> FloatArray:
    return np.asarray(np.maximum(idct(dct(rows, axis=1, norm="ortho") * gains, axis=1, norm="ortho"), 0.0))
