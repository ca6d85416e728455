"""The rooms: no import circle, also not through late imports; tests mirror the package and import by today's names."""

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
OTHERS = {"docs", "ends", "proof", "studies", "support"}  # folders of tests that are not of a package
DATA = {"serve/formats", "paper/planted_rows"}


def circle(package):
    """Some circle of imports, but for those of types alone, as the modules on it; [] where there is none."""
    graph = grimp.build_graph(package, cache_dir=None, exclude_type_checking_imports=True)
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


def test_files_of_tests_have_names_of_their_own():
    """pytest reads one process's files into one namespace, so that two of one name stop `make test-long`."""
    names = [each.name for each in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


def renamed(text):
    """Modules of ours that are imported under the name of another thing, as `from cloneproof.a import b as c`."""
    for module, names in re.findall(r"^ *from (cloneproof[\w.]*) import (\([^)]*\)|[^\n]*)", text, re.MULTILINE):
        for name, other in re.findall(r"(\w+) as (\w+)", names):
            if (ROOT / "src" / Path(*module.split(".")) / f"{name}.py").exists():
                yield f"{name} as {other}"


def test_tests_import_modules_by_their_names():
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = {file.name: list(renamed(file.read_text(encoding="utf-8"))) for file in files}
    assert {name: each for name, each in found.items() if set(each) - {"entries as ledger"}} == {}  # as in the package
    assert list(renamed("from cloneproof.bounds import rounds as times, regret")) == ["rounds as times"]


def banks(text):
    """Runs of constants after the first function or class; a class of fields with defaults alone is constants too."""
    found, run, begun = [], [], False
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [each.id for target in targets if target for each in ast.walk(target) if isinstance(each, ast.Name)]
        if names and all(name.isupper() for name in names):
            run += names if begun else []
        elif not isinstance(node, ast.Expr):  # the text below a constant
            found, run = [*found, run] if run else found, []
            parts = node.body if isinstance(node, ast.ClassDef) else [node]
            fields = all(isinstance(each, ast.Expr | ast.AnnAssign) for each in parts)
            begun |= isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not fields
    return [*found, run] if run else found


def test_constants_stand_on_top_and_not_between_functions():
    package = ROOT / "src" / "cloneproof"
    files = list(package.rglob("*.py"))
    found = {each.relative_to(package).as_posix(): banks(each.read_text(encoding="utf-8")) for each in files}
    assert len(found) > 150
    assert {name: each for name, each in found.items() if len(each) > 2} == {}
    assert banks("A = 1\ndef f(): ...\nB = 2\n'of'\nC = 3\ndef g(): ...\n_D: int = 4\n") == [["B", "C"], ["_D"]]
