"""The file of finished points: what is written is read, what a crash cut is taken away, other files are refused."""

import json

import pytest

from cloneproof.errors import SweepError
from cloneproof.sweeps.sweep import open_store

ANSWER = {"estimates": [["regret", "", {"value": 0.1 + 0.2, "error": 0.0}]], "engine": "tree", "notes": []}


def test_what_is_written_is_read_and_only_what_is_wanted(tmp_path):
    file = tmp_path / "points.jsonl"
    with open_store(file, {"a", "b"}) as store:
        store.add("a", ANSWER)
        store.add("b", ANSWER | {"engine": "auto"})
        assert store.answers["a"] == ANSWER
    with open_store(file, {"b", "c"}) as store:
        assert store.answers == {"b": ANSWER | {"engine": "auto"}}
        store.add("c", ANSWER)
    with open_store(file, {"a", "b", "c"}) as store:
        assert set(store.answers) == {"a", "b", "c"}


@pytest.mark.parametrize("left", [1, 7, -1])
def test_a_line_that_a_crash_cut_is_taken_away(tmp_path, left):
    file = tmp_path / "points.jsonl"
    with open_store(file, {"a", "b"}) as store:
        store.add("a", ANSWER)
        store.add("b", ANSWER)
    whole = file.read_bytes()
    first = whole.index(b"\n") + 1
    file.write_bytes(whole[: first + left] if left > 0 else whole[:left])
    with open_store(file, {"a", "b"}) as store:
        assert set(store.answers) == {"a"}
        store.add("b", ANSWER)
    assert file.read_bytes() == whole


@pytest.mark.parametrize("line", ["horizon = 5", "{}", "[1, {}]", json.dumps(["a", {"estimates": []}]), ""])
def test_other_files_are_refused_and_left_alone(tmp_path, line):
    file = tmp_path / "points.jsonl"
    file.write_text(f"{json.dumps(['a', ANSWER])}\n{line}\n")
    with pytest.raises(SweepError, match="whose line 2 is none"), open_store(file, {"a"}):
        pass
    assert file.read_text().endswith(f"{line}\n")
    file.write_text("my notes")  # without an end of line
    with pytest.raises(SweepError, match="whose line 1 is none"), open_store(file, {"a"}):
        pass
    assert file.read_text() == "my notes"
    with pytest.raises(SweepError, match="got the folder"), open_store(tmp_path, {"a"}):
        pass
