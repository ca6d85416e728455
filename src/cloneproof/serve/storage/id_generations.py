"""Which ids were ever seen, and where: an index that is written in large sorted pieces.

A unique index in a B-tree writes a page for every random id, ten times what the ledger itself writes. So the ids of the
entries since the last checkpoint are kept in memory, and each checkpoint writes them out once as a *generation*,
sorted by a 64-bit hash. Nothing is lost with the memory: the ledger has every id, and a start reads it from the last
checkpoint on.

Whether an id is new is answered by a Bloom filter of 24 bits an id for each generation, 64 of them side by side in the
bits of one array of words (eight look-ups answer for all 64). A generation that the filter names is then looked at, and
the entry found there has the last word: hashes may collide, ids do not. Where there are 150 generations, twenty million
ids, 6 of 1,000 new ids are looked for in vain; with 16 bits it would be 140, which is most of the time of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b, sha256
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cloneproof.errors import ServeError

IdWords = NDArray[np.uint64]
IdChunk = tuple[bytes, bytes]  # sorted hashes, and the places of their entries

ENTRIES_PER_GENERATION: Final = 1 << 17
CHUNKS: Final = 256  # a generation is stored in this many pieces, by the first byte of the hash
_FILTER_SIZE: Final = 24 * ENTRIES_PER_GENERATION
_PROBES: Final = 8
_SUM: Final = 8  # bytes of a checksum
_SIDE_BY_SIDE: Final = 64


def hashes(market: int, keys: Sequence[str]) -> IdWords:
    """A 64-bit hash of each key."""
    salted = blake2b(digest_size=8, salt=market.to_bytes(8, "little"))
    digests = []
    for key in keys:
        digest = salted.copy()  # half the time of a new one
        digest.update(key.encode())
        digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def _probes(values: IdWords) -> Iterator[NDArray[np.int64]]:
    """The positions of each hash in a filter: 32 bits of it, and those again plus one, two, .. times the others."""
    now, step, half = values.copy(), (values >> np.uint64(32)) | np.uint64(1), np.uint64(0xFFFFFFFF)
    for _ in range(_PROBES):
        yield (((now & half) * np.uint64(_FILTER_SIZE)) >> np.uint64(32)).view(np.int64)
        now += step


class IdsChanged(ServeError):  # noqa: N818 (it names what happened)
    """The stored ids are not those that were written; they are made again from the ledger."""

    def __init__(self) -> None:
        super().__init__("the stored ids were changed or deleted; they are made again from the ledger")


def chunk_sum(chunk: IdChunk | None) -> bytes:
    """A checksum of a stored piece, or of its absence."""
    return bytes(_SUM) if chunk is None else blake2b(chunk[0] + chunk[1], digest_size=_SUM).digest()


def generation_sums(pieces: Mapping[int, IdChunk]) -> bytes:
    """The checksums of all pieces of a generation."""
    return b"".join(chunk_sum(pieces.get(number)) for number in range(CHUNKS))


def generation_digest(sums: bytes) -> bytes:
    """One digest of a generation, which is stored apart from it."""
    return sha256(sums).digest()


class Generations:
    """The filters of all generations, and the search in those that a filter names; what is found there is checked."""

    def __init__(self, read: Callable[[int, int], IdChunk | None]) -> None:
        self._read = read
        self._filters: list[IdWords] = []
        self._sums: list[bytes] = []
        self.count = 0

    @property
    def digest(self) -> bytes:
        """A digest of all generations."""
        return sha256(b"".join(generation_digest(sums) for sums in self._sums)).digest()

    def add(self, values: IdWords, sums: bytes) -> None:
        """Take the hashes of the next generation into the filters, with the checksums of its pieces."""
        self._add_to(self._filters, self.count, values)
        self._sums.append(sums)
        self.count += 1

    def filters_with(self, several: Sequence[IdWords]) -> list[IdWords]:
        """The filters with further generations, for `install`; those that are in use stay as they are."""
        filters = list(self._filters)
        if self.count % _SIDE_BY_SIDE:
            filters[-1] = filters[-1].copy()
        for count, values in enumerate(several, self.count):
            self._add_to(filters, count, values)
        return filters

    def install(self, filters: list[IdWords], sums: Sequence[bytes]) -> None:
        """Take in what `filters_with` made, with the checksums of the generations in it."""
        self._filters = filters
        self._sums += sums
        self.count += len(sums)

    @staticmethod
    def _add_to(filters: list[IdWords], count: int, values: IdWords) -> None:
        at = count % _SIDE_BY_SIDE
        if at == 0:
            filters.append(np.zeros(_FILTER_SIZE, dtype=np.uint64))
        marked = np.zeros(_FILTER_SIZE, dtype=np.uint8)  # small enough for the cache, which the words are not
        for positions in _probes(values):
            marked[positions] = 1
        words, bit = filters[-1], np.uint64(1 << at)
        for start in range(0, _FILTER_SIZE, ENTRIES_PER_GENERATION):  # in parts: a copy as wide as the words is 24 MB
            part = slice(start, start + ENTRIES_PER_GENERATION)
            words[part] |= marked[part] * bit

    def find(self, values: IdWords) -> Iterator[tuple[int, int]]:
        """Pairs of (which value, place of an entry whose key may be it)."""
        if not self.count or not len(values):
            return
        probes = list(_probes(values))
        for group, words in enumerate(self._filters):
            named = words[probes[0]]
            for positions in probes[1:]:
                named &= words[positions]
            for which in np.flatnonzero(named).tolist():
                bits = int(named[which])
                while bits:
                    low = bits & -bits
                    bits ^= low
                    generation = group * _SIDE_BY_SIDE + low.bit_length() - 1
                    for place in self._search(generation, int(values[which])):
                        yield which, place

    def _search(self, generation: int, value: int) -> list[int]:
        piece = value >> 56
        chunk = self._read(generation, piece)
        if chunk_sum(chunk) != self._sums[generation][piece * _SUM : (piece + 1) * _SUM]:
            raise IdsChanged
        if chunk is None:
            return []
        known = np.frombuffer(chunk[0], dtype=np.uint64)
        low, high = np.searchsorted(known, np.uint64(value), "left"), np.searchsorted(known, np.uint64(value), "right")
        places: list[int] = np.frombuffer(chunk[1], dtype=np.int64)[low:high].tolist()
        return places


class NewGenerations(NamedTuple):
    """Generations that are to be stored: the filters with them, and of each the pieces (number, hashes, places)."""

    filters: list[IdWords]
    pieces: list[list[tuple[int, bytes, bytes]]]
    sums: list[bytes]


def make_generations(before: Generations, parts: Sequence[tuple[IdWords, NDArray[np.int64]]]) -> NewGenerations:
    """Generations of these hashes and places; a tenth of a second each, which may pass in any thread."""
    pieces = [list(split_chunks(values, places)) for values, places in parts]
    sums = [generation_sums({piece: (known, where) for piece, known, where in each}) for each in pieces]
    return NewGenerations(before.filters_with([values for values, _ in parts]), pieces, sums)


def split_chunks(values: IdWords, places: NDArray[np.int64]) -> Iterator[tuple[int, bytes, bytes]]:
    """A generation in its stored pieces: number of the piece, hashes, places."""
    order = np.argsort(values, kind="stable")
    values, places = values[order], places[order]
    starts = np.searchsorted(values, np.arange(CHUNKS, dtype=np.uint64) << np.uint64(56))
    edges = [*starts.tolist(), len(values)]
    for number in range(CHUNKS):
        low, high = edges[number], edges[number + 1]
        if low < high:
            yield number, values[low:high].tobytes(), places[low:high].tobytes()
