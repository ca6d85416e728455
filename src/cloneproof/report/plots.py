"""Figures as data, and their pictures for wide and narrow screens.

Code that computes returns `Lines` and does not draw. A series names its mechanism, which has the same colour in every
figure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from cloneproof.engines.estimate import Estimate
from cloneproof.report.style import Picture, give_room, look, picture, powers, thousands


@dataclass(frozen=True)
class Series:
    """A curve with its error bounds; leave `low` and `high` empty if it is exact.

    mechanism   sets the colour; "" for none
    style       "line" or "points"
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    mechanism: str = ""
    style: Literal["line", "points"] = "line"

    @classmethod
    def of(cls, name: str, x: Sequence[float], estimates: Sequence[Estimate], **look: Any) -> Series:  # noqa: ANN401
        """The series of estimates, with their bounds."""
        y, low, high = zip(*((estimate.value, estimate.low, estimate.high) for estimate in estimates), strict=True)
        return cls(name, tuple(map(float, x)), y, low, high, **look)


@dataclass(frozen=True)
class Lines:
    """Curves over a number."""

    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False


MARKERS = 40  # points that are still worth a marker each


def draw_figure(figure: Lines, name: str) -> Picture:
    """The picture; `name` makes its ids unique on the page."""
    heights = (3.6, 3.1 + 0.2 * -(-len(figure.series) // 2))
    return picture(figure.title, figure.caption, lambda axes, narrow: draw_lines(axes, figure, narrow), name, heights)


def draw_lines(axes: Axes, figure: Lines, narrow: bool) -> None:
    """Draw curves with their bands, and marks."""
    if figure.log_x:
        axes.set_xscale("log")
    if figure.log_y:
        axes.set_yscale("log")
    for series in figure.series:
        style = look(series.mechanism)
        if series.low:
            axes.fill_between(series.x, series.low, series.high, color=style.colour, alpha=0.2, linewidth=0)
        points = series.style == "points" or len(series.x) <= MARKERS
        axes.plot(
            series.x,
            series.y,
            color=style.colour,
            linestyle="none" if series.style == "points" else style.dashes,
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
