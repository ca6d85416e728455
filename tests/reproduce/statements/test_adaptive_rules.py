"""The open problem's two searches, against computations that share nothing with them."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from cloneproof.analysis.properties.rp_regret import sorted_copies
from cloneproof.reproduce.statements.exploring_rules import count_rules, exploring_rules, is_truthful
from cloneproof.reproduce.statements.first_success import first_success_margins, first_success_regrets
from cloneproof.reproduce.statements.index_rules import PAIRS, IndexRule, index_rules, is_adaptive, regrets, trp_margin


def ranked(order):
    """The index rule of a full ranking, the highest cell first."""
    cells = tuple(sorted(order))
    place = {cell: at for at, cell in enumerate(order)}
    above = tuple(sum(1 << k for k, other in enumerate(cells) if place[other] < place[cell]) for cell in cells)
    return IndexRule(cells, above)


def played(order, means, horizon):
    """Expected regret of that ranking by playing out every tie and reward, in fractions."""
    place = {cell: at for at, cell in enumerate(order)}
    total = [Fraction(0)] * horizon

    def go(arms, chance, round_):
        if round_ == horizon:
            return
        best = min(place[arm] for arm in arms)
        tied = [a for a, arm in enumerate(arms) if place[arm] == best]
        for a in tied:
            here = chance / len(tied)
            total[round_] += here * (max(means) - means[a])
            if round_ < horizon - 1:
                n, s = arms[a]
                for reward, p in ((1, means[a]), (0, 1 - means[a])):
                    if p:
                        go([*arms[:a], (n + 1, s + reward), *arms[a + 1 :]], here * p, round_ + 1)

    go([(0, 0)] * len(means), Fraction(1), 0)
    return [sum(total[: t + 1], Fraction(0)) for t in range(horizon)]


def test_regret_of_an_index_rule_is_that_of_playing_it_out():
    order = [(1, 1), (2, 1), (0, 0), (2, 2), (1, 0), (2, 0)]
    rule, horizon = ranked(order), 3
    for (high, low), column in zip(PAIRS, range(len(PAIRS)), strict=True):
        means = [Fraction(high, 4)] * 2 + [Fraction(low, 4)]
        expected = played(order, means, horizon)
        assert [Fraction(int(own), 48**horizon) for own in regrets(rule, horizon, 2, 1)[:, column]] == expected


def test_the_lazy_enumeration_has_every_ranking_once():
    """On three rounds: all 720 rankings of the six cells behave as one of the 18 rules, and all 18 are met."""
    rules = list(index_rules(3))
    behaviours = {(*regrets(rule, 3, 2, 2)[:, 3:].ravel(), is_adaptive(rule, 3)) for rule in rules}
    cells = rules[0].cells
    met = set()
    for order in permutations(cells):
        rule = ranked(list(order))
        met.add((*regrets(rule, 3, 2, 2)[:, 3:].ravel(), is_adaptive(rule, 3)))
    assert met == behaviours


def test_what_is_adaptive():
    three = [(n, s) for n in range(3) for s in range(n + 1)]
    fewest_first = ranked(sorted(three, key=lambda cell: (cell[0], -cell[1])))
    stay = ranked(sorted(three, key=lambda cell: -cell[0]))
    win_stay = ranked(sorted(three, key=lambda cell: (cell[1] == 0, cell[0])))
    assert not is_adaptive(stay, 3)  # one arm for ever
    assert not is_adaptive(fewest_first, 2)
    assert is_adaptive(win_stay, 3)


def test_a_rule_that_copies_do_game_is_not_called_truthful():
    """Among the 18 rules of three rounds 11 are not TRP; `violated` ones have a margin below zero somewhere."""
    margins = [trp_margin(rule, 3) for rule in index_rules(3)]
    assert sum((own >= 0).all() for own in margins) == 7
    assert min(own.min() for own in margins) < 0
    assert all(np.all(own[0] >= 0) for own in margins)  # one round: nothing to choose by


@pytest.mark.parametrize("copies", [(1, 1), (2, 1), (1, 3)])
def test_first_success_by_listing_all_draws(copies):
    means, horizon = [Fraction(3, 4), Fraction(1, 4)], 3
    arms = [mean for mean, own in zip(means, copies, strict=True) for _ in range(own)]
    total = [Fraction(0)] * horizon
    for draws in product(range(len(arms)), repeat=horizon):
        for coins in product((0, 1), repeat=horizon):
            chance, committed = Fraction(1, len(arms) ** horizon), None
            for t in range(horizon):
                arm = draws[t] if committed is None else committed
                chance *= arms[arm] if coins[t] else 1 - arms[arm]
                committed = arm if coins[t] and committed is None else committed
            committed = None
            for t in range(horizon):
                arm = draws[t] if committed is None else committed
                total[t] += chance * (max(means) - arms[arm])
                committed = arm if coins[t] and committed is None else committed
    assert first_success_regrets(means, copies, horizon) == [sum(total[: t + 1]) for t in range(horizon)]


def test_first_success_is_truthful_for_two_different_means():
    eighths = [Fraction(k, 8) for k in range(9)]
    for low in eighths[:-1:3]:
        for high in eighths:
            if high > low:
                for means in ([low, high], [low, low, high], [low, high, high]):
                    for copies in sorted_copies(len(means), 3):
                        assert min(first_success_margins(means, copies, 12)) >= 0


def test_a_commitment_to_the_first_failure_would_be_caught():
    """The mirrored rule stays with the worse arm: copying then pays, so the margins can be negative."""
    mirrored = [1 - own for own in (Fraction(3, 4), Fraction(1, 4))]
    honest = first_success_regrets(mirrored, [1, 1], 12)[-1]
    copied = [first_success_regrets(mirrored, own, 12)[-1] for own in ([2, 1], [1, 2])]
    lost = [Fraction(12, 2) - own for own in (honest, *copied)]  # regret of the mirror image: T gap - regret
    assert (lost[1] + lost[2]) / 2 < lost[0]


def explored_by_hand(rule, horizon, values):
    """The pay up to each round, averaged over every order in which arms may be drawn."""
    orders = list(permutations(values))
    total = [Fraction(0)] * horizon
    for order in orders:
        seen, paid = [], Fraction(0)
        for round_ in range(1, horizon + 1):
            state = round_, tuple(seen.count(value) for value in sorted(set(seen), reverse=True))
            if len(seen) < len(order) and (not seen or rule[state]):
                seen.append(order[len(seen)])
                paid += seen[-1]
            else:
                paid += max(seen)
            total[round_ - 1] += paid
    return [one / len(orders) for one in total]


def test_exploring_rules_against_every_order_of_drawing():
    """On three rounds all rules, TRP by hand for values in fifths: the same verdicts, and rules of both kinds."""
    found = set()
    for rule in exploring_rules(3, 4):
        pays = False
        for values in [(5, 0), (5, 1, 0), (5, 4, 0), (5, 0, 0), (5, 5, 0)]:
            honest = explored_by_hand(rule, 3, values)
            for copies in [c for c in product((1, 2, 3), repeat=len(values)) if sum(c) <= 4]:
                orders = list(permutations(copies))
                runs = [
                    explored_by_hand(rule, 3, [v for v, c in zip(values, o, strict=True) for _ in range(c)])
                    for o in orders
                ]
                pays |= any(sum(run[t] for run in runs) > honest[t] * len(orders) for t in range(3))
        assert is_truthful(rule, 3, 4) != pays
        found.add(pays)
    assert found == {True, False}


def test_the_table_of_small_rules():
    assert count_rules(4, 5)[2:] == (58, 22, 14)
