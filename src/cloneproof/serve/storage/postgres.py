"""PostgreSQL: several service processes on the same markets, in turns.

A turn is a transaction under one advisory lock. It begins with what the other processes appended since this one's last
turn, so every process has the same markets, line by line, and ends with one durable commit for everybody who waited in
it. A process that dies in its turn loses the connection, and with it the lock and whatever it had not committed. The
primary key of the ledger is the second guard: a process that has missed an entry cannot append one in its place.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Final, NamedTuple

import psycopg

from cloneproof.serve.ledger.chain import EMPTY, Appended, Head, chain_hashes, check_block
from cloneproof.serve.ledger.entries import Entry, decode, keys
from cloneproof.serve.storage.id_generations import ENTRIES_PER_GENERATION
from cloneproof.serve.storage.interface import (
    FoundEntries,
    KeyRecord,
    Line,
    RemoteBlock,
    StoredMarket,
    Wanted,
    nothing_to_prepare,
    snapshot_entry,
    usable_head,
)
from cloneproof.serve.storage.postgres_ids import SharedIds, entries_at
from cloneproof.serve.storage.postgres_link import Link, address_error, take_turn
from cloneproof.serve.storage.postgres_schema import migrate

_BLOCK: Final = 100  # entries a row: an old one is found by reading its row
_PAGE: Final = 500  # rows that are read at a time


class PostgresStorage:
    """A service's storage in a database that other processes of the service use at the same time."""

    def __init__(self, address: str, interval: int = ENTRIES_PER_GENERATION) -> None:
        self.turn_time = 0
        self._seq = 0  # entries of all markets that this process has seen
        self._heads: dict[int, int] = {}  # by market: the last entry seen
        self._due = False
        self._damaged: set[int] = set()  # markets whose snapshot is not to be trusted
        self._writer, self._reader, self._key_link = Link(address), Link(address), Link(address)
        self._ids = SharedIds(self._writer, interval)
        try:
            with psycopg.connect(address, autocommit=True, connect_timeout=5) as connection:
                migrate(connection)
        except psycopg.Error as problem:
            raise address_error(address, problem) from None

    def check(self) -> None:
        """A database that is away shows in the next call."""

    def markets(self) -> list[StoredMarket]:
        with self._writer.use() as connection:
            if self._writer.in_transaction:
                connection.execute("ROLLBACK")
            with connection.transaction():  # in one view: a market that is opened meanwhile is in both, or in neither
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                rows = connection.execute(
                    "SELECT number, name, coalesce(entry, 0), body, secret FROM cloneproof.markets"
                    " LEFT JOIN cloneproof.snapshots ON market = number ORDER BY number"
                ).fetchall()
                self._seq = _number(connection, "SELECT coalesce(max(seq), 0) FROM cloneproof.ledger")
                self._ids.read(connection, self._seq)
        self._heads = {number: entry for number, _, entry, _, _ in rows}
        self._due = False
        markets = []
        for number, name, entry, body, secret in rows:
            with self._writer.use() as connection:
                hash_there = None if body is None else _hash_after(connection, number, entry)
            head = usable_head(name, body, entry, hash_there)
            self._heads[number] = head.n
            snapshot = None if head is EMPTY else body
            if snapshot is not body:
                self._damaged.add(number)
            markets.append(StoredMarket(number, name, snapshot, self._tail(number, head), secret))
        return markets

    def _tail(self, market: int, head: Head) -> Iterator[bytes]:
        """The lines after a snapshot, up to what `_seq` covers: what is younger comes with the next turn."""
        after, expected = head
        with self._writer.use() as connection:
            first = _first_block(connection, market, after)
        while True:
            with self._writer.use() as connection:
                rows = connection.execute(
                    "SELECT first, hash_before, hash_after, lines FROM cloneproof.ledger"
                    " WHERE market = %s AND first >= %s AND seq <= %s ORDER BY first LIMIT %s",
                    (market, first, self._seq, _PAGE),
                ).fetchall()
            for start, before, hash_after, text in rows:
                lines = text.encode().split(b"\n")
                if start + len(lines) - 1 <= after:
                    continue  # the last one before, which the snapshot is of
                check_block(start, expected, before, hash_after, lines)
                expected = hash_after
                for number, line in enumerate(lines, start):
                    if number > after:
                        self._heads[market] = number
                        yield line
            if len(rows) < _PAGE:
                return
            first = rows[-1][0] + 1

    @property
    def has_turn(self) -> bool:
        return self._writer.in_transaction

    def begin(self) -> list[RemoteBlock]:
        with self._writer.use() as connection:
            take_turn(connection)
            clock = connection.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")
            self.turn_time = int(clock.fetchall()[0][0])
            rows = connection.execute(  # with a view of its own, taken when the lock is had
                "SELECT market, first, seq, hash_after, lines FROM cloneproof.ledger WHERE seq > %s"
                " ORDER BY seq LIMIT %s",
                (self._seq, _PAGE),
            ).fetchall()
            if len(rows) == _PAGE:
                connection.execute("ROLLBACK")  # nobody should wait while this process reads its way up
            new = [market for market, first, *_ in rows if first == 1]
            secrets = dict(_secrets(connection, new)) if new else {}
        blocks = []
        for market, first, seq, hash_, text in rows:
            lines = text.encode().split(b"\n")
            entries: list[Entry] = [decode(line) for line in lines]
            self._ids.take(market, seq, [(key, n) for n, entry in enumerate(entries, first) for key in keys(entry)])
            self._seq, self._heads[market] = seq, first + len(lines) - 1
            blocks.append(RemoteBlock(market, lines, entries, hash_, secrets.get(market)))
        return blocks

    def release(self) -> None:
        if self.has_turn:
            with self._writer.use(renew=False) as connection:
                connection.execute("ROLLBACK")

    def find(self, wanted: Wanted) -> FoundEntries:
        found: FoundEntries = {}
        for market, names in wanted.items():
            found_here = found[market] = {}
            numbers = list(self._ids.candidates(market, names))
            if not numbers:
                continue
            with self._writer.use() as connection:
                lines = dict(entries_at(connection, market, [number for _, number in numbers]))
            for name, number in numbers:
                entry: Entry = decode(lines[number])
                if name in keys(entry):
                    found_here[name] = entry
        return found

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        seq, blocks = self._seq, list[LedgerBlock]()
        for market, _, new in appended:
            blocks += _blocks(market, new, seq)
            seq += len(new.lines)
        with self._writer.use(renew=False) as connection:
            if not self.has_turn:
                raise psycopg.OperationalError("the turn is over")
            with connection.pipeline(), connection.cursor() as cursor:
                for market, name, new in appended:
                    if new.first == 1:
                        row = (market, name, new.secret)
                        cursor.execute("INSERT INTO cloneproof.markets VALUES (%s, %s, %s)", row)
                rows = [block[:6] for block in blocks]
                cursor.executemany("INSERT INTO cloneproof.ledger VALUES (%s, %s, %s, %s, %s, %s)", rows)
                cursor.execute("COMMIT")
        unstored = self._ids.unstored
        for block in blocks:
            self._ids.take(block.market, block.seq, block.keys)
        self._due = self._due or self._ids.unstored > unstored
        self._seq = seq
        self._heads |= {market: new.first + len(new.lines) - 1 for market, _, new in appended}

    @property
    def checkpoint_due(self) -> bool:
        """Whether this process appended the entry at which the next snapshot is due, or whoever did so kept none."""
        return self._due or self._ids.unstored > 1

    def prepare_checkpoint(self) -> Callable[[], None]:
        return nothing_to_prepare

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        self.release()  # what is stored in a turn in which nothing is appended would end with it
        rows = [(market, snapshot_entry(body), body) for market, body in snapshots.items()]
        with self._writer.use() as connection, connection.cursor() as cursor, connection.transaction():
            cursor.execute("DELETE FROM cloneproof.snapshots WHERE market = ANY(%s)", (list(self._damaged),))
            cursor.executemany(
                "INSERT INTO cloneproof.snapshots VALUES (%s, %s, %s) ON CONFLICT (market) DO UPDATE"
                " SET entry = excluded.entry, body = excluded.body WHERE snapshots.entry < excluded.entry",
                rows,
            )
            self._ids.store(connection)
        self._ids.mark_stored()
        self._damaged.clear()
        self._due = False

    def lines(self, market: int, after: int, limit: int) -> list[Line]:
        page = list[Line]()
        with self._reader.use() as connection:
            rows = connection.execute(
                "SELECT first, hash_before, lines FROM cloneproof.ledger WHERE market = %s AND first >= %s"
                " ORDER BY first LIMIT %s",
                (market, _first_block(connection, market, after), limit + 1),
            )
            for first, before, text in rows:
                block = text.encode().split(b"\n")
                for number, (line, hash_) in enumerate(zip(block, chain_hashes(before, block), strict=True), first):
                    if after < number <= after + limit:
                        page.append(Line(number, line, hash_))
                if first + len(block) > after + limit:
                    break
        return page

    def keys(self) -> list[KeyRecord]:
        with self._reader.use() as connection:
            rows = connection.execute("SELECT id, role, agent, hash, created, revoked FROM cloneproof.api_keys")
            return [KeyRecord(*row) for row in rows]

    def put_key(self, key: KeyRecord) -> None:
        with self._key_link.use() as connection:  # not in a turn, which may come to nothing
            connection.execute(
                "INSERT INTO cloneproof.api_keys VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE"
                " SET revoked = api_keys.revoked OR excluded.revoked",
                (key.id, key.role, key.agent, key.hash, key.created, key.revoked),
            )

    def close(self) -> None:
        for link in (self._key_link, self._reader, self._writer):
            link.close()


