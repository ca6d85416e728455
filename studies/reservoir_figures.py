"""The figures of docs/textbook/reservoir.md, exact: python studies/reservoir_figures.py docs/textbook/figures.

One agent has two originals of means 0.3 and 0.7. What the mechanism earns for it depends on the weight of the better
one; copies move that weight up as often as down.
"""

from __future__ import annotations

import io
import sys
from math import comb
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cloneproof._lib.files import write_whole
from cloneproof.report.style import INK, MUTED, STYLE, look

LOW, HIGH = 0.3, 0.7
PULLS, DRAWS, THRESHOLD = 5, 3, 4
TIMETABLE = (("ana", 1, 3), ("bo", 2, 1), ("cy", 3, 4), ("ana", 2, 2), ("bo", 1, 5))  # agent, arm drawn, count
NAMES = ("ana", "bo", "cy")


def round_after_tests(weight: np.ndarray | float) -> np.ndarray | float:
    """What a round after all tests pays, by the weight of the better original: first pass, else the best count."""
    counts = {
        mean: [comb(PULLS, y) * mean**y * (1 - mean) ** (PULLS - y) for y in range(PULLS + 1)] for mean in (LOW, HIGH)
    }
    at = [(1 - weight) * low + weight * high for low, high in zip(counts[LOW], counts[HIGH], strict=True)]
    paid = [
        (1 - weight) * low * LOW + weight * high * HIGH for low, high in zip(counts[LOW], counts[HIGH], strict=True)
    ]
    fail = sum(at[:THRESHOLD])
    total = sum(fail**slot * sum(paid[THRESHOLD:]) for slot in range(DRAWS))
    below = 0.0 * weight
    for level in range(THRESHOLD):
        up_to = below + at[level]
        total = total + paid[level] * sum(below**slot * up_to ** (DRAWS - 1 - slot) for slot in range(DRAWS))
        below = up_to
    return total


def weights_panel(axes: Axes) -> None:
    """Weights under copies (2, 1), for both assignments, and their average."""
    style = look("reservoir")
    rows = (
        ("better one copied", 2 / 3, True),
        ("worse one copied", 1 / 3, True),
        ("on average, and honest", 1 / 2, False),
    )
    for number, (_, weight, copied) in enumerate(rows):
        axes.barh(number, weight, height=0.55, color=style.colour if copied else MUTED)
        axes.barh(number, 1 - weight, left=weight, height=0.55, color="white", edgecolor=MUTED, linewidth=0.8)
    axes.set_yticks(range(3), [words for words, _, _ in rows])
    axes.invert_yaxis()
    axes.axvline(0.5, color=INK, linewidth=1, linestyle=(0, (4, 2)))
    axes.set_xlim(0, 1)
    axes.set_xlabel("weight of the better original in a draw (filled)")
    axes.set_title("Weights are moved, their average is kept", loc="left", fontsize=10.5, color=INK)
    axes.grid(visible=False)


def payoff_panel(axes: Axes) -> None:
    """The value over the weight: bent downwards, so moving the weight both ways loses."""
    style = look("reservoir")
    grid = np.linspace(0, 1, 201)
    axes.plot(grid, round_after_tests(grid), color=INK, linewidth=1.6)
    honest = float(round_after_tests(0.5))
    for left, words in ((1 / 3, "copies (2, 1)"), (0.0, "one withheld")):
        ends = [float(round_after_tests(x)) for x in (left, 1 - left)]
        axes.plot((left, 1 - left), ends, color=style.colour, linewidth=1, marker="o", markersize=4)
        middle = sum(ends) / 2
        axes.plot([0.5], [middle], marker="D", markersize=5, color=style.colour)
        line = {"arrowstyle": "-", "color": style.ink, "linewidth": 0.7}
        at = (0.04, middle - 0.005) if left else (0.62, middle - 0.03)
        axes.annotate(f"{words}: {middle:.3f}", (0.5, middle), at, fontsize=9, color=style.ink, arrowprops=line)
    axes.plot([0.5], [honest], marker="o", markersize=6, color=INK)
    axes.annotate(f"honest: {honest:.3f}", (0.5, honest), (0.46, honest + 0.015), fontsize=9, color=INK, ha="right")
    axes.set_xlim(-0.02, 1.02)
    axes.set_xlabel("weight of the better original in a draw")
    axes.set_ylabel("paid in a round after all tests")
    axes.set_title("What a draw leads to bends downwards", loc="left", fontsize=10.5, color=INK)


def weights_figure() -> Figure:
    """The picture of the theorem."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 5.6), layout="constrained")
        top, bottom = figure.subplots(2, 1, height_ratios=(1, 2.2))
        weights_panel(top)
        payoff_panel(bottom)
        return figure


def timetable_figure() -> Figure:
    """One run of the flat mechanism: tests in turn until the first pass."""
    style = look("reservoir")
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(7.2, 2.2), layout="constrained")
        axes = figure.subplots()
        for place, (agent, arm, count) in enumerate(TIMETABLE):
            passed = count >= PULLS
            axes.barh(NAMES.index(agent), PULLS, left=place * PULLS, height=0.55, linewidth=1.2,
                      color=style.colour if passed else "white", edgecolor=style.colour)  # fmt: skip
            axes.text(
                (place + 0.5) * PULLS,
                NAMES.index(agent),
                f"arm {arm}\n{count} of {PULLS}",
                ha="center",
                va="center",
                fontsize=8.5,
            )
        start, last = len(TIMETABLE) * PULLS, NAMES.index(TIMETABLE[-1][0])
        axes.barh(last, 12, left=start, height=0.55, color=style.colour, alpha=0.45)
        axes.text(start + 6, last, "every later round", ha="center", va="center", fontsize=8.5, color=INK)
        axes.set_yticks(range(len(NAMES)), list(NAMES))
        axes.invert_yaxis()
        axes.set_xlim(0, start + 12)
        axes.set_xlabel(
            f"rounds (tests of {PULLS} pulls, threshold {PULLS}; each test is a fresh draw from the agent's arms)"
        )
        axes.spines["left"].set_visible(False)
        axes.tick_params(left=False)
        return figure


def main(folder: str | Path | None = None) -> None:
    """Print what the pictures show, and write them where a folder is given."""
    for words, left in (("honest", 0.5), ("copies (2, 1)", 1 / 3), ("one withheld", 0.0)):
        middle = (round_after_tests(left) + round_after_tests(1 - left)) / 2
        print(f"{words:14} a round after all tests pays {middle:.4f} on average over who is who")
    figures = {"reservoir-weights.svg": weights_figure, "reservoir-timetable.svg": timetable_figure}
    for name, draw in figures.items() if folder is not None else ():
        buffer = io.StringIO()
        with mpl.rc_context(STYLE):  # the same data, the same bytes
            draw().savefig(buffer, format="svg", metadata={"Date": None})
        write_whole(Path(folder) / name, buffer.getvalue())


if __name__ == "__main__":
    main(*sys.argv[1:2])
