"""Regret of the reservoir on slates for tuning, against the closed form; what tuning finds."""

import pytest

import cloneproof as cp
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from cloneproof.laws.best import best_of_quantiles
from cloneproof.laws.points import points
from cloneproof.laws.slates import SlateMarket
from cloneproof.mechanisms.parameters.reservoir_tuning import tune_slates

ATTENTION = (1.0, 0.7, 0.5)


@pytest.mark.parametrize(("rounds", "draws", "horizon"), [(30, 1, 4000), (30, 4, 4000), (8, 9, 2000), (200, 3, 900)])
def test_regret_is_nearly_that_of_the_closed_form(rounds: int, draws: int, horizon: int) -> None:
    prior, names = cp.Discrete([0.1, 0.2, 0.5], [0.5, 0.3, 0.2]), ("ana", "bo", "cy", "di")
    market = cp.Market([cp.Agent(name, 2, prior) for name in names], horizon, positions=ATTENTION)
    ours = cp.mechanism("reservoir", rounds=rounds, draws=draws, choose="best")
    exact = closed_form(market, ours, dict.fromkeys(names, (1, 1))).regret.value
    assert SlateMarket([[prior.atoms] * 2] * 4, horizon, ATTENTION).regret(rounds, draws) == pytest.approx(
        exact, rel=0.03
    )


def test_a_page_of_the_best_slate_by_nodes_and_by_quantiles() -> None:
    beta = cp.Beta(3, 97)
    by_nodes = SlateMarket([[points(beta, 160)] * 3] * 8, 1, ATTENTION).best_page
    assert best_of_quantiles([[beta] * 3] * 8, ATTENTION) == pytest.approx(by_nodes, rel=1e-3)


def test_tuning_finds_numbers_that_lose_little_and_given_ones_are_kept() -> None:
    """Eight providers of three items, a page of five, 2 000 000 pages: at most 3.5 % of the best slate's clicks."""
    agents = [cp.Agent(f"p{k}", 3, cp.Beta(3, 97)) for k in range(8)]
    market = cp.Market(agents, 2 * 10**6, positions=(1, 0.7, 0.5, 0.4, 0.3))
    ours = cp.mechanism("reservoir", market=market)
    lost = SlateMarket([[points(cp.Beta(3, 97), 160)] * 3] * 8, 2 * 10**6, market.positions or ())
    regret = lost.regret(ours.parameters["rounds"], ours.parameters["draws"])
    assert regret < 0.03 * 2e6 * lost.best_page
    assert ours.arm.slots.threshold is None
    few = cp.Market([cp.Agent(name, 1, cp.Uniform(0, 1)) for name in ("ana", "bo")], 100, positions=(1, 0.5))
    assert cp.mechanism("reservoir", market=few, draws=5).arm.draws == 5


def test_a_laboratory_that_nobody_sees_teaches_nothing() -> None:
    prior = [(0.1, 0.5), (0.5, 0.5)]
    market = SlateMarket([[prior]] * 2, 100, (1.0, 0.0))
    assert tune_slates(market).regret == pytest.approx(100 * (market.best_page - 0.3))
