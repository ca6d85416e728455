"""The exact regret of the reservoir: the table of the textbook, and what tuning reaches."""

import math

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.advice.regret import SamplingBudget, regret_of
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers, reservoir_market
from cloneproof.mechanisms.reservoir.tuning import tune_contest, tune_reservoir
from support.sizes import LONG

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
    if horizon == 10**6 and len(means) == 2:  # the others take longer and show the same
        assert tune_reservoir(market).regret <= 1.005 * first_regret


@pytest.mark.parametrize(
    ("values", "agents", "horizon", "most"),
    [((0.01, 0.02, 0.03), 10, 10**7, 263), ((0.2, 0.4, 0.6, 0.8), 5, 10**6, 357)][: 1 + LONG],
)
def test_tuned_numbers_for_several_agents(values, agents, horizon, most):
    prior = [(value, 1) for value in values]
    market = ReservoirMarket([[prior] * 3] * agents, horizon)
    tuned = tune_reservoir(market)
    assert tuned.regret < most
    assert tuned.exploration < 0.01
    assert tuned.too_low > tuned.regret
    assert tuned.too_high > tuned.regret
    numbers, constant = tune_contest(market)
    assert numbers.draws >= 1
    assert 0.1 <= constant <= 1


@pytest.mark.parametrize("threshold", [1, 4, 6])
@pytest.mark.parametrize("horizon", [5, 60, 200])
def test_agents_of_different_priors_against_the_closed_form_engine(threshold, horizon):
    """The same expectation by the engine that computes payoffs; some tests and some draws do not fit the horizon."""
    weights = [(0.5, 0.3, 0.2), (0.2, 0.2, 0.6), (0.1, 0.8, 0.1), (0.5, 0.3, 0.2)]
    priors = [list(zip((0.2, 0.5, 0.9), own, strict=True)) for own in weights]
    exact = ReservoirMarket([[prior] * (1 + k % 2) for k, prior in enumerate(priors)], horizon)
    agents = [cp.Agent(f"a{k}", 1 + k % 2, cp.Discrete([0.2, 0.5, 0.9], own)) for k, own in enumerate(weights)]
    made = cp.mechanism("reservoir", rounds=6, draws=3, threshold=threshold)
    engine = cp.evaluate(cp.Market(agents, horizon), made, engine="law")
    assert exact.regret(ReservoirNumbers(6, 3, threshold)) == pytest.approx(engine.regret.value, rel=1e-9, abs=1e-9)


CLICKS = cp.Beta(2, 60)
CONTINUOUS = [  # a prior, originals, agents, horizon
    (CLICKS, 3, 5, 10**5),
    (cp.Uniform(0.1, 0.9), 2, 4, 10**4),
    (cp.Beta(1.5, 8), 1, 3, 3000),
]


@pytest.mark.parametrize(("prior", "originals", "agents", "horizon"), CONTINUOUS)
def test_continuous_priors_are_integrated_as_they_are(prior, originals, agents, horizon):
    """Two numbers of nodes agree, and a plain simulation of the timetable does."""
    priors = [[prior] * originals] * agents
    numbers = ReservoirNumbers(40, 5, max(1, round(40 * prior.quantile(0.8))))
    coarse, fine = (reservoir_market(priors, horizon, nodes).regret(numbers) for nodes in (48, 160))
    assert coarse == pytest.approx(fine, rel=1e-3)
    rng, runs = np.random.default_rng(1), 4_000
    means = np.array([prior.quantile(u) for u in rng.random(runs * agents * originals)])
    means = means.reshape(runs, agents, originals)
    order = rng.permuted(np.tile(np.arange(agents), (runs, 1)), axis=1)
    held = means[np.arange(runs)[:, None, None], order[:, None, :], rng.integers(originals, size=(runs, 5, agents))]
    held = held.reshape(runs, -1)  # the slots of the timetable
    counts = rng.binomial(40, held)
    passed = counts >= numbers.threshold
    chosen = np.where(passed.any(axis=1), passed.argmax(axis=1), counts.argmax(axis=1))
    tested = np.where(passed.any(axis=1), chosen + 1, held.shape[1])
    paid = 40 * np.where(np.arange(held.shape[1]) < tested[:, None], held, 0).sum(axis=1)
    paid += (horizon - 40 * tested) * held[np.arange(runs), chosen]
    lost = horizon * means.max(axis=(1, 2)) - paid
    assert abs(lost.mean() - fine) < 5 * lost.std() / math.sqrt(runs)


def test_many_values_are_as_a_list_of_multisets_says():
    """The same market with multisets listed, and with one original at a time and ties by lot."""
    prior = [(value / 40, 1 + value % 3) for value in range(1, 21)]
    listed = ReservoirMarket([[prior] * 2] * 3, 5000)
    by_lot = ReservoirMarket(listed.agents, 5000, listed.best_mean)
    for numbers in (ReservoirNumbers(30, 4, 14), ReservoirNumbers(30, 4, None), ReservoirNumbers(400, 3, 250)):
        assert by_lot.regret(numbers) == pytest.approx(listed.regret(numbers), rel=2e-3)
        assert by_lot.rewards(numbers)[0] == pytest.approx(listed.rewards(numbers)[0], rel=1e-12)


@pytest.mark.parametrize(("prior", "originals", "agents", "horizon"), CONTINUOUS if LONG else CONTINUOUS[2:])
def test_tuned_for_continuous_priors_within_a_twentieth_of_an_independent_search(prior, originals, agents, horizon):
    """Random points that close in on the best so far, and no use of the tuner's start or steps."""
    fine, coarse = (reservoir_market([[prior] * originals] * agents, horizon, nodes) for nodes in (96, 32))
    tuned, rng = tune_reservoir(fine, coarse), np.random.default_rng(2)
    best, at = math.inf, (math.log(horizon) * 0.4, math.log(8), 0.8)
    for step in range(240):
        width = 1.5 * 0.985**step
        log_pulls, log_draws, place = at + width * rng.normal(size=3) * (1, 0.7, 0.3)
        pulls = max(1, min(horizon // agents, round(math.exp(log_pulls))))
        level = prior.quantile(min(0.9999, max(0.05, place)))
        numbers = ReservoirNumbers(pulls, max(1, min(60, round(math.exp(log_draws)))), max(1, round(pulls * level)))
        if (found := coarse.regret(numbers)) < best:
            best, at = found, (log_pulls, log_draws, place)
    assert tuned.regret <= 1.05 * best


def test_a_mechanism_for_click_rates(ticking_clock):
    """Better than the numbers that six quantiles of the prior once gave; the claim says what it costs."""
    market = cp.Market([cp.Agent(f"a{k}", 3, CLICKS) for k in range(5)], 10**5)
    made = cp.mechanism("reservoir", market=market)
    numbers = ReservoirNumbers(*(made.parameters[key] for key in ("rounds", "draws", "threshold")))
    assert reservoir_market([agent.priors for agent in market.agents], 10**5).regret(numbers) < 766
    assert any("regret 75" in claim.property for claim in made.claims)
    advised = regret_of(market, made, SamplingBudget(1.0, 0))
    assert advised.value == pytest.approx(755.6, abs=0.5)
    assert advised.error < 1
