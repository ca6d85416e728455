"""The quick way through Parquet files has DuckDB's sums, bit for bit, or leaves the log to it."""

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.errors import LogError
from cloneproof.logs.reader import reading
from cloneproof.logs.reader.columns import chosen_columns
from cloneproof.logs.reader.fast import parquet_scan
from cloneproof.logs.reader.fast.headway import Headway
from cloneproof.logs.reader.fast.parquet_scan import plain_parquet_sums
from cloneproof.logs.reader.fast.parquet_types import parquet_types
from cloneproof.logs.reader.sources import log_source
from cloneproof.logs.reader.statistics import arm_sums, checked_scale, row_terms

QUIET = settings(
    deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(autouse=True, scope="module")
def no_file_is_too_small(one_connection):
    one_connection.setattr(parquet_types, "__defaults__", (0,))


def both(files, limits=(0, 1), **given):
    """The sums of the quick way (None where it leaves the log to DuckDB) and DuckDB's."""
    source, scale = log_source(files, 2), checked_scale(limits)
    columns = chosen_columns(list(source.columns), given)
    terms = row_terms(source, columns, scale)
    return plain_parquet_sums(source, columns, scale, terms, Headway()), arm_sums(source, columns, scale, terms)


def in_order(sums):
    return sorted(map(repr, sums))


TYPES = {
    "BOOLEAN": pa.bool_(), "TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INTEGER": pa.int32(), "BIGINT": pa.int64(),
    "UTINYINT": pa.uint8(), "USMALLINT": pa.uint16(), "UINTEGER": pa.uint32(),
}  # fmt: skip
NAMES = st.sampled_from(["a", "b", "abcdefghi", "a" * 5000, "ünï", "名", " x", "x ", "it's", "NULL", "7", "a\0", "\n"])


@QUIET
@given(st.lists(st.tuples(NAMES, NAMES, st.booleans()), min_size=1, max_size=30), st.sampled_from(list(TYPES)),
       st.integers(1, 12), st.booleans())  # fmt: skip
def test_plain_rows_have_the_sums_of_duckdb(tmp_path, rows, kind, group, dictionaries):
    agents, arms, clicks = zip(*rows, strict=True)
    table = pa.table({"agent": agents, "arm": arms, "click": pa.array(map(int, clicks)).cast(TYPES[kind])})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=group, use_dictionary=dictionaries)
    quick, slow = both(tmp_path / "x.parquet")
    assert quick is not None
    assert in_order(quick) == in_order(slow)


PLAIN = {"agent": ["ana", "bo"] * 30, "arm": ["a", "b"] * 30, "click": [0, 1] * 30}


def changed(name, kind, *values):
    return pa.table(PLAIN | {name: pa.array([*PLAIN[name][: -len(values)], *values], kind)})


@pytest.mark.parametrize(
    "table",
    [changed("agent", pa.string(), None), changed("arm", pa.string(), None), changed("click", pa.int8(), None),
     changed("agent", pa.string(), ""), changed("arm", pa.string(), ""), changed("click", pa.int8(), 2),
     changed("click", pa.int64(), -1), changed("click", pa.float64(), 0.5), changed("click", pa.uint64(), 1),
     pa.table(PLAIN | {"arm": list(range(60))}),
     pa.table(PLAIN | {"ts": list(range(60))}), pa.table(PLAIN | {"propensity": [0.5] * 60})],
)  # fmt: skip
def test_whatever_is_not_plain_is_left_to_duckdb(tmp_path, table):
    pq.write_table(table, tmp_path / "x.parquet")
    assert both(tmp_path / "x.parquet")[0] is None


def test_types_are_those_of_duckdb(tmp_path):
    """So are names that differ by their case, columns in a path, and nested columns: then DuckDB is asked."""
    usual = {
        name: pa.array([1], kind) for name, kind in (TYPES | {"UBIGINT": pa.uint64()}).items() if name != "BOOLEAN"
    }
    usual |= {"BOOLEAN": pa.array([True]), "VARCHAR": ["x"], "FLOAT": pa.array([1.0], pa.float32()), "DOUBLE": [1.0]}
    pq.write_table(pa.table(usual), tmp_path / "x.parquet")
    assert parquet_types([tmp_path / "x.parquet"]) == {name: name for name in usual}
    source = log_source(tmp_path / "x.parquet")
    described = source.query(f"DESCRIBE SELECT * FROM {source.rows}")
    assert {name: kind for name, kind, *_ in described} == {name: name for name in usual}
    for number, table in enumerate([{"a": [1], "A": [2]}, {"a": [[1]]}, {"a": [{"b": 1}]}, {"a": [b"x"]}]):
        pq.write_table(pa.table(table), tmp_path / f"{number}.parquet")
        assert parquet_types([tmp_path / f"{number}.parquet"]) is None
    (tmp_path / "day=1").mkdir()
    pq.write_table(pa.table(usual), tmp_path / "day=1" / "x.parquet")
    assert parquet_types([tmp_path / "day=1" / "x.parquet"]) is None
    assert parquet_types([tmp_path / "x.parquet"], large=1 << 20) is None


def test_files_row_groups_and_tables_that_grow_do_not_matter(tmp_path, monkeypatch):
    dice = random.Random(3)
    rows = [(f"adv-{dice.randrange(40)}", f"camp-{dice.randrange(300)}", -dice.randrange(2000)) for _ in range(20_000)]
    for number in range(2):
        agents, arms, costs = zip(*rows[number::2], strict=True)
        table = pa.table({"agent": agents, "arm": arms, "cost": costs})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=3000)
    quick, slow = both(tmp_path, limits=(0, 2000))
    assert in_order(quick) == in_order(slow)
    assert len(quick) > 4096
    monkeypatch.setattr(parquet_scan, "MOST_PAIRS", 3000)
    assert both(tmp_path, limits=(0, 2000))[0] is None
    monkeypatch.setattr(parquet_scan, "FEW_NAMES", 10)
    assert both(tmp_path, limits=(0, 2000))[0] is None


def test_read_log_says_the_same_by_both_ways(tmp_path, monkeypatch):
    pq.write_table(pa.table(PLAIN), tmp_path / "x.parquet")
    calls, told = [], []
    with monkeypatch.context() as patch:
        patch.setattr(reading, "plain_parquet_sums", lambda *_: None)
        slow = cp.read_log(tmp_path / "x.parquet", cache=False)
    monkeypatch.setattr(reading, "arm_sums", lambda *_: calls.append(1))
    assert cp.read_log(tmp_path / "x.parquet", cache=False, progress=told.append) == slow
    owned = {"a": "ana", "b": "bo"}
    assert cp.read_log(tmp_path / "x.parquet", cache=False, owners=owned).arms == slow.arms
    assert calls == []
    assert told[-1] in (0, 1)


def test_a_file_that_ends_early_is_refused_in_one_sentence(tmp_path):
    pq.write_table(pa.table(PLAIN), tmp_path / "x.parquet")
    whole = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(LogError, match="mend the file"):
        cp.read_log(tmp_path / "x.parquet", cache=False)


def test_who_stops_waiting_stops_the_scan(tmp_path):
    pq.write_table(pa.table(PLAIN), tmp_path / "x.parquet")
    source, scale, headway = log_source(tmp_path / "x.parquet"), checked_scale((0, 1)), Headway()
    columns = chosen_columns(list(source.columns), {})
    headway.stop.set()
    with pytest.raises(LogError, match="interruption"):
        plain_parquet_sums(source, columns, scale, row_terms(source, columns, scale), headway)
