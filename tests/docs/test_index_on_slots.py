"""What the chapter on the index on slots says of sessions, blocks and audits; its steps are in proof/lemmas."""

import math

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._lib.schedules import next_update
from cloneproof.bounds.index import expected_gain_ceiling, index_gain_ceiling
from cloneproof.market.market import LONGEST
from cloneproof.market.toml import market_from_toml, market_to_toml


def test_looks_are_every_pull_and_then_every_sixteenth_part():
    looks = [0]
    while looks[-1] < 10**9:
        looks.append(next_update(looks[-1]))
    assert looks[:34] == [*range(33), 34]
    assert len(looks) < 400


def test_the_ceiling_at_click_rates():
    assert index_gain_ceiling([0.02, 0.08], draws=12, constant=1.5, horizon=10**6) == 0
    assert index_gain_ceiling([0.05, 0.05, 0.05], draws=12, constant=1.5, horizon=10**6) == 0
    assert index_gain_ceiling([0.02, 0.04, 0.1], draws=9, constant=1.5, horizon=2000) < 0.01


def test_the_random_end_has_its_mean_and_is_kept_by_a_market_file():
    made = cp.mechanism("reservoir-index", draws=3, constant=1.5)
    lasts = [cp.session(made, {"ana": 1}, horizon=200, seed=seed, ends="at-random").last for seed in range(1000)]
    assert abs(np.mean(lasts) - 200) < 5.5 * 200 / math.sqrt(1000)
    assert 1 <= min(lasts) <= max(lasts) <= LONGEST * 200
    market = cp.Market([cp.Agent("ana", 3, cp.Beta(2, 10))], horizon=200, ends="at-random")
    assert market_from_toml(market_to_toml(market)) == market


def test_verdicts_by_the_theorem_and_by_the_ceiling():
    two = cp.Market([cp.Agent(name, 2, cp.Beta(2, 60)) for name in ("ana", "bo")], horizon=10**5, ends="at-random")
    assert cp.audit(two, cp.mechanism("reservoir-index", market=two)).verdict == "clone-proof"
    prior = cp.Discrete([0.02, 0.1], [0.5, 0.5])
    three = cp.Market([cp.Agent(name, 3, prior) for name in ("ana", "bo")], horizon=3000, ends="at-random")
    audit = cp.audit(three, cp.mechanism("reservoir-index", draws=5, constant=1.5), tolerance=0.001)
    assert audit.verdict == "clone-proof"
    assert "gain at most" in str(audit.scope)


def test_the_ceiling_is_said_with_every_verdict():
    three = cp.Market([cp.Agent(name, 3, cp.Beta(2, 20)) for name in ("ana", "bo")], horizon=100, ends="at-random")
    made = cp.mechanism("reservoir-index", draws=4, constant=1.5)
    strict, loose = (cp.audit(three, made, tolerance=tolerance) for tolerance in (0.0, 0.01))
    assert strict.verdict == "undecided"
    assert loose.verdict == "clone-proof"
    assert 0 < strict.gain_at_most.high < 0.01
    assert strict.gain_at_most.kind == "exact"
    assert strict.worst.gain.high == pytest.approx(strict.gain_at_most.high)
    prior = cp.Discrete([0.02, 0.05, 0.1], [0.5, 0.25, 0.25])
    market = cp.Market([cp.Agent(name, 3, prior) for name in ("ana", "bo")], horizon=100, ends="at-random")
    assert cp.audit(market, made).gain_at_most.kind == "exact"
    fixed = cp.Market(market.agents, horizon=100)
    assert cp.audit(fixed, cp.mechanism("reservoir", market=fixed)).gain_at_most is None


def test_no_verdict_rests_on_a_ceiling_that_is_only_computed():
    """With more than three originals and continuous rates cells are replaced by their mean rates: no guarantee."""
    four = cp.Market([cp.Agent(name, 4, cp.Beta(2, 20)) for name in ("ana", "bo")], horizon=100, ends="at-random")
    audit = cp.audit(four, cp.mechanism("reservoir-index", draws=4, constant=1.5), tolerance=0.01)
    assert audit.verdict == "undecided"
    assert 0 < audit.gain_at_most.high < 0.01
    assert (audit.gain_at_most.kind, audit.gain_at_most.heuristic) == ("exact", True)
    assert "computed at some rates of the prior, no guarantee" in str(audit.scope)
    assert "99 %" not in str(audit.scope)


def test_a_ceiling_for_a_continuous_prior_is_proven_for_three_originals():
    bins = [(k / 40, (k + 1) / 40, 1 / 20) for k in range(20)]
    most, proven = expected_gain_ceiling(bins, 3, 4, 1.5, 20)
    quick, computed = expected_gain_ceiling(bins, 3, 4, 1.5, 20, proof=False)
    assert proven
    assert not computed
    assert 0 < quick < most < 0.1


def test_slots_without_rewards_are_played_first():
    """A slot of mean 1 never falls behind, so without this rule a slot drawn behind it would never be played."""
    made = cp.mechanism("reservoir-index", draws=2, constant=1.5)
    for seed in range(20):
        live, shown = cp.session(made, {"one": 1, "zero": 1}, 5, seed=seed), []
        for _ in range(4):
            decision = live.decide()
            shown.append((decision.agent, decision.slot))
            live.reward(decision.id, float(decision.agent == "one"))
        assert len(set(shown)) == 4
