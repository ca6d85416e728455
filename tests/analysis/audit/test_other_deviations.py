"""Deviations apart: withholding, two accounts, a cost per copy."""

import pytest

import cloneproof as cp
from cloneproof.analysis.audit.copy_vectors import OriginalKinds
from cloneproof.analysis.audit.search.copy_cost import smallest_copy_cost
from cloneproof.analysis.audit.search.splitting import splits

COIN = cp.Discrete([0, 1], [0.5, 0.5])


def test_withholding_pays_at_short_horizons_and_leaves_the_verdict_alone():
    market = cp.Market([cp.Agent("ana", 3, COIN)], horizon=96)
    found = cp.audit(market, cp.mechanism("etc", market=market), withhold=True)
    assert found.verdict == "clone-proof"
    apart = found.apart["withholding"]
    assert (apart.honest.value, apart.copied.value, apart.gain.kind) == (48.0, 56.0, "proven")
    assert 0 in apart.copies
    assert all(0 not in one.copies for one in found.tried)


def test_withholding_together_with_copies():
    market = cp.Market([cp.Agent("ana", 4, cp.Discrete([0, 1], [0.1, 0.9]))], horizon=85)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=7, score_rounds=1, max_arms=4)
    found = cp.audit(market, mechanism, withhold=True, max_copies=2)
    assert found.apart["withholding"].honest.value == pytest.approx(79.4, abs=0.05)
    assert found.apart["withholding"].copied.value >= 81.59


def test_two_accounts_double_a_uniform_share():
    market = cp.Market([cp.Agent("ana", 1, COIN), cp.Agent("bo", 1, cp.Point(0.5))], horizon=60)
    found = cp.audit(market, cp.mechanism("uniform-etc", arm_rounds=2), agent="ana", split=True)
    assert found.verdict == "clone-proof"
    apart = found.apart["splitting"]
    assert (apart.honest.value, apart.copied.value) == pytest.approx((15.0, 20.0))
    assert [agent.name for agent in apart.market.agents] == ["ana", "ana (second account)", "bo"]


def test_a_name_that_begins_like_another_is_another_agent():
    """Agents "anabel" and "an": the arms of the two accounts are those of "an"."""
    market = cp.Market([cp.Agent("anabel", 3, COIN), cp.Agent("an", 2, COIN)], horizon=60)
    found = cp.audit(market, cp.mechanism("uniform-etc", arm_rounds=2), agent="an", max_copies=2, split=True)
    arms = {agent.name: agent.count for agent in found.apart["splitting"].market.agents}
    assert list(arms) == ["anabel", "an", "an (second account)"]
    (note,) = [text for text in found.notes if text.startswith("splitting")]
    assert f"with {arms['an']} and {arms['an (second account)']} arms" in note


def test_shared_originals_have_one_mean():
    """Both accounts with the one original: averaging over independent means would find the maximum of two draws."""
    market = cp.Market([cp.Agent("ana", 1, COIN), cp.Agent("bo", 1, cp.Point(0.5))], horizon=600)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=20, arm_rounds=20)
    apart = cp.audit(market, mechanism, agent="ana", split=True).apart["splitting"]
    assert apart.copies == (2,)
    assert apart.copied.value == pytest.approx(0.5 * (600 - 20), rel=1e-3)  # wins all of the award iff the mean is 1


def test_splits_up_to_symmetry():
    assert len(list(splits(OriginalKinds((0, 0, 0))))) == 5
    assert len(list(splits(OriginalKinds((0,))))) == 1
    assert len(list(splits(OriginalKinds((0, 1))))) == 4  # 1|2, both|2, 1|both, both|both


def test_the_cost_of_a_copy_makes_honesty_optimal():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 0.5], [0.5, 0.5]))], horizon=400)
    found = cp.audit(market, cp.mechanism("etc", arm_rounds=1), copy_cost=True)
    cost, setter = smallest_copy_cost(found.tried)
    gains = [one.gain.value - cost.value * (sum(one.copies) - 2) for one in found.tried]
    assert max(gains) == pytest.approx(0, abs=1e-9)
    assert found.apart["copy cost"] is setter
    assert any(text.startswith("copy cost") for text in found.notes)


def test_no_cost_is_needed_where_nothing_pays():
    market = cp.Market([cp.Agent("ana", 2, COIN)], horizon=400)
    found = cp.audit(market, cp.mechanism("etc", arm_rounds=5), copy_cost=True)
    assert "copy cost" not in found.apart
    assert smallest_copy_cost(found.tried) is None
