"""Slots of all agents side by side, ranked by the KL-UCB index or by how often each has failed a bar.

Between two updates of its index a slot is pulled on, and one with a balance of W points has W pulls before it can fail.
So these rewards are one binomial draw, or stepped to the bits of a session. In a market that ends at random each run
has its own length.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import IntArray
from cloneproof._schedules import next_update
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.blocks.slots import drawn_arm
from cloneproof.engines.monte_carlo.compiling import compiled, source_stamp, uniform, word
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs, run_streams
from cloneproof.engines.monte_carlo.runs import (
    ZERO,
    ArmTable,
    RunResults,
    arm_table,
    begin_run,
    close_run,
    first_arms,
    level_stream,
    pay,
    streams_of,
)
from cloneproof.engines.monte_carlo.stepping.functions import with_callees
from cloneproof.engines.reference import SESSION_STREAM
from cloneproof.mechanisms.arithmetic import kl_upper_bound
from cloneproof.mechanisms.online.streams import COIN_STREAM, END_STREAM, TIE_STREAM, last_round

SLOT: Final = np.dtype(
    [
        ("arm", "i8"), ("order", "u8"),  # ties go to the lower order
        ("pulls", "i8"), ("count", "i8"), ("look", "i8"), ("looks", "i8"),  # the next look, and how many there were
        ("index", "f8"),  # minus the failures, if there are bars; the balance is then what is left to the next look
        ("coins", "u8"),
    ],
    align=True,
)  # fmt: skip
BAR: Final = np.dtype([("stake", "i8"), ("whole", "i8"), ("part", "f8")], align=True)  # fields of `Bar`
ENOUGH: Final = np.int64(1 << 60)  # points, for more rounds than any run has
_COINS: Final = np.int64(1)  # where the rounding of a block's points leaves its stream
MOST_LOOKS: Final = 1 << 12  # of an index, in more rounds than any run has
MOST_BLOCKS: Final = 1 << 40  # of a slot with a balance, in more rounds than can be played one by one

_index, _last_round, _next_update = with_callees(kl_upper_bound), with_callees(last_round), with_callees(next_update)


class FallingPlan(NamedTuple):
    """A job as numbers."""

    agents: int
    draws: int
    horizon: int
    at_random: bool  # whether the horizon is the mean of a drawn end
    width: float
    looks: int  # that a slot has at most
    blocks: bool


class FallingTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), what each agent is paid, all slots, and bars, if any."""

    arms: ArmTable
    first: IntArray
    paid: IntArray
    slots: ArmTable
    bars: ArmTable


@compiled
def _draw_slots(plan, tables, levels):
    """Draw the arm that each slot holds, and its place in the order that breaks ties."""
    level = level_stream(levels, ZERO, ZERO)
    ties, coins = word(level, TIE_STREAM), word(level, COIN_STREAM)
    for i in range(plan.agents):
        for draw in range(plan.draws):
            slot = tables.slots[i * plan.draws + draw]
            slot.arm = drawn_arm(tables, levels, np.int64(i), np.int64(draw))
            slot.order = word(ties, np.uint64((i << 32) + draw))
            slot.pulls, slot.count, slot.look, slot.looks, slot.index = 0, 0, 1, 0, np.inf
            if len(tables.bars):
                slot.coins = word(coins, np.uint64((i << 32) + draw))
                slot.look, slot.index = tables.bars[0].stake, 0.0


@compiled
def _ahead(slot, other):
    """Whether a slot is played before another one."""
    return slot.index > other.index or (slot.index == other.index and slot.order < other.order)


@compiled
def _leaders(slots):
    """Return the slot to play, and the one after it (the same where there is one only)."""
    best, second = ZERO, ZERO
    for k in range(1, len(slots)):
        if _ahead(slots[k], slots[best]):
            best, second = np.int64(k), best
        elif second == best or _ahead(slots[k], slots[second]):
            second = np.int64(k)
    return best, second


