"""Hostile logs: one sentence and exit code 2, and what it says cannot do anything to a terminal or a page.

Those whose sentence is ours alone are in tests/errors/logs.txt.
"""

import gzip
import json

import pytest

from support.command import run

HEAD = b"agent,arm,click\n"
GOOD = b"ana,a,1\n"


def parquet(columns):
    def write(path):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(columns), path)

    return write


HOSTILE = {  # the name of the file, what is in it, what the sentence has
    "binary": ("x.csv", bytes(range(256)) * 40, "UTF-8|binary"),
    "zeros": ("x.csv", b"\0" * 5000, "binary"),
    "an Excel file": ("x.csv", b"PK\x03\x04" + b"\x14\0" * 50, "Excel"),
    "gzip without its suffix": ("x.csv", gzip.compress(HEAD + GOOD), "gzip"),
    "broken gzip": ("x.csv.gz", b"\x1f\x8b\x08\0abc", "can be read"),
    "UTF-16": ("x.csv", (HEAD + GOOD).decode().encode("utf-16"), "UTF-16"),
    "Latin-1 below it": ("x.csv", HEAD + GOOD * 50 + "zoë,b,1\n".encode("latin-1"), "."),
    "too few fields": ("x.csv", HEAD + GOOD + b"bo,b\n", "line 3"),
    "too many fields": ("x.csv", HEAD + GOOD + b"bo,b,1,1\n", "line 3"),
    "an open quote": ("x.csv", HEAD + GOOD + b'"bo,b,1\n' * 3, "."),
    "many columns": ("x.csv", b",".join(b"c%d" % k for k in range(20_000)) + b"\n1\n", "10,000 columns"),
    "a line without end": ("x.csv", HEAD + GOOD + b"bo," + b"b" * 3_000_000 + b",1\n", "."),
    "a line break in a name": ("x.csv", HEAD + b'"an\na",a,1\n', "control character"),
    "an escape in a name": ("x.csv", HEAD + b"an\x1b[2Ja,a,1\n", "control character"),
    "a name of megabytes": ("x.csv", HEAD + b"a" * 100_000 + b",a,1\n", "letters"),
    "broken Parquet": ("x.parquet", b"PAR1" + b"\0" * 100 + b"PAR1", "can be read"),
    "lists as agents": ("x.parquet", parquet({"agent": [[1]], "arm": ["a"], "click": [1]}), "type"),
    "dates as rewards in Parquet": ("x.parquet", parquet({"agent": ["a"], "arm": ["a"], "click": [b"x"]}), "type"),
    "broken JSON below": ("x.jsonl", b'{"agent":"ana","arm":"a","click":1}\n' * 3 + b"{oops\n", "JSON"),
    "deep JSON": ("x.jsonl", b"[" * 100_000 + b"\n", "JSON"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_one_sentence_and_exit_code_2(kind, tmp_path):
    name, content, expected = HOSTILE[kind]
    if callable(content):
        content(tmp_path / name)
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    done = run("log", tmp_path / name, "--statistics")
    assert done.returncode == 2
    errors = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert len(errors) == 1, errors
    assert errors[0].startswith("error: ")
    assert any(part in errors[0] for part in expected.split("|")), errors[0]
    assert errors[0].isprintable()
    assert len(errors[0]) < 1000
    assert done.stdout == ""


def test_a_byte_order_mark_and_windows_lines_are_no_fault(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbfagent,arm,click\r\nana,a,1\r\nbo,b,0\r\n")
    done = run("log", tmp_path / "x.csv", "--statistics", "--json")
    assert done.returncode == 0
    read = json.loads(done.stdout)
    assert [(arm["agent"], arm["rounds"], arm["total"]) for arm in read["arms"]] == [("ana", 1, "1"), ("bo", 1, "0")]
