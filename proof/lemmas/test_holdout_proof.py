"""Every inequality of the textbook's proof of the hold-out theorem, on random cases in exact fractions.

Where the proof has eps, a bound, the tests take e, the exact chance of a wrong commitment: what the proof needs of eps
it needs of e, and e is sharper. Conditions are met by construction (T is the largest horizon that e allows).
"""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from cloneproof import bounds
from support.fraction_etc import (
    average,
    binomial,
    commits_to,
    etc_reward,
    explored,
    overtaken_pair,
    registered,
    score_law,
    sigmas,
)
from support.sizes import LONG

ORDERS = ("round-robin", "index")


FAR = [Fraction(k, 8) for k in (0, 1, 7, 8)]
NEAR = [Fraction(k, 8) for k in range(9)]


def cases(seed, number_of_cases, originals=(2, 3)):
    """Random (rng, means, copies, m): means are eighths, not all equal; at least one copy.

    Mostly means far apart, where a few rounds of exploration make e so small that conditions leave room for T.
    """
    rng, number_of_cases = random.Random(seed), number_of_cases if LONG else number_of_cases // 2
    while number_of_cases:
        number, values = rng.choice(originals), FAR if rng.random() < 0.8 else NEAR
        means = tuple(rng.choice(values) for _ in range(number))
        copies = [rng.choice([1, 1, 2]) for _ in means]
        copies[rng.randrange(number)] += 1
        if len(set(means)) > 1:
            number_of_cases -= 1
            yield rng, means, tuple(copies), rng.randint(1, 8 if number == 2 else 6)


def quantities(means, m):
    """d, D and e: largest and average distance to the best mean, and the honest chance of a wrong commitment."""
    gaps = [max(means) - mean for mean in means]
    wrong = 1 - commits_to(tuple(sorted(means)), m)[max(means)]
    return max(gaps), average(gaps), wrong


def regret(means, copies, m, rounds, order):
    """Averaged over who has which mean."""
    return rounds * max(means) - average(etc_reward(registered(s, copies), m, rounds, order) for s in sigmas(means))


def test_pairs_the_three_tails_are_ordered_and_fall():
    for m in (1, 2, 7, 20):
        for low, high in (
            (0, Fraction(1, 4)),
            (Fraction(1, 8), Fraction(1, 4)),
            (Fraction(1, 2), Fraction(7, 8)),
            (0, 1),
        ):
            exact = float(overtaken_pair(Fraction(low), Fraction(high), m))
            tails = ("exact", "chernoff", "sub-gaussian")
            found = [math.exp(bounds.log_overtaken_pair(float(low), float(high), m, tail)) for tail in tails]
            assert found[0] == pytest.approx(exact, rel=3e-6, abs=1e-300)
            assert exact <= found[0] * (1 + 1e-9) <= found[1] * (1 + 1e-5)
            assert found[1] <= found[2] * (1 + 1e-9)
            assert overtaken_pair(Fraction(low), Fraction(high), m + 1) <= exact * (1 + 1e-12)


def test_pairs_chernoff_holds_for_any_rewards_in_the_unit_interval():
    """Three-valued rewards 0, 1/2, 1 of the same means: the chance to overtake stays below Chernoff's."""
    for (u, v), m in zip(((Fraction(1, 8), Fraction(1, 2)), (Fraction(1, 4), Fraction(3, 4))), (6, 9), strict=True):

        def law(mean, m=m):
            middle = min(mean, 1 - mean)  # P(1/2), and what is left of the mean is P(1)
            each = [1 - middle - (mean - middle / 2), middle, mean - middle / 2]
            sums = [Fraction(1)]
            for _ in range(m):
                sums = [
                    sum(sums[s - k] * each[k] for k in range(3) if 0 <= s - k < len(sums)) for s in range(len(sums) + 2)
                ]
            return sums

        worse, better = law(u), law(v)
        chance = sum(p * sum(worse[s:]) for s, p in enumerate(better))
        assert float(chance) <= math.exp(bounds.log_overtaken_pair(float(u), float(v), m))


