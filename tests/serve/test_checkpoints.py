"""Checkpoints beside the markets: one that is snapshotted waits, the others do not, and nothing is lost or doubled."""

import asyncio
import threading

import pytest

from cloneproof.serve.commit import checkpoints
from cloneproof.serve.commit.commands import Do
from cloneproof.serve.commit.decide import Decide
from cloneproof.serve.market.snapshot import take_snapshot
from cloneproof.serve.offline.reading import replay_all
from cloneproof.serve.storage import SqliteStorage
from support.service import TERMS, Desk, open_market

FEED = "/v1/markets/feed"


@pytest.mark.parametrize("end", ["crash", "close"])
def test_while_a_snapshot_is_taken_the_other_markets_go_on(tmp_path, monkeypatch, end):
    path, begun, gate = str(tmp_path / "market.db"), threading.Event(), threading.Event()

    def slow_snapshot(market):
        begun.set()
        assert gate.wait(60)
        return take_snapshot(market)

    monkeypatch.setattr(checkpoints, "take_snapshot", slow_snapshot)
    with Desk(SqliteStorage(path, interval=50)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        assert desk.call("POST", "/v1/markets", TERMS | {"market": "small"}).status_code == 201
        writer = desk.app._service.writer

        async def meanwhile():
            await writer.submit(Decide("feed", [f"r{n}" for n in range(60)]))
            while not begun.is_set():
                await asyncio.sleep(0)
            own = writer.submit(Decide("feed", ["own"]))
            for _ in range(5):
                assert await writer.submit(Do("small", lambda markets, now: markets.market("small").state)) == "open"
            waited = not own.done()
            gate.set()
            return waited, (await own)[0].decision

        assert desk.runner.run(meanwhile()) == (True, 61)

        def stored():
            return desk.storage._writer.execute("SELECT count(*) FROM seal").fetchone()[0], desk.storage._since

        while not (found := desk.runner.run(writer.in_writing_thread(stored)))[0]:
            desk.call("POST", f"{FEED}/decisions", {"request_id": "more"})
        assert found[1] < 50  # what came in meanwhile counts for the next one
        getattr(desk, end)()
    with Desk(SqliteStorage(path, interval=50)) as again:
        again.key = desk.key
        for request, decision in (("r0", 1), ("r59", 60), ("own", 61)):
            reply = again.call("POST", f"{FEED}/decisions", {"request_id": request}).json()
            assert (reply["decision"], reply["duplicate"]) == (decision, True)
    assert all(found.fits for found in replay_all(path))
