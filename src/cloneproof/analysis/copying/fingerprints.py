"""Copies behave alike in every cell (segment, week): e-values of vectors of counts.

The rate of an item in a cell has mean expit(g + c), where g is the item's level and c the cell's effect, common to all
arms: drift of the platform's traffic is no evidence. Around it rates vary by a relative variance v, the item's own
deviations. Copies share level and deviations. Different items of one agent may share the level and a part of the
deviations, as they meet one audience. So arms that are one item have the evidence of their summed counts. Different
arms have the product of their own, given what they share: at one level and with a part in common, or each at its own,
whichever is larger. The ratio is one of likelihoods, so it does not matter how a bandit chose the arms.

Cell effects and the law of levels are fitted to all arms; v and the part in common to arms of other agents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from scipy.special import betaln, expit, gammaln, logit, logsumexp
from scipy.stats import norm

from cloneproof._arrays import FloatArray
from cloneproof.analysis.copying.records import ArmRecord

VARIANCES: Final = np.array([2.5e-4, 0.0025, 0.01, 0.04, 0.16])  # relative, of an item's rates around its level
COMMON: Final = np.array([0.0, 0.4, 0.8])  # parts of it that different items of one agent share
POINTS: Final = 41  # of a grid of levels
ERRORS: Final = 5.0  # standard errors that a grid goes beyond the arms' levels
WIDTH: Final = 0.3  # log-odds that it goes beyond them at least
STEPS: Final = 50  # of the fit of cell effects
LEAST_CELLS: Final = 2
LEAST_SPREAD: Final = 0.1  # of levels, in log-odds
LEAST_COUNT: Final = 1e-3  # of a Beta law
MOST_ARMS: Final = 20  # of an agent, those with the most rewards
MOST_FITTED: Final = 100  # agents whose arms the part in common is fitted to


class CellGroup(NamedTuple):
    """Evidence of an agent's arms by cell: ln of the e-value, the group that says most, and ln of its Bayes factor."""

    log_e: float
    arms: tuple[int, ...]
    log_ratio: float


