"""Power loss on SQLite: of what was written but not synced, any part may be gone. What was committed is not."""

import os
import random

import apsw
import pytest

from cloneproof.serve.offline import replay_all
from cloneproof.serve.storage import SqliteStorage
from cloneproof.serve.writer.markets import ServedMarkets
from support.service import spec, with_arms

LOSSES = int(os.environ.get("CLONEPROOF_POWER_LOSSES", "6"))


class PowerLossError(Exception):
    """The lights are out."""


class Disk(apsw.VFS):
    """A disk that remembers what of each file would survive, and fails at a given operation."""

    def __init__(self, fails_at: int) -> None:
        super().__init__(f"disk {id(self)}", "")
        self.label, self.left = f"disk {id(self)}", fails_at
        self.synced: dict[str, bytes] = {}
        self.unsynced: dict[str, list[tuple[int, bytes | None]]] = {}

    def xOpen(self, name, flags):
        return File(self, name, flags)

    def xDelete(self, name, syncdir):
        self.spend()
        super().xDelete(name, syncdir)
        self.synced.pop(name, None)
        self.unsynced.pop(name, None)

    def spend(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise PowerLossError

    def survives(self, dice: random.Random) -> dict[str, bytes]:
        """The files after the loss: what was synced, and any of the later writes."""
        found = {}
        for path, content in self.synced.items():
            image = bytearray(content)
            for offset, data in self.unsynced.get(path, []):
                if dice.random() < 0.5:
                    continue
                if data is None:
                    del image[offset:]
                else:
                    image.extend(bytes(max(0, offset + len(data) - len(image))))
                    image[offset : offset + len(data)] = data
            found[path] = bytes(image)
        return found


class File(apsw.VFSFile):
    """A file on such a disk."""

    def __init__(self, disk, name, flags):
        self.disk = disk
        self.path = name.filename() if isinstance(name, apsw.URIFilename) else name
        super().__init__("", name, flags)
        self.disk.synced.setdefault(self.path, b"")

    def xWrite(self, data, offset):
        self.disk.spend()
        self.disk.unsynced.setdefault(self.path, []).append((offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size):
        self.disk.spend()
        self.disk.unsynced.setdefault(self.path, []).append((size, None))
        super().xTruncate(size)

    def xSync(self, flags):
        self.disk.spend()
        super().xSync(flags)
        self.disk.synced[self.path] = super().xRead(super().xFileSize(), 0)
        self.disk.unsynced[self.path] = []


class Shared:
    """One connection for writer and reader: without shared memory, the file belongs to one connection."""

    def __init__(self, path: str, disk: Disk, careless: bool) -> None:
        self.inner = apsw.Connection(path, vfs=disk.label)
        self.inner.execute("PRAGMA locking_mode=EXCLUSIVE")
        self.careless = careless

    def execute(self, statement, *bindings):
        if self.careless:
            statement = statement.replace("synchronous=FULL", "synchronous=OFF")
        if statement.startswith("PRAGMA wal_autocheckpoint"):
            statement = "PRAGMA wal_autocheckpoint=20"  # so that a loss also hits checkpoints
        return self.inner.execute(statement, *bindings)

    def executemany(self, statement, rows):
        return self.inner.executemany(statement, rows)

    def close(self) -> None:
        self.inner.close(True)


def played_until_the_loss(path, fails_at: int, dice: random.Random, careless: bool) -> tuple[int, dict[str, bytes]]:
    """Play until the lights go out; how many entries were acknowledged, and what is left of the files."""
    disk, acknowledged, shared = Disk(fails_at), 0, None

    def connect(name):
        nonlocal shared
        shared = shared or Shared(name, disk, careless)
        return shared

    storage = None
    try:
        storage = SqliteStorage(str(path), connect, interval=60)
        markets = ServedMarkets()
        market, _ = markets.create(spec(horizon=10**6), 1000)
        with_arms(market, {"ana": 1}).start(1000)
        storage.commit(markets.take())
        acknowledged = market.chain.n
        for number in range(10_000):
            market = markets.market("feed")
            for part in range(dice.randrange(1, 8)):
                made = market.decide(f"r{number}.{part}", 1000)
                market.reward(f"e{number}.{part}", made.id, 0.5, 1000, None)
            storage.commit(markets.take())
            acknowledged = market.chain.n
            if storage.checkpoint_due:
                storage.checkpoint(markets.take_snapshots())
    except (PowerLossError, apsw.Error):
        pass
    left = disk.survives(dice)
    if storage is not None:
        storage._lock.release()
    disk.left = 10**9  # the lights are on again, for the tidying up
    if shared is not None:
        shared.close()
    return acknowledged, left


def after_the_loss(tmp_path, number: int, careless: bool) -> tuple[int, int, bool]:
    """Acknowledged entries, entries found afterwards, and whether what was found fits."""
    dice = random.Random(number)
    folder = tmp_path / f"{number}"
    folder.mkdir()
    acknowledged, left = played_until_the_loss(folder / "a.db", dice.randrange(30, 700), dice, careless)
    fresh = folder / "after"
    fresh.mkdir()
    for path, content in left.items():
        (fresh / os.path.basename(path)).write_bytes(content)
    storage = SqliteStorage(str(fresh / "a.db"), interval=60)
    markets = ServedMarkets.recover(storage)
    found = markets.by_name["feed"].chain.n if markets.by_name else 0
    known = storage.find({1: [f"q:r{n}.0" for n in range(5)]})[1]
    storage.close()
    replays = replay_all(str(fresh / "a.db"))
    fits = all(one.fits and one.entries == found for one in replays)
    return acknowledged, found, fits and (found < 15 or "q:r0.0" in known)


def test_what_was_acknowledged_survives(tmp_path):
    somewhere = 0
    for number in range(LOSSES):
        acknowledged, found, fits = after_the_loss(tmp_path, number, careless=False)
        assert fits
        assert found >= acknowledged
        somewhere += acknowledged > 0
    assert somewhere > LOSSES // 2


def test_a_storage_that_does_not_sync_is_caught(tmp_path):
    """The simulation can fail: with synchronous=OFF acknowledged entries go missing, or the file is unreadable."""
    for number in range(12):
        try:
            acknowledged, found, fits = after_the_loss(tmp_path, number, careless=True)
        except Exception:
            return
        if not fits or found < acknowledged:
            return
    pytest.fail("nothing was lost in any of them")
