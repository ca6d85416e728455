"""Second accounts in a recommendation: what they gain, and the floor."""

import pytest

import cloneproof as cp
from cloneproof.advice.assumptions import account_floor, second_account_gain
from cloneproof.advice.regret import SamplingBudget
from cloneproof.report.recommendation import account_sentence, finding_rows
from support.advised import advised

NAMES = ("ana", "bo", "cy")


def market_of(prior, originals=1, horizon=2000, names=NAMES, **options):
    return cp.Market([cp.Agent(name, originals, prior) for name in names], horizon, **options)


def test_equal_items_gain_what_the_chapter_says():
    """All means equal: every account has its part of the rounds, so the gain is (n - 1) / (n + 1) of the payoff."""
    market = market_of(cp.Point(0.5))
    gain = second_account_gain(market, cp.mechanism("reservoir", rounds=5, draws=2, threshold=4), SamplingBudget(1.0))
    honest = 2000 * 0.5 / 3
    assert gain.error < 0.2 * honest
    assert abs(gain.value - honest * 2 / 4) < 2 * gain.error
    assert account_floor(market) == pytest.approx(honest * 2 / 4)


def test_the_gain_is_that_of_an_exact_split():
    market = market_of(cp.Discrete([0.2, 0.8], [0.5, 0.5]), horizon=400, names=("ana", "bo"))
    made = cp.mechanism("reservoir", rounds=4, draws=2, threshold=3)
    exact = cp.audit(market, made, agent="ana", also=("splitting",)).also["splitting"].gain
    sampled = second_account_gain(market, made, SamplingBudget(2.0))
    assert abs(sampled.value - exact.value) < 2 * sampled.error
    assert sampled.error < 0.5 * exact.value


def test_no_floor_where_rates_do_not_repeat_or_providers_differ():
    assert account_floor(market_of(cp.Beta(2, 60))) == 0
    agents = [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 2, cp.Point(0.5))]
    assert account_floor(cp.Market(agents, 100)) is None
    random_end = market_of(cp.Beta(2, 60), ends="at-random")
    assert second_account_gain(random_end, cp.mechanism("ucb1"), SamplingBudget()) is None


def test_an_answer_says_what_an_account_gains():
    market = market_of(cp.Discrete([0.2, 0.8], [0.5, 0.5]), originals=2, horizon=1000)
    found = advised(market, declared=(), asked=("wrong_declarations",))
    assert found.choice.account_gain.value > found.choice.regret.value
    assert "only identity checks help" in account_sentence(found)
    assert (account_sentence(found), "check identities") in list(finding_rows(found))
