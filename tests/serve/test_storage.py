"""Storages: ids of any age, restarts with and without snapshots, one writer at a time, migrations."""

import sqlite3

import numpy as np
import pytest

from cloneproof.errors import ServeError
from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.ledger.chain import GENESIS, Chain, chain_hashes
from cloneproof.serve.ledger.entries import Decided, keys
from cloneproof.serve.storage import MemoryStorage, open_storage
from cloneproof.serve.storage import id_generations as seen_module
from cloneproof.serve.storage.id_generations import Generations, generation_sums, hashes, split_chunks
from cloneproof.serve.storage.sqlite_schema import MIGRATIONS
from support.service import spec, sqlite


def played(storage, rounds, markets=None, offset=0):
    """A markets that decides and rewards, and checkpoints when storage asks for it."""
    if markets is None:
        markets = ServedMarkets()
        market, _ = markets.create(spec(horizon=10**6), 1000)
        for agent in ("ana", "bo"):
            market.register_agent(agent, 1000)
            market.register_arm(agent, "x", 1000)
        market.start(1000)
        storage.commit(markets.take())
    market = markets.market("feed")
    for number in range(offset, offset + rounds):
        made = market.decide(f"r{number}", 1000 + number)
        if number % 5:
            market.reward(f"e{number}", made.id, 0.5, 1000 + number, None)
        if number % 20 == 0:
            storage.commit(markets.take())
            if storage.checkpoint_due:
                storage.checkpoint(markets.take_snapshots())
    new = markets.take()
    if new:
        storage.commit(new)
    return markets


def state_of(markets):
    market = markets.market("feed")
    return market.chain.head, market.registry.to_dict(), market.session.to_json(), list(market.windows.starts)


@pytest.mark.parametrize("interval", [50, 333, 10**6])
def test_ids_of_any_age_are_found_and_no_others(tmp_path, interval):
    storage = sqlite(tmp_path / "a.db", interval)
    played(storage, 1000)
    storage.close()
    storage = sqlite(tmp_path / "a.db", interval)
    ServedMarkets.recover(storage)
    wanted = [f"q:r{n}" for n in range(1100)] + [f"e:e{n}" for n in range(1100)] + [f"q:e{n}" for n in range(1000)]
    found = storage.find({1: wanted, 2: ["q:r1"]})
    assert found[2] == {}
    assert set(found[1]) == {f"q:r{n}" for n in range(1000)} | {f"e:e{n}" for n in range(1000) if n % 5}
    assert all(name in keys(entry) for name, entry in found[1].items())
    storage.close()


@pytest.mark.parametrize("interval", [50, 333, 10**6])
def test_a_restart_goes_on_as_if_nothing_had_happened(tmp_path, interval):
    memory = MemoryStorage()
    unbroken = played(memory, 700)
    storage = sqlite(tmp_path / "a.db", interval)
    markets = played(storage, 400)
    storage.close()
    storage = sqlite(tmp_path / "a.db", interval)
    markets = played(storage, 300, ServedMarkets.recover(storage), 400)
    assert state_of(markets) == state_of(unbroken) == state_of(ServedMarkets.recover(memory))
    assert [one.line for one in storage.lines(1, 0, 10**6)] == [one.line for one in memory.lines(1, 0, 10**6)]
    assert storage.lines(1, 10, 7) == memory.lines(1, 10, 7)
    assert storage.lines(1, 10**6, 7) == storage.lines(9, 0, 7) == []
    storage.close()


def test_colliding_hashes_do_not_confuse_ids(tmp_path, monkeypatch):
    """With hashes of two bits nearly everything collides, and the entries have the last word."""
    real = hashes
    monkeypatch.setattr("cloneproof.serve.storage.ids.hashes", lambda market, names: real(market, names) & np.uint64(3))
    storage = sqlite(tmp_path / "a.db", 40)
    played(storage, 120)
    found = storage.find({1: [f"q:r{n}" for n in range(200)]})[1]
    assert {name: entry.request for name, entry in found.items()} == {f"q:r{n}": f"r{n}" for n in range(120)}
    storage.close()


def test_the_filter_never_forgets_and_rarely_errs():
    pieces: dict[tuple[int, int], tuple[bytes, bytes]] = {}
    reads = []

    def read(generation, piece):
        reads.append(generation)
        return pieces.get((generation, piece))

    index = Generations(read)
    for generation in range(70):  # more than fit side by side
        values = hashes(1, [f"{generation}:{n}" for n in range(500)])
        places = np.arange(500, dtype=np.int64) + 1000 * generation
        chunks = {piece: (known, where) for piece, known, where in split_chunks(values, places)}
        pieces |= {(generation, piece): chunk for piece, chunk in chunks.items()}
        index.add(values, generation_sums(chunks))
    for generation in (0, 63, 64, 69):
        values = hashes(1, [f"{generation}:{n}" for n in range(500)])
        assert sorted(index.find(values)) == [(n, 1000 * generation + n) for n in range(500)]
    reads.clear()
    assert list(index.find(hashes(1, [f"new {n}" for n in range(500)]))) == []
    assert len(reads) < 5  # 35,000 questions to sparse filters


