"""The rooms: no import circle, also not through late imports."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

SOURCES = Path(__file__).parents[1] / "src"


@cache
def import_nodes(text):
    """The import statements of a module, found once."""
    nodes = ast.walk(ast.parse(text))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def modules(sources):
    """Every module by its dotted name."""
    files = {file: ".".join(file.relative_to(sources).with_suffix("").parts) for file in sources.rglob("*.py")}
    return {name.removesuffix(".__init__"): file for file, name in files.items()}


def imports(file: Path, known: set[str]) -> Iterator[str]:
    """The modules that a file imports anywhere in it; `from package import name` counts as the module if it is one."""
    for node in import_nodes(file.read_text(encoding="utf-8")):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if inside in known else node.module


def import_graph(sources):
    """The modules that each module imports, but for itself."""
    known = modules(sources)
    return {name: set(imports(file, set(known))) - {name} for name, file in known.items()}


def circle(graph):
    """Some circle of imports, as the modules on it; [] where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_import_circle_also_through_late_imports():
    assert circle(import_graph(SOURCES)) == []


def test_a_circle_through_a_late_import_is_noticed(tmp_path):
    package = tmp_path / "rooms"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "first.py").write_text("from rooms import second\n")
    (package / "second.py").write_text("def ask():\n    from rooms.first import second\n    return second\n")
    assert set(circle(import_graph(tmp_path))) == {"rooms.first", "rooms.second"}
    (package / "second.py").write_text("import ast\n")
    assert circle(import_graph(tmp_path)) == []


def test_imports_are_absolute():
    """As `imports` above expects them."""
    relative = [
        f"{file.relative_to(SOURCES)}:{node.lineno}"
        for file in SOURCES.rglob("*.py")
        for node in import_nodes(file.read_text(encoding="utf-8"))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert relative == []
