"""Mechanisms that test slots: the flat reservoir, and a contest of the agents' champions.

Tests are stepped or, if a test's count and its rewards are one draw, drawn in blocks. A contest is stepped too; while a
champion's index is surely above the others', no index is computed. With tests in blocks and a contest by KL-UCB, so are
the pulls that a champion has before others even if all of them fail.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import IntArray
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.blocks.successes import (
    LOW,
    MANY,
    NEAR_ONE,
    SHORT,
    SURE,
    UNKNOWN,
    index_of,
    nearby_index,
    play_block,
    play_to_success,
    sure_pulls,
)
from cloneproof.engines.monte_carlo.compiling import (
    TICK,
    average,
    compiled,
    inlined,
    plus,
    source_stamp,
    ticks,
    times,
    uncounted,
    uniform,
    word,
)
from cloneproof.engines.monte_carlo.job import Job, Outcomes, end_of_run, means_of_runs, run_streams
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
    streams_of,
)
from cloneproof.engines.monte_carlo.stepping.functions import FAMILIES, Function, reward_at
from cloneproof.market.rewards import bernoulli
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.levels import TICK_BITS
from cloneproof.mechanisms.online.levels import ticks as ticks_of
from cloneproof.mechanisms.online.streams import (
    CONTEST_PLACE,
    EXPLORE_STREAM,
    FALLBACK_STREAM,
    ORDER_STREAM,
    SLOT_STREAM,
    TIE_STREAM,
)
from cloneproof.mechanisms.scores.champions import Champions

BERNOULLI: Final = FAMILIES.index(bernoulli.quantile)
FLAT, KL, UCB = range(3)
CONTESTS: Final = {"steady-kl-ucb": KL, "steady-ucb": UCB}
CONTENDER: Final = np.dtype(
    [
        ("arm", "i8"),  # the row of the champion
        ("high", "i8"), ("low", "i8"), ("pulls", "i8"), ("index", "f8"),  # what counts in the contest, and its index
        ("coins", "u8"),
        ("failures", "i8"), ("level", "f8"), ("pause", "i8"),  # before the next success, its index then, and scratch
    ],
    align=True,
)  # fmt: skip
_COINS = np.int64(1)  # where the coins of a block of sure rewards leave its stream
LARGEST_SUM = 2.0**61  # of rewards, that an exact sum can hold
LONGEST_END = 64  # times the mean: a geometric end from a number of 52 bits comes earlier
FARTHEST = 9.0  # standard deviations of a Gaussian reward from a uniform number of 52 bits, at most


class SlotPlan(NamedTuple):
    """A job as numbers. Rounds are cut at T + 1, or far above a mean of T, which changes no run."""

    agents: int
    horizon: int
    draws: int
    explore: int
    passing: bool  # whether there is a threshold, an exact sum
    threshold_high: int
    threshold_low: int
    fresh: bool  # whether the fallback is a fresh draw
    raw: bool  # whether tests sum rewards as they are
    contest: int  # FLAT, KL or UCB
    contest_raw: bool
    after: int  # rounds of each agent before its champion's rewards count
    turns: int  # rounds of each agent before indices decide
    width: float
    quantile: Function
    blocks: bool  # whether tests are block draws


class SlotTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), what each agent is paid, and scratch."""

    arms: ArmTable
    first: IntArray
    paid: IntArray
    order: IntArray
    contenders: ArmTable


def slot_plan(job: Job, mechanism: Mechanism, blocks: bool) -> SlotPlan:
    """Return the plan of a job whose mechanism tests slots: of all agents in one timetable, or before a contest."""
    family, rule, agent = job.market.family, mechanism.arm, mechanism.agent
    most = job.market.horizon + 1 if job.market.ends == "at-horizon" else LONGEST_END * job.market.horizon
    high, low = divmod(ticks_of(rule.slots.threshold or 0), 1 << TICK_BITS)
    return SlotPlan(
        agents=len(job.market.agents),
        horizon=job.market.horizon,
        draws=rule.draws,
        explore=min(rule.explore, most),
        passing=rule.slots.threshold is not None,
        threshold_high=high,
        threshold_low=low,
        fresh=rule.slots.fallback == "draw",
        raw=not rule.binarise,
        contest=FLAT if agent is None else CONTESTS[agent.index],
        contest_raw=agent is not None and not agent.binarise,
        after=0 if agent is None else min(mechanism.scoring.skipped_rounds(0, rule.explore, False), most),
        turns=0 if agent is None else min(agent.explore, most),
        width=0.0 if agent is None else float(agent.parameters[0]),
        quantile=Function.of(FAMILIES, family.quantile, family.parameters),
        blocks=blocks,
    )