def test_step_1_exploration_costs_the_average_distance_whatever_is_registered():
    for rng, means, copies, m in cases(1, 60):
        arms = registered(means, copies)
        rounds = rng.randint(0, len(arms) * m)
        for order in ORDERS:
            earned = average(explored(registered(s, copies), m, rounds, order) for s in sigmas(means))
            assert rounds * max(means) - earned == rounds * quantities(means, m)[1]
    lopsided = explored(registered((Fraction(1), Fraction(0)), (2, 1)), 1, 3, "index")
    assert lopsided != average(
        explored(registered(s, (2, 1)), 1, 3, "index") for s in sigmas((Fraction(1), Fraction(0)))
    )


def test_step_1_honest_and_copied_regret_are_bounded_as_claimed():
    for rng, means, copies, m in cases(2, 60):
        d, average_gap, e = quantities(means, m)
        count, k = len(means), sum(copies)
        honest = (1,) * count
        assert average_gap >= d / count
        for order in ORDERS:
            for rounds in (count * m + rng.randint(1, 50), count * m):
                assert regret(means, honest, m, rounds, order) <= count * m * average_gap + (rounds - count * m) * e * d
            rounds = k * m + rng.randint(0, 50)
            assert regret(means, copies, m, rounds, order) >= k * m * average_gap


def test_step_1_honest_is_best_inside_one_agent_up_to_the_horizon():
    """For every H <= T, where e <= m / (l T); and beyond it copies do pay in some case, so the condition does work."""
    beyond = committed = 0
    for rng, means, copies, m in cases(3, 50):
        d, _, e = quantities(means, m)
        count, k = len(means), sum(copies)
        longest = 10**6 if e == 0 else math.floor(m / (count * e))
        for order in ORDERS:
            for rounds in {*range(1, min(longest, (k + 1) * m) + 1), longest, rng.randint(1, max(1, longest))}:
                if rounds <= longest:
                    gain = regret(means, (1,) * count, m, rounds, order) - regret(means, copies, m, rounds, order)
                    assert gain <= 0
                    if rounds <= count * m:
                        assert gain == 0
                    if rounds >= k * m:
                        committed += 1
                        assert gain <= -d * (Fraction(m, count) - rounds * e)
        far = 400 * max(longest, k * m)
        beyond += regret(means, (1,) * count, m, far, "index") > regret(means, copies, m, far, "index")
    assert beyond > 2
    assert committed > 25


def nondecreasing(rng, fresh):
    """A random chance to win that does not fall with the score 0 .. fresh: what opponents and ties come to."""
    steps = sorted(Fraction(rng.randrange(17), 16) for _ in range(fresh + 1))
    threshold = rng.randint(0, fresh + 1)
    return steps if rng.random() < 0.5 else [Fraction(int(s >= threshold)) for s in range(fresh + 1)]


def expected(g, law):
    return sum((chance * weight for chance, weight in zip(g, law, strict=True)), Fraction(0))


def test_step_2_the_chance_to_win_does_not_fall_with_the_score():
    """Any opponents, some without a score, ties uniformly: P(win | own score) in fractions."""
    rng = random.Random(4)
    for _ in range(50):
        fresh, others = rng.randint(1, 5), []
        for _ in range(rng.randint(1, 3)):
            weights = [rng.randrange(4) for _ in range(fresh + 2)]
            weights[0] += 1
            others.append([Fraction(w, sum(weights)) for w in weights])  # index 0: no score; s + 1: score s
        chances = []
        for own in range(fresh + 2):
            ways = [Fraction(1)]
            for law in others:
                below, at = sum(law[:own], Fraction(0)), law[own]
                more = [Fraction(0)] * (len(ways) + 1)
                for j, way in enumerate(ways):
                    more[j] += way * below
                    more[j + 1] += way * at
                ways = more
            chances.append(sum(way / (j + 1) for j, way in enumerate(ways)))
        assert chances == sorted(chances)


