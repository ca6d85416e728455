"""A certificate names its market and mechanism; what is forged, or about another market, is rejected."""

import json

import pytest
from typer.testing import CliRunner

import cloneproof as cp
from cloneproof.analysis.certificate.verification import check
from cloneproof.analysis.certificate.writer import checked_certificate
from cloneproof.cli.app import app
from cloneproof.errors import CloneproofError
from cloneproof.market.toml import market_to_toml
from cloneproof.mechanisms.catalogue import CATALOGUE
from cloneproof.mechanisms.mechanism import mechanism_from_dict
from support.changes import with_change
from support.command import run as run_command

COIN = cp.Discrete([0, 1], [0.5, 0.5])
BO = cp.Agent("bo", 1, cp.Point(0.6))
MINE = cp.Market([cp.Agent("ana", 2, COIN), BO], horizon=4000)
OTHER = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), BO], horizon=4000)
SOLO = cp.Market([cp.Agent("ana", 2, COIN)], horizon=400)
PAPERS = cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36)
CAPPED = cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36, max_arms=2)
HOLDOUT = cp.mechanism("holdout-h-etc", market=MINE)
SETTINGS = ["--set", "agent_rounds=72", "--set", "arm_rounds=36"]


def certificate_of(market, mechanism):
    return checked_certificate(cp.audit(market, mechanism, agent="ana", opponents="any", search=cp.Search(copies=3)))


@pytest.fixture(scope="module")
def honest():
    """Certificates as they are written: of the hold-out mechanism, of one agent's ETC, and with limited arms."""
    return {
        "holdout-h-etc": certificate_of(MINE, HOLDOUT),
        "etc": certificate_of(SOLO, cp.mechanism("etc", arm_rounds=40)),
        "capped": certificate_of(MINE, CAPPED),
        "attack": certificate_of(MINE, PAPERS),
        "uniform-etc": certificate_of(MINE, cp.mechanism("uniform-etc", arm_rounds=40)),
        "other market": certificate_of(OTHER, PAPERS),
    }


def edited(data, *path, to):
    return with_change(data, path, to)


def written(folder, data):
    path = folder / "certificate.json"
    path.write_text(json.dumps(data))
    return path


def test_a_certificate_about_another_market_is_told_apart(tmp_path, honest):
    """The same names, horizon and mechanism: one original of a sure mean, so nothing can pay, and in mine it does."""
    path = written(tmp_path, honest["other market"])
    (tmp_path / "mine.toml").write_text(market_to_toml(MINE))
    run = CliRunner()
    accepted = run.invoke(app, ["verify", str(path)])
    assert accepted.exit_code == 0
    assert "prior of 'ana'  1 original, 0.5\n" in accepted.stdout
    asked = ["--market", str(tmp_path / "mine.toml"), "--mechanism", "h-etc-r", *SETTINGS]
    found = run.invoke(app, ["verify", str(path), *asked])
    assert found.exit_code == 1
    assert " ".join(found.stdout.split()) == (
        "Rejected It is about another market: 'ana' has 1 original, 0.5 in the certificate, and 2 originals, each "
        "0 (0.5) or 1 (0.5) in yours."
    )
    mine = written(tmp_path, honest["attack"])
    assert run.invoke(app, ["verify", str(mine), *asked]).exit_code == 0
    assert cp.audit(MINE, PAPERS, agent="ana").verdict == "exploitable"


def test_names_of_the_catalogue_fit_their_own_rules_only(honest):
    fits = {
        "holdout-h-etc": {"holdout-h-etc", "composed"},
        "etc": {"etc", "composed"},
        "capped": {"h-etc-r", "composed"},
        "attack": {"h-etc-r", "composed"},
        "uniform-etc": {"uniform-etc", "holdout-h-etc without an award", "composed"},
    }
    known = [*CATALOGUE, "composed", "holdout-h-etc without an award", "no such mechanism", "", None, 7, ["h-etc-r"]]
    for kind, names in fits.items():
        fit = [name for name in known if check(edited(honest[kind], "mechanism", "name", to=name)).accepted]
        assert set(fit) == names
    longer = edited(honest["holdout-h-etc"], "mechanism", "agent", "rounds", to=HOLDOUT.agent.explore + 1)
    assert not check(longer).accepted
    assert check(edited(longer, "mechanism", "name", to="composed")).accepted  # of rules like these, under no name


