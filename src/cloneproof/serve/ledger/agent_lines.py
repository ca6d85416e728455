"""What an agent sees of the ledger: the lines about it, and nothing that depends on those of others.

There is no hash and no number of an entry or a decision in them: the hash of a line can be searched for what is in the
lines between, and numbers count what others did. Instead of its number a decision has a keyed hash, which the lines of
its reward have too, and a page ends at a sealed position that only the service can read.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b, sha256
from typing import Any

import msgspec

from cloneproof.errors import Refused
from cloneproof.serve.ledger.entries import decode, owner

StoredLine = tuple[int, bytes, bytes]  # number, line, hash


def agent_key(secret: bytes | None, seed: int | None, agent: str) -> bytes:
    """The key of an agent's view of a market, from the market's secret (or from its seed, where it has none)."""
    base = secret if secret is not None else sha256(f"cloneproof old seed {seed}".encode()).digest()
    return blake2b(agent.encode(), key=base, digest_size=32, person=b"cloneproof agent").digest()


def own_lines(lines: Sequence[StoredLine], agent: str, limit: int) -> list[tuple[int, bytes]]:
    """The first lines that are about an agent, with their numbers."""
    name, found = msgspec.json.encode(agent), list[tuple[int, bytes]]()
    for n, line, _ in lines:
        if name in line and owner(decode(line)) == agent:
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
    raise Refused(422, "invalid", f"expected after as 0 or the next of an earlier page, got {text[:40]!r}; begin at 0")


def _keyed(key: bytes, what: bytes, number: int | None = None) -> bytes:
    return blake2b(what + (b"" if number is None else number.to_bytes(8, "big")), key=key, digest_size=8).digest()
