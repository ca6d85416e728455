"""Mechanisms without a known horizon, in doubling epochs: the reservoir, its contest of champions, and hold-out."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.reference import simulate_run
from cloneproof.mechanisms.mechanism import running_epochs
from cloneproof.mechanisms.scores.champions import Champions

PRIOR = cp.Discrete([0.2, 0.8], [0.5, 0.5])
MARKET = cp.Market([cp.Agent(name, 2, PRIOR) for name in "ab"], horizon=50)
CONTEST = cp.mechanism("reservoir-contest", rates=(0.2, 0.8), originals=2, horizon="unknown")
FLAT = cp.mechanism("reservoir", rates=(0.2, 0.8), originals=2, horizon="unknown")
HOLDOUT = cp.mechanism("holdout-h-etc", max_originals=2, gap=1.0, agent_gap=1.0, max_arms=4, horizon="unknown")


def test_every_epoch_is_a_contest_with_numbers_for_its_length():
    """Numbers depend on the number of the epoch and on what is declared, not on the horizon or what is registered."""
    for horizon in (20, 50, 1000):
        epochs = running_epochs(CONTEST, 2, horizon)
        assert sum(epoch.rounds for epoch in epochs) == horizon
        for epoch in epochs:
            made = epoch.mechanism
            assert isinstance(made.scoring, Champions)
            assert made.agent.name == "steady-kl-ucb"
            assert made.scoring.after == made.arm.draws * made.arm.explore
    longest = running_epochs(CONTEST, 2, 1000)
    assert [epoch.mechanism for epoch in running_epochs(CONTEST, 2, 50)] == [e.mechanism for e in longest][:6]
    assert longest[-1].mechanism.arm.explore > longest[1].mechanism.arm.explore


@pytest.mark.parametrize(("mechanism", "horizon"), [(CONTEST, 100), (HOLDOUT, 10**12)])
def test_a_longer_horizon_changes_nothing_before(mechanism, horizon):
    sessions = [cp.session(mechanism, {"a": 2, "b": 2}, horizon=rounds, seed=3) for rounds in (90, horizon)]
    for _ in range(90):
        one, two = (live.decide() for live in sessions)
        assert (one.agent, one.arm) == (two.agent, two.arm)
        for live, decision in zip(sessions, (one, two), strict=True):
            live.reward(decision.id, float(decision.agent == "a"))


@pytest.mark.parametrize(("mechanism", "engine"), [(FLAT, "closed-form"), (HOLDOUT, "closed-form")])
def test_the_engines_agree_and_copies_do_not_pay(mechanism, engine):
    honest = cp.evaluate(MARKET, mechanism, engine=engine).payoff["a"]
    exact = cp.evaluate(MARKET, mechanism, {"a": (3, 1)}, engine=engine).payoff["a"]
    runs = 100
    simulated = [simulate_run(MARKET, mechanism, {"a": (3, 1)}, 1, run).payoff["a"] for run in range(runs)]
    assert abs(np.mean(simulated) - exact.value) <= 5.5 * np.std(simulated) / np.sqrt(runs)  # once in ten million
    assert exact.high < honest.low


def test_kernels_sample_what_the_closed_form_computes():
    options = {"search": cp.Search(runs=5_000, seed=5, bounds="distribution-free"), "confidence": 1 - 1e-6}
    exact = cp.evaluate(MARKET, HOLDOUT, {"a": (3, 1)}).payoff["a"]
    sampled = cp.evaluate(MARKET, HOLDOUT, {"a": (3, 1)}, engine="monte-carlo", **options).payoff["a"]
    assert sampled.low <= exact.value <= sampled.high


@pytest.mark.parametrize(("opponents", "each"), [("market", "every epoch"), ("any", "every epoch")])
def test_the_audit_covers_every_epoch(opponents, each):
    holdout = cp.mechanism("holdout-h-etc", market=MARKET, horizon="unknown")
    for market, mechanism, words in ((MARKET, CONTEST, "every epoch"), (MARKET.with_horizon(3000), holdout, each)):
        audit = cp.audit(market, mechanism, agent="a", opponents=opponents)
        assert audit.verdict == "clone-proof"
        assert f"in {words}" in str(audit.scope)
