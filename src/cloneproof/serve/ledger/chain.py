"""The ledger: append-only, every entry chained by hash to the one before, money in whole micro-units.

The hash of an entry is SHA-256 over the hash before it and the entry's line, so nobody can change, drop or insert
a line without changing every hash after it; whoever has once written down the last hash can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import count
from typing import Final, NamedTuple

from cloneproof.errors import ServeError
from cloneproof.mechanisms.online.level import TICK_BITS
from cloneproof.serve.ledger.entries import Entry, encode_lines, keys

GENESIS: Final = sha256(b"cloneproof ledger 1").digest()
_HALF: Final = 1 << (TICK_BITS - 1)


class Head(NamedTuple):
    """Where a chain ends: the number of its last entry and the hash over everything up to it."""

    n: int
    hash: bytes


EMPTY: Final = Head(0, GENESIS)


class Appended(NamedTuple):
    """Entries that follow on a chain: their lines, the hash after each, and the keys they are to be found under."""

    first: int
    before: bytes
    lines: list[bytes]
    hashes: list[bytes]
    keys: list[tuple[str, int]]
    secret: bytes | None = None  # of a new market; stored beside its ledger


class Chain:
    """The end of a ledger in memory: what was appended since it was last taken away to be stored."""

    def __init__(self, head: Head = EMPTY) -> None:
        self.n, self.hash = head
        self._before = self.hash
        self._lines: list[bytes] = []
        self._hashes: list[bytes] = []
        self._keys: list[tuple[str, int]] = []

    def append(self, entry: Entry) -> None:
        """Chain an entry; its `n` must be the next one."""
        self.extend((entry,), ())
        self._keys += [(key, self.n) for key in keys(entry)]

    def extend(self, entries: Sequence[Entry], names: Iterable[str]) -> None:
        """Chain entries that follow on each other and have one key each, or whose keys the caller adds."""
        assert entries[0].n == self.n + 1
        lines = encode_lines(entries)
        self._lines += lines
        self._hashes += chain_hashes(self.hash, lines)
        self.hash = self._hashes[-1]
        self._keys += zip(names, count(self.n + 1), strict=False)
        self.n += len(entries)

    @property
    def head(self) -> Head:
        """The end of the chain."""
        return Head(self.n, self.hash)

    def take(self) -> Appended | None:
        """What is new since the last call."""
        if not self._lines:
            return None
        appended = Appended(self.n - len(self._lines) + 1, self._before, self._lines, self._hashes, self._keys)
        self._before, self._lines, self._hashes, self._keys = self.hash, [], [], []
        return appended


def chain_hashes(hash_before: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    """The hash after each line.

    >>> [digest.hex()[:8] for digest in chain_hashes(GENESIS, [b"a", b"b"])]
    ['41a5179a', '8b803532']
    """
    for line in lines:
        hash_before = sha256(hash_before + line).digest()
        yield hash_before


def check_block(first: int, expected: bytes, hash_before: bytes, hash_after: bytes, lines: Sequence[bytes]) -> None:
    """Refuse a stored block of lines that does not follow on the hash expected before it, or whose own do not fit."""
    hash_now = hash_before
    for hash_now in chain_hashes(hash_before, lines):  # noqa: B007 (the last one counts)
        pass
    if hash_before != expected or hash_now != hash_after:
        raise ServeError(
            f"the hash chain is broken in entries {first} to {first + len(lines) - 1}; "
            "`cloneproof replay` names the line; restore a copy"
        )


def payment(reward_ticks: int, share_micro: int) -> int:
    """What a reward pays, in whole micro-units, halves upwards: integers only, so it is the same on every machine.

    >>> from cloneproof.mechanisms.online.level import ticks
    >>> payment(ticks(0.5), 1_000_000), payment(ticks(1.0), 400_000), payment(ticks(0.3333333), 1_000_000)
    (500000, 400000, 333333)
    """
    return (reward_ticks * share_micro + _HALF) >> TICK_BITS