class Fingerprints:
    """Counts of arms (rows) by cell (columns), and what is fitted to them."""

    def __init__(self, records: Sequence[ArmRecord]) -> None:
        names = sorted({name for record in records for name in record.cells})
        self.known = len(names) >= LEAST_CELLS
        if not self.known:
            return
        counts = np.array([[record.cells.get(name, (0, 0.0)) for name in names] for record in records], dtype=float)
        self.rounds, self.totals = counts[..., 0], counts[..., 1]
        self.agents = [record.agent for record in records]
        self.effects, self.levels = fit_cells(self.rounds, self.totals)
        self.centre, self.spread = float(np.median(self.levels)), max(LEAST_SPREAD, float(self.levels.std()))
        owned = defaultdict(list)
        for number, agent in enumerate(self.agents):
            owned[agent].append(number)
        several = sorted((arms for arms in owned.values() if len(arms) > 1), key=lambda arms: -self.totals[arms].sum())
        self.fitted = {self.agents[arms[0]]: self._fit(self._largest(arms, 2)) for arms in several[:MOST_FITTED]}

    def _largest(self, arms: Sequence[int], most: int) -> list[int]:
        return sorted(sorted(arms, key=lambda arm: -self.totals[arm].sum())[:most])

    def _cells(self, rounds: FloatArray, totals: FloatArray, grid: FloatArray, variances: FloatArray) -> FloatArray:
        """Return ln of the evidence of counts, by variance, level on the grid, and cell."""
        mean = expit(grid[:, None] + self.effects)
        first = np.maximum((1 - mean) / variances[:, None, None] - mean, LEAST_COUNT)
        second = first * (1 - mean) / mean
        return np.asarray(betaln(first + totals, second + rounds - totals) - betaln(first, second))

    def _shared(self, cells: FloatArray, grid: FloatArray) -> FloatArray:
        """Return ln of the evidence of arms with a part of their deviations in common, by part, variance and level.

        cells   for each part in COMMON, the sum of what `_cells` returns for each arm at the rest of the variance
        """
        found = []
        for part, table in zip(COMMON, cells, strict=True):
            if part == 0:
                found.append(table.sum(axis=2))
                continue
            away = (grid[:, None] - grid) / np.sqrt(part * VARIANCES)[:, None, None]
            kernel = np.exp(-0.5 * away**2)
            tops = table.max(axis=1, keepdims=True)
            smooth = (kernel / kernel.sum(axis=2, keepdims=True)) @ np.exp(table - tops)
            with np.errstate(divide="ignore"):
                found.append((np.log(smooth) + tops).sum(axis=2))
        return np.stack(found)

    def _parts(self, arm: int, grid: FloatArray) -> FloatArray:
        """Return what `_cells` returns for an arm, at what each part in common leaves of the variances."""
        return np.stack(
            [self._cells(self.rounds[arm], self.totals[arm], grid, (1 - part) * VARIANCES) for part in COMMON]
        )

    def _fit(self, arms: Sequence[int]) -> FloatArray:
        """Return ln of the evidence of two arms, each at its own level, by part in common and variance."""
        offsets = np.linspace(-1.0, 1.0, POINTS)
        cells = sum(self._parts(arm, self.levels[arm] + offsets) for arm in arms)
        return self._shared(np.asarray(cells), offsets)[:, :, POINTS // 2]

    def _weights(self, agents: Sequence[str]) -> FloatArray:
        """Return ln of the probabilities of part and variance, by the arms of all other agents."""
        evidence = [fit for agent, fit in self.fitted.items() if agent not in agents]
        total = np.sum(evidence, axis=0) if evidence else np.zeros((len(COMMON), len(VARIANCES)))
        return np.asarray(total - logsumexp(total))

    def log_ratios(self, arms: Sequence[int], groups: Sequence[Sequence[int]]) -> FloatArray:
        """Return ln of the evidence of each group of some arms as one item, over that as different ones."""
        errors = 1 / np.sqrt(self.totals[list(arms)].sum(axis=1) + 1)
        beyond, levels = np.maximum(ERRORS * errors, WIDTH), self.levels[list(arms)]
        grid = np.linspace((levels - beyond).min(), (levels + beyond).max(), POINTS)
        log_prior = norm(self.centre, self.spread).logpdf(grid) + np.log(grid[1] - grid[0])
        weights = self._weights([self.agents[arm] for arm in arms])
        parts = {arm: self._parts(arm, grid) for arm in arms}
        alone = {arm: logsumexp(parts[arm][0].sum(axis=2) + log_prior, axis=1) for arm in arms}
        by_variance = logsumexp(weights, axis=0)
        ratios = []
        for group in groups:
            rows = list(group)
            pooled = self._cells(self.rounds[rows].sum(axis=0), self.totals[rows].sum(axis=0), grid, VARIANCES)
            together = logsumexp(pooled.sum(axis=2) + by_variance[:, None] + log_prior)
            apart = self._shared(np.sum([parts[arm] for arm in rows], axis=0), grid) + weights[..., None] + log_prior
            each = logsumexp(np.sum([alone[arm] for arm in rows], axis=0) + by_variance)
            ratios.append(together - max(logsumexp(apart), each))
        return np.array(ratios)

    def one_agent(self, arms: Sequence[int]) -> CellGroup:
        """Return the e-value of an agent's arms, a mixture over groups of them, all sizes with equal weight.

        Adds up pairs, and the groups that grow from the likeliest pair; leaving others out makes it smaller. Names the
        group that adds most.
        """
        kept = self._largest(arms, MOST_ARMS)
        pairs = [list(pair) for pair in combinations(kept, 2)]
        groups, ratios = pairs, self.log_ratios(kept, pairs)
        best = groups[int(np.argmax(ratios))]
        while len(best) < len(kept):
            larger = [[*best, arm] for arm in kept if arm not in best]
            more = self.log_ratios(kept, larger)
            best, groups, ratios = larger[int(np.argmax(more))], groups + larger, np.concatenate([ratios, more])
        sizes = np.array([len(group) for group in groups])
        choices = gammaln(len(kept) + 1) - gammaln(sizes + 1) - gammaln(len(kept) - sizes + 1)
        terms = ratios - choices - np.log(len(kept) - 1)
        most = int(np.argmax(terms))
        return CellGroup(float(logsumexp(terms)), tuple(sorted(groups[most])), float(ratios[most]))

    def log_two_agents(self, pairs: Sequence[Sequence[int]], trust: float) -> float:
        """Return ln of the e-value of matched pairs of two agents' arms, each one item with the probability `trust`."""
        ratios = np.concatenate([self.log_ratios(pair, [pair]) for pair in pairs])
        return float(np.logaddexp(np.log(1 - trust), np.log(trust) + ratios).sum())


def fit_cells(rounds: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the effects of cells (columns) and the levels of arms (rows) in log-odds, which fit all sums of counts.

    >>> rounds = np.full((2, 2), 1e6)
    >>> effects, levels = fit_cells(rounds, rounds * expit(np.array([[0.0, 1.0], [-1.0, 0.0]])))
    >>> round(float(np.diff(effects)[0]), 2), round(float(np.diff(levels)[0]), 2)
    (1.0, -1.0)
    """
    levels = logit((totals.sum(axis=1) + 0.5) / (rounds.sum(axis=1) + 1.0))
    effects = np.zeros(rounds.shape[1])
    for _ in range(STEPS):
        for axis in (0, 1):
            chances = expit(levels[:, None] + effects)
            misfit = (totals - rounds * chances).sum(axis=axis)
            step = np.clip(misfit / ((rounds * chances * (1 - chances)).sum(axis=axis) + 1.0), -1, 1)
            effects, levels = (effects + step, levels) if axis == 0 else (effects, levels + step)
        effects, levels = effects - effects.mean(), levels + effects.mean()
    return effects, levels
