"""The chapter on the index on slots: its identity, its theorem and its ceiling, in fractions and by plain recursion."""

import math
import random
from fractions import Fraction
from itertools import combinations_with_replacement, permutations, product

import numpy as np
import pytest

from cloneproof.bounds.index import (
    Cells,
    chance_above,
    expected_gain_ceiling,
    index_gain_ceiling,
    path_brackets,
    rate_cells,
)
from cloneproof.laws.logarithm import kl_upper_bound

LAST = 3  # pulls after which a small index does not change any more
TOP = 99


def random_index(rng):
    """An index of (pulls, successes) that rises with successes, up to LAST pulls."""
    return {(n, k): rng.randint(0, 4) + 2 * k for n in range(1, LAST + 1) for k in range(n + 1)}


def played(means, index, mean_rounds, rounds=None, falling=True):
    """Expected rewards of playing the highest index, each round being the last with chance 1 / T: by recursion.

    With `rounds` the end is there instead.
    """
    stay = 1 - Fraction(1, mean_rounds) if rounds is None else 1

    def value(state, left):
        best = max(range(len(state)), key=lambda j: (state[j][2], -j))
        n, k, level = state[best]
        if n == LAST or left == 0:
            return (mean_rounds if rounds is None else left) * means[best]  # it is played to the end
        total = means[best]
        for success, chance in ((1, means[best]), (0, 1 - means[best])):
            now = index[n + 1, k + success]
            after = (n + 1, k + success, min(level, now) if falling else now)
            total += stay * chance * value((*state[:best], after, *state[best + 1 :]), left - 1)
        return total

    return value(tuple((0, 0, TOP) for _ in means), -1 if rounds is None else rounds)


def score_law(mean, index, mean_rounds):
    """The law of the running minimum at a slot's own ring."""
    ring, law = Fraction(1, mean_rounds), {}

    def step(n, k, level, chance):
        law[level] = law.get(level, 0) + chance * (1 if n == LAST else ring)
        if n < LAST:
            for success, part in ((1, mean), (0, 1 - mean)):
                step(n + 1, k + success, min(level, index[n + 1, k + success]), chance * (1 - ring) * part)

    step(0, 0, TOP, Fraction(1))
    return law


def best_of_all(means, index, mean_rounds):
    """T times the expected mean of the slot with the highest score, ties to the earlier."""
    laws = [score_law(mean, index, mean_rounds) for mean in means]
    total = Fraction(0)
    for j, law in enumerate(laws):
        for level, chance in law.items():
            beaten = [
                sum(p for y, p in other.items() if y < level or (y == level and i > j))
                for i, other in enumerate(laws)
                if i != j
            ]
            total += chance * math.prod(beaten) * means[j]
    return mean_rounds * total


def test_the_policy_is_a_best_of_all_by_independent_scores():
    rng = random.Random(1)
    fixed = 0
    for _ in range(30):
        means = [Fraction(rng.randint(0, 6), 6) for _ in range(rng.choice((2, 3)))]
        index, mean_rounds = random_index(rng), rng.randint(2, 9)
        best = best_of_all(means, index, mean_rounds)
        assert played(means, index, mean_rounds) == best
        assert played(means, index, mean_rounds, falling=False) == best  # a leader that rises was the leader before
        fixed += played(means, index, mean_rounds, rounds=mean_rounds) != best
    assert fixed > 5  # at a fixed end it is no such contest


def paid(weights, laws, values, slots, rival):
    """The winner's value among slots drawn with these weights, if its score beats the rival's; in fractions.

    Ties among own slots do not matter: a slot's value given its score is the same for all of them.
    """
    total = Fraction(0)
    for y in range(len(laws[0]) - 1, rival, -1):
        below = sum(w * sum(law[:y]) for w, law in zip(weights, laws, strict=True))
        at = sum(w * law[y] for w, law in zip(weights, laws, strict=True))
        worth = sum(w * law[y] * v for w, law, v in zip(weights, laws, values, strict=True))
        if at:
            total += ((below + at) ** slots - below**slots) * worth / at
    return total


