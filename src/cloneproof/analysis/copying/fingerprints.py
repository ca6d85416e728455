"""Copies behave alike in every cell (segment, week, part of the week): e-values of vectors of counts.

In a cell an item has log-odds g + c + d: g is the item's level, c the cell's effect, common to all arms (drift of the
platform's traffic is no evidence), and d the item's own deviation, normal with variance v. Copies share level and
deviations, so they have the evidence of their summed counts. Different items of one agent have levels of their own or
one level, and a part of the variance of their deviations in common, as they meet one audience; they have the product
of their evidences given what they share. The ratio of both is one of likelihoods, so it does not matter how a bandit
chose the arms.

Effects and the law of levels are fitted to all arms, and how often items share a level, how much they deviate and which
part of it they share to other agents: if some items hardly deviate, two of those at one level are no evidence. Tables
of cells (by segment, by week) are margins of the same rewards. An e-value is the average over them: in a crossed table
a deviation that lasts would count in every week anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import expit, gammaln, logit

from cloneproof._arrays import FloatArray
from cloneproof._clock import check_time
from cloneproof.analysis.copying.priors import REWARDS
from cloneproof.analysis.copying.records import ArmRecord

VARIANCES: Final = np.array([0.0, 0.004, 0.02, 0.1])  # of deviations, in log-odds
COMMON: Final = np.array([0.0, 0.5, 0.85])  # parts of it that different items of one agent share
TYPICAL: Final = 0.02  # variance of deviations in the fit of effects, so that no arm alone decides them
STEP: Final = 0.04  # of a grid of log-odds
SHARPEST: Final = 0.7 * STEP  # standard error of a cell's summed counts; more of them count as so many
FINER: Final = 4  # points for one of the grid, when evidence is integrated over levels
ERRORS: Final = 5.0  # standard errors of a level that a grid covers
DEVIATIONS: Final = 3.0  # and standard deviations in a cell
APART: Final = 6.0  # standard errors between the levels of arms that are not compared
TINY: Final = 1e-300  # of a likelihood relative to its largest
STEPS: Final = 50  # of the fit of effects and levels, and of EM
FEW_STEPS: Final = 12  # of the fit of levels at given effects
LEAST_CELLS: Final = 2
MOST_CELLS: Final = 60  # of a table; further ones are pooled, the smallest
LEAST_SPREAD: Final = 0.1  # of levels, in log-odds
MOST_ARMS: Final = 20  # of an agent, those with the most rewards
FIT_SECONDS: Final = 5e-3  # rough time for the evidence of two arms
MOST_FITTED: Final = 100  # agents that the law of deviations is fitted to, those with the most rewards
MOST_SOLD: Final = 30  # pairs of arms of two agents that are alike, which the law of those is fitted to as well
EVEN: Final = 0.1  # agents for which the even law counts in that fit


class CellGroup(NamedTuple):
    """Evidence of an agent's arms by cell: ln of the e-value, the group that says most, and ln of its Bayes factor."""

    log_e: float
    arms: tuple[int, ...]
    log_ratio: float


