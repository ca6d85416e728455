"""Deviations apart: withholding and two accounts."""

import pytest

import cloneproof as cp
from cloneproof.audits.deviations import OriginalKinds, splits
from cloneproof.report.page import html_page
from cloneproof.report.words import NARROW, percent, scope_sentences, verdict_sentence

COIN = cp.Discrete([0, 1], [0.5, 0.5])


def test_withholding_pays_at_short_horizons_and_leaves_the_verdict_alone():
    market = cp.Market([cp.Agent("ana", 3, COIN)], horizon=96)
    found = cp.audit(market, cp.mechanism("etc", market=market), also=("withholding",))
    assert found.verdict == "clone-proof"
    apart = found.also["withholding"]
    assert (apart.honest.value, apart.copied.value, apart.gain.kind) == (48.0, 56.0, "exact")
    assert 0 in apart.copies
    assert all(0 not in one.copies for one in found.tried)


def test_two_accounts_double_a_uniform_share():
    market = cp.Market([cp.Agent("ana", 1, COIN), cp.Agent("bo", 1, cp.Point(0.5))], horizon=60)
    found = cp.audit(market, cp.mechanism("uniform-etc", arm_rounds=2), agent="ana", also=("splitting",))
    assert found.verdict == "clone-proof"
    apart = found.also["splitting"]
    assert (apart.honest.value, apart.copied.value) == pytest.approx((15.0, 20.0))
    assert [agent.name for agent in apart.market.agents] == ["ana", "ana (second account)", "bo"]


def test_a_name_that_begins_like_another_is_another_agent():
    """Agents "anabel" and "an": the arms of the two accounts are those of "an"."""
    market = cp.Market([cp.Agent("anabel", 3, COIN), cp.Agent("an", 2, COIN)], horizon=60)
    found = cp.audit(
        market, cp.mechanism("uniform-etc", arm_rounds=2), agent="an", also=("splitting",), search=cp.Search(copies=2)
    )
    arms = {agent.name: agent.count for agent in found.also["splitting"].market.agents}
    assert list(arms) == ["anabel", "an", "an (second account)"]
    (note,) = [text for text in found.notes if text.startswith("splitting")]
    assert f"with {arms['an']} and {arms['an (second account)']} arms" in note


def test_shared_originals_have_one_mean():
    """Both accounts with the one original: averaging over independent means would find the maximum of two draws."""
    market = cp.Market([cp.Agent("ana", 1, COIN), cp.Agent("bo", 1, cp.Point(0.5))], horizon=600)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=20, arm_rounds=20)
    apart = cp.audit(market, mechanism, agent="ana", also=("splitting",)).also["splitting"]
    assert apart.copies == (2,)
    assert apart.copied.value == pytest.approx(0.5 * (600 - 20), rel=1e-3)  # wins all of the award iff the mean is 1


def test_splits_up_to_symmetry():
    assert len(list(splits(OriginalKinds((0, 0, 0))))) == 5
    assert len(list(splits(OriginalKinds((0,))))) == 1
    assert len(list(splits(OriginalKinds((0, 1))))) == 4  # 1|2, both|2, 1|both, both|both


def test_what_was_asked_for_and_not_computed_is_shown():
    """Eight agents with continuous priors under a contest: no engine, so a theorem speaks, and no number is made up."""
    market = cp.Market([cp.Agent(f"a{k}", 4, cp.Beta(2, 60)) for k in range(8)], horizon=10**6)
    audit = cp.audit(market, cp.mechanism("reservoir-contest", market=market), also=("splitting",))
    assert audit.also == {}
    assert list(audit.not_computed) == ["splitting"] == list(audit.to_dict()["not_computed"])
    assert audit.worst.argued
    shown = " ".join(str(audit).split())
    assert "-100.00%" not in shown
    assert "No copies were evaluated; the argument is in the scope below" in shown
    assert "Asked for and not computed: splitting (splitting is tried by exact engines only" in shown
    assert all(said in shown for said in scope_sentences(audit.scope))
    assert verdict_sentence(audit).endswith("No copies were evaluated.")
    assert "500,000" not in html_page(audit)


def test_what_was_computed_is_printed():
    market = cp.Market(
        [cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.5))], 60
    )
    audit = cp.audit(market, cp.mechanism("reservoir", rounds=4, draws=2, threshold=3), agent="ana",
                     also=("informed", "splitting"))  # fmt: skip
    assert audit.not_computed == {}
    shown = str(audit)
    for words in ("splitting (ana)", "informed (ana)", percent(audit.informed).replace(NARROW, " ")):
        assert words in shown
