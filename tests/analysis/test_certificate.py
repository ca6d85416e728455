"""Certificates: two implementations agree, tampering is found out unless it stays true, damage is called damage."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from flint import ctx

import cloneproof as cp
from cloneproof import verify
from cloneproof.analysis.audit.dominance import WorstOpponents, dominance, enclosed_witness, realise
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.certificate import bars_checker, checker, document
from cloneproof.analysis.certificate.document import FORMAT
from cloneproof.analysis.certificate.verification import PRECISION, check
from cloneproof.analysis.certificate.writer import mechanism_data, write_certificate
from cloneproof.errors import CertificateError
from support.changes import with_change

THREE = cp.Discrete([0, 0.5, 1], [0.25, 0.5, 0.25])
MARKET = cp.Market([cp.Agent("ana", 2, THREE), cp.Agent("bo", 1, cp.Point(0.6))], horizon=600, share=0.5)


def audited(mechanism, market=MARKET, tolerance=0.0, max_copies=4):
    search = cp.Search(copies=max_copies)
    return cp.audit(market, mechanism, agent=market.agents[0].name, opponents="any", tolerance=tolerance, search=search)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """One certificate of each kind, as data."""
    folder = tmp_path_factory.mktemp("certificates")
    audits = {
        "clone-proof": audited(cp.mechanism("holdout-h-etc", market=MARKET, max_arms=4, score_rounds=20)),
        "exploitable": audited(cp.mechanism("h-etc-r", agent_rounds=20, arm_rounds=6)),
    }
    found = {}
    for verdict, audit in audits.items():
        assert audit.verdict == verdict
        write_certificate(audit, folder / f"{verdict}.json")
        found[verdict] = json.loads((folder / f"{verdict}.json").read_text())
    return found


KINDS = [
    ("holdout-h-etc", "bernoulli", 2, {}),
    ("holdout-h-etc", "deterministic", 2, {"max_arms": 4}),
    ("holdout-h-etc", "bernoulli", 3, {"max_arms": 4, "order": "block"}),
    ("holdout-h-etc", "bernoulli", 2, {"arm_rounds": 1, "max_arms": 4, "score_rounds": 3}),
    ("h-etc-r", "bernoulli", 2, {"arm_rounds": 5, "agent_rounds": 30}),
    ("h-etc-r", "bernoulli", 3, {"arm_rounds": 7, "agent_rounds": 14, "order": "block"}),
    ("h-etc-r", "deterministic", 3, {"arm_rounds": 7, "agent_rounds": 17}),
    ("h-etc-r", "bernoulli", 2, {"max_arms": 2}),
    ("h-etc-r", "bernoulli", 3, {"max_arms": 4, "arm_rounds": 30, "agent_rounds": 120, "order": "block"}),
    ("h-etc-r", "deterministic", 2, {"max_arms": 3, "arm_rounds": 7, "agent_rounds": 21}),
    ("h-etc-r", "bernoulli", 2, {"max_arms": 4, "arm_rounds": 5, "agent_rounds": 12}),
    ("uniform-etc", "bernoulli", 2, {}),
    ("uniform-etc", "bernoulli", 2, {"arm_rounds": 1}),
    ("etc", "bernoulli", 1, {}),
]


@pytest.mark.parametrize(("name", "rewards", "agents", "options"), KINDS)
def test_every_kind_of_verdict_is_verified(tmp_path, name, rewards, agents, options):
    market = cp.Market([cp.Agent(f"a{i}", 2, THREE) for i in range(agents)], horizon=900, rewards=rewards, share=0.3)
    found = audited(cp.mechanism(name, market=market, **options), market, max_copies=3)
    assert found.verdict != "undecided"
    write_certificate(found, tmp_path / "c.json")
    verified = verify(tmp_path / "c.json")
    assert verified.accepted, verified.statement
    assert "'a0'" in verified.statement


def test_checker_agrees_with_the_engine_on_every_mechanism_of_the_family():
    """The witness's payoffs are enclosed by both; here also where nothing pays, and with many copies."""
    for order in ("round-robin", "block"):
        for rounds in (3, 10, 14, 25):
            mechanism = cp.mechanism("h-etc-r", agent_rounds=rounds, arm_rounds=4, order=order)
            for rewards in ("bernoulli", "deterministic"):
                market = replace(MARKET, horizon=200, rewards=rewards)
                data = {"agents": [], "horizon": 200, "share": 0.5, "rewards": rewards}
                for agent in market.agents:
                    data["agents"].append({"name": agent.name, "priors": [list(p.atoms) for p in agent.priors]})
                game = checker.Game(data, mechanism_data(mechanism))
                for copies in ((1, 1), (2, 1), (1, 5), (3, 3)):
                    own = cp.evaluate(market, mechanism, {"ana": copies}, arithmetic="ball").payoff["ana"]
                    with ctx.workprec(PRECISION):  # its laws are kept, and must not be kept coarse
                        again = float(checker._payoff(game, "ana", {"ana": copies, "bo": (1,)})) * 0.5
                    assert again == pytest.approx(own.value, abs=1e-9 + own.error)


