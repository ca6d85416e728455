"""From a log to its answers: planted copies are found, and the page calls nobody anything."""

import json
import re
import sys
import tomllib
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.advice.recommendation import terms_toml
from cloneproof.logs.copy_worth import worth_of_copies
from cloneproof.logs.originals import log_owners, lookalikes, named_links, studied_owners, studied_words
from cloneproof.logs.policy_audit import affordable_horizon, audit_policy
from cloneproof.logs.study import study_log
from cloneproof.mechanisms.bandits.kernel import BIAS
from cloneproof.report.page import html_page
from cloneproof.report.words import rounded
from support.clocks import ticking
from support.command import run

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "log"))
import generate

THINGS = (
    "walnut table", "red shoes", "garden hose", "ten candles", "old maps", "blue paint", "wool socks", "chess set",
    "silver spoon", "tin drum",
)  # fmt: skip


def planted(names=("ana", "bo", "cy", "di", "<script>alert(1)</script>"), rounds=60_000, copies=5):
    """A table of arms, two items an agent; the last agent's first one several times."""
    rng = np.random.default_rng(3)
    rows = {"agent": [], "arm": [], "title": [], "impressions": [], "clicks": []}
    for number, name in enumerate(names):
        for item in range(2):
            rate = 0.01 * 1.35 ** (2 * number + item)
            for copy in range(copies if number == len(names) - 1 and item == 0 else 1):
                clicks = int(rng.binomial(rounds, rate))
                title = f"{name}: {THINGS[2 * number + item]}"
                arm = f"{number}-{item}-{copy}"
                for key, value in zip(rows, (name, arm, title, rounds, clicks), strict=True):
                    rows[key].append(value)
    return rows


pytestmark = pytest.mark.usefixtures("ticking_clock")


@pytest.fixture(scope="module")
def study(ticking_clock):
    log = cp.read_log(planted(("ana", "bo", "<script>alert(1)</script>")), same=["title"])
    return study_log(log, lambda market: cp.mechanism("etc", arm_rounds=5), "etc", seconds=4)


def test_the_planted_copies_are_found_and_nobody_else(study):
    assert [one.agents for one in study.alike] == [("<script>alert(1)</script>",)]
    assert [len(item) for item in study.alike[0].items] == [5]
    assert study.alike[0].agreement[0] > 1e-6  # they are one item
    assert study.worth[0].owner.copies == (5, 1)
    assert study.worth[0].gain is not None
    assert study.worth[0].horizon == study.log.rounds  # the log's own size
    assert study.market.horizon == 1000
    assert sum(agent.count for agent in study.market.agents) == 6
    json.dumps(study.to_dict(), allow_nan=False)


def test_the_page_says_what_to_do_next(study, tmp_path):
    """Parameters, what the advice costs in this market and in a fresh one, and first what looks alike."""
    page = html_page(study)
    assert study.recommendation is not None
    for key in study.recommendation.choice.parameters:
        assert f"{key} = " in page
    assert f"of what knowing every item's rate would earn in its {study.log.rounds:,} rounds" in unescape(page)
    assert "with as many new items, as next season" in page
    order = ["What looks like one item", "What the copies earned", "How the log was read"]
    assert [page.index(title) for title in order] == sorted(page.index(title) for title in order)
    assert tomllib.loads(terms_toml(study.recommendation.market, study.recommendation.choice))["horizon"] == 600_000


def test_the_first_lines_answer_what_was_asked_and_name_nobody_else(study):
    """How much of the copier's own clicks came with the copies: one number, the same in title, table and JSON."""
    answer, table, worth, *_ = study.sections()
    assert answer.title.startswith("<script>alert(1)</script> seems to list \u201c<script>alert(1)</script>: ")
    part, earned = study.worth[0].part[0], study.worth[0].earned
    assert earned == sum(int(arm.total) for arm in study.log.of("<script>alert(1)</script>"))
    assert f"\u201d 5 times; of its {earned:,.0f} clicks in your log about {rounded(part * earned)}" in answer.title
    assert answer.title.endswith(" came with the copies")
    assert len(answer.parts) <= 2
    assert answer.parts[0].text.startswith("In the market fitted to this log etc pays for copies.")
    words = re.findall(r"\w+", answer.title + " ".join(part.text for part in answer.parts))
    assert not {"ana", "bo"} & set(words)
    assert table.parts[0].rows[0][4].startswith(f"{part:.0%}")
    assert worth.parts[1].rows[0][3].startswith(rounded(part * earned))
    assert "keep one listing" in table.parts[0].rows[0][5]
    assert study.verdict.audit is None  # what the log shows decides; nothing else was searched for


