"""`llms.txt`, which `make docs` writes: llmstxt.org's format, and every page of the site, once."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))

from llms_txt import listing, opening  # noqa: E402 - in docs/_extensions

LINE = re.compile(r"- \[[^\]]+\]\(([^)\s]+)\)(: \S.*)?")


def linked(text):
    """The addresses that the text links; raises an error if the text has another form than the format asks for."""
    (name, about), *sections = (
        part.strip("\n").split("\n\n", 1) for part in re.split(r"^## ", text, flags=re.MULTILINE)
    )
    assert re.fullmatch(r"# \S.*", name)
    assert re.fullmatch(r"> \S.*", about)
    lines = [line for _, listed in sections for line in listed.splitlines()]
    assert all(LINE.fullmatch(line) for line in lines)
    return [LINE.fullmatch(line)[1] for line in lines]


def test_every_page_is_linked_once_and_exists():
    links = linked(listing(ROOT / "docs"))
    pages = {page.relative_to(ROOT / "docs").with_suffix("").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert len(links) > 40
    assert sorted(link.rpartition(".")[0] for link in links) == sorted(pages - {"index"})
    for link in links:  # what is linked as it is has nothing that only Sphinx fills in
        source = (ROOT / "docs" / link).with_suffix(".md").read_text(encoding="utf-8")
        assert link.endswith(".html") == ("```{" in source)


def test_most_pages_say_what_they_are_about():
    text = listing(ROOT / "docs")
    assert "> Platforms let bandits" in text
    assert len(re.findall(r"^- .*\): ", text, flags=re.MULTILINE)) > 0.8 * len(linked(text))
    assert opening("<!-- a copy -->\n# Weights\n\n| a | b |") == ("Weights", "")


def test_a_page_that_is_not_there_is_noticed(tmp_path):
    (tmp_path / "index.md").write_text("# Docs\n\nSome.\n\n```{toctree}\n:caption: All\n\nhere\n```\n")
    (tmp_path / "here.md").write_text("# Here\n\nIt is [here](here.md). And there.\n")
    assert listing(tmp_path) == "# Docs\n\n> Some.\n\n## All\n\n- [Here](here.md): It is here.\n"
    (tmp_path / "here.md").rename(tmp_path / "there.md")
    with pytest.raises(FileNotFoundError, match=r"here\.md"):
        listing(tmp_path)
