"""Checkpoints: snapshots of markets in storage, so that the next start reads only the end of each ledger.

A checkpoint is due when storage has written enough entries. It takes the snapshots of the markets that have changed in
a thread, one after the other and between groups; only the market whose snapshot is being taken waits. When all are
taken they are stored in one transaction, after that of a group. A checkpoint is never needed: where a snapshot fails,
the next start reads more of the ledger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import take_snapshot
from cloneproof.serve.storage.storage import Storage
from cloneproof.serve.writer.background import Background, log_failure
from cloneproof.serve.writer.markets import ServedMarkets


@dataclass(slots=True)
class Checkpoint:
    """Snapshots of one checkpoint as far as they are taken, and what is still to be taken."""

    markets: ServedMarkets
    names: list[str]
    snapshots: dict[int, bytes] = field(default_factory=dict)
    holds: bool = False  # whether a market waits for its snapshot


class Checkpoints:
    """Checkpoint under way, if any, and how it goes on beside the groups."""

    def __init__(self, storage: Storage, background: Background) -> None:
        self._storage, self._background = storage, background
        self._under_way: Checkpoint | None = None

    @property
    def holds_market(self) -> bool:
        """Whether a market waits for its snapshot."""
        return self._under_way is not None and self._under_way.holds

    @property
    def complete(self) -> bool:
        """Whether all snapshots are taken, so that the next group stores them."""
        return self._under_way is not None and not (self._under_way.holds or self._under_way.names)

    def take_next(self, markets: ServedMarkets) -> None:
        """Hold a market for its snapshot, if one is to be taken; between two groups."""
        now = self._under_way
        if now is not None and now.markets is not markets:
            self._under_way = None  # all markets were read back: these are not served any more
        elif now is not None and not self._background.stopping:
            while now.names and not now.holds:
                name = now.names.pop()
                if markets.snapshot_possible(name):  # else it stays among the changed ones, for the next checkpoint
                    now.holds = True
                    markets.changed.discard(name)
                    self._background.hold(markets, name, self._take(now, name))

    async def _take(self, checkpoint: Checkpoint, name: str) -> LiveMarket:
        """Take a snapshot in a thread; its market, which is then released."""
        markets = checkpoint.markets
        try:
            taken = await self._background.threads.market(partial(take_snapshot, markets.by_name[name]))
            checkpoint.snapshots[markets.numbers[name]] = taken
        except Exception as problem:
            log_failure("a snapshot failed; the next start reads more of the ledger", problem)
            markets.changed.add(name)  # the next checkpoint tries it again
        checkpoint.holds = False
        return markets.by_name[name]

    async def store_or_begin(self, markets: ServedMarkets) -> None:
        """Store a complete checkpoint, or begin one if it is due; after the commit of a group."""
        if self._under_way is not None and self.complete:
            snapshots, self._under_way = self._under_way.snapshots, None
            await self._background.threads.storage(lambda: self._storage.checkpoint(snapshots))
        elif self._under_way is None and self._storage.checkpoint_due:
            self._under_way = Checkpoint(markets, sorted(markets.changed, reverse=True))

    async def store_all(self, markets: ServedMarkets) -> None:
        """Write snapshots of all markets while nothing else runs."""
        taken = {} if self._under_way is None else self._under_way.snapshots
        self._under_way = None
        await self._background.threads.storage(lambda: self._storage.checkpoint(taken | markets.take_snapshots()))
