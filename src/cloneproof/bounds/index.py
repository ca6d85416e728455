"""What copies can gain under the index on slots in a market that ends at random: a ceiling for given means.

Every pull ends the market with probability 1 / T. An agent is paid T times the mean of the slot that ends it, which is
the slot whose index is highest at its own end: a best of all slots by independent scores. Let x_a be the probability
that a slot with mean v_a ends at an index of at least y; as y falls, x runs from 0 to 1. With s slots, l originals, v
the best mean, g_a = v - v_a and X the average of x_a, neither copies nor withholding gain more than

    T sup over y of [ s (s - 1) / l sum_a g_a int (1 - X)^(s - 2) (x_a - X) dx_a - v c(y) Var(x) ]

against any others, c(y) being the least curvature of (1 - z)^s from X to the largest x_a. It is 0 for at most two
originals or two slots (proof: docs/textbook/index-on-slots.md). The path is computed at many levels, and between two
levels each part is bounded from above.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import combinations, combinations_with_replacement

import numpy as np
import scipy

from cloneproof._arrays import FloatArray
from cloneproof._checks import count, listed, number_in
from cloneproof.errors import MechanismError

LEVELS = 100  # at which the path is computed, from index 1 down to half the lowest mean; as many again at each mean
LONGEST = 6  # times T: pulls after which a slot that is still above a level counts as above it for ever, or as gone
DRAWN = 12  # means of a continuous prior
MOST_SUBSETS = 500  # of drawn means, of which each agent has one
FAR = 9.0  # standard deviations beyond which counts are left out


def next_look(pulls: int) -> int:
    """The number of rewards at which a slot's falling index is next updated.

    >>> next_look(0), next_look(32), next_look(34)
    (1, 34, 36)
    """
    return pulls + max(1, pulls // 16)


def index_gain_ceiling(means: Sequence[float], draws: int, constant: float, horizon: int) -> float:
    """The most rewards that copies or withholding can gain over a whole market that ends at random, for given means.

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
    return path_ceiling(np.array(rates), _paths(rates, width, rounds), slots, rounds)


def expected_gain_ceiling(
    atoms: Sequence[tuple[float, float]], originals: int, draws: int, constant: float, horizon: int
) -> float:
    """The ceiling for means drawn independently from values with weights.

    The others' best score does not depend on the agent, so the bracket is averaged over means before the supremum is
    taken. This is less than the average of `index_gain_ceiling`.
    """
    values = sorted(value for value, _ in atoms)
    if min(originals, draws, len(values)) <= 1 or min(originals, draws) <= 2 or horizon == 1:
        return 0.0
    paths = _paths(values, constant, horizon)
    weights, total = dict(atoms), math.fsum(weight for _, weight in atoms)
    average = np.zeros(1)
    for chosen in combinations_with_replacement(range(len(values)), originals):
        orders = math.factorial(originals) / math.prod(map(math.factorial, Counter(chosen).values()))
        means = np.array([values[k] for k in chosen])
        chance = orders * math.prod(weights[v] / total for v in means)
        average = average + chance * path_brackets(means, paths[list(chosen)], draws)
    return horizon * max(0.0, float(average.max()))


def sampled_gain_ceiling(
    quantile: Callable[[float], float], originals: int, draws: int, constant: float, horizon: int, seed: int = 0
) -> float:
    """The ceiling for a prior with too many values to sum over; holds at 99 % in the limit of many draws.

    Averages `index_gain_ceiling` over subsets of drawn means, with a jackknife error. The supremum is taken before the
    average, since few draws matter at high levels.
    """
    if min(originals, draws) <= 2 or horizon == 1:
        return 0.0
    dice, number = np.random.default_rng([seed, originals]), max(DRAWN, originals + 6)
    values = sorted(float(quantile(u)) for u in dice.random(number))
    paths = _paths(values, constant, horizon)
    if math.comb(number, originals) <= MOST_SUBSETS:
        subsets = [list(chosen) for chosen in combinations(range(number), originals)]
    else:
        subsets = [sorted(dice.permutation(number)[:originals].tolist()) for _ in range(MOST_SUBSETS)]
    found = np.array([path_ceiling(np.array(values)[chosen], paths[chosen], draws, horizon) for chosen in subsets])
    member = np.array([[k in chosen for chosen in subsets] for k in range(number)])
    without = np.array([found[~own].mean() for own in member])
    return float(found.mean() + scipy.special.stdtrit(number - 1, 0.99) * math.sqrt((number - 1) * without.var()))


def _paths(values: Sequence[float], constant: float, horizon: int) -> FloatArray:
    """The path of each value, at common levels."""
    levels = index_levels(values, constant, horizon)
    return np.array([chance_above(value, constant, horizon, levels) for value in values])


def index_levels(means: Sequence[float], constant: float, horizon: int) -> FloatArray:
    """Falling levels at which a path is computed, denser around the means, where it is steep."""
    positive = sorted({v for v in means if v > 0})
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


def path_ceiling(means: FloatArray, path: FloatArray, slots: int, horizon: float) -> float:
    """The ceiling from the path: rising means, and bounds (low, high) of x at each level."""
    return float(horizon * max(0.0, path_brackets(means, path, slots).max()))


