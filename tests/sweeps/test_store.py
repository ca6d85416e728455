"""The store: whole or not there, damage found, versions told apart, a full disk survived."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cloneproof.errors import SweepError
from cloneproof.sweeps.storage.chunk_store import DamagedChunk, StoredChunk, open_store
from cloneproof.sweeps.storage.missing_parts import Need, gaps, needs_from_json, needs_to_json, read_index

KEY = "0123456789abcdef" * 2


def test_what_is_written_is_read_and_listed(tmp_path):
    store = open_store(tmp_path / "new" / "store", "v")
    chunks = [StoredChunk(KEY, 0, 10), StoredChunk(KEY, 10, 5), StoredChunk("ff" * 16, 0, 0)]
    for number, chunk in enumerate(chunks):
        store.write(chunk, bytes([number]) * 100)
    assert sorted(store.chunks()) == sorted(chunks)
    assert [store.read(chunk)[0] for chunk in chunks] == [0, 1, 2]
    assert not list(tmp_path.rglob(".partial-*"))


@pytest.mark.parametrize("kind", ["flipped", "cut", "empty", "renamed", "longer"])
def test_damage_is_found(tmp_path, kind):
    store = open_store(tmp_path, "v")
    good, bad = StoredChunk(KEY, 0, 10), StoredChunk(KEY, 10, 10)
    for chunk in (good, bad):
        store.write(chunk, bytes(range(80)))
    path = Path(store.path(bad))
    data = bytearray(path.read_bytes())
    if kind == "flipped":
        data[-7] ^= 1
    damaged = {"cut": data[:-1], "empty": b"", "longer": data + b"x"}.get(kind, data)
    path.write_bytes(Path(store.path(good)).read_bytes() if kind == "renamed" else damaged)
    with pytest.raises(DamagedChunk, match=bad.name):
        store.read(bad)
    index, found = read_index(store, {KEY: 1})
    assert found == [bad]
    assert index.gaps(KEY, 20) == [(10, 20)]


def test_other_versions_other_layouts_and_other_folders_are_refused(tmp_path):
    folder = tmp_path / "store"
    open_store(folder, "version 1").write(StoredChunk(KEY, 0, 1), b"12345678")
    with pytest.raises(SweepError, match=r"version 2.*written by another \(version 1\)"):
        open_store(folder, "version 2")
    assert open_store(folder, "version 1").read(StoredChunk(KEY, 0, 1)) == b"12345678"
    (folder / "store.json").write_text(json.dumps({"format": 99, "version": "v"}), encoding="utf-8")
    with pytest.raises(SweepError, match="layout 99"):
        open_store(folder, "v")
    (folder / "store.json").write_text("?", encoding="utf-8")
    with pytest.raises(SweepError, match="header of a store"):
        open_store(folder, "v")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(SweepError, match="with other files in it"):
        open_store(tmp_path / "mine", "v")
    with pytest.raises(SweepError, match="expected a folder for the store"):
        open_store(tmp_path / "mine" / "thesis.tex", "v")


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    """A limit on the size of files stands for the disk: the write fails after a part was taken."""
    store = open_store(tmp_path, "v")
    store.write(StoredChunk(KEY, 0, 10), b"x" * 160)
    script = f"""
import resource, signal
from cloneproof.errors import SweepError
from cloneproof.sweeps.storage.chunk_store import StoredChunk, open_store
store = open_store({str(tmp_path)!r}, "v")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    store.write(StoredChunk({KEY!r}, 10, 10), b"x" * 100_000)
except SweepError as problem:
    print(problem)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert "expected room for a chunk" in done.stdout
    assert "run the same command again" in done.stdout
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["store.json", StoredChunk(KEY, 0, 10).name]
    store.write(StoredChunk(KEY, 10, 10), b"x" * 160)
    assert read_index(store)[0].gaps(KEY, 20) == []


def test_old_temporary_files_are_removed_and_young_ones_kept(tmp_path):
    store = open_store(tmp_path, "v")
    store.write(StoredChunk(KEY, 0, 1), b"")
    old, young = (Path(store.path(StoredChunk(KEY, 0, 1))).with_name(f".partial-{name}") for name in ("old", "young"))
    old.touch()
    young.touch()
    os.utime(old, (0, 0))
    store.tidy()
    assert (old.exists(), young.exists()) == (False, True)
    assert list(store.chunks()) == [StoredChunk(KEY, 0, 1)]


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 15))), st.integers(1, 50))
def test_gaps_are_what_the_ranges_leave_out(ranges, runs):
    covered = {run for first, count in ranges for run in range(first, first + count)}
    found = gaps([(first, first + count) for first, count in ranges], runs)
    assert {run for first, stop in found for run in range(first, stop)} == set(range(runs)) - covered
    assert all(first < stop for first, stop in found)


def test_needs_survive_a_file():
    needs = [Need("", (KEY,), 10), Need(KEY, (), 5), Need(KEY, (KEY, KEY), 7)]
    assert needs_from_json(needs_to_json(needs)) == needs
