"""Sections as HTML: a page that stands alone, or a piece of a notebook. Loads neither Matplotlib nor Jinja early."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cloneproof._files import write_whole
from cloneproof._sections import Figure, Result, Section
from cloneproof._version import package_versions
from cloneproof.report.words import number, printable

if TYPE_CHECKING:
    from cloneproof.report.style import Picture

PACKAGES = ("python", "cloneproof", "numpy", "scipy", "python-flint", "numba")  # whose versions a page names
_notebook_figures = count(1)  # several figures in one notebook need ids of their own


def html_page(result: Result) -> str:
    """Return the result as a page; equal results give equal texts."""
    seconds = getattr(result, "seconds", 0.0)
    versions = [f"{name} {version}" for name, version in package_versions(*PACKAGES).items()]
    facts = {
        "sections": _drawable(result.sections()),
        "footer": " · ".join([*versions, *([f"{number(seconds)} s"] if seconds else [])]),
    }
    return render("page.html", facts, count(1))


def notebook(sections: Sequence[Section]) -> str:
    """Return the sections as a notebook shows them."""
    return render("notebook.html", {"sections": _drawable(sections)}, _notebook_figures)


def _drawable(sections: Sequence[Section]) -> list[Section]:
    """Sections without those that are only a figure, where Matplotlib is missing."""
    if find_spec("matplotlib") is None:
        return [section for section in sections if not all(isinstance(part, Figure) for part in section.parts)]
    return list(sections)


def render(template: str, facts: dict[str, Any], numbers: count[int] | None = None) -> str:
    """Fill a template; `numbers` are for the ids of figures."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: most commands write no page
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("cloneproof", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if isinstance(value, Markup) or not isinstance(value, str) else printable(value),
    )
    numbers = numbers or count(1)
    environment.globals["draw"] = lambda figure: _draw(figure, f"figure-{next(numbers)}")
    return environment.get_template(template).render(**facts) + "\n"


def _draw(figure: Figure, name: str) -> Picture:
    from cloneproof.report.style import picture

    return picture(figure.title, figure.caption, figure.draw, name, figure.heights)


def write_page(text: str, path: str | Path) -> None:
    """Write a page, whole or not at all."""
    write_whole(path, text)
