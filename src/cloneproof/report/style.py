"""Style of all figures: one colour and dash pattern for each mechanism, and a key below the axes.

A series names its mechanism, which has the same colour in every
figure. Colours are Paul Tol's "muted" scheme, which remains distinct under common colour blindness, plus a blue and
greys.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

from markupsafe import Markup

from cloneproof._lib.sections import Figure
from cloneproof.report.words import SUPERSCRIPTS
from cloneproof.runs.estimate import Estimate

if TYPE_CHECKING:  # Matplotlib loads with the first figure that is drawn
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

INK, MUTED, RULE = "#1d2433", "#5b6475", "#d5d9e2"
Dashes = tuple[int, tuple[int, ...]]
SOLID: Dashes = (0, ())
DASHED: Dashes = (0, (5, 2))
DOTTED: Dashes = (0, (1, 1))
STYLE: Any = {
    "font.size": 10,
    "font.family": "sans-serif",
    "text.color": INK,
    "axes.edgecolor": RULE,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "lines.linewidth": 1.8,
    "svg.fonttype": "none",  # text stays text: it takes the page's font, can be searched and is read aloud
    "svg.hashsalt": "cloneproof",  # the same data, the same bytes
}
KEY: Any = {"frameon": False, "fontsize": 9, "labelcolor": MUTED, "handlelength": 2.2, "columnspacing": 1.4}
WIDTHS = {"wide": 6.8, "narrow": 3.5}  # inches of 100 px on the page: a desk's width, a phone's width
FLAT = 1e-6  # a change by that part of a payoff is taken for rounding, and not given a figure's height
MARKERS = 40  # points that are still worth a marker each


@dataclass(frozen=True)
class Look:
    """Colour and dashes of a mechanism, in every figure of every report."""

    colour: str
    dashes: Dashes = SOLID

    @property
    def ink(self) -> str:
        """Colour for text: dark enough to be read on white."""
        channels = [int(self.colour[k : k + 2], 16) for k in (1, 3, 5)]
        return "#" + "".join(f"{int(0.55 * channel):02x}" for channel in channels)


LOOKS: dict[str, Look] = {
    "ucb1": Look("#332288"),
    "etc": Look("#117733"),
    "prior-independent-etc": Look("#999933", DASHED),
    "h-ucb": Look("#88ccee"),
    "uniform-etc": Look("#ddcc77"),
    "h-etc-r": Look("#cc6677"),
    "epsilon-greedy": Look("#aa4499", DOTTED),
    "thompson": Look("#882255", DOTTED),
    "h-thompson": Look("#cc3377", DASHED),
    "kl-ucb": Look("#666666", DOTTED),
    "reservoir": Look("#004488"),
    "reservoir-contest": Look("#0077bb", DASHED),
    "reservoir-index": Look("#33bbee", DOTTED),
    "reservoir-bars": Look("#ee7733"),
}
OTHER = Look("#333333")


def look(mechanism: str) -> Look:
    """Return the look of a mechanism by its name: for any other than these, a hue that follows from the name.

    >>> look("h-etc-r").colour, look("softmax").colour
    ('#cc6677', '#a6a230')
    """
    if not mechanism:
        return OTHER
    hue = crc32(mechanism.encode()) / (1 << 32)
    channels = (round(255 * channel) for channel in hls_to_rgb(hue, 0.42, 0.55))
    return LOOKS.get(mechanism) or Look("#" + "".join(f"{channel:02x}" for channel in channels), DASHED)


@dataclass(frozen=True)
class Picture:
    """A figure as a page shows it: inline SVG for wide and for narrow screens."""

    title: str
    caption: str
    wide: Markup
    narrow: Markup


def picture(figure: Figure, name: str) -> Picture:
    """Draw a figure; `name` makes its ids unique on the page. Labelled artists appear in a key below the axes."""
    import matplotlib as mpl
    from matplotlib.figure import Figure as Drawing

    drawings = {}
    for (width, across), height in zip(WIDTHS.items(), figure.heights, strict=True):
        with mpl.rc_context(STYLE):
            drawing = Drawing(figsize=(across, height), layout="constrained")
            axes = drawing.add_subplot()
            figure.draw(axes, width == "narrow")
            names = axes.get_legend_handles_labels()[1]
            if names:
                room = 45 if width == "narrow" else 100  # characters beside each other
                columns = max(1, room // (6 + max(len(name) for name in names)))
                drawing.legend(loc="outside lower center", ncols=columns, **KEY)
            drawings[width] = Markup(inline_svg(drawing, f"{name}-{width}"))
    return Picture(figure.title, figure.caption, **drawings)


def inline_svg(figure: Drawing, name: str) -> str:
    """Return the figure as an `<svg>` element with unique ids and no external references."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, dpi=200, metadata={"Date": None})
    text = buffer.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'(\sid="|url\(#|href="#)', rf"\g<1>{name}-", text)
    return text.replace("<svg ", '<svg aria-hidden="true" ', 1).strip()