def test_step_2_fresh_rewards_bound_the_chance_to_win_for_every_sigma():
    """Copied <= E g(X) for each sigma, and honest >= (1 - e) E g(X), X from the best arm."""
    for rng, means, copies, m in cases(5, 60):
        fresh = rng.randint(1, 5)
        g = nondecreasing(rng, fresh)
        best = expected(g, binomial(fresh, max(means)))
        _, _, e = quantities(means, m)
        for sigma in sigmas(means):
            assert expected(g, score_law(registered(sigma, copies), m, fresh)) <= best
            assert expected(g, score_law(sigma, m, fresh)) >= (1 - e) * best


def test_step_2_fails_for_the_paper_s_score():
    """The average over all trial rounds is not bounded by that of an honest agent with its best arm committed to."""
    m, trial = 4, 8
    honest = [Fraction(0)] * (trial + 1)
    honest[4] = Fraction(1)  # means (1, 0): four rewards of 1, four of 0
    copied = explored((Fraction(1), Fraction(1), Fraction(0)), m, trial, "round-robin")
    assert copied > sum(s * chance for s, chance in enumerate(honest))


def totals(means, copies, m, fresh, most_arms, award, g, unscored, order):
    """The agent's expected reward in trial and award, averaged over sigma; `unscored`: its chance without a score."""
    trial, found = most_arms * m + fresh, []
    for sigma in sigmas(means):
        arms = registered(sigma, copies)
        wins = expected(g, score_law(arms, m, fresh)) if len(arms) <= most_arms else unscored
        found.append(etc_reward(arms, m, trial, order) + wins * etc_reward(arms, m, award, order))
    return average(found)


def gain_of(means, copies, m, fresh, most_arms, award, g, order):
    """What copies gain in trial and award."""
    honest = (1,) * len(means)
    paid, base = (totals(means, own, m, fresh, most_arms, award, g, 0, order) for own in (copies, honest))
    return paid - base


def test_step_3_trial_and_award_together():
    """For k <= K and any opponents: each bound on the gain, and <= 0 as long as its condition holds.

    Gain <= e N + e M d - m d / l, with e <= m gap / (l T). With the pairs condition, gain <= the sum over worse means
    of e_a (N v + M delta_a) - m delta_a / l.
    """
    positive = checked = by_pairs = 0
    for rng, means, copies, m in cases(6, 80):
        d, _, e = quantities(means, m)
        best, count, k, fresh = max(means), len(means), sum(copies), rng.randint(1, 4)
        gap = min(abs(a - b) for a in means for b in means if a != b)
        worse = [(best - mean, overtaken_pair(mean, best, m)) for mean in means if mean < best]
        most_arms, g = k + rng.randint(0, 2), nondecreasing(rng, fresh)
        trial = most_arms * m + fresh
        longest = 10**4 * trial if e == 0 else math.floor(m * gap / (count * e))
        limits = [m * delta / (count * chance * best) for delta, chance in worse if chance]
        longest_by_pairs = math.floor(min(limits, default=10**4 * trial))
        case = means, copies, m, fresh, most_arms
        for order in ORDERS:
            for horizon in {longest, longest_by_pairs, rng.randint(trial, max(trial, longest, longest_by_pairs))}:
                award = horizon - trial
                if award < 0:
                    continue
                found = gain_of(*case, award, g, order)
                if horizon <= longest:
                    assert found <= min(0, e * award + e * trial * d - Fraction(m, count) * d)
                    checked += 1
                if horizon <= longest_by_pairs:
                    assert found <= 0
                    assert found <= sum(c * (award * best + trial * delta) - m * delta / count for delta, c in worse)
                    by_pairs += 1
        positive += (
            gain_of(*case, 1000 * trial, g, "round-robin") > 0
        )  # far beyond what e allows copies pay in some cases
    assert positive > 2
    assert min(checked, by_pairs) > 40


