"""Reservoirs on pages, page by page and to the bits of a session (`mechanisms.online.laboratory`).

No reward is late here and nobody joins or leaves. So a test, or a block of a stream, is judged when its last page was
shown, and the laboratory ends on a page that is known beforehand. Where no click counts after it, the pages that are
left are one step, whose clicks have the law of a session's.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray, WordArray
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.blocks.slots import drawn_arm, order_agents
from cloneproof.engines.monte_carlo.compiling import compiled, inlined, source_stamp, uncounted, uniform, word
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.runs import (
    NONE,
    ONE,
    ZERO,
    ArmTable,
    RunResults,
    arm_table,
    begin_run,
    first_arms,
    level_stream,
    streams_of,
)
from cloneproof.engines.monte_carlo.stepping.functions import with_callees
from cloneproof.mechanisms.online.laboratory import counts_click, settled
from cloneproof.mechanisms.online.streams import COIN_STREAM

VIEW_SECONDS, PAGE_SECONDS = 1e-8, 1e-8  # of a usual core

_counts_click, _settled = with_callees(counts_click), with_callees(settled)


class PagePlan(NamedTuple):
    """A job as numbers."""

    agents: int
    filled: int  # places with somebody in them
    horizon: int
    blocks: int  # of the laboratory
    length: int  # pages of a block
    end: int  # pages of the laboratory
    streams: bool
    runs: bool  # streams run on: there is no laboratory
    thinned: bool  # whether clicks of the rest count


class PageTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), attention by place, who is shown, and numbers of each agent."""

    arms: ArmTable
    first: IntArray
    attention: FloatArray
    shown: IntArray
    coins: WordArray
    order: IntArray
    position: IntArray
    draw: IntArray
    held: IntArray  # the arm that is shown
    champion: IntArray  # the arm of the best test so far
    clicks: IntArray  # that counted in this block
    score: IntArray
    ranking: IntArray


@compiled
def _open_run(plan, tables, levels):
    """Begin the first block."""
    coins = word(level_stream(levels, ZERO, ZERO), COIN_STREAM)
    order_agents(plan, tables.order, levels)
    tables.clicks[:], tables.draw[:], tables.score[:] = 0, 0, ONE if plan.streams else NONE
    for place in range(plan.agents):
        i = tables.order[place]
        tables.position[i], tables.coins[i] = place, word(coins, i)
        tables.held[i] = drawn_arm(tables, levels, i, ZERO)


@compiled
def _close_block(plan, tables, levels, last):
    """Judge what was shown in a block, and go on with the next draws, or with the champions of all tests."""
    for i in range(plan.agents):
        spent = not plan.streams
        if plan.streams:
            tables.score[i], spent = _settled(tables.score[i], tables.clicks[i], ONE)
        elif tables.clicks[i] > tables.score[i]:
            tables.score[i], tables.champion[i] = tables.clicks[i], tables.held[i]
        tables.clicks[i] = 0
        if spent:
            tables.draw[i] += 1
            tables.held[i] = drawn_arm(tables, levels, i, tables.draw[i])
        if last and not plan.streams:
            tables.held[i] = tables.champion[i]


@inlined
def _climb(plan, tables, i):
    """Move an agent up, whose score has risen."""
    ranking, score, position = tables.ranking, tables.score, tables.position
    at = plan.agents - 1
    while ranking[at] != i:
        at -= 1
    while at > 0:
        other = ranking[at - 1]
        if score[other] > score[i] or (score[other] == score[i] and position[other] < position[i]):
            break
        ranking[at] = other
        at -= 1
    ranking[at] = i


@compiled
def _rank(plan, tables):
    """Order agents by score, ties by the lot."""
    tables.ranking[:] = tables.order
    for place in range(plan.agents):
        _climb(plan, tables, tables.order[place])


@inlined
def _fill(plan, tables, page):
    """Decide who is shown in each place; return whose turn it is."""
    turn = page % plan.agents
    designated, absent = tables.order[turn], True
    for place in range(plan.filled):
        if page < plan.end:
            due = place - turn
            tables.shown[place] = tables.order[due if due >= 0 else due + plan.agents]
        else:
            tables.shown[place] = tables.ranking[place]
            absent = absent and tables.shown[place] != designated
    if page >= plan.end and plan.thinned and absent:
        tables.shown[plan.filled - 1] = designated
    return designated