@inlined
def next_reward(plan, arm):
    """Return the next reward of the arm's tape."""
    arm.pulls += 1
    return reward_at(plan.quantile, arm.mean, uniform(arm.tape, arm.pulls - 1))


@inlined
def shows_one(reward, coins, pull):
    """Whether the coin of a reward shows 1; rewards of 0 or 1 need no draw."""
    return reward >= 1.0 or (reward > 0.0 and uniform(coins, pull) < reward)


@compiled
def pull(plan, tables, a, number, pulls, coins):
    """Pull arm a for slot `number`, whose coins are numbered from 0; return the score of the pulls."""
    arm = tables.arms[a]
    high, low, count = ZERO, ZERO, ZERO
    if plan.blocks:
        stream, bernoulli = block_stream(arm.tape, number), plan.quantile.which == BERNOULLI
        arm.pulls += pulls
        count = binomial(pulls, arm.mean, stream if bernoulli else word(stream, _COINS))
        high, low = (count, ZERO) if bernoulli else times(pulls, *ticks(arm.mean))
        pay(tables.paid, arm.agent, high, low)
        return count, ZERO
    for k in range(pulls):
        reward = next_reward(plan, arm)
        if not plan.raw and shows_one(reward, coins, k):
            count += 1
        if plan.quantile.which == BERNOULLI:
            high += np.int64(reward)
        else:
            high, low = plus(high, low, *ticks(reward))
    pay(tables.paid, arm.agent, high, low)
    if plan.raw:
        return high, low
    return count, ZERO


@compiled
def drawn_arm(tables, levels, i, draw):
    """Return the arm that draw number `draw` of agent i holds."""
    first = tables.first
    draws = word(level_stream(levels, ZERO, i + 1), SLOT_STREAM)
    return first[i] + np.int64(uniform(draws, draw) * (first[i + 1] - first[i]))


@compiled
def coins_at(coins, i, place):
    """Return the stream of the coins of agent i at a place, as `mechanisms.online.streams.Coins`."""
    return word(word(word(coins, ZERO), i), place)


@compiled
def above(high, low, other_high, other_low):
    """Whether a score is above another one."""
    return high > other_high or (high == other_high and low > other_low)


@compiled
def passes(plan, high, low):
    """Whether the score of a whole test reaches the threshold."""
    return plan.passing and not above(plan.threshold_high, plan.threshold_low, high, low)


@compiled
def contest_rounds(plan, tables, streams):
    """Play all rounds of a run."""
    plan, tables = uncounted(plan), uncounted(tables)
    contenders = tables.contenders
    level = level_stream(streams.levels, ZERO, ZERO)
    for i in range(plan.agents):
        rounds = _rounds_in_turn(plan, level, i)
        arm = scan(plan, tables, streams, np.int64(i), min(rounds, plan.after))
        row = contenders[i]
        row.arm, row.high, row.low, row.pulls = arm, 0, 0, 0
        row.coins = coins_at(streams.coins, i, CONTEST_PLACE)
        row.failures = UNKNOWN
        for _ in range(rounds - plan.after):
            _play(plan, tables, row)
        if row.pulls > 0:
            row.index = _index(plan, row)
    if plan.horizon > plan.turns * plan.agents:
        _contest(plan, tables, word(level, TIE_STREAM))


@compiled
def _rounds_in_turn(plan, level, i):
    """Count agent i's rounds while agents take turns; the horizon may end inside a sweep, whose order is drawn."""
    sweep = plan.horizon // plan.agents
    if sweep >= plan.turns:
        return plan.turns
    stream = word(level, EXPLORE_STREAM)
    own, before = word(word(stream, i), sweep), ZERO
    for k in range(plan.agents):
        other = word(word(stream, k), sweep)
        before += other < own or (other == own and k < i)
    return sweep + np.int64(before < plan.horizon % plan.agents)


