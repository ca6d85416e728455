"""The examples of docs/textbook/segments.md, in fractions: draws, tests and what a later round pays."""

from fractions import Fraction
from itertools import permutations, product
from math import prod
from random import Random

import cloneproof as cp
from support.late_by_hand import segment_payoffs
from support.sizes import LONG

ZERO, HALF, ONE = Fraction(0), Fraction(1, 2), Fraction(1)
LISTS = (HONEST, COPIES, ALONE) = ((1, 1), (2, 1), (1, 0))
LOST = -1  # another agent has the round


def coin(rate):
    return {1: rate, 0: 1 - rate}


def summed(laws):
    """The law of a sum of independent scores."""
    total = {0: ONE}
    for law in laws:
        found = {}
        for (score, chance), (more, chance_of_more) in product(total.items(), law.items()):
            found[score + more] = found.get(score + more, ZERO) + chance * chance_of_more
        total = found
    return total


def pay(copies, laws, values, draws, choose):
    """A later round, on average over which original is which: `choose` names the slot by all scores, or a fresh draw.

    `laws` has the law of the score of each original.
    """
    orders, total = set(permutations(copies)), ZERO
    for order in orders:
        weights = [Fraction(count, sum(order)) for count in order]
        slot = [(a, score, weights[a] * chance) for a, law in enumerate(laws) for score, chance in law.items()]
        fresh = sum(weight * value for weight, value in zip(weights, values, strict=True))
        for held in product([each for each in slot if each[2]], repeat=draws):
            chosen = choose([score for _, score, _ in held])
            worth = fresh if chosen is None else ZERO if chosen == LOST else values[held[chosen][0]]
            total += prod(chance for _, _, chance in held) * worth
    return total / len(orders)


def best(scores):
    return max(range(len(scores)), key=lambda k: (scores[k], -k))


def test_one_champion_for_all_segments_pays_copies_under_fixed_arrivals():
    """By the session: items (1, 0) and (0, 1) in A and B, two draws, tested in A, and the round after that is in B."""
    mechanism = cp.mechanism("reservoir", rounds=1, draws=2, threshold=1)
    found = []
    for copies in LISTS:
        total = ZERO
        for order in permutations(((ONE, ZERO), (ZERO, ONE))):
            arms = [vector for vector, count in zip(order, copies, strict=True) for _ in range(count)]
            means = {"A": {"ana": [a for a, _ in arms]}, "B": {"ana": [b for _, b in arms]}}
            total += segment_payoffs(mechanism, means, "AAB", lambda *_: 0, pooled=True)["B"]["ana"] / 2
        found.append(total)
    assert found == [Fraction(1, 4), Fraction(5, 18), HALF]
    assert found[1] - found[0] == Fraction(1, 36)


def test_sums_of_unequal_coins_pay_copies():
    """Every test has one pull in A and one in B; best of five by the sum; a round pays the mean of both."""
    vectors = ((ZERO, ONE), (Fraction(1, 4), HALF))
    laws, values = [summed(map(coin, vector)) for vector in vectors], [sum(vector) / 2 for vector in vectors]
    honest, copies, alone = (pay(each, laws, values, 5, best) for each in LISTS)
    assert honest == Fraction(456477, 1048576)
    assert copies - honest == Fraction(23731, 84934656)
    assert (alone, alone - honest) == (Fraction(7, 16), Fraction(2275, 1048576))


def test_what_other_slots_score_must_not_help_a_slot():
    """Items of 0 and 1, two draws: the first is shown if both together score 2."""
    laws, values = [coin(ZERO), coin(ONE)], [ZERO, ONE]
    found = [pay(each, laws, values, 2, lambda scores: 0 if sum(scores) == 2 else LOST) for each in LISTS]
    assert found == [Fraction(1, 4), Fraction(5, 18), HALF]


