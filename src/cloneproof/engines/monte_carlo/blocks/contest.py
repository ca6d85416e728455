"""Contest of the agents' champions, by fresh rewards of each: steady KL-UCB or steady UCB.

Rounds are stepped; while a champion's index is surely above the others', no index is computed. With blocks and KL-UCB,
the pulls that a champion has before others even if all of them fail are one draw, and low rates are played from one
success to the next.

As long as a champion fails, its index falls along a known path. So draw how many times each one fails before its next
success, and at which index that will be (its level). The first success of all is that of the highest level: by then the
others have failed until their indices were not above it, and no single round has to be played. Failures that were drawn
and not yet played stay as they are, since waiting times for a success have no memory.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math
from typing import Final

import numpy as np

from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.compiling import (
    average,
    compiled,
    inlined,
    plus,
    ticks,
    uncounted,
    uniform,
    word,
)
from cloneproof.engines.monte_carlo.runs import NONE, ONE, ZERO, level_stream, pay
from cloneproof.engines.monte_carlo.stepping.functions import FAMILIES, reward_at, with_callees
from cloneproof.market.rewards import bernoulli
from cloneproof.mechanisms.arithmetic import kl_upper_bound
from cloneproof.mechanisms.online.streams import CONTEST_PLACE, EXPLORE_STREAM, TIE_STREAM
from cloneproof.mechanisms.rule import PriorityInputs, Rule

BERNOULLI: Final = FAMILIES.index(bernoulli.quantile)
CONTESTS: Final = ("steady-kl-ucb", "steady-ucb")
CONTENDER: Final = np.dtype(
    [
        ("arm", "i8"),  # the row of the champion
        ("high", "i8"), ("low", "i8"), ("pulls", "i8"), ("index", "f8"),  # what counts in the contest, and its index
        ("coins", "u8"),
        ("failures", "i8"), ("level", "f8"), ("pause", "i8"),  # before the next success, its index then, and scratch
    ],
    align=True,
)  # fmt: skip
SURE = 1.0 - 1e-7
SHORT = 8  # pulls: fewer are stepped
NEAR_ONE = 0.999  # beyond it rounding may hide a difference
STEPS, EXACT = 20, 1e-14  # of Newton's iteration: the most, and the relative size of the last one
MANY = 1.5  # successes that are expected of pulls worth a draw of their own
LOW = 0.03  # rates below which successes are rare enough to go from one to the next
UNKNOWN = np.int64(-1)  # failures that are not drawn yet
LONGEST = np.int64(1 << 40)  # failures, more than any run has
HALVINGS = 60  # to find the level of the last round

index_of = with_callees(kl_upper_bound)


def holds_contest(rule: Rule) -> bool:
    """Whether agents under this rule take turns and then compete by a steady index."""
    return rule.index in CONTESTS and not rule.commits and rule.order == "round-robin"


@inlined
def next_reward(plan, arm):
    """Return the next reward of the arm's tape."""
    arm.pulls += 1
    return reward_at(plan.quantile, arm.mean, uniform(arm.tape, arm.pulls - 1))


@inlined
def shows_one(reward, coins, pull):
    """Whether the coin of a reward shows 1; rewards of 0 or 1 need no draw."""
    return reward >= 1.0 or (reward > 0.0 and uniform(coins, pull) < reward)


@compiled
def coins_at(coins, i, place):
    """Return the stream of the coins of agent i at a place, as `mechanisms.online.streams.Coins`."""
    return word(word(word(coins, ZERO), i), place)


@inlined
def contest_rounds(plan, tables, streams, horizon, index, exceeds):
    """Play the rounds of all champions from the one on that counts, once they are known."""
    plan, tables = uncounted(plan), uncounted(tables)
    contenders = tables.contenders
    level = level_stream(streams.levels, ZERO, ZERO)
    for i in range(plan.agents):
        row = contenders[i]
        row.high, row.low, row.pulls, row.failures = 0, 0, 0, UNKNOWN
        row.coins = coins_at(streams.coins, i, CONTEST_PLACE)
        for _ in range(rounds_in_turn(plan, level, i, horizon) - plan.after):
            _play(plan, tables, row)
        if row.pulls > 0:
            row.index = index(_told(plan, row), plan.width)
    if horizon > plan.turns * plan.agents:
        _contest(plan, tables, word(level, TIE_STREAM), horizon, index, exceeds)


@compiled
def rounds_in_turn(plan, level, i, horizon):
    """Count agent i's rounds while agents take turns; the horizon may end inside a sweep, whose order is drawn."""
    sweep = horizon // plan.agents
    if sweep >= plan.turns:
        return plan.turns
    stream = word(level, EXPLORE_STREAM)
    own, before = word(word(stream, i), sweep), ZERO
    for k in range(plan.agents):
        other = word(word(stream, k), sweep)
        before += other < own or (other == own and k < i)
    return sweep + np.int64(before < horizon % plan.agents)


