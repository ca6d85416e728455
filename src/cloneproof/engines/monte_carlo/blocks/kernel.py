"""Block draws for mechanisms that explore and then commit: the rewards of many pulls of one arm are one draw.

That draw is binomial, normal, or a product. The cost of a run does not depend on the horizon.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from cloneproof._arrays import IntArray
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
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs, run_streams
from cloneproof.engines.monte_carlo.runs import (
    ARM_FIELDS,
    INDEX,
    NEVER,
    NONE,
    ONE,
    ORDERS,
    ROUND_ROBIN,
    ZERO,
    ArmTable,
    RunResults,
    all_explored,
    arm_table,
    begin_run,
    first_arms,
    level_stream,
    rank_by_word,
    streams_of,
)
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
        ("word", "u8"), ("rank", "i8"), ("before", "i8"),  # scratch
        ("first", "i8"), ("rounds", "i8"), ("choice", "i8"),  # of an agent: first arm, rounds, arm committed to or -1
        ("paid_high", "i8"), ("paid_low", "i8"), ("lost", "f8"), ("served", "f8"),  # and rewards and regret so far
        ("played", "i8"),  # rounds so far
    ],
    align=True,
)  # fmt: skip
"""A candidate of a level. The arms come first in a table, then the agents, then a row that ends the last agent."""

BLOCKS = 1 << 62  # where the streams of blocks leave a tape, far beyond the pulls of any horizon
PIECES: Final = 8
EXPLORED, SCORED, COMMITTED, EXPLORED_LATER, COMMITTED_LATER = range(5)


class BlockPlan(NamedTuple):
    """A job as numbers. Rounds of exploration are cut at T + 1, which changes no run."""

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
    first_version: int  # of the levels: their streams, and the numbers of their blocks


def blocks_apply(job: Job) -> bool:
    """Whether every level explores and then commits (or agents are chosen uniformly) on rewards that add up in law."""
    family = job.market.family
    if family.law not in _LAWS or (family.parameters and family.parameters[0] > _LARGEST_SD):
        return False
    return all(epoch.mechanism.uncommitted_part is None for epoch in _epochs(job))


def plan_of(job: Job, epoch: Epoch) -> BlockPlan:
    """Return the plan of an epoch of a job to which blocks apply; most mechanisms have only one."""
    horizon, family, running = epoch.rounds, job.market.family, epoch.mechanism
    score = running.scoring
    return BlockPlan(
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
        explore=min(running.arm_rounds, horizon + 1),
        held_out=min(score.rounds, horizon + 1) if score.rounds is not None else 0,
        most_arms=NEVER if score.max_arms is None else min(score.max_arms, NEVER),
        first_version=2 * epoch.number if running.flat_restart is None else 1,
    )


def flat_epochs(epoch: Epoch) -> npt.NDArray[np.int64]:
    """Return rounds and rounds of exploration of each epoch of a flat mechanism."""
    plan = epoch.mechanism.flat_epochs(epoch.rounds)
    return np.array([(rounds, min(explore, epoch.rounds + 1)) for rounds, explore in plan], np.int64)


def candidates_of(job: Job, flat: bool) -> ArmTable:
    """Return the table of arms and agents, with keys as the running mechanism names them."""
    first = first_arms(job)
    table = arm_table(job, flat, CANDIDATE, len(first))
    table["first"][first[-1] :] = first
    table["key"][first[-1] :] = np.arange(len(first))
    return table


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
def set_pulls(level, position, rows):
    """Put into `pulls` those of every candidate after `position` rounds of exploration.

    Sorts only if the order can matter.
    """
    begin, end, _, explore, order = level
    count = end - begin
    # Rounds are not stepped: how often each candidate was explored follows from `position` by division. Only the sweep
    # or candidate at which exploration stops depends on the drawn order.
    if order == ROUND_ROBIN:
        each, extra = position // count, position % count
        if extra:
            _rank(level, each, rows)
        for k in range(begin, end):
            rows[k].pulls = each
        for k in range(extra):
            rows[begin + rows[begin + k].rank].pulls += 1
        return
    full, part = position // explore, position % explore
    sorted_order = order != INDEX and position < count * explore
    if sorted_order:
        _rank(level, ZERO, rows)
    for k in range(count):
        at = begin + (rows[begin + k].rank if sorted_order else k)
        rows[at].pulls = explore if k < full else part if k == full else 0


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
def _uniform(plan, rows, trace, levels):
    """Choose agents at random: how many rounds each gets is multinomial, whatever its arms are."""
    stream = word(level_stream(levels, plan.first_version, ZERO), TIE_STREAM)
    left = plan.horizon
    for i in range(plan.agents):
        rounds = binomial(left, 1.0 / (plan.agents - i), block_stream(stream, i))
        left -= rounds
        level = _arms_of(plan, rows, levels, plan.first_version, i)
        _clear(rows, level)
        _play(plan, rows, trace, level, BlockRounds(plan.first_version, ZERO, rounds), NONE, NONE)


@compiled
def _trial_and_award(plan, rows, trace, levels):
    """Play a trial of every agent, or what the horizon leaves of it; then award the best of them."""
    stream = level_stream(levels, plan.first_version, ZERO)
    agents = CommittingLevel(plan.arms, plan.arms + plan.agents, stream, plan.trial, plan.agent_order)
    trials = min(all_explored(plan.agents, plan.trial), plan.horizon)
    set_pulls(agents, trials, rows)
    _clear(rows, agents)
    for i in range(plan.agents):
        row = plan.arms + i
        level = _arms_of(plan, rows, levels, plan.first_version, i)
        _clear(rows, level)
        judged = row if level.end - level.begin <= plan.most_arms else NONE
        trial = BlockRounds(plan.first_version, ZERO, rows[row].pulls)
        rows[row].choice = _play(plan, rows, trace, level, trial, judged, NONE)
    if plan.horizon == trials:
        return
    row = choose(agents, trials, rows)
    version, before, choice = plan.first_version, plan.trial, rows[row].choice
    if plan.award:
        version, before, choice = plan.first_version + ONE, ZERO, NONE
    level = _arms_of(plan, rows, levels, version, row - plan.arms)
    if plan.award:
        _clear(rows, level)
    _play(plan, rows, trace, level, BlockRounds(version, before, plan.horizon - trials), NONE, choice)


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
def _play(plan, rows, trace, level, rounds, agent, choice):
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
            set_pulls(level, before, rows)
        for a in range(begin, end):
            rows[a].before = rows[a].pulls if later else 0
        set_pulls(level, min(after, needed), rows)
        for a in range(begin, end):
            pulls = rows[a].pulls - rows[a].before
            if pulls > 0:
                high, low = _pull(plan, rows, trace, a, pulls, base + (EXPLORED_LATER if later else EXPLORED))
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
        high, low = _pull(plan, rows, trace, choice, fresh, base + SCORED)
        _judge(rows, agent, fresh, high, low)
        left, agent = left - fresh, NONE
    if left > 0:
        high, low = _pull(plan, rows, trace, choice, left, base + (COMMITTED_LATER if later else COMMITTED))
        _judge(rows, agent, left, high, low)
    return choice


@compiled
def _pull(plan, rows, trace, arm, pulls, number):
    """Draw a block, pay its agent and count the regret."""
    # The stream is named by the arm's tape and the number of the block, so a strategy that pulls the same arm in the
    # same block gets the same sum. Sums are exact (high, low), so they do not depend on the order of blocks. Loss and
    # worth are computed from the means, not the rewards, so they carry less noise.
    row = rows[arm]
    high, low = block_sum(plan.family, row.mean, plan.sd, pulls, block_stream(row.tape, number))
    owner = rows[plan.arms + row.agent]
    owner.paid_high, owner.paid_low = plus(owner.paid_high, owner.paid_low, high, low)
    owner.lost += pulls * row.loss
    owner.served += pulls * row.mean
    owner.played += pulls
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
    def run_blocks(plan, epochs, rows, means, run_streams, results, trace):
        """Play all runs of a chunk; `rows` is a table of `candidates_of`, overwritten by every run.

        `trace`, where it has rows, receives (arm, pulls, high, low) of each block from its second row on, and their
        number in its first.
        """
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            begin_run(rows, plan.arms, streams.tapes, means[r])
            for i in range(plan.arms, plan.arms + plan.agents):
                rows[i].paid_high, rows[i].paid_low, rows[i].played = 0, 0, 0
                rows[i].lost, rows[i].served = 0.0, 0.0
            if plan.flat:
                for e in range(len(epochs)):
                    version = plan.first_version + e
                    stream = level_stream(streams.levels, version, ZERO)
                    level = CommittingLevel(ZERO, plan.arms, stream, epochs[e, 1], plan.arm_order)
                    _clear(rows, level)
                    _play(plan, rows, trace, level, BlockRounds(version, ZERO, epochs[e, 0]), NONE, NONE)
            elif plan.uniform:
                _uniform(plan, rows, trace, streams.levels)
            else:
                _trial_and_award(plan, rows, trace, streams.levels)
            regret = 0.0
            for i in range(plan.agents):
                row = rows[plan.arms + i]
                results.payoff[r, i] = average(row.paid_high, row.paid_low, ONE)
                results.served[r, i] = row.served
                results.rounds[r, i] = row.played
                regret += row.lost
            results.regret[r] = regret

    return run_blocks


run_blocks = _cached(source_stamp())
"""Compiled once for these sources."""


def block_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1 of a job to which blocks apply."""
    return _outcomes(job, first, count, np.zeros((0, 4), np.int64))


def blocks_of_run(job: Job, run: int) -> tuple[Outcomes, IntArray]:
    """Play one run; return it and its blocks as rows (arm, pulls, high, low), by arm: sums are high + low / 2**60."""
    most = sum((sum(map(sum, job.copies.values())) + 2) * (len(flat_epochs(epoch)) + 2) for epoch in _epochs(job))
    trace = np.zeros((1 + most, 4), np.int64)
    outcomes = _outcomes(job, run, 1, trace)
    return outcomes, trace[1 : 1 + trace[0, 0]]


def _outcomes(job: Job, first: int, count: int, trace: IntArray) -> Outcomes:
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    total = RunResults.empty(count, len(job.market.agents))
    for epoch in _epochs(job):
        plan, results = plan_of(job, epoch), RunResults.empty(count, len(job.market.agents))
        run_blocks(plan, flat_epochs(epoch), candidates_of(job, plan.flat), means, streams, results, trace)
        total = RunResults(*map(np.add, total, results))
    return total.outcomes(job.market.share)


def _epochs(job: Job) -> list[Epoch]:
    return running_epochs(job.mechanism, len(job.market.agents), job.market.horizon)
