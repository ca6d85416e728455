"""UCB1 as most people run it: one level over a small number of arms with random rewards, and nothing else in the loop.

1. Pull every arm once, in the order of their hashes.
2. Scan all indices for the leader, and for a bound on its rivals over the next rounds.
3. Pull the leader until its index falls to that bound or the bound expires; go on with 2.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream
from cloneproof.engines.monte_carlo.ucb.arm_pulls import PlayedAgent, RandomArm, Span, pull_random_arm
from cloneproof.engines.monte_carlo.ucb.exploration_order import sort_for_exploration
from cloneproof.engines.monte_carlo.ucb.leader_scan import AHEAD, FIRST, NO, estimated_leader, exact_leader
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import GOLDEN, mixed
from cloneproof.mechanisms.online.streams import EXPLORE_STREAM, TIE_STREAM


@compiled
def run_ucb1(plan, work, streams, results):
    """One run: adds pulls by original and wins by agent to the results."""
    table, arms, horizon, originals = plan.arm_table, plan.arms, plan.horizon, work.originals
    pulls, sums, _, means, roots = work.arms
    order, tape = work.positions.order, work.positions.tape
    count, shift = len(arms.original), table.shift
    stream = level_stream(streams.levels, FIRST, FIRST)
    tie_stream = word(stream, TIE_STREAM)
    sort_for_exploration(word(stream, EXPLORE_STREAM), arms.key, order)
    explored = min(count, horizon)
    for position in range(explored):
        k = order[position]
        original = arms.original[k]
        x = word(originals.tapes[original], arms.copy[k]) + GOLDEN
        won = np.int64(mixed(x) < originals.thresholds[original])
        tape[2 * k], tape[2 * k + 1] = x + GOLDEN, originals.thresholds[original]
        pulls[k], sums[k], means[k], roots[k] = 1, won, np.float64(won), 1.0
        if len(results.trace):
            results.trace[position] = k
    nobody = PlayedAgent(True, table.root, FIRST, FIRST, FIRST, FIRST, 0.0)
    t = np.int64(count + 1)
    while t <= horizon:
        clock, until = t - shift, min(t + AHEAD, horizon)
        k, rivals, sure = estimated_leader(work.arms, FIRST, count, table, clock, until - shift)
        if not sure:
            k = exact_leader(work.arms, FIRST, count, NO, table, clock, tie_stream, t - 1)
            until = t
        start = t
        arm = RandomArm(tape[2 * k], np.int64(tape[2 * k + 1]), pulls[k], sums[k])
        tape[2 * k], sums[k], t = pull_random_arm(arm, Span(start, until, clock, rivals), table, nobody)
        n = arm.pulls + t - start
        pulls[k], means[k], roots[k] = n, sums[k] * table.reciprocal[n], table.reciprocal_root[n]
        if len(results.trace):
            results.trace[start - 1 : t - 1] = k
    for position in range(explored):
        k = order[position]
        results.pulls[arms.original[k]] += pulls[k]
        results.wins[arms.agent_of[arms.original[k]]] += sums[k]
