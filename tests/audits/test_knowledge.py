"""The ceiling of knowledge in audits: exact and sampled, proven only where the theorem's conditions hold."""

from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.audits.other_deviations import knowledge_gain
from cloneproof.audits.question import audit_case
from cloneproof.runs.deadline import Deadline
from support.rule_checks import steady_as_declared

TWO = cp.Discrete([0.2, 0.8], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 2, TWO), cp.Agent("bo", 1, cp.Point(0.6))], horizon=9)
STEADY = cp.bandit(agent=cp.rule("steady-ucb", horizon=9), arm=cp.rule("ucb"))


def ceiling(market, mechanism, **search):
    return knowledge_gain(audit_case(market, mechanism, "ana"), cp.Search(**search), Deadline())


def test_it_is_what_the_best_item_alone_earns_more():
    best = cp.Market([cp.Agent("ana", 1, cp.Discrete([0.2, 0.8], [0.25, 0.75])), MARKET.agents[1]], horizon=9)
    alone, honest = (cp.evaluate(market, STEADY).payoff["ana"].value for market in (best, MARKET))
    found = ceiling(MARKET, STEADY)
    assert found.gain.value == pytest.approx(alone - honest)
    assert found.proven
    audited = cp.audit(MARKET, STEADY, agent="ana", also=("withholding",), search=cp.Search(copies=3))
    assert audited.knowledge == found
    assert audited.gain_at_most == found.gain
    lists = [*audited.tried, audited.also["withholding"]]
    assert max(witness.gain.value for witness in lists) <= found.gain.value
    assert "no list gains more: proven" in " ".join(str(audited).split())
    assert audited.to_dict()["knowledge"]["proven"] is True


def test_sampled_and_exact_agree():
    exact, law = ceiling(MARKET, STEADY).gain, cp.Beta(2, 2)
    market = MARKET.with_agents([cp.Agent("ana", 2, law), MARKET.agents[1]])
    nearly = MARKET.with_agents([cp.Agent("ana", 2, law.discretised(9)), MARKET.agents[1]])
    sampled = ceiling(market, STEADY, runs=4000)
    assert sampled.gain.kind == "confidence"
    assert sampled.proven
    assert abs(sampled.gain.value - ceiling(nearly, STEADY).gain.value) <= sampled.gain.error + 0.02
    assert exact.kind == "exact"


def test_segments_add_up():
    prior = {"desk": TWO, "phone": cp.Discrete([0.1, 0.5], [0.5, 0.5])}
    market = cp.Market(
        [cp.Agent("ana", 2, prior), cp.Agent("bo", 1, {"desk": cp.Point(0.5), "phone": cp.Point(0.4)})],
        horizon=16, segments={"desk": 0.5, "phone": 0.5},
    )  # fmt: skip
    parts = [ceiling(market.segment(name), STEADY).gain.value for name in prior]
    assert ceiling(market, STEADY).gain.value == pytest.approx(sum(parts))


@pytest.mark.parametrize(
    "mechanism",
    [
        cp.bandit(agent=cp.rule("thompson"), arm=cp.rule("thompson")),  # a fresh draw every round is a clock
        cp.mechanism("h-ucb"),  # ln t is one
    ],
    ids=["thompson", "h-ucb"],
)
def test_elsewhere_it_is_measured(mechanism):
    audited = cp.audit(MARKET, mechanism, agent="ana", search=cp.Search(copies=2, runs=1000))
    assert audited.knowledge is not None
    assert not audited.knowledge.proven
    assert audited.gain_at_most is None
    assert "measured, not proven" in " ".join(str(audited).split())


def test_it_is_not_proven_for_late_or_negative_rewards_and_not_asked_of_one_level():
    assert not ceiling(replace(MARKET, delays="independent"), STEADY).proven
    assert cp.audit(MARKET, cp.mechanism("ucb1"), agent="ana", search=cp.Search(copies=2)).knowledge is None
    assert cp.audit(MARKET, cp.mechanism("reservoir", rounds=2, draws=2)).knowledge is None


def test_what_declares_a_steady_index_is_checked(monkeypatch):
    assert audit_case(MARKET, STEADY, "ana").proof.named
    assert [*steady_as_declared(STEADY)] == []
    wrong = replace(STEADY, agent=replace(STEADY.agent, priority=lambda inputs, width: -inputs.mean, bound=None,
                                          exceeds=None))  # fmt: skip
    monkeypatch.setattr(type(wrong.agent), "steady", property(lambda rule: True))
    assert "falls as the mean rises" in next(steady_as_declared(wrong))
    assert "has the priorities" in next(steady_as_declared(cp.mechanism("ucb1")))  # ln t is a clock
