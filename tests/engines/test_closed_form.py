"""The closed form at the sizes that it is for, and its parts; test_engines_agree has what it is compared with."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import ctx

import cloneproof as cp
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from cloneproof.engines.closed_form.rewards import committed_sums
from cloneproof.laws.arithmetic import BALLS, FLOATS, PRECISION, tie_nodes
from cloneproof.laws.counts import expected_minimum
from cloneproof.market.market import full_copies
from support.reference_runs import simulate_runs, summarise
from support.sizes import LONG

COIN = cp.Discrete([0, 1], [0.5, 0.5])
QUARTERS = cp.Discrete([0.25, 0.75], [0.5, 0.5])


def evaluate(market, mechanism, copies=None, arithmetic="float"):
    return closed_form(market, mechanism, full_copies(market.agents, copies), arithmetic)


def payoff(market, mechanism, copies=None, arithmetic="float"):
    return evaluate(market, mechanism, copies, arithmetic).payoff["ana"].value


# --- the sizes that the engine is for ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prior", "horizon", "copies", "order"),
    [
        (COIN, 10**6, (2, 1), "round-robin"),
        (QUARTERS, 10**12, (1000, 1), "round-robin"),
        (QUARTERS, 10**6, (1000, 1), "block"),
        (COIN, 10**12, (1000, 1), "index"),
    ],
)
def test_h_etc_r_in_floats_is_within_1e_10_of_the_enclosure(prior, horizon, copies, order):
    market = cp.Market([cp.Agent("ana", 2, prior), cp.Agent("bo", 2, prior)], horizon=horizon)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=3717, arm_rounds=59, order=order)
    floats = evaluate(market, mechanism, {"ana": copies})
    balls = evaluate(market, mechanism, {"ana": copies}, "ball")
    for name in ("ana", "bo"):
        assert abs(floats.payoff[name].value - balls.payoff[name].value) <= 1e-11 * balls.payoff[name].value
        assert balls.payoff[name].error <= 1e-15 * balls.payoff[name].value


def test_holdout_of_five_agents():
    prior = cp.Discrete([0.1, 0.3, 0.5, 0.9], [0.25] * 4)
    market = cp.Market([cp.Agent(name, 4, prior) for name in ("ana", "bo", "cy", "di", "ed")], horizon=10**6)
    mechanism = cp.mechanism("holdout-h-etc", market=market)
    floats = evaluate(market, mechanism)
    balls = evaluate(market, mechanism, arithmetic="ball")
    assert floats.payoff["ana"].value == pytest.approx(balls.payoff["ana"].value, rel=1e-11)
    assert floats.payoff["ana"].value == pytest.approx(floats.payoff["ed"].value, rel=1e-13)
    assert payoff(market, mechanism, {"ana": (2, 1, 1, 1)}) < floats.payoff["ana"].value
    assert payoff(market, mechanism, {"ana": (2, 1, 1, 0)}) < floats.payoff["ana"].value


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
    nodes, weights = tie_nodes(degree, FLOATS)
    for k in {0, degree // 3, degree // 2, degree}:
        assert float(weights @ nodes**k) * (k + 1) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("types", [((0.3, 2), (0.6, 1)), ((0.2, 1), (0.5, 2), (0.9, 1)), ((0.4, 3),), ((0, 2), (1, 1))])
@pytest.mark.parametrize("arithmetic", [FLOATS, BALLS])
def test_the_joint_law_of_exploration_and_commitment(types, arithmetic):
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
    with ctx.workprec(PRECISION):
        found = committed_sums(types, m, arithmetic)
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
        assert float(expected_minimum(rounds, chance, cap)) == pytest.approx(float(exact), rel=1e-15)


def test_the_expected_minimum_at_a_long_horizon():
    assert float(expected_minimum(10**12, Fraction(1, 2), 1000)) == 1000
    assert float(expected_minimum(10**12, Fraction(1, 2), 10**12 - 5)) == 5 * 10**11
    middle = 5 * 10**5 - float(expected_minimum(10**6, Fraction(1, 2), 5 * 10**5))
    assert middle == pytest.approx(math.sqrt(10**6 / (8 * math.pi)), rel=1e-5)
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
