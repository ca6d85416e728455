"""Rules on slots that are no scan: exact payoffs over what slots hold, the concavity check, and planted failures."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from statistics import mean, stdev

import pytest

import cloneproof as cp
from cloneproof._discovery import factories
from cloneproof.analysis.audit.arguments import Evidence, slot_concavity
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.search_result import SearchResult
from cloneproof.analysis.gain import Payoff
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.tree.playing import on_arms, slots_held
from cloneproof.engines.tree.state_tree import payoffs_by_slots
from cloneproof.market.rewards import FAMILIES_PACKAGE, RewardFamily
from support.brute_force import brute_force
from support.reference_runs import simulate_runs

HALVES = cp.Discrete([0.25, 0.75], [0.5, 0.5])
COIN = cp.Discrete([0, 1], [0.5, 0.5])
SIGMAS = 7.0  # rarer than one in a million, with room for the skew of 600 runs
UCB_ON_SLOTS = replace(cp.rule("ucb"), slots=cp.parts.Slots(3))


def worst_first(inputs):
    """Planted: the slot with the lowest average, so that slots of one original are better than a mix."""
    return -inputs.mean


GAMEABLE = cp.Mechanism(arm=cp.parts.Rule("worst first", worst_first, explore=1, slots=cp.parts.Slots(2)))


def in_fractions(market, mechanism, copies, horizon):
    """Every assignment of arms to slots, each with the brute force on arms."""
    slots, names = mechanism.arm.draws, [agent.name for agent in market.agents]
    weights = {name: [Fraction(count, sum(copies[name])) for count in copies[name]] for name in names}
    paid = dict.fromkeys(names, Fraction(0))
    choices = [list(product(range(len(copies[name])), repeat=slots)) for name in names]
    for held in product(*choices):
        chance = Fraction(1)
        counts = {}
        for name, originals in zip(names, held, strict=True):
            for original in originals:
                chance *= weights[name][original]
            counts[name] = tuple(originals.count(k) for k in range(len(copies[name])))
        if chance:
            payoff, _ = brute_force(market, on_arms(mechanism, len(names)), counts, horizon)
            for name in names:
                paid[name] += chance * payoff[name]
    return paid


@pytest.mark.parametrize(
    ("mechanism", "copies"),
    [
        (cp.Mechanism(arm=replace(UCB_ON_SLOTS, slots=cp.parts.Slots(2))), (2, 1)),
        (cp.Mechanism(agent=cp.rule("ucb"), arm=replace(UCB_ON_SLOTS, slots=cp.parts.Slots(2))), (3, 0)),
    ],
)
def test_payoffs_are_those_of_fractions_and_of_the_session(mechanism, copies):
    market = cp.Market([cp.Agent("ana", 2, HALVES), cp.Agent("bo", 1, cp.Point(0.5))], horizon=6)
    everybody = {"ana": copies, "bo": (1,)}
    exact = in_fractions(market, mechanism, everybody, 6)
    found = cp.evaluate(market, mechanism, everybody, engine="tree")
    for name, payoff in found.payoff.items():
        assert abs(Fraction(payoff.value) - exact[name]) <= Fraction(payoff.error)
        assert payoff.error < 1e-10
    runs = list(simulate_runs(market, mechanism, everybody, runs=600, seed=1))
    for name, payoff in found.payoff.items():
        paid = [run.payoff[name] for run in runs]
        assert abs(mean(paid) - payoff.value) < SIGMAS * stdev(paid) / len(paid) ** 0.5


def test_a_raw_best_of_draws_is_evaluated_too():
    """It is no scan by name; coins are what Bernoulli rewards are, so it pays what the reservoir does."""
    market = cp.Market([cp.Agent("ana", 2, HALVES)], horizon=12)
    coins = cp.mechanism("reservoir", rounds=2, draws=3, choose="best")
    raw = cp.Mechanism(arm=replace(coins.arm, binarise=False))
    for copies in ((1, 1), (3, 1), (1, 0)):
        own, other = (cp.evaluate(market, each, {"ana": copies}).payoff["ana"].value for each in (raw, coins))
        assert own == pytest.approx(other, rel=1e-12)
    audit = cp.audit(market, raw, also=("withholding",))
    assert audit.verdict == "clone-proof"
    assert "the concavity check" in str(audit.scope)


def test_how_slots_are_shared():
    agent = cp.Agent("ana", prior=[HALVES, HALVES, COIN])
    law = slots_held(agent, 3, (2, 1, 1))
    assert sum(law.values()) == pytest.approx(1)
    assert law[(0, 0, 3)] == 1 / 64
    assert (1, 2, 0) not in law  # exchanged with (2, 1, 0)
    assert set(slots_held(agent, 3, (1, 0, 0))) == {(3, 0, 0)}


@pytest.mark.parametrize("agent_rule", [None, cp.rule("ucb")])
def test_the_check_decides_small_cases(agent_rule):
    market = cp.Market([cp.Agent("ana", 2, HALVES), cp.Agent("bo", 1, cp.Point(0.5))], horizon=10)
    mechanism = cp.Mechanism(agent=agent_rule, arm=replace(UCB_ON_SLOTS, slots=cp.parts.Slots(2)))
    audit = cp.audit(market, mechanism, also=("withholding",))
    assert audit.verdict == "clone-proof"
    for words in ("the concavity check", "unreviewed", "against honest others"):
        assert words in str(audit.scope)
    assert audit.also["withholding"].gain.value < 0


def test_sufficient_and_not_necessary():
    """Four slots, sure rewards, T = 12: g(3, 1) = 7.25 is above g(2, 2) = 7, and no copies that were tried pay."""
    market = cp.Market([cp.Agent("ana", 2, COIN)], horizon=12)
    mechanism = cp.Mechanism(arm=replace(UCB_ON_SLOTS, slots=cp.parts.Slots(4)))
    table = payoffs_by_slots(market, mechanism, "ana", 12)
    assert {held: payoff.value for held, payoff in table.items()} == {(4, 0): 6.0, (3, 1): 7.25, (2, 2): 7.0}
    audit = cp.audit(market, mechanism, tolerance=1e-6)
    assert audit.verdict == "undecided"
    assert audit.worst.gain.value <= 1e-9


def ones_shown(good, slots, rounds):
    """Rewards of UCB1 over so many slots, of which so many always pay 1 and the others 0; no tie is between the two."""
    pulls, earned = [1] * slots, good
    for t in range(slots + 1, rounds + 1):
        index = [(k < good) + math.sqrt(2 * math.log(t) / pulls[k]) for k in range(slots)]
        best = max(range(slots), key=index.__getitem__)
        assert all((k < good) == (best < good) or index[k] < index[best] - 1e-9 for k in range(slots))
        pulls[best] += 1
        earned += best < good
    return earned


def test_ucb_on_slots_can_be_gamed():
    """Eight slots, two originals of 0 or 1, T = 21: copies (5, 3) gain 180559/33554432, by hand and by the audit."""
    shown = [ones_shown(good, 8, 21) for good in range(9)]

    def payoff(first, second):
        weights = Fraction(first, first + second), Fraction(second, first + second)
        one_good = sum(
            math.comb(8, good) * w**good * (1 - w) ** (8 - good) * shown[good] for w in weights for good in range(9)
        )
        return Fraction(21 + one_good, 4)  # both are good, or just one of the two

    assert payoff(1, 1) == Fraction(6047, 512)
    assert payoff(5, 3) - payoff(1, 1) == Fraction(180559, 33554432)
    market = cp.Market([cp.Agent("ana", 2, COIN)], horizon=21)
    audit = cp.audit(
        market, cp.Mechanism(arm=replace(UCB_ON_SLOTS, slots=cp.parts.Slots(8))), search=cp.Search(copies=5)
    )
    assert (audit.verdict, audit.worst.copies) == ("exploitable", (5, 3))
    assert audit.worst.gain.value == pytest.approx(float(payoff(5, 3) - payoff(1, 1)), rel=1e-9)


def test_a_rule_on_slots_that_can_be_gamed_is_found():
    market = cp.Market([cp.Agent("ana", 2, HALVES)], horizon=12)
    audit = cp.audit(market, GAMEABLE, also=("withholding",))
    assert audit.verdict == "exploitable"
    assert audit.worst.copies != (1, 1)
    assert audit.also["withholding"].gain.value > audit.worst.gain.value
    case = audit_case(market, GAMEABLE, "ana")
    result = SearchResult(case, "tree", Payoff(audit.worst.honest))
    assert slot_concavity(Evidence(case, 0.0, Deadline(None), result)) is None


def test_originals_of_different_priors_are_not_covered():
    market = cp.Market([cp.Agent("ana", prior=[cp.Point(0.2), cp.Point(0.8)])], horizon=10)
    assert cp.audit(market, cp.Mechanism(arm=UCB_ON_SLOTS)).verdict == "exploitable"


def no_likelihood_ratios(mean, u):
    """Low is 0 or .998, mid 0 or 1, top .999 or 1, the second with chance 1/4: in stochastic order and no more."""
    low, high = {0.2495: (0.0, 0.998), 0.25: (0.0, 1.0), 0.99925: (0.999, 1.0)}[mean]
    return low if u < 0.75 else high


def test_best_of_draws_without_likelihood_ratios_is_never_called_clone_proof(monkeypatch):
    """The chapter's counterexample: with raw scores copies (2, 1, 1) gain; the audit must not use the scan theorem."""
    family = RewardFamily("planted", no_likelihood_ratios)
    monkeypatch.setitem(factories(FAMILIES_PACKAGE), "planted", lambda: family)
    prior = cp.Discrete([0.2495, 0.25, 0.99925], [1 / 3] * 3)
    market = cp.Market([cp.Agent("ana", 3, prior)], horizon=21, rewards=family)
    raw = cp.Mechanism(arm=replace(cp.mechanism("reservoir", rounds=1, draws=20, choose="best").arm, binarise=False))
    audit = cp.audit(market, raw, search=cp.Search(seconds=0.2, runs=20))
    assert audit.verdict == "undecided"
    assert "scan theorem" not in str(audit.scope)