def test_a_witness_among_opponents_without_a_score(tmp_path):
    market = replace(MARKET, horizon=2000)
    mechanism = cp.mechanism("holdout-h-etc", arm_rounds=1, score_rounds=4, max_arms=4)
    case = audit_case(market, mechanism, "ana")
    witness = enclosed_witness(case, *realise(case, (2, 2), WorstOpponents(None, 1.0)), 0.0)
    assert witness is not None
    assert sum(witness.all_copies["bo"]) == 5
    found = replace(audited(mechanism, market), worst=witness)
    write_certificate(found, tmp_path / "c.json")
    assert verify(tmp_path / "c.json").accepted


def test_opponents_that_do_not_matter_may_be_anything(tmp_path):
    market = cp.Market([cp.Agent("ana", 2, THREE), cp.Agent("bo", 1, cp.Beta(2, 3))], horizon=900, gap=0.5)
    for mechanism, verdict in (
        (cp.mechanism("holdout-h-etc", market=market, score_rounds=20), "clone-proof"),
        (cp.mechanism("h-etc-r", arm_rounds=5, agent_rounds=12), "exploitable"),
    ):
        found = audited(mechanism, market)
        assert found.verdict == verdict
        write_certificate(found, tmp_path / "c.json")
        assert verify(tmp_path / "c.json").accepted


def test_different_priors_and_late_bounds(tmp_path):
    asymmetric = cp.Market([cp.Agent("ana", prior=[cp.Point(0.9), cp.Point(0.2)]), MARKET.agents[1]], horizon=600)
    found = audited(cp.mechanism("holdout-h-etc", arm_rounds=9, score_rounds=5, max_arms=4), asymmetric)
    assert found.verdict == "exploitable"  # copying the better one explores it more: outside the theorem
    write_certificate(found, tmp_path / "c.json")
    assert verify(tmp_path / "c.json").accepted
    tight = audited(cp.mechanism("uniform-etc", arm_rounds=6), replace(MARKET, horizon=300))
    assert tight.verdict == "clone-proof"
    write_certificate(tight, tmp_path / "c.json")
    assert verify(tmp_path / "c.json").accepted


def test_copies_that_may_win_every_award_need_more_than_a_bound(certificates):
    """Everything with a score left to the bound, of equals and of originals of which one is always the best."""
    empty = {"copies": [], "from_arms": 3, "bound": 0.0}
    assert not check(with_change(certificates["clone-proof"], ("argument",), empty)).accepted
    points = with_change(certificates["clone-proof"], ("market", "agents", 0, "priors"), [[[0.9, 1.0]], [[0.2, 1.0]]])
    assert not check(with_change(points, ("argument",), empty)).accepted
    equals = with_change(certificates["clone-proof"], ("market", "agents", 0, "priors"), [[[0.9, 1.0]]] * 2)
    assert check(with_change(equals, ("argument",), empty)).accepted


