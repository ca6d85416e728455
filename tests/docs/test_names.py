"""Names of our own modules, files, types and parameters that docstrings, comments and pages give exist."""

import ast
import inspect
import pkgutil
import re
from pathlib import Path

import cloneproof as cp
from cloneproof.mechanisms.bandits.rule import Rule

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cloneproof"
# files; CHANGELOG.md also names what went
PAGES = sorted(
    [*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
)
SOURCES = sorted(PACKAGE.rglob("*.py"))
TREES = {file: ast.parse(file.read_text(encoding="utf-8")) for file in SOURCES}
SCRIPTS = sorted(
    file for name in ("tests", "proof", "studies", "benchmarks", "examples") for file in (ROOT / name).rglob("*.py")
)

DOTTED = re.compile(r"`([a-zA-Z_]\w*(?:\.\w+)+)(?:\([^`\n]*\))?`")
FILE = re.compile(r"(?<![\w./*-])((?:[\w-]+/)*[\w-]+\.py)\b")
KEYWORD = re.compile(r"(?<=[`( ])(\w+)=(?!=)")
ENDINGS = {"csv", "cu", "db", "gz", "html", "json", "log", "md", "png", "py", "sh", "svg", "toml", "v", "yaml"}
# what a reader puts a name of their own for, and files that CONTRIBUTING.md asks to write
PLACEHOLDERS = {
    "FILE.py", "name.py", "script.py", "rows/theorem_9.py",
}  # fmt: skip
# names that look like modules: the entry points of rules, a table of PostgreSQL, a unit of systemd
NOT_MODULES = {"cloneproof.rules", "cloneproof.schema", "cloneproof.service"}

TYPES = {each.__name__.lower(): each for each in (cp.Agent, cp.Market, cp.Mechanism, cp.Search, Rule)}
ROOMS = {module.name for module in pkgutil.iter_modules([str(PACKAGE)])} | {"cloneproof", "cp"}
FILES = {
    f"/{file.relative_to(ROOT).as_posix()}"
    for name in ("src", "tests", "proof", "studies", "benchmarks", "examples", "docs")
    for file in (ROOT / name).rglob("*.py")
} | {f"/{file.name}" for file in ROOT.glob("*.py")}  # fmt: skip


def module_exists(name):
    """Whether a dotted name, from `cloneproof`, `cp` or a package of ours on, leads to something."""
    first, _, rest = name.partition(".")
    try:
        pkgutil.resolve_name(f"cloneproof.{rest if first in ('cloneproof', 'cp') else name}")
    except (ImportError, AttributeError):
        return name in NOT_MODULES
    return True


def members():
    """The attributes of each class of ours: methods, fields, and what is assigned to `self`."""
    known, bases = {}, {}
    for tree in TREES.values():
        for each in ast.walk(tree):
            if isinstance(each, ast.ClassDef):
                inside = list(ast.walk(each))
                known[each.name] = (
                    {node.name for node in inside if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
                    | {node.id for node in inside if isinstance(node, ast.Name)}
                    | {node.attr for node in inside if isinstance(node, ast.Attribute)}
                )
                bases[each.name] = {
                    node.id for base in each.bases for node in ast.walk(base) if isinstance(node, ast.Name)
                }
    return {name: own.union(*(known.get(base, ()) for base in bases[name])) for name, own in known.items()}


MEMBERS = members()


def dead_names(text):
    """Dotted names in backticks that begin with a package or a type of ours and lead nowhere."""
    for match in DOTTED.finditer(text):
        first, second, *_ = match[1].split(".")
        if match[1].rpartition(".")[2] in ENDINGS:
            continue
        if (first in ROOMS and not module_exists(match[1])) or (first in MEMBERS and second not in MEMBERS[first]):
            yield match[1]


def dead_files(text):
    """Names of Python files that no folder has."""
    for match in FILE.finditer(text):
        if match[1] not in PLACEHOLDERS and not any(file.endswith(f"/{match[1]}") for file in FILES):
            yield match[1]


def parameters():
    """The names of parameters and fields in the package."""
    found = set()
    for tree in TREES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.arg):
                found.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
    return found


PARAMETERS = parameters()


def dead_parameters(text):
    """Parameters given as `name=` in running text that neither the package nor the code on the page has."""
    blocks = re.compile(r"^```.*?^```", flags=re.MULTILINE | re.DOTALL)
    shown = set(re.findall(r"\b(\w+)(?:: \w+)? ?=", "\n".join(blocks.findall(text))))
    for code in re.findall(r"`([^`\n]+)`", blocks.sub("", text)):
        if not code.startswith("--"):  # an option of the command line may have any name for a value
            yield from (name for name in KEYWORD.findall(f"`{code}") if name not in PARAMETERS | shown)


def dead_fields(text):
    """Parameters that a page says a rule, a market, .. is made with, and that its type does not take."""
    types = "|".join(TYPES)
    for noun, name in re.findall(rf"\b({types})s? (?:with|that says|takes) `(\w+)=", text, flags=re.IGNORECASE):
        if name not in inspect.signature(TYPES[noun.lower()]).parameters:
            yield f"{name} of a {noun}"


def found(dead, files):
    return [f"{file.relative_to(ROOT)}: {name}" for file in files for name in dead(file.read_text(encoding="utf-8"))]


def test_modules_and_members_that_are_named_exist():
    assert found(dead_names, [*PAGES, *SOURCES, *(each for each in SCRIPTS if each != Path(__file__))]) == []


def test_files_that_are_named_exist():
    assert found(dead_files, [*PAGES, *SOURCES]) == []


def test_parameters_that_pages_name_exist():
    assert found(dead_parameters, PAGES) == []
    assert found(dead_fields, PAGES) == []


def test_names_that_lead_nowhere_are_noticed():
    text = "As `mechanisms.gone.Level`, `Mechanism.gone`, `cp.gone(1)`, `mechanisms.Mechanism.runs`, `market.toml`."
    assert list(dead_names(text)) == ["mechanisms.gone.Level", "Mechanism.gone", "cp.gone"]
    assert list(dead_files("`rounds.py`, `bounds/rounds.py`, bounds/gone.py, tests/test_gone.py, x.rounds.py")) == [
        "bounds/gone.py",
        "tests/test_gone.py",
    ]
    text = "With `Search(copies=3, vanished=2)`, `own=1` and `--column any=X`:\n```\nf(own=2)\n```\nand `a==b`.\n"
    assert list(dead_parameters(text)) == ["vanished"]
    assert list(dead_fields("A rule with `draws=3`, a rule that says `binarise=True`, markets with `copies=2`.")) == [
        "draws of a rule",
        "copies of a market",
    ]


def test_what_a_machine_checked_is_not_called_unreviewed():
    assert "checked by machine" in (ROOT / "docs" / "textbook" / "reservoir.md").read_text(encoding="utf-8")
    docstrings = {file: ast.get_docstring(tree) or "" for file, tree in TREES.items()}
    citing = {file.name: text for file, text in docstrings.items() if "docs/textbook/reservoir.md" in text}
    assert "proof.py" in citing
    assert [
        name for name, text in citing.items() if re.search(r"unreviewed|not\s+(been\s+|yet\s+)?reviewed", text)
    ] == []
