"""The face of the package: few names, each shown to newcomers, each documented."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof._version import __version__

ROOT = Path(__file__).parents[1]
FIXED = (  # other people's scripts call these
    "Agent", "Discrete", "Market", "Mechanism", "Point", "Session", "audit", "errors", "evaluate", "load_market",
    "mechanism", "rule", "session",
)  # fmt: skip
MODULES = ("adapters", "bounds", "errors", "paper", "results")
SHELF = {
    f"{place}.{name}": getattr(module, name)
    for place, module in (("cp", cp), *((f"cp.{name}", getattr(cp, name)) for name in MODULES if name != "errors"))
    for name in module.__all__
}
PUBLIC = {name: value for name, value in SHELF.items() if callable(value)}


def test_few_names():
    assert len(cp.__all__) <= 39
    assert len(set(cp.__all__)) == len(cp.__all__)
    assert set(FIXED) <= set(cp.__all__)


def test_dir_shows_the_names_and_nothing_else():
    assert [name for name in dir(cp) if not (name.startswith("__") and name.endswith("__"))] == sorted(cp.__all__)


@pytest.mark.parametrize("name", cp.__all__)
def test_every_name_is_shown_to_a_newcomer(name):
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    assert any(re.search(rf"\bcp\.{name}\b", page.read_text(encoding="utf-8")) for page in pages), name


def test_the_symbols_of_the_bounds_stand_in_one_place():
    words = {word for line in cp.bounds.__doc__.splitlines() if line[:4] == "    " for word in line[4:19].split()}
    for name in cp.bounds.__all__:
        assert set(inspect.signature(getattr(cp.bounds, name)).parameters) <= {word.strip(",") for word in words}, name


@pytest.mark.parametrize("name", [name for name in PUBLIC if not name.startswith("cp.bounds.")])
def test_docstrings_name_every_parameter(name):
    """In NumPy's format, which a docs site renders and an editor shows."""
    value = PUBLIC[name]
    text = inspect.getdoc(value) or ""
    assert text.strip(), name
    made_here = name.startswith("cp.results") and inspect.isclass(value)
    heading = "Attributes" if made_here or name in ("cp.Search", "cp.Session") else "Parameters"
    parameters = [key for key in inspect.signature(value).parameters if key not in ("self", "terms")]
    if name == "cp.results.SweepTable":
        parameters = ["summary"]
    if not parameters or name == "cp.Session":
        return
    assert f"{heading}\n{'-' * len(heading)}\n" in text, f"{name} has no section {heading}"
    section = text.partition(f"{heading}\n{'-' * len(heading)}\n")[2].partition("\n\n")[0]
    documented = {
        word.strip("* ")
        for line in section.splitlines()
        if line[:1] != " "
        for word in line.partition(" :")[0].split(",")
    }
    assert set(parameters) <= documented, f"{name} says nothing of {sorted(set(parameters) - documented)}"


def test_the_version_stands_in_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in project["project"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "cloneproof._version.__version__"}
    assert cp.__version__ == __version__
    users = ast.parse((ROOT / "src/cloneproof/_lib/files.py").read_text(encoding="utf-8"))
    imported = [node.module for node in ast.walk(users) if isinstance(node, ast.ImportFrom)]
    assert "cloneproof" not in imported


@pytest.mark.parametrize(
    "asked", [(), ("--help",), ("audit", "--help"), ("audit", "--nonsense"), ("board",), ("schema", "--what")]
)
def test_help_and_refusals_compute_nothing_and_load_nothing_to_compute_with(asked):
    heavy = (
        "numpy", "scipy", "matplotlib", "jinja2", "pandas", "numba", "msgspec", "duckdb", "rapidfuzz", "rich.console",
        "cloneproof.market", "cloneproof.mechanisms",
    )  # fmt: skip
    told = f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    code = f"import sys, cloneproof, atexit; atexit.register(lambda: {told})"
    if asked:
        code += "; from cloneproof.cli import main; main()"
    else:
        code += "; assert 'typer' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, text=True, check=False)
    assert done.returncode == (0 if not asked or "--help" in asked else 2)
    assert done.stderr.splitlines()[-1] == "[]"


def test_every_public_name_loads_alone():
    """A name loads what it needs in an order of its own, in which no import may run in a circle."""
    code = (
        "import os, numpy, scipy.special, scipy.stats, cloneproof as cp\n"
        "for name in cp.__all__:\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(0 if getattr(cp, name) is not None else 1)\n"
        "    assert os.waitpid(child, 0)[1] == 0, name\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