class CellTable:
    """Counts of arms (rows) by cell (columns), and what is fitted to them."""

    def __init__(self, rounds: FloatArray, totals: FloatArray, agents: Sequence[str]) -> None:
        self.rounds, self.totals, self.agents = rounds, totals, agents
        self.effects, levels = fit_cells(rounds, totals)
        noise = 1 / (totals.sum(axis=1) + 1)
        precision = 1 / (noise + LEAST_SPREAD)
        self.centre = float(np.average(levels, weights=precision))
        beyond = float(np.average((levels - self.centre) ** 2 - noise, weights=precision))
        self.spread = max(LEAST_SPREAD, max(beyond, 0.0) ** 0.5)
        self.levels, _ = self._levels(rounds, totals)
        owned = defaultdict(list)
        for number, agent in enumerate(agents):
            owned[agent].append(number)
        self.sold: dict[tuple[int, int], FloatArray] = {}
        most = sorted(owned.values(), key=lambda arms: -totals[arms].sum())[:MOST_FITTED]
        self.fitted: dict[str, FloatArray] = {}
        for arms in most:
            check_time(REWARDS, FIT_SECONDS)
            self.fitted[agents[arms[0]]] = self._evidence(*blunted(*self.counts(self.largest(arms, 2))))

    def largest(self, arms: Sequence[int], most: int) -> list[int]:
        """Return the arms with the most rewards."""
        return sorted(sorted(arms, key=lambda arm: -self.totals[arm].sum())[:most])

    def counts(self, arms: Sequence[int]) -> tuple[FloatArray, FloatArray]:
        """Return the rounds and sums of rewards of some arms by cell."""
        return self.rounds[list(arms)], self.totals[list(arms)]

    def _levels(self, rounds: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the likeliest levels of arms (rows), and the squares of their standard errors."""
        levels, precision = np.full(len(rounds), self.centre), np.full(len(rounds), self.spread**-2)
        for _ in range(FEW_STEPS):
            chances = expit(levels[:, None] + self.effects)
            precision = (rounds * chances * (1 - chances)).sum(axis=1) + self.spread**-2
            step = ((totals - rounds * chances).sum(axis=1) - (levels - self.centre) / self.spread**2) / precision
            levels = levels + np.clip(step, -1, 1)
        return levels, 1 / precision + VARIANCES[-1] / len(self.effects)

    def _log_counts(self, rounds: FloatArray, totals: FloatArray, log_odds: FloatArray) -> FloatArray:
        """Return ln of the likelihood of each arm's counts in each cell, at log-odds (the last axis) before effects."""
        x = log_odds + self.effects[:, None]
        return np.asarray(totals[..., None] * x - rounds[..., None] * np.logaddexp(0, x))

    def weights(self, agents: Collection[str], alike: Sequence[tuple[int, int]] = ()) -> FloatArray:
        """Return ln of the probabilities of what different items share, by all other agents; by EM.

        Some of those agents may have copies, which have a row of their own that does not count.

        alike   arms of two agents each with one title, which may be one product at two shops
        """
        for pair in alike:
            if pair not in self.sold:
                self.sold[pair] = self._evidence(*blunted(*self.counts(pair)))
        evidence = [fit for agent, fit in self.fitted.items() if agent not in agents]
        evidence += [self.sold[pair] for pair in alike if not {self.agents[arm] for arm in pair} & {*agents}]
        logs = np.stack(evidence) if evidence else np.zeros((0, 2 * len(COMMON) + 1, len(VARIANCES)))
        likely = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
        chances = even = np.full(logs.shape[1:], 1 / np.prod(logs.shape[1:]))
        for _ in range(STEPS):
            joint = likely * chances
            shares = joint / joint.sum(axis=(1, 2), keepdims=True)
            chances = (shares.sum(axis=0) + EVEN * even) / (len(logs) + EVEN)
        return np.asarray(np.log(chances[:-1] / chances[:-1].sum()))

    def _integral(self, grid: FloatArray, logs: FloatArray) -> FloatArray:
        """Integrate evidence on a grid (the last axis) over levels; it may be narrower than a step."""
        fine = np.linspace(grid[0], grid[-1], FINER * (len(grid) - 1) + 1)
        log_prior = -0.5 * ((fine - self.centre) / self.spread) ** 2 - np.log(self.spread * np.sqrt(2 * np.pi))
        return np.asarray(
            np.logaddexp.reduce(CubicSpline(grid, logs, axis=-1)(fine) + log_prior, axis=-1) + np.log(STEP / FINER)
        )

    def _log_one(self, rounds: FloatArray, totals: FloatArray) -> FloatArray:
        """Return ln of the evidence of one arm (a row of counts), by variance."""
        grid, counts = self._on_grid(rounds, totals)
        return self._integral(grid, np.stack([_smooth(counts[0], v).sum(axis=0) for v in VARIANCES]))

    def _on_grid(self, rounds: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a grid of levels at which arms may be one item, and ln of the likelihoods of their counts on it."""
        levels, errors = self._levels(rounds.sum(axis=0, keepdims=True), totals.sum(axis=0, keepdims=True))
        grid = _grid(float(levels[0]), float(errors[0]))
        return grid, self._log_counts(rounds, totals, grid)

    def _evidence(self, rounds: FloatArray, totals: FloatArray, own: FloatArray | None = None) -> FloatArray:
        """Return ln of the evidence of arms (rows of counts) by what they share, and by variance.

        First of different items of one level, a row for each part in common, then of items with levels of their own,
        whose parts in common are judged at their likeliest levels, and last of one item.

        own   what `_log_one` returns for each arm
        """
        check_time(REWARDS, 0.0)  # what asks counts its work
        if own is None:
            own = np.stack([self._log_one(rounds[[arm]], totals[[arm]]) for arm in range(len(rounds))])
        grid, counts = self._on_grid(rounds, totals)
        shared = [[_log_common(counts, rho, v).sum(axis=0) for v in VARIANCES] for rho in COMMON]
        one = [_smooth(counts.sum(axis=0), v).sum(axis=0) for v in VARIANCES]
        level, one_item = np.split(self._integral(grid, np.array([*shared, one])), [len(COMMON)])
        away = _grid(0.0, 0.0)
        levels, _ = self._levels(rounds, totals)
        moved = np.stack(
            [self._log_counts(n, hits, x + away) for n, hits, x in zip(rounds, totals, levels, strict=True)]
        )
        here = np.array([[_log_common(moved, rho, v)[:, len(away) // 2].sum() for v in VARIANCES] for rho in COMMON])
        return np.concatenate([level, own.sum(axis=0) + here - here[0], one_item])

    def one_agent(self, rounds: FloatArray, totals: FloatArray, weights: FloatArray) -> CellGroup:
        """Return the e-value of an agent's arms (rows of counts), a mixture over groups of them.

        All sizes have equal weight. Adds up pairs of near levels, and the groups that grow from the likeliest pair
        while they become likelier; leaving others out makes it smaller. Names the group that adds most.
        """
        rounds, totals = blunted(rounds, totals)
        kept = range(len(rounds))
        levels, errors = self._levels(rounds, totals)
        own = np.stack([self._log_one(rounds[[arm]], totals[[arm]]) for arm in kept])

        def ratio(group: tuple[int, ...]) -> float:
            rows = list(group)
            return _log_factor(self._evidence(rounds[rows], totals[rows], own[rows]), weights)

        ratios: dict[tuple[int, ...], float] = {
            pair: ratio(pair)
            for pair in combinations(kept, 2)
            if abs(levels[pair[0]] - levels[pair[1]]) < APART * (errors[list(pair)].sum()) ** 0.5
        }
        if not ratios:
            return CellGroup(-np.inf, (0, 1), -np.inf)
        best = max(ratios, key=lambda group: ratios[group])
        while len(best) < len(kept):
            larger = [(*best, arm) for arm in kept if arm not in best]
            more = {group: ratio(group) for group in larger}
            best, before = max(more, key=lambda group: more[group]), ratios[best]
            ratios |= more
            if ratios[best] < before:
                break
        sizes = np.array([len(group) for group in ratios])
        choices = gammaln(len(kept) + 1) - gammaln(sizes + 1) - gammaln(len(kept) - sizes + 1)
        terms = np.array([*ratios.values()]) - choices - np.log(len(kept) - 1)
        most = list(ratios)[int(np.argmax(terms))]
        return CellGroup(float(np.logaddexp.reduce(terms)), tuple(sorted(most)), ratios[most])

    def log_one_item(self, rounds: FloatArray, totals: FloatArray, weights: FloatArray) -> float:
        """Return ln of the Bayes factor of arms (rows of counts) as one item."""
        evidence = self._evidence(*blunted(rounds, totals))
        return _log_factor(evidence, weights)

    def log_drawn(self, arms: Sequence[int], item: int, weights: FloatArray, dice: np.random.Generator) -> float:
        """Return ln of the Bayes factor of copies, drawn with these arms' rounds, of an item of this arm's level."""
        (level,), _ = self._levels(self.rounds[[item]], self.totals[[item]])
        chances = np.exp(weights).sum(axis=0)
        variance = VARIANCES[dice.choice(len(VARIANCES), p=chances / chances.sum())]
        rates = expit(level + self.effects + dice.normal(0, variance**0.5, len(self.effects)))
        rounds = np.rint(self.counts(arms)[0])
        return self.log_one_item(rounds, dice.binomial(rounds.astype(int), rates).astype(float), weights)


class Fingerprints:
    """Tables of counts by cell."""

    def __init__(self, records: Sequence[ArmRecord]) -> None:
        agents = [record.agent for record in records]
        names = dict.fromkeys(name for record in records for name in record.cells)
        self.tables = []
        for name in names:
            counts = np.stack([record.cells[name] for record in records])
            counts = counts[:, np.argsort(-counts[..., 0].sum(axis=0), kind="stable")]
            rest = counts[:, MOST_CELLS - 1 :].sum(axis=1, keepdims=True)
            counts = np.concatenate([counts[:, : MOST_CELLS - 1], rest], axis=1)
            counts = counts[:, counts[..., 0].any(axis=0)]
            if counts.shape[1] >= LEAST_CELLS:
                self.tables.append(CellTable(counts[..., 0], counts[..., 1], agents))

    def one_agent(self, arms: Sequence[int]) -> CellGroup:
        """Return the e-value of an agent's arms, the average over tables, and the group that says most."""
        groups = []
        for table in self.tables:
            kept = table.largest(arms, MOST_ARMS)
            one = table.one_agent(*table.counts(kept), table.weights({table.agents[kept[0]]}))
            groups.append(one._replace(arms=tuple(kept[row] for row in one.arms)))
        best = max(groups, key=lambda one: one.log_e)
        return best._replace(log_e=float(np.logaddexp.reduce([one.log_e for one in groups]) - np.log(len(groups))))

    def log_two_agents(self, pairs: Sequence[Sequence[int]], trust: float, alike: Sequence[tuple[int, int]]) -> float:
        """Return ln of the e-value of matched pairs of two agents' arms, each one item with the probability `trust`.

        alike   pairs of arms of any two agents that are alike, of which the first ones tell how one product is sold
        """
        values = []
        for table in self.tables:
            weights = table.weights({table.agents[arm] for pair in pairs for arm in pair}, alike[:MOST_SOLD])
            ratios = [table.log_one_item(*table.counts(pair), weights) for pair in pairs]
            values.append(np.logaddexp(np.log(1 - trust), np.log(trust) + np.array(ratios)).sum())
        return float(np.logaddexp.reduce(values) - np.log(len(values)))


def _log_factor(evidence: FloatArray, weights: FloatArray) -> float:
    """Return ln of the evidence as one item, over that as different ones, by what the weights say of these."""
    different = np.logaddexp.reduce((evidence[:-1] + weights).ravel())
    return float(np.logaddexp.reduce(evidence[-1] + np.logaddexp.reduce(weights)) - different)


def blunted(rounds: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return counts of arms (rows), of each cell no more than the grid resolves; a part of the evidence is dropped."""
    shared = (totals * (1 - totals / np.maximum(rounds, 1))).sum(axis=0)
    used = np.minimum(1.0, 1 / np.maximum(SHARPEST**2 * shared, TINY))
    return used * rounds, used * totals


def _grid(level: float, square: float) -> FloatArray:
    """Return log-odds around a level whose error has this square, wide enough for deviations."""
    half = int((ERRORS * square**0.5 + DEVIATIONS * VARIANCES[-1] ** 0.5) / STEP) + 1
    return np.asarray(level + STEP * np.arange(-half, half + 1))


@lru_cache(maxsize=1000)
def _kernel(size: int, variance: float) -> FloatArray:
    away = STEP * np.arange(size)
    weights = np.exp(-0.5 * (away[:, None] - away) ** 2 / variance)
    return np.asarray(weights / weights.sum(axis=0))


def _smooth(logs: FloatArray, variance: float) -> FloatArray:
    """Return ln of likelihoods (the last axis on a grid) averaged over normal deviations."""
    if variance == 0:
        return logs
    tops = logs.max(axis=-1, keepdims=True)
    likely = np.exp(logs - tops) @ _kernel(logs.shape[-1], float(variance))
    return np.asarray(np.log(np.maximum(likely, TINY)) + tops)


def _log_common(logs: FloatArray, rho: float, variance: float) -> FloatArray:
    """Return ln of the evidence of arms (the first axis) that share the part rho of the variance."""
    return _smooth(_smooth(logs, (1 - rho) * variance).sum(axis=0), rho * variance)


def fit_cells(rounds: FloatArray, totals: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the effects of cells (columns) and the levels of arms (rows) in log-odds.

    By Newton's steps; counts weigh less the more there are, as each arm deviates from the effects.
    """
    levels = logit((totals.sum(axis=1) + 0.5) / (rounds.sum(axis=1) + 1.0))
    effects = np.zeros(rounds.shape[1])
    for _ in range(STEPS):
        for axis in (0, 1):
            chances = expit(levels[:, None] + effects)
            information = rounds * chances * (1 - chances)
            counted = 1 / (1 + TYPICAL * information)
            misfit, precision = ((counted * term).sum(axis=axis) for term in (totals - rounds * chances, information))
            step = np.clip(misfit / (precision + 1.0), -1, 1)
            effects, levels = (effects + step, levels) if axis == 0 else (effects, levels + step)
        effects, levels = effects - effects.mean(), levels + effects.mean()
    return effects, levels
