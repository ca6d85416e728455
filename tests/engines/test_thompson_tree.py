"""Thompson sampling in the tree: the quadrature of draws, levels of rules, kernels, and what is refused."""

from fractions import Fraction

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.tree.choice import MOST_DEGREE, _rule, draw_roundings, largest_draw
from cloneproof.engines.tree.shape import EPS
from cloneproof.engines.tree.state_tree import tree
from cloneproof.errors import EngineError
from cloneproof.market.market import full_copies
from support.brute_force import _chance_of_largest, brute_force

COIN = cp.Discrete([0, 1], [0.5, 0.5])
QUARTERS = cp.Discrete([0.25, 0.75], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, QUARTERS), cp.Agent("bo", 1, cp.Point(0.5))], horizon=5)
COPIES = {"ana": (2, 1), "bo": (1,)}
THOMPSON = cp.mechanism("thompson")


def test_the_quadrature_is_within_its_bound_of_the_fractions():
    rng = np.random.default_rng(4)
    for candidates, coins in ((1, 0), (2, 1), (2, 30), (3, 12), (4, 40), (2, MOST_DEGREE - 2), (9, 6)):
        pulls = rng.multinomial(coins, [1 / candidates] * candidates, size=3).T
        ones = rng.integers(0, pulls + 1)
        ones[:, 0], ones[0, 0] = pulls[:, 0], 0  # the worst against the best: the smallest probabilities
        found = largest_draw(pulls, ones)
        for state in range(3):
            every = list(zip(pulls[:, state].tolist(), ones[:, state].tolist(), strict=True))
            for k, own in enumerate(every):
                exact = _chance_of_largest(own, tuple(every[:k] + every[k + 1 :]))
                wrong = abs(Fraction(float(found[k, state])) - exact) / exact
                assert wrong <= draw_roundings(coins, candidates) * EPS


def test_no_product_underflows_at_the_largest_degree():
    x, y, _ = _rule(MOST_DEGREE // 2)
    assert min(x.min(), y.min()) ** MOST_DEGREE > 1e6 * np.finfo(float).tiny


@pytest.mark.parametrize("agent", ["thompson", "uniform", "ucb"])
def test_on_either_level_it_is_the_brute_force(agent):
    for arm in ("thompson", "uniform") if agent == "thompson" else ("thompson",):
        mechanism = cp.Mechanism(agent=cp.rule(agent), arm=cp.rule(arm))
        payoffs, regret = brute_force(MARKET, mechanism, COPIES, 4)
        found = tree(MARKET, mechanism, COPIES, [4])[4]
        for name, exact in payoffs.items():
            assert abs(Fraction(found.payoff[name].value) - exact) <= Fraction(found.payoff[name].error) < 1e-11
        assert abs(Fraction(found.regret.value) - regret) <= Fraction(found.regret.error)


def test_sure_coins_are_coins():
    market = cp.Market([cp.Agent("ana", 2, COIN)], horizon=5)
    payoffs, _ = brute_force(market, THOMPSON, {"ana": (2, 1)}, 5)
    found = tree(market, THOMPSON, {"ana": (2, 1)})[5].payoff["ana"]
    assert abs(Fraction(found.value) - payoffs["ana"]) <= Fraction(found.error)
    assert (found.kind, "quadrature" in found.method) == ("estimated", True)


@pytest.mark.parametrize("copies", [{}, {"ana": (2, 1)}, {"ana": (1, 0), "bo": (3,)}])
def test_the_kernel_agrees(copies):
    """Intervals that fail once in a million."""
    market = MARKET.with_horizon(14)
    full = full_copies(market.agents, copies)
    exact = tree(market, THOMPSON, full)[14]
    how = {"engine": "monte-carlo", "confidence": 1 - 1e-6 / 3, "search": cp.Search(runs=20_000, seed=3)}
    sampled = cp.evaluate(market, THOMPSON, copies, **how)
    for name, estimate in sampled.payoff.items():
        assert abs(exact.payoff[name].value - estimate.value) <= estimate.error < 0.4
    assert abs(exact.regret.value - sampled.regret.value) <= sampled.regret.error


def test_auto_takes_it_and_a_copy_pays_for_sure():
    assert cp.evaluate(MARKET, THOMPSON).engine == "tree"
    twins = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=8)
    found = cp.audit(twins, THOMPSON, agent="ana", search=cp.Search(copies=2))
    assert (found.verdict, found.worst.gain.kind) == ("exploitable", "estimated")
    assert found.worst.gain.error < 1e-10


@pytest.mark.parametrize(
    ("horizon", "arms", "words"), [(200, 2, "rounds and candidates"), (30, 5, "units of work"), (20, 80, "rounds and")]
)
def test_what_is_too_much_is_refused_before_the_first_round(monkeypatch, horizon, arms, words):
    monkeypatch.setattr("cloneproof.engines.tree.recursion.NextStates", None)
    market = cp.Market([cp.Agent(f"a{k}", 1, cp.Point(k / arms)) for k in range(arms)], horizon=horizon)
    with pytest.raises(EngineError, match=words):
        tree(market, THOMPSON, full_copies(market.agents, None))


@pytest.mark.parametrize("rewards", ["deterministic", "beta"])
def test_rewards_that_are_no_coins_are_refused(rewards):
    market = cp.Market([cp.Agent("ana", 2, QUARTERS)], horizon=5, rewards=rewards)
    with pytest.raises(EngineError, match="monte-carlo"):
        tree(market, THOMPSON, {"ana": (1, 1)})