def test_a_mechanism_that_cannot_be_built_is_rejected(honest):
    """Everything that the library refuses, and everything that nobody reads."""
    holdout, flat, capped = honest["holdout-h-etc"], honest["etc"], honest["capped"]
    uniform = edited(holdout, "mechanism", "agent", to={"rule": "uniform"})
    uniform["mechanism"].update(score={"rounds": 1, "max_arms": 1}, restart=None)
    refused = {
        "a flat mechanism with a hold-out score": edited(flat, "mechanism", "score", to={"rounds": 1, "max_arms": 1}),
        "a flat mechanism with limited arms": edited(flat, "mechanism", "score", to={"kind": "capped", "max_arms": 2}),
        "a uniform choice with a score": uniform,
        "an unknown order of agents": edited(holdout, "mechanism", "agent", "order", to="by price"),
        "an unknown option of agents": edited(holdout, "mechanism", "agent", "speed", to=3),
        "an unknown option of arms": edited(flat, "mechanism", "arm", "speed", to=2),
        "an unknown option of a score": edited(holdout, "mechanism", "score", "bonus", to=1),
        "an unknown kind of score": edited(capped, "mechanism", "score", "kind", to="cap"),
        "a limit that is no number": edited(capped, "mechanism", "score", "max_arms", to="two"),
    }
    unread = {
        "a key of the mechanism": edited(holdout, "mechanism", "cap", to="none"),
        "parameters": edited(holdout, "mechanism", "parameters", to={"arm_rounds": 1}),
        "a key of the certificate": edited(holdout, "note", to="about your market"),
        "a key of the market": edited(holdout, "market", "gap", to=0.5),
        "a key of an agent": edited(holdout, "market", "agents", 0, "originals", to=5),
        "a key of the argument": edited(holdout, "argument", "by", to="theorem"),
        "a key of the witness": edited(honest["attack"], "witness", "by", to="search"),
        "an attack besides a proof": edited(holdout, "witness", to=honest["attack"]["witness"]),
        "copies of nobody": edited(honest["attack"], "witness", "copies", "cy", to=[1]),
    }
    for what, forged in {**refused, **unread}.items():
        found = check(forged)
        assert not found.accepted, what
        assert found.statement
        assert found.about == ()
    for forged in refused.values():
        with pytest.raises((CloneproofError, TypeError)):
            mechanism_from_dict(forged["mechanism"])


def test_a_limit_that_was_tampered_with_is_rejected_or_still_true(honest):
    """With three arms the attack on Theorem 4 pays; with one an honest agent has no score."""
    data = honest["capped"]
    assert check(data).accepted
    for most in (3, 4, 10, 0, -2, 2.0, True, None):
        assert not check(edited(data, "mechanism", "score", "max_arms", to=most)).accepted, most
    assert not check(edited(data, "mechanism", "score", to=None)).accepted
    one = check(edited(data, "mechanism", "score", "max_arms", to=1))
    by_search = cp.audit(
        MINE, cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36, max_arms=1), agent="ana", opponents="any"
    )
    assert one.accepted == (by_search.verdict == "clone-proof")


def test_the_accepted_lines_say_what_it_is_about(tmp_path, honest):
    path = written(tmp_path, honest["capped"])
    out = CliRunner().invoke(app, ["verify", str(path)]).stdout
    assert all(len(line) <= 100 for line in out.splitlines())
    assert "prior of 'ana'  2 originals, each 0 (0.5) or 1 (0.5)\n" in out
    found = json.loads(CliRunner().invoke(app, ["verify", str(path), "--json"]).stdout)
    assert found["about"]["max arms (K)"].startswith("2;")
    assert found["about"]["prior of 'bo'"] == "1 original, 0.6"
    attack = dict(cp.verify(written(tmp_path, honest["attack"])).about)
    assert "registers 1" in attack["attack: 'bo'"]
    assert attack["max arms (K)"] == "no limit"
    assert dict(cp.verify(written(tmp_path, honest["etc"])).about)["agents"] == "one level"


