"""Terms as files: a market file becomes terms, and a service that is started with them runs this market."""

from types import SimpleNamespace

import pytest

import cloneproof as cp
from cloneproof.advice.recommendation import terms_toml
from cloneproof.serve.run import read_terms
from cloneproof.serve.storage import open_storage
from cloneproof.serve.writer.writer import Writer
from support.command import run
from support.service import Desk, sqlite

RATES = "prior = { beta = [2, 20] }"
SHOPS = "\n".join(f'[[agents]]\nname = "shop-{n}"\noriginals = {1 + n % 3}\n{RATES}' for n in range(4))
SEGMENTS = "segments = { desk = 0.7, phone = 0.3 }"
FILES = {
    "plain": ("reservoir", "horizon = 5000"),
    "a share": ("reservoir-contest", "horizon = 20000\nshare = 0.25"),
    "a bandit": ("ucb1", "horizon = 5000"),
    "a random end": ("reservoir-index", 'horizon = 5000\nends = "at-random"'),
    "segments": ("reservoir", f"horizon = 20000\n{SEGMENTS}"),
    "segments to random ends": ("reservoir-index", f'horizon = 20000\nends = "at-random"\n{SEGMENTS}'),
    "pages": ("reservoir", "horizon = 5000\npositions = [1.0, 0.6, 0.4]"),
    "streams": ("reservoir-streams", "horizon = 5000\npositions = [1.0, 0.6]"),
    "pages in segments": ("reservoir", f"horizon = 20000\n{SEGMENTS}\n[positions]\ndesk = [1.0, 0.5]\nphone = [1.0]"),
    "late rewards": ("reservoir", 'horizon = 5000\ndelays = "independent"'),
    "gaussian": ("ucb1", 'horizon = 5000\nrewards = { family = "beta", concentration = 4.0 }'),
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_recommended_for_a_market_file_is_what_the_service_runs(tmp_path, name):
    chosen, head = FILES[name]
    (tmp_path / "market.toml").write_text(f"{head}\n{SHOPS}\n")
    market = cp.load_market(tmp_path / "market.toml")
    tuned = cp.mechanism(chosen, market=market) if chosen.startswith("reservoir") else cp.mechanism(chosen)
    advised = SimpleNamespace(name=tuned.name, parameters=tuned.parameters)
    (tmp_path / "terms.toml").write_text(terms_toml(market, advised, "feed"))
    writer = Writer(sqlite(tmp_path / "market.db"))
    assert writer.declare(read_terms(str(tmp_path / "terms.toml")))
    live = writer.markets.by_name["feed"]
    writer.storage.close()
    assert live.mechanism.to_dict() == tuned.to_dict()
    spec = live.spec
    assert (spec.horizon, spec.share, spec.ends) == (market.horizon, market.share, market.ends)
    assert spec.fractions == dict(market.segments)
    places = {k: tuple(v) for k, v in spec.positions.items()} if isinstance(spec.positions, dict) else spec.positions
    assert places == market.positions or tuple(places) == market.positions
    assert spec.family == market.family
    assert spec.wait_rounds == (market.horizon if market.delays == "independent" else market.horizon // 100)
    with Desk(sqlite(tmp_path / "market.db")) as desk:  # and seasons of it begin
        for agent in market.agents:
            assert desk.post("agents", {"agent": agent.name}).status_code == 201
            for arm in range(agent.originals):
                desk.post(f"agents/{agent.name}/arms", {"arm": f"{arm}"})
        assert desk.post("start").json()["state"] == "running"
        where = {"segment": "desk"} if market.segments else {}
        path = "decisions" if market.positions is None else "slates"
        assert desk.post(path, {"request_id": "first"} | where).status_code == 200


def test_terms_that_differ_from_those_of_the_name_are_refused(tmp_path):
    place, terms = tmp_path / "market.db", tmp_path / "terms.toml"
    for text, code, words in (
        ('market = "feed"\nmechanism = "ucb1"\nhorizon = 100\n', None, None),
        ('market = "feed"\nmechanism = "ucb1"\nhorizon = 100\n', None, None),
        (
            'market = "feed"\nmechanism = "ucb1"\nhorizon = 200\nshare = 0.5\n',
            2,
            "other terms (horizon, share, wait_rounds)",
        ),
        (
            'market = "feed"\nmechanism = "ucb1"\nhorizont = 200\n',
            2,
            "unknown field `horizont`; expected some of market, ",
        ),
        ('market = "feed"\nmechanism = "ucb1"\n', 2, "missing required field `horizon`"),
        ('market = "feed"\nmechanism = "ucb9"\nhorizon = 100\n', 2, "unknown mechanism 'ucb9'"),
        ("market = \n", 2, "terms.toml"),
    ):
        terms.write_text(text)
        if code is None:  # which would serve until it is told to stop
            storage = open_storage(str(place))
            Writer(storage).declare(read_terms(str(terms)))
            storage.close()
        else:
            done = run("serve", place, "--port", "0", "--terms", terms)
            assert done.returncode == code
            assert words in done.stderr
    assert run("serve", place, "--terms", tmp_path / "none.toml").returncode == 2
    storage = open_storage(str(place))
    markets = Writer(storage).markets
    storage.close()
    assert {name: live.chain.n for name, live in markets.by_name.items()} == {"feed": 1}


@pytest.mark.parametrize(
    ("method", "path", "body", "fields"),
    [
        ("POST", "/v1/markets", {"name": "feed"}, "market, mechanism, horizon, ends"),
        ("POST", "/v1/markets/feed/decisions/batch", {"requests": []}, "items"),
        ("POST", "/v1/markets/feed/slates/batch", {"items": [{"id": "a"}]}, "request_id, segment"),
        ("POST", "/v1/markets/feed/rewards/batch", {"items": [{"reward": 1}]}, "event_id, decision, request_id, value"),
        (
            "POST",
            "/v1/markets",
            {"market": "x", "mechanism": "ucb1", "horizon": 9, "segments": {"a": {"fraction": 1, "p": 1}}},
            "fraction, parameters",
        ),
    ],
)
def test_a_refusal_of_an_unknown_field_names_those_that_there_are(desk, method, path, body, fields):
    reply = desk.call(method, path, body)
    assert (reply.status_code, reply.json()["error"]) == (422, "invalid")
    assert f"; expected some of {fields}" in reply.json()["message"]
