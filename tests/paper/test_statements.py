"""The statements behind the rows, against computations that share nothing with them: by listing, in fractions."""

from fractions import Fraction
from itertools import product

import pytest

import cloneproof as cp
from cloneproof.paper.permutations import Instance, rp_regrets, sorted_copies
from cloneproof.paper.rows.theorem_4 import psi_tail, score_tail, tail_lower, tail_upper
from cloneproof.paper.trp import exploration_slack, least_slack


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
    assert honest.more == pytest.approx(0)
    assert honest.less > 0.999
    honest, _ = tail_lower(mechanism, (1, 0), "own arms")
    assert honest.excess <= 0


def test_tail_lower_fails_where_the_best_arm_ties():
    """Means (1, 1/2), all rewards 1: the arms tie, a wrong one is committed to half of the time, and then fails.

    q(1) = 2^-24 (1/2 + 2^-49), psi(1) = 2^-24, the claim's factor is 1 - 2 exp(-3) = 0.90: no positive correlation.
    """
    mechanism = cp.mechanism("h-etc-r", agent_rounds=96, arm_rounds=24)
    _, worst = tail_lower(mechanism, (1.0, 0.5), "own arms")
    assert worst.y == 1.0
    assert worst.more == pytest.approx(2.0**-25, rel=1e-9)
    assert psi_tail(mechanism, (1.0, 0.5))[-1] == pytest.approx(2.0**-24, rel=1e-9)
    assert worst.more < 0.6 * worst.less


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
