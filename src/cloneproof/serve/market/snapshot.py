"""Snapshots: the whole state of a market at one entry of its ledger, so that a start need not read all of it.

A snapshot is derived: it can be dropped, and everything rebuilt from the ledger. `recover` goes on from one. It is
sealed with the head of the ledger at that entry; a start that finds the seal broken reads the ledger instead. When what
is in it changes, `VERSION` rises and a migration of each storage drops the old ones.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

import msgspec

from cloneproof.errors import ServeError
from cloneproof.mechanisms import Session
from cloneproof.serve.ledger.chain import Chain, Head
from cloneproof.serve.ledger.dice import MarketDice
from cloneproof.serve.ledger.entries import Entry, Opened, decode
from cloneproof.serve.ledger.sealed import seal, unseal
from cloneproof.serve.ledger.terms import MarketSpec
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.ledger_replay import advance

VERSION: Final = 3
_AT_ONCE: Final = 1000  # entries
_SHOWN: Final = {"phase": "started", "late": 0, "defaulted": 0}  # no decision depends on these


def take_snapshot(market: MarketEngine) -> bytes:
    """The state of a market as text."""
    body: dict[str, Any] = {
        "version": VERSION,
        "spec": msgspec.to_builtins(market.spec),
        "season": market.season,
        "state": market.state,
        "at": market.at,
        "before": market.before,
        "ends": market.ends,
        "phase": market.phase,
        "late": market.late,
        "defaulted": market.defaulted,
        "history": market.history.to_dict(),
        "waits": [list(start) for start in market.windows.starts],
        "oldest": market.windows.oldest,
        "registry": market.registry.to_dict(),
        "session": None if market.session is None else market.session.to_json(),
    }
    return seal(market.chain.head, json.dumps(body, separators=(",", ":")).encode())


def restore(text: bytes, secret: bytes | None = None) -> MarketEngine:
    """The market as it was when the snapshot was taken."""
    try:
        found = unseal(text)
        if found is None:
            raise ValueError("its digest does not fit")
        body = json.loads(found.text)
        if body["version"] != VERSION:
            raise ValueError(f"version {body['version']!r}")
        return _rebuild(body, found.head, secret)
    except (KeyError, TypeError, ValueError, msgspec.ValidationError) as problem:
        raise ServeError(
            f"expected a snapshot of version {VERSION}, got one that cannot be read ({problem!r}); "
            "delete the snapshots, and the next start rebuilds everything from the ledger"
        ) from None


def _rebuild(body: dict[str, Any], head: Head, secret: bytes | None) -> MarketEngine:
    spec = msgspec.convert(body["spec"], MarketSpec)
    market = MarketEngine(spec, Chain(head), MarketDice(spec.market, secret))
    market.season, market.state, market.at = body["season"], body["state"], body["at"]
    market.before, market.ends = body["before"], body["ends"]
    market.phase, market.late, market.defaulted = (body.get(name, value) for name, value in _SHOWN.items())
    if "history" in body:
        market.history.restore(body["history"])
    market.windows.starts.extend(list(start) for start in body["waits"])
    market.windows.oldest = body["oldest"]
    market.registry.restore(body["registry"])
    if body["session"] is not None:
        market.session = Session.from_json(body["session"], market.mechanism)
    return market


def snapshot_difference(text: bytes, market: MarketEngine) -> str | None:
    """What a snapshot says otherwise than the market that was derived from the ledger up to the same entry."""
    try:
        stored = restore(text, market.dice.secret)
    except ServeError as problem:
        return str(problem)
    if stored.chain.head != market.chain.head:
        return "it belongs to another ledger"
    for what, values in {
        "the terms": (stored.spec, market.spec),
        "the season": ((stored.season, stored.state, stored.ends), (market.season, market.state, market.ends)),
        "balances and statistics": (stored.registry.to_dict(), market.registry.to_dict()),
        "the mechanism's state": tuple(m.session and m.session.to_json() for m in (stored, market)),
    }.items():
        if values[0] != values[1]:
            return f"{what} are not those of the ledger"
    return None


def recover(snapshot: bytes | None, lines: Iterable[bytes], secret: bytes | None = None) -> MarketEngine:
    """The market after its last stored entry: the snapshot, if any, and the lines that follow it."""
    rest = iter(lines)
    if snapshot is not None:
        market = restore(snapshot, secret)
    else:
        line = next(rest, None)
        first: Entry | None = None if line is None else decode(line)
        if not isinstance(first, Opened):
            raise ServeError(
                "expected a ledger that begins with the opening of a market, got "
                f"{'no lines' if first is None else repr(first)}; restore a copy"
            )
        market = MarketEngine.open(first.spec, first.at, MarketDice(first.spec.market, secret))
        market.chain.take()
    while entries := [decode(line) for line in islice(rest, _AT_ONCE)]:
        advance(market, entries)
        market.chain.take()
    return market