@compiled
def _show_rest(plan, tables, results, r, pages):
    """Show everybody on so many pages in the place that it has."""
    for place in range(plan.filled):
        i = tables.ranking[place]
        arm = tables.arms[tables.held[i]]
        results.views[r, arm.column, place] += pages
        results.payoff[r, i] += binomial(pages, tables.attention[place] * arm.mean, block_stream(arm.tape, place))


@compiled
def _play(plan, tables, levels, results, r):
    """Play all pages of a run."""
    plan, tables, results = uncounted((plan, tables, results))
    attention, score, last, everybody = tables.attention, tables.score, plan.filled - 1, plan.filled == plan.agents
    block = begin = 0
    for page in range(plan.horizon):
        learns = plan.runs or block < plan.blocks
        if learns and page == begin + plan.length:
            block, begin = block + 1, page
            learns = plan.runs or block < plan.blocks
            _close_block(plan, tables, levels, not learns)
        if page == (begin if plan.runs else plan.end):
            _rank(plan, tables)
            if not learns and not plan.thinned:
                _show_rest(plan, tables, results, r, plan.horizon - page)
                return
        designated = _fill(plan, tables, page)
        for place in range(plan.filled):
            i = tables.shown[place]
            arm = tables.arms[tables.held[i]]
            results.views[r, arm.column, place] += 1
            arm.pulls += 1
            if uniform(arm.tape, arm.pulls - 1) >= attention[place] * arm.mean:
                continue
            results.payoff[r, i] += 1.0
            if page >= plan.end:
                if not plan.thinned or not (everybody or i == designated):
                    continue
                if not _counts_click(tables.coins[i], page, attention[last], attention[place]):
                    continue
            if learns:
                tables.clicks[i] += 1
            else:
                score[i] += 1
                if page >= plan.end:
                    _climb(plan, tables, i)


def _laboratory(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_whole_pages(plan, tables, means, run_streams, results):
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            begin_run(tables.arms, len(tables.arms), streams.tapes, means[r])
            _open_run(plan, tables, streams.levels)
            _play(plan, tables, streams.levels, results, r)

    return run_whole_pages


run_whole_pages = _laboratory(source_stamp())
"""Compiled once for these sources."""


def laboratory_applies(job: Job) -> bool:
    """Whether the job is a reservoir on pages, on coins."""
    mechanism, market = job.mechanism, job.market
    rule, alone = mechanism.arm, mechanism.flat and mechanism.unchanging
    fits = alone and market.family.law == "coin" and market.ends == "at-horizon" and rule.slots.threshold is None
    fits = fits and rule.draws > 0 and rule.binarise and (rule.commits or mechanism.streams)
    return bool(market.places) and fits and (rule.slots.streams != "run" or _filled(job) == len(market.agents))


def _filled(job: Job) -> int:
    return min(sum(attention > 0 for attention in job.market.places), len(job.market.agents))


def _counts_later(job: Job) -> bool:
    """Whether clicks count after the laboratory."""
    return job.mechanism.arm.slots.scores == "clicks" and (_filled(job) > 1 or _filled(job) == len(job.market.agents))


def play_laboratory(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs of a reservoir on pages."""
    mechanism, agents, filled = job.mechanism, len(job.market.agents), _filled(job)
    slots, runs = mechanism.arm.slots, mechanism.arm.slots.streams == "run"
    plan = PagePlan(
        agents=agents,
        filled=filled,
        horizon=job.market.horizon,
        blocks=slots.draws,
        length=mechanism.arm.explore * (1 if runs else agents),
        end=mechanism.laboratory_pages(agents),
        streams=slots.streams is not None,
        runs=runs,
        thinned=_counts_later(job),
    )
    numbers = [np.zeros(agents, np.int64) for _ in range(8)]
    shown, coins = np.zeros(filled, np.int64), np.zeros(agents, np.uint64)
    tables = PageTables(arm_table(job, True), first_arms(job), np.array(job.market.places), shown, coins, *numbers)
    run_whole_pages(plan, tables, means, streams, results)


def laboratory_seconds(job: Job) -> float:
    """Estimate how long a run takes."""
    pages = job.market.horizon
    if job.mechanism.arm.slots.streams != "run" and not _counts_later(job):
        pages = min(pages, job.mechanism.laboratory_pages(len(job.market.agents)))
    return 1e-6 + pages * (PAGE_SECONDS + VIEW_SECONDS * _filled(job))