@compiled
def _play(plan, tables, row):
    """Play a round of a champion in the contest."""
    arm = tables.arms[row.arm]
    reward = next_reward(plan, arm)
    high, low = ticks(reward)
    pay(tables.paid, arm.agent, high, low)
    if plan.contest_raw:
        row.high, row.low = plus(row.high, row.low, high, low)
    else:
        row.high += np.int64(shows_one(reward, row.coins, row.pulls))
    row.pulls += 1


@inlined
def _told(plan, row):
    """Return what a steady index is told of a champion: neither clock nor draws matter."""
    mean = average(row.high, row.low, row.pulls)
    return PriorityInputs(0, -np.inf, np.float64(row.pulls), mean, 0.5, 0.5, plan.agents)


@inlined
def _contest(plan, tables, ties, horizon, index, exceeds):
    """Play the rounds after all turns."""
    contenders = tables.contenders
    leader, second = _leader(plan, contenders, ties, plan.turns * plan.agents)
    skips, draws = plan.blocks and plan.by_kl and plan.quantile.which == BERNOULLI, ZERO
    t = plan.turns * plan.agents
    # The leader's index changes with its own rewards alone, so others matter only as one number, the second highest
    # index. As long as even failures would leave the leader above it, its rewards are one draw. Low rates are played
    # from one success to the next. Else its index is bounded, and computed only if the bound does not decide.
    while t < horizon:
        row = contenders[leader]
        sure = sure_pulls(plan, row, second, horizon - t) if skips else ONE
        draws += 1
        if sure >= SHORT and (sure * row.high >= MANY * row.pulls or row.high >= LOW * row.pulls):
            _play_block(tables, row, sure, draws)
            t += sure
        elif skips and row.high < LOW * row.pulls:
            t += _play_to_success(plan, tables, draws, horizon - t)
            leader, second = _leader(plan, contenders, ties, t)
            continue
        else:
            _play(plan, tables, row)
            row.failures = UNKNOWN
            t += 1
        if exceeds(_told(plan, row), second, plan.width):
            continue
        if skips:
            row.index = nearby_index(plan, row.high, row.pulls, row.index)
        else:
            row.index = index(_told(plan, row), plan.width)
        if not row.index > second:
            leader, second = _leader(plan, contenders, ties, t)


@compiled
def _leader(plan, contenders, ties, rounds):
    """Return who plays after `rounds` rounds, and the highest index of the others."""
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


@compiled
def nearby_index(plan, successes, pulls, guess):
    """Return the index of steady KL-UCB from one nearby, by a few of Newton's steps; the same up to rounding.

    n kl(mean, q) is convex in q, so that steps descend to the root once they are beyond it.
    """
    if successes == 0:
        return -math.expm1(-plan.width / pulls)
    mean, q = successes / pulls, guess
    for _ in range(STEPS):
        if not mean < q < NEAR_ONE:
            break
        divergence = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - q)) + mean * math.log(mean / q)
        step = (divergence - plan.width / pulls) * q * (1.0 - q) / (q - mean)
        q -= step
        if abs(step) <= EXACT * q:
            return q
    return index_of(mean, np.float64(pulls), plan.width)


@compiled
def _pulls_at(plan, successes, level):
    """Return the pulls after which the index is not above a level, if all further ones fail.

    n kl(k / n, q) is convex in n and rises where k / n < q; its normal approximation is where Newton's steps begin.
    """
    if successes == 0:
        return math.ceil(plan.width / -math.log1p(-level))
    root = math.sqrt(2.0 * plan.width * level * (1.0 - level))
    pulls = ((root + math.sqrt(root * root + 4.0 * level * successes)) / (2.0 * level)) ** 2
    for _ in range(STEPS):
        pulls = max(pulls, successes / level * (1.0 + 1e-9), successes + 1e-9)
        mean = successes / pulls
        slope = math.log((1.0 - mean) / (1.0 - level))
        step = (successes * math.log(mean / level) + (pulls - successes) * slope - plan.width) / slope
        pulls -= step
        if abs(step) <= 1e-3:
            break
    return math.ceil(pulls)


