"""The rooms: no import circle, also not through late imports."""

from graphlib import CycleError, TopologicalSorter

import grimp


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
