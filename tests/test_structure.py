"""The rooms: no import circle, also not through late imports; tests mirror the package and import by today's names."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
OTHERS = {"docs", "proof", "studies", "support"}  # folders of tests that are not of a package
DATA = {"serve/formats", "reproduce/planted_rows"}


def circle(package):
    """Some circle of imports, as the modules on it; [] where there is none."""
    graph = grimp.build_graph(package, cache_dir=None)
    try:
        TopologicalSorter({name: graph.find_modules_directly_imported_by(name) for name in graph.modules}).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_import_circle_also_through_late_imports():
    assert circle("cloneproof") == []


def test_a_circle_through_a_late_import_is_noticed(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "rooms"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from rooms import second\n")
    (package / "second.py").write_text("def ask():\n    from rooms.first import second\n    return second\n")
    assert set(circle("rooms")) == {"rooms.first", "rooms.second"}
    (package / "second.py").write_text("import ast\n")
    assert circle("rooms") == []


def test_folders_of_tests_mirror_the_package():
    folders = {file.parent.relative_to(ROOT / "tests") for file in (ROOT / "tests").rglob("*.py")}
    mirrored = [
        each for each in folders if each.parts[:1] and each.parts[0] not in OTHERS and each.as_posix() not in DATA
    ]
    assert len(mirrored) > 10
    assert [each.as_posix() for each in sorted(mirrored) if not (ROOT / "src" / "cloneproof" / each).is_dir()] == []


def renamed(text):
    """Modules of ours that are imported under the name of another thing, as `from cloneproof.a import b as c`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("cloneproof"):
            for name in node.names:
                file = ROOT / "src" / Path(*(node.module or "").split(".")) / f"{name.name}.py"
                if name.asname and file.exists():
                    yield f"{name.name} as {name.asname}"


def test_tests_import_modules_by_their_names():
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = {file.name: list(renamed(file.read_text(encoding="utf-8"))) for file in files}
    assert {name: each for name, each in found.items() if set(each) - {"entries as ledger"}} == {}  # as in the package
    assert list(renamed("from cloneproof.bounds import rounds as times, regret")) == ["rounds as times"]