def test_a_name_cannot_write_lines_of_its_own(tmp_path, honest):
    """Whoever writes the file chooses the agents' names."""
    name = "ana\n  horizon: 10 rounds\x1b[2K"
    data = edited(honest["capped"], "market", "agents", 1, "name", to=name)
    out = CliRunner().invoke(app, ["verify", str(written(tmp_path, data))]).stdout
    assert out.startswith("Accepted\n")
    assert len([line for line in out.splitlines() if line.strip().startswith("horizon")]) == 1
    assert "\x1b" not in out


def changes():
    """A market or a mechanism that is not the certificate's, and what is said of it."""
    cy = cp.Agent("cy", 1, cp.Point(0.6))
    weights = cp.Discrete([0, 1], [0.25, 0.75])
    h_etc_r = {"agent_rounds": 72, "arm_rounds": 36, "max_arms": 2}
    return [
        ({"market": MINE.with_horizon(4001)}, "another market: its horizon is 4000 in the certificate, and 4001"),
        ({"market": cp.Market(MINE.agents, 4000, share=0.5)}, "another market: its share is 1.0"),
        ({"market": cp.Market(MINE.agents, 4000, rewards="deterministic")}, "another market: its rewards are"),
        ({"market": cp.Market([MINE.agents[0], cy], 4000)}, "another market: its agents are"),
        ({"market": cp.Market([*MINE.agents, cy], 4000)}, "another market: its agents are"),
        ({"market": cp.Market(MINE.agents[::-1], 4000)}, "another market: its agents are"),
        ({"market": cp.Market([cp.Agent("ana", 2, weights), BO], 4000)}, "another market: 'ana' has 2 originals"),
        ({"market": cp.Market([cp.Agent("ana", 3, COIN), BO], 4000)}, "and 3 originals"),
        ({"market": cp.Market([MINE.agents[0], cp.Agent("bo", 1, COIN)], 4000)}, "another market: 'bo' has"),
        ({"mechanism": HOLDOUT}, "another mechanism: its name is 'h-etc-r' in the certificate, and 'holdout-h-etc'"),
        ({"mechanism": PAPERS}, "another mechanism: its score is"),
        ({"mechanism": cp.mechanism("h-etc-r", **h_etc_r | {"max_arms": 1})}, "another mechanism: score max_arms is 2"),
        ({"mechanism": cp.mechanism("h-etc-r", **h_etc_r | {"arm_rounds": 35})}, "arm rounds is 36"),
        ({"mechanism": cp.mechanism("h-etc-r", **h_etc_r | {"agent_rounds": 73})}, "agent rounds is 72"),
        ({"mechanism": cp.mechanism("h-etc-r", **h_etc_r, order="block")}, "arm order is 'round-robin'"),
        ({"mechanism": lambda market: PAPERS, "market": MINE}, "another mechanism: its score is"),
    ]


@pytest.mark.parametrize(("asked", "words"), changes())
def test_only_a_certificate_about_exactly_that_is_accepted(tmp_path, honest, asked, words):
    found = cp.verify(written(tmp_path, honest["capped"]), **asked)
    assert found.outcome == "rejected"
    assert words in found.statement
    assert found.statement.startswith("it is about another")


def test_what_it_is_about_is_accepted(tmp_path, honest):
    by_hand = cp.Mechanism(
        agent=cp.rule("etc", rounds=72), arm=cp.rule("etc", rounds=36), restart="award", score=cp.parts.Capped(2)
    )
    path = written(tmp_path, honest["capped"])
    for mechanism in (CAPPED, by_hand, lambda market: CAPPED, None):
        assert cp.verify(path, market=MINE, mechanism=mechanism).accepted
    assert cp.verify(path, mechanism=CAPPED).accepted
    named = certificate_of(MINE, by_hand)
    assert named["mechanism"]["name"] == "composed"
    assert cp.verify(written(tmp_path, named), market=MINE, mechanism=CAPPED).accepted
    assert cp.verify(written(tmp_path, honest["holdout-h-etc"]), market=MINE, mechanism=HOLDOUT).accepted
    short = MINE.with_horizon(40)  # no award: the fallback runs, and is what is certified
    for market, mechanism in ((short, HOLDOUT), (short, CAPPED)):
        data = certificate_of(market, mechanism)
        assert cp.verify(written(tmp_path, data), market=market, mechanism=mechanism).accepted
        assert not cp.verify(written(tmp_path, data), market=MINE, mechanism=mechanism).accepted


