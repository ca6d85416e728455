"""Mechanisms on slots: one loop that shows the slot of lowest rank, compiled with the functions of a `Rank`.

The loop is that of `mechanisms.online.slots.SlotLevel` with rewards that arrive at once: slots of all agents, ranked by
tests, by an index or by how often they have failed a bar; or tests of each agent's own slots before a contest of their
champions. Until a slot is judged it is shown on, so these pulls are one step: stepped to the bits of a session or, if
their rewards and their count are one draw, a block. In a market that ends at random each run has its own length.
"""

# mypy: disable-error-code="no-untyped-def,name-defined"
# ruff: noqa: ANN001, ANN002, ANN201, ANN202, F821 (compiled functions are typed by their arguments; templates have open names)
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray, WordArray
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.contest import (
    BERNOULLI,
    CONTENDER,
    coins_at,
    contest_rounds,
    holds_contest,
    next_reward,
    rounds_in_turn,
    shows_one,
)
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.compiling import (
    average,
    compiled,
    inlined,
    plus,
    ticks,
    times,
    uncounted,
    uniform,
    word,
)
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.runs import (
    NONE,
    ONE,
    ZERO,
    ArmTable,
    RunResults,
    arm_table,
    begin_run,
    close_run,
    first_arms,
    level_stream,
    pay,
    rank_by_word,
    streams_of,
)
from cloneproof.engines.monte_carlo.stepping.functions import FAMILIES, Function, once, specialised, with_callees
from cloneproof.engines.reference import SESSION_STREAM
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.slots import FRESH, rank_of
from cloneproof.mechanisms.online.streams import (
    COIN_STREAM,
    END_STREAM,
    FALLBACK_STREAM,
    ORDER_STREAM,
    SLOT_STREAM,
    TIE_STREAM,
    last_round,
)
from cloneproof.mechanisms.scores.champions import Champions

SLOT: Final = np.dtype(
    [
        ("arm", "i8"), ("number", "i8"), ("steps", "i8"),  # a number of its own, and its steps so far, to name blocks
        ("pulls", "i8"), ("high", "i8"), ("low", "i8"),  # rewards to be judged by: how many, and their exact sum
        ("rank", "f8"), ("purse", "i8"),  # as in a session
        ("coins", "u8"),
    ],
    align=True,
)  # fmt: skip
SEAT: Final = np.dtype([("word", "u8"), ("rank", "i8")], align=True)
ENOUGH: Final = np.int64(1 << 60)  # points, for more rounds than any run has
MOST_STEPS: Final = 1 << 12  # of an index, in more rounds than any run has
MOST_ATTEMPTS: Final = 1 << 40  # of a slot with points, in more rounds than can be played one by one
LARGEST_SUM = 2.0**61  # of rewards, that an exact sum can hold
LONGEST_END = 64  # times the mean: a geometric end from a number of 52 bits comes earlier
FARTHEST = 9.0  # standard deviations of a Gaussian reward from a uniform number of 52 bits, at most
_COINS = np.int64(1)  # where the coins of a block's rewards, or of their points, leave its stream

_last_round = with_callees(last_round)


class SlotPlan(NamedTuple):
    """A job as numbers. Rounds are cut at T + 1, or far above a mean of T, which changes no run."""

    agents: int
    horizon: int
    at_random: bool  # whether the horizon is the mean of a drawn end
    draws: int
    timetable: bool  # whether draws come in turn; else their order is drawn
    fresh: int  # slots beside the draws: 1 if the fallback is a fresh draw
    start: float  # rank and purse of a slot without rewards
    purse: int
    origin_high: int  # what its sum is counted from
    origin_low: int
    steps: int  # that a slot has at most
    raw: bool  # whether rewards are judged as they are
    flat: bool
    by_kl: bool  # whether a contest is by KL-UCB
    contest_raw: bool
    after: int  # rounds of each agent before its champion's rewards count
    turns: int  # rounds of each agent before indices decide
    width: float
    quantile: Function
    blocks: bool  # whether steps are block draws


class SlotTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), what each agent is paid, and scratch."""

    arms: ArmTable
    first: IntArray
    paid: IntArray
    order: IntArray  # of agents
    seats: ArmTable  # the order of slots, if that is drawn
    slots: ArmTable
    contenders: ArmTable


def _most_rounds(job: Job) -> int:
    """Return more rounds than any run has."""
    return job.market.horizon + 1 if job.market.ends == "at-horizon" else LONGEST_END * job.market.horizon


def slot_plan(job: Job, mechanism: Mechanism, blocks: bool) -> SlotPlan:
    """Return the plan of a job whose mechanism is on slots: of all agents side by side, or before a contest."""
    family, agent, rule, judge = job.market.family, mechanism.rules[0], mechanism.arm, rank_of(mechanism.arm)
    most, origin = _most_rounds(job), divmod(judge.origin << 30, 1 << 60)
    return SlotPlan(
        agents=len(job.market.agents),
        horizon=job.market.horizon,
        at_random=job.market.ends == "at-random",
        draws=rule.draws,
        timetable=rule.commits,
        fresh=int(rule.commits and rule.slots.fresh),
        start=float(judge.start),
        purse=min(judge.purse, most),
        origin_high=origin[0],
        origin_low=origin[1],
        steps=1 if rule.commits else MOST_ATTEMPTS if rule.slots.bar else MOST_STEPS,
        raw=not rule.binarise,
        flat=mechanism.flat,
        by_kl=agent.index == "steady-kl-ucb",
        contest_raw=not agent.binarise,
        after=min(mechanism.scoring.skipped_rounds(0, rule.explore, False), most),
        turns=min(mechanism.agent_rounds, most),
        width=0.0 if mechanism.flat else float(agent.parameters[0]),
        quantile=Function.of(FAMILIES, family.quantile, family.parameters),
        blocks=blocks,
    )


@compiled
def drawn_arm(tables, levels, i, draw):
    """Return the arm that draw number `draw` of agent i holds."""
    first = tables.first
    draws = word(level_stream(levels, ZERO, i + 1), SLOT_STREAM)
    return first[i] + np.int64(uniform(draws, draw) * (first[i + 1] - first[i]))


@compiled
def order_agents(plan, order, levels):
    """Draw the order of the agents in the timetable."""
    stream = word(level_stream(levels, ZERO, ZERO), ORDER_STREAM)
    for i in range(plan.agents):  # by insertion: agents are few
        at, value = i, word(stream, i)
        while at > 0 and word(stream, order[at - 1]) > value:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i


@compiled
def _order_slots(plan, seats, levels):
    """Draw the order of all slots."""
    ties = word(level_stream(levels, ZERO, ZERO), TIE_STREAM)
    for k in range(len(seats)):
        seats[k].word = word(ties, np.uint64((k // plan.draws << 32) + k % plan.draws))
    rank_by_word(seats, 0, len(seats))


@compiled
def _open_slot(plan, tables, streams, agent, k):
    """Draw the slot at place k of the order: of one agent, or of all (-1)."""
    slot, level, width = tables.slots[k], level_stream(streams.levels, ZERO, ZERO), plan.agents if agent < 0 else ONE
    number, owner, draw = k, agent, k // width
    slot.rank, slot.purse = plan.start, plan.purse
    if k == plan.draws * width:  # the fresh draw
        draw, slot.rank, slot.purse = np.int64(plan.draws), FRESH, 0
        if agent < 0:
            owner = tables.order[np.int64(word(word(level, FALLBACK_STREAM), ZERO) % np.uint64(width))]
    elif not plan.timetable:
        number = tables.seats[k].rank
        owner, draw = number // plan.draws, number % plan.draws
    elif agent < 0:
        owner = tables.order[k % width]
    slot.arm = drawn_arm(tables, streams.levels, owner, draw)
    slot.number, slot.steps, slot.pulls, slot.high, slot.low = number, 0, 0, 0, 0
    if not plan.blocks:
        points = word(word(level, COIN_STREAM), np.uint64((owner << 32) + draw))
        slot.coins = coins_at(streams.coins, owner, 1 + draw) if plan.timetable else points


@compiled
def _pull(plan, tables, slot, number, pulls, part):
    """Pull a slot's arm: block `number` of its tape, if that is a draw.

    Returns the sum to be judged by, and how many clicks earn a point more, as each does with probability `part`.
    """
    arm = tables.arms[slot.arm]
    high, low, count, more = ZERO, ZERO, ZERO, ZERO
    if plan.blocks:
        stream, coins = block_stream(arm.tape, number), plan.quantile.which == BERNOULLI
        arm.pulls += pulls
        count = binomial(pulls, arm.mean, stream if coins else word(stream, _COINS))
        if part > 0.0:
            more = binomial(count, part, word(stream, _COINS))
        high, low = (count, ZERO) if coins else times(pulls, *ticks(arm.mean))
        pay(tables.paid, arm.agent, high, low)
        return count, ZERO, more
    for k in range(slot.pulls, slot.pulls + pulls):
        reward = next_reward(plan, arm)
        if not plan.raw and shows_one(reward, slot.coins, k):
            count += 1
            more += np.int64(part > 0.0 and uniform(slot.coins, k) < part)
        if plan.quantile.which == BERNOULLI:
            high += np.int64(reward)
        else:
            high, low = plus(high, low, *ticks(reward))
    pay(tables.paid, arm.agent, high, low)
    if plan.raw:
        return high, low, more
    return count, ZERO, more


@inlined
def _behind(slots, k, other):
    """Whether a slot is shown after another one, which is another place of their order."""
    return slots[k].rank > slots[other].rank or (slots[k].rank == slots[other].rank and k > other)


@compiled
def _front(slots, count):
    """Return the slot to show, and the one after it (the same where there is one only)."""
    best, second = ZERO, ZERO
    for k in range(1, count):
        if _behind(slots, best, k):
            best, second = np.int64(k), best
        elif second == best or _behind(slots, second, k):
            second = np.int64(k)
    return best, second


@inlined
def show_slots(plan, tables, streams, agent, left, parameters, after, points):
    """Show the slot of lowest rank for the rounds that are left: of one agent, or of all (-1).

    Returns the arm of the one that is judged for good, or -1 if the rounds do not suffice to know it.
    """
    plan, tables = uncounted(plan), uncounted(tables)
    slots, draws, second = tables.slots, plan.draws * (plan.agents if agent < 0 else ONE), ZERO
    count, shown = draws + plan.fresh, ZERO
    # Slots that were never shown come first, in their order, and are drawn when they are shown. Only then are slots
    # compared. Only the rank of the one that is shown changes, and never falls, so it is shown until it is behind.
    while True:
        untried = shown < count
        if untried:
            k = shown
            _open_slot(plan, tables, streams, agent, k)
            shown += 1
        else:
            k, second = _front(slots, count)
        slot = slots[k]
        while True:
            if slot.purse == 0:
                if left > 0:
                    _pull(plan, tables, slot, draws + 1, left, 0.0)  # no coin of these is looked at
                return slot.arm
            if left == 0:
                return NONE
            pulls, (whole, part) = min(left, slot.purse), points(slot.rank, *parameters)
            high, low, more = _pull(plan, tables, slot, slot.number * plan.steps + slot.steps, pulls, part)
            left -= pulls
            slot.steps += 1
            slot.pulls += pulls
            slot.high, slot.low = plus(slot.high, slot.low, high, low)
            slot.purse -= pulls
            if whole > 0:
                slot.purse += ENOUGH if high > ENOUGH // whole - 1 else high * whole + more
            if slot.purse == 0:
                high, low = plus(slot.high, slot.low, -plan.origin_high, -plan.origin_low)
                slot.rank, slot.purse = after(slot.pulls, average(high, low, ONE), slot.rank, *parameters)
            if slot.rank > plan.start if untried else k != second and _behind(slots, k, second):
                break


@compiled
def _open_run(plan, tables, streams, run_stream, means):
    """Prepare the tables of a run for its first round; return its last one."""
    begin_run(tables.arms, len(tables.arms), streams.tapes, means)
    tables.paid[:] = 0
    if not plan.timetable:
        _order_slots(plan, tables.seats, streams.levels)
    elif plan.flat:
        order_agents(plan, tables.order, streams.levels)
    if not plan.at_random:
        return plan.horizon
    session = word(np.uint64(0), word(run_stream, SESSION_STREAM) >> np.uint64(1))
    return _last_round(plan.horizon, uniform(word(session, END_STREAM), ZERO))


def _flat(sources):
    def run_slots(plan, tables, parameters, means, run_streams, results):
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            horizon = _open_run(plan, tables, streams, run_streams[r], means[r])
            show_slots(plan, tables, streams, NONE, horizon, parameters, after, points)
            close_run(tables.arms, tables.paid, results, r)

    return run_slots


def _before_contest(sources):
    def run_contest(plan, tables, parameters, means, run_streams, results):
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            horizon = _open_run(plan, tables, streams, run_streams[r], means[r])
            level = level_stream(streams.levels, ZERO, ZERO)
            for i in range(plan.agents):
                rounds = min(rounds_in_turn(plan, level, i, horizon), plan.after)
                arm = show_slots(plan, tables, streams, np.int64(i), rounds, parameters, after, points)
                tables.contenders[i].arm = arm
            contest_rounds(plan, tables, streams, horizon, index, exceeds)
            close_run(tables.arms, tables.paid, results, r)

    return run_contest


def _no_points(rank, *parameters):
    return ZERO, 0.0


@once
def _kernel(template: Callable[[int], Any], *functions: Any) -> Any:  # noqa: ANN401
    """Compile the loop with the functions of a rank, its index and the agents' rule, once for all their parameters."""
    judge, points, priority, index, exceeds = map(with_callees, functions)

    def by_index(pulls, total, rank, *parameters):
        return judge(pulls, total, rank, priority, *parameters)

    after, name = judge if priority is None else inlined(by_index), functions[0].__name__
    if index is None:
        return specialised(template, name, True, after=after, points=points)
    name += "_" + functions[3].__module__.rpartition(".")[2]
    return specialised(template, name, True, after=after, points=points, index=index, exceeds=exceeds)


