"""Replay records: the same bits come out, tampering is found out, and nobody calls them certificates."""

import json
from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.analysis.replay_record import replay, replay_record
from support.changes import with_change
from support.command import run

COIN = cp.Discrete([0, 1], [0.5, 0.5])
MARKET = cp.Market([cp.Agent("ana", 1, COIN), cp.Agent("bo", 1, cp.Point(0.5))], horizon=90)


@pytest.fixture(scope="module")
def audit():
    found = cp.audit(MARKET, cp.mechanism("thompson"), agent="bo", search=cp.Search(copies=2, runs=2048))
    assert (found.verdict, found.worst.gain.kind) == ("exploitable", "asymptotic")
    return found


@pytest.fixture(scope="module")
def data(audit):
    return json.loads(json.dumps(replay_record(audit)))


def changed(data, *path, to):
    return with_change(data, path, to)


def test_a_record_is_replayed_and_never_accepted(audit, tmp_path):
    cp.results.write_replay(audit, tmp_path / "record.json")
    found = cp.verify(tmp_path / "record.json")
    assert (found.kind, found.replayed, found.accepted, found.outcome) == ("replay record", True, False, "replayed")
    assert "evidence, not a proof" in found.statement
    assert f"copies {audit.worst.copies}" in found.statement
    text = (tmp_path / "record.json").read_text()
    assert "certificate" not in text
    assert json.loads(text)["made_by"]["cloneproof"]


def test_every_claim_of_a_record_is_checked(data):
    assert replay(data).replayed
    first = data["deviations"][0]
    worst = [data["worst"][key] for key in ("agent", "copies", "horizon")]
    place = [[one[key] for key in ("agent", "copies", "horizon")] for one in data["deviations"]].index(worst)
    sums = first["sums"]["sums"]
    doubled = data["deviations"] * 2
    for tampered in (
        changed(data, "deviations", 0, "sums", "sums", to=[(0.03125).hex(), *sums[1:]]),
        changed(data, "deviations", 0, "sums", "count", to=first["sums"]["count"] + 1),
        changed(data, "deviations", 0, "pairs", to=first["pairs"] + 2),
        changed(data, "deviations", 0, "copies", to=[7]),
        changed(data, "deviations", 0, "agent", to="eve"),
        changed(data, "deviations", 0, "gain", "error", to=1e-9),
        changed(data, "deviations", 0, "honest", "value", to=0.5),
        changed(data, "deviations", place, "gain", "value", to=99.0),
        changed(data, "deviations", to=doubled),
        changed(data, "deviations", to=data["deviations"][:place] + data["deviations"][place + 1 :]),
        changed(data, "deviations", to=[]),
        changed(data, "deviations", 0, "seed", to=1),
        changed(data, "deviations", 0, "seed", to="x"),
        changed(data, "deviations", place, "confidence", to=0.5),
        changed(data, "deviations", place, "confidence", to=1.0),
        changed(data, "tolerance", to=10.0),
        changed(data, "verdict", to="undecided"),
        changed(data, "verdict", to="clone-proof"),
        changed(data, "verdict", to="certain"),
        changed(data, "worst", "copies", to=[3]),
        changed(data, "market", to=data["market"].replace("horizon = 90", "horizon = 91").replace("0.5", "0.6")),
        changed(data, "market", to="no market"),
        changed(data, "mechanisms", 0, "mechanism", "arm", "rule", to="ucb"),
        changed(data, "mechanisms", to=[]),
        changed(data, "deviations", 0, "pairs", to=10**14),
        changed(data, "deviations", 0, "horizon", to=10**14),
    ):
        found = replay(tampered)
        assert (found.replayed, found.outcome) == (False, "not reproduced")
        assert found.statement
        assert found.seconds < 60


def test_exact_audits_have_no_record_and_sampled_ones_no_certificate(audit, tmp_path):
    two_phases = cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=1)
    exact = cp.audit(replace(MARKET, horizon=200), two_phases, search=cp.Search(copies=2), opponents="any")
    with pytest.raises(cp.errors.CertificateError, match="write_certificate"):
        cp.results.write_replay(exact, tmp_path / "r.json")
    cp.write_certificate(exact, tmp_path / "c.json")  # the advice works
    (tmp_path / "c.json").unlink()
    with pytest.raises(cp.errors.CertificateError, match="write_replay"):
        cp.write_certificate(audit, tmp_path / "r.json")
    with pytest.raises(cp.errors.CertificateError, match="folder"):
        cp.results.write_replay(audit, tmp_path / "nowhere" / "r.json")
    assert list(tmp_path.iterdir()) == []


def test_neither_message_sends_to_the_other_where_there_is_nothing(tmp_path):
    """An attack by the state tree is computed in floats: no samples to replay, and no enclosure to certify."""
    market = cp.Market([cp.Agent("ana", 2, COIN)], horizon=7)
    floats = cp.audit(market, cp.mechanism("ucb1"), search=cp.Search(copies=2))
    assert (floats.verdict, floats.worst.gain.kind) == ("exploitable", "estimated")
    competing = cp.audit(MARKET, cp.mechanism("etc", arm_rounds=24), search=cp.Search(copies=2))
    assert competing.samples == ()
    for audit in (floats, competing):
        for write, other in ((cp.write_certificate, "write_replay"), (cp.results.write_replay, "write_certificate")):
            with pytest.raises(cp.errors.CertificateError) as refused:
                write(audit, tmp_path / "file.json")
            assert other not in str(refused.value)
            assert "opponents='any'" not in str(refused.value)  # which would be refused here


def test_a_rule_that_no_file_can_hold_is_said(audit, tmp_path):
    def priority(inputs):
        return inputs.mean

    own = cp.Mechanism(arm=cp.parts.Rule("my own", priority, ()))
    odd = replace(audit, samples=tuple(replace(one, mechanism=own) for one in audit.samples))
    with pytest.raises(cp.errors.CertificateError, match="a file can hold"):
        cp.results.write_replay(odd, tmp_path / "r.json")


@pytest.mark.parametrize(("key", "value", "words"), [("version", 1, "version 1"), ("worst", None, "without worst")])
def test_records_of_other_versions_and_parts_of_records_are_unreadable(data, tmp_path, key, value, words):
    made = {name: own for name, own in data.items() if name != key} | ({key: value} if value else {})
    (tmp_path / "r.json").write_text(json.dumps(made))
    with pytest.raises(cp.errors.CertificateError, match=words):
        cp.verify(tmp_path / "r.json")


def test_a_record_that_would_take_days_ends_in_time_and_says_what_was_checked(data, tmp_path):
    """The last deviation has a quarter of a billion pairs, which nobody draws in a second."""
    last = len(data["deviations"]) - 1
    long = changed(data, "deviations", last, "pairs", to=1 << 28)
    found = replay(long, seconds=0.1)
    assert (found.outcome, found.holds, found.out_of_time) == ("undecided", False, True)
    assert f" of {last + 1} deviations were drawn whole and came out the same" in found.statement
    tampered = changed(long, "deviations", 0, "pairs", to=data["deviations"][0]["pairs"] + 2)
    assert replay(tampered, seconds=60.0).outcome == "not reproduced"  # a difference that is found is one
    path = tmp_path / "record.json"
    path.write_text(json.dumps(long))
    done = run("verify", path, "--seconds", "0.5")
    assert done.returncode == 3
    assert done.stdout.startswith("Undecided\n0.5 s were over")
    assert f"rounds of {last + 1} deviations, drawn again for at most 0.5 s" in done.stderr
