"""Runs of worlds in which nobody copies, played once and shared by all candidates of an audit."""

from __future__ import annotations

import threading
from typing import Any, Generic, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, J

MOST_KEPT = 1 << 17  # runs of a world; later ones are played again


class _KeptRuns(NamedTuple):
    """The outcomes of the first runs, a row each; a run that is not played yet has NaN."""

    rows: FloatArray
    of: tuple[object, ...]  # what the key identifies, kept alive


class HonestRuns(Generic[J]):
    """The outcomes of `play`, with those of honest worlds kept: the same bits, since a run depends on nothing else.

    >>> from cloneproof import Agent, Market, Point, mechanism
    >>> from cloneproof.engines.monte_carlo.job import Job
    >>> market = Market([Agent("ana", 1, Point(0.5))], horizon=9, rewards="deterministic")
    >>> played = []
    >>> def play(job, first, count):
    ...     played.append((first, count))
    ...     return Outcomes(np.zeros((count, 1)), np.zeros(count), np.zeros((count, 1)))
    >>> shared, job = HonestRuns(play), Job(market, mechanism("ucb1"), {"ana": (1,)})
    >>> _ = shared(job, 0, 4), shared(job, 2, 4)
    >>> played
    [(0, 4), (4, 2)]
    """

    def __init__(self, play: ChunkOutcomes[J]) -> None:
        self.play = play
        self.kept: dict[tuple[Any, ...], _KeptRuns] = {}
        self.lock = threading.Lock()

    def __call__(self, job: J, first: int, count: int) -> Outcomes:
        """The outcomes of these runs."""
        copied = any(number != 1 for numbers in job.copies.values() for number in numbers)
        if copied or first + count > MOST_KEPT:
            return self.play(job, first, count)
        key = (id(job.market), id(job.mechanism), job.seed, len(job.strata))
        with self.lock:
            rows = self._rows(key, job, first + count)[first : first + count].copy()
        missing = np.flatnonzero(np.isnan(rows[:, -1]))
        for run in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1) if len(missing) else ():
            begin, end = int(run[0]), int(run[-1]) + 1
            played = self.play(job, first + begin, end - begin)
            rows[begin:end] = np.column_stack(played)
            with self.lock:
                self._rows(key, job, first + count)[first + begin : first + end] = rows[begin:end]
        agents = len(job.market.agents)
        return Outcomes(rows[:, :agents], rows[:, agents], rows[:, agents + 1 :])

    def _rows(self, key: tuple[Any, ...], job: J, count: int) -> FloatArray:
        known = self.kept.get(key)
        if known is None or len(known.rows) < count:
            rows = np.full((max(64, 2 * count), 2 * len(job.market.agents) + 1), np.nan)
            if known is not None:
                rows[: len(known.rows)] = known.rows
            known = self.kept[key] = _KeptRuns(rows, (job.market, job.mechanism))
        return known.rows