def test_hypothetical_attacks_stand_apart_and_name_nobody(study):
    """Where what the log shows does not decide: the search for copies that would pay."""
    market, policy = study.market, cp.mechanism("etc", arm_rounds=5)
    searched = replace(study, verdict=audit_policy(market, policy, 1000, 0.005, 6.0))
    titles = [section.title for section in searched.sections()]
    place = titles.index("What copies could earn under etc")
    assert (
        searched.sections()[place]
        .parts[0]
        .text.startswith("In the market fitted to the log, and not in the log itself: a provider")
    )
    assert place > titles.index("What to run instead")


def looked_at(rows, same=("title",), **options):
    """What looks like one item."""
    views = {"impressions": [100] * len(rows["arm"]), "clicks": [3] * len(rows["arm"])}
    log = cp.read_log(rows | views, same=same, **options)
    return log, lookalikes(log, named_links(log, same))


def test_what_looks_like_one_item_is_put_together_from_texts_and_ids():
    """In the order in which a person would look: the most arms too many first, what many shops sell last."""
    titles = {
        "lampking": ["Touch Lamp", "Touch Lamp - NEW", "touch lamp (sale)", "Desk Fan"],
        "teahouse": ["Copper Kettle", "Oak Tray"], "brewer": ["Copper Kettle (sale)"],
        "a": ["iPhone case"], "b": ["iPhone case"], "c": ["iPhone Case!"], "d": ["Merino Throw", "Throw Merino"],
    }  # fmt: skip
    rows = {
        "agent": [name for name, own in titles.items() for _ in own],
        "title": [title for own in titles.values() for title in own],
    }
    rows["arm"] = [f"L{k}" for k in range(len(rows["title"]))]
    log, found = looked_at(rows)
    assert [one.agents for one in found] == [("lampking",), ("d",)]  # three shops with one product are three shops
    assert [[len(item) for item in one.items] for one in found] == [[3], [2]]
    assert [one.reasons for one in found] == [("texts",), ("texts",)]
    owners = {owner.accounts: owner.copies for owner in log_owners(log, found)}
    assert owners["lampking",] == (3, 1)
    assert owners["a",] == owners["b",] == (1,)
    rows["sku"] = ["x", "x", "x", "y", "k", "t", "k", "p1", "p2", "p3", "m", "w"]
    by_id = looked_at({key: rows[key] for key in ("agent", "arm", "sku")}, same=("sku",))[1]
    assert [(one.agents, len(one.items[0])) for one in by_id] == [(("lampking",), 3), (("brewer", "teahouse"), 2)]
    assert not any(one.one_owner for one in by_id)


def test_names_of_arms_say_nothing_across_agents():
    """Where names are unique within an agent only, everybody has an arm 1; a copy within one is a reason to look."""
    rows = {"agent": ["a", "a", "b", "b"], "arm": ["ad 1", "ad 1 (copy)", "ad 1", "ad 2"]}
    _, found = looked_at(rows, same=(), local_arms=True)
    assert [(one.agents, one.reasons) for one in found] == [(("a",), ("equal name",))]


