"""The code version: an edit of anything that results depend on changes it, and nothing else does."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import grimp
import pytest

import cloneproof as cp
from cloneproof._sources import LIBRARIES, WORKER, code_version, sources, worker_digest

ROOT = Path(cp.__file__).parent
DISCOVERED = ("market.rewards", "mechanisms.rules", "mechanisms.scores", "mechanisms.restarts")  # found by name


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy") / "cloneproof"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def unedited():
    return worker_digest(ROOT)


def edited(copy, path):
    """The digest with a line more in one file, which is taken out again."""
    file = copy / path
    before = file.read_bytes()
    file.write_bytes(before + b"# edited\n")
    try:
        return worker_digest(copy)
    finally:
        file.write_bytes(before)


def test_it_names_the_package_and_is_the_same_for_a_copy(copy, unedited):
    assert code_version().startswith(f"cloneproof {cp.__version__}, sources ")
    assert worker_digest(copy) == unedited


@pytest.mark.parametrize(
    ("path", "counts"),
    [
        ("bounds/rounds.py", True),
        ("errors.py", True),
        ("_tables.py", True),
        ("_randomness.py", True),
        ("_discovery.py", True),
        ("mechanisms/rules/thompson.py", True),
        ("sweeps/tasks.py", True),
        ("sweeps/table.py", False),  # made anew from what is stored
        ("report/words.py", True),  # the scope of an audit is stored in words
        ("report/style.py", False),
        ("serve/run.py", False),
        ("cli/app.py", False),
    ],
)
def test_what_counts_and_what_does_not(copy, unedited, path, counts):
    if not (copy / path).exists():
        pytest.fail(f"{path} is gone: name another file of that folder")
    assert (edited(copy, path) != unedited) == counts


def test_a_new_file_in_a_package_that_is_searched_by_name_counts(copy, unedited):
    for package in DISCOVERED:
        file = copy / package.replace(".", "/") / "brand_new.py"
        file.write_text("def brand_new(): ...\n", encoding="utf-8")
        assert worker_digest(copy) != unedited, package
        file.unlink()


def test_everything_that_a_worker_loads_is_among_the_sources():
    """By Python itself: computing parts of all kinds in a process where the package's own `__init__` loads nothing."""
    script = f"""
import sys, types, json
package = types.ModuleType("cloneproof")
package.__path__ = [{str(ROOT)!r}]
sys.modules["cloneproof"] = package
from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.market.toml import market_to_toml
from cloneproof.mechanisms import mechanism
from cloneproof.sweeps.tasks import Chunk, mechanism_text, part, work
from cloneproof._sources import code_version
market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), Agent("bo", 1, Point(0.6))], horizon=6)
for name in ("ucb1", "h-etc-r"):
    texts = market_to_toml(market), mechanism_text(mechanism(name, market=market))
    copies = {{"ana": (1, 1), "bo": (1,)}}
    for kind, options in (("exact", {{"engine": "auto", "copies": copies, "arithmetic": "float"}}),
                          ("audit", {{"agent": "ana", "max_copies": 1, "runs": None, "seed": 0, "withhold": False}})):
        work(part(kind, market, texts, options).text, Chunk("k", 0, 0), 1.0)
print(json.dumps([name for name in sys.modules if name.startswith("cloneproof")]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(ast.literal_eval(done.stdout))
    assert loaded - set(sources(WORKER)) == set()
    assert len(loaded) > 100


def test_every_library_that_can_change_a_number_is_named():
    """What the sources import from elsewhere is in the version, or only reads and shows."""
    graph = grimp.build_graph("cloneproof", include_external_packages=True, cache_dir=None)
    foreign = {
        name.partition(".")[0] for module in sources(WORKER) for name in graph.find_modules_directly_imported_by(module)
    }
    numerical = {"python-flint": "flint"}
    named = {numerical.get(name, name) for name in LIBRARIES}
    others = {"tomli_w", "rich", "pandas", "llvmlite", "cupy", "IPython"}  # shown, or beside numba
    assert named <= foreign
    assert foreign - set(sys.stdlib_module_names) - {"cloneproof"} - named - others == set()
