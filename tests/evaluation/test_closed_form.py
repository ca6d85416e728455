"""The closed form at the sizes that it is for, and its parts; test_engines_agree has what it is compared with."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.laws.arithmetic import tie_nodes
from cloneproof.laws.counts import expected_minimum
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.committing.rewards import committed_sums
from cloneproof.runs.job import Job
from support.reference_runs import simulate_runs, summarise
from support.sizes import LONG

COIN = cp.Discrete([0, 1], [0.5, 0.5])
QUARTERS = cp.Discrete([0.25, 0.75], [0.5, 0.5])


def evaluate(market, mechanism, copies=None):
    return mechanism.law(Job(market, full_copies(market.agents, copies)))


def payoff(market, mechanism, copies=None):
    return evaluate(market, mechanism, copies).payoff["ana"].value


# --- the sizes that the engine is for ---------------------------------------------------------------------------------


def committed_to_the_better(m, copies):
    """The chance that ETC of m rounds commits to a copy of the better original, means 1/4 and 3/4: in fractions."""
    low, high = (
        [math.comb(m, k) * p**k * (1 - p) ** (m - k) for k in range(m + 1)] for p in (Fraction(1, 4), Fraction(3, 4))
    )
    chance = Fraction(0)
    for better, worse in product(product(range(m + 1), repeat=copies[0]), product(range(m + 1), repeat=copies[1])):
        top = max(*better, *worse)
        tied, good = [*better, *worse].count(top), better.count(top)
        chance += math.prod(high[k] for k in better) * math.prod(low[k] for k in worse) * Fraction(good, tied)
    return chance


@pytest.mark.parametrize("horizon", [40, 10**6, 10**12, 10**15])
@pytest.mark.parametrize("copies", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("agents", [1, 3])
def test_payoffs_are_those_of_fractions_up_to_ten_to_the_fifteen_rounds(horizon, copies, agents):
    """ETC alone, and in an agent's share of the rounds, which is binomial: exploration is over for sure but at 40."""
    m, prior = 4, [cp.Point(0.75), cp.Point(0.25)]
    market = cp.Market([cp.Agent(name, prior=prior) for name in "abc"[:agents]], horizon=horizon)
    made = cp.mechanism("etc", arm_rounds=m) if agents == 1 else cp.mechanism("uniform-etc", arm_rounds=m)
    found = evaluate(market, made, dict.fromkeys("abc"[:agents], copies))
    arms, chance = sum(copies), committed_to_the_better(m, copies)
    exploring = Fraction(3 * copies[0] + copies[1], 4 * arms)
    committed = chance * Fraction(3, 4) + (1 - chance) * Fraction(1, 4)
    explored = Fraction(min(horizon, arms * m))
    if agents > 1 and horizon == 40:
        p = Fraction(1, agents)
        law = [math.comb(40, h) * p**h * (1 - p) ** (40 - h) for h in range(41)]
        explored = sum(min(h, arms * m) * weight for h, weight in enumerate(law))
    exact = exploring * explored + committed * (Fraction(horizon, agents) - explored)
    for payoff in found.payoff.values():
        assert payoff.kind == "exact"
        assert abs(Fraction(payoff.value) - exact) <= Fraction(payoff.error) <= Fraction(horizon) / 10**12


@pytest.mark.parametrize(
    ("prior", "horizon", "copies", "order", "ana", "bo"),
    [
        (COIN, 10**6, (2, 1), "round-robin", 405958.6875, 530040.5),
        (QUARTERS, 10**12, (1000, 1), "round-robin", 317724734007.022, 386019915531.4831),
        (QUARTERS, 10**6, (1000, 1), "block", 315967.7634887983, 385684.3644359541),
        (COIN, 10**12, (1000, 1), "index", 468749996517.15625, 437499999491.125),
    ],
)
def test_many_copies_at_long_horizons_are_those_of_interval_arithmetic(prior, horizon, copies, order, ana, bo):
    """The numbers were enclosed once in interval arithmetic with 192 bits, to their last digit."""
    market = cp.Market([cp.Agent("ana", 2, prior), cp.Agent("bo", 2, prior)], horizon=horizon)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=3717, arm_rounds=59, order=order)
    found = evaluate(market, mechanism, {"ana": copies}).payoff
    assert [found["ana"].value, found["bo"].value] == pytest.approx([ana, bo], rel=1e-13)
    assert max(own.error for own in found.values()) <= 2e-12 * horizon


# --- facts -----------------------------------------------------------------------------------------------------------


