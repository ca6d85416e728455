"""The simplest storage there is: nothing outlives the process. For tests and for trying things out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cloneproof.errors import Refused
from cloneproof.serve.market.entries import GENESIS, Appended, Known, Wanted
from cloneproof.serve.storage.interface import KeyRecord, Line, StoredMarket


class MemoryStorage:
    """Lists and dicts."""

    checkpoint_due = False

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._secrets: dict[int, bytes | None] = {}
        self._lines: dict[int, list[Line]] = {}
        self._known: dict[int, Known] = {}
        self._keys: dict[str, KeyRecord] = {}

    def check(self) -> None:
        """It is there as long as the process."""

    def markets(self) -> list[StoredMarket]:
        return [
            StoredMarket(number, name, None, [line.line for line in self._lines[number]], self._secrets[number])
            for number, name in self._names.items()
        ]

    def find(self, wanted: Mapping[int, Wanted]) -> dict[int, Known | Refused]:
        return {number: self._found(self._known.get(number, Known()), asked) for number, asked in wanted.items()}

    @staticmethod
    def _found(known: Known, asked: Wanted) -> Known:
        return Known(
            {name: known.requests[name] for name in asked.requests if name in known.requests},
            {name: known.events[name] for name in asked.events if name in known.events},
            {number: known.defaults[number] for number in asked.decisions if number in known.defaults},
            {number: known.late[number] for number in asked.decisions if number in known.late},
        )

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        for number, name, new in appended:
            self._names[number] = name
            self._secrets.setdefault(number, new.secret)
            lines = self._lines.setdefault(number, [])
            assert new.first == len(lines) + 1
            assert new.before == (lines[-1].hash if lines else GENESIS)
            pairs = zip(new.lines, new.hashes, strict=True)
            lines.extend(Line(entry, line, hash_) for entry, (line, hash_) in enumerate(pairs, new.first))
            self._known.setdefault(number, Known()).add(new.entries)

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        """Nothing outlives the process, so there is nothing to shorten."""

    def lines(self, market: int, after: int, limit: int) -> list[Line]:
        return self._lines.get(market, [])[after : after + limit]

    def keys(self) -> list[KeyRecord]:
        return list(self._keys.values())

    def put_key(self, key: KeyRecord) -> None:
        self._keys[key.id] = key

    def probe(self) -> None:
        """It can always be written to."""

    def watch(self) -> None:
        """Nothing waits."""

    def close(self) -> None:
        """Nothing to close."""
