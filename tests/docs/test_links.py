"""Pages that are cited exist: by the package's own messages and docstrings, and by the files outside of the site."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
CITED = re.compile(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?")
LINKED = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#([\w-]+))?\)")
FILE = re.compile(r"\b((?:tests|proof|studies|benchmarks|examples|src)/[\w/-]+\.(?:py|toml|md|csv))()")


def anchors(page):
    """As GitHub and the site make them from headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def missing(files, pattern, base=ROOT):
    """Citations in files of pages or headings that are not there."""
    return [
        f"{file.relative_to(ROOT)}: {match[0]}"
        for file in files
        for match in pattern.finditer(file.read_text(encoding="utf-8"))
        if not (page := base / match[1]).exists() or (match[2] and match[2] not in anchors(page))
    ]


def test_pages_that_the_package_cites_exist():
    sources = sorted((ROOT / "src").rglob("*.py"))
    assert sum(len(CITED.findall(file.read_text(encoding="utf-8"))) for file in sources) > 5
    assert missing(sources, CITED) == []


def test_files_of_the_repository_that_pages_and_sources_name_exist():
    """But for CONTRIBUTING.md, which names files that are to be written."""
    pages = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("[!C]*.md"), *(ROOT / "src").rglob("*.py")]
    assert missing(sorted(pages), FILE) == []


def test_links_of_the_readme_and_of_contributing_exist():
    assert missing([ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")], LINKED) == []


def test_a_missing_page_or_heading_is_noticed(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "here.md").write_text("# A title: with, marks\n")
    page = ROOT / "tests" / "docs" / "test_links.py"  # any file below ROOT; only its name is shown
    assert anchors(tmp_path / "docs" / "here.md") == {"a-title-with-marks"}
    assert CITED.findall("see docs/here.md#a-title, docs/there.md") == [
        ("docs/here.md", "a-title"),
        ("docs/there.md", ""),
    ]
    assert all("docs/here.md#a-title" in each or "docs/there.md" in each for each in missing([page], CITED, tmp_path))
