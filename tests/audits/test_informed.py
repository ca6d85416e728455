"""Informed agents: knowing one's means before registering, averaged over realisations and reported apart."""

import math
import random
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

import cloneproof as cp
from cloneproof.audits.deviations import BOTH, Split, named_prior, realised_means
from cloneproof.audits.gain import exact_payoffs
from cloneproof.audits.other_deviations import ACCURACIES, exact_naming, sampled_naming
from cloneproof.audits.question import audit_case
from cloneproof.runs.deadline import Deadline

FOUR = cp.Discrete([0.2, 0.4, 0.6, 0.8], [1 / 4] * 4)
COIN = cp.Discrete([0, 1], [0.5, 0.5])


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


@pytest.mark.parametrize("options", [{"threshold": 3}, {"choose": "best"}])
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
        assert (found.honest.value, found.copied.value) == pytest.approx((honest, informed), rel=1e-12)


def test_elsewhere_the_best_original_alone_may_not_be_the_best_list():
    market = cp.Market([cp.Agent("ana", 2, COIN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=60)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=8, arm_rounds=4)
    found = cp.audit(market, mechanism, agent="ana", also=("informed",), search=cp.Search(copies=3))
    assert not found.informed.complete
    assert "other lists may pay more" in found.notes[-1]
    honest, alone = by_hand(market, mechanism, market.agents[0], [(1, 1), (1, 0), (0, 1)])
    assert found.informed.honest.value == pytest.approx(honest, rel=1e-12)
    assert found.informed.copied.value <= alone


def test_where_no_exact_engine_can_worlds_are_sampled():
    sampled = cp.Market([cp.Agent("ana", 2, FOUR), cp.Agent("bo", 1, cp.Point(0.5))], horizon=300)
    audit = cp.audit(sampled, cp.mechanism("epsilon-greedy"), agent="ana", also="informed", search=cp.Search(runs=20))
    assert audit.informed.gain.kind == "confidence"
    assert not audit.informed.complete
    assert "other lists may pay more" in audit.notes[-1]
    smooth = cp.Market([cp.Agent("ana", 2, cp.Uniform(0, 1))], horizon=60)
    made = cp.mechanism("reservoir", rounds=4, draws=2, threshold=3)
    audit = cp.audit(smooth, made, also="informed", search=cp.Search(runs=20))
    assert audit.informed.complete
    assert not audit.not_computed


def lists_by_hand(agent, accuracy):
    """Every realisation of an agent's means and every original that it may name: the chance, the means, which one."""
    for drawn in product(agent.priors[0].atoms, repeat=agent.count):
        means = [value for value, _ in drawn]
        chance, best = math.prod(weight for _, weight in drawn), means.index(max(means))
        for named in range(agent.count):
            right = accuracy if named == best else (1 - accuracy) / (agent.count - 1)
            yield chance * (right if agent.count > 1 else 1.0), means, named


def naming_by_hand(market, mechanism, namers, accuracy):
    """Payoff of the first agent and regret, over all realisations and all that may be named."""
    paid = regret = 0.0

    @cache
    def payoff_at(means):
        agents = [cp.Agent(name, prior=list(map(cp.Point, own))) for name, own in means]
        return cp.evaluate(cp.Market(agents, market.horizon, market.share), mechanism).payoff

    for choice in product(*(lists_by_hand(agent, accuracy) for agent in market.agents)):
        chance, best = math.prod(each[0] for each in choice), max(max(means) for _, means, _ in choice)
        listed = [
            (agent.name, (means[named],) if agent.name in namers else tuple(sorted(means)))
            for agent, (_, means, named) in zip(market.agents, choice, strict=True)
        ]
        payoff = payoff_at(tuple(listed))
        paid += chance * payoff[market.agents[0].name].value
        regret += chance * (market.horizon * best - sum(each.value for each in payoff.values()) / market.share)
    return paid, regret


@pytest.mark.parametrize("name", ["reservoir", "ucb1"])
def test_naming_is_what_all_lists_together_say(name):
    """The law of one item against every realisation and every mistake, for a closed form and the state tree."""
    hits = cp.Discrete([0.1, 0.9], [0.75, 0.25])
    market = cp.Market([cp.Agent("ana", 2, hits), cp.Agent("bo", 2, hits)], horizon=7, share=0.5)
    made = cp.mechanism("ucb1") if name == "ucb1" else cp.mechanism("reservoir", rounds=2, draws=2, threshold=2)
    found = exact_naming(audit_case(market, made, "ana"), "auto")
    honest, lost = naming_by_hand(market, made, (), 1.0)
    assert found.regret.value == pytest.approx(lost, rel=1e-9)
    for each in found.naming[::2]:
        one, everybody = (naming_by_hand(market, made, who, each.accuracy) for who in (("ana",), ("ana", "bo")))
        assert (each.honest.value, each.gain.value) == pytest.approx((honest, one[0] - honest), rel=1e-9)
        assert (each.regret_if_one.value, each.regret_if_all.value) == pytest.approx((one[1], everybody[1]), rel=1e-9)


def test_what_is_named_has_the_law_of_the_best_or_of_another_one():
    odd = cp.Agent(
        "ana", prior=[cp.Discrete([0.2, 0.6], [0.25, 0.75]), cp.Discrete([0.4, 0.6], [0.5, 0.5]), cp.Point(0.5)]
    )
    law = dict.fromkeys(odd.support, Fraction(0))
    for drawn in product(*(prior.atoms for prior in odd.priors)):
        means = [value for value, _ in drawn]
        for place, value in enumerate(means):
            right = Fraction(3, 4) if place == means.index(max(means)) else Fraction(1, 8)
            law[value] += right * math.prod(Fraction(weight) for _, weight in drawn)
    assert dict(named_prior(odd, 0.75).atoms) == {value: float(weight) for value, weight in law.items()}
    alone = cp.Agent("bo", 1, FOUR)
    assert all(named_prior(alone, accuracy).atoms == FOUR.atoms for accuracy in ACCURACIES)


def test_sampled_naming_agrees_with_the_closed_form():
    """Twice the half-width at 99 % is more than five standard errors: one in a million for each number."""
    market = cp.Market([cp.Agent("ana", 3, FOUR), cp.Agent("bo", 2, FOUR), cp.Agent("cy", 1, cp.Point(0.5))], 400)
    case = audit_case(market, cp.mechanism("reservoir", rounds=6, draws=3, threshold=5), "ana")
    exact = exact_naming(case, "auto")
    naming = exact.naming
    sampled = sampled_naming(case, cp.Search(runs=4000, seed=5), Deadline())
    pairs = [(sampled.regret, exact.regret)]
    for mine, known in zip(sampled.naming, naming, strict=True):
        assert mine.accuracy == known.accuracy
        pairs += [
            (getattr(mine, key), getattr(known, key)) for key in ("honest", "gain", "regret_if_one", "regret_if_all")
        ]
    assert all(abs(mine.value - known.value) <= 2 * mine.error < 40 for mine, known in pairs)
    wrong = naming[2].regret_if_all.value  # and the numbers differ by more than that, so that a mix-up would show
    assert wrong - naming[0].regret_if_all.value > 4 * sampled.naming[0].regret_if_all.error


def test_naming_is_a_table_and_data():
    market = cp.Market([cp.Agent(name, 2, FOUR) for name in ("ana", "bo")], 400)
    made = cp.mechanism("reservoir", rounds=5, draws=3, threshold=4)
    audit = cp.audit(market, made, agent="ana", also="informed")
    assert audit.informed.naming[0].gain.value == pytest.approx(audit.informed.gain.value, rel=1e-9)
    assert audit.informed.regret.value == pytest.approx(cp.evaluate(market, made).regret.value, rel=1e-12)
    (table,) = [
        part
        for section in audit.sections()
        for part in section.parts
        if "regret if all name" in getattr(part, "columns", ())
    ]
    assert [row[0].replace("\u202f", " ") for row in table.rows] == ["nobody names", "100 %", "85 %", "70 %"]
    data = audit.to_dict()["informed"]
    assert [each["accuracy"] for each in data["naming"]] == list(ACCURACIES)
    assert data["naming"][2]["regret_if_all"]["value"] == audit.informed.naming[2].regret_if_all.value


SENTENCE = "for everybody, whatever they know, no list with copies earns more than the best weights on distinct items"


def test_a_scope_says_that_weights_suffice_where_pay_depends_on_shares_alone():
    coins = cp.Market([cp.Agent(name, 2, COIN) for name in ("ana", "bo")], 24)
    at_random = cp.Market([cp.Agent(name, 2, COIN) for name in ("ana", "bo")], 24, ends="at-random")
    for market, made, said in [
        (coins, cp.mechanism("reservoir", rounds=2, draws=2, threshold=2), True),
        (coins, cp.mechanism("reservoir-contest", rounds=2, draws=2, threshold=2, horizon=24), True),
        (at_random, cp.mechanism("reservoir-index", draws=2, constant=1.5), True),
        (coins, cp.mechanism("ucb1"), False),
        (coins, cp.mechanism("h-etc-r", agent_rounds=8, arm_rounds=2), False),
    ]:
        assert audit_case(market, made, "ana").proof.by_shares == said, made
    audit = cp.audit(coins, cp.mechanism("reservoir", rounds=2, draws=2, threshold=2), agent="ana")
    assert str(audit.scope).count(SENTENCE) == 1


def test_realisations_add_up():
    agent = cp.Agent("ana", prior=[COIN, COIN, cp.Discrete([0.1, 0.2, 0.3], [0.2, 0.3, 0.5])])
    merged = realised_means(agent, [0, 0, 1])
    assert len(merged) == 9
    assert sum(chance for chance, _ in merged) == pytest.approx(1)
    assert {tuple(sorted(means[:2], reverse=True)) for _, means in realised_means(agent, [0, 1, 2])} == {
        means[:2] for _, means in merged
    }


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
    paid = exact_payoffs([(market, mechanism)], Split("ana", (BOTH, BOTH)), "law")[2000]
    assert paid.total.value == pytest.approx(shared, rel=1e-12)
    assert audit.also["splitting"].copied.value >= shared > 1.2 * audit.worst.honest.value
