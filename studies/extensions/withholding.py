"""(d) Withholding: the horizon from which on registering everything is the best.

ETC with m of Theorem 3 explores l m rounds; leaving originals out shortens that, and risks the best one. For each m the
horizons that share it are one stretch, on which the advantage of registering everything grows with T; so the last
horizon at which withholding pays is found exactly, stretch by stretch.
"""

from __future__ import annotations

import math

import numpy as np
from drawing import Panel, figure, logarithmic, save

import cloneproof as cp
from cloneproof.bounds import etc_rounds
from cloneproof.bounds.rounds import smallest

INKS = {0.1: "#332288", 0.3: "#4477aa", 0.5: "#117733", 0.7: "#999933", 0.9: "#cc6677"}
NOISE = 1e-12


def payoffs(values: tuple[float, float], chance: float, originals: int, m: int, horizon: int) -> list[float]:
    """What registering 1, 2, .. of the originals earns under ETC; exact."""
    prior = cp.Discrete(list(values), [1 - chance, chance])
    market = cp.Market([cp.Agent("ana", originals, prior)], horizon=horizon)
    made, earned = cp.mechanism("etc", arm_rounds=m), []
    for kept in range(1, originals + 1):
        copies = (1,) * kept + (0,) * (originals - kept)
        earned.append(cp.evaluate(market, made, {"ana": copies}).payoff["ana"].value)
    return earned


def withholding_pays(values: tuple[float, float], chance: float, originals: int, m: int, horizon: int) -> bool:
    """Whether some smaller number of originals earns more than all."""
    *fewer, everything = payoffs(values, chance, originals, m, horizon)
    return max(fewer) > everything * (1 + NOISE)


def all_from(values: tuple[float, float], chance: float, originals: int) -> tuple[int, int]:
    """The horizon from which on registering everything is best under ETC with m of Theorem 3, and m there."""
    gap = values[1] - values[0]

    def rounds(horizon: int) -> int:
        return etc_rounds(originals, gap, horizon)

    last, m, quiet = 0, rounds(1), 0
    begin = 1
    while (
        quiet < 3 or begin <= originals * m
    ):  # T grows like exp(m) and the threshold like m: quiet once, quiet for ever
        begin = smallest(lambda horizon, needed=m: rounds(horizon) >= needed)
        end = smallest(lambda horizon, needed=m: rounds(horizon) > needed) - 1
        if begin <= end and withholding_pays(values, chance, originals, m, end):
            last, quiet = end, 0
        elif begin <= end:
            safe = begin + smallest(
                lambda more, a=begin, needed=m: not withholding_pays(values, chance, originals, needed, a + more - 1)
            ) - 1  # fmt: skip
            last, quiet = (safe - 1, 0) if safe > begin else (last, quiet + 1)
        m += 1
    return last + 1, rounds(last + 1)


def ratio(chance: float, originals: int) -> float:
    """T / m from which on everything is best for values 0 and 1: the smallest with a(l) >= a(j) for all j < l.

    a(j) = j m p + (T - j m)(1 - (1 - p)^j), where nothing is misjudged and the exploration ends.
    """
    best = [1 - (1 - chance) ** j for j in range(originals + 1)]
    return max(
        (originals * (best[-1] - chance) - j * (best[j] - chance)) / (best[-1] - best[j]) for j in range(1, originals)
    )


def all_from_by_formula(chance: float, originals: int) -> int:
    """The same as `all_from` for values 0 and 1, from the formula alone."""
    limit, last = ratio(chance, originals), 0
    horizon = 1
    while horizon < 4 * limit * etc_rounds(originals, 1.0, max(2, last, horizon)) or horizon < 100:
        m = etc_rounds(originals, 1.0, horizon)
        end = math.floor(math.exp(m / (2 * originals)) / 2)  # the last horizon of this m, up to rounding
        while etc_rounds(originals, 1.0, end + 1) == m:
            end += 1
        while etc_rounds(originals, 1.0, end) > m:
            end -= 1
        fails = min(end, math.ceil(limit * m - 1e-9) - 1)
        # below l m rounds everything is still exploring, and one original alone is as good: nothing pays up to m
        if fails >= horizon and fails > m:
            last = fails
        horizon = end + 1
    return last + 1


