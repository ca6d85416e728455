"""Pulls of an arm that is held by a slot, compiled: one by one from its tape, or as one draw; and the slot's score.

A score is an exact sum (high, low): the count of coins, or where rewards count as they are (`plan.raw`) their sum.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ZERO
from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.block_draws import block_stream
from cloneproof.engines.monte_carlo.compiled_functions import compiled, inlined
from cloneproof.engines.monte_carlo.randomness import compiled_quantiles  # noqa: F401 (teaches the compiler two quantiles)
from cloneproof.engines.monte_carlo.randomness.compiled_hash import uniform, word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream
from cloneproof.engines.monte_carlo.randomness.exact_sums import plus, ticks, times
from cloneproof.engines.monte_carlo.slots.slot_plan import BERNOULLI, FAMILIES
from cloneproof.mechanisms.online.streams import SLOT_STREAM

_bernoulli, _deterministic, _beta, _gaussian = (nb.njit(nogil=True)(function) for function in FAMILIES)
_COINS = np.int64(1)  # where the coins of a block of sure rewards leave its stream


@inlined
def next_reward(plan, arm):
    """The next reward of the arm's tape."""
    u = uniform(arm.tape, arm.pulls)
    arm.pulls += 1
    if plan.family == 0:
        return _bernoulli(arm.mean, u)
    if plan.family == 1:
        return _deterministic(arm.mean, u)
    if plan.family == 2:
        return _beta(arm.mean, u, plan.parameter)
    return _gaussian(arm.mean, u, plan.parameter)


@inlined
def shows_one(reward, coins, pull):
    """Whether the coin of a reward shows 1; that of 0 or 1 needs no draw."""
    return reward >= 1.0 or (reward > 0.0 and uniform(coins, pull) < reward)


@compiled
def pay(tables, agent, high, low):
    """Pay an agent a sum."""
    paid = tables.paid
    paid[agent, 0], paid[agent, 1] = plus(paid[agent, 0], paid[agent, 1], high, low)


@compiled
def pull(plan, tables, a, number, pulls, coins, blocks):
    """So many pulls of arm a by slot `number`, whose coins are numbered from 0; their score."""
    if blocks:
        return _block(plan, tables, a, number, pulls)
    arm = tables.arms[a]
    high, low, count = ZERO, ZERO, ZERO
    for k in range(pulls):
        reward = next_reward(plan, arm)
        if not plan.raw and shows_one(reward, coins, k):
            count += 1
        if plan.family == BERNOULLI:
            high += np.int64(reward)
        else:
            more_high, more_low = ticks(reward)
            high, low = plus(high, low, more_high, more_low)
    pay(tables, arm.agent, high, low)
    if plan.raw:
        return high, low
    return count, ZERO


@compiled
def _block(plan, tables, a, number, pulls):
    arm = tables.arms[a]
    stream = block_stream(arm.tape, number)
    arm.pulls += pulls
    if plan.family == BERNOULLI:
        count = binomial(pulls, arm.mean, stream)
        high, low = count, ZERO
    else:
        count = binomial(pulls, arm.mean, word(stream, _COINS))
        high, low = ticks(arm.mean)
        high, low = times(pulls, high, low)
    pay(tables, arm.agent, high, low)
    return count, ZERO


@compiled
def drawn_arm(tables, levels, i, draw):
    """The arm that draw number `draw` of agent i holds."""
    first = tables.first
    draws = word(level_stream(levels, ZERO, i + 1), SLOT_STREAM)
    return first[i] + np.int64(uniform(draws, draw) * (first[i + 1] - first[i]))


@compiled
def coins_at(coins, i, place):
    """The stream of the coins of agent i at a place, as `mechanisms.online.streams.Coins`."""
    return word(word(word(coins, ZERO), i), place)


@compiled
def above(high, low, other_high, other_low):
    """Whether a score is above another one."""
    return high > other_high or (high == other_high and low > other_low)


@compiled
def passes(plan, high, low):
    """Whether the score of a whole test reaches the threshold."""
    return plan.passing and not above(plan.threshold_high, plan.threshold_low, high, low)
