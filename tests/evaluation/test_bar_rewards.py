"""Bars on slots by the closed form: with copies and withholding, against the chain, the kernel and itself."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import cloneproof as cp
from bar_cases import all_pay
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.reservoir.kernel import slots
from support.reference_runs import played

LOW_OR_HIGH = cp.Discrete([0.25, 0.75], [1 / 3, 2 / 3])
ROUNDS = 36  # of the chain; at T = 2 later ones pay less than 1e-10
ONE_IN_A_MILLION = 4.9  # standard errors


def market(horizon, ana, bo=None, **options):
    agents = [cp.Agent("ana", *ana), *([cp.Agent("bo", *bo)] if bo else [])]
    return cp.Market(agents, horizon=horizon, ends="at-random", **options)


@pytest.mark.parametrize(
    ("copies", "bo", "bars", "draws"),
    [((2, 1), True, 0.4, 1), ((3, 1), False, 0.5, 3), ((1, 0), True, 0.8, 1), ((2, 3), True, 0.5, 2)],
)
def test_copies_earn_what_the_chain_pays(copies, bo, bars, draws):
    made = cp.mechanism("reservoir-bars", bars=bars, stake=1.0, draws=draws)
    atoms = [(0.25, Fraction(1, 3)), (0.75, Fraction(2, 3))]
    agents = [[(atoms, number) for number in copies if number], *([[(atoms, 1)]] if bo else [])]
    paid = all_pay(agents, draws, made.arm.bar, 2, ROUNDS)
    found = cp.evaluate(market(2, (2, LOW_OR_HIGH), (1, LOW_OR_HIGH) if bo else None), made, {"ana": copies})
    assert found.engine == "law"
    for name, pay in zip(found.payoff, paid, strict=True):
        assert found.payoff[name].value == pytest.approx(float(pay), abs=1e-9)
        assert 0 < found.payoff[name].error < 1e-9


@pytest.mark.parametrize("options", [{"bars": 0.3, "stake": 0.5, "draws": 4}, {"bars": 0.45, "stake": 2, "draws": 5}])
def test_the_kernel_earns_as_much(options):
    made = cp.mechanism("reservoir-bars", **options)
    two = market(60, (3, cp.Discrete([0.1, 0.4, 0.8], [0.5, 0.3, 0.2])), (2, cp.Uniform(0.2, 0.6)))
    copies = {"ana": (3, 1, 0), "bo": (1, 2)}
    exact = cp.evaluate(two, made, copies)
    runs = played(partial(slots, blocks=True), runs_of(two, made, full_copies(two.agents, copies), 1), 0, 20_000)
    for k, found in enumerate([*exact.payoff.values(), exact.regret]):
        sampled = runs.rows[:, k]
        error = ONE_IN_A_MILLION * sampled.std() / np.sqrt(len(sampled))
        assert abs(sampled.mean() - found.value) < error + found.error


def test_many_originals_are_averaged_one_at_a_time():
    """Listing all means, or convolving powers, gives the same; a Beta prior has an error from two resolutions."""
    made = cp.mechanism("reservoir-bars", bars=0.5, stake=0.7, draws=6)
    few = cp.Discrete([0.1, 0.3, 0.6], [0.2, 0.5, 0.3])
    many = cp.Discrete([*few.values, *np.linspace(0.61, 0.9, 60)], [*few.weights, *[1e-300] * 60])
    listed, convolved = (cp.evaluate(market(1000, (4, prior)), made) for prior in (few, many))
    assert listed.payoff["ana"].value == pytest.approx(convolved.payoff["ana"].value, rel=1e-12)
    smooth = cp.evaluate(market(1000, (3, cp.Beta(2, 5))), made)
    assert smooth.payoff["ana"].heuristic
    assert smooth.payoff["ana"].error < 1e-3


def test_parameters_are_tuned_for_a_market():
    rates = cp.Discrete([0.01, 0.02, 0.03], [1 / 3] * 3)
    five = cp.Market([cp.Agent(name, 3, rates) for name in "abcde"], horizon=10**5, ends="at-random")
    made = cp.mechanism("reservoir-bars", market=five)
    found = cp.evaluate(five, made)
    assert found.regret.value < 11.4
    assert found.regret.error < 1e-6
    assert f"regret {found.regret.value:,.0f} if" in str(made.claims[-1])
    two = market(100, (1, rates), (1, rates))
    assert cp.mechanism("reservoir-bars", market=two, draws=7, stake=2).parameters["draws"] == 7
