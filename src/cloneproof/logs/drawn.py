"""The market of a log, drawn: what mechanisms cost and gain there, on average over the draws of its fit.

A draw is a law of rates and a rate of each item (`fit`). In *this* market every run of a draw has these items; in a
*fresh* one, as next season's, its items are new and have rates of the draw's law. Run r is of draw r modulo their
number, so that n runs are n / 200 of each.

The expected loss is one number for each draw, and what it is in truth is one of these. The interval is that of the
expected loss at 90 %: its variance between draws, by analysis of variance, and that of the mean of all runs; its shape
is that of the draws' means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final, NamedTuple

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.randomness import substream
from cloneproof.advice.regret import heard
from cloneproof.evaluation.reference import runs_of
from cloneproof.logs.fit import DRAWS, FittedRates
from cloneproof.logs.log import Log
from cloneproof.market.market import Copies, Market, Means, full_copies
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.segments import plays
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Outcomes, best_pages
from cloneproof.runs.sampler import in_thread, kernel_outcomes
from cloneproof.runs.tapes import means_of_runs

LEVEL: Final = 0.9
MOST, MOST_PAIRS = 10, 5  # runs of each draw, and pairs of runs
CHUNK: Final = 100  # runs that are played at once
TINY: Final = 1e-300
SMALL: Final = 0.03  # of a cost: a standard error that does not matter
FRESH: Final = 1  # stream of the seed of fresh markets
MANY_ITEMS: Final = 100  # of which one in 50 is spoken of
ALIKE: Final = 0.15  # rates that differ by at most this part are about one
Told = Callable[[Job, FloatArray, Sequence[Outcomes]], FloatArray]


class DrawnCost(NamedTuple):
    """What a mechanism loses, in rewards and as a part of what knowing every item's rate would have earned."""

    lost: Estimate
    part: Estimate