def thousands(axis: Any) -> None:  # noqa: ANN401
    """Format ticks as 1,000, with a true minus and enough decimals to tell neighbours apart."""

    def words(value: float, _: object) -> str:
        low, high = axis.get_view_interval()
        decimals = max(0, 2 - math.floor(math.log10(abs(high - low) or 1.0)))
        text = f"{value:,.{min(decimals, 12)}f}"
        return (text.rstrip("0").rstrip(".") if "." in text else text).replace("-", "\u2212" if value else "")

    axis.set_major_formatter(words)


def powers(axis: Any) -> None:  # noqa: ANN401
    """Format the ticks of a logarithmic axis: 1, 10, 100, 1,000, then 10⁴ and so on."""

    def words(value: float, _: object) -> str:
        exponent = round(math.log10(value)) if value > 0 else 0
        if value <= 0 or abs(value / 10.0**exponent - 1) > 1e-9:
            return f"{value:g}"
        return f"{value:,g}" if -3 <= exponent <= 3 else f"10{str(exponent).translate(SUPERSCRIPTS)}"

    axis.set_major_formatter(words)
    axis.set_minor_formatter("")


def ends_of(estimate: Estimate) -> tuple[float, float]:
    """Return the ends of the interval to draw; of too few runs there is none."""
    return (estimate.low, estimate.high) if math.isfinite(estimate.error) else (estimate.value, estimate.value)


def spread(values: Sequence[float]) -> float:
    """Return the range of the values, but not less than rounding.

    >>> spread([1.0, 3.0]), spread([0.5, 0.5 + 1e-12]) > 1e-7
    (2.0, True)
    """
    return max(max(values) - min(values), FLAT * max(map(abs, values))) or FLAT


def give_room(axes: Axes, share: float, least: float = 0.0) -> None:
    """Add margins for labels; if all values are equal up to rounding, choose a scale that shows it.

    The axis spans `least` at least.
    """
    axes.margins(y=share)
    low, high = axes.get_ylim()
    if high - low < least:
        axes.set_ylim((low + high - least) / 2, (low + high + least) / 2)
        return
    size = max(abs(low), abs(high))
    if high - low < FLAT * max(size, 1.0):
        axes.set_ylim(0.95 * low - FLAT, 1.05 * high + FLAT)


@dataclass(frozen=True)
class Series:
    """A curve with its error bounds; leave `low` and `high` empty if it is exact."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    mechanism: str = ""  # sets the colour; "" for none
    style: Literal["line", "points"] = "line"

    @classmethod
    def of(cls, name: str, x: Sequence[float], estimates: Sequence[Estimate], **look: Any) -> Series:  # noqa: ANN401
        """Return the series of estimates, with their bounds."""
        y, low, high = zip(*((estimate.value, *ends_of(estimate)) for estimate in estimates), strict=True)
        return cls(name, tuple(map(float, x)), y, low, high, **look)


def lines_figure(
    title: str,
    caption: str,
    x_label: str,
    y_label: str,
    series: Sequence[Series],
    *,
    log: bool = False,
    least_height: float = 0.0,
) -> Figure:
    """Return a figure of curves over a number, with logarithmic axes if asked for.

    The y axis spans `least_height` at least, so that rounding does not look like a change.
    """

    def draw(axes: Axes, narrow: bool) -> None:
        from matplotlib.ticker import LogLocator, MaxNLocator

        if log:
            axes.set_xscale("log")
            axes.set_yscale("log")
        for curve in series:
            draw_series(axes, curve)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        for axis in (axes.xaxis, axes.yaxis):
            if log:
                axis.set_major_locator(LogLocator(10, numticks=5 if narrow else 8))
                powers(axis)
            else:
                if narrow and axis is axes.xaxis:
                    axis.set_major_locator(MaxNLocator(4))
                thousands(axis)
        if not log:
            give_room(axes, 0.16, least_height)

    return Figure(title, caption, draw, (3.6, 3.1 + 0.2 * -(-len(series) // 2)))


def draw_series(axes: Axes, series: Series) -> None:
    """Draw a curve with its band, or marks."""
    style, marks = look(series.mechanism), series.style == "points"
    if series.low:
        axes.fill_between(series.x, series.low, series.high, color=style.colour, alpha=0.2, linewidth=0)
    axes.plot(
        series.x,
        series.y,
        color=style.colour,
        linestyle="none" if marks else style.dashes,
        marker="o" if marks or len(series.x) <= MARKERS else "",
        markersize=7 if marks else 3.5,
        label=series.name,
    )
