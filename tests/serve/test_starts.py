"""The hash at a season's start: it covers all that was declared, and tells nothing before the settlement."""

from hashlib import sha256

import msgspec
import pytest

from cloneproof.errors import ServeError
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.dice import registration_digest, season_keys
from support.service import DICE, SECRET, declared, replayed, with_arms


def start(arms, secret=SECRET):
    """The entry of a start, and the market."""
    market = with_arms(declared(secret), arms)
    return market.start(1000), market


def test_the_start_covers_everything_that_agents_declared():
    """Each field of a registration, those that later versions add too, is in what is hashed."""
    slots = {"mechanism": "reservoir", "parameters": {"rounds": 2, "draws": 3, "threshold": 2}}
    market = with_arms(declared(**slots), {"ana": 2, "bo": 1})
    market.register_arm("ana", "ana-0", 1000, 3)  # as defaults are left out
    market.start(1000)
    (agent, _), fields = market.registry.declared({"ana": 2, "bo": 1}), set[str]()
    for kind in (ledger.AgentRegistered, ledger.ArmRegistered):
        fields |= {field.name for field in msgspec.structs.fields(kind)} - {"n", "at", "title"}  # a title is advice
    assert fields <= agent.keys() | agent["arms"][0].keys()
    market.decide("r", 2000)
    assert market.registry.declared({"ana": 2, "bo": 1})[0] == agent  # and nothing that the market counts
    others = [{"ana": 2}, {"ana": 1, "bo": 2}, {"bo": 1, "ana": 2}, {"ana": 2, "bo": 2}, {"ana": 2, "bob": 1}]
    hashes = {start(arms)[0].registered for arms in ({"ana": 2, "bo": 1}, *others)}
    assert len(hashes) == 1 + len(others)


def test_what_rivals_registered_cannot_be_guessed_before_the_settlement():
    """Without the season's key a guess of all names fits nothing; with it, everybody can check the hash."""
    entry, market = start({"ana": 2, "bo": 1})
    names = [["ana", ["ana-0", "ana-1"]], ["bo", ["bo-0"]]]
    assert entry.registered != sha256(msgspec.json.encode(names)).hexdigest()
    declared = market.registry.declared({"ana": 2, "bo": 1})
    commitment, key = season_keys(SECRET, 1)
    assert entry.registered not in {
        sha256(msgspec.json.encode(declared)).hexdigest(),
        registration_digest(commitment, declared),
    }
    assert entry.registered == registration_digest(key, declared)
    assert entry.registered != start({"ana": 2, "bo": 1}, bytes(32))[0].registered


def test_a_start_of_nobody_is_named_by_its_number():
    market = declared()
    market.register_agent("ana", 1000)
    lines = [*market.chain.take().lines, ledger.encode(ledger.Started(3, 1000, 1, "0" * 64))]
    with pytest.raises(ServeError, match=r"entry 3: .* at least one agent with an arm"):
        replayed(lines, DICE)
