"""Contest of champions by steady KL-UCB, from one success to the next.

As long as a champion fails, its index falls along a known path. So draw how many times each one fails before its next
success, and at which index that will be (its level). The first success of all is that of the highest level: by then the
others have failed until their indices were not above it, and no single round has to be played. Failures that were drawn
and not yet played stay as they are, since waiting times for a success have no memory.
"""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

import math

import numpy as np

from cloneproof.engines.monte_carlo.blocks.binomial_variate import binomial
from cloneproof.engines.monte_carlo.blocks.kernel import block_stream
from cloneproof.engines.monte_carlo.compiling import compiled, uniform
from cloneproof.engines.monte_carlo.runs import NONE, ONE, ZERO, pay
from cloneproof.engines.monte_carlo.stepping.functions import with_callees
from cloneproof.mechanisms.arithmetic import kl_upper_bound

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
def play_to_success(plan, tables, draw, left):
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
def play_block(tables, row, pulls, block):
    """Play rounds of a champion: their rewards are one draw, and are its coins."""
    arm = tables.arms[row.arm]
    count = binomial(pulls, arm.mean, block_stream(row.coins, block))
    arm.pulls += pulls
    pay(tables.paid, arm.agent, count, ZERO)
    row.high += count
    row.pulls += pulls
    row.failures = UNKNOWN
