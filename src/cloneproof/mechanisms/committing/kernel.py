"""Mechanisms that explore and then commit, in blocks of rewards: a job as records for `native/blocks.h`."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from cloneproof._lib.arrays import FloatArray, IntArray, WordArray
from cloneproof.runs.job import Job, Outcomes, once_a_job
from cloneproof.runs.native.library import KernelRecord, call, record
from cloneproof.runs.native.records import ORDERS, arms_record, chunk_record, family_record
from cloneproof.runs.results import RunResults, played

LAWS: Final = ("coin", "point", "normal")  # families whose rewards add up in law


def blocks_apply(job: Job) -> bool:
    """Whether every level explores and then commits (or agents are chosen uniformly) on rewards that add up in law."""
    mechanism = job.mechanism
    return mechanism.scoring.counts_all and mechanism.uncommitted_part is None and job.market.family.law in LAWS


def play_blocks(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a job to which blocks apply."""
    _play(job, means, streams, results, np.zeros(0, np.int64))


def blocks_of_run(job: Job, run: int) -> tuple[Outcomes, IntArray]:
    """Play one run; return it and its blocks as rows (arm, pulls, sum), by arm: sums are in units of the rewards."""
    _, plans = _records(job)
    trace = np.zeros(3 * (1 + len(plans) * (3 * sum(map(sum, job.copies.values())) + 3)), np.int64)
    outcomes = played(partial(_play, trace=trace), job, run, 1)
    return outcomes, trace[3 : 3 + 3 * trace[0]].reshape(-1, 3)


def _play(job: Job, means: FloatArray, streams: WordArray, results: RunResults, trace: IntArray) -> None:
    arms, plans = _records(job)
    blocks = record("BlockJob", epochs=len(plans), plans=np.array([plan.address for plan in plans]), trace=trace)
    call("play_blocks", arms, blocks, chunk_record(means, streams, results))


@once_a_job
def _records(job: Job) -> tuple[KernelRecord, list[KernelRecord]]:
    """Return the arms, and the plan of each epoch."""
    return arms_record(job, job.mechanism.flat), _plans(job, family_record(job))


def _plans(job: Job, family: KernelRecord) -> list[KernelRecord]:
    """Return `BlockPlan` of `blocks.h` for each epoch. Rounds of exploration are cut at T + 1, which changes no run."""
    mechanism = job.mechanism
    first = 1 if mechanism.flat_restart else 0
    return [
        record(
            "BlockPlan",
            horizon=rounds,
            version=version,
            flat=mechanism.flat,
            uniform=mechanism.uniform_agents,
            award=mechanism.clears_at_award,
            trial=min(mechanism.agent_rounds, rounds + 1),
            explore=min(explore, rounds + 1),
            agent_order=ORDERS[mechanism.rules[0].order],
            arm_order=ORDERS[mechanism.arm.order],
            family=family,
        )
        for version, (rounds, explore) in enumerate(mechanism.flat_epochs(job.market.horizon), first)
    ]
