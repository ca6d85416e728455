"""The search for copies: planted ones are found, honest logs give few findings, likeness looks at no reward."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from cloneproof.analysis.copying.alike import alike
from cloneproof.analysis.copying.discoveries import CopyQuestion, discoveries, question_weights
from cloneproof.analysis.copying.find_copies import find_copies
from cloneproof.analysis.copying.priors import arm_evidence
from cloneproof.analysis.copying.records import ArmRecord
from cloneproof.errors import CloneproofError
from planted_logs import PLANTS, WORDS, draw_copiers_inside, draw_log, draw_resellers, draw_variants, near_copy
from support.sizes import LONG

SEEDS = 3 if LONG else 1


def record(agent, arm, rounds, clicks, **features):
    return ArmRecord(agent, arm, rounds, float(clicks), float(clicks), features)


def test_honest_logs_give_few_findings_and_plants_are_found():
    """The study in small (`studies/copy_power.py`): at level .05 at most one log in twenty has a wrong finding."""
    logs = [draw_log(1000 + seed, "beta", 128_000, planted) for seed in range(SEEDS) for planted in (False, True)]
    wrong, found = 0, []
    for log in logs:
        groups = find_copies(log.records, 0.05, ["title"]).found
        wrong += any(not log.is_right(group) for group in groups)
        agents = {group.agents for group in groups}
        found += [{plant for plant, who in log.plants.items() if who in agents}] if log.plants else []
    assert wrong <= binom.isf(1e-6, len(logs), 0.05)
    near = sum(PLANTS[5] in one for one in found)
    assert near > binom.ppf(1e-6, len(found), 0.95)
    assert sum(map(len, found)) > len(found)


def test_a_phrase_that_many_share_does_not_hide_second_accounts():
    """30 agents, each with a phrase that all share; three are second accounts with three near titles each."""
    dice = np.random.default_rng(9)
    records, means, titles = [], np.zeros(4), [""] * 4
    for number in range(30):
        first, texts = means, titles
        means, titles = dice.beta(2, 38, 4), [*(" ".join(dice.choice(WORDS, 5)) for _ in range(3)), "free delivery"]
        if number in (1, 3, 5):
            means[:3], titles[:3] = first[:3], [near_copy(dice, text) for text in texts[:3]]
        clicks = dice.binomial(60_000, means)
        records += [record(f"{number}", f"{k}", 60_000, clicks[k], title=titles[k]) for k in range(4)]
    found = [group.agents for group in find_copies(records, 0.05, ["title"], spread=0.0).found]
    assert {("0", "1"), ("2", "3"), ("4", "5")} <= set(found)
    assert len(found) <= 4


draw_close_resellers = partial(draw_resellers, spread=0.1)


@pytest.mark.parametrize(
    ("draw", "rewards"),
    [(draw_variants, 2_000), (draw_variants, 32_000), (draw_copiers_inside, 2_000), (draw_close_resellers, 8_000)],
)
def test_variants_copies_inside_two_agents_and_resellers_are_not_taken_for_copies(draw, rewards):
    """Sizes within 1.6 times of each other; agents that copy inside; products at two shops, .1 apart in log-odds."""
    wrong = 0
    for seed in range(SEEDS):
        log = draw(seed, rewards)
        wrong += any(not log.is_right(group) for group in find_copies(log.records, 0.05, ["title"]).found)
    assert wrong <= SEEDS // 3


def test_findings_are_data():
    log = draw_log(3, "beta", 32_000, True)
    findings = find_copies(log.records, 0.05, ["title"])
    assert json.loads(json.dumps(findings.to_dict()))["level"] == 0.05
    assert [group.found for group in findings.groups] == sorted((g.found for g in findings.groups), reverse=True)
    text = " ".join([findings.guarantee, *findings.notes, *(group.evidence for group in findings.groups)])
    assert not any(word in text.lower() for word in ("cheat", "fraud", "guilty", "suspect", "manipul", "attack"))


def test_rounds_are_enough_without_features():
    honest = [record(f"p{k}", "only", 10_000, 250 * k) for k in range(1, 30)]
    copied = [record("ana", f"ad {k}", 10_000, 3_100 + k) for k in range(6)]
    (group,) = find_copies(honest + copied, spread=0.0).found
    assert (group.agents, len(group.arms), group.kind) == (("ana",), 6, "one agent")
    assert find_copies(honest + copied).found == ()  # rates of real copies differ, so that equal ones prove little
    apart = [record("ana", f"ad {k}", 10_000, 1_100 + 1_300 * k) for k in range(6)]
    assert find_copies(honest + apart, spread=0.0).found == ()


def test_the_rates_of_copies_may_differ_by_the_declared_spread():
    """Two equal titles at 3 % and 3.6 %: one rate is out of the question, log-odds .2 apart are not."""
    honest = [record(f"p{k}", "only", 100_000, 400 * k, title=word) for k, word in enumerate(WORDS[:40], start=1)]
    two = [record("ana", f"ad {k}", 100_000, clicks, title="Stone mug") for k, clicks in enumerate((3_000, 3_600))]
    one_rate, spread_out = (find_copies(honest + two, same=["title"], spread=tau).groups for tau in (0.0, 0.14))
    assert spread_out[0].agents == ("ana",)
    assert spread_out[0].e_value > 2 > 1 > one_rate[0].e_value


def mugs():
    """An honest market, and a shop of ten equal mugs beside two other things that happen to earn the same."""
    dice = np.random.default_rng(4)
    honest = [
        record(f"p{k}", f"{k}-{j}", 20_000, dice.binomial(20_000, dice.beta(2, 38)), title=f"{word} {k} {j * 71}")
        for k, word in enumerate(WORDS[:25])
        for j in range(3)
    ]
    ten = [
        record("shop", f"mug {k}", 20_000, dice.binomial(20_000, 0.05), title="Organic mug size L") for k in range(10)
    ]
    two = [record("shop", f"other {k}", 20_000, 1_800, title=f"{WORDS[30 + k]} thing") for k in range(2)]
    return honest + two + ten


def test_a_finding_names_the_arms_that_matched_with_their_titles():
    findings = find_copies(mugs(), same=["title"])
    (group,) = findings.found
    assert {arm for _, arm in group.arms} == {f"mug {k}" for k in range(10)}
    assert {row.text for row in group.rows} == {"Organic mug size L"}
    assert group.probability > 0.9


def test_equal_texts_are_listed_before_any_statistics():
    """Also where too few rewards came for any finding, and where more agents share a text than count as likeness."""
    few = [replace(one, rounds=1, total=0.0, squares=0.0) for one in mugs()]
    many = [record(f"m{k}", f"m{k}", 1, 0, title="Free delivery") for k in range(40)]
    found = find_copies(few + many, same=["title"])
    assert found.found == ()
    listed = {(one.text, one.equal, len(one.arms), len(one.agents)) for one in found.duplicates}
    assert ("Organic mug size L", True, 10, 1) in listed
    assert ("Free delivery", True, 40, 40) in listed
    names = [record("a", "Ad 7", 1, 0), record("b", "ad-7 (copy)", 1, 0), record("b", "ad 8", 1, 0)]
    assert [one.arms for one in find_copies(names).duplicates] == [(("a", "Ad 7"), ("b", "ad-7 (copy)"))]


def test_the_most_promising_questions_are_asked_also_where_no_time_is_left():
    """500 arms with a few equal titles by chance, and a second account with three equal titles: ten are asked.

    Five equal titles inside an account are listed first all the same, before a phrase that 40 agents use.
    """
    dice = np.random.default_rng(5)
    titles = [" ".join(dice.choice(WORDS, 5)) for _ in range(500)]
    means = dice.beta(2, 60, 500)
    titles[100:103], means[100:103] = titles[200:203], means[200:203]
    titles[300:305], titles[9:400:10] = ["Walnut chess set"] * 5, ["free delivery"] * 40
    clicks = dice.binomial(200_000, means)
    records = [record(f"a{k // 5}", f"{k}", 200_000, clicks[k], title=titles[k]) for k in range(500)]
    found = find_copies(records, same=["title"], seconds=1e-9)
    assert [group.agents for group in found.found] == [("a20", "a40")]
    assert (found.duplicates[0].text, found.duplicates[0].agents) == ("Walnut chess set", ("a60",))
    assert "questions were not asked" in " ".join(found.notes)


# ---- discoveries and weights


def test_e_bh_is_the_largest_set():
    """Against its definition, by trying every k."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        values, weights = np.exp(rng.normal(2, 3, 12)), rng.uniform(0, 2, 12)
        hypotheses, level = 15, 0.1
        order = np.argsort(-values * weights)
        sizes = [k for k in range(1, 13) if (values * weights)[order[k - 1]] >= hypotheses / (level * k)]
        want = set(order[: max(sizes, default=0)].tolist())
        assert set(discoveries(np.log(values), weights, hypotheses, level)) == want
    assert discoveries(np.array([]), np.array([]), 3, 0.05) == []


