"""The figure and the table of docs/textbook/bars-on-slots.md: python studies/bar_figures.py docs/textbook/figures.

Five providers of three items each, of rates .01, .02 and .03, equally likely. The figure has the points of all draws
of one session, one after the other. The table says what visitors see if the bar is right, too high or too low: sessions
of 30,000 views, whose numbers are averages with 2.58 standard errors.
"""

from __future__ import annotations

import io
import random
import sys
from collections import Counter
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

import cloneproof as cp
from cloneproof._lib.files import write_whole
from cloneproof.report.style import INK, MUTED, STYLE

RATES = (0.01, 0.02, 0.03)
NAMES = ("ana", "bo", "cy", "di", "eve")
COLOURS = ("#ee7733", "#0077bb", "#009988", "#cc3311", "#aa4499")
SHOWN, SEED, VIEWS = 1500, 8, 30_000  # views of the figure, its seed, and views of a session of the table
NORMAL_99 = 2.58
BARS = {".025": 0.025, ".05": 0.05, ".015": 0.015, ".005": 0.005}


def opened(bars: float, seed: int) -> tuple[cp.Session, dict[tuple[str, int], float], random.Random]:
    """A session, the rate of each item, and the dice of clicks."""
    dice = random.Random(seed)
    rates = {(name, arm): dice.choice(RATES) for name in NAMES for arm in range(3)}
    made = cp.mechanism("reservoir-bars", bars=bars, stake=1.0, draws=16)
    return cp.session(made, dict.fromkeys(NAMES, 3), VIEWS, seed=seed, history=False), rates, dice


def played(bars: float, seed: int) -> tuple[Counter[tuple[str, int]], float]:
    """Views of each item, and the clicks lost against the best one, in all views."""
    live, rates, dice = opened(bars, seed)
    views: Counter[tuple[str, int]] = Counter()
    while live.round < VIEWS:
        first, count = live.decide_run(500)
        item = first.agent, first.arm
        views[item] += count
        live.reward_many([(first.id + k, float(dice.random() < rates[item])) for k in range(count)])
    best = max(rates.values())
    return views, sum(number * (best - rates[item]) for item, number in views.items())


def visitors(runs: int) -> list[tuple[str, ...]]:
    """For each bar: providers and items shown at all, the shares of the first two providers, and what is lost."""
    rows = []
    for words, bars in BARS.items():
        found = []
        for seed in range(runs):
            views, lost = played(bars, seed)
            owners: Counter[str] = Counter()
            for (name, _), number in views.items():
                owners[name] += number
            first, second, *_ = [*(number / VIEWS for _, number in owners.most_common()), 0.0]
            found.append((len(owners), len(views), 100 * first, 100 * second, lost))
        mean, error = np.mean(found, axis=0), NORMAL_99 * np.std(found, axis=0, ddof=1) / runs**0.5
        rows.append((words, *(f"{a:.1f} ± {e:.1f}" for a, e in zip(mean, error, strict=True))))
    return rows


def balances() -> Figure:
    """The points of the draw that is shown, view by view."""
    live, rates, dice = opened(0.025, SEED)
    parts: list[tuple[str, int, float, list[int], list[int]]] = []  # provider, draw, rate, views, points
    while live.round < SHOWN:
        decision = live.decide()
        level, rate = live.state.level, rates[decision.agent, decision.arm]
        if not parts or parts[-1][:2] != (decision.agent, decision.slot):
            stake = level.balance[decision.slot]
            parts.append((decision.agent, decision.slot, rate, [decision.id - 1], [stake]))
        failures = level.rank[decision.slot]
        live.reward(decision.id, float(dice.random() < rate))
        points = level.balance[decision.slot] if level.rank[decision.slot] == failures else 0
        parts[-1][3].append(decision.id)
        parts[-1][4].append(points)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.6), layout="constrained")
        axes = figure.subplots()
        told = set[str]()
        for name, _, _, views, points in parts:
            colour = COLOURS[NAMES.index(name)]
            axes.plot(views, points, color=colour, linewidth=1.3, label=None if name in told else name)
            told.add(name)
            if points[-1] == 0:
                axes.plot(views[-1:], [0], marker="x", color=colour, markersize=6, clip_on=False)
        name, _, rate, views, points = parts[-1]
        line = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.8}
        click = next(k for k in range(len(points) // 3, len(points)) if points[k] > points[k - 1])
        for words, at, place in (
            ("starts with 40 points,\na view costs 1", (0, parts[0][4][0]), (0.02, 0.55)),
            ("a click earns 40", (views[click], points[click]), (0.45, 0.62)),
            ("broke: the next draw", (parts[3][3][-1], 0), (0.08, 0.3)),
            (f"this draw of {name}'s has {rate:.0%} clicks:\nit stays solvent, and is shown", (views[-1], points[-1]),
             (0.64, 0.12)),
        ):  # fmt: skip
            axes.annotate(words, at, place, textcoords="axes fraction", fontsize=9, color=INK, arrowprops=line)
        axes.set_xlim(0, SHOWN)
        axes.set_ylim(0, None)
        axes.set_xlabel("views of the market")
        axes.set_ylabel("points of the draw that is shown")
        axes.set_title("Who is broke (×) makes room for the next draw", loc="left", fontsize=10.5, color=INK)
        axes.legend(frameon=False, fontsize=9, labelcolor=MUTED, loc="upper left", ncols=5)
        return figure


def main(folder: Path, runs: int = 40) -> None:
    """Write the figure, and print the table in Markdown."""
    text = io.StringIO()
    with mpl.rc_context(STYLE):  # the same data, the same bytes
        balances().savefig(text, format="svg", metadata={"Date": None})
    write_whole(folder / "bars-balances.svg", text.getvalue())
    print("| bar | providers shown | items shown | views of the first, % | of the second | clicks lost |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in visitors(runs):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
