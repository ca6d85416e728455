"""(b) Another contest than one long trial: clone-proof, and with less regret.

Everybody explores for K m rounds and commits; what follows may be any contest between the agents that sees fresh
rewards of the arms committed to and nothing else. Exact: the largest gain of copies over all contests (corners
of a box), and contests of small size as trees. Sampled: the regret of two of them.
"""

from __future__ import annotations

import math

import numpy as np
from contest_gains import Game, deviations, gain, worst_over_contests
from contest_regret import Like, elimination_regret, steady_regret
from drawing import Panel, figure, logarithmic, save
from exact_contests import CLOCKED, LAST, LEADER, STEADY, elimination_rounds, mean_grid, rounds_of_first, steepest_fall

import cloneproof as cp
from cloneproof.bounds import holdout_arm_rounds, holdout_score_rounds
from cloneproof.bounds.rounds import smallest
from cloneproof.report.style import look

CONTESTS = {"steady UCB": STEADY, "UCB1": CLOCKED, "follow the leader": LEADER, "the worst wins": LAST}
NOISE = 1e-9
PLAIN, UNKNOWN, STEADY_LOOK, ELIMINATION_LOOK = look("holdout-h-etc").colour, "#5b6475", "#332288", "#aa4499"


def games(quick: bool) -> list[Game]:
    """Two or three originals, random means at least 0.1 apart or equal, K up to 2l, contests of 10^2 to 10^9 rounds."""
    random = np.random.default_rng(7)
    values = [(0.25, 0.75), (0.05, 0.95)]
    while len(values) < (2 if quick else 40):
        drawn = tuple(sorted(float(v) for v in random.integers(0, 11, size=random.integers(2, 4)) / 10))
        values += [drawn] if len(set(drawn)) > 1 else []
    lengths = [10**2, 10**6] if quick else [10**p for p in range(2, 10)]
    return [
        Game(v, arms, n, rounds)
        for v in values
        for arms in range(len(v) + 1, 2 * len(v) + 1)
        for n in (2, 4)
        for rounds in lengths
    ]


