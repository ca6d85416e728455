"""A storage: ledgers in blocks of lines, by market number; snapshots and an index of ids, derived from them; keys.

`Storage` has what SQLite and PostgreSQL share, and knows nothing about markets. A commit appends the new lines of each
market's ledger, one row for a block of lines. An old entry is found by a hash of its key in the table `ids`, which has
the block; hashes may collide, so the block is searched for the key itself. Only one call may run at a time, except for
`lines` and `keys`.

To add a storage, derive a class from `Storage` and name it in `open_storage`. It promises:

- `commit` stores everything or nothing, durably when it returns; replies are sent after it.
- `find` knows every id of any age, on which exactly-once depends.
- A start after `kill -9` or a power cut finds everything that was committed.
- If several processes may write (`shared`), they do so in turns, and each knows what the others appended.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from hashlib import blake2b
from struct import unpack
from typing import Any, ClassVar, Final, NamedTuple

import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.entries import EMPTY, Appended, Entry, Head, Known, by_key, decode, keys_of
from cloneproof.serve.market.terms import Role

log = logging.getLogger("cloneproof.serve")
BLOCK: Final = 100  # entries in a row
ENTRIES_PER_CHECKPOINT: Final = 1 << 17
SHIFT: Final = 40  # a place is the market's number times 2^40 plus the number of a block's first entry
PAGE: Final = 500  # blocks that are read at a time
TELL: Final = 5.0  # seconds of reading ledgers between lines of the log
IdRow = tuple[int, int]  # hash of market and id, place of the block
LedgerRow = tuple[int, int, bytes, bytes, str]  # place, number of entries, hashes before and after, lines
Statements = Any  # a connection or cursor with `execute` and `executemany`; parameters are question marks

# The place of the block that has an entry, or would have it.
_BLOCK_OF: Final = "SELECT coalesce(max(place), 0) FROM ledger WHERE place > ? AND place <= ?"


class StoredMarket(NamedTuple):
    """A market at the start: what reads its last snapshot and the lines after it, and the secret of its dice.

    `read(whole=True)` reads all lines, without a snapshot, which is forgotten.
    """

    number: int
    name: str
    read: Callable[..., tuple[bytes | None, Iterable[bytes]]]
    secret: bytes | None


class Line(NamedTuple):
    """A line of a ledger, and the hash of the chain after it."""

    n: int
    line: bytes
    hash: bytes


class RemoteBlock(NamedTuple):
    """Entries that another process appended to a market's ledger, the last hash, and the market's secret."""

    market: int
    entries: list[Entry]
    hash: bytes
    secret: bytes | None


class KeyRecord(msgspec.Struct, frozen=True):
    """An API key, with only the hash of its secret half."""

    id: str
    role: Role
    agent: str | None
    hash: bytes
    created: int
    revoked: bool = False


def new_rows(appended: Sequence[tuple[int, str, Appended]]) -> tuple[list[LedgerRow], list[IdRow]]:
    """Return the rows of `ledger` and of `ids` for new entries."""
    rows, ids = list[LedgerRow](), list[IdRow]()
    for market, _, new in appended:
        before = new.before
        for start in range(0, len(new.lines), BLOCK):
            lines, place = new.lines[start : start + BLOCK], (market << SHIFT) + new.first + start
            after = new.hashes[start + len(lines) - 1]
            rows.append((place, len(lines), before, after, b"\n".join(lines).decode()))
            ids += id_rows(market, place, new.entries[start : start + BLOCK])
            before = after
    return rows, ids


def hash_keys(market: int, keys: Iterable[str]) -> Sequence[int]:
    """Return a signed hash of 64 bits for each key of a market."""
    base, digests = blake2b(b"%d:" % market, digest_size=8), []
    for key in keys:
        digest = base.copy()  # faster than a new one
        digest.update(key.encode())
        digests.append(digest.digest())
    return unpack(f"<{len(digests)}q", b"".join(digests))


def checked_lines(first: int, before: bytes, after: bytes, text: str) -> tuple[list[bytes], list[bytes]]:
    """Return the lines of a stored block and the hash after each; raise an error if they are not as stored."""
    lines = text.encode().split(b"\n")
    hashes = list(ledger.chain_hashes(before, lines))
    if hashes[-1] != after:
        raise _broken_chain(first, len(lines))
    return lines, hashes


def _broken_chain(first: int, count: int) -> ServeError:
    return ServeError(
        f"the hash chain is broken in entries {first} to {first + count - 1}; `cloneproof replay` names the line; "
        "restore a copy"
    )


def id_rows(market: int, place: int, entries: Iterable[Entry]) -> list[IdRow]:
    """Return the rows of `ids` for the entries of a block."""
    keys = [key for entry in entries for key in keys_of(entry)]
    return [(hash_, place) for hash_ in hash_keys(market, keys)]


class Storage(ABC):
    """Storage of a service, in SQL; abstract methods differ between SQLite and PostgreSQL."""

    ids_query: str  # by a list of hashes, which is one parameter
    blocks_query: str  # place, hash before, hash after and lines, by a list of places
    has_text: str  # whether `lines` has a text, which is one parameter
    shared: ClassVar[bool] = False  # whether other processes write to it too
    turn_time = 0  # when the turn began, by the clock that all processes share, in milliseconds

    def __init__(self) -> None:
        self._heads: dict[int, int] = {}  # by market: the last entry that is known here
        self._damaged: set[int] = set()  # markets whose snapshot cannot be used
        self.checkpoint_due = False  # whether the next start would take long without new snapshots
        self.progress, self._told = "opening the database", 0.0  # of reading all markets back, and when it was logged

    @abstractmethod
    def check(self) -> None:
        """Raise an error if the opened storage has disappeared; quick, from any thread."""

    @abstractmethod
    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        """Store new entries of markets (number, name), all or none; durable when the call returns."""

    @property
    def has_turn(self) -> bool:
        """Whether it is this process's turn: between `begin` and `commit` no other process appends."""
        return True

    def begin(self) -> list[RemoteBlock]:
        """Return the next blocks that others appended; after the last one this process has the turn, else ask again."""
        return []

    def release(self) -> None:  # noqa: B027 (a storage of one process has its turn always)
        """End a turn in which nothing was appended."""

    @abstractmethod
    def probe(self) -> None:
        """Do a durable write that changes nothing, or raise an error."""

    @abstractmethod
    def watch(self) -> None:
        """Abort a call that has waited too long for a database; called every second, from another thread."""

    @abstractmethod
    def close(self) -> None:
        """Close the storage."""

    @abstractmethod
    def _rows(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a query, in the storage's thread."""

    @abstractmethod
    def _read(self, statement: str, *values: object) -> list[Any]:
        """Return the rows of a query, in another thread than the storage's."""

    @abstractmethod
    def _write(self, statement: str, *values: object) -> None:
        """Run one statement in its own transaction."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Statements]:
        """Run a transaction: all statements or none."""

    @abstractmethod
    def _list(self, values: Iterable[int]) -> object:
        """Pass values as one parameter."""

    def markets(self) -> list[StoredMarket]:
        """Return every market, with what is needed to rebuild it."""
        self._heads, self._told = {}, time.monotonic()
        rows = self._rows(
            "SELECT number, name, entry, body, secret FROM markets"
            " LEFT JOIN snapshots ON market = number ORDER BY number"
        )
        return [
            StoredMarket(number, name, partial(self._snapshot_and_tail, number, name, entry, body), secret)
            for number, name, entry, body, secret in rows
        ]

    def _snapshot_and_tail(
        self, market: int, name: str, entry: int, body: bytes | None, whole: bool = False
    ) -> tuple[bytes | None, Iterable[bytes]]:
        if whole and body is not None:
            self._damaged.add(market)
            body = None
        head = EMPTY if body is None else self._head_of_snapshot(market, name, entry, body)
        self._heads[market] = head.n
        return None if head is EMPTY else body, self._tail(market, head)

    def set_aside(self, market: int) -> None:
        """Forget the head of a market that cannot be read, so that ids of it do not pass for known."""
        self._heads.pop(market, None)

    def _head_of_snapshot(self, market: int, name: str, entry: int, body: object) -> Head:
        """Return the head of an intact snapshot, else that of an empty ledger; its entry is the last of a block."""
        found = ledger.unseal(body) if isinstance(body, bytes) else None  # SQLite stores anything anywhere
        if found is None or found.head.n != entry:
            log.warning("the snapshot of market %r is damaged; the market is rebuilt from its ledger", name)
            self._damaged.add(market)
            return EMPTY
        if found.version != ledger.SNAPSHOT:
            log.warning(
                "the snapshot of market %r is of version %d, not %d; the market is rebuilt from its ledger",
                name, found.version, ledger.SNAPSHOT,
            )  # fmt: skip
            self._damaged.add(market)
            return EMPTY
        place = (market << SHIFT) + entry
        rows = self._rows(
            "SELECT place + count - 1, hash_after FROM ledger WHERE place <= ? ORDER BY place DESC LIMIT 1", place
        )
        if rows != [(place, found.head.hash)]:
            raise ServeError(
                f"market {name!r}: the ledger is not the one that its snapshot of entry {entry} belongs to; "
                "`cloneproof replay` says where it breaks; restore a copy"
            )
        return found.head

    def _tail(self, market: int, head: Head) -> Iterator[bytes]:
        """Yield the lines after a head, each block checked."""
        expected, end = head.hash, self._end(market)
        for first, before, after, text in self._blocks(market, head.n + 1):
            lines, _ = checked_lines(first, before, after, text)
            last = first + len(lines) - 1
            if last <= head.n:
                continue
            if before != expected:
                raise _broken_chain(first, len(lines))
            expected, self._heads[market] = after, last
            self.progress = f"reading market {market}: entry {last:,} of {end:,}"
            if time.monotonic() > self._told + TELL:
                self._told = time.monotonic()
                log.warning(self.progress)
            yield from lines[max(0, head.n + 1 - first) :]

    def _end(self, market: int) -> int:
        """Return the number of the last stored entry; 0 if there is none."""
        base = market << SHIFT
        rows = self._rows(
            "SELECT place + count - 1 FROM ledger WHERE place > ? AND place < ? ORDER BY place DESC LIMIT 1",
            base, base + (1 << SHIFT),
        )  # fmt: skip
        return rows[0][0] - base if rows else 0

    def _blocks(self, market: int, entry: int) -> Iterator[tuple[int, bytes, bytes, str]]:
        """Yield stored blocks (first entry, hashes before and after, lines) from the one that has this entry on."""
        base = market << SHIFT
        place = self._rows(_BLOCK_OF, base, base + entry)[0][0] or base
        while True:
            rows = self._rows(
                "SELECT place, hash_before, hash_after, lines FROM ledger WHERE place >= ? AND place < ?"
                " ORDER BY place LIMIT ?",
                place, base + (1 << SHIFT), PAGE,
            )  # fmt: skip
            yield from ((at - base, before, after, text) for at, before, after, text in rows)
            if len(rows) < PAGE:
                return
            place = rows[-1][0] + 1

    def find(self, wanted: Mapping[int, Sequence[str]]) -> dict[int, Known | Refused]:
        """Find the stored entries with these keys, of any age, by market; a refusal for one that cannot be read."""
        found: dict[int, Known | Refused] = {}
        for market, asked in wanted.items():
            try:
                found[market] = self._found(market, asked)
            except Refused:
                raise  # the whole storage is away
            except ServeError as damage:
                log.error("market %d: %s", market, damage)
                found[market] = Refused(503, "storage", str(damage))
            except Exception as problem:
                log.exception("old entries of market %d cannot be read", market)
                found[market] = Refused(
                    503, "storage", f"the ledger cannot be read ({type(problem).__name__}); try again"
                )
        return found

    def _found(self, market: int, keys: Sequence[str]) -> Known:
        hashes = hash_keys(market, keys)
        known, candidates = Known(), self._candidates(hashes)
        if candidates:
            by_hash, by_place = defaultdict[int, list[str]](list), defaultdict[int, list[str]](list)
            for key, hash_ in zip(keys, hashes, strict=True):
                by_hash[hash_].append(key)
            for hash_, place in candidates:
                by_place[place] += by_hash[hash_]
            for place, *block in self._rows(self.blocks_query, self._list(by_place)):
                lines, _ = checked_lines(place - (market << SHIFT), *block)
                entries = by_key(map(decode, lines))
                known |= {key: entries[key] for key in by_place[place] if key in entries}
        return known

    def _candidates(self, hashes: Sequence[int]) -> list[IdRow]:
        """Return the rows of `ids` with these hashes."""
        return self._rows(self.ids_query, self._list(hashes))

    @staticmethod
    def _add_markets(database: Statements, appended: Sequence[tuple[int, str, Appended]]) -> None:
        rows = [(market, name, new.secret) for market, name, new in appended if new.first == 1]
        if rows:
            database.executemany("INSERT INTO markets (number, name, secret) VALUES (?, ?, ?)", rows)

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        """Store new snapshots of markets; each was taken between two commits."""
        with self._transaction() as database:
            database.executemany("DELETE FROM snapshots WHERE market = ?", [(market,) for market in self._damaged])
            database.executemany(
                "INSERT INTO snapshots VALUES (?, ?, ?) ON CONFLICT (market) DO UPDATE"
                " SET entry = excluded.entry, body = excluded.body WHERE snapshots.entry < excluded.entry",
                [(market, found.head.n, body) for market, body in snapshots.items() if (found := ledger.unseal(body))],
            )
        self._damaged.clear()
        self.checkpoint_due = False

    def lines(
        self, market: int, after: int, limit: int, most: int = 1 << SHIFT, texts: Sequence[str] = ()
    ) -> list[Line]:
        """Return committed lines of a ledger from number `after` + 1 on, at most `limit`.

        With `texts`: those in blocks that have one of them, among blocks that begin in the next `most` lines.
        """
        base = market << SHIFT
        chosen = f" AND ({' OR '.join([self.has_text] * len(texts))})" if texts else ""
        rows = self._read(
            "SELECT place, hash_before, hash_after, lines FROM ledger"
            f" WHERE place > ? AND place < ? AND place <= ? AND place >= ({_BLOCK_OF}){chosen}"
            " ORDER BY place LIMIT ?",
            base, base + (1 << SHIFT), base + after + most, base, base + after + 1, *texts, limit + 1,
        )  # fmt: skip
        page = list[Line]()
        for place, *block in rows:
            hashed = zip(*checked_lines(place - base, *block), strict=True)
            page += [Line(number, *each) for number, each in enumerate(hashed, place - base) if number > after]
            if len(page) >= limit:
                break
        return page[:limit]

    def keys(self) -> list[KeyRecord]:
        rows = self._read("SELECT id, role, agent, hash, created, revoked FROM api_keys")
        return [
            KeyRecord(number, role, agent, hash_, created, bool(revoked))
            for number, role, agent, hash_, created, revoked in rows
        ]

    def put_key(self, key: KeyRecord) -> None:
        """Store a new key, or a changed one."""
        self._write(
            "INSERT INTO api_keys VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE"
            " SET revoked = api_keys.revoked OR excluded.revoked",
            key.id, key.role, key.agent, key.hash, key.created, key.revoked,
        )  # fmt: skip
