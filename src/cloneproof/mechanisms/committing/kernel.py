"""Mechanisms that explore and then commit, in blocks of rewards: a job as records for `native/blocks.h`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from cloneproof._lib.arrays import IntArray
from cloneproof.mechanisms.bandits.kernel import stepping
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Kernel, Outcomes
from cloneproof.runs.native.library import KernelRecord, record
from cloneproof.runs.native.records import (
    IN_BLOCKS,
    ORDERS,
    arms_record,
    family_record,
    native_kernel,
    start_seconds,
)

if TYPE_CHECKING:
    from cloneproof.mechanisms.committing.committing import Committing

LAWS: Final = ("coin", "point", "normal")  # families whose rewards add up in law


def committing_kernel(mechanism: Committing, job: Job) -> Kernel | None:
    """Return what plays levels that explore and then commit: in blocks where rewards add up in law, else in steps."""
    if job.market.places or job.market.ends == "at-random":
        return None
    if mechanism.choice == "commit" and job.market.family.law in LAWS:
        return _kernel(mechanism, job, np.zeros(0, np.int64))
    return stepped_epochs(mechanism, job)


def stepped_epochs(mechanism: Committing, job: Job) -> Kernel | None:
    """Return what plays rounds one by one, as sessions do."""
    epochs = [(own.rounds, own.mechanism.arm_rounds) for own in mechanism.epochs(job.market.horizon)]
    return stepping(mechanism.rules, job, award=mechanism.clears, epochs=epochs if mechanism.power is not None else ())


def blocks_of_run(mechanism: Committing, job: Job, run: int) -> tuple[Outcomes, IntArray]:
    """Play one run; return it and its blocks as rows (arm, pulls, sum), by arm: sums are in units of the rewards."""
    epochs = len(mechanism.epochs(job.market.horizon))
    trace = np.zeros(3 * (1 + epochs * (3 * job.arms + 3)), np.int64)
    outcomes = _kernel(mechanism, job, trace).play(run, 1)
    return outcomes, trace[3 : 3 + 3 * trace[0]].reshape(-1, 3)


def _kernel(mechanism: Committing, job: Job, trace: IntArray) -> Kernel:
    seconds = start_seconds(job) + 3e-7 * job.arms
    return native_kernel("blocks", "play_blocks", job, partial(_records, mechanism, job, trace), seconds, IN_BLOCKS)


def _records(mechanism: Committing, job: Job, trace: IntArray) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `BlockJob` of `blocks.h`: a plan for each epoch.

    Rounds of exploration are cut at T + 1, which changes no run.
    """
    family = family_record(job)
    plans = [
        record(
            "BlockPlan",
            horizon=own.rounds,
            version=own.number,
            flat=mechanism.agent is None,
            uniform=mechanism.uniform,
            award=mechanism.clears,
            trial=min(mechanism.agent_rounds, own.rounds + 1),
            explore=min(own.mechanism.arm_rounds, own.rounds + 1),
            agent_order=ORDERS[mechanism.rules[0].order],
            arm_order=ORDERS[mechanism.arm.order],
            family=family,
        )
        for own in mechanism.epochs(job.market.horizon)
    ]
    addresses = np.array([plan.address for plan in plans])
    blocks = record("BlockJob", epochs=len(plans), plans=addresses, trace=trace)
    return arms_record(job, mechanism.agent is None), KernelRecord(blocks.words, (*blocks.kept, plans))
