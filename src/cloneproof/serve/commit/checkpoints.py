"""Checkpoints in the making: everything that takes long is done in a thread, a piece at a time, while markets go on.

A snapshot of a market with a million rewards awaited takes tenths of a second; only that market waits for it, and goes
on after it. It is stored with the number of the entry that it was taken at. The ids come last, so that those of every
entry before a snapshot are stored with it.
"""

from __future__ import annotations

from collections.abc import Callable

from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.market.snapshot import take_snapshot
from cloneproof.serve.storage.interface import Storage


class CheckpointInTheMaking:
    """The snapshots of one checkpoint: those that are taken, and the names of those that are not."""

    def __init__(self, markets: ServedMarkets, storage: Storage) -> None:
        self.markets, self._storage, self._names = markets, storage, markets.changed()
        self.snapshots: dict[int, bytes] = {}
        self.working = self._prepared = False
        self.held: str | None = None  # the market that waits for its snapshot

    @property
    def complete(self) -> bool:
        """Whether it can be stored."""
        return self._prepared and not self.working

    def next_work(self) -> Callable[[], None] | None:
        """What is to be done next, in a thread; asked for between two groups, where a market can be held for it."""
        if self.working or self._prepared:
            return None
        self.working = True
        while self._names:
            name = self._names.pop()
            if self.markets.snapshot_possible(name):  # else it stays among the changed ones, for the next checkpoint
                self.held = name
                self.markets.held.add(name)
                self.markets.mark_unchanged(name)
                return self._take
        self._prepared = True
        return self._storage.prepare_checkpoint()

    def _take(self) -> None:
        name = self.held
        assert name is not None
        self.snapshots[self.markets.numbers[name]] = take_snapshot(self.markets.by_name[name])

    def end_work(self) -> str | None:
        """The work is done, or failed; the market that goes on now, if any was held."""
        name, self.held, self.working = self.held, None, False
        if name is not None and self.markets.numbers[name] not in self.snapshots:
            self.markets.mark_changed(name)  # the next checkpoint tries it again
        return name
