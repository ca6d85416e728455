"""Bandits of one level or two on pages of several places, page by page and to the bits of a session.

Rows are the candidates of all levels: the arms, and before them the agents where these are a level of their own. On a
page the agents of the highest values are shown, each with its best arm; or with one level the arms. A steady index
keeps its value until its row has a view; other priorities are computed anew on each page.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray, WordArray
from cloneproof.engines.monte_carlo.compiling import compiled, inlined, source_stamp, uncounted, uniform, word
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.numba_runs import ZERO, begin_run, level_stream, streams_of
from cloneproof.engines.monte_carlo.rounds import logarithm_table
from cloneproof.engines.monte_carlo.runs import RunResults, arm_table, first_arms
from cloneproof.engines.monte_carlo.stepping.functions import compiled_priority, priority_at
from cloneproof.mechanisms.online.streams import COIN_STREAM, DRAW_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs, Rule

LONGEST: Final = 10**8  # pages that are stepped one by one


class PageRule(NamedTuple):
    """The rule of a level as numbers."""

    steady: bool
    explores: bool
    completed: bool  # whether the clock counts completed rounds
    priority: int
    parameters: FloatArray

    @classmethod
    def of(cls, rule: Rule, address: int) -> PageRule:
        numbers = np.array(rule.parameters, np.float64)
        return cls(rule.steady, rule.explore > 0, rule.clock == "completed", address, numbers)


class RankedPlan(NamedTuple):
    """A job as numbers and arrays; `above` counts the rows before those of the arms."""

    horizon: int
    flat: bool
    one_each: bool
    above: int
    upper: PageRule
    lower: PageRule
    first: IntArray  # arms of each agent, and the end
    keys: WordArray
    attention: FloatArray
    logarithms: FloatArray


class PageRows(NamedTuple):
    """What a run fills in of each candidate: streams, views by place, clicks, attention, mean, value."""

    draws: WordArray
    lots: WordArray
    views: IntArray
    clicks: IntArray
    seen: FloatArray
    means: FloatArray
    values: FloatArray
    rounds: IntArray  # of each agent


@inlined
def _count(rows, rule, attention, count, k):
    """Enter what the views of row k come to."""
    seen = 0.0
    for place in range(len(attention)):
        seen += attention[place] * rows.views[k, place]
    mean = rows.clicks[k] / seen if seen > 0.0 else 0.0
    rows.seen[k], rows.means[k] = seen, mean
    if rule.steady:
        rows.values[k] = _priority(rows, rule, count, k, ZERO, 0.0, 0.5, 0.5)


@inlined
def _priority(rows, rule, count, k, clock, log_clock, coin, draw):
    if rule.explores and rows.seen[k] == 0.0:
        return np.inf
    inputs = PriorityInputs(clock, log_clock, rows.seen[k], rows.means[k], coin, draw, count)
    return priority_at(rule.priority, inputs, rule.parameters)


@inlined
def _set_values(rows, rule, logarithms, begin, end, page, clock, coins):
    """Set the values of the rows of a level on a page."""
    if not rule.steady:
        clock -= np.int64(rule.completed)
        coin = uniform(coins, page)
        for k in range(begin, end):
            draw = uniform(rows.draws[k], page)
            rows.values[k] = _priority(rows, rule, end - begin, k, clock, logarithms[clock], coin, draw)


@inlined
def _before(rows, k, other, page):
    """Whether row k comes before another on a page: by value, then by lot."""
    one, two = rows.values[k], rows.values[other]
    return one > two or (one == two and word(rows.lots[k], page) < word(rows.lots[other], page))


@inlined
def _best(rows, begin, end, page):
    best = begin
    for k in range(begin + 1, end):
        if _before(rows, k, best, page):
            best = k
    return best


@inlined
def _insert(rows, shown, found, k, page):
    """Insert row k into those shown, the best first; return how many there are."""
    if found == len(shown):
        if not _before(rows, k, shown[found - 1], page):
            return found
        found -= 1
    at = found
    while at > 0 and _before(rows, k, shown[at - 1], page):
        shown[at] = shown[at - 1]
        at -= 1
    shown[at] = k
    return found + 1


@compiled
def _open(rows, rule, attention, begin, end, stream, keys):
    """Open a level with no statistics; return the stream of its coins."""
    draws, lots = word(stream, DRAW_STREAM), word(stream, TIE_STREAM)
    for k in range(begin, end):
        rows.draws[k], rows.lots[k] = word(draws, keys[k]), word(lots, keys[k])
        rows.views[k], rows.clicks[k] = 0, 0
        _count(rows, rule, attention, end - begin, k)
    return word(stream, COIN_STREAM)


@inlined
def _view(plan, rows, k, place, hit, rule, count):
    """Enter a view of row k in a place."""
    rows.views[k, place] += 1
    rows.clicks[k] += hit
    _count(rows, rule, plan.attention, count, k)


@compiled
def _open_run(plan, rows, levels, inner):
    """Open all levels; return the stream of the coins of the upper one."""
    rows.rounds[:] = 0
    top, first = level_stream(levels, ZERO, ZERO), plan.first
    if plan.flat:
        return _open(rows, plan.lower, plan.attention, ZERO, first[-1], top, plan.keys)
    for i in range(plan.above):
        begin, end = plan.above + first[i], plan.above + first[i + 1]
        inner[i] = _open(rows, plan.lower, plan.attention, begin, end, level_stream(levels, ZERO, i + 1), plan.keys)
    return _open(rows, plan.upper, plan.attention, ZERO, plan.above, top, plan.keys)


@inlined
def _show(plan, rows, shown, page, coins):
    """Fill `shown` with the rows of highest value: agents, or with one level arms; return how many there are."""
    first, found = plan.first, ZERO
    if not plan.flat:
        _set_values(rows, plan.upper, plan.logarithms, ZERO, plan.above, page, page, coins)
        for i in range(plan.above):
            found = _insert(rows, shown, found, i, page)
        return found
    _set_values(rows, plan.lower, plan.logarithms, ZERO, first[-1], page, page, coins)
    if plan.one_each:
        for i in range(len(first) - 1):
            found = _insert(rows, shown, found, _best(rows, first[i], first[i + 1], page), page)
        return found
    for k in range(first[-1]):
        found = _insert(rows, shown, found, k, page)
    return found


@compiled
def _play(plan, rows, arms, inner, shown, coins):
    """Play all pages of a run."""
    plan, rows, arms, inner, shown = uncounted((plan, rows, arms, inner, shown))
    attention, above = plan.attention, plan.above  # rows before those of the arms
    for page in range(1, plan.horizon + 1):
        for place in range(_show(plan, rows, shown, page, coins)):
            i, k = shown[place], shown[place]
            begin, end = ZERO, plan.first[-1]
            if not plan.flat:
                begin, end = above + plan.first[i], above + plan.first[i + 1]
                rows.rounds[i] += 1
                _set_values(rows, plan.lower, plan.logarithms, begin, end, page, rows.rounds[i], inner[i])
                k = _best(rows, begin, end, page)
            arm = arms[k - above]
            hit = np.int64(uniform(arm.tape, arm.pulls) < attention[place] * arm.mean)
            arm.pulls += 1
            _view(plan, rows, k, place, hit, plan.lower, end - begin)
            if not plan.flat:
                _view(plan, rows, i, place, hit, plan.upper, above)


def _ranked(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_ranked(plan, rows, arms, means, streams, results):
        shown, inner = np.zeros(len(plan.attention), np.int64), np.zeros(len(plan.first), np.uint64)
        for r in range(len(streams) if sources else 0):
            own = streams_of(streams[r])
            begin_run(arms, len(arms), own.tapes, means[r])
            _play(plan, rows, arms, inner, shown, _open_run(plan, rows, own.levels, inner))
            for a in range(len(arms)):
                results.payoff[r, arms[a].agent] += rows.clicks[plan.above + a]
                for place in range(len(plan.attention)):
                    results.views[r, arms[a].column, place] += rows.views[plan.above + a, place]

    return run_ranked


run_ranked = _ranked(source_stamp())
"""Compiled once for these sources."""


def ranked_pages_apply(job: Job) -> bool:
    """Whether the job is a bandit on pages, of one level or two, of built-in rules on coins."""
    mechanism, market = job.mechanism, job.market
    known = mechanism.ranks_pages and all(rule.index != "own" for rule in mechanism.rules)
    fits = market.family.law == "coin" and market.ends == "at-horizon" and market.horizon <= LONGEST
    return bool(market.places) and known and fits


def play_ranked_pages(job: Job, means: FloatArray, streams: WordArray, results: RunResults) -> None:
    """Play runs bit for bit as a session does."""
    mechanism, agents, arms = job.mechanism, len(job.market.agents), arm_table(job, job.mechanism.flat)
    attention, above = np.array(job.market.places), 0 if mechanism.flat else agents
    rules = (mechanism.agent or mechanism.arm, mechanism.arm)
    priorities = [compiled_priority(rule) for rule in rules]
    upper, lower = (PageRule.of(rule, priority.address) for rule, priority in zip(rules, priorities, strict=True))
    keys = np.concatenate([np.arange(above, dtype=np.uint64), arms["key"]])
    plan = RankedPlan(
        job.market.horizon, mechanism.flat, mechanism.one_place_each, above, upper, lower, first_arms(job), keys,
        attention, logarithm_table(job.market.horizon),
    )  # fmt: skip
    count = len(keys)
    rows = PageRows(
        draws=np.zeros(count, np.uint64),
        lots=np.zeros(count, np.uint64),
        views=np.zeros((count, len(attention)), np.int64),
        clicks=np.zeros(count, np.int64),
        seen=np.zeros(count),
        means=np.zeros(count),
        values=np.zeros(count),
        rounds=np.zeros(agents, np.int64),
    )
    run_ranked(plan, rows, arms, means, streams, results)