def test_averages_that_are_equal_in_the_session_tie_here():
    """Five times 0.2 and five times 0.8 make 0.5 on average, in the session's ticks too; doubles add up to more."""
    agents = [cp.Agent("ana", prior=[cp.Point(0.2), cp.Point(0.8)]), cp.Agent("bo", 1, cp.Point(0.5))]
    market = cp.Market(agents, horizon=120, rewards="deterministic")
    mechanism = cp.mechanism("h-etc-r", agent_rounds=10, arm_rounds=5, order="index")
    found = evaluate(market, mechanism)
    assert found.payoff["bo"].value == pytest.approx(5 + 0.5 * 50)
    runs = summarise(simulate_runs(market, mechanism, None, runs=80, seed=1))
    assert abs(runs.payoff["bo"].mean - found.payoff["bo"].value) < 5 * runs.payoff["bo"].standard_error


# --- parts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degree", [0, 1, 2, 7, 100, 1000, 5000])
def test_tie_nodes_integrate_every_power(degree):
    nodes, weights = tie_nodes(degree)
    for k in {0, degree // 3, degree // 2, degree}:
        assert float(weights @ nodes**k) * (k + 1) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("types", [((0.3, 2), (0.6, 1)), ((0.2, 1), (0.5, 2), (0.9, 1)), ((0.4, 3),), ((0, 2), (1, 1))])
def test_the_joint_law_of_exploration_and_commitment(types):
    m = 3
    means = [mean for mean, count in types for _ in range(count)]
    expected = {}
    for outcome in product(range(m + 1), repeat=len(means)):
        chance = math.prod(
            math.comb(m, k) * Fraction(p) ** k * (1 - Fraction(p)) ** (m - k)
            for k, p in zip(outcome, means, strict=True)
        )
        tied = [p for k, p in zip(outcome, means, strict=True) if k == max(outcome)]
        for p in tied:
            expected[p, sum(outcome)] = expected.get((p, sum(outcome)), 0) + chance / len(tied)
    found = committed_sums(types, m)
    for (mean, _), law in zip(types, found, strict=True):
        for number in range(m * len(means) + 1):
            weight = law.weights[number - law.low] if law.low <= number <= law.high else 0
            assert float(weight) == pytest.approx(float(expected.get((mean, number), 0)), rel=1e-13, abs=1e-40)


@pytest.mark.parametrize(("rounds", "parts"), [(1, 2), (10, 3), (60, 2), (200, 7)])
def test_the_expected_minimum(rounds, parts):
    chance = Fraction(1, parts)
    pmf = [math.comb(rounds, h) * chance**h * (1 - chance) ** (rounds - h) for h in range(rounds + 1)]
    for cap in {1, rounds // 3, rounds // 2, rounds - 1, rounds, 2 * rounds} - {0}:
        exact = sum(min(h, cap) * p for h, p in enumerate(pmf))
        assert float(expected_minimum(rounds, chance, cap)) == pytest.approx(float(exact), rel=1e-14)


def test_the_expected_minimum_at_a_long_horizon():
    assert float(expected_minimum(10**12, Fraction(1, 2), 1000)) == 1000
    assert float(expected_minimum(10**12, Fraction(1, 2), 10**12 - 5)) == 5 * 10**11
    for rounds, rel in ((10**6, 1e-5), (10**10, 1e-6), (10**15, 1e-6)):
        middle = rounds // 2 - expected_minimum(rounds, Fraction(1, 2), rounds // 2)
        assert middle == pytest.approx(math.sqrt(rounds / (8 * math.pi)), rel=rel)
    assert np.isfinite(middle)


def test_the_error_of_a_continuous_prior_covers_its_jumps():
    """Ana's mean is uniform, bo's is c, and one look decides: ana earns 1 - c^2 over 2, bo c^2, of what is left."""
    for step in range(0, 12, 1 if LONG else 5):
        c = 0.05 + 0.075 * step + 0.000305
        agents = [cp.Agent("ana", 1, cp.Uniform()), cp.Agent("bo", 1, cp.Point(c))]
        market = cp.Market(agents, horizon=1000, rewards="deterministic")
        found = evaluate(market, cp.mechanism("etc", arm_rounds=1))
        left = 998
        truth = {"ana": 0.5 + left * (1 - c * c) / 2, "bo": c + left * c * c}
        for name, value in truth.items():
            assert abs(found.payoff[name].value - value) <= found.payoff[name].error + 0.2
