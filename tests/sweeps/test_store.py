"""The store keeps what is written and tells versions apart; the agenda hands out every missing run once."""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from threading import Barrier

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloneproof.errors import SweepError
from cloneproof.sweeps.store import DamagedChunk, Need, gaps, open_store, read_index, store_status
from cloneproof.sweeps.sweep import Agenda, Sizes
from cloneproof.sweeps.tasks import Chunk

KEY = "0123456789abcdef" * 2


def test_what_is_written_is_read_and_listed(tmp_path):
    chunks = [Chunk(KEY, 0, 10), Chunk(KEY, 10, 5), Chunk("ff" * 16, 0, 0)]
    with open_store(tmp_path / "new" / "store", "v") as store:
        for number, chunk in enumerate(chunks):
            store.write(chunk, bytes([number]) * 100)
    with open_store(tmp_path / "new" / "store", "v") as store:
        assert sorted(store.chunks()) == sorted(chunks)
        assert [store.read(chunk)[0] for chunk in chunks] == [0, 1, 2]
        store.discard(chunks[1])
        with pytest.raises(DamagedChunk, match=chunks[1].name):
            store.read(chunks[1])
        assert read_index(store, [KEY])[0].missing([Need("", (KEY,), 20)]) == [Chunk(KEY, 10, 10)]


def test_drivers_that_open_a_new_store_at_once_all_get_it(tmp_path):
    start = Barrier(4)

    def opened(attempt):
        start.wait()
        with open_store(tmp_path / str(attempt), "v") as store:
            return store.sweeps()

    with ThreadPoolExecutor(4) as drivers:
        for attempt in range(100):  # SQLite refused about 4 % of these
            assert list(drivers.map(opened, [attempt] * 4)) == [[]] * 4


def test_other_versions_and_other_folders_are_refused(tmp_path):
    folder = tmp_path / "store"
    with open_store(folder, "version 1") as store:
        store.write(Chunk(KEY, 0, 1), b"12345678")
    with pytest.raises(SweepError, match=r"version 2.*written by another \(version 1\)"):
        open_store(folder, "version 2").__enter__()
    with open_store(folder, "version 1") as store:
        assert store.read(Chunk(KEY, 0, 1)) == b"12345678"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(SweepError, match="with other files in it"):
        open_store(tmp_path / "mine", "v").__enter__()
    with pytest.raises(SweepError, match="expected a folder for the store"):
        open_store(tmp_path / "mine" / "thesis.tex", "v").__enter__()
    with pytest.raises(SweepError, match="expected the folder of a store"):
        store_status(tmp_path / "mine")


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15))), st.integers(1, 50))
def test_gaps_are_what_the_ranges_leave_out(ranges, runs):
    covered = {run for first, count in ranges for run in range(first, first + count)}
    found = gaps(KEY, [Chunk(KEY, first, count) for first, count in ranges], runs)
    assert {run for gap in found for run in range(gap.first, gap.stop)} == set(range(runs)) - covered
    assert all(gap.runs > 0 for gap in found)


def test_needs_survive_the_store(tmp_path):
    needs = [Need("", (KEY,), 10), Need(KEY, (), 5), Need(KEY, (KEY, KEY), 7)]
    with open_store(tmp_path, "v") as store:
        store.record_sweep("grid.toml", needs)
        store.record_sweep("grid.toml", needs)
        assert store.sweeps() == [("grid.toml", needs)]


def missing_of(key, spans):
    """Disjoint rising chunks out of (space before, runs); without any, the part is to be had whole."""
    found, at = [], 0
    for space, runs in spans:
        found.append(Chunk(key, at + space + 1, runs))
        at = found[-1].stop
    return found or [Chunk(key, 0, 0)]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 50)), max_size=4), min_size=1, max_size=6),
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.integers(1, 4),
)
def test_nothing_is_lost_and_nothing_is_done_twice(parts, shorter, workers):
    """Whatever workers leave undone."""
    missing = {f"part {number}": missing_of(f"part {number}", spans) for number, spans in enumerate(parts)}
    agenda = Agenda(chain.from_iterable(missing.values()), dict.fromkeys(missing, 3), Sizes(chunk_bytes=24 * 16))
    done, flying = [], []
    while agenda.waiting or flying:
        while agenda.waiting and len(flying) < workers:
            flying.append(agenda.next_chunk(workers))
        asked = flying.pop(0)
        assert asked.runs <= 16
        assert len(done) < 5000
        kept = asked._replace(runs=min(asked.runs, shorter[len(done) % len(shorter)]))
        agenda.finish(asked, kept)
        done.append(kept)
    for key, chunks in missing.items():
        own = [chunk for chunk in done if chunk.key == key]
        if chunks[0].runs:
            counted = sorted(run for chunk in own for run in range(chunk.first, chunk.stop))
            assert counted == [run for chunk in chunks for run in range(chunk.first, chunk.stop)]
        else:
            assert own == chunks


def test_few_parts_are_cut_so_that_all_workers_have_something_to_do():
    agenda = Agenda([Chunk("a", 0, 100_000)], {"a": 3}, Sizes(chunk_bytes=1 << 30))
    assert [agenda.next_chunk(workers).runs for workers in (4, 4, 1)] == [12_500, 10_938, 76_562]