def numbers(data, path=()):
    """Where the numbers stand that a certificate claims something with."""
    if isinstance(data, dict):
        for key, value in data.items():
            if path or key not in ("version", "made_by"):
                yield from numbers(value, (*path, key))
    elif isinstance(data, list):
        for position, value in enumerate(data):
            yield from numbers(value, (*path, position))
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield path


def still_true(data):
    """Whether the search, asked afresh about what the certificate now says, comes to the same."""
    from cloneproof.mechanisms.mechanism import mechanism_from_dict

    def market_of(described):
        agents = [
            cp.Agent(a["name"], prior=[cp.Discrete(*zip(*p, strict=True)) for p in a["priors"]])
            for a in described["agents"]
        ]
        if len(set(agents[0].prior)) == 1:
            agents[0] = cp.Agent(agents[0].name, len(agents[0].prior), agents[0].prior[0])
        return cp.Market(agents, described["horizon"], described["share"], described["rewards"])

    mechanism = mechanism_from_dict(data["mechanism"])
    if data["verdict"] == "clone-proof":
        case = audit_case(market_of(data["market"]), mechanism, data["agent"])
        return "clone-proof" if dominance(case, 4, data["tolerance"]).argument.settles else "undecided"
    market, copies = market_of(data["witness"]["market"]), data["witness"]["copies"]
    payoffs = [
        cp.evaluate(market, mechanism, {**copies, data["agent"]: own}, arithmetic="ball").payoff[data["agent"]]
        for own in ((1,) * len(copies[data["agent"]]), copies[data["agent"]])
    ]
    enough = (payoffs[1] - payoffs[0]).low > data["tolerance"] * payoffs[0].high
    claims = zip(("honest", "copied", "gain"), (*payoffs, payoffs[1] - payoffs[0]), strict=True)
    right = all(
        abs(own.value - data["witness"][key]["value"]) <= data["witness"][key]["error"] + own.error
        for key, own in claims
    )
    return "exploitable" if enough and right else "no"


@pytest.mark.parametrize("verdict", ["clone-proof", "exploitable"])
def test_each_number_changed_is_rejected_or_still_true(certificates, verdict):
    data = certificates[verdict]
    assert check(data).accepted
    rejected = accepted = 0
    for path in numbers(data):
        value = data
        for key in path:
            value = value[key]
        for changed in (value + 1, value * 2 + 0.25, -value - 1, value - 1, 0.9 * value if value else 0.125):
            tampered = with_change(data, path, changed)
            if not check(tampered).accepted:
                rejected += 1
                continue
            accepted += 1
            assert still_true(tampered) == verdict, path
    assert rejected > 3 * accepted > 0


def test_claims_that_prove_nothing_are_rejected(certificates):
    proof, attack = certificates["clone-proof"], certificates["exploitable"]
    for wrong in (
        with_change(proof, ("argument", "copies"), proof["argument"]["copies"][1:]),  # a vector left out
        with_change(proof, ("argument", "from_arms"), proof["argument"]["from_arms"] + 1),  # more left out
        with_change(proof, ("argument", "copies", 0, "bound"), 1.0),  # true, and no proof
        with_change(proof, ("argument", "copies", 0, "bound"), -1e6),  # not true
        with_change(proof, ("argument", "bound"), -1e6),
        with_change(proof, ("mechanism", "arm", "rounds"), 1),
        with_change(proof, ("mechanism", "arm", "order"), "index"),
        with_change(proof, ("mechanism", "arm", "choice"), "greedy"),
        with_change(proof, ("mechanism", "restart"), None),
        with_change(proof, ("verdict",), "undecided"),
        with_change(proof, ("verdict",), "exploitable"),
        with_change(proof, ("agent",), "nobody"),
        with_change(proof, ("market", "rewards"), "gaussian"),
        with_change(attack, ("verdict",), "clone-proof"),
        with_change(attack, ("witness", "copies", "ana"), [1, 1]),
        with_change(attack, ("witness", "market", "share"), 1.0),
        with_change(attack, ("tolerance",), 1e3),
        with_change(attack, ("witness",), {}),
        with_change(attack, ("market", "horizon"), "long"),
        with_change(attack, ("market", "horizon"), float("nan")),
    ):
        assert not check(wrong).accepted


