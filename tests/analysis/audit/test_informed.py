"""Informed agents: knowing one's means before registering, averaged over realisations and reported apart."""

import random
from itertools import product

import pytest

import cloneproof as cp
from cloneproof.analysis.audit.other_deviations import (
    BOTH,
    Split,
    best_alone_suffices,
    informed_gains,
    realised_means,
    split_payoffs,
)
from cloneproof.analysis.audit.question import audit_case
from cloneproof.engines.deadline import Deadline

FOUR = cp.Discrete([0.2, 0.4, 0.6, 0.8], [1 / 4] * 4)
COIN = cp.Discrete([0, 1], [0.5, 0.5])


def five_agents(rounds=10**6):
    return cp.Market([cp.Agent(f"agent {k}", 3, FOUR) for k in range(5)], horizon=rounds)


def test_the_chapters_market_is_gamed_by_the_informed():
    market = five_agents()
    audit = cp.audit(market, cp.mechanism("reservoir", rounds=118, draws=20, threshold=91), also=("informed",))
    assert audit.verdict == "clone-proof"  # the Bayesian verdict stays
    found = audit.informed
    assert found.complete
    assert f"{found.relative_gain:.0%}" == "74%"
    assert found.honest.value == pytest.approx(audit.worst.honest.value, rel=1e-12)
    assert len(found.responses) == 20  # multisets of three of four values
    assert sum(response.chance for response in found.responses) == pytest.approx(1)
    best = cp.Discrete([0.2, 0.4, 0.6, 0.8], [1 / 64, 7 / 64, 19 / 64, 37 / 64])  # the law of the best of three
    alone = cp.Market([cp.Agent("agent 0", 1, best), *market.agents[1:]], horizon=10**6)
    assert found.informed.value == pytest.approx(cp.evaluate(alone, audit.mechanism).payoff["agent 0"].value, rel=1e-12)
    assert any(note.startswith("informed: if agent 0 knew its means") and "it pays" in note for note in audit.notes)
    assert audit.to_dict()["informed"]["complete"] is True


def by_hand(market, mechanism, agent, vectors):
    """The definition, over ordered realisations: the sum of P(v) max over c of the payoff at means v."""
    count = agent.count
    others = [each for each in market.agents if each.name != agent.name]
    informed = honest = 0.0
    for drawn in product(agent.priors[0].atoms, repeat=count):
        chance, means = 1.0, []
        for value, weight in drawn:
            chance *= weight
            means.append(cp.Point(value))
        at_means = cp.Market([cp.Agent(agent.name, prior=means), *others], market.horizon, market.share, market.rewards)
        paid = {c: cp.evaluate(at_means, mechanism, {agent.name: c}).payoff[agent.name].value for c in vectors}
        informed += chance * max(paid.values())
        honest += chance * paid[(1,) * count]
    return honest, informed


@pytest.mark.parametrize("options", [{"threshold": 3}, {"choose": "best"}, {"threshold": 2, "fallback": "draw"}])
def test_no_registration_beats_the_best_original_alone_under_a_reservoir(options):
    dice = random.Random(str(options))
    for _ in range(2):
        prior = cp.Discrete(sorted(dice.sample([0.0, 0.1, 0.3, 0.5, 0.9, 1.0], 3)), [0.3, 0.3, 0.4])
        agent = cp.Agent("ana", 2, prior)
        market = cp.Market([agent, cp.Agent("bo", 2, COIN), cp.Agent("cy", 1, cp.Point(0.5))], dice.randint(5, 60))
        mechanism = cp.mechanism("reservoir", rounds=4, draws=dice.randint(1, 3), **options)
        found = cp.audit(market, mechanism, agent="ana", also=("informed",)).informed
        honest, informed = by_hand(market, mechanism, agent, [c for c in product(range(4), repeat=2) if any(c)])
        assert found.complete
        assert (found.honest.value, found.informed.value) == pytest.approx((honest, informed), rel=1e-12)


def test_elsewhere_it_is_the_best_of_what_was_tried():
    market = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=60)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=8, arm_rounds=4)
    found = cp.audit(market, mechanism, agent="ana", also=("informed",), search=cp.Search(copies=3))
    assert not found.informed.complete
    assert "other copies may pay more" in found.notes[-1]
    vectors = [c for c in product((0, 1, 2, 3), repeat=2) if any(c)]
    honest, informed = by_hand(market, mechanism, market.agents[0], vectors)
    assert (found.informed.honest.value, found.informed.informed.value) == pytest.approx((honest, informed), rel=1e-12)


def test_alone_it_gains_at_most_the_honest_loss():
    market = cp.Market([cp.Agent("ana", 3, FOUR)], horizon=500)
    mechanism = cp.mechanism("reservoir", rounds=10, draws=4, threshold=7)
    found = cp.audit(market, mechanism, also=("informed",)).informed
    assert found.gain.value == pytest.approx(cp.evaluate(market, mechanism).regret.value, rel=1e-9)


