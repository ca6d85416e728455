"""How a result is shown in a notebook. Results are made below the reports; the reports register their pages here."""

from __future__ import annotations

from functools import singledispatch


@singledispatch
def html(value: object) -> str | None:
    """The value as a piece of HTML; None, which leaves a notebook with its text, where nothing is registered."""
    return None


class Displayed:
    """A result that a notebook shows as HTML (`cloneproof.report.notebook` says how)."""

    def _repr_html_(self) -> str | None:
        return html(self)
