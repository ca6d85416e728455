"""What variants add to a score: the ceiling against enumeration in fractions, and the simulation against both."""

from fractions import Fraction
from functools import partial
from itertools import product
from math import comb

import numpy as np
import pytest

import cloneproof as cp
from cloneproof import boards
from cloneproof.boards.variants import POINTS
from support.board_by_hand import expected_prize, listed_best

HALF = Fraction(1, 2)
# shifts of mean 0 with their chances
SHIFTS = [
    {Fraction(-1, 10): HALF, Fraction(1, 10): HALF},
    {Fraction(-1, 20): Fraction(4, 5), Fraction(1, 5): Fraction(1, 5)},
    {Fraction(-1, 4): Fraction(1, 5), Fraction(1, 16): Fraction(4, 5)},
]
NUMBERS = [
    (2, 1, 1, 0),
    (2, 3, 2, 0),
    (3, 1, 1, 1),
    (3, 2, 1, 1),
    (2, 2, 1, 3),
    (2, 2, 0, 1),
]  # slots, tests, fresh, weight


def steepness(tests, low, high):
    """n times the largest P(Bin(n - 1, v) = y), over all counts, in fractions."""
    best = Fraction(0)
    for y in range(tests):
        v = min(max(Fraction(y, max(1, tests - 1)), low), high)
        best = max(best, tests * comb(tests - 1, y) * v**y * (1 - v) ** (tests - 1 - y))
    return best


def expected(score, mean, shifts, variants):
    """A score's expectation over the strengths of variants."""
    total = Fraction(0)
    for drawn in product(shifts.items(), repeat=variants):
        chance = Fraction(1)
        for _, likely in drawn:
            chance *= likely
        total += chance * score([mean + shift for shift, _ in drawn])
    return total


def published(numbers, weights, strengths):
    """The expected share of battles won on a reservoir board."""
    _, tests, fresh, weight = numbers
    scores = [Fraction(x) for x in range(weight * tests + fresh + 1)]
    shares = [Fraction(each, sum(weights)) for each in weights]
    return expected_prize(strengths, shares, *numbers, scores) / (weight * tests + fresh)


def within_ceiling(inflation, numbers, mean, shifts):
    """Whether an inflation respects the theorem, in fractions; the float is the ceiling."""
    slots, tests, _, _ = numbers
    low, high = mean + min(shifts), mean + max(shifts)
    variance = sum(chance * shift**2 for shift, chance in shifts.items())
    ceiling = slots * steepness(tests, low, high) * variance
    found = cp.bounds.variant_inflation_ceiling(slots, tests, float(variance) ** 0.5, float(low), float(high))
    assert found == pytest.approx(float(ceiling), rel=1e-12)
    return inflation <= ceiling


@pytest.mark.parametrize("numbers", NUMBERS)
@pytest.mark.parametrize("shifts", SHIFTS)
def test_variants_add_at_most_the_ceiling_whatever_their_weights(numbers, shifts):
    mean = Fraction(2, 5)
    alone = published(numbers, [1], [mean])
    for weights in ((1, 1), (2, 1), (1, 0), (1, 1, 1)):
        inflated = expected(partial(published, numbers, weights), mean, shifts, len(weights))
        assert within_ceiling(inflated - alone, numbers, mean, shifts)
    copies = expected(partial(published, numbers, (1, 1, 1)), mean, {Fraction(0): Fraction(1)}, 3)
    assert copies == alone


def test_the_same_check_catches_boards_that_are_inflated():
    shifts, mean = {Fraction(-1, 50): HALF, Fraction(1, 50): HALF}, HALF
    numbers = 2, 2, 1, 1

    def usual(strengths):
        return listed_best(strengths, [1] * len(strengths), 2, [Fraction(x, 2) for x in range(3)])

    def more_slots(strengths):
        return published((1 + len(strengths), *numbers[1:]), [1] * len(strengths), strengths)

    for board in (usual, more_slots):
        assert not within_ceiling(expected(board, mean, shifts, 2) - board([mean]), numbers, mean, shifts)
    ours = expected(partial(published, numbers, (1, 1)), mean, shifts, 2)
    assert not within_ceiling(ours - mean, numbers, mean, shifts)  # tests count: too high for the model alone as well
    fresh = expected(partial(published, (2, 2, 1, 0), (1, 1)), mean, shifts, 2)
    assert within_ceiling(fresh - mean, (2, 2, 1, 0), mean, shifts)


@pytest.mark.parametrize(
    ("tests", "low", "high"), [(1, 0.2, 0.9), (7, 0.0, 0.3), (40, 0.31, 0.47), (169, 0.2, 0.21), (50, 0.1, 0.9)]
)
def test_steepness_is_the_largest_over_all_counts_and_means(tests, low, high):
    found = cp.bounds.count_steepness(tests, low, high)
    assert found == pytest.approx(float(steepness(tests, Fraction(low), Fraction(high))), rel=1e-12)
    inner = steepness(tests, Fraction(low + high) / 2, Fraction(low + high) / 2)
    assert found >= float(inner) * (1 - 1e-12)  # at one mean it is no more


def test_the_simulation_has_the_expectations_of_the_enumeration():
    rule, votes, spread = boards.ReservoirBoard(2, 2, 1, 1), 2, 60.0
    reach = 3**0.5 * spread / POINTS
    nodes, weights = np.polynomial.legendre.leggauss(4)
    shifts = {Fraction(reach * node): Fraction(weight) / 2 for node, weight in zip(nodes, weights, strict=True)}
    numbers = rule.slots, rule.tests, rule.fresh, rule.weight
    best = expected(lambda each: listed_best(each, (1, 1), votes, [0, HALF, 1]), HALF, shifts, 2) - HALF
    score = expected(partial(published, numbers, (1, 1)), HALF, shifts, 2) - published(numbers, [1], [HALF])
    champion = expected(partial(published, (2, 2, 1, 0), (1, 1)), HALF, shifts, 2) - HALF
    found = boards.variant_inflation(rule, votes, 2, spread, runs=40_000)
    for estimate, exact in ((found.usual, best), (found.reservoir, score), (found.champion, champion)):
        assert abs(estimate.value - POINTS * float(exact)) < 2 * estimate.error  # 5.2 standard errors: one in a million


def test_luck_stays_on_the_usual_board_and_vanishes_with_the_spread_on_a_reservoir_board():
    rule = boards.ReservoirBoard(15, 169, 1_705, 3)
    for variants in (5, 20):
        wide, narrow, none = (boards.variant_inflation(rule, 1_590, variants, spread) for spread in (5, 2, 0))
        assert none.ceiling == none.leader.value == none.champion.value == 0
        assert abs(none.reservoir.value) < 2 * none.reservoir.error
        assert none.usual.low > 9.5
        assert narrow.usual.value - narrow.leader.value > 9  # luck
        for each in (wide, narrow):
            assert each.reservoir.high < each.ceiling
        assert wide.ceiling == pytest.approx(narrow.ceiling * 2.5**2, rel=0.01)
