"""The exact regret of the reservoir: the table of the textbook, and what tuning reaches."""

import math

import pytest

import cloneproof as cp
from cloneproof.bounds.reservoir import ReservoirMarket, ReservoirNumbers
from cloneproof.bounds.reservoir_tuning import reservoir_numbers, tune_contest, tune_reservoir

# means of one agent, T; best of draws (pulls, draws) and its regret; first pass (pulls, threshold) and its regret
TABLE = [
    ((0.25, 0.75), 10**6, (15, 18), 77, (26, 18), 17.5),
    ((0.3, 0.5, 0.7), 10**6, (70, 24), 407, (119, 81), 114),
    ((0.3, 0.5, 0.7), 10**8, (107, 33), 819, (181, 123), 164),
    ((0.004, 0.006), 10**6, (6803, 10), 93, (11455, 66), 44),
    ((0.004, 0.006), 10**8, (15274, 15), 264, (29294, 164), 77),
]


@pytest.mark.parametrize(("means", "horizon", "best", "best_regret", "first", "first_regret"), TABLE)
def test_the_table_of_one_agent(means, horizon, best, best_regret, first, first_regret):
    market = ReservoirMarket([[[(mean, 1)] for mean in means]], horizon)
    assert market.regret(ReservoirNumbers(*best, None)) == pytest.approx(best_regret, rel=0.01)
    pulls, threshold = first
    draws = min(math.floor(2 * len(means) * math.log(horizon)), horizon // pulls)
    assert market.regret(ReservoirNumbers(pulls, draws, threshold)) == pytest.approx(first_regret, rel=0.01)
    assert tune_reservoir(market).regret <= 1.005 * first_regret


@pytest.mark.parametrize(
    ("values", "agents", "horizon", "most"),
    [
        ((0.2, 0.4, 0.6, 0.8), 5, 10**6, 357),
        ((0.01, 0.02, 0.03), 10, 10**7, 263),
        ((0.002, 0.004, 0.006), 20, 10**8, 250),
    ],
)
def test_tuned_numbers_for_several_agents(values, agents, horizon, most):
    prior = [(value, 1) for value in values]
    market = ReservoirMarket([[prior] * 3] * agents, horizon)
    tuned = tune_reservoir(market)
    assert tuned.regret < most
    assert tuned.exploration < 0.01
    assert tuned.too_low > tuned.regret
    assert tuned.too_high > tuned.regret
    assert market.regret(reservoir_numbers(values, 3, horizon)) < market.horizon * market.best_mean
    assert tune_contest(market).draws >= 1


@pytest.mark.parametrize("threshold", [1, 4, 6])
@pytest.mark.parametrize("horizon", [5, 60, 200])
def test_agents_of_different_priors_against_the_closed_form_engine(threshold, horizon):
    """The same expectation by the engine that computes payoffs; some tests and some draws do not fit the horizon."""
    weights = [(0.5, 0.3, 0.2), (0.2, 0.2, 0.6), (0.1, 0.8, 0.1), (0.5, 0.3, 0.2)]
    priors = [list(zip((0.2, 0.5, 0.9), own, strict=True)) for own in weights]
    exact = ReservoirMarket([[prior] * (1 + k % 2) for k, prior in enumerate(priors)], horizon)
    agents = [cp.Agent(f"a{k}", 1 + k % 2, cp.Discrete([0.2, 0.5, 0.9], own)) for k, own in enumerate(weights)]
    made = cp.mechanism("reservoir", rounds=6, draws=3, threshold=threshold)
    engine = cp.evaluate(cp.Market(agents, horizon), made, engine="closed-form")
    assert exact.regret(ReservoirNumbers(6, 3, threshold)) == pytest.approx(engine.regret.value, rel=1e-9, abs=1e-9)
