"""Priors fitted to a log: empirical Bayes on a grid that the data choose, pooled over agents.

As the season's audit does (`analysis.history.fit`), with two differences that click rates ask for: the grid spans the
rates that the log has instead of [0, 1], and all agents get one support of few levels, cut at quantiles of the
market's prior. Agents differ by their weights. Rewards count as Wedderburn's quasi-binomial: a reward whose variance is
a c-th of a binary one's is worth c of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from scipy.special import xlog1py, xlogy

from cloneproof._arrays import FloatArray
from cloneproof.logs.log import LoggedArm
from cloneproof.market.priors import Discrete, Point, Prior

POINTS: Final = 801
SMOOTHING: Final = 1.0
POOLING: Final = 2.0
STEPS: Final = 400
SMALL: Final = 1e-5
DIGITS: Final = 5  # of a level
APART: Final = 0.02  # relative: levels that are nearer are one


@dataclass(frozen=True)
class Pooled:
    """Arms that count as one original: their rewards together."""

    rounds: int
    mean: float
    worth: float


@dataclass(frozen=True)
class FittedRates:
    """The market's prior over a grid, each agent's, and each original's posterior."""

    grid: FloatArray
    market: FloatArray
    agents: Mapping[str, FloatArray]
    posterior: Mapping[str, FloatArray]  # agent: a row an original


def pooled(arms: Sequence[LoggedArm]) -> Pooled:
    """Several arms as one, and how many binary rewards one of its rewards is worth."""
    rounds = sum(arm.rounds for arm in arms)
    mean = float(sum(arm.total for arm in arms) / rounds)
    variance = float(sum(arm.squares for arm in arms) / rounds) - mean * mean
    worth = mean * (1 - mean) / variance if variance > 1e-9 else 1.0
    return Pooled(rounds, mean, min(max(worth, 1.0), 1e3))


def fit_rates(originals: Mapping[str, Sequence[Pooled]]) -> FittedRates:
    """Fit all priors to the originals of each agent.

    >>> seen = {f"agent {k}": [Pooled(50_000, 0.002 + 0.002 * (k % 2), 1.0)] for k in range(40)}
    >>> fitted = fit_rates(seen)
    >>> round([prior.atoms for prior in common_levels(fitted, 2)[0].values()][0][0][0], 4)
    0.002
    """
    everything = [each for group in originals.values() for each in group]
    grid = _grid(everything)
    table = np.stack([_likelihood(each, grid) for each in everything])
    prior = np.full(len(grid), 1.0 / len(grid))
    pseudo = SMOOTHING / len(grid)
    for _ in range(STEPS):
        step = (prior * (table.T @ (1.0 / (table @ prior))) + pseudo) / (len(table) + SMOOTHING)
        change = float(np.abs(step - prior).sum())
        prior = step
        if change < SMALL:
            break
    prior /= prior.sum()
    rows = table * prior
    rows /= rows.sum(axis=1, keepdims=True)
    agents, posterior, begin = {}, {}, 0
    for name, group in originals.items():
        own = rows[begin : begin + len(group)]
        begin += len(group)
        agents[name] = (own.sum(axis=0) + POOLING * prior) / (len(group) + POOLING)
        posterior[name] = own
    return FittedRates(grid, prior, agents, posterior)


def _grid(originals: Sequence[Pooled]) -> FloatArray:
    """From below the smallest plausible rate to above the largest."""
    counts = np.array([each.rounds * each.worth for each in originals])
    means = (np.array([each.mean for each in originals]) * counts + 0.5) / (counts + 1.0)
    errors = 4 * np.sqrt(means * (1 - means) / (counts + 1.0))
    low, high = float((means - errors).min()), float((means + errors).max())
    return np.linspace(max(low, 1e-7), min(high, 1 - 1e-7), POINTS)


def _likelihood(original: Pooled, grid: FloatArray) -> FloatArray:
    """The quasi-binomial likelihood, largest 1; never narrower than two steps of the grid."""
    step = 2 * (grid[1] - grid[0])
    count = original.rounds * original.worth
    mean = min(max(original.mean, 0.0), 1.0)
    smooth = (mean * count + 0.5) / (count + 1)
    believed = min(count, max(1.0, smooth * (1 - smooth) / step**2))
    logarithm = believed * (xlogy(mean, grid) + xlog1py(1 - mean, -grid))
    return np.asarray(np.exp(logarithm - logarithm.max()))


def common_levels(fitted: FittedRates, levels: int) -> tuple[dict[str, Prior], Prior, int]:
    """Each agent's prior and the market's on a common support, and how many levels merged.

    The levels are the means of slices of equal probability of the market's prior; those that are nearly equal become
    one. An agent's weights are its own prior's probabilities of the slices.
    """
    whole = np.cumsum(fitted.market)
    slices = np.minimum((levels * (whole - fitted.market / 2) / whole[-1]).astype(int), levels - 1)
    values: list[float] = []
    groups: list[Any] = []
    for number in range(levels):
        inside = slices == number
        if not inside.any():
            continue
        value = float(f"{np.average(fitted.grid[inside], weights=fitted.market[inside]):.{DIGITS}g}")
        if values and value < values[-1] * (1 + APART):
            groups[-1] |= inside
        else:
            values.append(value)
            groups.append(inside)
    merged = levels - len(values)

    def prior_of(weights: FloatArray) -> Prior:
        if len(values) == 1:
            return Point(values[0])
        shares = np.array([float(weights[inside].sum()) for inside in groups])
        return Discrete(values, [float(share) for share in shares / shares.sum()])

    return {name: prior_of(own) for name, own in fitted.agents.items()}, prior_of(fitted.market), merged


def posterior_prior(row: FloatArray, grid: FloatArray, levels: int = 3) -> Prior:
    """What is known of one original after the log: slices of equal probability of its posterior, each at its mean."""
    whole, first = np.cumsum(row), np.cumsum(row * grid)
    cuts = np.linspace(0.0, whole[-1], levels + 1)
    below = np.interp(cuts, np.concatenate([[0.0], whole]), np.concatenate([[0.0], first]))
    values = sorted({float(f"{value:.{DIGITS}g}") for value in np.diff(below) * levels / whole[-1]})
    return Point(values[0]) if len(values) == 1 else Discrete(values, [1 / len(values)] * len(values))
