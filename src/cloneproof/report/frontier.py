"""The frontier in words, as a table and as a figure: clicks lost against the most that copies gain."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cloneproof._lib.sections import Figure, Paragraph, Section, Table
from cloneproof.advice.recommendation import FrontierRow
from cloneproof.report.style import MUTED, ends_of, look, powers
from cloneproof.report.words import FIXED, MINUS, regret_words
from cloneproof.runs.estimate import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("mechanism", "lost, %", "copies gain", "best item", "account", "best")
CAPTION = (
    "Lost: of what perfect knowledge earns, everybody honest. Copies: what one provider gains of its honest payoff, by "
    "copies or by leaving items out. Best item: what listing it alone gains who knows it. Account: the rewards that a "
    "second one gains. ● no other row is as good in promise, loss and gain, and better in one of them; what is only "
    "measured beats nothing that is proven. ± at 99 %."
)
LEAST_LOST, NEAR = 0.1, 10.0  # percent: where the axis of losses starts, and up to where that of gains is linear


def frontier_section(rows: Sequence[FrontierRow]) -> Iterator[Section]:
    """Yield the table and the figure, if there are rows."""
    if rows:
        table = Table.of(COLUMNS, map(_cells, rows), left=["copies gain", "best"])
        yield Section("What honesty costs", [table, frontier_figure(rows), Paragraph(CAPTION, role="note")])


def price_rows(rows: Sequence[FrontierRow], first: str) -> Iterator[tuple[str, str]]:
    """Yield the price of a promise: what a weaker one loses, what a usual bandit pays, and what to do about each.

    Such as "h-thompson loses 6.6 % where reservoir, proven, loses 25.5 %; nothing tried pays there".
    """
    own = next((row for row in rows if row.name == first), None)
    if own is None:
        return
    others = [row for row in rows if row is not own and row.found is not None]
    if calm := [row for row in others if row.keeps("measured") and row.lost.value < own.lost.value]:
        least = min(calm, key=lambda row: row.lost.value)
        named = "" if least.naming is None else f"; naming its best item: {_percent(least.naming)}, measured"
        under = "nothing tried pays there" if least.at_most is None else "copies have a proven ceiling there"
        kind = "measured" if least.at_most is None else "ceiling"
        said = f"{least.name} loses {_lost(least)} % where {own.name}, {own.promise}, loses {_lost(own)} %"
        yield f"{said}; {under}{named}", f"its promise is weaker: {kind}"
    if paying := [row for row in others if row.pays]:
        least = min(paying, key=lambda row: row.lost.value)
        yield f"{least.name} loses {_lost(least)} % and pays a copier {_percent(least.found)}", "do not run it"


def copies_words(row: FrontierRow) -> str:
    """Return what copies gain: nothing, at most a ceiling, or what was found.

    >>> from cloneproof import mechanism
    >>> copies_words(FrontierRow(mechanism("ucb1"), Estimate(0.1, 0, "exact", ""), at_most=0.0))
    'nothing, proven'
    """
    if row.promise == "proven":
        return "nothing, proven"
    ceiling = "" if row.at_most is None else f"at most {_percent(row.at_most)} (proven)"
    if row.pays:
        return f"pays {_percent(row.found)}{f', {ceiling}' if ceiling else ''}"
    if ceiling or row.found is None:
        return ceiling or "–"
    if not row.tried:
        return f"at most {_percent(row.found.value)}, computed"
    return f"most found {_percent(row.found)}, of {row.tried}"


def frontier_figure(rows: Sequence[FrontierRow]) -> Figure:
    """Return clicks lost against the most that copies gain; full marks are on the frontier."""
    shown = [row for row in rows if math.isfinite(row.gain)]

    def draw(axes: Axes, narrow: bool) -> None:
        for row in shown:
            lost, gain = (100 * value for value in (row.lost.value, row.gain))
            x, colour = max(LEAST_LOST, lost), look(row.name).colour
            wide = 100 * (ends_of(row.lost)[1] - row.lost.value)
            sideways = [[min(wide, x - LEAST_LOST)], [wide]]
            up = (
                0.0 if row.found is None or row.at_most is not None else 100 * (ends_of(row.found)[1] - row.found.value)
            )
            axes.errorbar(
                x, gain, xerr=sideways, yerr=[[min(up, gain)], [up]], color=colour, elinewidth=0.8, alpha=0.9,
                marker={"proven": "s", "ceiling": "D", "measured": "o"}[row.promise], linestyle="none",
                markersize=7 if row.best else 5, markerfacecolor=colour if row.best else "white", label=row.name,
            )  # fmt: skip
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=NEAR)
        axes.set_ylim(bottom=-1)
        axes.set_xlim(LEAST_LOST, 100)
        axes.set_xlabel("% of the clicks lost, everybody honest", color=MUTED)
        axes.set_ylabel("% that copies gain", color=MUTED)
        powers(axes.xaxis)
        powers(axes.yaxis)

    caption = (
        "The most that copies gain: squares proven to be nothing, diamonds a proven ceiling, circles what was found. "
        "Full marks are on the frontier; bars are 99 % intervals. Further left costs less."
    )
    return Figure("Clicks lost against what copies gain", caption, draw, (3.9, 4.6 + 0.1 * len(shown)))


def _cells(row: FrontierRow) -> tuple[str, ...]:
    error = f" ± {100 * row.lost.error:.1f}" if 0.0005 <= row.lost.error < math.inf else ""
    named = "" if row.naming is None else _percent(row.naming)
    account = "–" if row.account is None else regret_words(row.account)
    return row.name, _lost(row) + error, copies_words(row), named or "–", account, "●" if row.best else ""


def _lost(row: FrontierRow) -> str:
    return f"{100 * row.lost.value:.1f}".replace("-", MINUS)


def _percent(gain: Estimate | float | None) -> str:
    if gain is None:
        return "unknown"
    if isinstance(gain, float):
        return f"{gain:+.1%}" if gain < 0.1 else f"{gain:+,.0%}"
    if not math.isfinite(gain.error):
        return "unknown"
    return f"{100 * gain.value:+,.0f} ± {math.ceil(100 * gain.error):,}{FIXED}%".replace("-", MINUS)