def test_step_4_more_arms_than_have_a_score():
    """K > K: the chance to win is at most the honest one (0; 1/n against 1; 1 against 1), and step 1 does the rest."""
    checked = 0
    for rng, means, copies, m in cases(7, 60):
        d, _, e = quantities(means, m)
        count, fresh = len(means), rng.randint(1, 4)
        trial = count * m + fresh
        longest = 10**4 * trial if e == 0 else math.floor(m / (count * e))
        if longest < trial:
            continue
        award = longest - trial
        for g, unscored in (
            (nondecreasing(rng, fresh), Fraction(0)),
            ([Fraction(1)] * (fresh + 1), Fraction(1, rng.randint(2, 5))),
            ([Fraction(1)] * (fresh + 1), Fraction(1)),
        ):
            for order in ORDERS:
                honest = totals(means, (1,) * count, m, fresh, count, award, g, unscored, order)
                assert totals(means, copies, m, fresh, count, award, g, unscored, order) <= honest
        checked += d > 0
    assert checked > 10


def test_step_4_equal_means_change_nothing():
    means = (Fraction(3, 8),) * 3
    g = [Fraction(0), Fraction(1, 3), Fraction(1)]
    honest = totals(means, (1, 1, 1), 2, 2, 6, 50, g, 0, "index")
    assert totals(means, (2, 1, 3), 2, 2, 6, 50, g, 0, "index") == honest
    assert totals(means, (4, 1, 3), 2, 2, 6, 50, g, 0, "index") < honest  # but for the score that too many arms lose


def test_the_fallback_is_step_1_at_a_random_number_of_rounds():
    """T < nM: H ~ Bin(T, 1/n), whatever is registered; and a trial that the horizon cuts is the same with H fixed."""
    for rng, means, copies, m in cases(8, 30):
        _, _, e = quantities(means, m)
        count, n = len(means), rng.randint(2, 4)
        longest = 60 if e == 0 else min(60, math.floor(m / (count * e)))
        if longest < 1:
            continue
        law = binomial(longest, Fraction(1, n))
        gain = sum(
            chance * (regret(means, (1,) * count, m, h, "index") - regret(means, copies, m, h, "index"))
            for h, chance in enumerate(law)
        )
        assert gain <= 0


def test_step_5_the_best_agent_s_own_trial():
    """It costs at most (l - 1) m + e (M - l m), not M: that is what pays for 2 eps T."""
    for rng, means, _, m in cases(9, 60):
        _, _, e = quantities(means, m)
        count = len(means)
        trial = (count + rng.randint(0, 2)) * m + rng.randint(1, 20)
        assert regret(means, (1,) * count, m, trial, "index") <= (count - 1) * m + e * (trial - count * m)


def test_step_5_a_worse_agent_rarely_wins():
    """P(its score reaches the best agent's) <= e + exp(-W delta^2), delta the distance of their best means."""
    for rng, means, _, m in cases(10, 60):
        fresh = rng.randint(1, 12)
        better = (min(Fraction(1), max(means) + Fraction(1, 4)), *means[1:])
        delta = max(better) - max(means)
        if delta == 0:
            continue
        best, worse = score_law(better, m, fresh), score_law(means, m, fresh)
        reaches = sum(worse[a] * best[b] for a in range(fresh + 1) for b in range(a + 1))
        _, _, e = quantities(better, m)
        assert reaches <= float(e) + bounds.overtaken(float(delta), fresh) + 1e-12