@compiled
def _pull(plan, tables, k, pulls):
    """Pull slot k `pulls` times, and update its index or its balance if that is due."""
    # An index changes only after certain numbers of rewards (looks), and a balance of W points is not used up before W
    # pulls. The caller asks for no pulls beyond the next look, so all these pulls are made at one index. With blocks
    # their rewards are a single binomial draw, from a stream named by slot and look.
    slot = tables.slots[k]
    arm, count, bar, part = tables.arms[slot.arm], ZERO, ZERO, 0.0
    if len(tables.bars):
        bar = np.int64(min(-slot.index, len(tables.bars) - 1))
        part = tables.bars[bar].part
    more = ZERO  # clicks that earn a point more
    if plan.blocks:
        stream = block_stream(arm.tape, k * plan.looks + slot.looks)
        count = binomial(pulls, arm.mean, stream)
        more = binomial(count, part, word(stream, _COINS))
    else:
        for pull in range(pulls):
            if uniform(arm.tape, arm.pulls + pull) < arm.mean:
                count += 1
                more += np.int64(part > 0.0 and uniform(slot.coins, slot.pulls + pull) < part)
    arm.pulls += pulls
    slot.pulls += pulls
    slot.count += count
    pay(tables.paid, arm.agent, count, ZERO)
    if slot.pulls == slot.look:
        slot.looks += 1
        if len(tables.bars):
            _credit(tables, slot, bar, count, more)
        else:  # an index never rises, so the new one counts only if it is lower
            slot.look = _next_update(slot.pulls)
            slot.index = min(slot.index, _index(slot.count / slot.pulls, float(slot.pulls), plan.width))


@compiled
def _credit(tables, slot, bar, count, more):
    """Give a slot the points of its clicks, `more` of which earn one more; without any it has failed once more."""
    whole = tables.bars[bar].whole
    points = ENOUGH if count > ENOUGH // whole - 1 else count * whole + more
    if points == 0:
        slot.index -= 1.0
        points = tables.bars[min(bar + 1, len(tables.bars) - 1)].stake
    slot.look += points


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_falling(plan, tables, means, run_streams, results):
        arms, slots = tables.arms, tables.slots
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            begin_run(arms, len(arms), streams.tapes, means[r])
            tables.paid[:] = 0
            _draw_slots(plan, tables, streams.levels)
            left = plan.horizon
            if plan.at_random:
                session = word(np.uint64(0), word(run_streams[r], SESSION_STREAM) >> np.uint64(1))
                left = _last_round(plan.horizon, uniform(word(session, END_STREAM), ZERO))
            # Only the played slot's index changes, and it only falls. So the slot is played until it is behind the
            # second one, and all slots are compared only then.
            while left > 0:
                best, second = _leaders(slots)
                while left > 0:
                    pulls = min(left, slots[best].look - slots[best].pulls)
                    _pull(plan, tables, best, pulls)
                    left -= pulls
                    if best != second and not _ahead(slots[best], slots[second]):
                        break
            close_run(arms, tables.paid, results, r)

    return run_falling


run_falling = _cached(source_stamp())
"""Compiled once for these sources."""


def falling_applies(job: Job) -> bool:
    """Whether the job's mechanism ranks slots by the index or by bars, on coins."""
    mechanism, rule = job.mechanism, job.mechanism.arm
    alone = mechanism.flat and mechanism.fallback is None
    ranked = rule.slots.falling and rule.index in ("steady-kl-ucb", "bars")
    return alone and ranked and job.market.family.law == "coin"


def falling_outcomes(job: Job, first: int, count: int, blocks: bool = True) -> Outcomes:
    """Play runs first, .., first + count - 1; without blocks, payoffs are bit for bit those of `simulate_run`."""
    market, rule = job.market, job.mechanism.arm
    at_random = market.ends == "at-random"
    bars = np.array(list(rule.slots.bars), BAR)
    width, looks = (0.0, MOST_BLOCKS) if len(bars) else (float(rule.parameters[0]), MOST_LOOKS)
    plan = FallingPlan(len(market.agents), rule.draws, market.horizon, at_random, width, looks, blocks)
    paid, slots = np.zeros((plan.agents, 2), np.int64), np.zeros(plan.agents * plan.draws, SLOT)
    tables = FallingTables(arm_table(job, True), first_arms(job), paid, slots, bars)
    results = RunResults.empty(count, plan.agents)
    run_falling(plan, tables, means_of_runs(job, first, count), run_streams(job.seed, first, count), results)
    return results.outcomes(market.share)
