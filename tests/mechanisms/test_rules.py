"""Rules are pure functions of numbers: a compiler can take them as they are."""

import math
from ctypes import CFUNCTYPE, c_double

import numba
import numpy as np
import pytest
from numba.extending import get_cython_function_address, overload
from scipy.special import betaincinv, cython_special

import cloneproof as cp
from cloneproof.engines.monte_carlo.stepping import user_functions
from cloneproof.mechanisms import rule_names

NEEDED = {"etc": {"rounds": 3}}


@pytest.fixture(scope="module", autouse=True)
def _scipy_for_numba():
    """Teach the compiler the one special function that a rule calls."""
    names = [name for name in cython_special.__pyx_capi__ if "betaincinv" in name]
    double = next(name for name in names if b"double" in repr(cython_special.__pyx_capi__[name]).encode())
    native = CFUNCTYPE(c_double, c_double, c_double, c_double)(
        get_cython_function_address("scipy.special.cython_special", double)
    )

    @overload(betaincinv)
    def _betaincinv(a, b, u):
        return lambda a, b, u: native(a, b, u)  # noqa: PLW0108 (the compiler wants these names)


@pytest.mark.parametrize("name", rule_names())
def test_every_rule_compiles_as_it_is(name):
    rule = cp.rule(name, **NEEDED.get(name, {}))
    compiled = user_functions.with_callees(rule.priority)
    random = np.random.default_rng(1)
    for _ in range(50):
        pulls = float(random.integers(1, 30))
        mean = float(random.integers(0, int(pulls) + 1)) / pulls
        clock = pulls + float(random.integers(1, 50))
        numbers = (clock, math.log(clock), pulls, mean, random.random(), random.random(), 4.0, *rule.parameters)
        assert compiled(*numbers) == pytest.approx(rule.priority(*numbers), rel=1e-12)


def test_a_users_own_bonus_compiles_with_the_rule():
    own = numba.njit(lambda t, n: t / n)
    rule = cp.rule("ucb", bonus=own)
    assert numba.njit(rule.priority)(6.0, 0.0, 2.0, 0.5, 0.0, 0.0, 3.0) == 3.5


@pytest.mark.parametrize("name", rule_names())
def test_a_rule_is_restored_from_its_data(name):
    rule = cp.rule(name, **NEEDED.get(name, {}))
    data = rule.to_dict()
    assert cp.rule(data.pop("rule"), **data) == rule


@pytest.mark.parametrize("name", rule_names())
def test_every_rule_makes_conforming_mechanisms(name):
    """A new rule file is covered from its first day: flat, above ETC, and below the uniform choice of agents."""
    rule = cp.rule(name, **NEEDED.get(name, {}))
    mechanisms = [cp.Mechanism(arm=rule), cp.Mechanism(agent=cp.rule("uniform"), arm=rule)]
    if not rule.draws:  # slots are drawn from arms, never from agents
        mechanisms.append(cp.Mechanism(agent=rule, arm=cp.rule("etc", rounds=2)))
    for mechanism in mechanisms:
        cp.check_mechanism(mechanism)


def test_epsilon_greedy_explores_with_probability_ck_over_t():
    rule = cp.rule("epsilon-greedy", c=2.0)

    def exploring(clock, coin):
        return rule.priority(clock, 0.0, 5, 0.123, coin, 0.9, 3, *rule.parameters) == 0.9

    assert exploring(6, 0.999)  # cK = 6: certain up to t = 6
    assert exploring(12, 0.499)
    assert not exploring(12, 0.5)


def test_thompson_by_quantiles_draws_from_the_posterior():
    rule = cp.rule("thompson", draw="quantile")
    levels = (np.arange(4000) + 0.5) / 4000
    draws = [rule.priority(9, 0.0, 5, 0.4, 0.5, u, 2) for u in levels]  # Beta(3, 4)
    assert np.mean(draws) == pytest.approx(3 / 7, abs=1e-4)
    assert np.var(draws) == pytest.approx(3 * 4 / (49 * 8), abs=1e-4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: cp.rule("ubc"), "did you mean 'ucb'"),
        (lambda: cp.rule("ucb", konstant=1), "did you mean 'constant'"),
        (lambda: cp.rule("ucb", constant=0), "above 0"),
        (lambda: cp.rule("ucb", clock="late"), "current, completed"),
        (lambda: cp.rule("ucb", bonus=3), "function"),
        (lambda: cp.rule("ucb", bonus=max, constant=1.0), "either bonus or constant"),
        (lambda: cp.rule("etc", rounds=0), "whole number from 1"),
        (lambda: cp.rule("thompson", draw="lots"), "variate or quantile"),
        (lambda: cp.rule("etc", rounds=2, choice="later"), "commit or greedy"),
        (lambda: cp.rule("etc", rounds=2, order="random"), "round-robin, block, index"),
        (lambda: cp.rule("epsilon-greedy", c=-1), "above 0"),
    ],
)
def test_bad_rules_get_one_clear_sentence(make, words):
    with pytest.raises(cp.errors.MechanismError, match=words):
        make()


def test_a_rule_that_returns_nan_is_named():
    bad = cp.Mechanism(arm=cp.rule("ucb", bonus=lambda t, n: math.nan))
    live = cp.session(bad, {"ana": 2}, horizon=5)
    for _ in range(2):
        live.reward(live.decide().id, 1.0)
    with pytest.raises(cp.errors.MechanismError, match="'ucb' to return a number, got NaN"):
        live.decide()
