"""The code version: an edit of any source changes it, and it names every library that can change a number."""

import shutil
import sys
from pathlib import Path

import grimp
import pytest

import cloneproof as cp
from cloneproof._lib.files import LIBRARIES, code_version, package_digest

ROOT = Path(cp.__file__).parent


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy") / "cloneproof"
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_it_names_the_package_and_is_the_same_for_a_copy(copy):
    assert code_version().startswith(f"cloneproof {cp.__version__}, sources {package_digest(copy)}, numpy ")


@pytest.mark.parametrize("path", ["bounds/rounds.py", "mechanisms/bandits/brand_new.py"])
def test_an_edit_and_a_new_file_change_it(copy, path):
    before = package_digest(copy)
    with (copy / path).open("a", encoding="utf-8") as file:
        file.write("# edited\n")
    assert package_digest(copy) != before


def test_every_library_that_can_change_a_number_is_named():
    """What the sources behind a sweep import from elsewhere is in the version, or only reads and shows."""
    graph = grimp.build_graph("cloneproof", include_external_packages=True, cache_dir=None)
    imported = graph.find_upstream_modules("cloneproof.sweeps.tasks")
    foreign = {name.partition(".")[0] for name in imported} - set(sys.stdlib_module_names) - {"cloneproof"}
    named = set(LIBRARIES)
    others = {"tomli_w", "rich", "pandas", "llvmlite", "cupy", "IPython"}  # shown, or beside numba
    assert named <= foreign <= named | others
