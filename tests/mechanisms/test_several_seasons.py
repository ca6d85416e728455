"""Seasons, in fractions and by the real session: what a list earns over several of them (docs/textbook/seasons.md)."""

from fractions import Fraction
from itertools import permutations
from unittest.mock import patch

import cloneproof as cp
from support.late_by_hand import Script

HALF, ONE, ZERO = Fraction(1, 2), Fraction(1), Fraction(0)
HONEST, COPIES, ALONE = (1, 1), (2, 1), (1, 0)
LISTS = (HONEST, COPIES, (1, 2), ALONE, (0, 1))
ONE_DRAW = cp.mechanism("reservoir", rounds=1, draws=1, threshold=1)
TWO_DRAWS = cp.mechanism("reservoir", rounds=1, draws=2, choose="best")
FIRST_PASS = cp.mechanism("reservoir", rounds=1, draws=2, threshold=1)


def drawn(script):
    """Slots that hold uniform draws, each a branch."""
    return lambda rule, stream, pool: [
        pool[script.choose([Fraction(1, len(pool))] * len(pool))] for _ in range(rule.draws)
    ]


def season(mechanism, copies, means, rounds, slots=drawn):
    """Every outcome of a season, as its chance, the agent's mean pay, and (item, reward) of each round."""
    items = [item for item, number in enumerate(copies) for _ in range(number)]
    script = Script()
    with patch("cloneproof.mechanisms.reservoir.rank.agent_slots", slots(script)):
        for _ in script.leaves():
            live, shown = cp.session(mechanism, {"ana": len(items)}, rounds), []
            for _ in range(rounds):
                decision = live.decide()
                mean = means[items[decision.arm]]
                reward = script.choose([1 - mean, mean]) if 0 < mean < 1 else int(mean)
                live.reward(decision.id, float(reward))
                shown.append((items[decision.arm], reward))
            yield script.weight, sum(means[item] for item, _ in shown), shown


def pay(mechanism, copies, means, rounds, slots=drawn):
    """The expected pay of a season."""
    return sum(weight * earned for weight, earned, _ in season(mechanism, copies, means, rounds, slots))


def two_seasons(mechanism, copies, originals, rounds, report):
    """The pay of a first season, and that of a round of the next, with the best list for what the report says."""
    orders, first, seen = list(permutations(originals)), ZERO, {}
    for means in orders:
        for weight, earned, shown in season(mechanism, copies, means, rounds):
            first += weight * earned / len(orders)
            chances = seen.setdefault(report(shown), dict.fromkeys(orders, ZERO))
            chances[means] += weight / len(orders)
    later = {(listed, means): pay(ONE_DRAW, listed, means, 1) for listed in LISTS for means in orders}
    return first, sum(
        max(sum(chances[means] * later[listed, means] for means in orders) for listed in LISTS)
        for chances in seen.values()
    )


def total_pay(shown):
    return sum(reward for _, reward in shown)


def pay_by_item(shown):
    return tuple((sum(i == item for i, _ in shown), sum(r for i, r in shown if i == item)) for item in range(2))


def test_over_two_seasons_a_list_is_an_experiment_and_copies_pay():
    """Items of 0 and 1 in unknown order, one slot, two seasons of one round, and only the total pay is told."""
    found = [sum(two_seasons(ONE_DRAW, listed, (ZERO, ONE), 1, total_pay)) for listed in (HONEST, COPIES, ALONE)]
    assert found == [1, Fraction(7, 6), Fraction(3, 2)]


def test_one_season_alone_pays_no_copies():
    for mechanism in (ONE_DRAW, TWO_DRAWS, FIRST_PASS):
        for originals in ((ZERO, ONE), (ZERO, HALF)):
            paid = {
                listed: sum(pay(mechanism, listed, means, 2) for means in permutations(originals)) for listed in LISTS
            }
            assert max(paid.values()) == paid[HONEST]


def test_copies_are_an_experiment_even_if_pay_is_told_by_item():
    """Items of 0 and 1/2: two draws of one pull each, then the better guess; what each later round pays."""
    found = [two_seasons(TWO_DRAWS, listed, (ZERO, HALF), 2, pay_by_item) for listed in (HONEST, COPIES, ALONE)]
    assert [later for _, later in found] == [Fraction(13, 32), Fraction(59, 144), Fraction(7, 16)]
    assert len({first for first, _ in found}) == 1  # two rounds of two draws: worth the average, whatever the list


def test_with_a_pass_copies_cost_the_first_season_and_pay_from_the_third_later_round_on():
    honest, copies = (two_seasons(FIRST_PASS, listed, (ZERO, HALF), 2, pay_by_item) for listed in (HONEST, COPIES))
    cost, gain = honest[0] - copies[0], copies[1] - honest[1]
    assert (cost, gain) == (Fraction(1, 144), Fraction(1, 288))
    assert [rounds * gain - cost > 0 for rounds in (1, 2, 3)] == [False, False, True]


def test_a_list_that_changes_between_draws_pays():
    """Items of 0 and 1, two slots: one item for the first slot, the other for the second. So lists are frozen."""

    def changing(script):
        return lambda rule, stream, pool: list(pool)

    orders = list(permutations((ZERO, ONE)))
    frozen, changed = (
        sum(pay(FIRST_PASS, HONEST, means, 10, slots) for means in orders) / 2 for slots in (drawn, changing)
    )
    assert (frozen, changed) == (Fraction(29, 4), Fraction(19, 2))


def test_whoever_expects_another_item_may_wait_for_it():
    """The second item comes after round 1 of ten: the first one at once, or both for the nine rounds that are left."""
    orders = list(permutations((ZERO, ONE)))
    at_once, later = (
        sum(pay(FIRST_PASS, listed, means, rounds) for means in orders) / 2
        for listed, rounds in ((ALONE, 10), (HONEST, 9))
    )
    assert (at_once, later) == (5, Fraction(13, 2))