def test_weights_average_one():
    asked = [CopyQuestion((f"a{k}",), (0, 1), rarity=float(k < 2)) for k in range(5)]
    asked += [CopyQuestion((f"a{k}", "b"), (0, 1), rarity=k / 3) for k in range(1, 6)]
    assert question_weights(asked).mean() == pytest.approx(1)
    assert question_weights(asked[2:5]).tolist() == [1, 1, 1]


def test_likeness_and_so_the_weights_look_at_no_reward():
    log = draw_log(5, "beta", 2_000, True).records
    other = [replace(one, total=one.rounds - one.total, squares=one.rounds - one.total) for one in log]
    assert alike(log, ["title"]) == alike(other, ["title"])


def test_rarity_counts_other_agents_and_links_grow_with_the_arms():
    """One pair of a title of its own is 1, all pairs of a phrase together about a half; what all share is nothing."""
    own = [record(f"own {k}", "x", 1, 0, title="quiet harbour lemon", image=(1.0, 2.0)) for k in range(2)]
    few = [record(f"few {k}", f"{j}", 1, 0, title="two for one", image=(3.0, 1.0)) for k in range(8) for j in range(3)]
    all_ = [record(f"all {k}", f"{j}", 1, 0, title="free", image=(1.0, 9.0)) for k in range(30) for j in range(9)]
    for name in ("title", "image"):
        links = alike(own + few + all_, [name])
        assert links.pop((0, 1)).rarity == 1.0
        agents = [one.agent for one in own + few + all_]
        assert all(agents[i].startswith("few") for pair in links for i in pair)
        assert {round(1 / like.rarity) for (i, j), like in links.items() if agents[i] != agents[j]} == {49}
        assert {round(1 / like.rarity) for (i, j), like in links.items() if agents[i] == agents[j]} == {64}
    assert len(alike(few, ["title"])) == 8 * 2 + 28 * 3  # chains, and an arm to an arm of two agents
    both = alike([replace(one, features={**one.features, "url": one.agent[:3]}) for one in own + few], ["title", "url"])
    assert both[0, 1] == ("title equal; url equal", 1.0, True)


