"""Rules on slots that are no scan: no theorem covers them, and planted failures are found."""

from dataclasses import replace

import cloneproof as cp
from cloneproof.market.rewards import FAMILIES, RewardFamily
from cloneproof.mechanisms import Rule, Slots

HALVES = cp.Discrete([0.25, 0.75], [0.5, 0.5])
UCB_ON_SLOTS = replace(cp.rule("ucb"), slots=Slots(3))


def worst_first(inputs):
    """Planted: the slot with the lowest average, so that slots of one original are better than a mix."""
    return -inputs.mean


GAMEABLE = cp.Mechanism(arm=Rule("worst first", worst_first, explore=1, slots=Slots(2)))


def test_a_rule_on_slots_that_can_be_gamed_is_found():
    market = cp.Market([cp.Agent("ana", 2, HALVES)], horizon=12)
    audit = cp.audit(market, GAMEABLE, also=("withholding",))
    assert audit.verdict == "exploitable"
    assert audit.worst.copies != (1, 1)
    assert audit.also["withholding"].gain.value > audit.worst.gain.value


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
    monkeypatch.setitem(FAMILIES, "planted", lambda: family)
    prior = cp.Discrete([0.2495, 0.25, 0.99925], [1 / 3] * 3)
    market = cp.Market([cp.Agent("ana", 3, prior)], horizon=21, rewards=family)
    raw = cp.Mechanism(arm=replace(cp.mechanism("reservoir", rounds=1, draws=20, choose="best").arm, binarise=False))
    audit = cp.audit(market, raw, search=cp.Search(seconds=0.2, runs=20))
    assert audit.verdict == "undecided"
    assert "scan theorem" not in str(audit.scope)
