"""The ids of a database that several processes write to: each has all of them, and cuts generations at the same blocks.

A process learns of every block, its own or another's, before it may append the next one, so its ids are complete when
it decides what is new. Which generation a block belongs to follows from its number in the order of commits; hence a
generation is the same whoever stores it. One that is not stored yet is searched in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import psycopg

from cloneproof.errors import ServeError
from cloneproof.serve.ledger.entries import decode, keys
from cloneproof.serve.storage.id_generations import IdChunk, split_chunks
from cloneproof.serve.storage.ids import Ids
from cloneproof.serve.storage.postgres_link import Link

_PAGE = 500  # rows that are read at a time


class SharedIds:
    """Where the entries with an id are, in a database that others append to as well."""

    def __init__(self, link: Link, interval: int) -> None:
        self._link, self._interval = link, interval
        self._ids = Ids(self._chunk)
        self._closed: dict[int, dict[int, IdChunk]] = {}  # not known to be stored

    @property
    def unstored(self) -> int:
        """How many generations may be known to this process alone."""
        return len(self._closed)

    def candidates(self, market: int, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Names that are known, or may be, each with the number of its entry."""
        return self._ids.candidates(market, names)

    def take(self, market: int, seq: int, pairs: Sequence[tuple[str, int]]) -> None:
        """Take in the ids of a block, with the numbers of their entries; `seq` counts the entries up to its end."""
        while (seq - 1) // self._interval > self._ids.generations.count:
            values, places = self._ids.new()
            pieces = {piece: (known, where) for piece, known, where in split_chunks(values, places)}
            self._closed[self._ids.generations.count] = pieces
            self._ids.generations.add(values)
            self._ids.forget_new()
        self._ids.add(market, pairs)

    def read(self, connection: psycopg.Connection, seq: int) -> None:
        """All ids up to `seq`: the stored generations, and the blocks after them."""
        self._ids.forget_new()
        while self._is_stored(connection, self._ids.generations.count):
            rows = connection.execute(
                "SELECT hashes FROM cloneproof.seen WHERE generation = %s", (self._ids.generations.count,), binary=True
            )
            self._ids.generations.add(np.frombuffer(b"".join(row[0] for row in rows), dtype=np.uint64))
        at = self._ids.generations.count * self._interval
        while at < seq:
            blocks = connection.execute(
                "SELECT market, first, seq, lines FROM cloneproof.ledger WHERE seq > %s AND seq <= %s"
                " ORDER BY seq LIMIT %s",
                (at, seq, _PAGE),
            ).fetchall()
            for market, first, at, text in blocks:
                entries = enumerate(map(decode, text.split("\n")), first)
                self.take(market, at, [(key, number) for number, entry in entries for key in keys(entry)])

    def store(self, connection: psycopg.Connection) -> None:
        """Store what no process has stored yet; in a transaction of the caller's."""
        for number, pieces in self._closed.items():
            if self._is_stored(connection, number):
                continue
            row = connection.execute(
                "INSERT INTO cloneproof.generations VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING number",
                (number, (number + 1) * self._interval),
            ).fetchone()
            if row is not None:
                with connection.cursor() as cursor:
                    rows = [(number, piece, *chunk) for piece, chunk in pieces.items()]
                    cursor.executemany("INSERT INTO cloneproof.seen VALUES (%b, %b, %b, %b)", rows)

    def mark_stored(self) -> None:
        """What `store` wrote is committed."""
        self._closed.clear()

    def _is_stored(self, connection: psycopg.Connection, number: int) -> bool:
        """Whether a generation is stored; refuse one that was cut elsewhere, which would hide the ids in between."""
        row = connection.execute("SELECT ends FROM cloneproof.generations WHERE number = %s", (number,)).fetchone()
        if row is not None and row[0] != (number + 1) * self._interval:
            raise ServeError(
                f"expected ids in generations of {self._interval} entries, got others from another version; stop all "
                "services and empty cloneproof.seen and cloneproof.generations, which the next start makes anew"
            )
        return row is not None

    def _chunk(self, generation: int, piece: int) -> IdChunk | None:
        if generation in self._closed:
            return self._closed[generation].get(piece)
        with self._link.use() as connection:
            row = connection.execute(
                "SELECT hashes, places FROM cloneproof.seen WHERE generation = %s AND piece = %s",
                (generation, piece),
                binary=True,
            ).fetchone()
        return None if row is None else (row[0], row[1])


def entries_at(connection: psycopg.Connection, market: int, numbers: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The lines of entries, by number, each from the block that has it."""
    yield from connection.execute(
        "SELECT wanted.n, split_part(block.lines, E'\\n', (wanted.n - block.first + 1)::integer)"
        " FROM unnest(%s::bigint[]) AS wanted (n) CROSS JOIN LATERAL ("
        "   SELECT first, lines FROM cloneproof.ledger WHERE market = %s AND first <= wanted.n"
        "   ORDER BY first DESC LIMIT 1) AS block",
        (list(numbers), market),
    )
