"""The figure of `copy_power.py`: the share of plants that were found, against the rewards of an arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt

COLOURS = ("#4c78a8", "#54a24b", "#b279a2", "#e45756", "#9d9da3", "#f58518")


def power_figure(
    rows: Sequence[Any],
    rewards: Sequence[int],
    plants: Sequence[str],
    interval: Callable[[int, int], tuple[float, float]],
    path: Path,
) -> None:
    """Draw it, with 95 % bands, each curve named at its end."""
    figure, axes = plt.subplots(figsize=(8.2, 4.6), dpi=150)
    ends = []
    for number, plant in enumerate(plants):
        shares, lows, highs = [], [], []
        for count in rewards:
            marks = [row.found[number] == "1" for row in rows if row.kind == "planted" and row.rewards == count]
            low, high = interval(sum(marks), len(marks))
            shares.append(sum(marks) / len(marks))
            lows.append(low)
            highs.append(high)
        axes.fill_between(rewards, lows, highs, color=COLOURS[number], alpha=0.18, linewidth=0)
        axes.plot(rewards, shares, color=COLOURS[number], marker="o", markersize=4)
        ends.append((shares[-1], number, plant))
    place = -1.0
    for share, number, plant in sorted(ends):
        place = max(share, place + 0.065)
        axes.annotate(plant, (rewards[-1], place), xytext=(9, 0), textcoords="offset points", va="center",
                      color=COLOURS[number], fontsize=9, annotation_clip=False)  # fmt: skip
    power_axes(axes, rewards, "What the search finds: six plants among 20 agents")
    figure.subplots_adjust(left=0.09, right=0.74, top=0.92, bottom=0.13)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    plt.close(figure)


def power_axes(axes: Any, rewards: Sequence[int], title: str) -> None:
    """Label the axes of shares found against the rewards of an arm."""
    axes.set_xscale("log")
    axes.set_xticks(rewards, [f"{count:,}" for count in rewards])
    axes.minorticks_off()
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("rewards of each arm, of which one in twenty is a click on average")
    axes.set_ylabel("share found at level 0.05")
    axes.set_title(title, loc="left", fontsize=11)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
