"""Needs: what of its parts a point must have stored before it can be answered, and what is missing of that.

A point that is evaluated by `auto` needs its exact part first, and runs only where that came back as a refusal.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from cloneproof.sweeps.storage.chunk_store import DamagedChunk, Store, StoredChunk


class Need(NamedTuple):
    """Keys: a part to be had whole, parts of which so many runs are needed, and whether the first may spare the rest.

    >>> Need("", ("ab",), 100).answered_by_sampling(refused=None)
    True
    """

    whole: str
    sampled: tuple[str, ...]
    runs: int

    def answered_by_sampling(self, refused: bool | None) -> bool:
        """Whether runs are needed, as far as is known: not while the whole part may still make them unnecessary."""
        return bool(self.sampled) and (not self.whole or bool(refused))


class Index:
    """What is stored: for each key the ranges of runs, or that it is there whole, and whether it was refused."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.chunks: defaultdict[str, list[StoredChunk]] = defaultdict(list)
        self.refused: dict[str, bool] = {}

    def add(self, chunk: StoredChunk, payload: bytes) -> None:
        """A chunk is there, with these contents."""
        self.chunks[chunk.key].append(chunk)
        if chunk.runs == 0:
            self.refused[chunk.key] = is_refusal(payload)

    def gaps(self, key: str, runs: int) -> list[tuple[int, int]]:
        """The ranges (first, stop) of 0 .. runs - 1 that are not stored."""
        return gaps(((chunk.first, chunk.stop) for chunk in self.chunks.get(key, ())), runs)

    def missing(self, needs: Iterable[Need]) -> Iterator[tuple[str, list[tuple[int, int]]]]:
        """Each key of which something is missing, and what: ranges of runs, or nothing for the whole part."""
        runs: dict[str, int] = {}
        whole: dict[str, None] = {}
        for need in needs:
            if need.whole and need.whole not in self.refused:
                whole[need.whole] = None
            if need.answered_by_sampling(self.refused.get(need.whole)):
                for key in need.sampled:
                    runs[key] = max(need.runs, runs.get(key, 0))
        for key in whole:
            yield key, []
        for key, count in runs.items():
            left = self.gaps(key, count)
            if left:
                yield key, left


def read_index(store: Store, columns: Mapping[str, int] | None = None) -> tuple[Index, list[StoredChunk]]:
    """What the store has of these keys (of all), every chunk looked at, and those that are damaged.

    `columns` says for each key how long a row of its runs is.
    """
    index, damaged = Index(store), []
    for chunk in store.chunks():
        if columns is None or chunk.key in columns:
            try:
                payload = store.read(chunk)
                check_shape(store, chunk, payload, None if columns is None else columns[chunk.key])
                index.add(chunk, payload)
            except DamagedChunk:
                damaged.append(chunk)
    return index, damaged


def gaps(ranges: Iterable[tuple[int, int]], runs: int) -> list[tuple[int, int]]:
    """What the ranges leave out of 0 .. runs - 1.

    >>> gaps([(4, 8), (0, 2), (6, 9)], 12)
    [(2, 4), (9, 12)]
    """
    missing, done = [], 0
    for first, stop in sorted(ranges):
        if first > done:
            missing.append((done, min(first, runs)))
        done = max(done, stop)
        if done >= runs:
            return missing
    return [*missing, (done, runs)]


def check_shape(store: Store, chunk: StoredChunk, payload: bytes, columns: int | None = None) -> None:
    """Refuse contents that no worker wrote, though their checksum is right: rows of numbers, or a JSON object.

    A row has two entries for every agent and one for the regret, `columns` of them where that is known. Numbers that
    somebody made up, in the right shape, are not found out.
    """
    if chunk.runs:
        length, left = divmod(len(payload), 8 * chunk.runs)
        fits = left == 0 and (length > 1 if columns is None else length == columns)
    else:
        try:
            data = json.loads(payload)
        except (ValueError, RecursionError):
            data = None
        fits = isinstance(data, dict) and isinstance(data.get("refusals"), list)
    if not fits:
        raise DamagedChunk(chunk, store.path(chunk), "whose checksum is right and whose contents are no result")


def is_refusal(payload: bytes) -> bool:
    """Whether the result of a whole part is only the reason why there is none."""
    return set(json.loads(payload)) == {"refusals"}


def needs_to_json(needs: Sequence[Need]) -> str:
    """All needs of a sweep as text."""
    return json.dumps([[need.whole, need.sampled, need.runs] for need in needs], separators=(",", ":"))


def needs_from_json(text: str) -> list[Need]:
    """The inverse."""
    return [Need(whole, tuple(sampled), int(runs)) for whole, sampled, runs in json.loads(text)]
