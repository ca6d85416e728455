"""The simplest storage there is: nothing outlives the process. For tests and for trying things out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from cloneproof.serve.ledger.chain import GENESIS, Appended
from cloneproof.serve.ledger.entries import decode
from cloneproof.serve.storage.interface import FoundEntries, KeyRecord, Line, StoredMarket, Wanted, nothing_to_prepare


class MemoryStorage:
    """Lists and dicts."""

    checkpoint_due = False

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._secrets: dict[int, bytes | None] = {}
        self._lines: dict[int, list[Line]] = {}
        self._places: dict[tuple[int, str], int] = {}
        self._keys: dict[str, KeyRecord] = {}

    def check(self) -> None:
        """It is there as long as the process."""

    def markets(self) -> list[StoredMarket]:
        return [
            StoredMarket(number, name, None, [line.line for line in self._lines[number]], self._secrets[number])
            for number, name in self._names.items()
        ]

    def find(self, wanted: Wanted) -> FoundEntries:
        found: FoundEntries = {number: {} for number in wanted}
        for number, names in wanted.items():
            for name in names:
                place = self._places.get((number, name))
                if place is not None:
                    found[number][name] = decode(self._lines[number][place - 1].line)
        return found

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        for number, name, new in appended:
            self._names[number] = name
            self._secrets.setdefault(number, new.secret)
            lines = self._lines.setdefault(number, [])
            assert new.first == len(lines) + 1
            assert new.before == (lines[-1].hash if lines else GENESIS)
            pairs = zip(new.lines, new.hashes, strict=True)
            lines.extend(Line(entry, line, hash_) for entry, (line, hash_) in enumerate(pairs, new.first))
            self._places.update(((number, key), place) for key, place in new.keys)

    def prepare_checkpoint(self) -> Callable[[], None]:
        return nothing_to_prepare

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        """Nothing outlives the process, so there is nothing to shorten."""

    def lines(self, market: int, after: int, limit: int) -> list[Line]:
        return self._lines.get(market, [])[after : after + limit]

    def keys(self) -> list[KeyRecord]:
        return list(self._keys.values())

    def put_key(self, key: KeyRecord) -> None:
        self._keys[key.id] = key

    def close(self) -> None:
        """Nothing to close."""
