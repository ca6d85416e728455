"""The quick way through plain CSV files has DuckDB's sums, bit for bit, or leaves the log to it."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.errors import LogError
from cloneproof.logs.reader import reading
from cloneproof.logs.reader.columns import chosen_columns
from cloneproof.logs.reader.fast import csv_blocks, csv_scan
from cloneproof.logs.reader.fast.csv_scan import plain_csv_sums
from cloneproof.logs.reader.fast.headway import Headway
from cloneproof.logs.reader.sources import log_source
from cloneproof.logs.reader.statistics import arm_sums, checked_scale, row_terms

QUIET = settings(
    deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


pytestmark = pytest.mark.usefixtures("one_connection")


def both(files, limits=(0, 1), same=(), **given):
    """The sums of the quick way (None where it leaves the log to DuckDB) and DuckDB's (None where it refuses)."""
    source = log_source(files, 2)
    columns = chosen_columns(list(source.columns), given, same)
    scale = checked_scale(limits)
    try:
        terms = row_terms(source, columns, scale)
    except LogError:
        return None, None  # it is read leniently by DuckDB
    try:
        slow = arm_sums(source, columns, scale, terms)
    except LogError:
        slow = None
    return plain_csv_sums(source, columns, scale, terms, Headway(), large=0), slow


def in_order(sums):
    return sorted(map(repr, sums))


NAMES = st.sampled_from(
    [
        "a",
        "b",
        "abcdefgh",
        "abcdefghi",
        "a" * 16,
        "a" * 17,
        "a" * 16 + "b",
        "a" * 40,
        "ünï",
        "名",
        " x",
        "x ",
        "#x",
        "it's",
        "NULL",
        "7",
    ]
)
REWARDS = st.sampled_from(
    ["0", "1", "0.5", "0.25", "1.0", "0.000001", "0.0000005", "0.1234565", "00.5", "0.333333333333333", "1.000"]
)
TIMES = st.sampled_from(["0", "17", "1700000000", "1700000000123456789", "-3", "12.5", "0.1"])
MOMENTS = st.sampled_from(
    ["2026-03-01", "2024-02-29", "2026-03-01 12:34:56", "1969-12-31T23:59:59.5", "2026-03-01T00:00:00.123456Z"]
)
ODDITIES = st.sampled_from(
    ['"q"', "", "x", "2", "-1", "+1", "1e-1", ".5", "5.", " 1", "1 ", "nan", "inf", "-0", "1_0", "0x1", "1,0", "a\rb",
     "\t", "1\n\n1", "\x1b", "2026-02-29", "2026-13-01", "2026-03-01 24:00:00", "soon", "12:00", "2026-03-01 1:2:3",
     "2026-03-01 12:34:56+01", "\x85", "\u2028", "9" * 20, "0." + "1" * 30, "True", "'"]
)  # fmt: skip


@st.composite
def lines(draw, times):
    return [draw(st.tuples(NAMES, NAMES, REWARDS, times, st.sampled_from(["", "t", "t2", "ab", "ü"])))
            for _ in range(draw(st.integers(1, 12)))]  # fmt: skip


def text_of(rows, ending="\n", delimiter=",", last=True):
    head = ["advertiser", "campaign", "click", "ts", "title"]
    return ending.join(delimiter.join(row) for row in [head, *rows]) + (ending if last else "")


@QUIET
@given(lines(TIMES) | lines(MOMENTS), st.sampled_from(["\n", "\r\n"]), st.sampled_from(",;\t|"), st.booleans())
def test_plain_lines_have_the_sums_of_duckdb(tmp_path, rows, ending, delimiter, last):
    (tmp_path / "x.csv").write_bytes(text_of(rows, ending, delimiter, last).encode())
    quick, slow = both(tmp_path / "x.csv", same=("title",))
    assert quick is not None
    assert in_order(quick) == in_order(slow)


@QUIET
@given(lines(TIMES) | lines(MOMENTS), st.integers(0, 4), st.integers(0, 11), ODDITIES, st.sampled_from(["\n", "\r\n"]))
def test_whatever_is_odd_has_the_sums_of_duckdb_or_is_left_to_it(tmp_path, rows, field, row, oddity, ending):
    """Also where the file is refused by DuckDB: then the quick way has no answer either."""
    changed = [list(each) for each in rows]
    changed[row % len(rows)][field] = oddity
    (tmp_path / "x.csv").write_bytes(text_of(changed, ending).encode())
    quick, slow = both(tmp_path / "x.csv", same=("title",))
    if quick is not None:
        assert slow is not None
        assert in_order(quick) == in_order(slow)


@pytest.mark.parametrize(
    "tail",
    [b"ana,a\n", b"ana,a,1,1\n", b"\n", b"ana,a,\n", b",a,1\n", b"ana,,1\n", b"ana,a,2\n", b"ana,a,yes\n",
     b"\xff,a,1\n",
     b'"ana",a,1\n', b"ana,a,1\r\n", b"ana,a,1\rana,a,1\n", b"a" * 5000 + b",a,1\n", b"a" * 100_000 + b",a,1\n",
     b"ana,a,1,", b"ana", b"ana\na,1\n"],
)  # fmt: skip
def test_one_line_that_is_not_plain_leaves_all_to_duckdb(tmp_path, tail):
    (tmp_path / "x.csv").write_bytes(b"agent,arm,click\n" + b"ana,a,1\nbo,b,0\n" * 50 + tail)
    assert both(tmp_path / "x.csv")[0] is None