def count_checks(quick: bool) -> list[str]:
    """Exact checks over all contests: none pays under the condition, many do with a tenth of m."""
    tried = paying = small = small_monotone = 0
    closest = -math.inf
    for game in games(quick):
        m = game.enough(2 * len(game.values) - 1)
        for copies in deviations(game):
            worst = worst_over_contests(game, m, copies) / m
            tried, paying, closest = tried + 1, paying + (worst > 0), max(closest, worst)
            tenth = max(1, m // 10)
            small += worst_over_contests(game, tenth, copies) > 0
            small_monotone += worst_over_contests(game, tenth, copies, monotone=True) > 0
    return [
        f"all contests, exact: {tried} (means, K, n, T, copies) under the condition, {paying} pay "
        f"(closest: {closest:.3f} m); with a tenth of m {small} pay, {small_monotone} in some monotone contest",
    ]


def falling(quick: bool) -> list[str]:
    """Whether a better arm ever gets fewer rounds, in exact contests of small size."""
    values = [k / 10 for k in range(11)]
    rows = []
    for agents, rounds in ((2, 8 if quick else 20), (3, 4 if quick else 9)):
        grid = mean_grid(values, agents)
        for name, contest in CONTESTS.items():
            fall = steepest_fall(values, rounds_of_first(contest, grid, rounds, rounds + agents), agents)[0]
            rows.append(f"{name}, n = {agents}, {rounds} rounds: a better mean costs at most {max(fall, 0):.4f} rounds")
    tried, worst = 0, 0.0
    for stages in (2,) if quick else (2, 3, 4):
        for margins in np.ndindex(*(3,) * stages):
            rule = elimination_rounds(
                mean_grid(values, 3), 3 * stages + 50, stages, lambda s, tolerances=margins: tolerances[s - 1]
            )
            tried, worst = tried + 1, max(worst, steepest_fall(values, rule, 3)[0])
    return [
        *rows,
        f"elimination, n = 3: {tried} margins tried, a better mean costs at most {max(0.0, worst):.1e} rounds",
    ]


def regrets(market: Like, horizons: list[int], runs: int) -> dict[str, list[tuple[int, float, float]]]:
    """(T, regret, error) of the plain hold-out mechanism (exact) and of two contests (sampled, at 99 %)."""
    n, originals, gap = market.agents, market.originals, market.gap
    curves: dict[str, list[tuple[int, float, float]]] = {"plain": [], "unknown": [], "elimination": [], "steady": []}
    for horizon in horizons:
        m = holdout_arm_rounds(originals, gap, horizon)
        for name, known in (("plain", gap), ("unknown", None)):
            score = holdout_score_rounds(n, known, horizon)
            made = cp.mechanism("holdout-h-etc", arm_rounds=m, score_rounds=score, max_arms=originals)
            if horizon > n * (originals * m + score):
                estimate = cp.evaluate(market.market(horizon), made, engine="closed-form").regret
                curves[name].append((horizon, estimate.value, estimate.error))
        curves["steady"].append((horizon, *steady_regret(market, m, horizon, runs)))
        wide = any_contest_rounds(originals, gap, horizon)
        curves["elimination"].append((horizon, *elimination_regret(market, wide, horizon, runs)))
    return curves


def any_contest_rounds(originals: int, gap: float, horizon: int) -> int:
    """The smallest m with (2L - 1) exp(-m gap^2) <= m gap / (L T), enough for any contest."""
    return smallest(lambda m: math.log(2 * originals - 1) - m * gap**2 <= math.log(m * gap / (originals * horizon)))


def main(quick: bool, folder: str) -> dict[str, object]:
    """Draw the figure; give back the table."""
    rows = count_checks(quick) + falling(quick)
    horizons = [7000] if quick else [10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6]
    markets = [Like(5, 3, (0.2, 0.4, 0.6, 0.8)), Like(10, 2, (0.1, 0.3, 0.5, 0.7, 0.9)), Like(3, 2, (0.25, 0.75))]
    curves_of = [regrets(markets[0], horizons, 100 if quick else 400)]
    curves_of += [] if quick else [regrets(market, horizons[:3], 400) for market in markets[1:]]
    for market, curves in zip(markets, curves_of, strict=False):
        for name, points in curves.items():
            shown = ", ".join(f"{value:.0f} ± {error:.0f}" for _, value, error in points)
            rows.append(f"regret, n = {market.agents}, L = {market.originals}, {market.values}: {name}: {shown}")
    game = Game((0.25, 0.75), 3, 2, 18 if quick else 42)
    m, means = game.enough(3), np.linspace(0, 1, 11 if quick else 21)
    broken, sound = (gain(game, m, (2, 1), STEADY, means[:, None], flag) for flag in (True, False))
    rows.append(f"count from the commitment (m = {m}, T = {game.horizon(m)}): (2, 1) gains up to {broken.max():.3f}; "
                f"count from round K m on: at most {sound.max():.3f}")  # fmt: skip
    with figure("contests", 2) as (made, (left, right)):
        _draw_regret(left, curves_of[0])
        _draw_start(right, means, broken, sound)
        save(made, folder, "contests")
    return {"rows": rows, "broken": float(broken.max()), "sound": float(sound.max())}


def _draw_regret(axes: Panel, curves: dict[str, list[tuple[int, float, float]]]) -> None:
    words = {
        "unknown": ("one long trial,\nagents' gap unknown", UNKNOWN, (0, (5, 2)), (-8, -4), "right"),
        "plain": ("one long trial, gap known", PLAIN, (0, ()), (0, 7), "right"),
        "elimination": ("elimination", ELIMINATION_LOOK, (0, (1, 1)), (4, 0), "left"),
        "steady": ("steady UCB", STEADY_LOOK, (0, ()), (0, -15), "right"),
    }
    top = 2.2 * max(value for _, value, _ in curves["plain"])
    for name, points in curves.items():
        label, colour, dashes, offset, side = words[name]
        x, y, error = (np.array(column) for column in zip(*points, strict=True))
        axes.fill_between(x, y - error, y + error, color=colour, alpha=0.2, linewidth=0)
        axes.plot(x, y, color=colour, linestyle=dashes, marker="o", markersize=3)
        shown = int(np.flatnonzero(y < 0.95 * top)[-1])
        axes.annotate(
            label, (x[shown], y[shown]), offset, textcoords="offset points", ha=side, color=colour, fontsize=9
        )
    logarithmic(axes.xaxis, [point[0] for point in curves["steady"]])
    axes.set_ylim(0, top)
    axes.set_xlabel("horizon T (rounds)")
    axes.set_ylabel("expected regret (reward units)")
    axes.set_title("n = 5, three originals, values .2 .4 .6 .8")


def _draw_start(axes: Panel, means: np.ndarray, broken: np.ndarray, sound: np.ndarray) -> None:
    axes.axhline(0, color="#1d2433", linewidth=0.9)
    axes.plot(means, broken, color="#cc6677")
    axes.plot(means, sound, color=STEADY_LOOK)
    axes.fill_between(means, 0, broken, where=broken > 0, color="#cc6677", alpha=0.15, linewidth=0)
    top = int(np.argmax(broken))
    axes.annotate(f"counted from one's own\ncommitment: +{broken[top]:.1f}", (means[top], broken[top]), (-62, 2),
                  textcoords="offset points", ha="right", va="top", color="#803f4a")  # fmt: skip
    axes.annotate("counted from round K m on, for everybody", (means[len(means) // 2], sound[len(means) // 2]), (0, 6),
                  textcoords="offset points", ha="center", color=STEADY_LOOK)  # fmt: skip
    axes.set_xlabel("mean of the other agent's arm")
    axes.set_ylabel("gain of copies (2, 1) (reward units)")
    axes.set_title("steady UCB: where the count starts")
