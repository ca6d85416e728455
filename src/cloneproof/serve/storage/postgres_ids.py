"""The ids of a database that several processes write to: each has all of them, and cuts generations at the same blocks.

A process learns of every block, its own or another's, before it may append the next one, so its ids are complete when
it decides what is new. Which generation a block belongs to follows from its number in the order of commits; hence a
generation is the same whoever stores it. One that is not stored yet is searched in memory.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence

import numpy as np
import psycopg

from cloneproof.errors import ServeError
from cloneproof.serve.ledger.entries import decode, keys
from cloneproof.serve.storage.id_generations import (
    IdChunk,
    IdsChanged,
    generation_digest,
    generation_sums,
    split_chunks,
)
from cloneproof.serve.storage.ids import Ids
from cloneproof.serve.storage.postgres_link import Link

_PAGE = 500  # rows that are read at a time
_NOWHERE = math.inf
log = logging.getLogger("cloneproof.serve")


class SharedIds:
    """Where the entries with an id are, in a database that others append to as well."""

    def __init__(self, link: Link, interval: int) -> None:
        self._link, self._interval = link, interval
        self._ids = Ids(self._chunk)
        self._closed: dict[int, dict[int, IdChunk]] = {}  # not known to be stored
        self._damaged_from: float = _NOWHERE  # the first stored generation that is not to be trusted

    @property
    def unstored(self) -> int:
        """How many generations may be known to this process alone."""
        return len(self._closed)

    def candidates(self, market: int, names: Sequence[str]) -> Iterator[tuple[str, int]]:
        """Names that are known, or may be, each with the number of its entry."""
        try:
            yield from self._ids.candidates(market, names)
        except IdsChanged:
            self._ids, self._closed = Ids(self._chunk), {}  # read, and checked, from the beginning
            raise

    def take(self, market: int, seq: int, pairs: Sequence[tuple[str, int]]) -> None:
        """Take in the ids of a block, with the numbers of their entries; `seq` counts the entries up to its end."""
        while (seq - 1) // self._interval > self._ids.generations.count:
            values, places = self._ids.new()
            pieces = {piece: (known, where) for piece, known, where in split_chunks(values, places)}
            self._closed[self._ids.generations.count] = pieces
            self._ids.generations.add(values, generation_sums(pieces))
            self._ids.forget_new()
        self._ids.add(market, pairs)

    def read(self, connection: psycopg.Connection, seq: int) -> None:
        """All ids up to `seq`: the stored generations, and the blocks after them."""
        self._ids.forget_new()
        while (digest := self._stored_digest(connection, self._ids.generations.count)) is not None:
            rows = connection.execute(
                "SELECT piece, hashes, places FROM cloneproof.seen WHERE generation = %s ORDER BY piece",
                (self._ids.generations.count,),
                binary=True,
            )
            pieces = {piece: (known, where) for piece, known, where in rows}
            sums = generation_sums(pieces)
            if generation_digest(sums) != digest:
                log.warning("stored ids were changed or deleted; they are made again from the ledger")
                self._damaged_from = min(self._damaged_from, self._ids.generations.count)
                break
            values = np.frombuffer(b"".join(known for known, _ in pieces.values()), dtype=np.uint64)
            self._ids.generations.add(values, sums)
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
            if number >= self._damaged_from:
                connection.execute("DELETE FROM cloneproof.generations WHERE number = %s", (number,))
            elif self._stored_digest(connection, number) is not None:
                continue
            row = connection.execute(
                "INSERT INTO cloneproof.generations VALUES (%s, %s, %s) ON CONFLICT DO NOTHING RETURNING number",
                (number, (number + 1) * self._interval, generation_digest(generation_sums(pieces))),
            ).fetchone()
            if row is not None:
                connection.execute("DELETE FROM cloneproof.seen WHERE generation = %s", (number,))
                with connection.cursor() as cursor:
                    rows = [(number, piece, *chunk) for piece, chunk in pieces.items()]
                    cursor.executemany("INSERT INTO cloneproof.seen VALUES (%b, %b, %b, %b)", rows)

    def mark_stored(self) -> None:
        """What `store` wrote is committed."""
        self._closed.clear()
        self._damaged_from = _NOWHERE

    def _stored_digest(self, connection: psycopg.Connection, number: int) -> bytes | None:
        """The digest of a stored generation; refuse one that was cut elsewhere, which would hide the ids in between."""
        row = connection.execute(
            "SELECT ends, digest FROM cloneproof.generations WHERE number = %s", (number,)
        ).fetchone()
        if row is not None and row[0] != (number + 1) * self._interval:
            raise ServeError(
                f"expected ids in generations of {self._interval} entries, got others from another version; stop all "
                "services and empty cloneproof.seen and cloneproof.generations, which the next start makes anew"
            )
        return None if row is None else bytes(row[1])

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
