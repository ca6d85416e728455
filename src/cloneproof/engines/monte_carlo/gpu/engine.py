"""Outcomes drawn on the GPU: a drop-in for `engines.monte_carlo.outcomes`, with the same bits."""

from __future__ import annotations

from collections.abc import Sequence

from cloneproof.engines.monte_carlo.gpu.card import card
from cloneproof.engines.monte_carlo.gpu.job_records import RunRange
from cloneproof.engines.monte_carlo.gpu.kernels import refusal
from cloneproof.engines.monte_carlo.gpu.launch import play_ranges
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.outcomes import outcomes


def gpu_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1 of a job, on the card where one of its kernels plays it, else on the CPU."""
    if refusal(job) is not None:
        return outcomes(job, first, count)
    return play_ranges(card(), [RunRange(job, first, count)])[0]


def gpu_outcomes_of_many(ranges: Sequence[RunRange]) -> list[Outcomes]:
    """The same for ranges of several jobs, in one launch for each kernel."""
    here = [number for number, each in enumerate(ranges) if refusal(each.job) is None]
    played = dict(zip(here, play_ranges(card(), [ranges[number] for number in here]), strict=True))
    return [played[number] if number in played else outcomes(*each) for number, each in enumerate(ranges)]