def gain(weights, laws, values, slots, rival=-1):
    """Of these weights over uniform ones, on average over who is who."""
    ways = list(permutations(weights))
    average = sum(paid(way, laws, values, slots, rival) for way in ways) / len(ways)
    return average - paid([Fraction(1, len(weights))] * len(weights), laws, values, slots, rival)


def ordered_laws(rng, originals, scores):
    """Laws of a score on 0, 1, .., each stochastically above the one before."""
    tails = [sorted((Fraction(rng.randint(0, 12), 12) for _ in range(originals)), reverse=False) for _ in range(scores)]
    rows = [sorted((tails[y][a] for y in range(scores - 1)), reverse=True) for a in range(originals)]
    return [[above - at for above, at in zip([1, *row], [*row, 0], strict=True)] for row in rows]


def some_weights(rng, originals):
    numbers = [rng.choice((0, 1, 1, 2, 7)) for _ in range(originals)]
    numbers[rng.randrange(originals)] += 1
    return [Fraction(number, sum(numbers)) for number in numbers]


def test_two_originals_or_two_slots_gain_nothing_for_any_ordered_scores():
    rng = random.Random(2)
    lost = 0
    for _ in range(75):
        originals, slots = rng.choice(((2, 3), (2, 7), (2, 30), (3, 2), (4, 2)))
        laws = ordered_laws(rng, originals, rng.randint(2, 5))
        values = sorted(Fraction(rng.randint(0, 9), 9) for _ in range(originals))
        found = gain(some_weights(rng, originals), laws, values, slots, rng.randint(-1, len(laws[0]) - 2))
        assert found <= 0
        lost += found < 0
    assert lost > 25


def test_three_originals_can_gain_with_ordered_scores_alone_and_never_more_than_the_ceiling():
    quarter = Fraction(1, 4)
    laws = [[3 * quarter, quarter, 0, 0], [3 * quarter, 0, 0, quarter], [0, 0, 3 * quarter, quarter]]
    values = [Fraction(2495, 10000), quarter, Fraction(99925, 100000)]
    found = gain([Fraction(1, 2), quarter, quarter], laws, values, 20)
    assert 0.002 < found < ceiling_of(laws, values, 20)


def ceiling_of(laws, values, slots):
    """The bound of (b) for scores on a few levels, ties by a drawn order: straight pieces of a path, cut finely."""
    ends = np.array([[0.0, *np.cumsum([float(p) for p in reversed(law)])] for law in laws])
    pieces = np.linspace(0, ends.shape[1] - 1, 400 * (ends.shape[1] - 1) + 1)[1:-1]
    path = np.array([np.interp(pieces, np.arange(ends.shape[1]), row) for row in ends])
    rates, each = np.array([float(v) for v in values]), np.arange(len(values))
    cells = Cells(rates, each, each, np.ones(len(values)), rates, rates, len(values), {})
    return max(0.0, path_brackets(cells, np.stack([path, path], axis=1), each[None], slots).max())


def test_no_weights_gain_more_than_the_ceiling():
    rng = random.Random(3)
    paying = 0
    for _ in range(40):
        slots, scores = rng.choice((3, 8, 20, 40)), rng.randint(2, 4)
        laws, values = ordered_laws(rng, 3, scores), sorted(Fraction(rng.randint(0, 9), 9) for _ in range(3))
        if rng.random() < 0.7:  # the middle one looks like the best at the top, and like the worst below
            top, low = Fraction(rng.randint(1, 4), 12), Fraction(rng.randint(0, 4), 12)
            laws, scores = [[1 - low, low, 0, 0], [1 - top, 0, 0, top], [0, 0, 1 - top, top]], 4
            values = [Fraction(rng.randint(0, 2), 10), Fraction(rng.randint(2, 4), 10), Fraction(1)]
        most = ceiling_of(laws, values, slots)
        for weights in (some_weights(rng, 3), [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)]):
            found = gain(weights, laws, values, slots, rng.randint(-1, scores - 2))
            assert found <= most + 1e-12
            paying += found > 1e-6
    assert paying > 2


