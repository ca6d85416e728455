"""The compiled kernel over runs: at most five draws for every arm and version of its level, whatever the horizon.

A block is consecutive pulls of one arm, between which nothing is decided: its exploration, or its rounds after the
commitment. Its number is `version * PIECES + piece`, where the version is that of the level (0 in the trial, 1 after a
restart at the award, the epoch under doubling, 2e and 2e + 1 in the e-th of hold-out epochs).
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.arm_table import NONE, ONE, ZERO, all_explored, begin_run
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.block_draws import block_stream, block_sum
from cloneproof.engines.monte_carlo.blocks.committing_level import CommittingLevel, choose, set_pulls
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream, streams_of
from cloneproof.engines.monte_carlo.randomness.exact_sums import average, plus
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.mechanisms.online.streams import TIE_STREAM

PIECES: Final = 8
EXPLORED, SCORED, COMMITTED, EXPLORED_LATER, COMMITTED_LATER = range(5)


class BlockRounds(NamedTuple):
    """A number of rounds of a level, which has the version and had so many rounds `before`."""

    version: np.int64
    before: np.int64
    number: np.int64


class BlockResults(NamedTuple):
    """Of each run of a chunk: rewards and means of the pulls of each agent, and the regret; and the blocks of all.

    `trace`, where it has rows, receives (arm, pulls, high, low) of each block from its second row on, and their number
    in its first.
    """

    payoff: FloatArray
    served: FloatArray
    regret: FloatArray
    trace: IntArray


@compiled
def _run_blocks(plan, epochs, rows, means, run_streams, results):
    """All runs of a chunk; `rows` is a table of `candidates_of`, overwritten by every run."""
    trace = results.trace
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        begin_run(rows, plan.arms, streams.tapes, means[r])
        for i in range(plan.arms, plan.arms + plan.agents):
            rows[i].paid_high, rows[i].paid_low, rows[i].lost, rows[i].served = 0, 0, 0.0, 0.0
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
            regret += row.lost
        results.regret[r] = regret


@compiled
def _uniform(plan, rows, trace, levels):
    """Agents at random: how many rounds each gets is multinomial, whatever its arms are."""
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
    """A trial of every agent, or what the horizon leaves of it; then the award to the best of them."""
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
    """The level of the arms of agent i."""
    begin, end = rows[plan.arms + i].first, rows[plan.arms + i + 1].first
    return CommittingLevel(begin, end, level_stream(levels, version, i + 1), plan.explore, plan.arm_order)


@compiled
def _clear(rows, level):
    """Clear the statistics of a level."""
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
    row = rows[arm]
    high, low = block_sum(plan.family, row.mean, plan.sd, pulls, block_stream(row.tape, number))
    owner = rows[plan.arms + row.agent]
    owner.paid_high, owner.paid_low = plus(owner.paid_high, owner.paid_low, high, low)
    owner.lost += pulls * row.loss
    owner.served += pulls * row.mean
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
    def run_blocks(plan, epochs, rows, means, run_streams, results):
        if sources:
            _run_blocks(plan, epochs, rows, means, run_streams, results)

    return run_blocks


run_blocks = _cached(source_stamp())
"""`_run_blocks`, compiled once for these sources."""
