"""The compiled kernel over runs: a few draws for every arm, whatever the horizon.

A block is a run of pulls of one arm that nothing happens in between: its exploration, its rounds after the commitment.
Its number is `version * PIECES + piece`, where the version is that of the level (0 in the trial, 1 after a restart at
the award, the epoch under doubling, 2e and 2e + 1 in the e-th of hold-out epochs).
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, Final

import numba as nb

from cloneproof.engines.monte_carlo.arm_table import NONE, ONE, ZERO, all_explored, begin_run
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.block_draws import block_stream, block_sum
from cloneproof.engines.monte_carlo.blocks.committing_level import committed, pulls_until
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream, streams_of
from cloneproof.engines.monte_carlo.randomness.exact_sums import average, plus
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.mechanisms.online.streams import TIE_STREAM

PIECES: Final = 8
EXPLORED, SCORED, COMMITTED, EXPLORED_LATER, COMMITTED_LATER = range(5)


@nb.njit(nogil=True)
def all_runs(plan, epochs, rows, trace, means, run_streams, payoff, regret):
    """All runs of a chunk: the rewards of each agent and the regret of each run.

    `rows` is a table of `candidates_of`, overwritten by every run. `trace`, where it has rows, receives (arm, pulls,
    high, low) of each block from its second row on, and their number in its first.
    """
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        begin_run(rows, plan.arms, streams.tapes, means[r])
        for i in range(plan.arms, plan.arms + plan.agents):
            rows[i].paid_high, rows[i].paid_low, rows[i].lost = 0, 0, 0.0
        if plan.flat:
            for e in range(len(epochs)):
                version = plan.first_version + e
                stream = level_stream(streams.levels, version, ZERO)
                _open(rows, ZERO, plan.arms)
                _play(plan, rows, trace, ZERO, plan.arms, stream, epochs[e, 1], version, ZERO, epochs[e, 0], NONE, NONE)
        elif plan.uniform:
            _uniform(plan, rows, trace, streams.levels)
        else:
            _trial_and_award(plan, rows, trace, streams.levels)
        regret[r] = 0.0
        for i in range(plan.agents):
            row = rows[plan.arms + i]
            payoff[r, i] = average(row.paid_high, row.paid_low, ONE)
            regret[r] += row.lost


@nb.njit(nogil=True)
def _uniform(plan, rows, trace, levels):
    """Agents at random: how many rounds each gets is multinomial, and what it does with them is its own affair."""
    stream = word(level_stream(levels, plan.first_version, ZERO), TIE_STREAM)
    left = plan.horizon
    for i in range(plan.agents):
        rounds = binomial(left, 1.0 / (plan.agents - i), block_stream(stream, i))
        left -= rounds
        begin, end = rows[plan.arms + i].first, rows[plan.arms + i + 1].first
        _open(rows, begin, end)
        own = level_stream(levels, plan.first_version, i + 1)
        _play(plan, rows, trace, begin, end, own, plan.explore, plan.first_version, ZERO, rounds, NONE, NONE)


@nb.njit(nogil=True)
def _trial_and_award(plan, rows, trace, levels):
    """A trial of every agent, or what the horizon leaves of it; then the award to the best of them."""
    stream = level_stream(levels, plan.first_version, ZERO)
    trials = min(all_explored(plan.agents, plan.trial), plan.horizon)
    pulls_until(trials, plan.agent_order, plan.trial, stream, rows, plan.arms, plan.arms + plan.agents)
    _open(rows, plan.arms, plan.arms + plan.agents)
    for i in range(plan.agents):
        row = plan.arms + i
        begin, end = rows[row].first, rows[row + 1].first
        scored = end - begin <= plan.most_arms
        _open(rows, begin, end)
        own = level_stream(levels, plan.first_version, i + 1)
        judged = row if scored else NONE
        rows[row].choice = _play(
            plan, rows, trace, begin, end, own, plan.explore, plan.first_version, ZERO, rows[row].pulls, judged, NONE
        )
    award = plan.horizon - trials
    if award == 0:
        return
    row = committed(trials, stream, rows, plan.arms, plan.arms + plan.agents)
    begin, end = rows[row].first, rows[row + 1].first
    version, before, choice = plan.first_version, plan.trial, rows[row].choice
    if plan.award:
        version, before, choice = plan.first_version + ONE, ZERO, NONE
        _open(rows, begin, end)
    own = level_stream(levels, version, row - plan.arms + 1)
    _play(plan, rows, trace, begin, end, own, plan.explore, version, before, award, NONE, choice)


@nb.njit(nogil=True)
def _open(rows, begin, end):
    """Clear the statistics of a level."""
    for k in range(begin, end):
        rows[k].high, rows[k].low, rows[k].judged = 0, 0, 0


@nb.njit(nogil=True)
def _play(plan, rows, trace, begin, end, stream, explore, version, before, rounds, agent, choice):
    """So many further rounds of a level over the arms from begin to end that has had `before` rounds.

    Its rewards count towards the score of the row `agent` (-1: of none). `choice` is the arm of an earlier commitment,
    or -1. Returns the arm that the level is now committed to, or -1.
    """
    needed, after = all_explored(end - begin, explore), before + rounds
    base, later = version * PIECES, before > 0
    if before < needed:
        if later:
            pulls_until(before, plan.arm_order, explore, stream, rows, begin, end)
        for a in range(begin, end):
            rows[a].before = rows[a].pulls if later else 0
        pulls_until(min(after, needed), plan.arm_order, explore, stream, rows, begin, end)
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
        choice = committed(needed, stream, rows, begin, end)
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


@nb.njit(nogil=True)
def _pull(plan, rows, trace, arm, pulls, number):
    """Draw a block, pay its agent and count the regret."""
    row = rows[arm]
    high, low = block_sum(plan.family, row.mean, plan.sd, pulls, block_stream(row.tape, number))
    owner = rows[plan.arms + row.agent]
    owner.paid_high, owner.paid_low = plus(owner.paid_high, owner.paid_low, high, low)
    owner.lost += pulls * row.loss
    if len(trace):
        trace[0, 0] += 1
        at = trace[0, 0]
        trace[at, 0], trace[at, 1], trace[at, 2], trace[at, 3] = arm, pulls, high, low
    return high, low


@nb.njit(nogil=True)
def _judge(rows, k, pulls, high, low):
    """Count the rewards of a block towards the judgement of candidate k (-1: of none)."""
    if k >= 0:
        rows[k].high, rows[k].low = plus(rows[k].high, rows[k].low, high, low)
        rows[k].judged += pulls


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_blocks(plan, epochs, rows, trace, means, run_streams, payoff, regret):
        if sources:
            all_runs(plan, epochs, rows, trace, means, run_streams, payoff, regret)

    return run_blocks


run_blocks = _cached(source_stamp())
"""`all_runs`, compiled once for these sources."""
