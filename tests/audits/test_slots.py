"""Scores without likelihood ratios: no theorem covers them."""

import cloneproof as cp
from cloneproof.market.rewards import FAMILIES, RewardFamily


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
    raw = cp.mechanism("reservoir", rounds=1, draws=20, choose="best", coins=False)
    audit = cp.audit(market, raw, search=cp.Search(seconds=0.2, runs=20))
    assert audit.verdict == "undecided"
    assert "scan theorem" not in str(audit.scope)