@compiled
def scan(plan, tables, streams, agent, rounds):
    """Test the draws of an agent in turn (-1: of all agents, by the schedule), then play the champion.

    Returns the champion's arm, or -1 if the rounds do not suffice for the tests.
    """
    order, width = tables.order, plan.agents if agent < 0 else ONE
    count, done, champion, best, best_high, best_low = plan.draws * width, ZERO, NONE, NONE, ZERO, ZERO
    # Slot after slot, not round after round: a test's pulls are consecutive, and the first test to pass ends them all.
    # The schedule of all agents interleaves their draws: slot s is draw s // agents of agent s % agents in the order.
    for slot in range(count):
        pulls = min(plan.explore, rounds - done)
        if pulls <= 0:
            return NONE
        owner, draw = order[slot % width] if agent < 0 else agent, slot // width
        a = drawn_arm(tables, streams.levels, owner, draw)
        high, low = pull(plan, tables, a, np.int64(slot), pulls, coins_at(streams.coins, owner, 1 + draw))
        done += pulls
        if pulls < plan.explore:
            return NONE
        if passes(plan, high, low):
            champion = a
            break
        if best < 0 or above(high, low, best_high, best_low):
            best, best_high, best_low = a, high, low
    if champion < 0:
        champion = best
        if plan.fresh:
            stream = word(level_stream(streams.levels, ZERO, ZERO), FALLBACK_STREAM)
            owner = order[np.int64(word(stream, ZERO) % np.uint64(plan.agents))] if agent < 0 else agent
            champion = drawn_arm(tables, streams.levels, owner, plan.draws)
    if rounds > done:
        pull(plan, tables, champion, np.int64(count + 1), rounds - done, streams.coins)  # no coin is looked at
    return champion


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
def _play(plan, tables, row):
    """Play a round of a champion in the contest."""
    arm = tables.arms[row.arm]
    reward = next_reward(plan, arm)
    high, low = ticks(reward)
    pay(tables.paid, arm.agent, high, low)
    if plan.contest_raw:
        row.high, row.low = plus(row.high, row.low, high, low)
    else:
        row.high += np.int64(shows_one(reward, row.coins, row.pulls))
    row.pulls += 1


@compiled
def _index(plan, row):
    """Return the priority of `steady_kl_ucb` or `steady_ucb` after some pulls."""
    mean = average(row.high, row.low, row.pulls)
    if plan.contest == KL:
        return index_of(mean, np.float64(row.pulls), plan.width)
    return mean + math.sqrt(plan.width / row.pulls)


@compiled
def _contest(plan, tables, ties):
    """Play the rounds after all turns."""
    contenders = tables.contenders
    leader, second = _leader(plan, contenders, ties, plan.turns * plan.agents)
    skips, draws = plan.blocks and plan.contest == KL and plan.quantile.which == BERNOULLI, ZERO
    t = plan.turns * plan.agents
    # The leader's index changes with its own rewards alone, so others matter only as one number, the second highest
    # index. As long as even failures would leave the leader above it, its rewards are one draw. Low rates are played
    # from one success to the next. Else its index is bounded, and computed only if the bound does not decide.
    while t < plan.horizon:
        row = contenders[leader]
        sure = sure_pulls(plan, row, second, plan.horizon - t) if skips else ONE
        draws += 1
        if sure >= SHORT and (sure * row.high >= MANY * row.pulls or row.high >= LOW * row.pulls):
            play_block(tables, row, sure, draws)
            t += sure
        elif skips and row.high < LOW * row.pulls:
            t += play_to_success(plan, tables, draws, plan.horizon - t)
            leader, second = _leader(plan, contenders, ties, t)
            continue
        else:
            _play(plan, tables, row)
            row.failures = UNKNOWN
            t += 1
        if _surely_above(plan, row, second):
            continue
        row.index = nearby_index(plan, row.high, row.pulls, row.index) if skips else _index(plan, row)
        if not row.index > second:
            leader, second = _leader(plan, contenders, ties, t)