def test_several_horizons_and_epochs():
    market = cp.Market([cp.Agent("ana", 2, FOUR), cp.Agent("bo", 1, cp.Point(0.5))], horizon=40)
    mechanism = cp.mechanism("reservoir", rounds=3, draws=2, threshold=2)
    gains = informed_gains((audit_case(market, mechanism, "ana"),), "closed-form", 4, Deadline())
    over = cp.audit(market, mechanism, agent="ana", horizons=[10, 40], also=("informed",)).informed
    assert gains[0].gain.value <= over.relative_gain * over.honest.value + 1e-9
    unknown = cp.mechanism("reservoir", rates=(0.2, 0.4, 0.6, 0.8), originals=2, agents=2, horizon="unknown")
    assert best_alone_suffices(audit_case(market, unknown, "ana"))
    assert cp.audit(market, unknown, agent="ana", also=("informed",)).informed.complete


def test_a_contest_is_evaluated_where_the_tree_can():
    agent = cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5]))
    market = cp.Market([agent, cp.Agent("bo", 1, cp.Point(0.5))], horizon=14)
    contest = cp.mechanism("reservoir-contest", rounds=2, draws=2, threshold=2, horizon=14)
    found = cp.audit(market, contest, agent="ana", also=("informed",)).informed
    honest, informed = by_hand(market, contest, agent, [c for c in product(range(3), repeat=2) if any(c)])
    assert found.complete
    assert (found.honest.value, found.informed.value) == pytest.approx((honest, informed), rel=1e-9)


def test_one_sentence_where_no_engine_can():
    sampled = cp.Market([cp.Agent("ana", 2, FOUR), cp.Agent("bo", 1, cp.Point(0.5))], horizon=300)
    audit = cp.audit(
        sampled, cp.mechanism("epsilon-greedy"), agent="ana", also=("informed",), search=cp.Search(seconds=0.2, runs=2)
    )
    assert audit.informed is None
    assert [note for note in audit.notes if note.startswith("informed: tried by exact engines only")]
    smooth = cp.Market([cp.Agent("ana", 2, cp.Uniform(0, 1))], horizon=60)
    audit = cp.audit(smooth, cp.mechanism("reservoir", rounds=4, draws=2, threshold=3), also=("informed",))
    assert audit.informed is None
    (note,) = audit.notes
    assert "expected discrete priors" in note
    assert "discretised" in note
    with pytest.raises(cp.errors.EngineError, match="nothing else to be asked for"):
        cp.audit(smooth, cp.mechanism("reservoir", rounds=4, draws=2, threshold=3), also=("informed",), opponents="any")


def test_realisations_add_up():
    agent = cp.Agent("ana", prior=[COIN, COIN, cp.Discrete([0.1, 0.2, 0.3], [0.2, 0.3, 0.5])])
    merged = realised_means(agent, [0, 0, 1])
    assert len(merged) == 9
    assert sum(chance for chance, _ in merged) == pytest.approx(1)
    assert {tuple(sorted(means[:2], reverse=True)) for _, means in realised_means(agent, [0, 1, 2])} == {
        means[:2] for _, means in merged
    }
    with pytest.raises(cp.errors.EngineError, match="at most 256"):
        realised_means(cp.Agent("ana", 6, FOUR), range(6))


def test_a_second_account_gains_under_the_reservoir():
    """Both accounts with all originals, by hand: at each realisation two agents of known means."""
    prior, others = cp.Discrete([0.2, 0.8], [0.5, 0.5]), [cp.Agent(name, 2, FOUR) for name in ("bo", "cy")]
    market = cp.Market([cp.Agent("ana", 2, prior), *others], horizon=2000)
    mechanism = cp.mechanism("reservoir", rounds=20, draws=3, threshold=14)
    audit = cp.audit(market, mechanism, agent="ana", also=("splitting",))
    assert audit.verdict == "clone-proof"
    assert any(note.startswith("splitting") and "it pays" in note for note in audit.notes)
    shared = 0.0
    for means in product((0.2, 0.8), repeat=2):
        accounts = [cp.Agent(name, prior=[cp.Point(mean) for mean in means]) for name in ("ana", "second")]
        payoff = cp.evaluate(cp.Market([*accounts, *others], horizon=2000), mechanism).payoff
        shared += (payoff["ana"].value + payoff["second"].value) / 4
    case = audit_case(market, mechanism, "ana")
    assert split_payoffs((case,), Split((BOTH, BOTH)), "closed-form")[2000].value == pytest.approx(shared, rel=1e-12)
    assert audit.also["splitting"].copied.value >= shared > 1.2 * audit.worst.honest.value
