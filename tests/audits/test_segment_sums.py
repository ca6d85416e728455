"""Analyses of a market with segments are sums over its segments, with one registration."""

import json
import math

import pytest

import cloneproof as cp
from cloneproof.audits.deviations import Split
from cloneproof.audits.gain import exact_gain, exact_payoffs
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import full_copies

COIN = cp.Discrete([0.2, 0.8], [0.5, 0.5])
NARROW = cp.Discrete([0.4, 0.6], [0.5, 0.5])
SEGMENTS = {"code": 0.25, "writing": 0.75}
AGENTS = [cp.Agent("ana", 2, {"code": COIN, "writing": NARROW}), cp.Agent("bo", 2, COIN)]
MARKET = cp.Market(AGENTS, horizon=400, segments=SEGMENTS)
ETC = cp.mechanism("etc", arm_rounds=5)
SMALL = cp.Market(
    [cp.Agent("ana", 2, {"code": cp.Discrete([0, 1], [0.5, 0.5]), "writing": COIN}), cp.Agent("bo", 1, cp.Point(0.5))],
    horizon=14,
    segments={"code": 0.5, "writing": 0.5},
)


def parts(market, made, copies, **options):
    return {name: cp.evaluate(own, made.in_segment(name), copies, **options) for name, own in market.by_segment.items()}


@pytest.mark.parametrize(
    ("market", "made", "engine"),
    [
        (MARKET, ETC, "law"),
        (MARKET, cp.mechanism("reservoir", market=MARKET), "law"),
        (SMALL, cp.mechanism("ucb1"), "tree"),
        (SMALL, ETC, "tree"),
    ],
    ids=lambda each: getattr(each, "name", each) if not isinstance(each, cp.Market) else "",
)
def test_exact_payoffs_are_sums_over_segments(market, made, engine):
    whole = cp.evaluate(market, made, {"ana": (2, 1)}, engine=engine)
    each = parts(market, made, {"ana": (2, 1)}, engine=engine)
    for agent in whole.payoff:
        total = math.fsum(own.payoff[agent].value for own in each.values())
        assert abs(whole.payoff[agent].value - total) <= whole.payoff[agent].error
        assert whole.payoff[agent].error >= sum(own.payoff[agent].error for own in each.values())
    assert whole.regret.value == pytest.approx(sum(own.regret.value for own in each.values()), rel=1e-12)
    assert {name: own.payoff["ana"].value for name, own in whole.by_segment.items()} == {
        name: own.payoff["ana"].value for name, own in each.items()
    }


def test_samples_agree_with_the_closed_form_in_all_and_in_each_segment():
    """Eight intervals at 1 - 1e-7 each: fewer than one false alarm in a million."""
    made = cp.mechanism("reservoir", market=MARKET)
    exact = cp.evaluate(MARKET, made, {"ana": (3, 1)}, engine="law")
    drawn = cp.evaluate(
        MARKET,
        made,
        {"ana": (3, 1)},
        "runs",
        confidence=1 - 1e-7,
        search=cp.Search(runs=1000, seed=3, bounds="distribution-free"),
    )
    for one, other in ((drawn, exact), *((drawn.by_segment[name], exact.by_segment[name]) for name in SEGMENTS)):
        for agent in ("ana", "bo"):
            assert abs(one.payoff[agent].value - other.payoff[agent].value) <= one.payoff[agent].error
        assert abs(one.regret.value - other.regret.value) <= one.regret.error
    assert drawn.regret.value == pytest.approx(sum(own.regret.value for own in drawn.by_segment.values()))


def test_a_gain_is_the_sum_of_those_in_the_segments():
    found = cp.gain(MARKET, ETC, "ana", (4, 4), search=cp.Search(runs=300), stop_when_decided=False)
    assert found.estimate.value == pytest.approx(sum(own.value for own in found.by_segment.values()))
    exact = [cp.evaluate(MARKET, ETC, {"ana": copies}).payoff["ana"].value for copies in ((1, 1), (4, 4))]
    assert abs(found.estimate.value - (exact[1] - exact[0])) <= found.estimate.error
    assert json.loads(json.dumps(found.to_dict()))["by_segment"].keys() == SEGMENTS.keys()


def test_segments_have_runs_of_their_own():
    job = runs_of(MARKET, ETC, full_copies(MARKET.agents, None), seed=5)
    assert len({part.job.seed for part in job.parts} | {job.job.seed}) == 3
    assert job.parts[0].job.market is MARKET.segment("code")  # so that a race keeps the honest runs of it


