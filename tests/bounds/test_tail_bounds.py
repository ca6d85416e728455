"""The claims' tail bounds against exact laws, and where a claim of the paper is false."""

from fractions import Fraction

import pytest

from cloneproof import bounds
from support.fraction_etc import overtaken_pair


@pytest.mark.parametrize("rounds", [1, 2, 5, 12, 30])
def test_overtaken_bounds_the_exact_chance_in_fractions(rounds):
    eighths = [Fraction(k, 8) for k in range(9)]
    found = [(overtaken_pair(a, b, rounds), float(b - a)) for a in eighths for b in eighths if a < b]
    assert all(chance <= bounds.overtaken(gap, rounds) for chance, gap in found)
    assert all(bounds.overtaken(gap, rounds) <= bounds.mistake_paper(gap, rounds) for _, gap in found)
    caught = any(chance > bounds.overtaken(gap, rounds) ** 2 for chance, gap in found)
    assert caught == (rounds >= 5)  # twice the exponent is too much, which a few rounds do not show
