"""One level over few arms with random rewards: UCB1 as people run it, which gets a loop without anything else in it."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.ucb.exploration_order import exploration
from cloneproof.engines.monte_carlo.ucb.leader_pulls import play_arm
from cloneproof.engines.monte_carlo.ucb.small_level import AHEAD, FIRST, NO, exact_leader, leader_and_bar
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import GOLDEN, mixed

_ZERO, _EXPLORE, _TIE = np.uint64(0), np.uint64(0), np.uint64(1)


@nb.njit(nogil=True)
def run_few(table, horizon, arms, work, machine_stream, pulls_of, wins_of, trace):
    """One run: adds up pulls by original and wins by agent."""
    order, tape, pulls, sums, means, roots = work.order, work.tape, work.pulls, work.sums, work.estimates, work.roots
    tapes, thresholds, nothing = work.tapes, work.thresholds, work.nothing
    count, shift, margin = len(arms.original), table.shift, table.margin
    root, reciprocal, reciprocal_root, exact = table.root, table.reciprocal, table.reciprocal_root, table.exact
    stream = word(word(word(machine_stream, _ZERO), _ZERO), _ZERO)
    tie_stream = word(stream, _TIE)
    exploration(word(stream, _EXPLORE), arms.key, order)
    explored = min(count, horizon)
    for position in range(explored):
        k = order[position]
        original = arms.original[k]
        x = word(tapes[original], arms.copy[k]) + GOLDEN
        won = np.int64(mixed(x) < thresholds[original])
        tape[2 * k], tape[2 * k + 1] = x + GOLDEN, thresholds[original]
        pulls[k], sums[k], means[k], roots[k] = 1, won, np.float64(won), 1.0
        if len(trace):
            trace[position] = k
    t = count + 1
    while t <= horizon:
        clock, until = t - shift, min(t + AHEAD, horizon)
        k, bar, sure = leader_and_bar(means, roots, FIRST, count, root[clock], root[until - shift], margin)
        if not sure:
            k = exact_leader(
                pulls, sums, nothing, means, roots, FIRST, count, NO, exact[clock], root[clock], margin, tie_stream,
                t - 1,
            )  # fmt: skip
            until = t
        start = t
        tape[2 * k], sums[k], t = play_arm(
            table, table, True, tape[2 * k], np.int64(tape[2 * k + 1]), pulls[k], sums[k], clock, bar, t, until, 0, 0,
            0.0,
        )  # fmt: skip
        own = pulls[k] + t - start
        pulls[k], means[k], roots[k] = own, sums[k] * reciprocal[own], reciprocal_root[own]
        if len(trace):
            trace[start - 1 : t - 1] = k
    for position in range(explored):
        k = order[position]
        pulls_of[arms.original[k]] += pulls[k]
        wins_of[arms.agent_of[arms.original[k]]] += sums[k]
