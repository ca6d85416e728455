"""The table of `make bench-gpu` says that bits are equal only of rows in which somebody looked; no card is needed."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from support.host_kernels import needs_compiler

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "gpu.py"
RUNS, COUNT = 12, 4


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """The functions of the script, with one row in the table, played by the CPU in place of a card."""
    script = SimpleNamespace(**runpy.run_path(str(BENCHMARK)))
    names = script.main.__globals__
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(tmp_path)])
    pretended = {
        "ROWS": {"ucb1": (lambda: script.ten_arms("ucb1"), 8)}, "CHECKED": COUNT, "HORIZON": 40,
        "TimedCard": lambda: SimpleNamespace(seconds=1.0), "on_cores": lambda job: 1.0, "gpu_outcomes": own,
        "versions": dict, "audit_seconds": lambda results: None, "jax_rate": lambda results: None,
    }  # fmt: skip
    names.update(pretended)
    return script


@needs_compiler
def test_every_row_of_the_table_can_be_compared(as_card):
    """By the C++ build of the kernels, over short horizons."""
    script = SimpleNamespace(**runpy.run_path(str(BENCHMARK)))
    script.main.__globals__["HORIZON"] = 60
    assert {name: script.differences(make(), RUNS, COUNT) for name, (make, _) in script.ROWS.items()} == dict.fromkeys(
        script.ROWS, 0
    )
    assert as_card.launches == len(script.ROWS)


def test_a_table_of_rows_that_are_equal_ends_with_0(benchmark, capsys):
    assert benchmark.main() == 0
    assert "0 of 4" in capsys.readouterr().out


def own(job, first, count):
    return job(first, count)


def one_bit_off(job, first, count):
    found = own(job, first, count)
    found.regret[5:6] = np.nextafter(found.regret[5:6], 2)
    return found


def fails(*given):
    raise TypeError("'NoneType' object is not subscriptable")


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ({"gpu_outcomes": lambda job, first, count: own(job, first + 1, count)}, "4 of 4"),  # somebody else's runs
        ({"gpu_outcomes": one_bit_off}, "1 of 4"),
        ({"differences": fails}, "not compared"),  # not taken for a comparison without differences
        ({"ROWS": {"ucb1": (fails, 8)}}, "not compared"),  # a row that cannot be played stays in the table
    ],
)
def test_a_row_that_differs_or_is_not_compared_ends_with_1(benchmark, planted, told, capsys):
    benchmark.main.__globals__.update(planted)
    assert benchmark.main() == 1
    said = capsys.readouterr()
    (row,) = (line for line in said.out.splitlines() if line.startswith("ucb1 "))
    assert told in row
    assert "none" not in row
    assert ("TypeError" in said.err) == (told == "not compared")


def test_who_asks_for_no_comparison_is_told_that_there_was_none(benchmark, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--no-check"])
    assert benchmark.main() == 1
    assert "not compared" in capsys.readouterr().out