def path_brackets(means: FloatArray, path: FloatArray, slots: int) -> FloatArray:
    """An upper bound of the theorem's bracket between each two levels."""
    s, originals = slots, len(means)
    ends = np.concatenate([np.zeros((originals, 2, 1)), path, np.ones((originals, 2, 1))], axis=2)
    low, high = ends[:, 0], ends[:, 1]
    mean_low, mean_high = low.mean(0), high.mean(0)
    weight = s * (s - 1) / originals * (means[-1] - means)[:, None]
    early, late = (1 - mean_low[:-1]) ** (s - 2), (1 - mean_high[1:]) ** (s - 2)
    square, move = (high[:, 1:] ** 2 - low[:, :-1] ** 2) / 2, high[:, 1:] - low[:, :-1]
    surely = np.maximum(low[:, 1:] - high[:, :-1], 0.0)
    growth = (weight * (square * early - surely * mean_low[:-1] * late)).sum(0)  # of the integral in a cell, at most
    inside = (weight * np.maximum(high[:, 1:] - mean_low[:-1], 0.0) * early * move).sum(0)  # up to any point of it
    integral = np.concatenate([[0.0], np.cumsum(growth)[:-1]]) + inside
    apart = np.maximum(low[:, None, :-1] - high[None, :, 1:], 0.0)  # x_b - x_a at least, in a cell
    variance = (apart**2).sum((0, 1)) / originals**2  # each pair once
    centre = mean_high[1:]
    reach = np.maximum(high[:, 1:].max(0) - centre, 1e-9)
    drop = np.maximum(1 - centre - reach, 0.0) ** s - (1 - centre) ** s + s * (1 - centre) ** (s - 1) * reach
    return np.asarray(integral - means[-1] * np.maximum(drop, 0.0) / reach**2 * variance)


def chance_above(mean: float, constant: float, horizon: int, levels: FloatArray) -> FloatArray:
    """For each falling level: bounds of the probability that a slot's index is at least that level at its own end.

    >>> low, high = chance_above(0.5, 2.0, 100, np.array([0.9, 0.6]))
    >>> bool((low <= high).all()), bool(low[0] < low[1])
    (True, True)
    """
    alive = np.ones((len(levels), 1))  # law of the count of a slot that is above the level, from count `first` on
    first, pulls = 0, 0
    rung = np.zeros(len(levels))
    stay = math.log1p(-1 / horizon)
    active = np.arange(len(levels))
    beyond = np.zeros(len(levels))
    for look, least_of_all in _least_counts(levels.tobytes(), constant, horizon):
        if not len(active):
            break
        more, pulls = look - pulls, look
        law, start = _binomial_law(more, mean)
        alive, first = _convolved(alive, law), first + start
        alive, first = _trimmed(alive, first, pulls, mean)
        before = alive.sum(1)
        least = least_of_all[active]
        alive[np.arange(first, first + alive.shape[1]) < least[:, None]] = 0.0
        left = alive.sum(1)
        rung[active] += (before - left) * -math.expm1(pulls * stay)
        safe = (least <= first) & (first > 0)  # even the lowest count is enough, and more so at later looks
        rung[active[safe]] += left[safe]
        beyond[active] = np.where(safe, 0.0, left)
        kept = (left > 1e-15) & ~safe
        active, alive = active[kept], alive[kept]
    late = math.exp(pulls * stay)
    return np.array([rung + beyond * (1 - late), np.minimum(rung + beyond, 1.0)])


def _binomial_law(trials: int, chance: float) -> tuple[FloatArray, int]:
    """The distribution of a count, trimmed around its mean, and its first count."""
    centre, reach = trials * chance, FAR * math.sqrt(trials * chance * (1 - chance)) + 10
    first, last = max(0, math.floor(centre - reach)), min(trials, math.ceil(centre + reach))
    up_to = scipy.special.bdtr(np.arange(first, last + 1), trials, chance)
    return np.diff(up_to, prepend=0.0), first


def _convolved(rows: FloatArray, law: FloatArray) -> FloatArray:
    size = rows.shape[1] + len(law) - 1
    if len(law) == 2:
        padded = np.zeros((len(rows), size))
        padded[:, :-1] = rows * law[0]
        padded[:, 1:] += rows * law[1]
        return padded
    points = scipy.fft.next_fast_len(size, real=True)
    product = scipy.fft.rfft(rows, points) * scipy.fft.rfft(law, points)
    return np.asarray(np.maximum(scipy.fft.irfft(product, points)[:, :size], 0.0))


def _trimmed(rows: FloatArray, first: int, pulls: int, mean: float) -> tuple[FloatArray, int]:
    centre, reach = pulls * mean, FAR * math.sqrt(pulls * mean * (1 - mean)) + 10
    begin = max(0, math.floor(centre - reach) - first)
    end = max(begin + 1, math.ceil(centre + reach) - first + 1)
    return rows[:, begin:end], first + begin


@lru_cache(maxsize=2)
def _least_counts(levels: bytes, constant: float, horizon: int) -> list[tuple[int, FloatArray]]:
    """At each update: the pulls so far, and for each level the smallest count with an index of at least that level."""
    at, looks, pulls = np.frombuffer(levels), [], 0
    while pulls < LONGEST * horizon:
        pulls = next_look(pulls)
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
