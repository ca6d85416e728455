"""Consecutive pulls of one arm, until its index or that of its agent may no longer be the highest.

Here most of the time goes. Indices of arrays are unsigned, as Numba asks of a signed one whether it counts from the
end, which is a third of all instructions in loops as tight as these; and what is not needed between two pulls is not
written down.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.engines.monte_carlo.compiled_functions import inlined
from cloneproof.engines.monte_carlo.ucb.tables.exact_index import BELOW_ONE, TICK
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import GOLDEN, mixed

_1 = np.uint64(1)


class PlayedAgent(NamedTuple):
    """The agent whose arms are pulled, before the first of these pulls: its rule, its statistics and its rivals.

    Its sum of rewards is `whole` + `rest` 2^-60. It plays on while its index is above `rivals`, which bounds those of
    all other agents; where the mechanism is `flat`, it has no index and plays on in any case.
    """

    flat: bool
    root: FloatArray
    shift: np.int64
    pulls: np.int64
    whole: np.int64
    rest: np.int64
    rivals: float


class Span(NamedTuple):
    """Rounds that one arm, or one group of arms, may be played in: from `start` to `last`, at most.

    The clock of the level shows `clock` in the first of them, and no other arm's index exceeds `rivals` in any.
    """

    start: np.int64
    last: np.int64
    clock: np.int64
    rivals: float


class RandomArm(NamedTuple):
    """An arm with random rewards: the state of its reward tape, the threshold of a success, pulls and successes."""

    tape: np.uint64
    threshold: np.int64
    pulls: np.int64
    wins: np.int64


@inlined
def pull_random_arm(arm, span, table, agent):
    """Pull an arm with random rewards; returns its tape, its successes and the next round."""
    root, reciprocal, reciprocal_root, agent_root = table.root, table.reciprocal, table.reciprocal_root, agent.root
    x, wins, other_wins = arm.tape, arm.wins, agent.whole - arm.wins
    t, last, clock, pulls = np.uint64(span.start), np.uint64(span.last), np.uint64(span.clock), np.uint64(arm.pulls)
    agent_pulls, agent_clock = np.uint64(agent.pulls), np.uint64(span.start - agent.shift)
    while True:
        wins += mixed(x) < arm.threshold
        x += GOLDEN
        pulls += _1
        t += _1
        clock += _1
        if t > last or wins * reciprocal[pulls] + root[clock] * reciprocal_root[pulls] <= span.rivals:
            break
        if not agent.flat:
            agent_pulls += _1
            agent_clock += _1
            agent_mean = (other_wins + wins) * reciprocal[agent_pulls]
            if agent_mean + agent_root[agent_clock] * reciprocal_root[agent_pulls] <= agent.rivals:
                break
    return x, wins, np.int64(t)


@inlined
def pull_constant_arm(mean, ticks, pulls, span, table, agent):
    """Pull an arm that always pays its mean (`ticks` of 2^-60); returns the sum of its agent and the next round."""
    t, clock, agent_pulls, whole, rest = span.start, span.clock, agent.pulls, agent.whole, agent.rest
    while True:
        pulls += 1
        agent_pulls += 1
        rest += ticks
        whole += rest >> 60
        rest &= BELOW_ONE
        t += 1
        clock += 1
        if t > span.last or mean + table.root[clock] * table.reciprocal_root[pulls] <= span.rivals:
            break
        if not agent.flat:
            agent_mean = (whole + rest * TICK) * table.reciprocal[agent_pulls]
            bonus = agent.root[t - agent.shift] * table.reciprocal_root[agent_pulls]
            if agent_mean + bonus <= agent.rivals:
                break
    return whole, rest, t
