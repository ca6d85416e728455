"""Sections as HTML: a page that stands alone, or a piece of a notebook. Loads neither Matplotlib nor Jinja early."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from itertools import count
from typing import TYPE_CHECKING, Any

from cloneproof._lib.sections import Figure, Result, Section
from cloneproof._version import package_versions
from cloneproof.report.words import printable

if TYPE_CHECKING:
    from jinja2 import Environment

    from cloneproof.report.style import Picture

CODE = re.compile("`([^`]+)`")  # what is to be typed, within text
PACKAGES = ("python", "cloneproof", "numpy", "scipy")  # whose versions a page names
_notebook_figures = count(1)  # several figures in one notebook need ids of their own


def html_page(result: Result, sections: Sequence[Section] = ()) -> str:
    """Return the result as a page, with its own sections or these; equal results give equal texts."""
    seconds = getattr(result, "seconds", 0.0)
    return page(sections or result.sections(), [f"{seconds:,.1f} s"] if seconds else [])


def page(sections: Sequence[Section], remarks: Sequence[str] = ()) -> str:
    """Return sections as a page, with versions and remarks at its end."""
    versions = [f"{name} {version}" for name, version in package_versions(*PACKAGES).items()]
    facts = {"sections": _drawable(sections), "footer": " · ".join([*versions, *remarks])}
    return render("page.html", facts, count(1))


def playground() -> str:
    """Return the page on which copies, variants and weights can be tried, rules side by side."""
    return (files("cloneproof.report") / "templates" / "playground.html").read_text(encoding="utf-8")


def notebook(sections: Sequence[Section]) -> str:
    """Return the sections as a notebook shows them."""
    return render("notebook.html", {"sections": _drawable(sections)}, _notebook_figures)


def _drawable(sections: Sequence[Section]) -> list[Section]:
    """Sections without those that are only a figure, where Matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return [section for section in sections if not all(isinstance(part, Figure) for part in section.parts)]
    return list(sections)


def render(template: str, facts: dict[str, Any], numbers: Iterator[int] | None = None) -> str:
    """Fill a template; `numbers` are for the ids of figures."""
    ids = count(1) if numbers is None else numbers
    draw = lambda figure: _draw(figure, f"figure-{next(ids)}")  # noqa: E731
    return str(_environment().get_template(template).render(facts | {"draw": draw})) + "\n"


@cache
def _environment() -> Environment:
    """Templates, in which all text is escaped, control characters included."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: most commands write no page
    from markupsafe import Markup, escape

    environment = Environment(
        loader=PackageLoader("cloneproof", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) or not isinstance(value, str) else printable(value),
    )
    environment.filters["code"] = lambda words: Markup(CODE.sub(r"<code>\1</code>", str(escape(printable(str(words))))))
    return environment


def _draw(figure: Figure, name: str) -> Picture:
    from cloneproof.report.style import picture

    return picture(figure, name)
