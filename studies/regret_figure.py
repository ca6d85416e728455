"""Regret against the horizon on log axes, many mechanisms in one panel and a panel for each market."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from cloneproof.report.style import KEY, STYLE, look
from cloneproof.runs.estimate import Estimate

Points = Sequence[tuple[int, Estimate]]
WIDTH, HEIGHT = 5.2, 4.2  # inches of a panel


@dataclass(frozen=True)
class Panel:
    """The regret (or what else) of each mechanism at each horizon, and the bounds that theorems give some of them."""

    title: str
    ylabel: str
    curves: Mapping[str, Points]
    bounds: Mapping[str, Sequence[tuple[int, float]]] = field(default_factory=dict)
    lowest: float = 1.0


def regret_figure(rows: Sequence[Sequence[Panel]]) -> Figure:
    """All panels; bounds are thin lines with a triangle that points down to what they bound."""
    with mpl.rc_context(STYLE):
        size = (WIDTH * max(map(len, rows)), HEIGHT * len(rows))
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), max(map(len, rows)), squeeze=False)
        for row, (panels, axes_of_row) in enumerate(zip(rows, grid, strict=True)):
            for panel, axes in zip(panels, axes_of_row, strict=True):
                _draw_panel(axes, panel, row == len(rows) - 1)
        known: dict[str, Artist] = {}
        for axes in figure.axes:
            known |= {name: line for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
        figure.legend(known.values(), known.keys(), loc="outside lower center", ncols=5, **KEY)
    return figure


def _draw_panel(axes: Axes, panel: Panel, last: bool) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    for name, bound in panel.bounds.items():
        style = look(name)
        x, y = [at for at, _ in bound], [value for _, value in bound]
        axes.plot(
            x, y, color=style.colour, linewidth=0.8, marker="v", markersize=4, alpha=0.8, label=f"bound of {name}"
        )
    for name, points in panel.curves.items():
        style = look(name)
        x, values = [at for at, _ in points], [max(estimate.value, panel.lowest) for _, estimate in points]
        low, high = (
            [max(estimate.low, panel.lowest) for _, estimate in points],
            [estimate.high for _, estimate in points],
        )
        axes.fill_between(x, low, high, color=style.colour, alpha=0.13, linewidth=0)
        if len(x) == 1:  # no band: a bar
            axes.vlines(x, low, high, color=style.colour, alpha=0.4, linewidth=1.5)
        axes.plot(x, values, color=style.colour, linestyle=style.dashes, marker="o", markersize=3, label=name)
    _frame(axes, panel, last)


def _frame(axes: Axes, panel: Panel, last: bool) -> None:
    """Title, axes and ticks."""
    axes.set_title(panel.title, loc="left", fontsize=10, fontweight="bold")
    axes.set_ylabel(panel.ylabel)
    if last:
        axes.set_xlabel("horizon T (rounds)")
    axes.xaxis.set_major_locator(LogLocator(10, numticks=12))
    axes.minorticks_off()  # there are hundreds on these axes, and drawing them takes most of the time
    tops = [estimate.value for points in panel.curves.values() for _, estimate in points]
    tops += [value for bound in panel.bounds.values() for _, value in bound]
    bottom = min(max(estimate.value, panel.lowest) for points in panel.curves.values() for _, estimate in points)
    axes.set_ylim(bottom / 4, 2 * max(tops))
