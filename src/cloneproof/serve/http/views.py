"""What is shown of a market, and to whom.

An agent sees the lines of the ledger about it, and nothing that depends on those of others: no hash, which could be
searched for what is in the lines between, and no number of an entry or a decision, which counts what others did. A
decision has a keyed hash instead, which the lines of its reward have too, and a page ends at a sealed position that
only the service can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from cloneproof.mechanisms.online.levels import TICK_BITS
from cloneproof.serve import messages as m
from cloneproof.serve.market.dice import season_keys
from cloneproof.serve.market.entries import decode
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.registry import AgentRecord
from cloneproof.serve.market.terms import invalid


def market(live: LiveMarket) -> m.MarketView:
    """What everybody may see: the terms, where it stands, and the dice as far as they are published."""
    spec = live.spec
    return m.MarketView(spec.market, live.season, live.state, spec, live.mechanism.name, _dice(live))


def _dice(live: LiveMarket) -> list[m.DiceView]:
    assert live.dice.secret is not None
    keys, views = season_keys(live.dice.secret, live.season), list[m.DiceView]()
    for season in range(1, live.season + 1):
        registered, beacon = live.starts[season - 1] if season <= len(live.starts) else (None, None)
        key = keys[season].hex() if season <= len(live.ends) else None
        views.append(m.DiceView(season, keys[season - 1].hex(), registered, beacon, key))
    return views


def agent(record: AgentRecord) -> m.AgentView:
    """An agent with its arms."""
    arms = [
        m.ArmView(arm.arm, arm.season, arm.decisions, arm.rewards, _mean(arm.total, arm.rewards)) for arm in record.arms
    ]
    return m.AgentView(record.agent, record.season, record.balance, arms)


def _mean(total: int, rewards: int) -> float | None:
    return total / (rewards << TICK_BITS) if rewards else None


def seasons(live: LiveMarket) -> m.Seasons:
    """All seasons, the present one last."""
    views = []
    first = 1
    for number, last in enumerate(live.ends, 1):
        views.append(m.SeasonView(number, "settled", first, last))
        first = last + 1
    if live.season > len(live.ends):
        views.append(m.SeasonView(live.season, live.state, first, live.decisions))
    return m.Seasons(views)


def progress(live: LiveMarket) -> m.Progress:
    """What platform and auditors may see."""
    running = live.session
    return m.Progress(
        live.spec.market,
        live.season,
        live.state,
        live.spec.horizon,
        0 if running is None else running.round,
        0 if running is None else len(running.pending),
        live.decisions,
        live.chain.n,
        live.chain.hash.hex(),
        [agent(record) for record in live.registry.agents.values()],
        live.phase if live.state == "running" else live.state,
        live.late,
        live.defaulted,
    )


StoredLine = tuple[int, bytes, bytes]  # number, line, hash


def agent_key(secret: bytes, agent: str) -> bytes:
    """The key of an agent's view of a market, from the market's secret."""
    return blake2b(agent.encode(), key=secret, digest_size=32, person=b"cloneproof agent").digest()


def own_lines(lines: Sequence[StoredLine], agent: str, limit: int) -> list[tuple[int, bytes]]:
    """The first lines that are about an agent, with their numbers."""
    name, found = msgspec.json.encode(agent), list[tuple[int, bytes]]()
    for n, line, _ in lines:
        if name in line and getattr(decode(line), "agent", None) == agent:
            found.append((n, line))
            if len(found) == limit:
                break
    return found


def shown_to_agent(line: bytes, key: bytes) -> msgspec.Raw:
    """A line without the numbers that count what others did."""
    entry: dict[str, Any] = msgspec.json.decode(line)
    del entry["n"]
    if "id" in entry:
        entry["id"] = _keyed(key, b"decision", entry["id"]).hex()
    return msgspec.Raw(msgspec.json.encode(entry))


def seal_position(key: bytes, n: int) -> str:
    """A position in the ledger that only the holder of the key can read."""
    tag = _keyed(key, b"tag", n)
    return (tag + bytes(a ^ b for a, b in zip(n.to_bytes(8, "big"), _keyed(key, tag), strict=True))).hex()


def open_position(key: bytes, text: str) -> int:
    """The position that was sealed; 0 for a text of 0."""
    if text == "0":
        return 0
    try:
        sealed = bytes.fromhex(text)
    except ValueError:
        sealed = b""
    tag, hidden = sealed[:8], sealed[8:16]
    if len(sealed) == 16:
        n = int.from_bytes(bytes(a ^ b for a, b in zip(hidden, _keyed(key, tag), strict=True)), "big")
        if _keyed(key, b"tag", n) == tag:
            return n
    raise invalid(f"expected after as 0 or the next of an earlier page, got {text[:40]!r}; begin at 0")


def _keyed(key: bytes, what: bytes, number: int | None = None) -> bytes:
    return blake2b(what + (b"" if number is None else number.to_bytes(8, "big")), key=key, digest_size=8).digest()