def _with_numbers(mechanism: Mechanism) -> tuple[Any, tuple[Any, ...]]:
    """Return the kernel of a mechanism, and the parameters that the functions of its rank read."""
    judge, agent = rank_of(mechanism.arm), mechanism.agent
    index = next(filter(callable, judge.parameters), None)
    functions = judge.after, judge.points or _no_points, index
    if agent is None:
        kernel = _kernel(_flat, *functions, None, None)
    else:
        kernel = _kernel(_before_contest, *functions, agent.priority, agent.exceeds)
    return kernel, tuple(each for each in judge.parameters if each is not index)


def slots_apply(job: Job) -> bool:
    """Whether the job's mechanism tests slots, flat or before a contest of champions, on rewards the kernel knows."""
    mechanism, agent, rule, family = job.mechanism, job.mechanism.rules[0], job.mechanism.arm, job.market.family
    tests = rule.draws > 0 and rule.commits and rule.index == "mean" and family.law != "own"
    if not tests or mechanism.in_epochs or mechanism.fallback is not None:
        return False
    if not mechanism.flat and not (holds_contest(agent) and type(mechanism.scoring) is Champions):
        return False
    if family.law != "normal":
        return True
    coins = any(level.binarise for level in mechanism.rules)
    return not coins and job.market.horizon * (1.0 + FARTHEST * family.parameters[0]) < LARGEST_SUM


