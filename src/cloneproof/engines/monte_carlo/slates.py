"""Pages of several places: the reservoir with a laboratory in blocks. Bandits are in `ranked_pages`.

Between two tests nothing changes, so a stage is one step: the count of its test is a binomial draw,
and what stands in front collects pages. The clicks of an arm in a place depend on nothing else, and are drawn once at
the end of the run.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.blocks.slots import drawn_arm, order_agents
from cloneproof.engines.monte_carlo.compiling import compiled, source_stamp, word
from cloneproof.engines.monte_carlo.job import Job, Outcomes, means_of_runs, run_streams
from cloneproof.engines.monte_carlo.runs import (
    ZERO,
    ArmTable,
    RunResults,
    arm_table,
    begin_run,
    first_arms,
    streams_of,
)

TURNS: Final = 1 << 40  # of the stream of levels: the order of turns; of a tape: the turns' draws
CLICKS: Final = 1 << 41  # of a tape: the clicks in each place


class SlatePlan(NamedTuple):
    """A job as numbers."""

    agents: int
    draws: int
    pulls: int
    horizon: int


class SlateTables(NamedTuple):
    """Arms, the first arm of each agent (and the end), attention by place, and what a run fills in."""

    arms: ArmTable
    first: IntArray
    attention: FloatArray
    order: IntArray  # of the tests, or by lot
    turns: IntArray
    ranking: IntArray  # agents with a finished test, the best first
    counts: IntArray  # of each agent's best test
    best: IntArray  # the arm of it
    pages: IntArray  # of each arm in each place
    clicks: IntArray  # of each agent


@compiled
def _climb(tables, ranked, i, count, arm):
    """Enter a finished test of agent i; return how many agents are ranked. Equal counts go to the earlier test."""
    ranking = tables.ranking
    at = ranked
    for k in range(ranked):
        if ranking[k] == i:
            at = k
    if at < ranked and count <= tables.counts[i]:
        return ranked
    new = ranked + 1 if at == ranked else ranked
    tables.counts[i], tables.best[i] = count, arm
    while at > 0 and tables.counts[ranking[at - 1]] < count:
        ranking[at] = ranking[at - 1]
        at -= 1
    ranking[at] = i
    return new


@compiled
def _take_turns(plan, tables, ranked, front, start, pages):
    """Give the places left over in front to agents without a finished test, in turn and with uniform draws."""
    waiting, seat = ZERO, ZERO
    for k in range(plan.agents):
        waiting += tables.counts[tables.turns[k]] < 0
    for k in range(plan.agents):
        i = tables.turns[k]
        if tables.counts[i] >= 0:
            continue
        for place in range(ranked, front):
            # pages t from start on with (t + place - ranked) % waiting == seat
            behind = (seat - (start + place - ranked)) % waiting
            left = (pages - behind + waiting - 1) // waiting if pages > behind else 0
            arms = tables.first[i + 1] - tables.first[i]
            for a in range(tables.first[i], tables.first[i + 1]):
                stream = block_stream(tables.arms[a].tape, TURNS + start * len(tables.attention) + place)
                taken = binomial(left, 1.0 / arms, stream)
                tables.pages[a, place] += taken
                left -= taken
                arms -= 1
        seat += 1


@compiled
def _close_slates(tables, best, results, r):
    """Store the outcome of run r from the pages of all arms and the agents' clicks; `best` is what could be served."""
    arms, attention = tables.arms, tables.attention
    for a in range(len(arms)):
        for place in range(len(attention)):
            results.served[r, arms[a].agent] += tables.pages[a, place] * attention[place] * arms[a].mean
            results.rounds[r, arms[a].agent] += tables.pages[a, place]
    results.regret[r] = best
    for i in range(len(tables.clicks)):
        results.payoff[r, i] = tables.clicks[i]
        results.regret[r] -= results.served[r, i]