def lamps(rounds):
    """Four copies of a lamp that earns more than the two other items."""
    titles = ["Touch Lamp", "Touch Lamp!", "NEW Touch Lamp", "Touch Lamp sale", "Oak Tray", "Wool Throw"]
    clicks = [rounds // 20] * 4 + [rounds // 25] * 2
    rows = {"agent": ["ana"] * 4 + ["bo", "cy"], "arm": list("uvwxyz"), "title": titles}
    return cp.read_log(rows | {"impressions": [rounds] * 6, "clicks": clicks}, same=["title"])


def valued(log, policy, seconds):
    """The worth of the copies in a log, and the first lines about it."""
    agents = [cp.Agent("ana", 1, cp.Point(0.05)), cp.Agent("bo", 1, cp.Point(0.04)), cp.Agent("cy", 1, cp.Point(0.04))]
    owners = log_owners(log, lookalikes(log, named_links(log, ["title"])))
    with ticking(0.0):
        return worth_of_copies(cp.Market(agents, log.rounds), lambda _: policy, owners, seconds, short=100)


def test_thompson_is_valued_over_the_whole_log_in_blocks():
    (worth,) = valued(lamps(10**7), cp.mechanism("thompson"), 1.0)
    assert worth.horizon == 60_000_000
    assert worth.in_blocks
    assert worth.gain.error > BIAS * worth.copied.value  # what blocks change is part of the bounds
    value, low, high = worth.of_log
    assert low <= value <= high <= worth.earned == 2_000_000


def test_where_the_whole_log_takes_too_long_fewer_rounds_are_valued_and_that_is_said(study):
    """A part of what would be earned in so many rounds, and no number of the log's clicks."""
    log = lamps(10**7)
    (worth,) = valued(log, cp.mechanism("epsilon-greedy"), 1.0)
    assert worth.horizon < log.rounds
    alike = lookalikes(log, named_links(log, ["title"]))
    told = " ".join(str(replace(study, log=log, alike=alike, worth=(worth,), policy="mine")).split())
    assert f"of what it would earn in {worth.horizon:,} rounds of the log's 60,000,000, " in told
    assert "The log has 60,000,000 rounds, of which sampling enough runs takes longer" in told
    assert "clicks in your log about" not in told


def test_accounts_that_share_items_are_told_what_they_were_paid():
    """In so little time that nothing is asked but who copies."""
    rows = planted(copies=1)
    for row in [k for k, name in enumerate(rows["agent"]) if name == "ana"]:
        for key in rows:
            rows[key].append("ana 2" if key == "agent" else f"2-{rows[key][row]}" if key == "arm" else rows[key][row])
    with ticking(0.0001):
        study = study_log(cp.read_log(rows, same=["title"]), seconds=0.25)
    pair = study.accounts
    assert [one.agents for one in study.alike if one.one_owner] == [("ana", "ana 2")]
    assert [(account, rounds) for account, _, rounds, _ in pair] == [("ana", 120_000), ("ana 2", 120_000)]
    assert pair[0][3] == sum(int(arm.total) for arm in study.log.of("ana"))


@pytest.mark.parametrize(("rows", "seconds"), [([("ana", "a", 1)], 1), ([("bo", "b", 0), ("bo", "c", 0)], 2)])
def test_a_log_of_one_row_or_without_rewards_is_studied(rows, seconds):
    """Honest payoffs of nothing used to make infinite percentages, which JSON does not have."""
    agents, arms, clicks = zip(*rows, strict=True)
    log = cp.read_log({"agent": list(agents), "arm": list(arms), "click": list(clicks)})
    study = study_log(log, lambda market: cp.mechanism("etc", arm_rounds=2), "etc", seconds=seconds)
    json.dumps(study.to_dict(), allow_nan=False)
    assert "inf%" not in html_page(study)
    assert "nan" not in html_page(study)


def test_a_budget_is_one_promise_and_says_what_was_left_out():
    """What there is no time for is not begun."""
    log = cp.read_log(planted(), same=["title"])
    with ticking(1.2):
        study = study_log(log, seconds=1)
        judged = study_log(log, lambda market: cp.mechanism("ucb1"), "ucb1", seconds=1)
    assert study.left[-1] == "a recommendation"
    assert "no time for a recommendation" in " ".join(study.notes)
    assert "an audit of the policy" in judged.left
    assert "is audited" not in " ".join(judged.notes)  # nothing was


def write_small_log(path):
    """3,000 rounds of three agents with two items each, on which nothing takes long."""
    rows = ["agent,arm,click", *(f"a{k % 3},i{k % 6},{int(k % 100 < 5 * (k % 6))}" for k in range(3000))]
    path.write_text("\n".join(rows))


def test_no_time_for_a_verdict_is_exit_code_3(tmp_path):
    write_small_log(tmp_path / "x.csv")
    with ticking(0.3):  # there is no time for an audit
        done = run("log", tmp_path / "x.csv", "--json", "--policy", "thompson", "--seconds", "1")
    assert json.loads(done.stdout)["verdict"] is None
    assert done.returncode == 3


def test_ctrl_c_prints_what_is_finished(tmp_path, monkeypatch):
    (tmp_path / "pressed.py").write_text("def policy(view):\n    raise KeyboardInterrupt\n")
    write_small_log(tmp_path / "x.csv")
    done = run(
        "log",
        tmp_path / "x.csv",
        "--policy",
        tmp_path / "pressed.py:policy",
        "--seconds",
        "30",
        "--html",
        tmp_path / "page.html",
    )
    assert done.returncode == 130
    assert "3,000 rounds, 6 arms" in done.stdout
    assert "Parameters. " in done.stdout  # of the recommendation
    assert "Interrupted: this is what was found by then" in done.stdout

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cloneproof.logs.study.log_owners", interrupted)
    early = run("log", tmp_path / "x.csv")
    assert early.returncode == 130
    assert "3,000 rounds, 6 arms" in early.stdout  # what is known before anything takes long is printed before
    assert "No two arms look like one item" in early.stdout
    assert "interrupted before anything was known" in early.stderr


def test_the_page_escapes_names_and_calls_nobody_anything(study):
    page = html_page(study)
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    for word in ("cheat", "fraud", "guilty", "dishonest", "abuse"):
        assert word not in page.lower()
    assert "not findings about anybody" in page


def test_the_generator_has_what_it_says():
    campaigns = generate.platform(0)
    assert len(campaigns) == 60
    assert len({advertiser for advertiser, *_ in campaigns}) == 20
    rates = {}
    for advertiser, _, _, rate in campaigns:
        rates.setdefault(advertiser, []).append(rate)
    for name, copies in generate.COPIERS.items():
        assert rates[name][:copies] == [rates[name][0]] * copies
    first, second = generate.SECOND_ACCOUNT
    assert rates[first] == rates[second]


def test_one_owner_with_many_items_does_not_fill_the_market():
    """An owner of 298 items and most rounds used to take all but two of the 300 places."""
    sizes = {"big": 298, **{f"a{k:02}": 2 + k % 40 for k in range(40)}}
    log = cp.read_log(
        {
            "agent": [name for name, size in sizes.items() for _ in range(size)],
            "arm": [f"{name}-{k}" for name, size in sizes.items() for k in range(size)],
            "impressions": [100 + k for size in sizes.values() for k in range(size)],
            "clicks": [k % 50 for size in sizes.values() for k in range(size)],
        }
    )
    everybody = log_owners(log, ())
    studied = studied_owners(everybody)
    assert len(studied) >= 15
    assert sum(len(owner.originals) for owner in studied) <= 300
    big = next(owner for owner in studied if owner.name == "big")
    assert [group[0].rounds for group in big.originals] == list(range(397, 377, -1))
    (words,) = studied_words(studied, everybody)
    assert f"{len(studied)} of 41 owners, " in words
    assert studied_words(everybody, everybody) == []


def test_a_policy_that_is_sampled_is_searched_for_all_owners():
    """Nothing can gain for whoever has only items that earn nothing; the search finds the other owner."""
    market = cp.Market([cp.Agent("nil", 2, cp.Point(0.0)), cp.Agent("bo", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5]))], 100)
    market = cp.Market([*market.agents, cp.Agent("di", 1, cp.Point(0.6))], 100)
    found = audit_policy(market, lambda each: cp.mechanism("thompson"), 100, 0.005, 2.0)
    assert found.verdict == "exploitable"
    assert found.worst.agent != "nil"
    assert found.worst.horizon == 100
    assert found.worst.gain.low > 0
    assert "each of 3 owners" in found.scope


def test_the_horizon_is_what_the_time_affords():
    market = cp.Market([cp.Agent("bo", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5]))], 100)
    made = cp.mechanism("thompson")
    assert affordable_horizon(market, made, 100, 1e-9) == 100
    assert affordable_horizon(market, made, 10**9, 1e-9) == 100
    assert affordable_horizon(market, made, 150, 1000.0) == 150
    assert str(affordable_horizon(market, made, 10**9, 1.0)).rstrip("0") in ("1", "2", "5")


def test_a_clone_proof_policy_has_the_scope_of_its_argument():
    """It rests on a theorem, not on the few vectors that were sampled besides."""
    agents = [cp.Agent(name, 2, cp.Discrete([0.2, 0.6], [0.5, 0.5])) for name in ("ana", "bo")]
    market = cp.Market(agents, 30, ends="at-random")
    found = audit_policy(market, cp.mechanism("reservoir-index", draws=1, constant=1.5), 30, 0.005, 1.0)
    assert found.verdict == "clone-proof"
    assert found.scope.startswith("all copies and withholdings")
    assert "not ruled out" not in found.scope
