"""The table of `make bench-gpu` says that bits are equal only of rows in which somebody looked; no card is needed."""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.monte_carlo.outcomes import outcomes
from support.host_kernels import needs_compiler

BENCHMARK = Path(__file__).parents[4] / "benchmarks" / "gpu.py"
RUNS, COUNT, BEGIN = 12, 4, 6


def played(rounds=None, runs=RUNS):
    """Outcomes of two agents, no two numbers alike; pulls only if they are given."""
    numbers = np.random.default_rng(2).random((runs, 5))
    return Outcomes(numbers[:, :2], numbers[:, 2], numbers[:, 3:], rounds)


def middle(whole):
    """What the CPU plays: a few of the runs, its own copies of them."""
    return Outcomes(*(None if each is None else each[BEGIN : BEGIN + COUNT].copy() for each in whole))


@pytest.fixture
def benchmark(monkeypatch, tmp_path):
    """The functions of the script, with one row in the table, played by the CPU in place of a card."""
    script = SimpleNamespace(**runpy.run_path(str(BENCHMARK)))
    names = script.main.__globals__
    monkeypatch.setattr(sys, "argv", ["gpu.py", "--out", str(tmp_path)])
    pretended = {
        "ROWS": {"ucb1": (lambda: script.ten_arms("ucb1"), 8)}, "CHECKED": COUNT, "HORIZON": 40,
        "TimedCard": lambda: SimpleNamespace(seconds=1.0), "on_cores": lambda job: 1.0, "gpu_outcomes": outcomes,
        "versions": dict, "audit_seconds": lambda results: None, "jax_rate": lambda results: None,
    }  # fmt: skip
    names.update(pretended)
    return script


def test_outcomes_without_pulls_are_compared_by_what_they_have(benchmark):
    pulls = np.arange(2.0 * RUNS).reshape(RUNS, 2)
    for mine, theirs in ((None, None), (None, pulls), (pulls, None), (pulls, pulls)):
        assert benchmark.runs_that_differ(played(mine), middle(played(theirs)), BEGIN) == 0


@pytest.mark.parametrize("field", ["payoff", "regret", "served", "rounds"])
def test_a_bit_in_any_of_them_is_a_run_that_differs(benchmark, field):
    whole = played(np.ones((RUNS, 2)))
    theirs = middle(whole)
    numbers = getattr(theirs, field)
    numbers[1] = np.nextafter(numbers[1], 2)
    assert benchmark.runs_that_differ(whole, theirs, BEGIN) == 1


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


def fails(*given):
    raise TypeError("'NoneType' object is not subscriptable")


@pytest.mark.parametrize(
    ("planted", "told"),
    [
        ({"gpu_outcomes": lambda job, first, count: outcomes(job, first + 1, count)}, "4 of 4"),  # somebody else's runs
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
