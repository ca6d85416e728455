"""Advice for markets with segments: sums over segments, beside one market for all."""

import json
import tomllib
from dataclasses import replace

import msgspec
import pytest

import cloneproof as cp
from cloneproof.advice.recommendation import AssessedMechanism, Recommendation, terms_toml
from cloneproof.advice.regret import expected_best, random_regret
from cloneproof.advice.segments import _pooled as pooled_cost
from cloneproof.cli.advice import parsed_rates, parsed_segments
from cloneproof.runs.estimate import Estimate
from cloneproof.serve.market.terms import MarketSpec, build_mechanism, complete
from support import command
from support.advised import advised as advised_now

SEGMENTS = {"code": 0.5, "writing": 0.5}
EXPERTS = cp.SegmentVectors([{"code": 0.6, "writing": 0.1}, {"code": 0.1, "writing": 0.6}], [0.5, 0.5])


@pytest.fixture(scope="module")
def advised():
    market = cp.Market([cp.Agent(name, 2, EXPERTS) for name in ("ana", "bo")], 20_000, segments=SEGMENTS)
    return advised_now(market, declared=())


def test_regrets_are_sums_over_segments(advised):
    named = [
        next(each for each in part.ranked if each.name == advised.choice.name) for part in advised.by_segment.values()
    ]
    assert advised.choice.regret.value == pytest.approx(sum(each.regret.value for each in named))
    assert advised.choice.verdict == "clone-proof"
    assert advised.random_regret == pytest.approx(sum(map(random_regret, advised.market.by_segment.values())))
    assert [advised.choice.mechanism.in_segment(name).parameters for name in SEGMENTS] == [
        each.mechanism.parameters for each in named
    ]


def test_one_market_for_all_loses_the_best_of_each_segment(advised):
    """Items are good in one segment or the other, and all alike on average: 10,000 (E best - .35) rounds in each."""
    market = advised.market
    lost = sum(own.horizon * (expected_best(own) - 0.35) for own in market.by_segment.values())
    assert advised.pooled.regret.value >= lost - 1e-6
    assert advised.choice.regret.value < lost
    text = " ".join(str(advised).split()).lower()
    assert "segments save" in text
    assert "one market for all" in text
    data = json.loads(json.dumps(advised.to_dict(), allow_nan=False))
    command.schema("recommend").validate(data)
    assert set(data["by_segment"]) == set(SEGMENTS)


def test_the_cost_of_one_market_for_all_covers_how_its_law_was_found():
    """As with fewer draws of the averaged rates: the best on average is known to within the error."""
    market = cp.Market.alike(6, 3, 10**5, rates=cp.LogOdds(0.05, 0.6, 0.4), segments=SEGMENTS)
    made, exact = (
        cp.mechanism("reservoir", rounds=200, draws=4, threshold=18),
        Estimate(500.0, 0.0, "exact", "by hand"),
    )
    chosen = AssessedMechanism(made, exact, "clone-proof", 0.0, None, None, "")
    found = Recommendation(market.pooled(), (chosen,), {}, 1000.0, True, "")
    priced = pooled_cost(market, found).regret
    best = sum(own.horizon * expected_best(own) for own in market.by_segment.values())
    coarse = 500 + best - market.horizon * expected_best(market.pooled(2**14))
    assert abs(priced.value - coarse) <= priced.error < 0.02 * priced.value
    assert priced.error > 0


def test_progress_never_runs_back():
    market = cp.Market([cp.Agent(name, 1, EXPERTS) for name in ("ana", "bo")], 400, segments=SEGMENTS)
    told = []
    advised_now(market, declared=(), progress=lambda done, total, what: told.append(done / total))
    assert told == sorted(told)
    assert (told[0], told[-1]) == (0.0, 1.0)


def test_rates_are_echoed_as_they_were_given(advised):
    market = cp.Market.alike(3, 2, 1000, rates=cp.LogOdds(0.03, 0.5, 0.35), segments=SEGMENTS)
    said = " ".join(str(replace(advised, market=market)).split())
    assert "(LogOdds(0.03, 0.5, 0.35)), 2 segments" in said


def test_segments_in_which_rates_are_the_same_share_one_answer(advised):
    parts = [*advised.by_segment.values()]
    assert parts[0] is parts[1]  # the segments are alike: half the rounds, either rate equally likely


def test_options_of_the_shell():
    assert parsed_segments("code=.3, writing=.7") == {"code": 0.3, "writing": 0.7}
    assert parsed_rates("LogOdds(.03, .5, .35)") == {"rates": cp.LogOdds(0.03, 0.5, 0.35)}


def test_terms_say_what_differs_between_segments():
    market = cp.Market([cp.Agent("ana", 2, EXPERTS)], 20_000, segments={"code": 0.1, "writing": 0.9})
    made = cp.mechanism("reservoir", market=market)
    assert isinstance(made.parameters["rounds"], dict)
    chosen = AssessedMechanism(made, Estimate(1.0, 0.0, "exact", "by hand"), "clone-proof", 0.0, None, None, "")
    spec = msgspec.convert(tomllib.loads(terms_toml(market, chosen)), MarketSpec)
    assert build_mechanism(complete(spec)).to_dict() == made.to_dict()
