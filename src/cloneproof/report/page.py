"""Render and write pages. Importing this module loads neither Matplotlib nor Jinja."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cloneproof._files import write_whole

PACKAGES = ("python", "cloneproof", "numpy", "scipy", "python-flint", "numba")  # whose versions a page names


def render(template: str, facts: dict[str, Any]) -> str:
    """Return the page as text; equal facts give equal texts."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: most commands write no page

    environment = Environment(
        loader=PackageLoader("cloneproof", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**facts) + "\n"


def write_page(text: str, path: str | Path) -> None:
    """Write a page, whole or not at all."""
    write_whole(path, text)