@inlined
def _surely_above(plan, row, second):
    """Whether the index is above another one, by a bound that takes no root, and by far more than rounding.

    It is if the other one, q, is within the bonus: for steady UCB n (q - mean)^2 < width; for steady KL-UCB n kl(mean,
    q) < width, where kl(p, q) is the integral of (x - p) / (x (1 - x)) from p to q, at most (q - p)^2 / 2 over the
    smaller of p (1 - p) and q (1 - q).
    """
    mean = (row.high + row.low * TICK) / row.pulls
    distance = second - mean
    spread = 1.0
    if plan.contest == KL:
        spread = 2.0 * min(mean * (1.0 - mean), second * (1.0 - second))
        if distance < 0.0 or second > NEAR_ONE:
            return False
    return row.pulls * distance * abs(distance) < SURE * plan.width * spread


@compiled
def _leader(plan, contenders, ties, rounds):
    """Return who plays after `rounds` rounds, and the highest index of the others."""
    highest, second, count, leader = -np.inf, -np.inf, ZERO, ZERO
    for i in range(plan.agents):
        value = contenders[i].index
        if value > highest:
            highest, second, count, leader = value, highest, np.int64(1), np.int64(i)
        elif value == highest:
            second, count = value, count + 1
        elif value > second:
            second = value
    if count > 1:
        chosen = np.int64(uniform(ties, rounds) * count)
        for i in range(plan.agents):
            if contenders[i].index == highest:
                if chosen == 0:
                    return np.int64(i), second
                chosen -= 1
    return leader, second


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_slots(plan, tables, means, run_streams, results):
        arms, paid = tables.arms, tables.paid
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            begin_run(arms, len(arms), streams.tapes, means[r])
            paid[:] = 0
            if plan.contest:
                contest_rounds(plan, tables, streams)
            else:
                order_agents(plan, tables.order, streams.levels)
                scan(plan, tables, streams, NONE, plan.horizon)
            close_run(arms, paid, results, r)

    return run_slots


run_slots = _cached(source_stamp())
"""Compiled once for these sources."""


def slots_apply(job: Job) -> bool:
    """Whether the job's mechanism tests slots, flat or before a contest of champions, on rewards the kernel knows."""
    mechanism, rule, agent, family = job.mechanism, job.mechanism.arm, job.mechanism.agent, job.market.family
    tests = rule.draws > 0 and rule.commits and rule.index == "mean" and family.law != "own"
    if not tests or mechanism.in_epochs or mechanism.fallback is not None:
        return False
    if agent is not None:
        contest = agent.steady and agent.order == "round-robin"
        if not (contest and type(mechanism.scoring) is Champions):
            return False
    if family.law != "normal":
        return True
    coins = any(level.binarise for level in mechanism.rules)
    return not coins and job.market.horizon * (1.0 + FARTHEST * family.parameters[0]) < LARGEST_SUM


def slot_blocks_apply(job: Job) -> bool:
    """Whether a test's count and its rewards are one draw besides."""
    one_draw = job.market.family.law in ("coin", "point")
    return one_draw and slots_apply(job) and job.mechanism.arm.binarise


def slot_step_outcomes(job: Job, first: int, count: int, blocks: bool = False) -> Outcomes:
    """Play runs first, .., first + count - 1 round by round: payoffs bit for bit those of `simulate_run`.

    A run of a market that ends at random is one with a horizon of its own.
    """
    plan = slot_plan(job, job.mechanism, blocks)
    tables = SlotTables(
        arm_table(job, plan.contest == FLAT),
        first_arms(job),
        np.zeros((plan.agents, 2), np.int64),
        np.zeros(plan.agents, np.int64),
        np.zeros(plan.agents, CONTENDER),
    )
    results = RunResults.empty(count, plan.agents)
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    if job.market.ends == "at-horizon":
        run_slots(plan, tables, means, streams, results)
    else:
        for r in range(count):
            own = RunResults(*(each[r : r + 1] for each in results))
            horizon = end_of_run(job, first + r)
            run_slots(plan._replace(horizon=horizon), tables, means[r : r + 1], streams[r : r + 1], own)
    return results.outcomes(job.market.share)


def slot_block_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Play the same runs with tests from block draws: the same law, other rewards."""
    return slot_step_outcomes(job, first, count, blocks=True)
