"""Bars that lie, so that names have room: a group for each case, a bar for each series, error bounds as whiskers."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cloneproof.report.figures.figure_data import Bars
from cloneproof.report.figures.labels import Label
from cloneproof.report.figures.style import INK, MUTED, look_of_shade, thousands

ROOM = 0.2  # between groups, as a part of a group
SEEN = 0.002  # of the largest bar: a whisker below that cannot be seen


def bars_in_a_group(figure: Bars) -> int:
    """The most bars that any group has."""
    return max((sum(float(k) in series.x for series in figure.series) for k in range(len(figure.groups))), default=1)


def draw_bars(axes: Axes, figure: Bars, narrow: bool) -> list[Label]:
    """Draw all groups from the top; each bar has its name next to its end."""
    height = (1 - ROOM) / bars_in_a_group(figure)
    largest = max((abs(value) for series in figure.series for value in series.y), default=1.0) or 1.0
    for group in range(len(figure.groups)):
        members = [(series, series.x.index(float(group))) for series in figure.series if float(group) in series.x]
        for number, (series, k) in enumerate(members):
            at, look, value = (
                group + (number - (len(members) - 1) / 2) * height,
                look_of_shade(series.mechanism, series.shade),
                series.y[k],
            )
            axes.barh(at, value, height * 0.84, color=look.colour, alpha=0.85)
            end = max(value, 0.0)
            if series.low and series.high[k] - series.low[k] > SEEN * largest:
                low, high = series.low[k], series.high[k]
                axes.plot([low, high], [at, at], color=INK, linewidth=1.1, marker="|", markersize=4)
                end = max(end, high)
            _write(axes, series.name, (end, at), look.ink)
    for mark in figure.marks:
        if mark.x is not None:
            axes.axvline(mark.x, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
            _write(axes, mark.text, (mark.x, -0.62), MUTED)
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.set_yticks(range(len(figure.groups)), figure.groups)
    axes.tick_params(axis="y", labelcolor=INK, length=0)
    axes.set_ylim(len(figure.groups) - 0.5, -0.8 if figure.marks else -0.5)
    named = any(series.name for series in figure.series)
    axes.margins(x=(0.45 if narrow else 0.2) if named else 0.06)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.set_xlabel(figure.value_label)
    thousands(axes.xaxis)
    if narrow:
        axes.xaxis.set_major_locator(MaxNLocator(3))
    return []


def _write(axes: Axes, text: str, at: tuple[float, float], colour: str) -> None:
    axes.annotate(text, at, (4, 0), textcoords="offset points", va="center", fontsize=8, color=colour, parse_math=False)
