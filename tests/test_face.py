"""The face of the package: few names, each shown to newcomers, each documented; what moved says where it went."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof._late_names import MOVED
from cloneproof._version import __version__

ROOT = Path(__file__).parents[1]
FIXED = (  # other people's scripts call these
    "Agent", "Discrete", "Market", "Mechanism", "Point", "Session", "audit", "errors", "evaluate", "load_market",
    "mechanism", "rule", "session",
)  # fmt: skip
MODULES = ("adapters", "bounds", "errors", "paper", "parts", "results")
SHELF = {
    f"{place}.{name}": getattr(module, name)
    for place, module in (("cp", cp), *((f"cp.{name}", getattr(cp, name)) for name in MODULES if name != "errors"))
    for name in module.__all__
}
PUBLIC = {name: value for name, value in SHELF.items() if callable(value)}


def test_few_names():
    assert len(cp.__all__) <= 32
    assert len(set(cp.__all__)) == len(cp.__all__)
    assert set(FIXED) <= set(cp.__all__)


def test_dir_shows_the_names_and_nothing_else():
    assert [name for name in dir(cp) if not (name.startswith("__") and name.endswith("__"))] == sorted(cp.__all__)


@pytest.mark.parametrize("name", cp.__all__)
def test_every_name_is_shown_to_a_newcomer(name):
    shown = (ROOT / "README.md").read_text(encoding="utf-8") + (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    assert re.search(rf"\bcp\.{name}\b", shown), f"cp.{name} is neither in README.md nor in docs/tutorial.md"


@pytest.mark.parametrize(("name", "place"), MOVED.items())
def test_what_moved_still_works_and_says_where_it_is(name, place):
    with pytest.warns(
        DeprecationWarning, match=rf"cp\.{name} has moved to {place.replace('cloneproof', 'cp')}\.{name}"
    ):
        old = getattr(cp, name)
    assert old is getattr(importlib.import_module(place), name)
    assert name not in dir(cp)


def test_what_never_was_is_an_attribute_error():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AttributeError, match="module 'cloneproof' has no attribute 'audits'"):
            cp.audits  # noqa: B018


def test_nobody_here_uses_a_moved_name():
    pattern = re.compile(rf"\bcp\.(?:{'|'.join(MOVED)})\b|from cloneproof import .*\b(?:{'|'.join(MOVED)})\b")
    places = ("src", "tests", "docs", "examples", "studies", "benchmarks")
    pages = [path for place in places for path in (ROOT / place).rglob("*") if path.suffix in (".py", ".md", ".toml")]
    pages += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    used = [path for path in pages if path.name != "test_face.py" and pattern.search(path.read_text(encoding="utf-8"))]
    assert used == []


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_name_every_parameter(name):
    """In NumPy's format, which a docs site renders and an editor shows."""
    value = PUBLIC[name]
    text = inspect.getdoc(value) or ""
    assert text.strip(), name
    made_here = name.startswith("cp.results") and inspect.isclass(value)
    heading = "Attributes" if made_here or name == "cp.Session" else "Parameters"
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
    users = ast.parse((ROOT / "src/cloneproof/sweeps/code_version.py").read_text(encoding="utf-8"))
    imported = [node.module for node in ast.walk(users) if isinstance(node, ast.ImportFrom)]
    assert "cloneproof" not in imported


def test_importing_loads_nothing_that_only_drawing_and_compiling_need():
    heavy = "('matplotlib', 'jinja2', 'pandas', 'numba', 'typer', 'msgspec', 'scipy.stats', 'cloneproof.sweeps')"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, cloneproof; print([m for m in {heavy} if m in sys.modules])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "[]"
