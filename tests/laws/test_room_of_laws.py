"""What all engines share: binomial laws, realised means, and the best page in floats and fractions."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest

from cloneproof.laws.best import best_of_atoms
from cloneproof.laws.counts import MISSING, binomial, binomial_floats
from cloneproof.laws.means import CopiedOriginal, count_realisations, exact_atoms, merge_equal_means, realisations

ONE, OTHER = exact_atoms([(0.1, 3), (0.9, 1)]), exact_atoms([(0.1, 1), (0.4, 1), (0.9, 2)])


@pytest.mark.parametrize(("rounds", "mean"), [(1, 0.3), (7, 0.5), (400, 0.01), (30_000, 0.2), (10**6, 0.9995)])
def test_the_fast_binomial_law_is_the_exact_one(rounds, mean):
    exact, fast = binomial(rounds, mean), binomial_floats(rounds, mean)
    assert fast.high <= exact.high
    assert fast.low >= exact.low
    inside = exact.weights[fast.low - exact.low : fast.high - exact.low + 1]
    assert fast.weights == pytest.approx(inside, rel=1e-10)
    assert 1 - inside.sum() <= MISSING
    assert fast.mean == pytest.approx(rounds * mean, rel=1e-11)


def test_realisations_are_those_of_the_ordered_list():
    originals = [CopiedOriginal(ONE, 2), CopiedOriginal(OTHER, 1), CopiedOriginal(ONE, 2), CopiedOriginal(ONE, 1)]
    laws = []
    for ordered in (False, True):
        law, number = Counter(), 0
        for chance, runs in realisations(originals, ordered):
            law[merge_equal_means(runs)] += chance
            number += 1
        assert number == count_realisations(originals, ordered)
        laws.append(law)
    assert laws[0] == laws[1]
    assert sum(laws[0].values()) == 1


@pytest.mark.parametrize("attention", [(1.0,), (1.0, 0.5), (1.0, 0.5, 0.25, 0.125)])
def test_the_best_page_is_the_average_over_all_means(attention):
    providers = [(ONE, OTHER), (OTHER,), (ONE, OTHER)]
    expected = Fraction(0)
    for drawn in itertools.product(*(atoms for own in providers for atoms in own)):
        values = iter(Fraction(value) for value, _ in drawn)
        bests = sorted((max(next(values) for _ in own) for own in providers), reverse=True)
        worth = sum(Fraction(part) * best for part, best in zip(attention, bests, strict=False))
        expected += math.prod(weight for _, weight in drawn) * worth
    assert best_of_atoms(providers, attention, Fraction) == expected
    assert best_of_atoms(providers, attention) == pytest.approx(float(expected), rel=1e-14)
