"""The constant of a contest of champions: tuned, and much cheaper than 1."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.reservoir.tuning import contest_constant
from support.sizes import LONG

EIGHT = cp.Market([cp.Agent(name, 1, cp.Uniform(0, 0.2)) for name in "abcdefgh"], horizon=3 * 10**4)
TWENTY = cp.Market([cp.Agent(f"a{k}", 1, cp.Beta(2, 60)) for k in range(20)], horizon=10**5)


def regrets(market, made, runs):
    return runs_of(market, made, full_copies(market.agents, None), 5)(0, runs).regret


@pytest.mark.parametrize(("market", "runs", "most"), [(EIGHT, 1000, 0.65), (TWENTY, 600, 0.55)][: 1 + LONG])
def test_tuned_constants_cost_much_less_than_the_usual_one(market, runs, most):
    """In the same worlds, by five standard errors of the difference."""
    tuned, usual = (
        regrets(market, cp.mechanism("reservoir-contest", market=market, **given), runs)
        for given in ({}, {"constant": 1.0})
    )
    saved = most * usual - tuned
    assert saved.mean() > 5 * saved.std(ddof=1) / np.sqrt(runs)


def test_a_given_constant_and_another_contest_keep_theirs():
    assert cp.mechanism("reservoir-contest", market=EIGHT, constant=0.7).parameters["constant"] == 0.7
    assert cp.mechanism("reservoir-contest", market=EIGHT, contest="ucb").parameters["constant"] == 1.0
    rates = {"agents": 8, "originals": 1, "rates": (0.05, 0.1, 0.2), "horizon": 10**4}
    assert cp.mechanism("reservoir-contest", **rates).parameters["constant"] < 1


def test_more_rounds_ask_for_a_wider_index():
    """The width c ln T grows with the horizon, c itself within its limits; a single champion has no contest."""
    prior = [(0.1, 0.5), (0.2, 0.5)]
    markets = [ReservoirMarket([[prior]] * 3, 10**power) for power in (3, 4, 6, 8)]
    widths = [contest_constant(each, ReservoirNumbers(1, 1, 1)) * np.log(each.horizon) for each in markets]
    assert widths == sorted(widths)
    assert contest_constant(ReservoirMarket([[prior] * 2], 1000), ReservoirNumbers(1, 1, 1)) == 1
