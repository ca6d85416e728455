"""A file that an earlier cloneproof wrote still opens, replays and goes on: same hashes, same decisions, same balances.

`file_of_schema_2.sql` is the dump of a file that was not closed: two markets (h-etc-r; thompson in its second season),
snapshots and stored ids from the middle, entries after them, with defaults and late rewards. The numbers below are what
the code that wrote it made of it. `feed` was played again, with the same calls, when rounds that wait for rewards
became neutral: a ledger that waited by the rule before is one of that code. Times of
defaults that were entered after a restart are at most one window after the last entry.
"""

import sqlite3
from pathlib import Path

import pytest

from cloneproof.serve.offline.reading import replay_all
from support.service import Desk, sqlite

DUMP = Path(__file__).with_name("file_of_schema_2.sql")
HEADS = {
    "feed": "892130388b8e3b9ef037d1fe31a156d4e3adea5310f3d6def9ddd0c30774a67c",
    "shop": "5ab2556e5e5938ee5a7ba1fe6c46b5f1b23ab49454c71087bf7b67be09fe024c",
}
BALANCES = {"feed": {"ana": 3_200_000, "bo": 3_600_000}, "shop": {"ana": 12_250_000, "bo": 2_500_000}}
NEXT = {
    "feed": ["ana-0", "bo-0", "ana-0", "bo-0", "ana-0", "bo-0"],
    "shop": ["ana-1", "ana-0", "ana-0", "ana-1", "ana-1", "ana-0"],
}
LAST_HEADS = {
    "feed": "411925272b0a0b68cdcb76d95cc40eac93dc1449366a2d92d0155cf9d388a817",
    "shop": "efabc7eaf79b553e785c07e9afd1222e2b9918a410f6ee18e5db36f383469fbf",
}


@pytest.fixture
def path(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.executescript(DUMP.read_text(encoding="utf-8"))
    connection.close()
    return tmp_path / "a.db"


@pytest.mark.parametrize("snapshots", [True, False])
def test_it_goes_on_as_the_code_that_wrote_it(path, snapshots):
    if not snapshots:
        with sqlite3.connect(path) as connection:
            connection.executescript("DELETE FROM snapshots; DELETE FROM seen;")
    with Desk(sqlite(path, 60)) as desk:
        desk.clock.now = 1_040_000
        for name, arms in NEXT.items():
            market = f"/v1/markets/{name}"
            progress = desk.call("GET", f"{market}/progress").json()
            assert progress["head"] == HEADS[name]
            assert {agent["agent"]: agent["balance"] for agent in progress["agents"]} == BALANCES[name]
            replies = [desk.call("POST", f"{market}/decisions", {"request_id": f"n-{k}"}).json() for k in range(6)]
            assert [reply["arm"] for reply in replies] == arms
            again = desk.call("POST", f"{market}/decisions", {"request_id": "q-2"}).json()
            assert (again["decision"], again["duplicate"]) == (3, True)
            assert desk.call("GET", f"{market}/progress").json()["head"] == LAST_HEADS[name]
    assert {result.market: result.head for result in replay_all(str(path))} == LAST_HEADS


def test_it_replays(path):
    assert [(result.market, result.fits, result.entries) for result in replay_all(str(path))] == [
        ("feed", True, 76),
        ("shop", True, 89),
    ]
