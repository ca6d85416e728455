"""What the five figures share: the report's style, panels side by side, logarithmic ticks, and saving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cloneproof.report.style import STYLE

Panel = Axes
LOOK = {**STYLE, "svg.fonttype": "path", "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlecolor": "#1d2433"}


@contextmanager
def figure(name: str, panels: int, height: float = 3.6) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    """A row of panels, in the report's style; its ids are its own, so that equal data gives equal bytes."""
    with mpl.rc_context({**LOOK, "svg.hashsalt": name}):
        made = Figure(figsize=(5.0 * panels, height), layout="constrained")
        yield made, made.subplots(1, panels, squeeze=False)[0]


def save(made: Figure, folder: str, name: str) -> None:
    """As SVG, for the pages; on white, as pages may be dark."""
    made.savefig(Path(folder) / f"{name}.svg", metadata={"Date": None}, facecolor="white")


def logarithmic(axis: Any, values: Sequence[float]) -> None:
    """Powers of ten, written out as such."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    low, high = min(values), max(values)
    powers = [p for p in range(-3, 19) if low / 1.5 <= 10.0**p <= high * 1.5]
    if len(powers) >= 2:
        axis.set_ticks([10.0**p for p in powers], [f"$10^{{{p}}}$" for p in powers])
        axis.minorticks_off()