@dataclass(frozen=True, eq=False)
class DrawnMarket:
    """A market fitted to a log.

    market  each item with the average law, over the log's rounds: what parameters and proofs are asked of
    fits    by segment ("" without any), of the market's items in their order
    seed    of the runs
    """

    market: Market
    fits: Mapping[str, FittedRates]
    seed: int = 0

    @cached_property
    def here(self) -> tuple[tuple[Means, ...], ...]:
        """Of each segment, the rates of the log's items in each draw."""
        return tuple(self._means(fit.rates) for fit in self.fits.values())

    @cached_property
    def fresh(self) -> tuple[tuple[Means, ...], ...]:
        """Of each segment, the rates of new items in as many draws as there may be runs."""
        rows, items = DRAWS * MOST, self.market.originals
        return tuple(self._means(fit.fresh(rows, items, self.seed)) for fit in self.fits.values())

    def _means(self, rates: FloatArray) -> tuple[Means, ...]:
        names = [agent.name for agent in self.market.agents]
        ends = np.cumsum([agent.count for agent in self.market.agents])[:-1]
        rows = zip(*(own.tolist() for own in np.split(rates, ends, axis=1)), strict=True)
        return tuple(dict(zip(names, map(tuple, row), strict=True)) for row in rows)

    def rates(self, log: Log) -> str:
        """Describe the click rates of items: nearly all lie between the first two, in the unit of the log."""
        unit, many = (100.0, " %") if not log.low and log.high == 1 else (1.0, ""), self.market.originals >= MANY_ITEMS
        rare = 50 if many else 20
        parts = []
        for name, fit in self.fits.items():
            ends = [log.unscaled(fit.quantile(level)) * unit[0] for level in (0.01, 1 - 0.2 / rare, 1 - 1 / rare)]
            low, high, upper = (f"{end:.2g}".removeprefix("0") or "0" for end in ends)
            spread = f"{low} to {high}{unit[1]}, one item in {rare} above {upper}{unit[1]}"
            alike = ends[1] - ends[0] <= ALIKE * abs(ends[1])
            parts.append(f"{f'{name}: ' if name else ''}{f'about {upper}{unit[1]}' if alike else spread}")
        return f"{'click rates' if unit[1] else 'mean rewards'} {'; '.join(parts)}"

    def cost(self, mechanism: Mechanism, fresh: bool = False) -> DrawnCost:
        """Return what a mechanism loses if everybody is honest, with the log's items or with new ones."""
        lost, best = self._played(mechanism, [None], _losses, MOST, fresh).T
        ratio = _ratio(lost, best)
        return DrawnCost(_estimate(lost), _estimate(ratio + (lost - ratio * best) / max(best.mean(), TINY)))

    def gain(self, mechanism: Mechanism, agent: str, copies: Sequence[int], most: int = MOST_PAIRS) -> Estimate:
        """Return what an agent gains by copies in this market, as a part of its honest pay."""
        number = [own.name for own in self.market.agents].index(agent)
        honest, gained = self._played(mechanism, [None, {agent: copies}], partial(_gained, number), most).T
        ratio = _ratio(gained, honest)
        return _estimate(ratio + (gained - ratio * honest) / max(honest.mean(), TINY), least=-1.0)

    def _played(
        self,
        mechanism: Mechanism,
        worlds: Sequence[Copies | None],
        told: Told,
        most: int,
        fresh: bool = False,
    ) -> FloatArray:
        """Play two runs of each draw, then twice as many, until draws differ by more than runs of one, or hardly."""
        table, runs = self._table(mechanism, worlds, told, fresh, 0, 2 * DRAWS), 2
        while runs < most:
            within, between, whole = _variances(table[:, 0])
            if within / runs <= between or math.sqrt(between + whole) <= SMALL * abs(float(table[:, 0].mean())):
                break
            more = min(runs, most - runs)
            table = np.vstack([table, self._table(mechanism, worlds, told, fresh, runs * DRAWS, more * DRAWS)])
            runs += more
        return table

    def _table(
        self,
        mechanism: Mechanism,
        worlds: Sequence[Copies | None],
        told: Told,
        fresh: bool,
        first: int,
        count: int,
    ) -> FloatArray:
        """Play runs in each of the worlds, and return what is told of each: a row, the sum over segments."""
        means, seed = (self.fresh, substream(FRESH, self.seed) >> 1) if fresh else (self.here, self.seed)
        total: FloatArray = np.zeros(1)
        for k, (part, strata) in enumerate(zip(plays(self.market, mechanism), means, strict=True)):
            market, stream = heard(part.market, part.mechanism), seed if len(means) == 1 else substream(k, seed) >> 1
            drawn = [
                runs_of(market, part.mechanism, full_copies(market.agents, copies), stream, strata, rough=True)
                for copies in worlds
            ]
            chunks = [(begin, min(CHUNK, first + count - begin)) for begin in range(first, first + count, CHUNK)]
            played = [[in_thread(kernel_outcomes, own, *chunk) for own in drawn] for chunk in chunks]
            rows = [
                told(drawn[0].job, means_of_runs(drawn[0].job, *chunk), [one.result() for one in row])
                for chunk, row in zip(chunks, played, strict=True)
            ]
            total = total + np.vstack(rows)
        return total


def _losses(job: Job, means: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
    best = best_pages(job, means) if job.market.places else means.max(axis=1)
    return np.column_stack([played[0].regret, job.market.horizon * best])


def _gained(number: int, _: Job, __: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
    honest, copied = (one.served[:, number] for one in played)
    return np.column_stack([honest, copied - honest])


def _ratio(upper: FloatArray, lower: FloatArray) -> float:
    return float(upper.mean() / max(lower.mean(), TINY))


def _variances(values: FloatArray) -> tuple[float, float, float]:
    """Return the variance within draws, that between their expectations, and that of the mean.

    That between them is what the draws' means differ by beyond the runs of each, and a standard error more: of few runs
    it would often come out as nothing.
    """
    table = values.reshape(-1, DRAWS)
    within = float(table.var(axis=0, ddof=1).mean())
    of_means = float(table.mean(axis=0).var(ddof=1))
    return within, max(0.0, of_means * (1 + math.sqrt(2 / (DRAWS - 1))) - within / len(table)), of_means / DRAWS


def _estimate(values: FloatArray, least: float = 0.0) -> Estimate:
    """Return the mean with the interval of the expectation; runs are rows of draws in turn."""
    means = values.reshape(-1, DRAWS).mean(axis=0)
    mean, (_, between, whole) = float(means.mean()), _variances(values)
    shrunk = (means - mean) * math.sqrt((between + whole) / max(float(means.var(ddof=1)), TINY))
    low, high = np.quantile(shrunk, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    method = f"{len(values):,} runs, {len(values) // DRAWS} of each of {DRAWS} draws"
    return Estimate.between(max(least, mean + float(low)), mean, mean + float(high), "posterior", method, LEVEL)
