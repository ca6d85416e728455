"""How sure it is that k copies are one item: one agent with k copies among 45 honest arms, 2,000 rewards each.

Seasons are paired: the k copies of a season are the first k of the same ten, among the same honest arms.

    python studies/whole_groups.py [SEASONS]
"""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np

from cloneproof.analysis.copying.season import ArmRewards, fit_season, judge_agents
from cloneproof.market.rewards import BOUNDED

COPIES = (2, 3, 4, 6, 10)
HONEST, REWARDS, ODDS = 45, 2_000, 0.1


def season(seed: int, copies: int, further: int) -> list[ArmRewards]:
    """15 honest agents of three arms, means even on [0, 1], and an agent with k copies and further items of its own."""
    dice = np.random.default_rng([seed, 77])
    honest = dice.binomial(REWARDS, dice.uniform(0, 1, HONEST))
    same = dice.binomial(REWARDS, dice.uniform(0, 1), max(COPIES))[:copies]
    others = dice.binomial(REWARDS, dice.uniform(0, 1, 3))[:further]
    names = [f"agent {number // 3}" for number in range(HONEST)] + ["copier"] * (copies + further)
    counts = [*honest, *same, *others]
    return [
        ArmRewards(name, f"{number}", REWARDS, count / REWARDS)
        for number, (name, count) in enumerate(zip(names, counts, strict=True))
    ]


def judged(seed: int, copies: int, further: int) -> tuple[float, float, float]:
    """The probability of the whole group (0 where another is likelier), of its likeliest pair, of an honest pair."""
    arms = season(seed, copies, further)
    pairs, items = judge_agents(fit_season(arms, BOUNDED), ODDS)
    true = {f"{number}" for number in range(HONEST, HONEST + copies)}
    whole = [item.probability for item in items if item.agent == "copier" and set(item.arms) == true]
    if not whole and copies == 2:
        whole = [pair.probability for pair in pairs if set(pair.arms) == true]
    best = max(pair.probability for pair in pairs if set(pair.arms) <= true)
    honest = max(pair.probability for pair in pairs if pair.agent != "copier")
    return whole[0] if whole else 0.0, best, honest


def main() -> None:
    """Run it."""
    seasons = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    for further in (0, 2):
        sizes = [copies for copies in COPIES if copies + further <= 10]
        table = {k: np.array([judged(seed, k, further) for seed in range(seasons)]) for k in sizes}
        print(f"{seasons} seasons, {further} further items of the copier; mean and standard error")
        for column, name in enumerate(("all k are one item", "likeliest true pair", "likeliest honest pair")):
            values = {k: rows[:, column] for k, rows in table.items()}
            root = np.sqrt(seasons)
            means = "  ".join(f"k={k}: {one.mean():.3f} ± {one.std() / root:.3f}" for k, one in values.items())
            steps = [values[b] - values[a] for a, b in pairwise(sizes)]
            words = ", ".join(f"{step.mean():+.3f} ± {step.std() / root:.3f}" for step in steps)
            print(f"  {name}: {means}; paired steps {words}")


if __name__ == "__main__":
    main()
