"""What copies and withholding gain at most under bars on slots, in balls (docs/textbook/bars-on-slots.md).

With one bar it is nothing. With falling bars let V be the value of going on after all slots had an attempt at a level
(registering each original once), and m the mean of the slot that ends the market at this level. If the bar or m is at
least V at every level, nothing is gained against any others: a certificate for these means. Otherwise c, which takes
the place of V, is cut down to the larger of the two, and each cut costs at most itself times

    average over originals of A^s - (average of A)^s,

A being the probability that a slot fails at all levels so far. Within a level c moves from the next level's towards m,
so one comparison for a level is enough; that others may stop the agent only lowers V. The last bar stays for ever: from
there on m falls, so that m of a later level is above V there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import numpy as np
import scipy
from flint import arb, ctx

from cloneproof._clock import check_time
from cloneproof._randomness import substream, uniform
from cloneproof._schedules import Bar
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import PRECISION, Number, ball
from cloneproof.laws.bars import point_losses
from cloneproof.laws.means import exact_atoms, multisets
from cloneproof.market.priors import Prior

Levels = tuple[list[Number], list[Number]]  # of a mean, in balls: A at each level, the probability of the end there
LAST = 64  # levels of the last bar before its value is bounded by m
MOST_SETS = 3000  # sets of means of which each is checked
DRAWN = 250  # sets of means that are drawn from other priors
STEPS = 4  # of Newton, from a float to a ball
BITS = (150, 110, 70, 40)  # of a root, as many as can be verified


def bars_ceiling(
    prior: Prior, originals: int, bars: Sequence[Bar], draws: int, horizon: int
) -> tuple[float, int, bool]:
    """Return the most rewards that are gained on average over the prior, from how many sets of means, and if proven.

    For priors of a few values all sets are checked. Otherwise some are drawn, and a limit at 99 % for their average is
    returned, without a guarantee.
    """
    if len(set(bars)) == 1 or originals == 1 or draws == 1:
        return 0.0, 0, True
    atoms = prior.atoms
    with ctx.workprec(PRECISION):
        levels = cache(lambda mean: _levels(mean, bars, horizon))
        if atoms is not None and math.comb(len(atoms) + originals - 1, originals) <= MOST_SETS:
            total, sets = arb(0), list(multisets(exact_atoms(atoms), originals))
            for chance, counts in sets:
                of_set = [value for value, number in counts for _ in range(number)]
                total += ball(chance) * set_ceiling(of_set, levels, bars, draws)
            return _upper(total * horizon), len(sets), True
        ceilings = []
        for number in range(DRAWN):
            means = tuple(prior.quantile(uniform(substream(0, number), k)) for k in range(originals))
            ceilings.append(_upper(set_ceiling(means, levels, bars, draws) * horizon))
    return float(np.mean(ceilings) + scipy.special.ndtri(0.99) * np.std(ceilings) / math.sqrt(DRAWN)), DRAWN, False


def set_ceiling(means: Iterable[float], levels: Callable[[float], Levels], bars: Sequence[Bar], draws: int) -> Number:
    """Return the ceiling for these means, as a part of T; 0 if they are certified."""
    check_time("certificate of bars")
    of_each = [(ball(mean), *levels(mean)) for mean in means]
    value, total, number = arb(0), arb(0), len(of_each)
    if len({mean for mean, *_ in of_each}) == 1:
        return total  # nothing to gain
    for k in reversed(range(len(bars) - 1 + LAST)):
        reached, ended, paid = arb(0), arb(0), arb(0)
        for mean, left, ends in of_each:
            reached, ended, paid = reached + left[k], ended + ends[k], paid + ends[k] * mean
        if reached == 0:  # no slot of these means ever fails before
            continue
        worth = paid / ended
        if k == len(bars) - 2 + LAST:
            value = worth
        elif k < len(bars) - 1:
            enough = (1 / (bars[k].whole + ball(bars[k].part))).max(worth)
            if not value <= enough:
                after = [left[k + 1] for _, left, _ in of_each]
                spread = sum((left**draws for left in after), arb(0)) / number - (sum(after, arb(0)) / number) ** draws
                total += (value - enough).max(arb(0)) * spread
                value = value.min(enough)
        value = worth + (1 - ended / reached) ** draws * (value - worth)
    return total


def _levels(mean: float, bars: Sequence[Bar], horizon: int) -> Levels:
    """Return A and the probability of the end at each level of the bars and at LAST levels of the last one."""
    near, _ = point_losses(np.array([mean]), bars, horizon)
    fails = [
        (1 - point_loss(mean, bar, horizon, x)) ** bar.stake for bar, (x,) in zip(bars, near.tolist(), strict=True)
    ]
    left, ends = [arb(1)], []
    for fail in [*fails[:-1], *[fails[-1]] * LAST]:
        ends.append(left[-1] * (1 - fail))
        left.append(left[-1] * fail)
    return left, ends


def point_loss(mean: float, bar: Bar, horizon: int, near: float) -> Number:
    """Return a ball that contains 1 - r: the difference of both sides of its equation changes its sign there, once."""
    if mean in (0, 1):
        return arb(1) if mean else 1 / arb(horizon)
    end, whole, part, x = 1 / arb(horizon), bar.whole, ball(bar.part), arb(near)
    clicks = (1 - end) * ball(mean)

    def excess(x: Number) -> Number:
        return x - end - clicks * (1 - (1 - x) ** whole * (1 - part * x))

    for _ in range(STEPS):
        slope = 1 - clicks * (1 - x) ** (whole - 1) * (whole * (1 - part * x) + part * (1 - x))
        x = (x - excess(x) / slope).mid()
    for bits in BITS:
        low, high = x * (1 - arb(2) ** -bits), (x * (1 + arb(2) ** -bits)).min(arb(1))
        if excess(low) < 0 < excess(high):
            return low.union(high)
    raise EngineError(f"the certificate of bars could not enclose the chance of a loss at mean {mean}", "use one bar")


def _upper(value: Number) -> float:
    """Return a float at or above a ball that is not negative; 0 if it is exactly 0."""
    return 0.0 if value == 0 else math.nextafter(float(value.upper()), math.inf)
