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


def test_importing_loads_nothing_that_only_drawing_and_compiling_need():
    heavy = (
        "matplotlib", "jinja2", "pandas", "numba", "typer", "msgspec", "scipy.special", "scipy.stats",
        "cloneproof.sweeps",
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, cloneproof; print([m for m in {heavy} if m in sys.modules])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
