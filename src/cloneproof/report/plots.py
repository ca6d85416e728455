"""Figures as data, and the pictures of them for wide and narrow screens.

Whoever computes something returns one of these and needs to know nothing about drawing. The mechanism that a series
belongs to is named, so that it has the same colour in every figure of every report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from cloneproof.engines.estimate import Estimate
from cloneproof.report.style import INK, MUTED, Picture, give_room, look_of_shade, picture, powers, thousands


@dataclass(frozen=True)
class Series:
    """A curve or a row of bars with its error bounds; `low` and `high` may be left empty where it is exact.

    mechanism   whose colour it has; "" for none in particular
    shade       0, 1, 2, ..: further series of the same mechanism, told apart by dashes and lightness
    style       "line" or "points"
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    mechanism: str = ""
    shade: int = 0
    style: Literal["line", "points"] = "line"

    @classmethod
    def of(cls, name: str, x: Sequence[float], estimates: Sequence[Estimate], **look: Any) -> Series:  # noqa: ANN401
        """The series of estimates, with their bounds."""
        y, low, high = zip(*((estimate.value, estimate.low, estimate.high) for estimate in estimates), strict=True)
        return cls(name, tuple(map(float, x)), y, low, high, **look)


@dataclass(frozen=True)
class Mark:
    """A straight line across the figure, upright or level, with words: where something begins."""

    text: str
    x: float | None = None
    y: float | None = None


@dataclass(frozen=True)
class Lines:
    """Curves over a number."""

    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    marks: tuple[Mark, ...] = ()
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars in groups: `x` of each series is the number of the group it stands in."""

    title: str
    caption: str
    groups: tuple[str, ...]
    value_label: str
    series: tuple[Series, ...]


Figure = Lines | Bars


def lines_from_dict(data: dict[str, Any]) -> Lines:
    """The inverse of `dataclasses.asdict`, also where JSON made lists of the tuples."""
    series = (Series(**{k: tuple(v) if isinstance(v, list) else v for k, v in each.items()}) for each in data["series"])
    return Lines(**data | {"series": tuple(series), "marks": tuple(Mark(**mark) for mark in data["marks"])})


ROOM = 0.2  # between groups, as a part of a group
SEEN = 0.002  # of the largest bar: a whisker below that cannot be seen


def bars_in_a_group(figure: Bars) -> int:
    """The most bars that any group has."""
    return max((sum(float(k) in series.x for series in figure.series) for k in range(len(figure.groups))), default=1)


def draw_bars(axes: Axes, figure: Bars, narrow: bool) -> None:
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
    axes.axvline(0, color=INK, linewidth=0.9)
    axes.set_yticks(range(len(figure.groups)), figure.groups)
    axes.tick_params(axis="y", labelcolor=INK, length=0)
    axes.set_ylim(len(figure.groups) - 0.5, -0.5)
    named = any(series.name for series in figure.series)
    axes.margins(x=(0.45 if narrow else 0.2) if named else 0.06)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.set_xlabel(figure.value_label)
    thousands(axes.xaxis)
    if narrow:
        axes.xaxis.set_major_locator(MaxNLocator(3))


def _write(axes: Axes, text: str, at: tuple[float, float], colour: str) -> None:
    axes.annotate(text, at, (4, 0), textcoords="offset points", va="center", fontsize=8, color=colour, parse_math=False)


MARKERS = 40  # points that are still worth a marker each


def draw_figure(figure: Figure, name: str) -> Picture:
    """The picture; `name` makes its ids its own on the page."""
    words = (figure.title, figure.caption)
    if isinstance(figure, Bars):
        height = 0.8 + len(figure.groups) * (0.1 + 0.17 * bars_in_a_group(figure))
        return picture(*words, lambda axes, narrow: draw_bars(axes, figure, narrow), name, (height, height))
    lines = -(-len(figure.series) // 2)
    return picture(*words, lambda axes, narrow: draw_lines(axes, figure, narrow), name, (3.6, 3.1 + 0.2 * lines))


def draw_lines(axes: Axes, figure: Lines, narrow: bool) -> None:
    """Curves with their bands, and marks; the key says which is which."""
    if figure.log_x:
        axes.set_xscale("log")
    if figure.log_y:
        axes.set_yscale("log")
    for series in figure.series:
        look = look_of_shade(series.mechanism, series.shade)
        if series.low:
            axes.fill_between(series.x, series.low, series.high, color=look.colour, alpha=0.2, linewidth=0)
        points = series.style == "points" or len(series.x) <= MARKERS
        axes.plot(
            series.x,
            series.y,
            color=look.colour,
            linestyle="none" if series.style == "points" else look.dashes,
            marker="o" if points else "",
            markersize=7 if series.style == "points" else 3.5,
            label=series.name,
        )
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    for axis, log in ((axes.xaxis, figure.log_x), (axes.yaxis, figure.log_y)):
        if log:
            axis.set_major_locator(LogLocator(10, numticks=5 if narrow else 8))
            powers(axis)
        else:
            if narrow and axis is axes.xaxis:
                axis.set_major_locator(MaxNLocator(4))
            thousands(axis)
    if not figure.log_y:
        give_room(axes, 0.16)
    for mark in figure.marks:
        _mark(axes, mark)


def _mark(axes: Axes, mark: Mark) -> None:
    dotted: Any = {"color": MUTED, "linewidth": 0.9, "linestyle": (0, (2, 2))}
    words: Any = {"textcoords": "offset points", "color": MUTED, "fontsize": 9, "parse_math": False}
    if mark.x is not None:
        axes.axvline(mark.x, **dotted)
        axes.annotate(mark.text, (mark.x, 0.98), (4, 0), xycoords=axes.get_xaxis_transform(), va="top", **words)
    elif mark.y is not None:
        axes.axhline(mark.y, **dotted)
        axes.annotate(mark.text, (0.99, mark.y), (0, 3), xycoords=axes.get_yaxis_transform(), ha="right", **words)
