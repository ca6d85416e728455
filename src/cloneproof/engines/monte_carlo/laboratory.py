"""Reservoirs on pages, in blocks: what happens between two changes of the ranks is one step.

In the laboratory the clicks of a draw in a place are a binomial count. After it a designated view counts with the same
chance wherever it stands, attention of the last place times rate. So the pages on which somebody's score rises are
drawn first, by geometric gaps, and places follow; a designated view that did not count is a click with what is left of
its chance. The clicks of all views between are drawn once at the end of the run. With streams that run on, a block is
one step. The laws are those of a session (`mechanisms.online.laboratory`), with its order and draws.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.blocks.slots import drawn_arm, order_agents
from cloneproof.engines.monte_carlo.compiling import compiled, source_stamp, uniform
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs, run_streams
from cloneproof.engines.monte_carlo.runs import (
    NEVER,
    ONE,
    ZERO,
    ArmTable,
    RunResults,
    arm_table,
    begin_run,
    best_page,
    first_arms,
    streams_of,
)
from cloneproof.engines.monte_carlo.stepping.functions import with_callees
from cloneproof.mechanisms.online.laboratory import settled

# of a tape: clicks of views in a place, of designated ones that did not count, gaps between those that did, blocks
VIEWS: Final = 1 << 41
TURNS: Final = 1 << 42
GAPS: Final = 1 << 43
RUN_ON: Final = 1 << 44

_settled = with_callees(settled)


class PagePlan(NamedTuple):
    """A job as numbers; `length` is that of a block in rotations, or in pages where streams run on."""

    agents: int
    filled: int
    horizon: int
    blocks: int
    length: int
    rank_rounds: int
    streams: bool
    runs: bool
    thinned: bool


class PageTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), attention by place, and what a run fills in."""

    arms: ArmTable
    first: IntArray
    attention: FloatArray
    order: IntArray
    position: IntArray
    draw: IntArray
    held: IntArray  # the arm of it
    score: IntArray
    ranking: IntArray
    following: IntArray  # the page of the next click that counts
    events: IntArray  # clicks that counted so far
    clicks: IntArray
    views: IntArray  # of each arm in each place, not designated
    turns: IntArray  # designated, without those that counted


@compiled
def _turns(start, end, agents, residue):
    """Return how many pages t from `start` to before `end` have t mod agents = residue."""
    return (end - residue + agents - 1) // agents - (start - residue + agents - 1) // agents


@compiled
def _serve(tables, results, r, arm, place, views):
    """Enter views that are paid for elsewhere."""
    row = tables.arms[arm]
    results.served[r, row.agent] += views * tables.attention[place] * row.mean
    results.rounds[r, row.agent] += views


@compiled
def _rotate(plan, tables, results, r, i, start, pages, block):
    """Show what agent i holds in a rotation, and return its clicks."""
    arm = tables.held[i]
    row, total = tables.arms[arm], ZERO
    for place in range(plan.filled):
        residue = (place - tables.position[i]) % plan.agents
        views = _turns(start, start + pages, plan.agents, residue)
        chance = tables.attention[place] * row.mean
        total += binomial(views, chance, block_stream(row.tape, block * plan.filled + place))
        _serve(tables, results, r, arm, place, views)
    tables.clicks[i] += total
    return total


@compiled
def _rank(plan, tables):
    """Order agents by score, ties by the lot."""
    for position in range(plan.agents):
        i, at = tables.order[position], position
        while at > 0 and tables.score[tables.ranking[at - 1]] < tables.score[i]:
            tables.ranking[at] = tables.ranking[at - 1]
            at -= 1
        tables.ranking[at] = i


@compiled
def _climb(tables, at):
    """Move the agent at a rank up, if its score has risen."""
    ranking, score, position = tables.ranking, tables.score, tables.position
    i = ranking[at]
    while at > 0:
        other = ranking[at - 1]
        if score[other] > score[i] or (score[other] == score[i] and position[other] < position[i]):
            break
        ranking[at] = other
        at -= 1
    ranking[at] = i


