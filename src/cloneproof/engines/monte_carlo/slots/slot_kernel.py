"""The kernels of the flat reservoir: `mechanisms.online.slot_state` where every reward arrives at once.

1. Draw the order of the agents and the arm of every slot.
2. Test slots in the order of the timetable, `explore` pulls each, until one counts the threshold.
3. Play the champion to the horizon: the first to pass, else the best count (ties to the earlier slot) or a fresh draw.

Stepped, every pull takes its reward from the arm's tape and its coin by the round, bit for bit as the reference
simulator. In blocks, a test is one binomial draw and so are the rounds of the champion: the horizon costs nothing.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ONE, begin_run
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.block_draws import block_stream
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness import compiled_quantiles  # noqa: F401 (teaches the compiler a quantile)
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream, streams_of
from cloneproof.engines.monte_carlo.randomness.exact_sums import average, plus, ticks, times
from cloneproof.engines.monte_carlo.slots.slot_plan import FAMILIES
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.mechanisms.online.streams import FALLBACK_STREAM, ORDER_STREAM, SLOT_STREAM

_bernoulli, _deterministic, _beta = (nb.njit(nogil=True)(function) for function in FAMILIES)
_COINS = np.int64(1)  # where the coins of a block of sure rewards leave its stream


@compiled
def _reward(plan, mean, u):
    if plan.family == 0:
        return _bernoulli(mean, u)
    if plan.family == 1:
        return _deterministic(mean, u)
    return _beta(mean, u, plan.parameter)


@compiled
def _draw_slots(plan, tables, levels):
    """Step 1: the order of the agents, and the arm of each slot in the order of the timetable."""
    timetable = level_stream(levels, np.int64(0), np.int64(0))
    order, first, slots = tables.order, tables.first, tables.slots
    stream = word(timetable, ORDER_STREAM)
    for i in range(plan.agents):  # by insertion: agents are few
        at, value = i, word(stream, i)
        while at > 0 and word(stream, order[at - 1]) > value:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    for place in range(plan.agents):
        i = order[place]
        draws = word(level_stream(levels, np.int64(0), i + 1), SLOT_STREAM)
        arms = first[i + 1] - first[i]
        for draw in range(plan.draws):
            slots[draw * plan.agents + place] = first[i] + np.int64(uniform(draws, draw) * arms)
    if plan.fresh:
        i = order[np.int64(word(word(timetable, FALLBACK_STREAM), np.int64(0)) % np.uint64(plan.agents))]
        draws = word(level_stream(levels, np.int64(0), i + 1), SLOT_STREAM)
        chosen = np.int64(uniform(draws, plan.draws) * (first[i + 1] - first[i]))
        slots[plan.draws * plan.agents] = first[i] + chosen


@compiled
def _step(plan, tables, a, begin, pulls, coins):
    """So many pulls of an arm from round `begin` on, one by one; the count of their coins."""
    arm, paid = tables.arms[a], tables.paid
    high, low, count = np.int64(0), np.int64(0), np.int64(0)
    for t in range(begin, begin + pulls):
        reward = _reward(plan, arm.mean, uniform(arm.tape, arm.pulls))
        arm.pulls += 1
        if reward >= 1.0 or (reward > 0.0 and uniform(coins, t) < reward):
            count += 1
        if plan.family == 0:
            high += np.int64(reward)
        else:
            more_high, more_low = ticks(reward)
            high, low = plus(high, low, more_high, more_low)
    paid[arm.agent, 0], paid[arm.agent, 1] = plus(paid[arm.agent, 0], paid[arm.agent, 1], high, low)
    return count


@compiled
def _block(plan, tables, a, slot, pulls):
    """So many pulls of an arm as one draw; the count of their coins."""
    arm, paid = tables.arms[a], tables.paid
    stream = block_stream(arm.tape, slot)
    arm.pulls += pulls
    if plan.family == 0:
        count = binomial(pulls, arm.mean, stream)
        high, low = count, np.int64(0)
    else:
        count = binomial(pulls, arm.mean, word(stream, _COINS))
        high, low = ticks(arm.mean)
        high, low = times(pulls, high, low)
    paid[arm.agent, 0], paid[arm.agent, 1] = plus(paid[arm.agent, 0], paid[arm.agent, 1], high, low)
    return count


@compiled
def _pull(plan, tables, slot, a, done, pulls, coins, blocks):
    if blocks:
        return _block(plan, tables, a, slot, pulls)
    return _step(plan, tables, a, done + 1, pulls, coins)


@compiled
def _run(plan, tables, coins, blocks):
    """Steps 2 and 3."""
    slots, counts = tables.slots, tables.counts
    done, champion, count = np.int64(0), np.int64(-1), plan.draws * plan.agents
    for slot in range(count):
        pulls = min(plan.explore, plan.horizon - done)
        if pulls <= 0:
            return
        counts[slot] = _pull(plan, tables, slot, slots[slot], done, pulls, coins, blocks)
        done += pulls
        if pulls == plan.explore and counts[slot] >= plan.threshold:
            champion = np.int64(slot)
            break
    if done >= plan.horizon:
        return
    if champion < 0:
        champion = np.int64(count)
        if not plan.fresh:
            champion = np.int64(0)
            for slot in range(1, count):
                if counts[slot] > counts[champion]:
                    champion = np.int64(slot)
    _pull(plan, tables, np.int64(count + 1), slots[champion], done, plan.horizon - done, coins, blocks)


@compiled
def _run_slots(plan, tables, means, run_streams, payoff, regret, blocks):
    """All runs of a chunk: the rewards of each agent and the regret of each run."""
    arms, paid = tables.arms, tables.paid
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        begin_run(arms, len(arms), streams.tapes, means[r])
        for a in range(len(arms)):
            arms[a].pulls = 0
        for i in range(plan.agents):
            paid[i, 0], paid[i, 1] = 0, 0
        _draw_slots(plan, tables, streams.levels)
        _run(plan, tables, streams.coins, blocks)
        regret[r] = 0.0
        for a in range(len(arms)):
            regret[r] += arms[a].pulls * arms[a].loss
        for i in range(plan.agents):
            payoff[r, i] = average(paid[i, 0], paid[i, 1], ONE)


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_slots(plan, tables, means, run_streams, payoff, regret, blocks):
        if sources:
            _run_slots(plan, tables, means, run_streams, payoff, regret, blocks)

    return run_slots


run_slots = _cached(source_stamp())
"""`_run_slots`, compiled once for these sources."""
