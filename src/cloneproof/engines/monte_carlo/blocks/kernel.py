"""Block draws for mechanisms that explore and then commit: the rewards of many pulls of one arm are one draw.

That draw is binomial, normal, or a product. The cost of a run does not depend on the horizon.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray, WordArray
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.compiling import (
    average,
    compiled,
    ndtri,
    plus,
    source_stamp,
    ticks,
    times,
    uniform,
    word,
)
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.monte_carlo.numba_runs import (
    INDEX,
    NEVER,
    NONE,
    ONE,
    ORDERS,
    ROUND_ROBIN,
    ZERO,
    all_explored,
    begin_run,
    close_run,
    level_stream,
    pay,
    rank_by_word,
    streams_of,
)
from cloneproof.engines.monte_carlo.runs import ARM_FIELDS, ArmTable, RunResults, arm_table, first_arms, played
from cloneproof.market.rewards import FamilyLaw
from cloneproof.mechanisms.mechanism import Epoch, running_epochs
from cloneproof.mechanisms.online.streams import EXPLORE_STREAM, TIE_STREAM

BERNOULLI, DETERMINISTIC, GAUSSIAN = range(3)
_LAWS: Final[dict[FamilyLaw, int]] = {"coin": BERNOULLI, "point": DETERMINISTIC, "normal": GAUSSIAN}
_LARGEST_SD: Final = 2.0**10  # sums of 10^15 such rewards stay within the two words of an exact sum

CANDIDATE: Final = np.dtype(
    [
        *ARM_FIELDS,
        ("high", "i8"), ("low", "i8"), ("judged", "i8"),  # rewards to be judged by: their exact sum, and how many
        ("word", "u8"), ("rank", "i8"), ("explored", "i8"), ("before", "i8"),  # scratch
        ("first", "i8"), ("choice", "i8"),  # of an agent: first arm, arm committed to or -1
    ],
    align=True,
)  # fmt: skip
"""A candidate of a level. The arms come first in a table, then the agents, then a row that ends the last agent."""

BLOCKS = 1 << 62  # where the streams of blocks leave a tape, far beyond the pulls of any horizon
PIECES: Final = 8
EXPLORED, SCORED, COMMITTED, EXPLORED_LATER, COMMITTED_LATER = range(5)


class BlockPlan(NamedTuple):
    """An epoch of a job as numbers. Rounds of exploration are cut at T + 1, which changes no run."""

    arms: int
    agents: int
    horizon: int
    family: int
    sd: float
    flat: bool
    uniform: bool  # agents are chosen uniformly at random in every round
    award: bool  # arm statistics are cleared at the award
    trial: int  # rounds of each agent
    agent_order: int
    arm_order: int
    explore: int  # rounds of each arm
    held_out: int  # rewards that a score counts, 0 where every one does
    most_arms: int  # of an agent that has a score
    version: int  # of the levels: their streams, and the numbers of their blocks


def blocks_apply(job: Job) -> bool:
    """Whether every level explores and then commits (or agents are chosen uniformly) on rewards that add up in law."""
    family = job.market.family
    if family.law not in _LAWS or (family.parameters and family.parameters[0] > _LARGEST_SD):
        return False
    return all(epoch.mechanism.uncommitted_part is None for epoch in _epochs(job))


def plans_of(job: Job) -> Iterator[BlockPlan]:
    """Yield the plans of the epochs of a job to which blocks apply."""
    family = job.market.family
    for epoch in _epochs(job):
        running, score = epoch.mechanism, epoch.mechanism.scoring
        first_version = 2 * epoch.number if running.flat_restart is None else 1
        for version, (horizon, explore) in enumerate(running.flat_epochs(epoch.rounds), first_version):
            yield BlockPlan(
                arms=sum(map(sum, job.copies.values())),
                agents=len(job.market.agents),
                horizon=horizon,
                family=_LAWS[family.law],
                sd=float(family.parameters[0]) if family.parameters else 0.0,
                flat=running.flat,
                uniform=running.uniform_agents,
                award=running.clears_at_award,
                trial=min(running.agent_rounds, horizon + 1),
                agent_order=ORDERS[running.rules[0].order],
                arm_order=ORDERS[running.arm.order],
                explore=min(explore, horizon + 1),
                held_out=min(score.rounds, horizon + 1) if score.rounds is not None else 0,
                most_arms=NEVER if score.max_arms is None else min(score.max_arms, NEVER),
                version=version,
            )


def candidates_of(job: Job, flat: bool) -> ArmTable:
    """Return the table of arms and agents, with keys as the running mechanism names them."""
    first = first_arms(job)
    table = arm_table(job, flat, CANDIDATE, len(first))
    table["first"][first[-1] :] = first
    table["key"][first[-1] :] = np.arange(len(first))
    return table


class Accounts(NamedTuple):
    """What agents are paid in a run, as exact sums; and the blocks (arm, pulls, high, low), if they are asked for.

    Blocks begin in the second row of the trace, whose first one has their number.
    """

    paid: IntArray
    trace: IntArray


@compiled
def block_stream(stream, number):
    """Return the stream of block `number` of a tape: strategies that pull the same arm in the same block share it."""
    return word(word(stream, BLOCKS), number)


@compiled
def block_sum(family, mean, sd, pulls, stream):
    """Draw the sum of the rewards of `pulls` pulls, as an exact (high, low)."""
    if family == BERNOULLI:
        return binomial(pulls, mean, stream), np.int64(0)
    if family == DETERMINISTIC:
        high, low = ticks(mean)
        return times(pulls, high, low)
    return ticks(pulls * mean + sd * math.sqrt(pulls) * ndtri(uniform(stream, 0)))


class CommittingLevel(NamedTuple):
    """A level: the rows of its candidates, its random stream, and how it explores each of them, in which order."""

    begin: np.int64
    end: np.int64
    stream: np.uint64
    explore: np.int64
    order: np.int64


@compiled
def explore_for(level, position, rows):
    """Put into `explored` the rounds of every candidate after `position` rounds of exploration.

    Sorts only if the order can matter.
    """
    begin, end, _, explore, order = level
    count = end - begin
    # Rounds are not stepped: how often each candidate was explored follows from `position` by division. Only the sweep
    # or candidate at which exploration stops depends on the drawn order.
    if order == ROUND_ROBIN:
        sweeps, extra = position // count, position % count
        if extra:
            _rank(level, sweeps, rows)
        for k in range(begin, end):
            rows[k].explored = sweeps
        for k in range(extra):
            rows[begin + rows[begin + k].rank].explored += 1
        return
    full, part = position // explore, position % explore
    sorted_order = order != INDEX and position < count * explore
    if sorted_order:
        _rank(level, ZERO, rows)
    for k in range(count):
        at = begin + (rows[begin + k].rank if sorted_order else k)
        rows[at].explored = explore if k < full else part if k == full else 0


@compiled
def _rank(level, sweep, rows):
    """Draw the order in which a sweep visits the candidates."""
    explore_stream = word(level.stream, EXPLORE_STREAM)
    for k in range(level.begin, level.end):
        rows[k].word = word(word(explore_stream, rows[k].key), sweep)
    rank_by_word(rows, level.begin, level.end)


@compiled
def choose(level, rounds, rows):
    """Return the row of highest average, ties uniformly at random; rows without rewards come last."""
    begin, best, ties = level.begin, -np.inf, 0
    for k in range(begin, level.end):
        row = rows[k]
        value = average(row.high, row.low, row.judged) if row.judged > 0 else -np.inf
        if value > best:
            best, ties = value, 0
        if value == best:
            rows[begin + ties].rank = k
            ties += 1
    if ties == 1:
        return rows[begin].rank
    return rows[begin + np.int64(uniform(word(level.stream, TIE_STREAM), rounds) * ties)].rank


class BlockRounds(NamedTuple):
    """Some rounds of a level, which has this version and has had `before` rounds."""

    version: np.int64
    before: np.int64
    number: np.int64


@compiled
def _uniform(plan, rows, accounts, levels):
    """Choose agents at random: how many rounds each gets is multinomial, whatever its arms are."""
    stream = word(level_stream(levels, plan.version, ZERO), TIE_STREAM)
    left = plan.horizon
    for i in range(plan.agents):
        rounds = binomial(left, 1.0 / (plan.agents - i), block_stream(stream, i))
        left -= rounds
        level = _arms_of(plan, rows, levels, plan.version, i)
        _clear(rows, level)
        _play(plan, rows, accounts, level, BlockRounds(plan.version, ZERO, rounds), NONE, NONE)


@compiled
def _trial_and_award(plan, rows, accounts, levels):
    """Play a trial of every agent, or what the horizon leaves of it; then award the best of them."""
    stream = level_stream(levels, plan.version, ZERO)
    agents = CommittingLevel(plan.arms, plan.arms + plan.agents, stream, plan.trial, plan.agent_order)
    trials = min(all_explored(plan.agents, plan.trial), plan.horizon)
    explore_for(agents, trials, rows)
    _clear(rows, agents)
    for i in range(plan.agents):
        row = plan.arms + i
        level = _arms_of(plan, rows, levels, plan.version, i)
        _clear(rows, level)
        judged = row if level.end - level.begin <= plan.most_arms else NONE
        trial = BlockRounds(plan.version, ZERO, rows[row].explored)
        rows[row].choice = _play(plan, rows, accounts, level, trial, judged, NONE)
    if plan.horizon == trials:
        return
    row = choose(agents, trials, rows)
    version, before, choice = plan.version, plan.trial, rows[row].choice
    if plan.award:
        version, before, choice = plan.version + ONE, ZERO, NONE
    level = _arms_of(plan, rows, levels, version, row - plan.arms)
    if plan.award:
        _clear(rows, level)
    _play(plan, rows, accounts, level, BlockRounds(version, before, plan.horizon - trials), NONE, choice)


@compiled
def _arms_of(plan, rows, levels, version, i):
    """Return the level of the arms of agent i."""
    begin, end = rows[plan.arms + i].first, rows[plan.arms + i + 1].first
    return CommittingLevel(begin, end, level_stream(levels, version, i + 1), plan.explore, plan.arm_order)


@compiled
def _clear(rows, level):
    for k in range(level.begin, level.end):
        rows[k].high, rows[k].low, rows[k].judged = 0, 0, 0


@compiled
def _play(plan, rows, accounts, level, rounds, agent, choice):
    """Play rounds of a level of arms.

    Its rewards count towards the score of the row `agent` (-1: of none). `choice` is the arm of an earlier commitment,
    or -1. Returns the arm that the level is now committed to, or -1.
    """
    begin, end, before = level.begin, level.end, rounds.before
    needed, after = all_explored(end - begin, level.explore), before + rounds.number
    # Three blocks at most for each arm: the rest of its exploration, the fresh rewards of a score, and all rounds after
    # the commitment. Each has a number of its own (`PIECES`), before and after an interruption too, so that two worlds
    # in which an arm has the same block draw the same sum.
    base, later = rounds.version * PIECES, before > 0
    if before < needed:
        if later:
            explore_for(level, before, rows)
        for a in range(begin, end):
            rows[a].before = rows[a].explored if later else 0
        explore_for(level, min(after, needed), rows)
        for a in range(begin, end):
            pulls = rows[a].explored - rows[a].before
            if pulls > 0:
                high, low = _pull(plan, rows, accounts, a, pulls, base + (EXPLORED_LATER if later else EXPLORED))
                _judge(rows, a, pulls, high, low)
                if plan.held_out == 0:
                    _judge(rows, agent, pulls, high, low)
    if after <= needed:
        return choice
    if choice < 0:
        choice = choose(level, needed, rows)
    left = after - max(before, needed)
    if plan.held_out > 0 and agent >= 0:
        fresh = min(left, plan.held_out)
        high, low = _pull(plan, rows, accounts, choice, fresh, base + SCORED)
        _judge(rows, agent, fresh, high, low)
        left, agent = left - fresh, NONE
    if left > 0:
        high, low = _pull(plan, rows, accounts, choice, left, base + (COMMITTED_LATER if later else COMMITTED))
        _judge(rows, agent, left, high, low)
    return choice


@compiled
def _pull(plan, rows, accounts, arm, pulls, number):
    """Draw a block and pay its agent."""
    # The stream is named by the arm's tape and the number of the block, so a strategy that pulls the same arm in the
    # same block gets the same sum. Sums are exact (high, low), so they do not depend on the order of blocks.
    row, trace = rows[arm], accounts.trace
    high, low = block_sum(plan.family, row.mean, plan.sd, pulls, block_stream(row.tape, number))
    row.pulls += pulls
    pay(accounts.paid, row.agent, high, low)
    if len(trace):
        trace[0, 0] += 1
        at = trace[0, 0]
        trace[at, 0], trace[at, 1], trace[at, 2], trace[at, 3] = arm, pulls, high, low
    return high, low


@compiled
def _judge(rows, k, pulls, high, low):
    """Count the rewards of a block towards the judgement of candidate k (-1: of none)."""
    if k >= 0:
        rows[k].high, rows[k].low = plus(rows[k].high, rows[k].low, high, low)
        rows[k].judged += pulls


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_blocks(plan, rows, paid, trace, means, run_streams, results):
        """Play an epoch of all runs of a chunk; `rows` is a table of `candidates_of`, overwritten by every run.

        `paid` has what agents were paid in earlier epochs of each run.
        """
        for r in range(len(run_streams) if sources else 0):
            streams, accounts = streams_of(run_streams[r]), Accounts(paid[r], trace)
            begin_run(rows, plan.arms, streams.tapes, means[r])
            if plan.flat:
                stream = level_stream(streams.levels, plan.version, ZERO)
                level = CommittingLevel(ZERO, plan.arms, stream, plan.explore, plan.arm_order)
                _clear(rows, level)
                _play(plan, rows, accounts, level, BlockRounds(plan.version, ZERO, plan.horizon), NONE, NONE)
            elif plan.uniform:
                _uniform(plan, rows, accounts, streams.levels)
            else:
                _trial_and_award(plan, rows, accounts, streams.levels)
            close_run(rows[: plan.arms], accounts.paid, results, r)

    return run_blocks


run_blocks = _cached(source_stamp())
"""Compiled once for these sources."""


def play_blocks(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a job to which blocks apply."""
    _play_epochs(job, means, streams, results, np.zeros((0, 4), np.int64))


def blocks_of_run(job: Job, run: int) -> tuple[Outcomes, IntArray]:
    """Play one run; return it and its blocks as rows (arm, pulls, high, low), by arm: sums are high + low / 2**60."""
    plans = list(plans_of(job))
    trace = np.zeros((1 + len(plans) * (3 * plans[0].arms + 3), 4), np.int64)
    outcomes = played(partial(_play_epochs, trace=trace), job, run, 1)
    return outcomes, trace[1 : 1 + trace[0, 0]]


def _play_epochs(job: Job, means: FloatArray, streams: WordArray, results: RunResults, trace: IntArray) -> None:
    paid = np.zeros((len(means), len(job.market.agents), 2), np.int64)
    for plan in plans_of(job):
        run_blocks(plan, candidates_of(job, plan.flat), paid, trace, means, streams, results)


def _epochs(job: Job) -> list[Epoch]:
    return running_epochs(job.mechanism, len(job.market.agents), job.market.horizon)
