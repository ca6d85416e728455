"""The picture of README.md: what Bo earns by registering his one clip k times, of what honesty earns him.

python studies/copier_figure.py docs/copier.svg        (a minute)
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt

import cloneproof as cp

COPIES = (1, 2, 4, 8, 16, 32, 64)
LINES = (
    ("ucb1", "UCB1", "#c0392b"),
    ("thompson", "Thompson sampling", "#d68910"),
    ("reservoir", "reservoir", "#1a7f5a"),
)


def earned(market: cp.Market, name: str) -> list[tuple[float, float, float]]:
    """Payoff with k copies over the honest payoff: value, low and high end (99 % where it is sampled)."""
    mechanism = cp.mechanism(name, market=market)
    search = cp.Search(runs=2000, bounds="asymptotic")
    payoffs = [cp.evaluate(market, mechanism, {"bo": (copies,)}, search=search).payoff["bo"] for copies in COPIES]
    honest = payoffs[0]
    return [(own.value / honest.value, own.low / honest.high, own.high / honest.low) for own in payoffs]


def main(path: str) -> None:
    """Draw the three lines with their error bands."""
    market = cp.load_market(Path(__file__).parents[1] / "examples" / "creators.toml")
    plt.rcParams.update({"svg.hashsalt": "cloneproof", "svg.fonttype": "none", "font.size": 11})
    figure, axes = plt.subplots(figsize=(7, 3.6), layout="constrained")
    for name, label, colour in LINES:
        rows = earned(market, name)
        values, lows, highs = (list(column) for column in zip(*rows, strict=True))
        axes.plot(COPIES, values, "o-", color=colour, label=label)
        axes.fill_between(COPIES, lows, highs, color=colour, alpha=0.15, linewidth=0)
        print(name, *(f"{value:.2f}" for value in values))
    axes.set_xscale("log", base=2)
    axes.set_xticks(COPIES, [str(copies) for copies in COPIES])
    axes.set(xlabel="times that Bo uploads the same clip", ylabel="Bo's earnings, honest = 1")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
