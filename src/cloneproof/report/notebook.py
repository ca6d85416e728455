"""Results in a notebook: tables; for an audit the verdict, the attack and its figure.

`cloneproof` imports this module to register the views; Matplotlib is loaded with the first figure.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from html import escape
from itertools import count

from cloneproof._tables import Tabular, html
from cloneproof.analysis.audit.verdict import Audit, Witness
from cloneproof.engines.estimate import Estimate
from cloneproof.report.words import copies_words, error_words, number, printable, verdict_sentence

MOST_ROWS = 20
LONGEST_CELL = 40
NUMBERS = frozenset({"value", "payoff", "± error"})
INK, MUTED = "#1d2433", "#5b6475"
TINTS = {"exploitable": "#9b2d3c", "clone-proof": "#1c6b4a", "undecided": "#7a5a00"}
_figure_numbers = count(1)  # several figures on one page need ids of their own


@html.register
def audit_html(audit: Audit) -> str:
    """Return the verdict, its deviation, the figure, and the scope."""
    worst, tint = audit.worst, TINTS[audit.verdict]
    return _block(
        f'<div style="font-size:1.25em;font-weight:600;color:{tint}">'
        f"{escape(printable(audit.mechanism.name))}: {audit.verdict}</div>",
        f'<p style="max-width:680px;margin:4px 0">{escape(verdict_sentence(audit))}</p>',
        _payoffs(worst),
        *_drawing(audit),
        _remark(f"Scope: {audit.scope}"),
        *map(_remark, audit.notes),
    )


def _drawing(audit: Audit) -> list[str]:
    """Return the figure and its caption, if the audit has data for one and Matplotlib is installed."""
    try:
        from cloneproof.report.audit_figures import gain_over_thresholds, payoff_against_copies
    except ImportError:
        return []
    figure = payoff_against_copies(audit) or gain_over_thresholds(audit)
    if figure is None:
        return []
    return [f'<div style="max-width:680px">{_own_ids(figure.wide)}</div>', _remark(figure.caption)]


@html.register
def table_html(table: Tabular) -> str:
    """Return the first rows of any other table; columns with a single value are named once, below it."""
    columns = table.to_columns()
    constant = {
        name: values[0]
        for name, values in columns.items()
        if len(values) > 1 and values.count(values[0]) == len(values)
    }
    varying = {name: values for name, values in columns.items() if name not in constant}
    rows = [[_cell(value) for value in row] for row in zip(*varying.values(), strict=True)]
    remarks = [f"{len(rows) - MOST_ROWS:,} further rows are not shown."] if len(rows) > MOST_ROWS else []
    same = [f"{name} {_cell(value)}" for name, value in constant.items() if value not in ("", None)]
    remarks += [f"The same in all rows: {'; '.join(same)}."] if same else []
    numeric = {name for name, values in varying.items() if any(isinstance(value, int | float) for value in values)}
    return _block(_table(tuple(varying), rows[:MOST_ROWS], numeric), *map(_remark, remarks))


def _payoffs(worst: Witness) -> str:
    honest, copied, gain = worst.honest, worst.copied, worst.gain
    rows = [
        ("honest", *_cells(honest)),
        (f"copies {copies_words(worst.copies)}", *_cells(copied)),
        ("gain", *_cells(gain, sign=True)),
    ]
    methods = dict.fromkeys(printable(estimate.method) for estimate in (honest, copied, gain) if estimate.method)
    return _table(("", "payoff", "± error", "kind"), rows) + _remark("; ".join(methods))


def _cells(estimate: Estimate, sign: bool = False) -> tuple[str, ...]:
    return number(estimate, sign=sign), error_words(estimate), estimate.kind


def _cell(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    text = "" if value is None else printable(value)
    return text if len(text) <= LONGEST_CELL else text[:LONGEST_CELL] + "…"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], numeric: Container[str] = NUMBERS) -> str:
    sides = ["right" if name in numeric else "left" for name in head]

    def line(cells: Sequence[str], tag: str) -> str:
        style = f"vertical-align:top;padding:2px 14px 2px 0;color:{INK};background:#fff"
        shown = zip(cells, sides, strict=True)
        return (
            "<tr>"
            + "".join(f'<{tag} style="text-align:{side};{style}">{escape(cell)}</{tag}>' for cell, side in shown)
            + "</tr>"
        )

    body = "".join(line(row, "td") for row in rows)
    return f'<table style="border-collapse:collapse"><thead>{line(head, "th")}</thead><tbody>{body}</tbody></table>'


def _block(*parts: str) -> str:
    return f'<div style="font-family:sans-serif;color:{INK};background:#fff;padding:8px">{"".join(parts)}</div>'


def _remark(text: str) -> str:
    return f'<p style="color:{MUTED};max-width:680px;margin:4px 0;font-size:0.9em">{escape(text)}</p>'


def _own_ids(svg: str) -> str:
    """Return the figure with ids that are unique on the page."""
    return re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>cloneproof-{next(_figure_numbers)}-", str(svg))
