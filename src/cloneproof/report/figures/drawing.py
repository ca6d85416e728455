"""Pictures of figures that came as data (`figure_data`), for wide and narrow screens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, MaxNLocator

from cloneproof.report.figures.bars import bars_in_a_group, draw_bars
from cloneproof.report.figures.figure_data import Bars, Figure, Lines, Map, Mark, Series, Strips
from cloneproof.report.figures.grids import draw_map, draw_strips
from cloneproof.report.figures.labels import Label
from cloneproof.report.figures.style import INK, MUTED, draw_svg, give_room, look_of_shade, powers, thousands

DRAWERS: dict[type[Figure], Callable[[Axes, Any, bool], list[Label]]] = {
    Bars: draw_bars,
    Map: draw_map,
    Strips: draw_strips,
}
MARKERS = 40  # points that are still worth a marker each
LABEL_PLACES = 7  # points of a curve that are tried for its label


def draw_figure(figure: Figure, name: str) -> dict[str, str]:
    """The figure as inline SVG; `name` makes its ids its own on the page."""
    draw = DRAWERS.get(type(figure), draw_lines)
    heights = (_height(figure, False), _height(figure, True))
    return draw_svg(lambda axes, narrow: draw(axes, figure, narrow), name, heights)


def _height(figure: Figure, narrow: bool) -> float:
    """Inches: as high as the rows or the groups need."""
    if isinstance(figure, Strips):
        return 1.1 + 0.42 * len(figure.rows) + 0.22 * (-(-len(figure.meanings) // (1 if narrow else 2)))
    if isinstance(figure, Bars):
        return 0.8 + len(figure.groups) * (0.1 + 0.17 * bars_in_a_group(figure)) + 0.2 * bool(figure.marks)
    return 3.1 if narrow else 3.4


def draw_lines(axes: Axes, figure: Lines, narrow: bool) -> list[Label]:
    """Curves with their bands, marks, and a label at each curve instead of a legend."""
    if figure.log_x:
        axes.set_xscale("log")
    if figure.log_y:
        axes.set_yscale("log")
    labels = [_mark(axes, mark) for mark in figure.marks]
    for series in figure.series:
        look = look_of_shade(series.mechanism, series.shade)
        x, y = np.array(series.x), np.array(series.y)
        steps = "post" if series.style == "steps" else None
        if series.low:
            axes.fill_between(
                x,
                series.low,
                series.high,
                color=look.colour,
                alpha=0.2,
                linewidth=0,
                step=steps,  # type: ignore[arg-type]
            )
        points = series.style == "points" or (len(x) <= MARKERS and series.style == "line")
        axes.plot(
            x,
            y,
            color=look.colour,
            linestyle="none" if series.style == "points" else look.dashes,
            drawstyle="steps-post" if steps else "default",
            marker="o" if points else "",
            markersize=3.5,
        )
        labels.append(Label(series.name, _places(series, figure), look.ink))
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    _ticks(axes, figure, narrow)
    if not figure.log_y:
        give_room(axes, 0.16)
    return labels


def _ticks(axes: Axes, figure: Lines, narrow: bool) -> None:
    for axis, log in ((axes.xaxis, figure.log_x), (axes.yaxis, figure.log_y)):
        if log:
            axis.set_major_locator(LogLocator(10, numticks=5 if narrow else 8))
            powers(axis)
        else:
            if narrow and axis is axes.xaxis:
                axis.set_major_locator(MaxNLocator(4))
            thousands(axis)


def _places(series: Series, figure: Lines) -> list[tuple[float, float]]:
    """Points of the curve for its label: first those where it is farthest from the others."""
    count = len(series.x)
    chosen = dict.fromkeys(round(part * (count - 1)) for part in np.linspace(1, 0.2, min(count, LABEL_PLACES)))
    others = [
        neighbour
        for neighbour in figure.series
        if neighbour is not series and neighbour.style != "points" and len(neighbour.x) > 1
    ]

    def apart(k: int) -> float:
        there = [float(np.interp(series.x[k], neighbour.x, neighbour.y)) for neighbour in others]
        y, low = series.y[k], 1e-300
        if figure.log_y:
            return min((abs(np.log(max(y, low) / max(other, low))) for other in there), default=0.0)
        return min((abs(y - other) for other in there), default=0.0)

    return [(series.x[k], series.y[k]) for k in sorted(chosen, key=apart, reverse=True)]


def _mark(axes: Axes, mark: Mark) -> Label:
    """Draw a mark, and say where its words may stand."""
    if mark.x is not None and mark.y is not None:
        axes.plot(mark.x, mark.y, "o", markersize=8, markerfacecolor="white", markeredgecolor=INK, zorder=5)
        return Label(mark.text, [(mark.x, mark.y)], INK, bold=True)
    if mark.x is not None:
        axes.axvline(mark.x, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
        return Label(mark.text, _Spread(axes, x=mark.x), MUTED)
    assert mark.y is not None
    axes.axhline(mark.y, color=MUTED, linewidth=0.9, linestyle=(0, (2, 2)))
    return Label(mark.text, _Spread(axes, y=mark.y), MUTED)


class _Spread(Sequence[tuple[float, float]]):
    """Points along a line across the axes, found when the axes' limits are known: labels are placed last."""

    PARTS = (0.95, 0.75, 0.5, 0.25, 0.08)

    def __init__(self, axes: Axes, x: float | None = None, y: float | None = None) -> None:
        self.axes, self.x, self.y = axes, x, y

    def __len__(self) -> int:
        return len(self.PARTS)

    def __getitem__(self, index: Any) -> Any:  # noqa: ANN401
        axes, part = self.axes, self.PARTS[index]
        across = axes.transData.inverted().transform(axes.transAxes.transform((part, part)))
        return (self.x if self.x is not None else float(across[0]), self.y if self.y is not None else float(across[1]))