def _number(connection: psycopg.Connection, statement: str) -> int:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _hash_after(connection: psycopg.Connection, market: int, entry: int) -> bytes | None:
    """The stored hash after an entry that is the last of its block."""
    row = connection.execute(
        "SELECT first, hash_after, lines FROM cloneproof.ledger WHERE market = %s AND first <= %s"
        " ORDER BY first DESC LIMIT 1",
        (market, entry),
    ).fetchone()
    return bytes(row[1]) if row is not None and row[0] + row[2].count("\n") == entry else None


def _secrets(connection: psycopg.Connection, markets: list[int]) -> Iterator[tuple[int, bytes | None]]:
    yield from connection.execute("SELECT number, secret FROM cloneproof.markets WHERE number = ANY(%s)", (markets,))


def _first_block(connection: psycopg.Connection, market: int, after: int) -> int:
    """The number of the first entry of the block that has entry `after` + 1, or would have it."""
    row = connection.execute(
        "SELECT coalesce(max(first), 0) FROM cloneproof.ledger WHERE market = %s AND first <= %s", (market, after + 1)
    ).fetchone()
    assert row is not None
    return int(row[0])


class LedgerBlock(NamedTuple):
    """A row of the ledger, and the ids in it."""

    market: int
    first: int
    seq: int
    hash_before: bytes
    hash_after: bytes
    lines: str
    keys: list[tuple[str, int]]


def _blocks(market: int, new: Appended, seq: int) -> Iterator[LedgerBlock]:
    """New lines in rows; `seq` entries are before them."""
    before, at = new.before, 0
    for start in range(0, len(new.lines), _BLOCK):
        lines = new.lines[start : start + _BLOCK]
        after, done = new.hashes[start + len(lines) - 1], start + len(lines)
        end = bisect_left(new.keys, new.first + done, at, key=itemgetter(1))
        text = b"\n".join(lines).decode()
        yield LedgerBlock(market, new.first + start, seq + done, before, after, text, new.keys[at:end])
        before, at = after, end
