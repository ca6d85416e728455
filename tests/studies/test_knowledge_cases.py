"""The ceiling of knowledge: no list beats the best item alone, in fractions, and planted faults break it."""

import random
from fractions import Fraction

from knowledge_cases import Agent, pay, random_case, with_a_clock


def test_no_list_beats_the_best_item_alone_under_steady_indices():
    dice = random.Random(7)
    found = [random_case(dice).most_gained for _ in range(60)]
    assert max(found) == 0
    assert sum(gain < 0 for gain in found) > 10  # the cases are not all alike


def test_an_index_that_falls_in_a_reward_breaks_it():
    dice = random.Random(8)
    assert sum(random_case(dice, falls=True).most_gained > 0 for _ in range(60)) > 1


def test_a_rule_within_that_looks_at_the_clock_breaks_it():
    assert with_a_clock(Fraction(45, 100)) == Fraction(270, 100)
    assert with_a_clock(Fraction(43, 100)) == Fraction(387, 100)


def test_a_case_by_hand():
    """Two agents of sure items, index = sum of rewards: after a tie each, the agent of the better item has the rest."""
    mine, other = (Agent((Fraction(rate),), lambda rewards: Fraction(sum(rewards)), 0) for rate in (1, 0))
    assert pay([mine, other], 4, uniform_ties=False) == 4
    assert pay([other, mine], 2, uniform_ties=True) == 0
    assert pay([mine, other], 2, uniform_ties=True) == Fraction(1, 2) * 2 + Fraction(1, 4) * 1