def test_a_full_filter_errs_as_often_as_its_size_says():
    reads = []
    index = Generations(lambda generation, piece: reads.append(1))
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2**64, seen_module.ENTRIES_PER_GENERATION, dtype=np.uint64)
    index.add(values, generation_sums({}))
    for _ in range(10):
        list(index.find(rng.integers(0, 2**64, 100_000, dtype=np.uint64)))
    rate = (1 - np.exp(-8 / 24)) ** 8  # 4.2e-5
    assert abs(len(reads) / 1e6 - rate) < 5 * (rate / 1e6) ** 0.5 + 0.2 * rate


def test_two_services_cannot_share_a_file(tmp_path):
    storage = sqlite(tmp_path / "a.db")
    with pytest.raises(ServeError, match="already served"):
        open_storage(str(tmp_path / "a.db"))
    storage.close()
    open_storage(str(tmp_path / "a.db")).close()


def test_foreign_and_future_files_are_refused(tmp_path):
    with sqlite3.connect(tmp_path / "foreign.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(ServeError, match="another SQLite file"):
        open_storage(str(tmp_path / "foreign.db"))
    sqlite(tmp_path / "future.db").close()
    with sqlite3.connect(tmp_path / "future.db") as connection:
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    with pytest.raises(ServeError, match="open it with the cloneproof that wrote it"):
        open_storage(str(tmp_path / "future.db"))
    with pytest.raises(ServeError, match="folder"):
        open_storage(str(tmp_path / "none" / "a.db"))


def test_a_failed_commit_leaves_nothing_behind(tmp_path):
    storage = sqlite(tmp_path / "a.db")
    played(storage, 10)
    before = storage.lines(1, 0, 100)
    chain = Chain()
    chain.append(Decided(1, 1, 1, "ana", "x", "play", 1.0, "q"))
    new = chain.take()
    with pytest.raises(sqlite3.IntegrityError):
        storage.commit([(2, "other", new), (1, "feed", new)])
    assert storage.lines(1, 0, 100) == before
    assert storage.lines(2, 0, 100) == []
    assert storage.find({2: ["q:q"]}) == {2: {}}
    storage.close()


def test_a_start_without_snapshots_makes_generations_of_the_usual_size(tmp_path):
    """As after an upgrade that drops them: a filter that all ids went into would name its generation every time."""
    storage = sqlite(tmp_path / "a.db", 100)
    played(storage, 1000)
    storage.close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("DELETE FROM snapshots")
    storage = sqlite(tmp_path / "a.db", 100)
    storage.checkpoint(ServedMarkets.recover(storage).take_snapshots())
    assert set(storage.find({1: [f"q:r{n}" for n in range(1100)]})[1]) == {f"q:r{n}" for n in range(1000)}
    storage.close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        (most,) = connection.execute(
            "SELECT max(size) FROM (SELECT sum(length(hashes)) / 8 AS size FROM seen GROUP BY chunk / 256)"
        ).fetchone()
    assert most < 200
    storage = sqlite(tmp_path / "a.db", 100)
    ServedMarkets.recover(storage)
    assert set(storage.find({1: [f"e:e{n}" for n in range(1100)]})[1]) == {f"e:e{n}" for n in range(1000) if n % 5}
    storage.close()


@pytest.mark.parametrize("change", [("0.5,", "0.75,"), ('"agent":"ana"', '"agent":"bo"')])
def test_a_ledger_that_comes_out_otherwise_is_not_gone_on_with(tmp_path, change):
    """What is appended to it would not fit its chain."""
    storage = sqlite(tmp_path / "a.db")
    played(storage, 20)
    storage.close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("UPDATE ledger SET lines = replace(lines, ?, ?) WHERE place % (1 << 30) > 1", change)
    storage = sqlite(tmp_path / "a.db")
    with pytest.raises(ServeError, match="the hash chain is broken in entries"):
        ServedMarkets.recover(storage)
    storage.close()
    with sqlite3.connect(tmp_path / "a.db") as connection:  # somebody who knows the chain makes it fit
        hash_now = GENESIS
        for place, text in connection.execute("SELECT place, lines FROM ledger ORDER BY place").fetchall():
            *_, after = chain_hashes(hash_now, text.encode().split(b"\n"))
            row = (hash_now, after, place)
            connection.execute("UPDATE ledger SET hash_before = ?, hash_after = ? WHERE place = ?", row)
            hash_now = after
    storage = sqlite(tmp_path / "a.db")
    with pytest.raises(ServeError, match="comes out otherwise here"):
        ServedMarkets.recover(storage)
    storage.close()


def test_a_file_that_is_refused_keeps_its_settings(tmp_path):
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE t (x)")
    foreign.close()
    before = (tmp_path / "foreign.db").read_bytes()
    with pytest.raises(ServeError, match="another SQLite file"):
        open_storage(str(tmp_path / "foreign.db"))
    assert (tmp_path / "foreign.db").read_bytes() == before  # a journal mode is written into the file
    assert [path.name for path in tmp_path.iterdir()] == ["foreign.db"]
