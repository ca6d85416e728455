"""One word for each thing: type names are unique, and the glossary has each word once and names what exists."""

import inspect
import re
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import cloneproof as cp

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))

from type_index import definitions, tables  # noqa: E402 - in docs/_extensions

GLOSSARY = ROOT / "docs" / "glossary.md"
MOST_WORDS = 36_000  # of all pages: what is said twice goes before evidence does


def twice(types):
    """Type names that are defined in two or more files."""
    places = defaultdict(list)
    for each in types:
        places[each.name].append(each.file.name)
    return {name: where for name, where in places.items() if len(where) > 1}


def entries(text):
    """The words of a glossary: what stands in bold at the start of its list items."""
    return [word for words in re.findall(r"^- \*\*(.+?)\*\*: ", text, flags=re.MULTILINE) for word in words.split(", ")]


def test_pages_have_no_more_words_than_somebody_reads():
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in (ROOT / "docs").rglob("*.md")) <= MOST_WORDS


def test_no_type_name_is_defined_twice():
    assert twice(definitions()) == {}


def test_a_second_class_or_alias_of_one_name_is_noticed(tmp_path):
    (tmp_path / "one.py").write_text("class Table: ...\nRow = tuple[int, ...]\nLIMIT = 3\n_Cell = int\n")
    (tmp_path / "two.py").write_text("class Table: ...\nRow: TypeAlias = list[int]\nLIMIT = 4\n_Cell = str\n")
    assert twice(definitions(tmp_path)) == {name: ["one.py", "two.py"] for name in ("Table", "Row", "_Cell")}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is of Python 3.12")
def test_a_type_statement_counts(tmp_path):
    (tmp_path / "one.py").write_text("type Row = tuple[int, ...]\n")
    assert [each.name for each in definitions(tmp_path)] == ["Row"]


def test_the_glossary_has_each_word_once():
    words = entries(GLOSSARY.read_text(encoding="utf-8"))
    assert len(words) > 80
    assert sorted(words) == sorted(set(words))


def test_a_word_that_stands_twice_is_noticed():
    assert entries("- **a, b**: x\n- **b**: y, **c**\n") == ["a", "b", "b"]


def test_the_glossary_names_types_that_exist():
    text = GLOSSARY.read_text(encoding="utf-8")
    named = set(re.findall(r"`(?:cp\.)?([A-Z][a-z]\w*)`", text))
    assert named <= {each.name for each in definitions()}
    for name in re.findall(r"`cp\.(\w+)`", text):
        assert name in cp.__all__


def parameters(things):
    """The names of the parameters of functions and types, each with those that have it."""
    found = defaultdict(list)
    for thing in things:
        for parameter in inspect.signature(thing).parameters.values():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                found[parameter.name].append(thing.__name__)
    return found


def unexplained(names, text):
    """Names that are no words of a glossary, neither as they are nor as a singular or plural without underscores."""
    words = {word.lower() for word in entries(text)}
    return [
        name for name in names if words.isdisjoint({name, spoken := name.replace("_", " "), spoken.removesuffix("s")})
    ]


def test_parameters_of_public_functions_are_words_of_the_glossary():
    public = [thing for name in cp.__all__ if callable(thing := getattr(cp, name))]
    names = parameters(public)
    assert len(names) > 80
    assert unexplained(names, GLOSSARY.read_text(encoding="utf-8")) == []


def test_a_parameter_without_a_word_is_noticed():
    def asked(market, neutral_rounds, budget, *rest, **options): ...

    assert unexplained(parameters([asked]), "- **market**: x\n- **neutral round**: y\n") == ["budget"]


def test_every_public_type_is_in_the_reference():
    listed = set(re.findall(r"^\| `(\w+)` \|", "\n".join(tables()), flags=re.MULTILINE))
    modules = [cp, *(thing for name in cp.__all__ if inspect.ismodule(thing := getattr(cp, name)))]
    public = {
        thing.__name__ for module in modules for name in dir(module) if inspect.isclass(thing := getattr(module, name))
        if thing.__module__.startswith("cloneproof") and not name.startswith("_")
    }  # fmt: skip
    assert len(public) > 20
    assert public <= listed