def first_pass_pay(copies, passes, values):
    """A later round of a first pass with a fresh draw as fallback; `passes` by test and original."""
    orders, total = set(permutations(copies)), ZERO
    for order in orders:
        weights, reached = [Fraction(count, sum(order)) for count in order], ONE
        for chances in (*passes, [ONE] * len(copies)):
            both = [weight * chance for weight, chance in zip(weights, chances, strict=True)]
            total += reached * sum(part * value for part, value in zip(both, values, strict=True))
            reached *= 1 - sum(both)
    return total / len(orders)


def test_tests_in_different_segments_pay_copies_even_if_items_are_ordered_alike():
    """Rates 0, 1, 1 in A and 0, 0, 1 in B; three tests in A, six in B, one pull; a round pays the mean of both."""
    passes, values = [(ZERO, ONE, ONE)] * 3 + [(ZERO, ZERO, ONE)] * 6, [ZERO, HALF, ONE]
    honest, copies = (first_pass_pay(each, passes, values) for each in ((1, 1, 1), (2, 1, 1)))
    assert copies - honest == Fraction(2667421, 10319560704)
    for each in passes[0], passes[-1]:  # one law for all tests: none of them pays
        assert first_pass_pay((2, 1, 1), [each] * 9, values) < first_pass_pay((1, 1, 1), [each] * 9, values)


def random_list(dice, originals):
    while True:
        copies = tuple(dice.randint(0, 3) for _ in range(originals))
        if any(copies) and len(set(copies)) > 1:
            return copies


def test_items_ordered_alike_may_be_pooled_by_any_rule_that_does_not_fall():
    """Tests of one mix, any up-set of the coins as the pass, values in the same order: copies and withholding lose."""
    dice = Random(41)
    for _ in range(2_000 if LONG else 60):
        originals, pulls, draws = dice.choice([2, 3, 4]), dice.choice([2, 3]), dice.choice([1, 2, 4])
        by_segment = [sorted(Fraction(dice.randint(0, 6), 6) for _ in range(originals)) for _ in range(pulls + 1)]
        least = [dice.choices((0, 1), k=pulls) for _ in range(2)]  # a pass has the ones of one of them, or more
        chances = []
        for rates in zip(*by_segment[:-1], strict=True):
            chances.append(ZERO)
            for coins in product((0, 1), repeat=pulls):
                if any(all(map(int.__ge__, coins, one)) for one in least):
                    chances[-1] += prod(rate if each else 1 - rate for rate, each in zip(rates, coins, strict=True))
        lists = (1,) * originals, random_list(dice, originals)
        honest, other = (first_pass_pay(each, [chances] * draws, by_segment[-1]) for each in lists)
        assert other <= honest


def test_scores_that_tell_all_about_one_number_of_an_item_may_be_pooled():
    """Odds b_x t^beta_x in segment x, tests of one mix, the score sum of beta_x times the count: best of draws."""
    dice, lost, cases = Random(42), 0, 600 if LONG else 10
    for _ in range(cases):
        originals, draws, segments = dice.choice([2, 3]), dice.choice([2, 2, 3] if LONG else [2]), dice.choice([2, 3])
        steep, base = dice.choices((1, 2, 3), k=segments), [Fraction(dice.randint(1, 6), 4) for _ in range(segments)]
        items = [Fraction(dice.randint(1, 9), 4) for _ in range(originals)]
        odds = [[b * t**beta for b, beta in zip(base, steep, strict=True)] for t in items]
        rates = [[each / (1 + each) for each in own] for own in odds]
        laws = [summed({0: 1 - rate, beta: rate} for rate, beta in zip(own, steep, strict=True)) for own in rates]
        paid, rival = dice.randrange(segments), dice.choice([0, sum(steep) // 2])
        values = [own[paid] for own in rates]

        def choose(scores, rival=rival):
            return best(scores) if max(scores) >= rival else LOST

        lists = (1,) * originals, random_list(dice, originals)
        honest, other = (pay(each, laws, values, draws, choose) for each in lists)
        assert other <= honest
        lost += other < honest
    assert lost > cases / 2