@compiled
def _after(plan, tables, i, page):
    """Return the page after `page`, which is a turn of agent i, on which its next click counts."""
    row = tables.arms[tables.held[i]]
    chance = tables.attention[plan.filled - 1] * row.mean
    if chance <= 0.0:
        return np.int64(NEVER)
    gap = 0.0
    if chance < 1.0:
        gap = math.floor(math.log(uniform(block_stream(row.tape, GAPS), tables.events[i])) / math.log1p(-chance))
    stride = 1 if plan.filled == plan.agents else plan.agents
    tables.events[i] += 1
    return page + stride * (1 + np.int64(min(gap, 1e15)))


@compiled
def _between(plan, tables, results, r, start, end):
    """Show pages between two changes of the ranks."""
    pages, last = end - start, plan.filled - 1
    everybody = plan.filled == plan.agents
    front = plan.filled if everybody or not plan.thinned else last
    free = pages
    for place in range(front):
        i = tables.ranking[place]
        arm = tables.held[i]
        own = ZERO
        if plan.thinned:
            own = pages if everybody else _turns(start, end, plan.agents, tables.position[i])
        tables.turns[arm, place] += own
        tables.views[arm, place] += pages - own
        _serve(tables, results, r, arm, place, pages)
    if front == plan.filled:
        return
    for rank in range(last, plan.agents):
        i = tables.ranking[rank]
        own = _turns(start, end, plan.agents, tables.position[i])
        tables.turns[tables.held[i], last] += own
        free -= own
        _serve(tables, results, r, tables.held[i], last, own)
    arm = tables.held[tables.ranking[last]]
    tables.views[arm, last] += free
    _serve(tables, results, r, arm, last, free)


@compiled
def _rest(plan, tables, results, r, start):
    """Play from page `start` on, by the pages on which a score rises."""
    everybody, last = plan.filled == plan.agents, plan.filled - 1
    _rank(plan, tables)
    tables.events[:], tables.following[:] = 0, NEVER
    for i in range(plan.agents if plan.thinned else 0):
        stride = 1 if everybody else plan.agents
        before = start - 1 if everybody else start + (tables.position[i] - start) % plan.agents - stride
        tables.following[i] = _after(plan, tables, i, before)
    while start < plan.horizon:
        event = np.int64(NEVER)
        for i in range(plan.agents):
            event = min(event, tables.following[i])
        end = min(event + 1, plan.horizon)
        _between(plan, tables, results, r, start, end)
        start = end
        if event >= plan.horizon:
            break
        for i in range(plan.agents):
            if tables.following[i] == event:
                tables.turns[tables.held[i], _place_of(tables, i, last)] -= 1
                tables.clicks[i] += 1
                tables.following[i] = _after(plan, tables, i, event)
                tables.score[i] += 1
        for rank in range(plan.agents):  # who stands in front climbs first
            _climb(tables, rank)


@compiled
def _place_of(tables, i, last):
    """Return the place in which agent i stands on a turn of its own."""
    at = 0
    while at < last and tables.ranking[at] != i:
        at += 1
    return at


@compiled
def _run_on(plan, tables, levels, results, r):
    """Play streams in blocks of pages, places by balance."""
    last, start, block = tables.attention[plan.filled - 1], ZERO, ZERO
    while start < plan.horizon:
        pages = min(plan.length, plan.horizon - start)
        _rank(plan, tables)
        for place in range(plan.agents):
            i = tables.ranking[place]
            arm = tables.held[i]
            row = tables.arms[arm]
            counted = binomial(pages, last * row.mean, block_stream(row.tape, RUN_ON + block))
            tables.clicks[i] += counted
            tables.turns[arm, place] += pages - counted
            _serve(tables, results, r, arm, place, pages)
            if pages == plan.length:
                _settle(tables, levels, i, counted)
        start, block = start + pages, block + 1


@compiled
def _settle(tables, levels, i, counted):
    """Charge a block to the draw of agent i."""
    tables.score[i], spent = _settled(tables.score[i], counted, ONE)
    if spent:
        tables.draw[i] += 1
        tables.held[i] = drawn_arm(tables, levels, i, tables.draw[i])


