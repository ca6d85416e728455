"""Ceiling on what copies can gain under the index on slots, given the means, in a market that ends at random.

Every pull ends the market with probability 1 / T. An agent is paid T times the mean of the slot that ends it, which is
the slot whose index is highest at its own end: a best of all slots by independent scores. Let x_a be the probability
that a slot with mean v_a ends at an index of at least y; as y falls, x runs from 0 to 1. With s slots, l originals, v
the best mean, g_a = v - v_a and X the average of x_a, neither copies nor withholding gain more than

    T sup over y of [ s (s - 1) / l sum_a g_a int (1 - X)^(s - 2) (x_a - X) dx_a - v c(y) Var(x) ]

against any others, c(y) being the least curvature of (1 - z)^s from X to the largest x_a. It is 0 for at most two
originals or two slots (proof: docs/textbook/index-on-slots.md). The path is computed at many levels, for given means or
for the ends of cells of rates, and between two levels each part is bounded from above.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import combinations_with_replacement, islice
from typing import NamedTuple

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof._lib.checks import count, listed, number_in
from cloneproof._lib.clock import check_time
from cloneproof._lib.schedules import next_update
from cloneproof.errors import MechanismError
from cloneproof.laws.counts import binomial_floats, convolve_rows, float_window

LEVELS = 100  # of the path, from index 1 down to half the lowest mean; as many again at each mean
LONGEST = 6  # times T: pulls after which a slot above a level counts as above it for ever, or as gone
MOST_PROVEN = 3  # For more originals with many rates `expected_gain_ceiling` has no proof.
FEWEST_CELLS, MOST_CELLS = 30, 250  # of a prior's rates
FINENESS = 2.4  # cells in an angle of sqrt(s / T)
WIDE_CELLS = 12  # cells of the originals below the best two
MOST_CHOICES = 300_000  # of cells for all originals, over which a ceiling is summed; of more some are drawn
DRAWN_CHOICES = 4000  # choices, if there are too many
BLOCK = 500  # choices at a time


def index_gain_ceiling(means: Sequence[float], draws: int, constant: float, horizon: int) -> float:
    """Bound the rewards that copies or withholding can gain in a market that ends at random, for given means.

    Parameters
    ----------
    means : sequence of float
        Of the agent's originals, which one being which unknown to it.
    draws : int
        Slots of an agent.
    constant : float
        Of the index: n kl(mean, index) = constant.
    horizon : int
        The mean number of rounds T.

    Returns
    -------
    float
        Against any others with any registrations. In floating point, errors of the path on the safe side.

    Examples
    --------
    >>> index_gain_ceiling([0.2, 0.4], draws=9, constant=2.0, horizon=1000)
    0.0
    >>> index_gain_ceiling([0.1, 0.2, 0.4], draws=6, constant=2.0, horizon=1000) < 0.01
    True
    """
    rates = sorted(number_in(v, "means", 0, 1, MechanismError) for v in listed(means, "means", MechanismError))
    slots, rounds = count(draws, "draws", error=MechanismError), count(horizon, "horizon", error=MechanismError)
    width = number_in(constant, "constant", 0, error=MechanismError, low_open=True)
    if len(rates) <= 2 or slots <= 2 or rates[0] == rates[-1] or rounds == 1:
        return 0.0
    cells = rate_cells([(v, v, 1.0) for v in rates], len(rates))
    path = _paths(cells.values, width, rounds)
    return rounds * max(0.0, float(path_brackets(cells, path, np.arange(len(rates))[None], slots).max()))


def expected_gain_ceiling(
    bins: Sequence[tuple[float, float, float]],
    originals: int,
    draws: int,
    constant: float,
    horizon: int,
    proof: bool = True,
) -> tuple[float, bool]:
    """Return the ceiling for means drawn independently from a prior, and whether it is proven.

    The others' best score does not depend on the agent, so the bracket is averaged over means before the supremum is
    taken. The average is a sum over cells of rates: narrow ones for the best two originals, wide ones for the others.
    `bins` are the prior as rising intervals of (low, high, probability), or values with low equal to high.

    In a proof the sum bounds each cell. Otherwise, and for more than three originals, for which cells would have to be
    too narrow, a cell is replaced by its mean rate, and if there are too many choices of cells, some are drawn: such a
    result has no guarantee. A proof raises `OutOfTimeError` when the time of exact computations is over; it takes
    seconds at T = 10^5 and a minute at 10^6.
    """
    if min(originals, draws) <= 2 or horizon == 1 or bins[0][0] == bins[-1][1]:
        return 0.0, True
    fineness = FINENESS * math.sqrt(horizon / draws) if proof else 0.0
    cells = rate_cells(bins, FEWEST_CELLS, fineness)
    proven = (cells.first == cells.last)[: cells.narrow].all() or (proof and originals == MOST_PROVEN)
    if not proven:
        rates = ((cells.mean_low + cells.mean_high) / 2)[: cells.narrow]
        cells = rate_cells(list(zip(rates, rates, cells.mass, strict=False)), len(rates))
    path = _paths(cells.values, constant, horizon, in_time=proof)
    chosen, weight, drawn = _weighted_choices(cells, originals)
    average, square = np.zeros((2, path.shape[2] + 1))
    for start in range(0, len(chosen), BLOCK):
        block = slice(start, start + BLOCK)
        brackets = path_brackets(cells, path, chosen[block], draws)
        average, square = average + weight[block] @ brackets, square + weight[block] @ brackets**2
    if drawn:
        average += scipy.special.ndtri(0.99) * np.sqrt(np.maximum(square - average**2, 0.0) / DRAWN_CHOICES)
    return horizon * max(0.0, float(average.max())), bool(proven and not drawn)


def _weighted_choices(cells: Cells, originals: int) -> tuple[IntArray, FloatArray, bool]:
    """Return cells of the originals with probabilities: all choices, or some that are drawn."""
    chosen = np.array(list(islice(cells.choices(originals), MOST_CHOICES + 1)))
    if len(chosen) > MOST_CHOICES:
        dice, narrow = np.random.default_rng(originals), cells.mass[: cells.narrow]
        chosen = np.sort(dice.choice(cells.narrow, (DRAWN_CHOICES, originals), p=narrow / narrow.sum()), axis=1)
        return chosen, np.full(DRAWN_CHOICES, 1 / DRAWN_CHOICES), True
    same = np.array([math.prod(map(math.factorial, Counter(choice).values())) for choice in chosen.tolist()])
    return chosen, cells.mass[chosen].prod(1) * math.factorial(originals) / same, False


class Cells(NamedTuple):
    """Intervals of rates: the numbers of their ends, probabilities, and bounds of the mean rate in each."""

    values: FloatArray
    first: IntArray
    last: IntArray
    mass: FloatArray
    mean_low: FloatArray
    mean_high: FloatArray
    narrow: int  # this many first cells are disjoint and rising
    numbers: dict[tuple[int, int], int]  # of the cell that consists of the narrow ones from the first up to the second

    def choices(self, originals: int) -> Iterator[tuple[int, ...]]:
        """Yield the cells of the originals, the best two in narrow ones; each way once, up to order."""
        for b in range(self.narrow):
            below = [self.numbers[piece] for piece in _below(b, self.narrow)]
            for others in combinations_with_replacement(below, originals - 2):
                for c in range(b, self.narrow):
                    yield (*others, b, c)


def _below(b: int, narrow: int) -> list[tuple[int, int]]:
    """Return the pieces of several cells below narrow cell b, and b itself."""
    step = max(1, narrow // WIDE_CELLS)
    return [*((start, min(start + step, b)) for start in range(0, b, step)), (b, b + 1)]


def rate_cells(bins: Sequence[tuple[float, float, float]], fewest: int, fineness: float = 0.0) -> Cells:
    """Cut bins into cells, narrower where bins are probable, `fineness` to an angle of 1 (sin^2 is a rate)."""
    low, high, mass = np.array(bins).T
    starts = np.arange(len(low))
    place = np.cumsum(np.cbrt(mass * np.diff(np.arcsin(np.sqrt(np.append(low, high[-1])))) ** 2))
    number = max(fewest, min(MOST_CELLS, math.ceil(fineness * place[-1] ** 1.5)))
    if len(low) > number:
        starts = np.flatnonzero(np.diff(np.ceil(place / place[-1] * (number - 1e-6)), prepend=-1.0))
    narrow, cuts = len(starts), np.append(starts, len(low))
    pieces = {(b, b + 1): b for b in range(narrow)}
    for wide in sorted({piece for b in range(narrow) for piece in _below(b, narrow)} - set(pieces)):
        pieces[wide] = len(pieces)
    first, last = np.array(list(pieces)).T
    values = np.unique(np.concatenate([low[starts], high[cuts[1:] - 1]]))
    sums = [np.append(0.0, np.cumsum(column))[cuts] for column in (mass, mass * low, mass * high)]
    total, total_low, total_high = (up_to[last] - up_to[first] for up_to in sums)
    ends = np.searchsorted(values, low[cuts[first]]), np.searchsorted(values, high[cuts[last] - 1])
    return Cells(values, *ends, total / mass.sum(), total_low / total, total_high / total, narrow, pieces)


def _paths(values: FloatArray, constant: float, horizon: int, in_time: bool = False) -> FloatArray:
    """Compute the path of each value, at common levels; `OutOfTimeError` if the deadline passes first."""
    levels, paths = index_levels(values, constant, horizon), []
    for value in values:
        if in_time:
            check_time("proof of a ceiling")
        paths.append(chance_above(value, constant, horizon, levels))
    return np.array(paths)


def index_levels(means: FloatArray, constant: float, horizon: int) -> FloatArray:
    """Return the falling levels of a path, denser around few means, where it is steep, or between many."""
    positive = sorted({v for v in means if v > 0})
    if len(positive) > 16:
        steps, angle = max(2, 2 * LEVELS // len(positive)), np.arcsin(np.sqrt([v for v in means if v < 1]))
        between = np.interp(np.arange(1, steps * (len(angle) - 1) + 1) / steps, np.arange(len(angle)), angle)
        joined = np.unique(np.concatenate([np.sin(between) ** 2, np.geomspace(np.sin(angle[-1]) ** 2, 0.999999, 20)]))
        return joined[joined > 0][::-1]
    levels = [np.geomspace(0.999999, max(positive[0] / 2, 1e-6), LEVELS)]
    near = max(12, 2 * LEVELS // len(positive)) if len(positive) > 4 else LEVELS // 2
    for v in positive:
        steep = min(0.1, 0.3 * math.sqrt(constant / (v * horizon)))
        levels += [
            v * (1 + np.geomspace(steep, 0.5, near)),
            v * (1 - np.geomspace(steep, 0.2, near // 2)),
            np.array([v]),
        ]
    joined = np.unique(np.concatenate(levels))
    return joined[joined < 1][::-1]


def path_brackets(cells: Cells, path: FloatArray, chosen: IntArray, slots: int) -> FloatArray:
    """Bound the theorem's bracket from above, averaged, for each choice of cells and between each two levels.

    A mean is somewhere in its cell, so x_a is between the paths of the cell's ends. Let f be the largest value of
    (1 - X)^(s - 2) (x_a - X) between two levels. By summation by parts the integral of f dx_a is a sum of x_a at each
    level times a fall of f, at most the higher path where f falls and the lower one where it rises.
    """
    s, originals = slots, chosen.shape[1]
    edge = np.zeros((len(path), 1))
    low = np.concatenate([edge, path[:, 0], edge + 1], axis=1)[cells.first[chosen]]
    high = np.concatenate([edge, path[:, 1], edge + 1], axis=1)[cells.last[chosen]]
    least, most = low[:, :, :-1], high[:, :, 1:]  # between two levels
    low_sum, high_sum = least.sum(1), most.sum(1)
    best = chosen[:, -1]
    rivals = (chosen == best[:, None]).sum(1)  # in the cell of the best; it is above their mean by a part of the cell
    above = np.where(rivals > 1, (rivals - 1) * rivals ** (-rivals / np.maximum(rivals - 1, 1)), 0.0)
    ends = cells.values[cells.first], cells.values[cells.last]
    best_high = np.minimum(cells.mean_high[best] + above * (ends[1] - ends[0])[best], ends[1][best])
    total = np.zeros_like(low_sum)
    away = np.maximum(least - high_sum[:, None] / originals, low_sum[:, None] / originals - most)
    variance = (np.maximum(away, 0.0) ** 2).mean(1)
    for a in range(originals - 1):
        gap_low = np.maximum(cells.mean_low[best] - cells.mean_high[chosen[:, a]], 0.0)
        gap_high = best_high - cells.mean_low[chosen[:, a]]
        if a == originals - 2:
            gap_high[rivals > 1] *= 2  # and as much for the last one, which is in the same cell
        fall = _largest_product(a, least, most, s)
        down = -np.diff(fall, axis=1, prepend=0.0)
        parts = np.where(down > 0, down * high[:, a, :-1], down * low[:, a, :-1])
        integral = np.cumsum(parts, axis=1) + np.where(fall > 0, fall * most[:, a], fall * least[:, a])
        total += np.where(integral > 0, gap_high[:, None], gap_low[:, None]) * integral
    left = 1 - high_sum / originals
    reach = np.maximum(most[:, -1] - high_sum / originals, 1e-9)
    drop = np.maximum(left - reach, 0.0) ** s - left**s + s * left ** (s - 1) * reach
    loss = cells.mean_low[best][:, None] * np.maximum(drop, 0.0) / reach**2 * variance
    return np.asarray(s * (s - 1) / originals * total - loss)


def _largest_product(a: int, least: FloatArray, most: FloatArray, slots: int) -> FloatArray:
    """Maximise (1 - X)^(s - 2) (x_a - X) if no x exceeds that of the best original, which is the last.

    It falls as others rise while it is positive, and is least there at one end or the other while it is negative.
    Positive values are largest at the turning point in x_a, with the best one below x_a's range or equal to x_a.
    """
    count, own, highest = least.shape[1], least[:, a], most[:, a]
    rest_low, rest_high = (ends.sum(1) - ends[:, a] for ends in (least, most))
    apart = np.clip(least[:, -1], own, highest)  # from here on the best original's x rises with x_a
    apart_or_top = np.maximum(
        _product(np.clip(_turning(1, rest_low, count, slots), own, apart), 1, rest_low, count, slots),
        _product(highest, 1, rest_high, count, slots),
    )
    others = rest_low - least[:, -1]
    tied = _product(np.clip(_turning(2, others, count, slots), apart, highest), 2, others, count, slots)
    return np.where(highest > least[:, -1], np.maximum(apart_or_top, tied), apart_or_top)


def _product(own: FloatArray, times: int, rest: FloatArray, originals: int, slots: int) -> FloatArray:
    """Return (1 - X)^(s - 2) (x_a - X), if `times` originals have x_a and the sum over the others is `rest`."""
    average = (rest + times * own) / originals
    return np.asarray((own - average) * np.maximum(1 - average, 0.0) ** (slots - 2))


def _turning(times: int, rest: FloatArray, originals: int, slots: int) -> FloatArray:
    """Return the x_a at which that product is largest."""
    lead = originals - times
    return np.asarray((lead * (originals - rest) / times + (slots - 2) * rest) / (lead * (slots - 1)))


def chance_above(mean: float, constant: float, horizon: int, levels: FloatArray) -> FloatArray:
    """Bound the probability that a slot's index is at least a level at its own end, for each falling level.

    >>> low, high = chance_above(0.5, 2.0, 100, np.array([0.9, 0.6]))
    >>> bool((low <= high).all()), bool(low[0] < low[1])
    (True, True)
    """
    alive = np.ones((len(levels), 1))  # law of the count of a slot that is above the level, from count `first` on
    first, pulls, late = 0, 0, 1.0
    rung, gone = np.zeros(len(levels)), np.zeros(len(levels))
    stay = math.log1p(-1 / horizon)
    active = np.arange(len(levels))
    for look, least_of_all in _least_counts(levels.tobytes(), constant, horizon):
        if not len(active):
            break
        more, pulls = look - pulls, look
        law = binomial_floats(more, mean)
        alive, first = convolve_rows(alive, law.weights), first + law.low
        low, high = float_window(pulls, pulls * mean, pulls * mean * (1 - mean))
        begin = max(0, low - first)
        alive, first = alive[:, begin : max(begin, high - first) + 1], first + begin
        before = alive.sum(1)
        least = least_of_all[active]
        alive[np.arange(first, first + alive.shape[1]) < least[:, None]] = 0.0
        left = alive.sum(1)
        late = math.exp(pulls * stay)
        rung[active] += (before - left) * (1 - late)
        gone[active] += (before - left) * late
        safe = (least <= first) & (first > 0)  # even the lowest count is enough, and more so at later looks
        rung[active[safe]] += left[safe]
        kept = (left > 1e-10) & ~safe  # what is left out counts as above the level in the higher bound only
        active, alive = active[kept], alive[kept]
    rung[active] += alive.sum(1) * (1 - late)
    return np.array([rung, np.maximum(1 - gone, rung)])


@lru_cache(maxsize=2)
def _least_counts(levels: bytes, constant: float, horizon: int) -> list[tuple[int, FloatArray]]:
    """Return the pulls at each update, with the smallest count for each level whose index is at least that level."""
    at, looks, pulls = np.frombuffer(levels), [], 0
    while pulls < LONGEST * horizon:
        pulls = next_update(pulls)
        low, high = np.full(len(at), -1.0), np.ceil(at * pulls)  # not enough, enough
        while (high - low > 1).any():  # the divergence from the level falls as the mean rises to it
            middle = np.floor((low + high) / 2)
            mean = np.clip(middle / pulls, 0.0, at)
            enough = scipy.special.rel_entr(mean, at) + scipy.special.rel_entr(1 - mean, 1 - at) <= constant / pulls * (
                1 + 1e-12
            )
            searched = high - low > 1
            low, high = np.where(searched & ~enough, middle, low), np.where(searched & enough, middle, high)
        looks.append((pulls, high))
    return looks
