"""From a template to a page: everything is escaped unless it is markup, and a name that is missing is an error."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def render(template: str, facts: dict[str, Any]) -> str:
    """The page as text: the same facts, the same text."""
    environment = Environment(
        loader=PackageLoader("cloneproof", "report/pages/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**facts) + "\n"
