"""The examples run, and the tutorial's promises hold."""

import ast
import re
import runpy
import sys
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import pytest

import cloneproof as cp
from cloneproof.mechanisms import CATALOGUE
from cloneproof.mechanisms.catalogue import ON_PAGES_ONLY
from support.clocks import ticking
from support.sizes import LONG

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda path: path.name)
def test_every_market_file_loads_and_every_mechanism_has_parameters_for_it(path):
    market = cp.load_market(path)
    for name in CATALOGUE:
        if name not in ON_PAGES_ONLY or market.places:
            cp.mechanism(name, market=market)


def test_the_demo_tells_a_story_in_the_terminal(capsys):
    main = runpy.run_path(str(EXAMPLES / "creators.py"))["main"]
    if not LONG:  # an eighth of the rounds
        main.__globals__["MARKET"] = cp.examples.market().with_horizon(500)
    main()
    told = capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 105
    assert re.search(r"Under UCB1 his copies earn him about [3-9]½? times as much", told)
    assert "reservoir they earn him nothing more" in told.replace("\n", " ")
    assert re.search(r"The reservoir has a price\. .* misses \d+ full views, and UCB1 \d+\.", told.replace("\n", " "))
    for command in told[told.index("Next:\n") :].splitlines()[1:]:  # as a shell runs them in the folder of the Makefile
        program, *arguments = command.split("#")[0].split()
        assert program in (".venv/bin/cloneproof", ".venv/bin/python", "make")
        assert all((EXAMPLES.parent / one).exists() for one in arguments if one.startswith("examples/"))
    for number, error in re.findall(r"(\d+) ± (\d+)", told):
        assert int(error) < int(number)


def imported_modules(path):
    """Every module that a script names in an import, as it is written there."""
    modules = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module)
    return modules


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_use_the_public_interface_alone(path):
    """A newcomer copies them: `cloneproof as cp`, parts of mechanisms, the standard library, and what it is about."""
    subjects = {"rich", *(name for name in ("river", "mabwiser") if name in path.name)}
    outside = {
        name
        for name in imported_modules(path) - {"cloneproof", "cloneproof.mechanisms"}
        if name.partition(".")[0] not in sys.stdlib_module_names | subjects
    }
    assert outside == set()
    assert "_" not in {name[0] for name in re.findall(r"\bcp\.(\w+)", path.read_text())}


@pytest.mark.parametrize("path", sorted(set(EXAMPLES.glob("*.py")) - {EXAMPLES / "creators.py"}), ids=lambda p: p.name)
def test_every_script_runs(path, capsys):
    """Those that sample RUNS pairs of runs, with 4 of them and 40 rounds; seconds pass by looks at the clock."""
    if "litellm" in path.read_text() and find_spec("litellm") is None:
        pytest.skip("needs LiteLLM: pip install 'cloneproof[litellm]'")
    if "\nRUNS = " in path.read_text() and not LONG:
        main = runpy.run_path(str(path))["main"]
        main.__globals__["RUNS"] = 4
        main.__globals__["MARKET"] = main.__globals__["MARKET"].with_horizon(40)
        main()
        assert "4 pairs" in capsys.readouterr().out
    else:
        with nullcontext() if LONG else ticking(0.02):
            runpy.run_path(str(path), run_name="__main__")
        assert capsys.readouterr().out
