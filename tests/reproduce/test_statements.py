"""The statements behind the rows, against computations that share nothing with them: by listing, in fractions."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.analysis.properties.permutations import Instance, rp_regrets, sorted_copies
from cloneproof.reproduce.attacks import psi_tail, score_tail, tail_lower, tail_upper
from cloneproof.reproduce.rows.open_problem import (
    PAIRS,
    IndexRule,
    count_rules,
    exploring_rules,
    first_success_margins,
    first_success_regrets,
    index_rules,
    is_adaptive,
    is_truthful,
    regrets,
    trp_margin,
)
from cloneproof.reproduce.trp import exploration_slack, least_slack


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


@pytest.mark.parametrize("means", [(0.25, 0.75), (0.1, 0.4, 0.9), (0.5, 0.5, 1.0)])
def test_where_there_is_slack_no_copies_lower_the_regret_at_any_horizon(means):
    horizon, covered = 120, 0
    horizons = range(6, horizon + 1, 6)
    for m in (2, 9, 14):
        mechanism = cp.mechanism("etc", arm_rounds=m)
        if exploration_slack(mechanism, means, horizon).low < 0:
            continue
        covered += 1
        honest = rp_regrets(mechanism, Instance(means, (1,) * len(means)), horizons, "bernoulli")
        for copies in sorted_copies(len(means), 2):
            copied = rp_regrets(mechanism, Instance(means, copies), horizons, "bernoulli")
            assert all((copied[h] - honest[h]).high >= 0 for h in honest), (m, copies)
    assert covered


def test_without_slack_copies_may_pay():
    """Means 1/4 and 3/4 over a million rounds: covered at m = 31, and copies pay at 28 (theory: the first at 28)."""
    enough, too_few = (cp.mechanism("etc", arm_rounds=m) for m in (31, 28))
    assert least_slack(enough, (0.25, 0.75), 2, 10**6).low > 0
    assert least_slack(too_few, (0.25, 0.75), 2, 10**6).high < 0
    assert cp.paper.check_trp(too_few, (0.25, 0.75), 2, 10**6, max_copies=2).verdict == "violated"


def enumerated(means, copies, m, trial):
    """P(sum >= s) by listing every reward of every pull: round-robin in every order, commitment, ties at random."""
    arms = [Fraction(mean) for mean, own in zip(means, copies, strict=True) for _ in range(own)]
    law = [Fraction(0)] * (trial + 1)
    explored = len(arms) * m
    assert trial >= explored
    for rewards in product((0, 1), repeat=explored):
        sums = [sum(rewards[a * m : (a + 1) * m]) for a in range(len(arms))]
        chance = Fraction(1)
        for a, mean in enumerate(arms):
            chance *= mean ** sums[a] * (1 - mean) ** (m - sums[a])
        best = [a for a in range(len(arms)) if sums[a] == max(sums)]
        for a in best:
            for later in product((0, 1), repeat=trial - explored):
                s = sum(later)
                weight = arms[a] ** s * (1 - arms[a]) ** (len(later) - s)
                law[sum(sums) + s] += chance * weight / len(best)
    return [sum(law[s:], Fraction(0)) for s in range(trial + 1)]


@pytest.mark.parametrize("copies", [(1, 1), (2, 1), (1, 2)])
def test_the_tail_of_scores_is_that_of_all_rewards_listed(copies):
    m, trial, means = 2, 8, (0.75, 0.25)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=m)
    found, expected = score_tail(mechanism, means, copies), enumerated(means, copies, m, trial)
    assert found == pytest.approx([float(own) for own in expected], abs=1e-13)


def test_each_reading_of_psi_breaks_one_claim():
    mechanism = cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36)
    assert tail_upper(mechanism, (1, 0), (2, 1), "own arms").excess == pytest.approx(1.0)
    assert tail_upper(mechanism, (1, 0), (2, 1), "best arm").excess <= 1e-12
    honest, _ = tail_lower(mechanism, (1, 0), "best arm")
    assert honest.q == pytest.approx(0)
    assert honest.bound > 0.999
    honest, _ = tail_lower(mechanism, (1, 0), "own arms")
    assert honest.q >= honest.bound


def test_tail_lower_fails_where_the_best_arm_ties():
    """Means (1, 1/2), all rewards 1: the arms tie, a wrong one is committed to half of the time, and then fails.

    q(1) = 2^-24 (1/2 + 2^-49), psi(1) = 2^-24, the claim's factor is 1 - 2 exp(-3) = 0.90: no positive correlation.
    """
    mechanism = cp.mechanism("h-etc-r", agent_rounds=96, arm_rounds=24)
    _, worst = tail_lower(mechanism, (1.0, 0.5), "own arms")
    assert worst.y == 1.0
    assert worst.q == pytest.approx(2.0**-25, rel=1e-9)
    assert psi_tail(mechanism, (1.0, 0.5))[-1] == pytest.approx(2.0**-24, rel=1e-9)
    assert worst.q < 0.6 * worst.bound


@pytest.mark.parametrize("means", [(0.75, 0.25), (0.9, 0.5, 0.1)])
def test_tail_upper_holds_for_copies_whose_exploration_fits_into_the_trial(means):
    m, trial = 30, 200
    mechanism = cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=m)
    rest = (1,) * (len(means) - 2)
    for first in range(1, 12):
        for second in (1, 2, 3):
            copies = (first, second, *rest)
            excess = tail_upper(mechanism, means, copies, "own arms").excess
            if sum(copies) * m <= trial:
                assert excess <= 1e-12
    assert tail_upper(mechanism, means, (11, 1, *rest), "own arms").excess > 0.3
