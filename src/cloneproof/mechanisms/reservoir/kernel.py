"""Reservoirs, with or without a contest of champions: a job as records for `native/slots.h` and `laboratory.h`."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from cloneproof._lib.ticks import ONE
from cloneproof.mechanisms.bandits.kernel import looks_ns
from cloneproof.runs.arrivals import arrivals_of
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Kernel
from cloneproof.runs.native.library import KernelRecord, record
from cloneproof.runs.native.records import (
    IN_BLOCKS,
    NOT_ON_CARDS,
    arms_record,
    arrivals_record,
    family_record,
    native_kernel,
    rounds_of,
    start_seconds,
    unit_of,
)

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.reservoirs import Reservoir

TESTS, INDEX, BARS = range(3)
MOST_STEPS: Final = 1 << 12  # of an index, in more rounds than any run has
MOST_ATTEMPTS: Final = 1 << 40  # of a slot with points, in more rounds than can be played one by one
LONGEST_END: Final = 64  # times the mean: a geometric end from a number of 52 bits comes earlier
_INDEX_NS: Final = (100.0, 20.0)  # of a look at all slots, and at each
VIEW_SECONDS, PAGE_SECONDS = 1e-8, 1e-8  # of a usual core


def reservoir_kernel(mechanism: Reservoir, job: Job) -> Kernel | None:
    """Return what plays slots: on pages, in blocks where a test is one draw, else round by round as sessions do."""
    market, rule = job.market, mechanism.arm
    if market.places:
        return laboratory(mechanism, job)
    if rule.commits:
        known = market.family.law != "own" and not (market.family.law == "normal" and rule.binarise)
        return slots(mechanism, job, blocks=market.family.law in ("coin", "point") and rule.binarise) if known else None
    return slots(mechanism, job, blocks=True) if rule.ranked and market.family.law == "coin" else None


def slots(mechanism: Reservoir, job: Job, blocks: bool) -> Kernel:
    """Return what plays slots round by round, bit for bit as sessions do; or in blocks, with the same law."""
    tests = mechanism.arm.commits
    name = ("slot blocks" if blocks else "slots") if tests else "index on slots"
    records = partial(_records, mechanism, job, blocks)
    card = IN_BLOCKS if name == "slot blocks" else NOT_ON_CARDS
    return native_kernel(name, "play_slots", job, records, _seconds(mechanism, job, name), card)


def _seconds(mechanism: Reservoir, job: Job, name: str) -> float:
    """Return the seconds of a run, less where the kernel skips rounds."""
    agents, arms = len(job.market.agents), job.arms
    if mechanism.agent is None and mechanism.arm.commits:
        return start_seconds(job) + 3e-7 * arms
    looks = _INDEX_NS[0] + arms * _INDEX_NS[1] if mechanism.agent is None else looks_ns(mechanism.agent, agents)
    stepped = start_seconds(job) + 1e-9 * job.market.horizon * looks
    if name == "slot blocks":  # the rounds in which two champions are about even grow with the root of all
        return min(stepped, start_seconds(job) + 1.1e-6 * math.sqrt(agents * job.market.horizon))
    if name == "index on slots":  # a slot has few updates in many rounds, each after a look at all slots
        return min(stepped, 6e-5 * agents * mechanism.arm.draws)
    return stepped


def _records(mechanism: Reservoir, job: Job, blocks: bool) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `SlotPlan` of `slots.h`."""
    market, rule, agent = job.market, mechanism.arm, mechanism.agent
    judge, raw = rule.judge, not rule.binarise
    unit = float(ONE) if raw else unit_of(job)
    most = market.horizon + 1 if market.ends == "at-horizon" else LONGEST_END * market.horizon
    least = judge.parameters[0] if rule.commits else math.inf
    bar = rule.bar
    last, stays = rounds_of(job) if blocks and agent is None else (market.horizon, 0.0)
    plan = record(
        "SlotPlan",
        horizon=last,
        at_random=market.ends == "at-random" and not stays,
        stays=stays,
        flat=agent is None,
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
        width=rule.width or 0.0,
        stake=bar.stake if bar else 0,
        whole=bar.whole if bar else 0,
        part=bar.part if bar else 0.0,
        contest_kl=agent is not None and agent.index == "steady-kl-ucb",
        contest_raw=not (rule if agent is None else agent).binarise,
        after=min(mechanism.skipped_rounds, most),
        turns=min(0 if agent is None else agent.tries, most),
        contest_width=0.0 if agent is None else float(agent.parameters[0]),
        family=family_record(job, unit),
    )
    return arms_record(job, agent is None), plan


def laboratory(mechanism: Reservoir, job: Job) -> Kernel | None:
    """Return what plays a reservoir on pages, on coins; None with a threshold or a drawn end."""
    market, rule = job.market, mechanism.arm
    fits = mechanism.agent is None and market.family.law == "coin" and market.ends == "at-horizon"
    if not fits or rule.threshold is not None or not rule.binarise or not (rule.commits or mechanism.arm.streams):
        return None
    if mechanism.arm.streams:
        turns = mechanism.turns_on(market.places, len(market.agents))
    elif market.late:
        return None
    else:
        turns = 0
    pages, end = market.horizon, mechanism.laboratory_pages(len(market.agents))
    stepped = pages if _counts_later(job) or market.late else min(pages, end)
    seconds = 1e-6 + stepped * (PAGE_SECONDS + VIEW_SECONDS * _filled(job))
    kernel = native_kernel("laboratory", "play_laboratory", job, partial(_page_records, mechanism, job, turns), seconds)
    return replace(kernel, late=mechanism.arm.streams)


def _filled(job: Job) -> int:
    return min(sum(attention > 0 for attention in job.market.places), len(job.market.agents))


def _counts_later(job: Job) -> bool:
    """Whether clicks count after the laboratory."""
    return _filled(job) > 1 or len(job.market.agents) == 1


def _page_records(mechanism: Reservoir, job: Job, turns: int) -> tuple[KernelRecord, KernelRecord]:
    """Return the arms and `PagePlan` of `laboratory.h`."""
    market, agents, views = job.market, len(job.market.agents), mechanism.arm.tries
    plan = record(
        "PagePlan",
        filled=_filled(job),
        horizon=market.horizon,
        blocks=mechanism.arm.draws,
        length=views if mechanism.arm.streams else views * agents,
        end=mechanism.laboratory_pages(agents),
        streams=mechanism.arm.streams,
        turns=turns,
        thinned=_counts_later(job),
        attention=np.array(market.places),
        late=arrivals_record(arrivals_of(market.late, market.horizon)) if market.late else 0,
    )
    return arms_record(job, True), plan