def test_the_short_form_of_the_condition():
    """M >= ln(L^2 T / gap) / gap^2 is enough."""
    for originals in (2, 3, 10):
        for gap in (0.05, 0.3, 1.0):
            for horizon in (10, 10**5, 10**12):
                m = math.ceil(math.log(originals**2 * horizon / gap) / gap**2)
                assert bounds.holdout_applies(originals, gap, m, horizon)
                assert not bounds.holdout_applies(originals, gap, max(1, m // 20), horizon)


@pytest.mark.parametrize(("sd", "pays"), [(0.5, False), (2.0, True)])
def test_gaussian_rewards_need_the_rounds_of_their_spread(sd, pays):
    """The m of rewards in [0, 1] can be gamed when rewards are wider; the m of the spread cannot."""
    horizon = 50_000

    def payoff(m, copies):
        """One agent, means 0 and 1, each in so many copies: m rounds an arm, then the arm with the best mean."""
        deviation = sd / math.sqrt(m)
        z = np.linspace(-12, 13, 200_001)
        good, bad = stats.norm(1, deviation), stats.norm(0, deviation)
        density = copies * good.pdf(z) * good.cdf(z) ** (copies - 1) * bad.cdf(z) ** copies
        explored = 2 * copies * m
        return explored / 2 + (horizon - explored) * np.trapezoid(density, z)

    def gain(m):
        return (payoff(m, 2) - payoff(m, 1)) / 2  # the means differ in half of the cases

    assert (gain(bounds.holdout_arm_rounds(2, 1.0, horizon)) > 1) == pays
    assert gain(bounds.holdout_arm_rounds(2, 1.0, horizon, spread=sd)) < -1


def test_a_rival_that_knows_which_original_is_better_can_make_copies_pay():
    """Exchangeable given everything about the others: without that, order `index`, a copy of the first original pays.

    Values .34 and .62 with equal odds, m = 53, W = 20, K = 3, T = 464; the rival's mean is 0 exactly where the first
    original is the better one, else 1. The condition of the theorem holds.
    """
    low, high, m, fresh, horizon = Fraction(34, 100), Fraction(62, 100), 53, 20, 464
    trial = 3 * m + fresh
    award = horizon - 2 * trial
    assert bounds.holdout_applies(2, 0.28, m, horizon)
    assert award == 2 * m

    def earned(copies, rival):
        total = Fraction(0)
        for means in ((low, low), (low, high), (high, low), (high, high)):
            arms = registered(means, copies)
            law = score_law(arms, m, fresh)
            wins = law[fresh] / 2 if rival(means) else 1 - law[0] / 2  # against all successes, or none; ties at random
            total += (etc_reward(arms, m, trial, "index") + wins * etc_reward(arms, m, award, "index")) / 4
        return total

    def knowing(means):
        return means != (high, low)

    honest, first, second = (earned(copies, knowing) for copies in ((1, 1), (2, 1), (1, 2)))
    assert [round(float(x), 4) for x in (honest, first, second)] == [103.7341, 103.7463, 100.0364]
    for copies in ((2, 1), (1, 2)):  # the same rival, independent of the agent
        gain = sum(
            weight * (earned(copies, lambda _, r=rival: r) - earned((1, 1), lambda _, r=rival: r))
            for rival, weight in ((False, Fraction(1, 4)), (True, Fraction(3, 4)))
        )
        assert float(gain) == pytest.approx(-3.6977, abs=1e-4)


def test_stopping_by_rewards_can_make_copies_pay():
    """One agent, originals 0 or 1 with equal odds, sure rewards, stopped at the first 0: a copy gains 1/12."""

    def earned(copies):
        total = Fraction(0)
        for means in ((0, 0), (0, 1), (1, 0), (1, 1)):
            arms = registered(means, copies)
            orders = sigmas(arms)
            total += sum(Fraction(order.index(0) if 0 in order else 50, len(orders)) for order in orders) / 4
        return total

    assert earned((2, 1)) - earned((1, 1)) == Fraction(1, 12)
    assert (earned((1, 1)), earned((2, 1))) == (Fraction(51, 4), Fraction(77, 6))