def main(quick: bool, folder: str) -> dict[str, object]:
    """Draw the figure; give back the table."""
    fact = payoffs((0.0, 1.0), 0.5, 3, etc_rounds(3, 1.0, 96), 96)
    rows = [f"values 0 and 1, p = 1/2, l = 3, T = 96: registering 1, 2, 3 originals earns {fact}"]
    chances = [0.3, 0.5] if quick else [0.1, 0.3, 0.5, 0.7, 0.9]
    most = 4 if quick else 7
    horizons = {(p, n): all_from((0.0, 1.0), p, n) for p in chances for n in range(2, most + 1)}
    for p in chances:
        shown = ", ".join(f"l={n}: {horizons[p, n][0]:,} ({ratio(p, n):.1f} m)" for n in range(2, most + 1))
        rows.append(f"values 0 and 1, p = {p}: everything is best from T = {shown}")
    for values in ((0.25, 0.75),) if quick else ((0.25, 0.75), (0.4, 0.6)):
        shown = ", ".join(f"l={n}: {all_from(values, 0.5, n)}" for n in ((2,) if quick else (2, 3, 4)))
        rows.append(f"values {values}, p = 1/2: (T, m) {shown}")
    with figure("withholding", 2) as (made, (left, right)):
        _draw_crossing(left, quick)
        _draw_horizons(right, {(p, n): value for (p, n), (value, _) in horizons.items()}, most)
        save(made, folder, "withholding")
    return {"rows": rows, "found": horizons, "fact": fact}


def _draw_crossing(axes: Panel, quick: bool) -> None:
    horizons = np.unique(np.geomspace(20, 3000, 25 if quick else 120).astype(int))
    shares = [[p / T for p in payoffs((0.0, 1.0), 0.5, 3, etc_rounds(3, 1.0, int(T)), int(T))] for T in horizons]
    start, _ = all_from((0.0, 1.0), 0.5, 3)
    axes.axvline(start, color="#5b6475", linewidth=1, linestyle=(0, (1, 1)))
    axes.annotate(f"from T = {start} on\nall three", (start, 0.46), (6, 0), textcoords="offset points", color="#5b6475",
                  va="top")  # fmt: skip
    for kept, colour in ((1, "#999933"), (2, "#cc6677"), (3, "#117733")):
        line = [share[kept - 1] for share in shares]
        axes.plot(horizons, line, color=colour)
        axes.annotate(f"{kept} of 3", (horizons[-1], line[-1]), (-4, -6), textcoords="offset points", color=colour,
                      ha="right", va="top")  # fmt: skip
    axes.plot([96, 96], [56 / 96, 0.5], "o", color="#1d2433", markersize=4)
    axes.annotate(
        "T = 96:\n56 against 48", (96, 56 / 96), (-6, 4), textcoords="offset points", ha="right", color="#1d2433"
    )
    axes.set_ylim(0.4, 0.95)
    logarithmic(axes.xaxis, [20, 3000])
    axes.set_xlabel("horizon T (rounds)")
    axes.set_ylabel("payoff per round")
    axes.set_title("registering some of three originals, p = ½")


def _draw_horizons(axes: Panel, horizons: dict[tuple[float, int], int], most: int) -> None:
    for p in sorted({p for p, _ in horizons}):
        x = range(3, most + 1)
        y = [horizons[p, n] for n in x]
        axes.plot(x, y, color=INKS[p], marker="o", markersize=3.5)
        axes.annotate(f"p = {p}", (x[-1], y[-1]), (6, 4 if p == 0.3 else -5 if p == 0.1 else 0),
                      textcoords="offset points", color=INKS[p], va="center")  # fmt: skip
    logarithmic(axes.yaxis, [value for (_, n), value in horizons.items() if n > 2])
    axes.set_xlim(2.8, most + 0.8)
    axes.set_xticks(range(3, most + 1))
    axes.set_xlabel("originals l")
    axes.set_ylabel("horizon T (rounds)")
    axes.text(0.03, 0.95, "two originals: at every T", transform=axes.transAxes, va="top", color="#5b6475")
    axes.set_title("everything is best from here on (values 0, 1)")