def test_a_certificate_is_written_for_what_was_proven_only(tmp_path):
    path = tmp_path / "c.json"
    found = audited(cp.mechanism("h-etc-r", agent_rounds=20, arm_rounds=6))
    sampled = replace(found, worst=replace(found.worst, gain=replace(found.worst.gain, kind="confidence")))
    for audit, words in (
        (sampled, "no replay record of a gain that was computed in floats"),
        (replace(found, verdict="undecided"), "undecided"),
        (replace(found, verdict="clone-proof"), "rejects"),
        (replace(found, verdict="clone-proof", thresholds=()), "opponents='any'"),
        (replace(found, mechanism=cp.mechanism("h-ucb")), "rejects"),
    ):
        with pytest.raises(CertificateError, match=words):
            write_certificate(audit, path)
    with pytest.raises(CertificateError, match="folder"):
        write_certificate(found, tmp_path / "nowhere" / "c.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "ends early"),
        ('{"format": "cloneproof certificate", "ver', "ends early"),
        ("[1, 2]", "other JSON"),
        ('{"format": "cloneproof session", "version": 1}', "other JSON"),
        (json.dumps({"format": FORMAT, "version": 99}), "version 99"),
        (json.dumps({"format": FORMAT}), "version None"),
        (json.dumps({"format": FORMAT, "version": 1, "agent": "ana"}), "without verdict"),
        ("[" * 100_000, "ends early"),
    ],
)
def test_unreadable_files(tmp_path, text, words):
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(CertificateError, match=words):
        verify(path)
    with pytest.raises(CertificateError, match="readable"):
        verify(tmp_path / "none.json")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CertificateError, match="ends early"):
        verify(path)


def test_every_cut_of_a_certificate_is_unreadable(tmp_path, certificates):
    text = json.dumps(certificates["clone-proof"])
    for end in range(0, len(text) - 1, 97):
        (tmp_path / "c.json").write_text(text[:end])
        with pytest.raises(CertificateError):
            verify(tmp_path / "c.json")


def test_the_checker_is_small_and_on_its_own():
    """The checker and its reader import each other and nothing else of ours but the errors."""
    lines = [line for module in (checker, document) for line in Path(module.__file__).read_text().splitlines()]
    assert len(lines) < 800
    imported = {line.split()[1] for line in lines if line.strip().startswith(("from cloneproof", "import cloneproof"))}
    assert imported == {"cloneproof.analysis.certificate.document", "cloneproof.errors"}
    of_bars = [line for line in Path(bars_checker.__file__).read_text().splitlines() if line.startswith("from clonep")]
    assert {line.split()[1].removeprefix("cloneproof.analysis.certificate.") for line in of_bars} == {
        "checker",
        "document",
    }


def test_hostile_certificates_are_refused_before_the_work(certificates):
    """Numbers within the format that would take hours: the work is counted before it is done."""
    attack, proof = certificates["exploitable"], certificates["clone-proof"]
    long = with_change(attack, ("mechanism", "arm", "rounds"), 19_000)
    for hostile in (
        with_change(long, ("mechanism", "agent", "rounds"), 19_999),
        with_change(attack, ("witness", "copies", "ana"), [10**6, 10**6]),
        with_change(attack, ("witness", "copies", "ana"), [10**14, 1]),
        with_change(proof, ("argument", "from_arms"), 10**15),
        with_change(proof, ("market", "agents", 0, "priors"), [[[k / 512, 1 / 512] for k in range(512)]] * 9),
    ):
        found = check(hostile)
        assert not found.accepted
        assert found.seconds < 60  # minutes below what the work would take
