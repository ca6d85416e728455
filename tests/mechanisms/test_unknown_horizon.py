"""Reservoirs without a known horizon: doubling epochs, flat and with a contest of champions."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.reference import simulate, simulate_run
from cloneproof.mechanisms.mechanism import running_epochs
from cloneproof.mechanisms.scores.champions import Champions

PRIOR = cp.Discrete([0.2, 0.8], [0.5, 0.5])
MARKET = cp.Market([cp.Agent(name, 2, PRIOR) for name in "ab"], horizon=50)
CONTEST = cp.mechanism("reservoir-contest", rates=(0.2, 0.8), originals=2, horizon="unknown")
FLAT = cp.mechanism("reservoir", rates=(0.2, 0.8), originals=2, horizon="unknown")


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


def test_a_longer_horizon_changes_nothing_before():
    short, long = (
        [tuple(record) for record in simulate(MARKET.with_horizon(horizon), CONTEST, seed=3)] for horizon in (40, 100)
    )
    assert short == long[:40]


@pytest.mark.parametrize(("mechanism", "engine"), [(CONTEST, "tree"), (FLAT, "closed-form")])
def test_the_engines_agree_and_copies_do_not_pay(mechanism, engine):
    exact = cp.evaluate(MARKET, mechanism, {"a": (3, 1)}, engine=engine).payoff["a"]
    runs = 100
    sampled = [simulate_run(MARKET, mechanism, {"a": (3, 1)}, 1, run).payoff["a"] for run in range(runs)]
    assert abs(np.mean(sampled) - exact.value) <= 5.5 * np.std(sampled) / np.sqrt(runs)  # once in ten million
    honest = cp.evaluate(MARKET, mechanism, engine=engine).payoff["a"]
    assert exact.high < honest.low


@pytest.mark.parametrize("opponents", ["market", "any"])
def test_the_audit_covers_every_epoch(opponents):
    audit = cp.audit(MARKET, CONTEST, agent="a", opponents=opponents)
    assert audit.verdict == "clone-proof"
    assert "in every epoch" in str(audit.scope)