@compiled
def best_page(means, owners, attention):
    """Return what a page of the best slate of different agents is worth."""
    agents = owners[-1] + 1
    bests = np.zeros(agents)
    for o in range(len(means)):
        bests[owners[o]] = max(bests[owners[o]], means[o])
    bests = -np.sort(-bests)
    worth = 0.0
    for place in range(min(len(attention), agents)):
        worth += attention[place] * bests[place]
    return worth


def _laboratory(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_laboratory(plan, tables, owners, means, run_streams, results):
        arms, attention = tables.arms, tables.attention
        filled = min(len(attention), plan.agents)
        for r in range(len(run_streams) if sources else 0):
            streams = streams_of(run_streams[r])
            begin_run(arms, len(arms), streams.tapes, means[r])
            tables.clicks[:], tables.pages[:] = 0, 0
            tables.counts[:] = -1
            order_agents(plan, tables.order, streams.levels)
            order_agents(plan, tables.turns, word(streams.levels, TURNS))
            ranked, start, test = ZERO, ZERO, ZERO
            tests = plan.draws * plan.agents
            while start < plan.horizon:
                testing = test < tests
                front = filled - np.int64(testing)
                pages = min(plan.pulls, plan.horizon - start) if testing else plan.horizon - start
                for place in range(min(front, ranked)):
                    tables.pages[tables.best[tables.ranking[place]], place] += pages
                if ranked < front:
                    _take_turns(plan, tables, ranked, front, start, pages)
                if testing:
                    i = tables.order[test % plan.agents]
                    arm = drawn_arm(tables, streams.levels, i, test // plan.agents)
                    lab = filled - 1
                    found = binomial(pages, attention[lab] * arms[arm].mean, block_stream(arms[arm].tape, test))
                    tables.clicks[i] += found
                    results.served[r, i] += pages * attention[lab] * arms[arm].mean
                    results.rounds[r, i] += pages
                    if pages == plan.pulls:
                        ranked = _climb(tables, ranked, i, found, arm)
                    test += 1
                start += pages
            for a in range(len(arms)):
                for place in range(filled):
                    chance, stream = attention[place] * arms[a].mean, block_stream(arms[a].tape, CLICKS + place)
                    tables.clicks[arms[a].agent] += binomial(tables.pages[a, place], chance, stream)
            _close_slates(tables, plan.horizon * best_page(means[r], owners, attention), results, r)

    return run_laboratory


run_laboratory = _laboratory(source_stamp())
"""Compiled once for these sources."""


def _is_flat(job: Job) -> bool:
    mechanism = job.mechanism
    alone = mechanism.flat and mechanism.unchanging
    return alone and job.market.family.law == "coin" and job.market.ends == "at-horizon"


def laboratory_applies(job: Job) -> bool:
    """Whether the job is the reservoir on slates, on coins."""
    rule = job.mechanism.arm
    return bool(job.market.places) and _is_flat(job) and rule.draws > 0 and rule.commits and rule.binarise


def _tables(job: Job, count: int) -> tuple[SlateTables, IntArray, RunResults]:
    agents = len(job.market.agents)
    arms = arm_table(job, True)
    attention = np.array(job.market.places)
    order, turns, ranking, counts, best, clicks = (np.zeros(agents, np.int64) for _ in range(6))
    pages = np.zeros((len(arms), len(attention)), np.int64)
    tables = SlateTables(arms, first_arms(job), attention, order, turns, ranking, counts, best, pages, clicks)
    owners = np.repeat(np.arange(agents), [agent.count for agent in job.market.agents])
    return tables, owners, RunResults.empty(count, agents)


def laboratory_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1 of the reservoir, with the laws of a session."""
    rule, market = job.mechanism.arm, job.market
    plan = SlatePlan(len(market.agents), rule.draws, rule.explore, market.horizon)
    tables, owners, results = _tables(job, count)
    run_laboratory(plan, tables, owners, means_of_runs(job, first, count), run_streams(job.seed, first, count), results)
    return results.outcomes(market.share)
