"""(c) Originals with different priors: where copying the better one pays, and what stops it.

Values 0 and 1 with chances p1 >= p2 (nothing is misjudged there, so that only the cost of exploration is left), one
agent. A copy of the better original pays only by never letting the exploration end: T p1 instead of
m (p1 + p2) + (T - 2m) E[best]. Every deviation is evaluated by the exact engine.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from drawing import Panel, figure, logarithmic, save

import cloneproof as cp
from cloneproof.bounds.rounds import smallest

EXPLOIT = "#cc6677"
MANY = 100_000  # copies that no horizon here can explore


def market(chances: tuple[float, ...], horizon: int, values: tuple[float, float] = (0.0, 1.0)) -> cp.Market:
    """One agent with originals of two values each, the better one with these chances."""
    priors = [cp.Discrete(list(values), [1 - p, p]) for p in chances]
    return cp.Market([cp.Agent("ana", prior=priors)], horizon=horizon)


def payoff(chances: tuple[float, ...], m: int, horizon: int, copies: tuple[int, ...], values=(0.0, 1.0)) -> float:
    """The exact payoff of the agent under ETC with m rounds per arm."""
    evaluation = cp.evaluate(market(chances, horizon, values), cp.mechanism("etc", arm_rounds=m), {"ana": copies})
    return evaluation.payoff["ana"].value


DEVIATIONS = ((2, 1), (3, 1), (5, 1), (10, 1), (30, 1), (MANY, 1), (1, 2), (2, 2), (1, MANY))


def best_gain(chances: tuple[float, float], m: int, horizon: int) -> tuple[float, tuple[int, int]]:
    """The largest gain over some copies of each of two originals, a flood of them included, and the copies."""
    honest = payoff(chances, m, horizon, (1, 1))
    return max((payoff(chances, m, horizon, copies) - honest, copies) for copies in DEVIATIONS)


def never_pays_from(p1: float, p2: float) -> float:
    """The T / m from which on no number of copies of the better one pays (values 0 and 1, p1 >= p2).

    T p1 <= m (p1 + p2) + (T - 2m) (1 - (1 - p1)(1 - p2)), solved for T / m.
    """
    return (p1 + p2 - 2 * p1 * p2) / ((1 - p1) * p2)


def copy_cost(chances: tuple[float, ...], values: tuple[float, float] = (0.0, 1.0)) -> float:
    """The least that a copy costs in each round of its exploration: E[best] - E[its own], for the best original."""
    low, high = values
    none = float(np.prod([1 - p for p in chances]))
    return (high - low) * (1 - none - max(chances))


def first_horizon(p1: float, p2: float, m: int) -> int:
    """The T from which on none of the deviations pays, by the exact engine, one T after another."""
    end = int(never_pays_from(p1, p2) * m) + 2 * m
    paying = [horizon for horizon in range(1, end) if best_gain((p1, p2), m, horizon)[0] > 1e-9]
    return max(paying, default=0) + 1


def against_floods(chances: tuple[float, ...], m: int, arms: int) -> int:
    """The score rounds W that make the trial dear to those who flood it: no score, but M rounds of the better original.

    (M - l m)(E[best] - E[better]) >= m sum(E[better] - E[each]), M = K m + W, and a tenth more for wrong commitments.
    """
    spare = sum(max(chances) - p for p in chances) / copy_cost(chances)
    return math.ceil(1.1 * m * spare + (len(chances) - arms) * m)


def audit_priors(
    chances: tuple[float, float], values: tuple[float, float], arms: int, horizon: int, short: bool = False
) -> tuple[int, float, str]:
    """Dominance for n = 2: m of exp(-m gap^2) <= m cost / T, the best gain of at most K arms, and the verdict.

    W is long enough against floods, or 100 rounds if a short one is asked for.
    """
    priors = [cp.Discrete(list(values), [1 - p, p]) for p in chances]
    gap, cost = values[1] - values[0], copy_cost(chances, values)
    m = smallest(lambda m: math.exp(-m * gap**2) <= m * cost / horizon)
    pair = cp.Market([cp.Agent(name, prior=priors) for name in ("ana", "bo")], horizon=horizon)
    score = 100 if short else max(100, against_floods(chances, m, arms))
    made = cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=score, max_arms=arms)
    most = math.ceil(never_pays_from(*chances)) + 1  # so many arms that the audit's bound covers the rest
    audit = cp.audit(pair, made, agent="ana", opponents="any", search=cp.Search(copies=max(arms, most)))
    return m, max(witness.gain.high for witness in audit.tried if sum(witness.copies) <= arms), audit.verdict


def main(quick: bool, folder: str) -> dict[str, object]:
    """Draw the figure; give back the table."""
    made = cp.mechanism("holdout-h-etc", arm_rounds=6, score_rounds=1, max_arms=10)
    known = [cp.evaluate(market((0.9, 0.1), 85), made, {"ana": c}).payoff["ana"].value for c in ((1, 1), (9, 1))]
    rows = [
        f"P(1) = .9 and .1, m = 6, T = 85, hold-out with K = 10, W = 1: honest {known[0]:.2f}, (9, 1) {known[1]:.2f}"
    ]
    step = 0.2 if quick else 0.05
    grid = [round(float(p), 3) for p in np.arange(step, 0.999, step)]
    m, horizon = 6, 85
    relative = np.full((len(grid), len(grid)), np.nan)
    for (i, p1), (j, p2) in product(enumerate(grid), repeat=2):
        if p1 >= p2:
            gain, _ = best_gain((p1, p2), m, horizon)
            relative[j, i] = 100 * gain / payoff((p1, p2), m, horizon, (1, 1))
    paying, pairs_tried = int((relative > 1e-7).sum()), int((~np.isnan(relative)).sum())
    rows.append(
        f"m = {m}, T = {horizon}: copies pay in {paying} of {pairs_tried} pairs (p1 >= p2), "
        f"by up to {np.nanmax(relative):.1f} %"
    )
    pairs = [(0.6, 0.4), (0.8, 0.2)] if quick else [(0.6, 0.4), (0.7, 0.3), (0.8, 0.2), (0.9, 0.1)]
    checked = {}
    for p1, p2 in pairs:
        for rounds in (1,) if quick else (1, 3, 6):
            checked[p1, p2, rounds] = first_horizon(p1, p2, rounds) / rounds
        shown = ", ".join(f"{checked[p1, p2, r]:.2f} (m = {r})" for a, b, r in checked if (a, b) == (p1, p2))
        rows.append(f"p = {p1}, {p2}: copies never pay from T/m = {never_pays_from(p1, p2):.2f} on; engine: {shown}")
    cases = list(product([(0.8, 0.2), (0.7, 0.3)], [(0.25, 0.75)], (3,), (10**4, 10**6)))
    cases += product([(0.7, 0.4), (0.6, 0.5)], [(0.2, 0.8), (0.25, 0.75)], (3, 4), (10**4, 10**6))
    for chances, values, arms, long in cases[-1:] if quick else cases:
        rounds, worst, verdict = audit_priors(chances, values, arms, long)
        cut = audit_priors(chances, values, arms, long, short=True)[2]
        rows.append(
            f"hold-out, n = 2, p = {chances}, values {values}, K = {arms}, T = {long}: m = {rounds}, best gain of at "
            f"most K arms {worst:.3f}; with floods of more arms: {verdict}, with W = 100: {cut}"
        )
    with figure("asymmetric", 2) as (drawn, (left, right)):
        _draw_map(drawn, left, grid, relative, m, horizon)
        _draw_limits(right, checked)
        save(drawn, folder, "asymmetric")
    return {"rows": rows, "known": known, "checked": checked}


def _draw_map(drawn, axes: Panel, grid: list[float], relative: np.ndarray, m: int, horizon: int) -> None:
    half = (grid[1] - grid[0]) / 2
    shown = np.where(relative > 1e-7, relative, np.nan)
    around = (grid[0] - half, grid[-1] + half) * 2
    axes.imshow(
        np.where(np.isnan(relative), np.nan, 0.0), extent=around, origin="lower", cmap="Greys", vmin=-0.15, vmax=1
    )
    image = axes.imshow(shown, extent=around, origin="lower", cmap="Reds", vmin=0)
    bar = drawn.colorbar(image, ax=axes, shrink=0.85)
    bar.set_label("best gain (% of the honest payoff)")
    axes.grid(False)
    edge = np.linspace(0.02, 0.98, 200)
    p1, p2 = np.meshgrid(edge, edge)
    axes.contour(p1, p2, np.where(p1 >= p2, never_pays_from(p1, p2), np.nan), levels=[horizon / m], colors="#1d2433",
                 linewidths=1.2)  # fmt: skip
    axes.text(
        0.05, 0.93, "grey: no copies pay\nline: the formula's edge", transform=axes.transAxes, va="top", fontsize=9
    )
    axes.set_xlabel("chance p₁ that the better original is good")
    axes.set_ylabel("chance p₂ of the other")
    axes.set_title(f"ETC, m = {m}, T = {horizon}")


def _draw_limits(axes: Panel, checked: dict[tuple[float, float, int], float]) -> None:
    p1 = np.linspace(0.55, 0.95, 100)
    axes.plot(p1, never_pays_from(p1, 1 - p1), color=EXPLOIT)
    seen = sorted({(a, value) for (a, _, _), value in checked.items()})
    axes.plot([a for a, _ in seen], [value for _, value in seen], "o", color="#803f4a", markersize=4)
    axes.annotate("copies pay below", (0.72, 5), color="#803f4a")
    axes.annotate("honesty is best above", (0.58, 40), color="#1d2433")
    logarithmic(axes.yaxis, [1, 200])
    axes.set_xlabel("chance p₁ of the better original (p₁ + p₂ = 1)")
    axes.set_ylabel("horizon in units of m (T / m)")
    axes.set_title("the horizon from which on copying stops paying")
