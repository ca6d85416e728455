"""What the service asks of a storage. One caller at a time, except for `lines`, which may be asked at the same time.

To add a storage, write a class with the methods of `Storage` and name it in `open_storage`. It promises:

- `commit` stores everything it is given or nothing, and what it stored is durable when it returns. Replies follow it.
- `find` knows every id of any age: exactly-once rests on it.
- A start after `kill -9` or a power cut finds everything that was committed.
- If several processes may write, it is a `SharedStorage`: it has turns, and knows what the others appended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market.entries import (
    EMPTY,
    Appended,
    Entry,
    Head,
    Known,
    Wanted,
    chain_hashes,
    check_block,
    unseal,
)
from cloneproof.serve.market.terms import Role

log = logging.getLogger("cloneproof.serve")
BLOCK: Final = 100  # entries a row: an old one is found by reading its row


class StoredMarket(NamedTuple):
    """A market as it is found at a start: its last snapshot, the lines after it, and the secret of its dice."""

    number: int
    name: str
    snapshot: bytes | None
    lines: Iterable[bytes]
    secret: bytes | None = None


class Line(NamedTuple):
    """A line of a ledger, and the hash of the chain after it."""

    n: int
    line: bytes
    hash: bytes


class RemoteBlock(NamedTuple):
    """What another process appended to a market's ledger: lines and entries, the hash after the last; a new secret."""

    market: int
    lines: list[bytes]
    entries: list[Entry]
    hash: bytes
    secret: bytes | None = None


class KeyRecord(msgspec.Struct, frozen=True):
    """An API key: never the key itself, only the hash of its secret half."""

    id: str
    role: Role
    agent: str | None
    hash: bytes
    created: int
    revoked: bool = False


def usable_head(market: str, snapshot: bytes | None, entry: int | None, hash_there: bytes | None) -> Head:
    """Where to go on reading a ledger: after its snapshot, if that is intact, else at the beginning.

    `hash_there` is the hash that the ledger has after the entry that the snapshot is stored for.
    """
    if snapshot is None:
        return EMPTY
    found = unseal(snapshot) if isinstance(snapshot, bytes) else None  # SQLite stores anything anywhere
    if found is None or found.head.n != entry:
        log.warning("the snapshot of market %r is damaged; the market is rebuilt from its ledger", market)
        return EMPTY
    if found.head.hash != hash_there:
        raise ServeError(
            f"market {market!r}: the ledger is not the one that its snapshot of entry {entry} was taken of; "
            "`cloneproof replay` says where it breaks; restore a copy"
        )
    return found.head


class Block(NamedTuple):
    """Entries that are stored as one row: the number of the first, the hashes around them, their lines."""

    first: int
    before: bytes
    after: bytes
    text: str
    entries: list[Entry]


def blocks(new: Appended) -> Iterator[Block]:
    """New entries in rows."""
    before = new.before
    for start in range(0, len(new.lines), BLOCK):
        lines, entries = new.lines[start : start + BLOCK], new.entries[start : start + BLOCK]
        after = new.hashes[start + len(lines) - 1]
        yield Block(new.first + start, before, after, b"\n".join(lines).decode(), entries)
        before = after


def lines_after(head: Head, rows: Iterable[tuple[int, bytes, bytes, str]]) -> Iterator[tuple[int, list[bytes]]]:
    """The lines after a head in stored blocks (first, hash before, hash after, text), checked; with their number."""
    after, expected = head
    for first, before, hash_after, text in rows:
        lines = text.encode().split(b"\n")
        if first + len(lines) - 1 <= after:
            continue  # the last one before, which the snapshot is of
        check_block(first, expected, before, hash_after, lines)
        expected = hash_after
        yield max(first, after + 1), lines[max(0, after + 1 - first) :]


def page_of(rows: Iterable[tuple[int, bytes, str]], after: int, limit: int) -> list[Line]:
    """The lines from number `after` + 1 on, at most `limit`, of stored blocks (first, hash before, text)."""
    page = list[Line]()
    for first, before, text in rows:
        block = text.encode().split(b"\n")
        for number, (line, hash_) in enumerate(zip(block, chain_hashes(before, block), strict=True), first):
            if after < number <= after + limit:
                page.append(Line(number, line, hash_))
        if first + len(block) > after + limit:
            break
    return page


def snapshot_entry(snapshot: bytes) -> int:
    """The entry that a snapshot was taken at."""
    found = unseal(snapshot)
    assert found is not None
    return found.head.n


class Storage(Protocol):
    """Ledgers, found by market number; snapshots; keys."""

    def check(self) -> None:
        """Refuse, if what was opened is not there any more; quick, and may be asked at any time."""

    def markets(self) -> list[StoredMarket]:
        """Every market, with what is needed to go on with it."""

    def find(self, wanted: Mapping[int, Wanted]) -> dict[int, Known | Refused]:
        """The entries that are stored under these ids, of any age, by market; a refusal where one cannot be read."""

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        """Store new entries of markets (number, name), all or none; durable when the call returns."""

    @property
    def checkpoint_due(self) -> bool:
        """Whether so much was appended that the next start would take long without snapshots."""

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        """Store snapshots of markets that changed since their last ones; each was taken between two commits."""

    def lines(self, market: int, after: int, limit: int) -> list[Line]:
        """Committed lines of a ledger from number `after` + 1 on, at most `limit`."""

    def keys(self) -> list[KeyRecord]:
        """Every API key."""

    def put_key(self, key: KeyRecord) -> None:
        """Store a new key, or a changed one."""

    def probe(self) -> None:
        """Write something that changes nothing, durably; an error where that is not possible."""

    def watch(self) -> None:
        """Let fail what has waited too long for a database; asked every second, from another thread."""

    def close(self) -> None:
        """Close it; what was committed stays."""


@runtime_checkable
class SharedStorage(Storage, Protocol):
    """A storage that several processes write to, in turns: between `begin` and the commit nobody else appends."""

    @property
    def has_turn(self) -> bool:
        """Whether it is this process's turn."""

    @property
    def turn_time(self) -> int:
        """When the turn began, by the clock that all processes share, in milliseconds."""

    def begin(self) -> list[RemoteBlock]:
        """What others appended since the last turn. With all of it comes the turn; otherwise it must be asked again."""

    def release(self) -> None:
        """End a turn in which nothing was appended."""
