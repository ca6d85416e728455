"""Where a service keeps what must not be lost: ledgers, and what is derived from them (snapshots, an index of ids).

A storage is a small interface; there is nothing about markets in it. `open_storage` names one by its place.
"""

from __future__ import annotations

from cloneproof.serve.storage.interface import KeyRecord, Storage, StoredMarket, Wanted
from cloneproof.serve.storage.memory import MemoryStorage
from cloneproof.serve.storage.sqlite import SqliteStorage

__all__ = ["KeyRecord", "MemoryStorage", "SqliteStorage", "Storage", "StoredMarket", "Wanted", "open_storage"]


def open_storage(place: str) -> Storage:
    """The storage at a place: `:memory:`, or the path of an SQLite file, made if it is not there."""
    return MemoryStorage() if place == ":memory:" else SqliteStorage(place)
