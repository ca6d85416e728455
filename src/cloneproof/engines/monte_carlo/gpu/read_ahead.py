"""Runs of a race on the card: drawn ahead and kept, all candidates in one launch.

A launch of a few runs takes as long as one of thousands, since the rounds of a run follow each other. So the first runs
of all candidates are drawn at once, and whoever needs more gets four times as many as it has.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.monte_carlo.gpu.engine import gpu_outcomes_of_many
from cloneproof.engines.monte_carlo.gpu.job_records import RunRange
from cloneproof.engines.monte_carlo.gpu.kernels import refusal
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.outcomes import outcomes

FIRST: Final = 256  # runs of every candidate in the first launch
LEAST: Final = 4096  # of a launch after it
MOST_KEPT: Final = 1 << 16  # runs of a job; later ones are drawn as they are asked for


class _DrawnRuns(NamedTuple):
    """The outcomes of the first runs of a job, side by side; the job is kept, since its parts are named by identity."""

    rows: FloatArray
    job: Job


class ReadAheadRuns:
    """`gpu_outcomes` with runs drawn ahead of those that are asked for."""

    def __init__(self) -> None:
        self.drawn: dict[tuple[Any, ...], _DrawnRuns] = {}
        self.lock = threading.Lock()

    def expect(self, jobs: Iterable[Job]) -> None:
        """Draw the first runs of jobs, in one launch for each kernel."""
        new = {_key(job): job for job in jobs if refusal(job) is None}
        with self.lock:
            self._draw([RunRange(job, 0, FIRST) for key, job in new.items() if key not in self.drawn])

    def __call__(self, job: Job, first: int, count: int) -> Outcomes:
        """Runs first, .., first + count - 1 of a job."""
        if refusal(job) is not None:
            return outcomes(job, first, count)
        key, end = _key(job), first + count
        with self.lock:
            known = self.drawn.get(key)
            there = 0 if known is None else len(known.rows)
            if there < end <= MOST_KEPT:
                more = max(end, min(4 * there, MOST_KEPT), LEAST) - there
                self._draw([RunRange(job, there, more)])
            elif there < end:
                return gpu_outcomes_of_many([RunRange(job, first, count)])[0]
            rows = self.drawn[key].rows[first:end]
        agents = len(job.market.agents)
        return Outcomes(rows[:, :agents].copy(), rows[:, agents].copy(), rows[:, agents + 1 :].copy())

    def _draw(self, ranges: list[RunRange]) -> None:
        for each, played in zip(ranges, gpu_outcomes_of_many(ranges) if ranges else (), strict=True):
            rows, key = np.column_stack(played), _key(each.job)
            if key in self.drawn:
                rows = np.concatenate([self.drawn[key].rows, rows])
            self.drawn[key] = _DrawnRuns(rows, each.job)


def _key(job: Job) -> tuple[Any, ...]:
    return id(job.market), id(job.mechanism), tuple(job.copies.items()), job.seed, len(job.strata)