def test_an_attack_is_one_of_the_total():
    """Copies that pay in one segment and cost more in the other are no attack; every gain is the sum of both."""
    prior = {"code": cp.Discrete([0.45, 0.55], [0.5, 0.5]), "writing": cp.Discrete([0, 1], [0.5, 0.5])}
    market = cp.Market([cp.Agent("ana", 2, prior)], 800, segments={"code": 0.5, "writing": 0.5})
    made = cp.mechanism("etc", arm_rounds=10)
    whole = cp.audit(market, made)
    each = {name: cp.audit(market.segment(name), made) for name in market.segments}
    gains = {name: {one.copies: one.gain.value for one in found.tried} for name, found in each.items()}
    assert each["code"].verdict == "exploitable"
    assert whole.verdict == "clone-proof"
    assert "every vector of fewer than" in str(whole.scope)
    in_both = [one for one in whole.tried if all(one.copies in own for own in gains.values())]
    assert len(in_both) > 5
    for one in in_both:
        assert one.gain.value == pytest.approx(sum(gains[name][one.copies] for name in gains), abs=1e-9)


def test_the_same_copies_may_pay_in_total_and_cost_in_a_segment():
    audited = cp.audit(MARKET, ETC)
    assert audited.verdict == "exploitable"
    assert audited.worst.gain.value == pytest.approx(sum(own.gain.value for own in audited.by_segment.values()))
    assert audited.worst.gain.kind == "exact"
    assert "In each segment" in str(audited)
    assert [own.horizon for own in audited.by_segment.values()] == [100, 300]


@pytest.mark.parametrize("name", ["reservoir", "reservoir-contest"])
def test_reservoirs_are_clone_proof_in_total_by_the_theorem_in_every_segment(name):
    audited = cp.audit(MARKET, cp.mechanism(name, market=MARKET))
    assert audited.verdict == "clone-proof"
    assert "in every segment" in str(audited.scope)


def test_the_ceiling_of_an_index_is_the_sum_of_those_of_the_segments():
    prior = {"code": cp.Discrete([0.1, 0.5], [0.5, 0.5]), "writing": cp.Discrete([0.2, 0.4], [0.5, 0.5])}
    agents = [cp.Agent(name, 3, prior) for name in ("ana", "bo")]
    market = cp.Market(agents, 2000, ends="at-random", segments=SEGMENTS)
    made = cp.mechanism("reservoir-index", draws=4, constant=2.0)
    whole = cp.audit(market, made, tolerance=0.05)
    each = [cp.audit(own, made, tolerance=0.05).gain_at_most for own in market.by_segment.values()]
    assert whole.gain_at_most.high == pytest.approx(sum(one.high for one in each))
    assert whole.gain_at_most.kind == "exact"
    assert whole.verdict == "clone-proof"


def test_different_arguments_in_different_segments_are_no_scan():
    """One original's mean in a segment needs no theorem there; the verdict claims no more than the weaker argument."""
    prior = {"code": cp.Point(0.5), "writing": COIN}
    market = cp.Market([cp.Agent("ana", 2, prior)], 400, segments=SEGMENTS)
    audited = cp.audit(market, cp.mechanism("uniform-etc", arm_rounds=100))
    assert audited.verdict == "clone-proof"
    assert audited.scope.against == "market"


def test_withholding_and_splits_add_up():
    split = Split("bo", (1, 2))
    market = split.market(MARKET)
    payoffs = [cp.evaluate(own, ETC).payoff for own in market.by_segment.values()]
    together = sum(own[name].value for own in payoffs for name in own if name.startswith("bo"))
    paid = exact_payoffs([(MARKET, ETC)], split, "law")[MARKET.horizon]
    assert paid.total.value == pytest.approx(together)
    gained = exact_gain(MARKET, ETC, split, "law")
    assert sum(own.gain.value for own in gained.by_segment.values()) == pytest.approx(gained.gain.value)
    audited = cp.audit(MARKET, ETC, agent="bo", also=("withholding",))
    worth = audited.also["withholding"]
    withheld = [cp.evaluate(own, ETC, {"bo": worth.copies}).payoff["bo"].value for own in MARKET.by_segment.values()]
    assert worth.copied.value == pytest.approx(sum(withheld))


def test_an_equilibrium_is_one_of_the_total():
    found = cp.equilibrium(MARKET, ETC, max_copies=2)
    assert found.evaluation.regret.value == pytest.approx(
        sum(own.regret.value for own in found.evaluation.by_segment.values())
    )
    assert found.status == "equilibrium"
    for agent, incentive in found.incentives.items():
        other = {**found.copies, agent: found.responses[agent]}
        change = cp.evaluate(MARKET, ETC, other).payoff[agent].value - found.evaluation.payoff[agent].value
        assert incentive.value == pytest.approx(change)
