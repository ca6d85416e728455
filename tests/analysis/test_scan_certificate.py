"""Certificates of scan mechanisms: accepted, and rejected where anything in them is not so."""

import json

import pytest

import cloneproof as cp
from cloneproof.analysis.certificate.verification import check
from cloneproof.analysis.certificate.writer import checked_certificate
from support.changes import with_change

PRIOR = cp.Discrete([0.0, 0.25, 0.5], [0.25, 0.5, 0.25])
MARKET = cp.Market([cp.Agent("ana", 3, PRIOR), cp.Agent("bo", 2, cp.Uniform(0.2, 0.8))], horizon=500, share=0.5)
MECHANISMS = {
    "first pass": cp.mechanism("reservoir", rounds=4, draws=3, threshold=3),
    "fresh draw": cp.mechanism("reservoir", rounds=4, draws=3, threshold=3, fallback="draw"),
    "best": cp.mechanism("reservoir", rounds=4, draws=3, choose="best"),
    "contest": cp.mechanism("reservoir-contest", rounds=4, draws=3, threshold=3, horizon=500),
    "ucb contest": cp.mechanism("reservoir-contest", rounds=4, draws=3, horizon=500, contest="ucb"),
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A certificate of each mechanism, as data."""
    folder, found = tmp_path_factory.mktemp("certificates"), {}
    for name, mechanism in MECHANISMS.items():
        path = folder / f"{name}.json"
        cp.write_certificate(cp.audit(MARKET, mechanism, agent="ana", opponents="any"), path)
        assert cp.verify(path).outcome == "accepted"
        found[name] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize("name", MECHANISMS)
def test_it_says_what_it_is_about(certificates, name):
    data = certificates[name]
    assert data["argument"] == {
        "kind": "scan",
        "law": {"scores": "binomial", "pulls": 4, "means": ["0/1", "1/4", "1/2"]},
    }
    statement = check(data).statement
    for words in ("no copies and no withholding", "'ana'", "every horizon", "3 draws of 4 pulls", "make prove"):
        assert words in statement


def test_no_number_of_pulls_is_too_many():
    prior = cp.Discrete([0.002, 0.004, 0.006], [1 / 3] * 3)
    market = cp.Market([cp.Agent(f"a{k}", 3, prior) for k in range(20)], horizon=10**8)
    audit = cp.audit(market, cp.mechanism("reservoir", rounds=38_528, draws=2, threshold=205), opponents="any")
    assert check(checked_certificate(audit)).accepted


LAW = ("argument", "law")
TAMPERED = [
    (("agent",), "cy"),
    (("agent",), "bo"),  # a continuous prior is not listed
    (("unknown",), 1),
    (("argument", "unknown"), 1),
    ((*LAW, "unknown"), 1),
    (("market", "unknown"), 1),
    (("mechanism", "unknown"), 1),
    (("mechanism", "restart"), "award"),
    (("mechanism", "sample"), {"factor": 1, "scope": "all"}),
    (("mechanism", "score"), {"rounds": 3, "max_arms": 4}),
    (("mechanism", "name"), "ucb1"),
    (("mechanism", "name"), "reservoir-contest"),
    (("mechanism", "agent"), {"rule": "uniform"}),
    (("mechanism", "arm", "rule"), "ucb"),
    (("mechanism", "arm", "rule"), "best-of-draws"),
    (("mechanism", "arm", "unknown"), 1),
    (("mechanism", "arm", "rounds"), 5),
    (("mechanism", "arm", "threshold"), 5),
    (("mechanism", "arm", "threshold"), 2.5),
    (("mechanism", "arm", "fallback"), "worst"),
    (("mechanism", "arm", "draws"), 0),
    (("market", "rewards"), "gaussian"),
    (("market", "share"), 2),
    (("market", "horizon"), 0),
    (("market", "agents", 0, "priors"), None),
    (("market", "agents", 0, "priors"), []),
    (("market", "agents", 0, "priors", 0, 0, 0), 0.125),  # originals of different priors
    (("market", "agents", 0, "priors", 0, 0, 1), 0.3),
    (("market", "agents", 1, "name"), "ana"),
    ((*LAW, "scores"), "poisson"),
    ((*LAW, "pulls"), 5),
    ((*LAW, "means"), []),
    ((*LAW, "means"), ["0/1", "1/2", "1/4"]),
    ((*LAW, "means"), ["0/1", "1/4", "1/4"]),
    ((*LAW, "means"), ["0/1", "1/4"]),
    ((*LAW, "means"), ["0/1", "1/4", "1/2", "3/4"]),
    ((*LAW, "means"), ["0/1", "1/4", "3/2"]),
    ((*LAW, "means"), ["0/1", "2/8", "1/2"]),
    ((*LAW, "means"), [0.0, 0.25, 0.5]),
    (LAW, None),
    (LAW, {"scores": "table", "pulls": 4, "means": ["0/1", "1/4", "1/2"], "chances": [["1/2"] * 5] * 3}),
    (("tolerance",), -1),
]


@pytest.mark.parametrize(("path", "value"), TAMPERED)
def test_what_is_not_so_is_rejected(certificates, path, value):
    assert not check(with_change(certificates["first pass"], path, value)).accepted


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("score", "after"), 11),  # before all tests are over
        (("score", "after"), 13),  # the agents' exploration ends first
        (("score", "kind"), "all"),
        (("score",), None),
        (("agent", "rule"), "ucb"),
        (("agent", "rounds"), 12),
        (("agent", "constant"), 0),
        (("agent", "order"), "best first"),
        (("agent",), None),
    ],
)
def test_a_changed_contest_is_rejected(certificates, path, value):
    assert not check(with_change(certificates["contest"], ("mechanism", *path), value)).accepted


def test_what_has_no_certificate_says_so(tmp_path):
    audit = cp.audit(MARKET, MECHANISMS["first pass"], agent="bo")
    assert audit.verdict == "clone-proof"


@pytest.mark.parametrize("name", MECHANISMS)
def test_it_is_about_this_market_and_mechanism(certificates, tmp_path, name):
    path = tmp_path / "certificate.json"
    path.write_text(json.dumps(certificates[name]))
    found = cp.verify(path, market=MARKET, mechanism=MECHANISMS[name])
    assert found.accepted
    assert dict(found.about)["mechanism"] == MECHANISMS[name].name
    others = [mechanism for other, mechanism in MECHANISMS.items() if other != name]
    assert not any(cp.verify(path, market=MARKET, mechanism=other).accepted for other in others)
    assert not cp.verify(path, market=MARKET.with_horizon(400)).accepted
