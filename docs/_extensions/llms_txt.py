"""`llms.txt` at the root of the site (llmstxt.org): pages by the captions of the index, with first sentences.

Pages that are plain Markdown are linked, and copied, as they are; those that Sphinx fills in (the reference) as HTML.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from sphinx.application import Sphinx

TOCTREE = re.compile(r"```\{toctree\}\n(.*?)```", re.DOTALL)
INCLUDE = re.compile(r"```\{include\} (\S+)")
NO_WORDS = re.compile(r"#|```|\||!|<|- ")  # a heading, a block, a table, a picture, a comment, a list
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


def listing(docs: Path) -> str:
    """The text of `llms.txt` for a folder of pages whose `index.md` has toctrees with captions."""
    index = (docs / "index.md").read_text(encoding="utf-8")
    title, about = opening(index)
    lines = [f"# {title}", "", f"> {about}"]
    for block in TOCTREE.findall(index):
        caption = re.search(r"^:caption: (.*)$", block, flags=re.MULTILINE)
        lines += ["", f"## {caption[1] if caption else title}", ""]
        for page in _pages(docs, block):
            name, words = opening(_text(docs / f"{page}.md"))
            lines.append(f"- [{name}]({_target(docs, page)})" + (f": {_sentence(words)}" if words else ""))
    return "\n".join(lines) + "\n"


def opening(text: str) -> tuple[str, str]:
    r"""The title of a page, and the first paragraph below it without links and marks; "" if it has no words there.

    >>> opening("# Weights\n\n*Copies [never](a.md)\npay.* The proofs are ours.\n\nMore.")
    ('Weights', 'Copies never pay. The proofs are ours.')
    """
    head, _, below = text.partition("# ")[2].partition("\n")
    first = below.strip().partition("\n\n")[0]
    return head, "" if NO_WORDS.match(first) else " ".join(LINK.sub(r"\1", first).replace("*", "").split())


def _sentence(words: str) -> str:
    """The first sentence."""
    return words[: end.end()] if (end := re.search(r"[.?!](?= [A-Z`]|$)", words)) else words


def _pages(docs: Path, toctree: str) -> Iterator[str]:
    """The pages of a toctree, and those of the toctrees in them."""
    for page in re.findall(r"^[\w/-]+$", toctree, flags=re.MULTILINE):
        yield page
        for inner in TOCTREE.findall((docs / f"{page}.md").read_text(encoding="utf-8")):
            yield from (f"{Path(page).parent}/{name}" for name in _pages((docs / page).parent, inner))


def _text(file: Path) -> str:
    """The page, or the file that it shows."""
    text = file.read_text(encoding="utf-8")
    shown = INCLUDE.search(text)
    return (file.parent / shown[1]).read_text(encoding="utf-8") if shown else text


def _target(docs: Path, page: str) -> str:
    filled_in = "```{" in (docs / f"{page}.md").read_text(encoding="utf-8")
    return f"{page}.html" if filled_in else f"{page}.md"


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        docs, site = Path(app.srcdir), Path(app.outdir)
        text = listing(docs)
        (site / "llms.txt").write_text(text, encoding="utf-8")
        for page in re.findall(r"\]\(([^)]*\.md)\)", text):
            shutil.copyfile(docs / page, site / page)


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
