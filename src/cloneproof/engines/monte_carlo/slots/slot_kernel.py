"""The kernels of the flat reservoir: `mechanisms.online.slot_state` where every reward arrives at once.

1. Draw the order of the agents and the arm of every slot.
2. Test slots in the order of the timetable, `explore` pulls each, until one scores the threshold.
3. Play the champion to the horizon: the first to pass, else the best score (ties to the earlier slot) or a fresh draw.

Stepped, every pull takes its reward from the arm's tape and its coin by agent, draw and pull, bit for bit as the
reference simulator. In blocks, a test is one binomial draw and so are the rounds of the champion: the horizon costs
nothing.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ONE, ZERO, begin_run
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream, streams_of
from cloneproof.engines.monte_carlo.randomness.exact_sums import average
from cloneproof.engines.monte_carlo.slots.contest_kernel import contest_rounds
from cloneproof.engines.monte_carlo.slots.slot_pulls import above, coins_at, drawn_arm, passes, pull
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.mechanisms.online.streams import FALLBACK_STREAM, ORDER_STREAM


@compiled
def _draw_slots(plan, tables, levels):
    """Step 1: the order of the agents, and the arm of each slot in the order of the timetable."""
    timetable = level_stream(levels, ZERO, ZERO)
    order, slots = tables.order, tables.slots
    stream = word(timetable, ORDER_STREAM)
    for i in range(plan.agents):  # by insertion: agents are few
        at, value = i, word(stream, i)
        while at > 0 and word(stream, order[at - 1]) > value:
            order[at] = order[at - 1]
            at -= 1
        order[at] = i
    for place in range(plan.agents):
        for draw in range(plan.draws):
            slots[draw * plan.agents + place] = drawn_arm(tables, levels, order[place], draw)
    if plan.fresh:
        i = order[np.int64(word(word(timetable, FALLBACK_STREAM), ZERO) % np.uint64(plan.agents))]
        slots[plan.draws * plan.agents] = drawn_arm(tables, levels, i, plan.draws)


@compiled
def _flat_rounds(plan, tables, coins, blocks):
    """Steps 2 and 3."""
    slots, order, count = tables.slots, tables.order, plan.draws * plan.agents
    done, champion, best = ZERO, np.int64(-1), ZERO
    best_high, best_low = ZERO, ZERO
    for slot in range(count):
        pulls = min(plan.explore, plan.horizon - done)
        if pulls <= 0:
            return
        own = coins_at(coins, order[slot % plan.agents], 1 + slot // plan.agents)
        high, low = pull(plan, tables, slots[slot], np.int64(slot), pulls, own, blocks)
        done += pulls
        if pulls == plan.explore and passes(plan, high, low):
            champion = np.int64(slot)
            break
        if slot == 0 or above(high, low, best_high, best_low):
            best, best_high, best_low = np.int64(slot), high, low
    if done >= plan.horizon:
        return
    if champion < 0:
        champion = np.int64(count) if plan.fresh else best
    pull(plan, tables, slots[champion], np.int64(count + 1), plan.horizon - done, coins, blocks)  # no coin is looked at


@compiled
def _run_slots(plan, tables, means, run_streams, payoff, served, regret, blocks):
    """All runs of a chunk: the rewards of each agent, what its pulls were worth, and the regret of each run."""
    arms, paid = tables.arms, tables.paid
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        begin_run(arms, len(arms), streams.tapes, means[r])
        for a in range(len(arms)):
            arms[a].pulls = 0
        for i in range(plan.agents):
            paid[i, 0], paid[i, 1] = 0, 0
        if plan.contest:
            contest_rounds(plan, tables, streams, blocks)
        else:
            _draw_slots(plan, tables, streams.levels)
            _flat_rounds(plan, tables, streams.coins, blocks)
        regret[r] = 0.0
        for a in range(len(arms)):
            regret[r] += arms[a].pulls * arms[a].loss
            served[r, arms[a].agent] += arms[a].pulls * arms[a].mean
        for i in range(plan.agents):
            payoff[r, i] = average(paid[i, 0], paid[i, 1], ONE)


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_slots(plan, tables, means, run_streams, payoff, served, regret, blocks):
        if sources:
            _run_slots(plan, tables, means, run_streams, payoff, served, regret, blocks)

    return run_slots


run_slots = _cached(source_stamp())
"""`_run_slots`, compiled once for these sources."""
