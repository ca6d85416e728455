"""Curves of gains: with error bands, filled where a gain is positive, thinned where there are very many points."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from cloneproof.engines.estimate import Estimate
from cloneproof.report.figures.labels import Label
from cloneproof.report.figures.style import Look, give_room, spread, thousands, zero_line

CurvePoint = tuple[float, Estimate]
THIN = 0.004  # of the figure's height: an error band below that cannot be seen
FEW = 60  # points that are still worth a marker each
MOST_POINTS = 400  # that a curve on a page needs


def curve(axes: Axes, points: Sequence[CurvePoint], style: Look, narrow: bool) -> None:
    """Draw a gain over something, above and below the line of zero."""
    points = thin(points)
    x, values = [at for at, _ in points], [gain.value for _, gain in points]
    zero_line(axes)
    band(axes, x, [gain for _, gain in points], style.colour)
    marker = "o" if len(points) <= FEW else ""
    axes.plot(x, values, color=style.colour, linestyle=style.dashes, marker=marker, markersize=3.5)
    axes.fill_between(x, 0, values, where=[v > 0 for v in values], color=style.colour, alpha=0.12, linewidth=0)
    if narrow:
        axes.xaxis.set_major_locator(MaxNLocator(4))
    thousands(axes.xaxis)
    thousands(axes.yaxis)
    give_room(axes, 0.18)


def thin(points: Sequence[CurvePoint], most: int = MOST_POINTS) -> list[CurvePoint]:
    """At most so many points: the first, the last, and of each stretch the highest and the lowest.

    >>> from cloneproof.engines.estimate import Estimate
    >>> line = [(float(k), Estimate(float(k == 777), 0.0, "proven", "")) for k in range(10_000)]
    >>> few = thin(line)
    >>> len(few) <= 400, (777.0, line[777][1]) in few
    (True, True)
    """
    if len(points) <= most:
        return list(points)
    stretch = -(-len(points) // (most // 2 - 1))
    kept = {0, len(points) - 1}
    for start in range(0, len(points), stretch):
        members = range(start, min(start + stretch, len(points)))
        kept.add(max(members, key=lambda k: points[k][1].high))
        kept.add(min(members, key=lambda k: points[k][1].low))
    return [points[k] for k in sorted(kept)]


def band(axes: Axes, x: Sequence[float], values: Sequence[Estimate], colour: str) -> None:
    """The error bounds around a curve."""
    axes.fill_between(x, [v.low for v in values], [v.high for v in values], color=colour, alpha=0.2, linewidth=0)


def highlight(axes: Axes, at: tuple[float, float], text: str, style: Look) -> Label:
    """Mark the point that the page is about, and say what its label is."""
    axes.plot(*at, "o", markersize=9, markerfacecolor="white", markeredgecolor=style.ink, markeredgewidth=2, zorder=5)
    return Label(text, [at], style.ink, bold=True)


def errors_are_invisible(estimates: Sequence[Estimate]) -> bool:
    """Whether the error bands are thinner than the lines."""
    return max(estimate.error for estimate in estimates) < THIN * spread([estimate.value for estimate in estimates])
