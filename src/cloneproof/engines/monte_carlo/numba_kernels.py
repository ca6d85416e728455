"""Kernels of hold-out scores, samples and their indices, which Numba compiles; imported when a job needs one."""

from __future__ import annotations

from importlib.util import find_spec

from cloneproof._arrays import FloatArray, WordArray
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.rounds import KINDS
from cloneproof.engines.monte_carlo.runs import RunResults


def _needed(job: Job) -> bool:
    mechanism = job.mechanism
    plain = mechanism.keeps_all_arms and mechanism.scoring.counts_all and mechanism.fallback is None
    known = all(rule.index in KINDS for rule in mechanism.rules) and not any(rule.siblings for rule in mechanism.rules)
    return not mechanism.draws and not (plain and known) and find_spec("numba") is not None


def blocks_apply(job: Job) -> bool:
    """Whether Numba's blocks play the job."""
    if not _needed(job):
        return False
    from cloneproof.engines.monte_carlo.blocks import kernel

    return kernel.blocks_apply(job)


def play_blocks(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a job."""
    from cloneproof.engines.monte_carlo.blocks import kernel

    kernel.play_blocks(job, means, streams, results)


def stepping_applies(job: Job) -> bool:
    """Whether Numba's loop over rounds plays the job."""
    if not _needed(job):
        return False
    from cloneproof.engines.monte_carlo.stepping import rounds

    return rounds.stepping_applies(job)


def play_stepping(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a job."""
    from cloneproof.engines.monte_carlo.stepping import rounds

    rounds.play_stepping(job, means, streams, results)


def ranked_pages_apply(job: Job) -> bool:
    """Whether Numba's loop over pages plays the job."""
    if not _needed(job):
        return False
    from cloneproof.engines.monte_carlo import ranked_pages

    return ranked_pages.ranked_pages_apply(job)


def play_ranked_pages(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a job."""
    from cloneproof.engines.monte_carlo import ranked_pages

    ranked_pages.play_ranked_pages(job, means, streams, results)
