"""The examples run, and the tutorial's promises hold."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.mechanisms import CATALOGUE

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_every_market_file_loads_and_every_mechanism_has_parameters_for_it(path):
    market = cp.load_market(path)
    for name in CATALOGUE:
        cp.mechanism(name, market=market)


def test_creators_prints_every_mechanism():
    command = [sys.executable, str(EXAMPLES / "creators.py"), "2"]
    table = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert all(name in table for name in CATALOGUE)
    assert max(map(len, table.splitlines())) <= 100


@pytest.mark.parametrize(
    "path", sorted(set(EXAMPLES.glob("*.py")) - {EXAMPLES / "creators.py"}), ids=lambda path: path.name
)
def test_every_script_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
