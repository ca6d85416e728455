"""Mechanisms on slots, with or without a contest of champions: a job as records for `native/slots.h`."""

from __future__ import annotations

import math
from functools import partial
from typing import Final

from cloneproof._lib.arrays import FloatArray, WordArray
from cloneproof._lib.ticks import ONE
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.reservoir.rank import rank_of
from cloneproof.mechanisms.scores.champions import Champions
from cloneproof.runs.job import Job, once_a_job
from cloneproof.runs.native.library import KernelRecord, call, record
from cloneproof.runs.native.records import arms_record, chunk_record, family_record, unit_of
from cloneproof.runs.results import RunResults

TESTS, INDEX, BARS = range(3)
CONTESTS: Final = ("steady-kl-ucb", "steady-ucb")
MOST_STEPS: Final = 1 << 12  # of an index, in more rounds than any run has
MOST_ATTEMPTS: Final = 1 << 40  # of a slot with points, in more rounds than can be played one by one
LONGEST_END: Final = 64  # times the mean: a geometric end from a number of 52 bits comes earlier


def holds_contest(rule: Rule) -> bool:
    """Whether agents under this rule take turns and then compete by a steady index."""
    return rule.index in CONTESTS and not rule.commits and rule.order == "round-robin"


def slots_apply(job: Job) -> bool:
    """Whether the job's mechanism tests slots, flat or before a contest of champions, on rewards the kernel knows."""
    mechanism, agent, rule, family = job.mechanism, job.mechanism.rules[0], job.mechanism.arm, job.market.family
    tests = rule.draws > 0 and rule.commits and rule.index == "mean" and family.law != "own"
    if not tests:
        return False
    if not mechanism.flat and not (holds_contest(agent) and type(mechanism.scoring) is Champions):
        return False
    return family.law != "normal" or not any(level.binarise for level in mechanism.rules)


def slot_blocks_apply(job: Job) -> bool:
    """Whether a test's count and its rewards are one draw besides."""
    one_draw = job.market.family.law in ("coin", "point")
    return one_draw and slots_apply(job) and job.mechanism.arm.binarise


def falling_applies(job: Job) -> bool:
    """Whether the job's mechanism ranks slots by the index or by a bar, on coins."""
    mechanism, rule = job.mechanism, job.mechanism.arm
    ranked = rule.slots.falling and rule.index in ("steady-kl-ucb", "bars")
    return mechanism.flat and ranked and job.market.family.law == "coin"


def play_slots(job: Job, means: FloatArray, streams: WordArray, results: RunResults, blocks: bool = False) -> None:
    """Play runs round by round: payoffs are bit for bit those of `simulate_run`. Or in blocks, with the same law."""
    call("play_slots", *(_of_blocks if blocks else _of_steps)(job), chunk_record(means, streams, results))


def _records(job: Job, blocks: bool) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `SlotPlan` of `slots.h`."""
    market, mechanism, rule, agent = job.market, job.mechanism, job.mechanism.arm, job.mechanism.rules[0]
    judge, raw = rank_of(rule), not rule.binarise
    unit = float(ONE) if raw else unit_of(job)
    most = market.horizon + 1 if market.ends == "at-horizon" else LONGEST_END * market.horizon
    least = judge.parameters[0] if rule.commits else math.inf
    bar = mechanism.bar
    plan = record(
        "SlotPlan",
        horizon=market.horizon,
        at_random=market.ends == "at-random",
        flat=mechanism.flat,
        draws=rule.draws,
        timetable=rule.commits,
        ranked=TESTS if rule.commits else BARS if bar else INDEX,
        start=float(judge.start),
        purse=min(judge.purse, most),
        origin=judge.origin if raw else judge.origin // ONE,
        steps=1 if rule.commits else MOST_ATTEMPTS if bar else MOST_STEPS,
        raw=raw,
        blocks=blocks,
        least=float(least),
        width=0.0 if rule.commits or bar else float(rule.parameters[0]),
        stake=bar.stake if bar else 0,
        whole=bar.whole if bar else 0,
        part=bar.part if bar else 0.0,
        contest_kl=agent.index == "steady-kl-ucb",
        contest_raw=not agent.binarise,
        after=min(mechanism.scoring.skipped_rounds, most),
        turns=min(mechanism.agent_rounds, most),
        contest_width=0.0 if mechanism.flat else float(agent.parameters[0]),
        family=family_record(job, unit),
    )
    return arms_record(job, mechanism.flat), plan


@once_a_job
def _of_blocks(job: Job) -> tuple[KernelRecord, KernelRecord]:
    return _records(job, True)


@once_a_job
def _of_steps(job: Job) -> tuple[KernelRecord, KernelRecord]:
    return _records(job, False)


play_slot_blocks: Final = partial(play_slots, blocks=True)