def slot_blocks_apply(job: Job) -> bool:
    """Whether a test's count and its rewards are one draw besides."""
    one_draw = job.market.family.law in ("coin", "point")
    return one_draw and slots_apply(job) and job.mechanism.arm.binarise


def falling_applies(job: Job) -> bool:
    """Whether the job's mechanism ranks slots by the index or by a bar, on coins."""
    mechanism, rule = job.mechanism, job.mechanism.arm
    alone = mechanism.flat and mechanism.fallback is None
    ranked = rule.slots.falling and rule.index in ("steady-kl-ucb", "bars")
    return alone and ranked and job.market.family.law == "coin"


def play_slots(job: Job, means: FloatArray, streams: WordArray, results: RunResults, blocks: bool = False) -> None:
    """Play runs round by round: payoffs are bit for bit those of `simulate_run`. Or in blocks, with the same law."""
    plan = slot_plan(job, job.mechanism, blocks)
    kernel, parameters = _with_numbers(job.mechanism)
    slots = plan.draws * (plan.agents if plan.flat else 1) + plan.fresh
    shown = min(slots, _most_rounds(job) // plan.purse + 2) if plan.timetable else slots
    tables = SlotTables(
        arm_table(job, plan.flat),
        first_arms(job),
        np.zeros((plan.agents, 2), np.int64),
        np.zeros(plan.agents, np.int64),
        np.zeros(0 if plan.timetable else slots, SEAT),
        np.zeros(shown, SLOT),
        np.zeros(plan.agents, CONTENDER),
    )
    kernel(plan, tables, parameters, means, streams, results)


play_slot_blocks: Final = partial(play_slots, blocks=True)