@compiled
def _learn(plan, tables, levels, results, r):
    """Play the laboratory, and return the page after it."""
    champion, level = np.zeros(plan.agents, np.int64), np.full(plan.agents, -1)
    start, whole = ZERO, plan.length * plan.agents
    for block in range(plan.blocks):
        pages = min(whole, plan.horizon - start)
        for i in range(plan.agents if pages > 0 else 0):
            if not plan.streams:
                tables.held[i] = drawn_arm(tables, levels, i, block)
            counted = _rotate(plan, tables, results, r, i, start, pages, np.int64(block))
            if plan.streams and pages == whole:
                _settle(tables, levels, i, counted)
            elif counted > level[i]:
                level[i], champion[i] = counted, tables.held[i]
        start += max(pages, 0)
    if not plan.streams:
        tables.held[:], tables.score[:] = champion, level
    pages = min(plan.rank_rounds * plan.agents, plan.horizon - start)
    for i in range(plan.agents if pages > 0 else 0):
        tables.score[i] += _rotate(plan, tables, results, r, i, start, pages, np.int64(plan.blocks))
    return start + max(pages, 0)


def _laboratory(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_whole_pages(plan, tables, owners, means, run_streams, results):
        arms, attention = tables.arms, tables.attention
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            begin_run(arms, len(arms), streams.tapes, means[r])
            tables.clicks[:], tables.views[:], tables.turns[:], tables.draw[:] = 0, 0, 0, 0
            order_agents(plan, tables.order, streams.levels)
            for position in range(plan.agents):
                tables.position[tables.order[position]] = position
            tables.score[:] = np.int64(plan.streams)
            for i in range(plan.agents):
                tables.held[i] = drawn_arm(tables, streams.levels, i, ZERO)
            if plan.runs:
                _run_on(plan, tables, streams.levels, results, r)
            else:
                start = _learn(plan, tables, streams.levels, results, r)
                if start < plan.horizon:
                    _rest(plan, tables, results, r, start)
            last = attention[plan.filled - 1]
            for a in range(len(arms)):
                for place in range(plan.filled):
                    chance = attention[place] * arms[a].mean
                    total = binomial(tables.views[a, place], chance, block_stream(arms[a].tape, VIEWS + place))
                    chance = (attention[place] - last) * arms[a].mean / max(1e-300, 1.0 - last * arms[a].mean)
                    total += binomial(tables.turns[a, place], chance, block_stream(arms[a].tape, TURNS + place))
                    tables.clicks[arms[a].agent] += total
            results.regret[r] = plan.horizon * best_page(means[r], owners, attention)
            for i in range(plan.agents):
                results.payoff[r, i] = tables.clicks[i]
                results.regret[r] -= results.served[r, i]

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
    return min(sum(each > 0 for each in job.market.places), len(job.market.agents))


def laboratory_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1 of a reservoir on pages, with the laws of a session."""
    rule, market, filled = job.mechanism.arm, job.market, _filled(job)
    agents, slots = len(market.agents), rule.slots
    thinned = slots.scores == "clicks" and (filled > 1 or filled == agents)
    numbers = slots.draws, rule.explore, slots.rank_rounds, slots.streams is not None, slots.streams == "run"
    plan = PagePlan(agents, filled, market.horizon, *numbers, thinned)
    arms, attention = arm_table(job, True), np.array(market.places)
    by_agent = [np.zeros(agents, np.int64) for _ in range(9)]
    by_arm = [np.zeros((len(arms), len(attention)), np.int64) for _ in range(2)]
    tables = PageTables(arms, first_arms(job), attention, *by_agent, *by_arm)
    owners = np.repeat(np.arange(agents), [agent.count for agent in market.agents])
    results = RunResults.empty(count, agents)
    means, streams = means_of_runs(job, first, count), run_streams(job.seed, first, count)
    run_whole_pages(plan, tables, owners, means, streams, results)
    return results.outcomes(market.share)


def laboratory_seconds(job: Job) -> float:
    """Estimate how long a run takes: draws of counts in the laboratory, and looks at all agents as scores rise."""
    market, rule, filled = job.market, job.mechanism.arm, _filled(job)
    agents, arms = len(market.agents), sum(map(sum, job.copies.values()))
    runs = rule.slots.streams == "run"
    blocks = market.horizon / rule.explore if runs else rule.draws * filled
    turns = market.horizon * (agents if filled == agents else 1)
    mean = sum(prior.mean for agent in market.agents for prior in agent.priors) / sum(
        agent.count for agent in market.agents
    )
    rises = 0.0 if runs else turns * market.places[filled - 1] * mean
    return 1e-6 + 1e-7 * agents * blocks + 4e-7 * arms * filled + (3e-7 + 1e-7 * agents) * min(rises, 1e9)