def test_the_chance_of_a_level_by_plain_recursion():
    mean, constant, rounds, levels = 0.3, 1.2, 5, np.array([0.95, 0.8, 0.6, 0.45, 0.3, 0.2])
    low, high = chance_above(mean, constant, rounds, levels)
    for number, level in enumerate(levels):
        alive, rung, n = {0: 1.0}, 0.0, 0
        while n < 60:
            after = {}
            for k, chance in alive.items():
                for success, part in ((1, mean), (0, 1 - mean)):
                    after[k + success] = after.get(k + success, 0.0) + chance * part
            n += 1
            looked = n <= 32 or n in (34, 36, 38, 40, 42, 44, 46, 48, 51, 54, 57, 60)
            alive = {
                k: chance
                for k, chance in after.items()
                if not looked or kl_upper_bound(k / n, float(n), constant) >= level
            }
            rung += (sum(after.values()) - sum(alive.values())) * (1 - (1 - 1 / rounds) ** n)
        assert low[number] - 1e-9 <= rung + sum(alive.values()) <= high[number] + 1e-9
    assert (high - low).max() < 0.01


def test_a_ceiling_averaged_over_means_is_below_the_average_of_ceilings():
    atoms = [(0.02, 0.5), (0.05, 0.25), (0.052, 0.25)]
    chances = dict(atoms)
    ceilings = {
        means: index_gain_ceiling(means, 6, 1.5, 150) for means in combinations_with_replacement(sorted(chances), 3)
    }
    worlds = product(chances, repeat=3)
    average = sum(math.prod(chances[v] for v in means) * ceilings[tuple(sorted(means))] for means in worlds)
    most, proven = expected_gain_ceiling([(v, v, p) for v, p in atoms], 3, 6, 1.5, 150)
    assert proven
    assert 0 < most <= average * 1.01


def plain_brackets(means, path, slots):
    """The bracket of (b) at each level, by the trapezoidal rule."""
    x = np.concatenate([np.zeros((len(means), 1)), path], axis=1)
    average, gaps = x.mean(0), max(means) - np.array(means)
    slope = (1 - average) ** (slots - 2) * (x - average)
    steps = gaps[:, None] * (slope[:, 1:] + slope[:, :-1]) / 2 * np.diff(x, axis=1)
    left, reach = (1 - average)[1:], np.maximum((x.max(0) - average)[1:], 1e-12)
    curve = (np.maximum(left - reach, 0) ** slots - left**slots + slots * left ** (slots - 1) * reach) / reach**2
    gain = slots * (slots - 1) / len(means) * np.cumsum(steps.sum(0))
    return gain - max(means) * curve * x[:, 1:].var(0)


@pytest.mark.parametrize("width", [0.05, 0.0005])
def test_cells_bound_the_average_over_the_rates_in_them(width):
    levels, rounds, slots = np.linspace(0.99, 0.02, 150), 60, 8
    cells = rate_cells([(0.1 + k * width, 0.1 + (k + 1) * width, 1 / 6) for k in range(6)], 6)
    ends = np.array([chance_above(v, 1.5, rounds, levels) for v in cells.values])
    rates = [[0.1 + (k + (j + 0.5) / 3) * width for j in range(3)] for k in range(6)]  # three in each cell
    path = {v: chance_above(v, 1.5, rounds, levels).mean(0) for own in rates for v in own}
    for chosen in ([0, 2, 3], [1, 1, 4], [2, 4, 4], [0, 0, 5], [3, 3, 3], [0, 1, 4, 5], [1, 3, 3, 3]):
        most = path_brackets(cells, ends, np.array([chosen]), slots)[0]
        worlds = product(*(rates[k] for k in chosen))
        average = np.mean([plain_brackets(v, np.array([path[each] for each in v]), slots) for v in worlds], axis=0)
        assert (average <= most[:-1] + 1e-6).all()
        if width < 0.001:
            assert (most[:-1] - average).max() < 0.005


@pytest.mark.parametrize("originals", [3, 4])
def test_choices_of_cells_cover_the_prior_once(originals):
    cells = rate_cells([(k / 40, (k + 1) / 40, 1 / 40) for k in range(40)], 30, 30.0)
    total = 0.0
    for each in cells.choices(originals):
        same = math.prod(math.factorial(each.count(cell)) for cell in set(each))
        total += math.factorial(originals) / same * math.prod(cells.mass[list(each)])
    assert cells.narrow >= 30
    assert total == pytest.approx(1)
