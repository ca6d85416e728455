"""Figures made of cells: a map of values around zero, and strips of what happens round by round."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from cloneproof.report.figures.figure_data import Map, Strips
from cloneproof.report.figures.labels import Label
from cloneproof.report.figures.style import INK, MUTED, thousands

# Loss in grey, gain in a dark red: the sign can be told without colour, as only losses are grey.
AROUND_ZERO = LinearSegmentedColormap.from_list(
    "around zero", [(0.0, "#6f7788"), (0.5, "#ffffff"), (0.75, "#e8a06a"), (1.0, "#8c2d04")]
)
CELLS = ("#4477aa", "#88bb66", "#cc4433", "#eecc55", "#999999", "#552277")  # blue, green, red, yellow as in the paper


def draw_map(axes: Axes, figure: Map, narrow: bool) -> list[Label]:
    """Cells around the grid's points; white is zero."""
    values = np.array(figure.values)
    most = float(np.abs(values).max()) or 1.0
    norm = TwoSlopeNorm(0.0, min(float(values.min()), -0.05 * most), max(float(values.max()), 0.05 * most))
    mesh = axes.pcolormesh(
        _edges(figure.x), _edges(figure.y), values, norm=norm, cmap=AROUND_ZERO, rasterized=True, linewidth=0
    )
    bar = axes.figure.colorbar(mesh, ax=axes, pad=0.02, aspect=28)
    bar.outline.set_visible(False)
    bar.set_label(figure.value_label)
    low, high = (_round(norm.vmin), _round(norm.vmax))
    bar.set_ticks([low, low / 2, 0.0, high / 2, high])
    thousands(bar.ax.yaxis)
    axes.grid(visible=False)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    if narrow:
        axes.xaxis.set_major_locator(MaxNLocator(4))
    labels = []
    for mark in figure.marks:
        if mark.x is not None and mark.y is not None:
            axes.plot(mark.x, mark.y, "o", markersize=8, markerfacecolor="none", markeredgecolor=INK, markeredgewidth=2)
            labels.append(Label(mark.text, [(mark.x, mark.y)], INK, bold=True))
        elif mark.x is not None:
            axes.axvline(mark.x, color=INK, linewidth=0.9, linestyle=(0, (2, 2)))
            labels.append(Label(mark.text, [(mark.x, figure.y[-1])], INK))
    return labels


def _round(end: float | None) -> float:
    """The end of a scale in two digits, towards zero, so that it is on the scale."""
    value = abs(end or 0.0)
    unit = 10.0 ** (np.floor(np.log10(value)) - 1)
    return float(np.copysign(np.floor(value / unit + 1e-9) * unit, end or 0.0))


def _edges(centres: tuple[float, ...]) -> np.ndarray:
    """The borders between cells, halfway between their centres."""
    at = np.array(centres, dtype=float)
    if len(at) == 1:
        return np.array([at[0] - 0.5, at[0] + 0.5])
    inner = (at[1:] + at[:-1]) / 2
    return np.concatenate([[2 * at[0] - inner[0]], inner, [2 * at[-1] - inner[-1]]])


def draw_strips(axes: Axes, figure: Strips, narrow: bool) -> list[Label]:
    """A row of cells for each sequence, the first round at the left; a key below, in the colours of the cells."""
    longest = max(len(cells) for _, cells in figure.rows)
    for row, (_, cells) in enumerate(figure.rows):
        for at, cell in enumerate(cells):
            axes.add_patch(Rectangle((at + 0.56, row - 0.34), 0.88, 0.68, facecolor=CELLS[cell], edgecolor="none"))
    for mark in figure.marks:
        if mark.x is not None:
            axes.axvline(mark.x + 0.5, color=INK, linewidth=1.1)
            axes.annotate(
                mark.text, (mark.x + 0.5, -0.5), (3, 2), textcoords="offset points", color=INK, fontsize=9, va="bottom"
            )
    axes.set_xlim(0.3, longest + 0.7)
    axes.set_ylim(len(figure.rows) - 0.5, -0.5 - 0.45 * bool(figure.marks))
    axes.set_yticks(range(len(figure.rows)), [name for name, _ in figure.rows])
    axes.tick_params(axis="y", labelcolor=INK, length=0)
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.xaxis.set_major_locator(MaxNLocator(5 if narrow else 10, integer=True))
    axes.set_xlabel(figure.x_label)
    axes.figure.legend(
        handles=[Patch(color=CELLS[k], label=meaning) for k, meaning in enumerate(figure.meanings)],
        loc="outside lower center",
        ncols=1 if narrow else 2,
        frameon=False,
        fontsize=9,
        labelcolor=MUTED,
        handlelength=1.1,
    )
    return []