# ---- evidence and likeness


def test_evidence_is_binomial_on_any_scale():
    seen = arm_evidence([record("a", "x", 4000, 20), record("b", "y", 2500, 15)])
    top = np.argmax(seen.log_likelihood, axis=1)
    assert len(set(top.tolist())) > 0
    grid = np.sin((seen.places[0] + (np.arange(seen.log_likelihood.shape[1]) - top[0]) * seen.step) / 2) ** 2
    want = binom.logpmf(20, 4000, grid)
    near = want - want.max() > -8
    assert np.allclose(seen.log_likelihood[0][near], (want - want.max())[near], atol=0.02)


def test_rewards_that_vary_less_count_for_more():
    ratings = [ArmRecord("a", "x", 100, 60.0, 38.5), ArmRecord("b", "y", 100, 40.0, 18.5)]
    own, binary = Fraction(77, 2) - 36 + Fraction(37, 2) - 16, 2 * 100 * Fraction(24, 100)
    assert arm_evidence(ratings).worth == pytest.approx(float(binary / own))


@pytest.mark.parametrize(
    ("first", "second", "near"),
    [
        ("Red shoes, 50 % off!", "red SHOES 50% off", True),
        ("summer shoes for children", "shoes for summer childre", True),
        ("summer shoes for children", "winter coats for grown-ups", False),
        ("", "", False),
        ((1.0, 2.0, 3.0), (1.01, 2.0, 3.0), True),
        ((1.0, 2.0, 3.0), (-1.0, 2.0, 3.0), False),
        ((1.0, 2.0), (1.0, 2.0, 3.0), False),
        ((0.0, 0.0), (0.0, 0.0), False),
    ],
)
def test_texts_and_vectors_that_are_alike(first, second, near):
    records = [record("a", "x", 1, 0, thing=first), record("b", "y", 1, 0, thing=second), record("c", "z", 1, 0)]
    assert (set(alike(records, ["thing"])) == {(0, 1)}) == near


def test_without_rapidfuzz_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    with pytest.raises(CloneproofError, match=r"pip install 'cloneproof\[log\]'"):
        alike([record("a", "x", 1, 0, t="text that"), record("b", "y", 1, 0, t="no test before had")], ["t"])


@pytest.mark.parametrize("records", [[], [record("a", "x", 0, 0)], [record("a", "x", 5, 1), record("a", "y", 0, 0)]])
def test_too_little_to_compare(records):
    findings = find_copies(records)
    assert (findings.groups, findings.hypotheses) == ((), 0)


def test_arms_without_successes_and_an_agent_alone():
    none = [record(f"a{k}", f"{j}", 50, 0) for k in range(4) for j in range(3)]
    assert find_copies(none).found == ()
    alone = [record("a", f"{j}", 50, 3 * j) for j in range(5)]
    assert find_copies(alone).hypotheses == 1
