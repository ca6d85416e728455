"""Gaussian rewards on slots: sums in place of coins, and sentences where they cannot be."""

import math

import pytest

import cloneproof as cp
from cloneproof.audits.question import audit_case

PRIOR = cp.Discrete([0.2, 0.5, 0.8], [0.3, 0.4, 0.3])
MARKET = cp.Market([cp.Agent(name, 2, PRIOR) for name in "ab"], horizon=80, rewards={"family": "gaussian", "sd": 0.3})
BEST = cp.mechanism("reservoir", rounds=3, draws=4, choose="best", coins=False)
PASS = cp.mechanism("reservoir", rounds=3, draws=4, threshold=1.9, coins=False)
CONTEST = cp.mechanism("reservoir-contest", rounds=3, draws=4, horizon=80, contest="ucb", coins=False)


@pytest.mark.parametrize("mechanism", [BEST, PASS, CONTEST])
@pytest.mark.parametrize("opponents", ["market", "any"])
def test_the_scan_theorem_covers_sums(mechanism, opponents):
    audit = cp.audit(MARKET, mechanism, agent="a", opponents=opponents)
    assert audit.verdict == "clone-proof"
    assert "sums of Gaussian rewards" in str(audit.scope)


def test_sampled_payoffs_are_those_of_the_champions_law():
    """One agent, best of draws, means given: the champion's law by quadrature of normal sums."""
    low, high, sd, rounds, draws, horizon = 0.2, 0.8, 0.3, 3, 4, 80
    agent = cp.Agent("a", prior=[cp.Point(low), cp.Point(high)])
    market = cp.Market([agent], horizon=horizon, rewards={"family": "gaussian", "sd": sd})

    def cdf(x, mean):
        return (1 + math.erf((x - rounds * mean) / (sd * math.sqrt(2 * rounds)))) / 2

    def density(x, mean):
        return math.exp(-((x - rounds * mean) ** 2) / (2 * rounds * sd**2)) / (sd * math.sqrt(2 * math.pi * rounds))

    for copies in ((1, 1), (3, 1)):
        first = copies[0] / sum(copies)
        step, wins = 1e-3, 0.0
        for k in range(-4000, 7000):
            x = k * step
            below = first * cdf(x, low) + (1 - first) * cdf(x, high)
            wins += draws * (1 - first) * density(x, high) * below ** (draws - 1) * step
        tests = rounds * draws * (first * low + (1 - first) * high)
        exact = tests + (horizon - rounds * draws) * (wins * high + (1 - wins) * low)
        sampled = cp.evaluate(
            market, BEST, {"a": copies}, search=cp.Search(runs=4000, bounds="distribution-free"), confidence=1 - 1e-6
        ).payoff["a"]
        assert sampled.low <= exact <= sampled.high
        assert sampled.error < 3


def test_late_sums_are_not_judged_before_they_are_complete():
    """A reward may be negative: a sum above the threshold is no pass while others are to come."""
    for later, expected in ((-5.0, False), (0.0, True)):
        live = cp.session(PASS, {"a": 2}, horizon=80, seed=1, rewards="gaussian")
        first = [live.decide().id for _ in range(3)]
        live.reward(first[0], 2.5)
        live.reward(first[1], 0.0)
        assert live.decide().phase != "award"
        live.reward(first[2], later)
        assert (live.decide().phase == "award") == expected


def test_a_gaussian_market_makes_sums_and_scales_the_bonus():
    contest = cp.mechanism("reservoir-contest", market=MARKET, rounds=3, draws=4)
    assert contest.parameters["coins"] is False
    assert contest.parameters["contest"] == "ucb"
    assert contest.parameters["constant"] == pytest.approx(4 * 0.3**2)
    flat = cp.mechanism("reservoir", market=MARKET, rounds=3, draws=4, threshold=1.5)
    assert flat.arm.threshold == 1.5


def test_sums_of_other_rewards_are_no_scan():
    """Sums of beta rewards run, but nothing is known of their likelihood ratios: the theorem is not applied."""
    for mechanism in (BEST, PASS, CONTEST):
        beta = cp.Market(MARKET.agents, horizon=80, rewards="beta")
        assert audit_case(MARKET, mechanism, "a").proof.on_slots
        assert not audit_case(beta, mechanism, "a").proof.settles