def test_a_zero_beyond_the_first_bytes_leaves_all_to_duckdb(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"agent,arm,click\n" + b"ana,a,1\nbo,b,0\n" * 70_000 + b"an\0a,a,1\n")
    assert both(tmp_path / "x.csv")[0] is None


def test_blocks_threads_and_files_do_not_matter(tmp_path, monkeypatch):
    """Lines across the ends of blocks, tables that grow, files with other headers, costs, a wide range of rewards."""
    monkeypatch.setattr(csv_blocks, "BLOCK", 1000)
    monkeypatch.setattr(csv_scan, "BLOCK", 1000)
    dice = random.Random(3)
    rows = [(f"adv-{dice.randrange(40)}", f"camp-{dice.randrange(4000)}", f"{-dice.randrange(2_000_000) / 1000}",
             str(dice.randrange(10**6)), f"title {dice.randrange(9)}") for _ in range(9000)]  # fmt: skip
    (tmp_path / "a.csv").write_text(text_of(rows[:5000]))
    turned = [row[::-1] for row in rows[5000:]]
    header = ("title", "ts", "click", "campaign", "advertiser")
    (tmp_path / "b.csv").write_text("\n".join(";".join(row) for row in [header, *turned]))
    quick, slow = both(tmp_path, limits=(-2000, 0), same=("title",))
    assert in_order(quick) == in_order(slow)
    monkeypatch.setattr(csv_scan, "MOST_PAIRS", 3000)
    assert both(tmp_path, limits=(-2000, 0))[0] is None


@pytest.mark.parametrize(("name", "limits"), [("rating", (1, 5)), ("rating", (0, 9)), ("cost", (-5, 0))])
def test_ratings_of_one_digit(tmp_path, name, limits):
    dice = random.Random(3)
    values = [abs(value) for value in range(limits[0], limits[1] + 1)]
    rows = [f"{dice.choice('ab')},{dice.choice('cd')},{dice.choice(values)}" for _ in range(1000)]
    (tmp_path / "x.csv").write_text("\n".join([f"agent,arm,{name}", *rows, "a,c,2.5"]))
    quick, slow = both(tmp_path / "x.csv", limits)
    assert in_order(quick) == in_order(slow)
    (tmp_path / "x.csv").write_text("\n".join([f"agent,arm,{name}", *rows, "a,c,-1" if name == "cost" else "a,c,10"]))
    assert both(tmp_path / "x.csv", limits)[0] is None


def test_names_that_were_made_to_collide_are_left_to_duckdb(tmp_path):
    """Pairs of 8 bytes with one and the same hash: they are found by algebra, since the hash is no secret."""
    from cloneproof.logs.reader.fast.csv_kernel import FACTORS, MOST_STEPS

    inverse = np.uint64(pow(int(FACTORS[0]), -1, 1 << 64))
    arms = np.random.default_rng(1).integers(97, 123, (3_000_000, 8), np.uint8)
    agents = ((np.uint64(12345) - arms.view(np.uint64) * FACTORS[2]) * inverse).view(np.uint8)
    plain = (agents > 44) & (agents < 124)
    lines = [bytes(agents[k]) + b"," + bytes(arms[k]) + b",1" for k in np.flatnonzero(plain.all(axis=1))]
    assert len(lines) > MOST_STEPS
    (tmp_path / "x.csv").write_bytes(b"\n".join([b"agent,arm,click", *lines]))
    assert both(tmp_path / "x.csv")[0] is None
    (tmp_path / "x.csv").write_bytes(b"\n".join([b"agent,arm,click", *lines[:100]]))
    quick, slow = both(tmp_path / "x.csv")
    assert in_order(quick) == in_order(slow)


def test_read_log_says_the_same_by_both_ways(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("cost,arm,agent,time\n" + "1,a,ana,2026-03-01\n0,b,bo,2026-03-02 01:02:03\n" * 200)
    asked = {"limits": (-1, 0), "cache": False}
    slow = cp.read_log(tmp_path / "x.csv", **asked)
    monkeypatch.setattr(plain_csv_sums, "__defaults__", (0,))
    calls, told = [], []
    monkeypatch.setattr(reading, "arm_sums", lambda *_: calls.append(1))
    assert cp.read_log(tmp_path / "x.csv", progress=told.append, **asked) == slow
    assert slow.arms[1].last == "2026-03-02 01:02:03"
    assert calls == []
    assert told[-1] in (0, 1)
    owned = {"a": "ana", "b": "bo"}
    assert cp.read_log(tmp_path / "x.csv", owners=owned, **asked).arms == slow.arms


def test_who_stops_waiting_stops_the_scan(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text("agent,arm,click\n" + "ana,a,1\n" * 1000)
    monkeypatch.setattr(plain_csv_sums, "__defaults__", (0,))
    source, scale = log_source(tmp_path / "x.csv"), checked_scale((0, 1))
    columns = chosen_columns(list(source.columns), {})
    headway = Headway()
    headway.stop.set()
    with pytest.raises(LogError, match="interruption"):
        plain_csv_sums(source, columns, scale, row_terms(source, columns, scale), headway)