def test_a_name_of_ones_own_is_left_out(tmp_path):
    own = cp.Mechanism(agent=cp.rule("uniform"), arm=cp.rule("etc", rounds=40), name="our market's")
    data = certificate_of(MINE, own)
    assert data["mechanism"]["name"] == "composed"
    assert cp.verify(written(tmp_path, data), market=MINE, mechanism=own).accepted


def test_bad_questions_get_one_sentence(tmp_path, honest):
    path = written(tmp_path, honest["capped"])
    for asked, words in (
        ({"market": "market.toml"}, "expected a market"),
        ({"mechanism": "h-etc-r"}, "expected a mechanism to compare with"),
        ({"mechanism": lambda market: CAPPED}, "expected a mechanism to compare with"),
        ({"market": MINE, "mechanism": lambda market: "h-etc-r"}, "expected a mechanism to compare with"),
    ):
        with pytest.raises(cp.errors.CloneproofError, match=words):
            cp.verify(path, **asked)
    for arguments, words in (
        (["--mechanism", "h-etc-r"], "expected --market MARKET.toml with --mechanism"),
        (["--set", "arm_rounds=3"], "expected --mechanism NAME with --set"),
    ):
        with pytest.raises(CloneproofError, match=words):
            CliRunner().invoke(app, ["verify", str(path), *arguments], catch_exceptions=False)


def test_damaged_descriptions_are_left_to_the_checker(tmp_path, honest):
    for path, to in (
        (("market", "agents"), [{"name": "ana"}, {"name": "bo"}]),
        (("market",), {}),
        (("mechanism",), None),
        (("market", "horizon"), "long"),
    ):
        damaged = written(tmp_path, edited(honest["capped"], *path, to=to))
        assert not cp.verify(damaged, market=MINE, mechanism=CAPPED).accepted


@pytest.mark.parametrize("tolerance", [1, 1e308, float("inf"), -0.1, "0"])
@pytest.mark.parametrize("name", ["holdout-h-etc", "attack"])
def test_a_tolerance_that_proves_nothing_is_rejected(honest, name, tolerance):
    assert not check(edited(honest[name], "tolerance", to=tolerance)).accepted


def test_a_key_that_stands_twice_is_refused(honest, tmp_path):
    text = json.dumps(honest["holdout-h-etc"]).replace('"agent": "ana"', '"agent": "bo", "agent": "ana"', 1)
    path = tmp_path / "certificate.json"
    path.write_text(text)
    with pytest.raises(cp.errors.CertificateError, match="'agent' stands twice"):
        cp.verify(path)
    assert run_command("verify", path).returncode == 2


def heavy(values, rounds, arms, scored):
    """A certificate of 17 to 150 kB that would take minutes to check."""
    prior = [[(k + 1) / (values + 1), 1 / values] for k in range(values)]
    trial = arms * rounds + scored
    etc = {"rule": "etc", "choice": "commit", "order": "round-robin"}
    vectors = [(total - b, b) for total in range(3, arms + 1) for b in range(1, total // 2 + 1)]
    return {
        "format": "cloneproof certificate", "version": 1, "agent": "ana", "verdict": "clone-proof", "tolerance": 0.5,
        "market": {
            "horizon": 20 * trial, "share": 1.0, "rewards": "bernoulli",
            "agents": [{"name": "ana", "priors": [prior, prior]}, {"name": "bo", "priors": None}],
        },
        "mechanism": {
            "name": "composed", "agent": etc | {"rounds": trial}, "arm": etc | {"rounds": rounds}, "restart": "award",
            "score": {"kind": "hold-out", "rounds": scored, "max_arms": arms},
        },
        "argument": {
            "copies": [{"copies": list(each), "bound": 0.0} for each in vectors], "from_arms": arms + 1, "bound": 0.0,
        },
    }  # fmt: skip


@pytest.mark.parametrize("size", [(40, 3, 40, 19_000), (2, 4000, 60, 300), (2, 1, 250, 19_000), (100, 3, 40, 200)])
def test_what_would_take_minutes_to_check_is_refused(size, monkeypatch):
    """Before the work is done: a thirtieth of the allowance is enough to see it."""
    monkeypatch.setattr("cloneproof.analysis.certificate.checker.MOST_WORK", 10**7)
    found = check(heavy(*size))
    assert not found.accepted
    assert "operations" in found.statement
