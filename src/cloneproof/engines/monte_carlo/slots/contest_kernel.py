"""A contest of champions: `mechanisms.online.two_level_state` on slots, where every reward arrives at once.

1. Agents take turns, and what one does in its turns does not depend on the others: so each tests its draws and finds
   its champion by itself, one agent after the other.
2. From `after` rounds of an agent on its champion's rewards count: coins of the contest, or the rewards as they are.
   When every agent has had its rounds of exploration, the highest index plays, ties uniformly at random.

An index depends on its agent's own rewards alone. So only that of the agent that played is computed, and nobody else is
looked at while it stays above the second highest.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ZERO
from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream
from cloneproof.engines.monte_carlo.randomness.exact_sums import average, plus, ticks
from cloneproof.engines.monte_carlo.slots.slot_plan import KL
from cloneproof.engines.monte_carlo.slots.slot_pulls import (
    above,
    coins_at,
    drawn_arm,
    next_reward,
    passes,
    pay,
    pull,
    shows_one,
)
from cloneproof.engines.monte_carlo.stepping.user_functions import with_callees
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted
from cloneproof.mechanisms.kl_bound import kl_upper_bound
from cloneproof.mechanisms.online.level import TICK_BITS
from cloneproof.mechanisms.online.streams import CONTEST_PLACE, EXPLORE_STREAM, TIE_STREAM

TICK = 2.0**-TICK_BITS
SURE = 1.0 - 1e-7
NEAR_ONE = 0.999  # beyond it rounding may hide a difference
_kl_upper_bound = with_callees(kl_upper_bound)


@compiled
def contest_rounds(plan, tables, streams, blocks):
    """All rounds of a run."""
    plan, tables = uncounted(plan), uncounted(tables)
    contenders = tables.contenders
    level = level_stream(streams.levels, ZERO, ZERO)
    for i in range(plan.agents):
        rounds = _rounds_in_turn(plan, level, i)
        arm = _champion(plan, tables, streams, i, min(rounds, plan.after), blocks)
        row = contenders[i]
        row.arm, row.high, row.low, row.pulls = arm, 0, 0, 0
        row.coins = coins_at(streams.coins, i, CONTEST_PLACE)
        for _ in range(rounds - plan.after):
            _play(plan, tables, row)
        if row.pulls > 0:
            row.index = _index(plan, row)
    if plan.horizon > plan.turns * plan.agents:
        _contest(plan, tables, word(level, TIE_STREAM))


@compiled
def _rounds_in_turn(plan, level, i):
    """Rounds of agent i while agents take turns; the horizon may end inside a sweep, whose order is drawn."""
    sweep = plan.horizon // plan.agents
    if sweep >= plan.turns:
        return plan.turns
    stream = word(level, EXPLORE_STREAM)
    own, before = word(word(stream, i), sweep), ZERO
    for k in range(plan.agents):
        other = word(word(stream, k), sweep)
        before += other < own or (other == own and k < i)
    return sweep + np.int64(before < plan.horizon % plan.agents)


@compiled
def _champion(plan, tables, streams, i, rounds, blocks):
    """The arm that agent i goes on with after so many rounds; -1 where they do not suffice for its tests."""
    done, champion, best = ZERO, np.int64(-1), np.int64(-1)
    best_high, best_low = ZERO, ZERO
    for draw in range(plan.draws):
        pulls = min(plan.explore, rounds - done)
        if pulls <= 0:
            return np.int64(-1)
        a = drawn_arm(tables, streams.levels, i, draw)
        own = coins_at(streams.coins, i, 1 + draw)
        high, low = pull(plan, tables, a, np.int64(draw), pulls, own, blocks)
        done += pulls
        if pulls < plan.explore:
            return np.int64(-1)
        if passes(plan, high, low):
            champion = a
            break
        if best < 0 or above(high, low, best_high, best_low):
            best, best_high, best_low = a, high, low
    if champion < 0:
        champion = drawn_arm(tables, streams.levels, i, plan.draws) if plan.fresh else best
    if rounds > done:
        pull(plan, tables, champion, np.int64(plan.draws + 1), rounds - done, streams.coins, blocks)
    return champion


@compiled
def _play(plan, tables, row):
    """A round of a champion in the contest."""
    arm = tables.arms[row.arm]
    reward = next_reward(plan, arm)
    high, low = ticks(reward)
    pay(tables, arm.agent, high, low)
    if plan.contest_raw:
        row.high, row.low = plus(row.high, row.low, high, low)
    else:
        row.high += np.int64(shows_one(reward, row.coins, row.pulls))
    row.pulls += 1


@compiled
def _index(plan, row):
    """The priority of `steady_kl_ucb` or `steady_ucb` after some pulls."""
    mean = average(row.high, row.low, row.pulls)
    if plan.contest == KL:
        return _kl_upper_bound(mean, np.float64(row.pulls), plan.width)
    return mean + math.sqrt(plan.width / row.pulls)


@compiled
def _contest(plan, tables, ties):
    """The rounds after all turns."""
    contenders = tables.contenders
    leader, second = _leader(plan, contenders, ties, plan.turns * plan.agents)
    for t in range(plan.turns * plan.agents, plan.horizon):
        row = contenders[leader]
        _play(plan, tables, row)
        if _surely_above(plan, row, second):
            continue
        row.index = _index(plan, row)
        if not row.index > second:
            leader, second = _leader(plan, contenders, ties, t + 1)


@inlined
def _surely_above(plan, row, second):
    """Whether the index is above another one by a bound that takes no root, and by far more than it is rounded.

    It is if the other one, q, is within the bonus: for steady UCB n (q - mean)^2 < width; for steady KL-UCB
    n kl(mean, q) < width, where kl(p, q) is the integral of (x - p) / (x (1 - x)) from p to q, at most (q - p)^2 / 2
    over the smaller of p (1 - p) and q (1 - q).
    """
    mean = (row.high + row.low * TICK) / row.pulls
    distance = second - mean
    spread = 1.0
    if plan.contest == KL:
        spread = 2.0 * min(mean * (1.0 - mean), second * (1.0 - second))
        if distance < 0.0 or second > NEAR_ONE:
            return False
    return row.pulls * distance * abs(distance) < SURE * plan.width * spread


@compiled
def _leader(plan, contenders, ties, rounds):
    """Who plays after so many rounds, and the highest index of the others."""
    highest, second, count, leader = -np.inf, -np.inf, ZERO, ZERO
    for i in range(plan.agents):
        value = contenders[i].index
        if value > highest:
            highest, second, count, leader = value, highest, np.int64(1), np.int64(i)
        elif value == highest:
            second, count = value, count + 1
        elif value > second:
            second = value
    if count > 1:
        chosen = np.int64(uniform(ties, rounds) * count)
        for i in range(plan.agents):
            if contenders[i].index == highest:
                if chosen == 0:
                    return np.int64(i), second
                chosen -= 1
    return leader, second
