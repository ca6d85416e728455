"""What the service asks of a storage. One caller at a time, except for `lines`, which may be asked at the same time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import msgspec

from cloneproof.errors import ServeError
from cloneproof.serve.ledger.chain import EMPTY, Appended, Head
from cloneproof.serve.ledger.entries import Entry
from cloneproof.serve.ledger.sealed import unseal
from cloneproof.serve.ledger.terms import Role

log = logging.getLogger("cloneproof.serve")
Wanted = Mapping[int, Sequence[str]]
FoundEntries = dict[int, dict[str, Entry]]


class StoredMarket(NamedTuple):
    """A market as it is found at a start: its last snapshot, the lines after it, and the secret of its dice."""

    number: int
    name: str
    snapshot: bytes | None
    lines: Iterable[bytes]
    secret: bytes | None = None


class Line(NamedTuple):
    """A line of a ledger, and the hash of the chain after it."""

    n: int
    line: bytes
    hash: bytes


class RemoteBlock(NamedTuple):
    """What another process appended to a market's ledger: lines and entries, the hash after the last; a new secret."""

    market: int
    lines: list[bytes]
    entries: list[Entry]
    hash: bytes
    secret: bytes | None = None


class KeyRecord(msgspec.Struct, frozen=True):
    """An API key: never the key itself, only the hash of its secret half."""

    id: str
    role: Role
    agent: str | None
    hash: bytes
    created: int
    revoked: bool = False


def usable_head(market: str, snapshot: bytes | None, entry: int | None, hash_there: bytes | None) -> Head:
    """Where to go on reading a ledger: after its snapshot, if that is intact, else at the beginning.

    `hash_there` is the hash that the ledger has after the entry that the snapshot is stored for.
    """
    if snapshot is None:
        return EMPTY
    found = unseal(snapshot)
    if found is None or found.head.n != entry:
        log.warning("the snapshot of market %r is damaged; the market is rebuilt from its ledger", market)
        return EMPTY
    if found.head.hash != hash_there:
        raise ServeError(
            f"market {market!r}: the ledger is not the one that its snapshot of entry {entry} was taken of; "
            "`cloneproof replay` says where it breaks; restore a copy"
        )
    return found.head


def nothing_to_prepare() -> None:
    """For a storage whose checkpoints are short."""


def snapshot_entry(snapshot: bytes) -> int:
    """The entry that a snapshot was taken at."""
    found = unseal(snapshot)
    assert found is not None
    return found.head.n


class Storage(Protocol):
    """Ledgers, found by market number; snapshots; keys."""

    def check(self) -> None:
        """Refuse, if what was opened is not there any more; quick, and may be asked at any time."""

    def markets(self) -> list[StoredMarket]:
        """Every market, with what is needed to go on with it."""

    def find(self, wanted: Wanted) -> FoundEntries:
        """The entries that are stored under these keys, of any age."""

    def commit(self, appended: Sequence[tuple[int, str, Appended]]) -> None:
        """Store new entries of markets (number, name), all or none; durable when the call returns."""

    @property
    def checkpoint_due(self) -> bool:
        """Whether so much was appended that the next start would take long without snapshots."""

    def prepare_checkpoint(self) -> Callable[[], None]:
        """The part of the next checkpoint that takes long and may be done beside commits, after its snapshots."""

    def checkpoint(self, snapshots: Mapping[int, bytes]) -> None:
        """Store snapshots of markets that changed since their last ones; each was taken between two commits.

        Where something was prepared for it, the snapshots are older than that.
        """

    def lines(self, market: int, after: int, limit: int) -> list[Line]:
        """Committed lines of a ledger from number `after` + 1 on, at most `limit`."""

    def keys(self) -> list[KeyRecord]:
        """Every API key."""

    def put_key(self, key: KeyRecord) -> None:
        """Store a new key, or a changed one."""

    def close(self) -> None:
        """Close it; what was committed stays."""


@runtime_checkable
class SharedStorage(Storage, Protocol):
    """A storage that several processes write to, in turns: between `begin` and the commit nobody else appends."""

    @property
    def has_turn(self) -> bool:
        """Whether it is this process's turn."""

    @property
    def turn_time(self) -> int:
        """When the turn began, by the clock that all processes share, in milliseconds."""

    def begin(self) -> list[RemoteBlock]:
        """What others appended since the last turn. With all of it comes the turn; otherwise it must be asked again."""

    def release(self) -> None:
        """End a turn in which nothing was appended."""