@compiled
def _play_to_success(plan, tables, draw, left):
    """Play to the next success of any champion, or to the end of `left` rounds; return the number of rounds."""
    contenders, best, level = tables.contenders, NONE, -1.0
    for i in range(plan.agents):
        row = contenders[i]
        if row.failures < 0:
            _draw_failures(plan, tables.arms[row.arm].mean, row, draw)
        if row.level > level:
            best, level = np.int64(i), row.level
    rounds = _pause(plan, contenders, level, best) + 1
    if best < 0 or rounds > left:
        return _fail_to_the_end(plan, tables, level, left)
    for i in range(plan.agents):
        _fail(plan, tables, contenders[i], contenders[i].pause, level)
    row = contenders[best]
    arm = tables.arms[row.arm]
    arm.pulls += 1
    pay(tables.paid, arm.agent, ONE, ZERO)
    row.high, row.pulls, row.failures = row.high + 1, row.pulls + 1, UNKNOWN
    row.index = nearby_index(plan, row.high, row.pulls, level)
    return rounds


@compiled
def _draw_failures(plan, mean, row, draw):
    """Draw the failures before the next success, and find the index after them."""
    row.failures, row.level = LONGEST, -1.0
    if mean >= 1.0:
        row.failures = ZERO
    elif mean > 0.0:
        waits = math.log(uniform(block_stream(row.coins, draw), ZERO)) / math.log1p(-mean)
        row.failures = np.int64(min(waits, np.float64(LONGEST)))
    if row.failures < LONGEST:
        row.level = nearby_index(plan, row.high, row.pulls + row.failures, row.index) if row.failures else row.index


@compiled
def _pause(plan, contenders, level, best):
    """Find how often each champion fails until its index is not above a level; return the sum."""
    total = ZERO
    for i in range(plan.agents):
        row = contenders[i]
        row.pause = ZERO
        if i == best:
            row.pause = row.failures
        elif row.index > level:
            failures = LONGEST if level <= 0.0 else np.int64(_pulls_at(plan, row.high, level)) - row.pulls
            row.pause = min(row.failures, max(ONE, failures))
        total += row.pause
    return total


@compiled
def _fail(plan, tables, row, failures, guess):
    """Play failures of a champion."""
    if failures > 0:
        tables.arms[row.arm].pulls += failures
        row.pulls += failures
        row.failures -= failures
        row.index = nearby_index(plan, row.high, row.pulls, guess)


@compiled
def _fail_to_the_end(plan, tables, level, left):
    """Play rounds in which all champions fail, down to the lowest level that they reach."""
    contenders, low, high = tables.contenders, max(level, 0.0), 0.0
    for i in range(plan.agents):
        high = max(high, contenders[i].index)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if _pause(plan, contenders, middle, NONE) > left:
            low = middle
        else:
            high = middle
    rest = left - _pause(plan, contenders, high, NONE)
    for i in range(plan.agents):
        _fail(plan, tables, contenders[i], contenders[i].pause, high)
    leader = ZERO
    for _ in range(min(rest, plan.agents)):  # champions whose indices are one level, up to rounding
        for i in range(plan.agents):
            if contenders[i].index > contenders[leader].index:
                leader = np.int64(i)
        _fail(plan, tables, contenders[leader], ONE, contenders[leader].index)
        rest -= 1
    if rest > 0:
        _fail(plan, tables, contenders[leader], rest, contenders[leader].index)
    return left


@compiled
def sure_pulls(plan, row, second, most):
    """Return the least number of pulls that the leader has before others do, even if all of them fail; at most `most`.

    After i failures its index is above the second one, q, if its mean is, or if (n + i) kl(k / (n + i), q) < width;
    that rises with i from there on.
    """
    if second > NEAR_ONE or second <= 0.0:
        return ONE
    low, high = ZERO, min(most, ONE << 40)  # after `low` failures it leads; what is searched is the last such number
    step = np.int64(SHORT)
    # Steps double while the leader leads and are halved afterwards: the number is mostly small, and a search over all
    # rounds that are left would start far too high.
    while low < high:
        middle = min(high, low + step)
        pulls = row.pulls + middle
        mean, leads = row.high / pulls, True
        if mean < second:
            divergence = (1.0 - mean) * math.log((1.0 - mean) / (1.0 - second))
            divergence += mean * math.log(mean / second) if mean > 0.0 else 0.0
            leads = pulls * divergence < SURE * plan.width
        if leads:
            low, step = middle, step * 2
        elif low == ZERO or middle == low + ONE:
            break  # too few to be worth a block, or the last one is found
        else:
            high, step = middle - ONE, max(ONE, (middle - low) // 2)
    return min(low + ONE, most)


@compiled
def _play_block(tables, row, pulls, block):
    """Play rounds of a champion: their rewards are one draw, and are its coins."""
    arm = tables.arms[row.arm]
    count = binomial(pulls, arm.mean, block_stream(row.coins, block))
    arm.pulls += pulls
    pay(tables.paid, arm.agent, count, ZERO)
    row.high += count
    row.pulls += pulls
    row.failures = UNKNOWN
