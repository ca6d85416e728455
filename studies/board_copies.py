"""Boards of scores: how often two different models look like one, and how many planted copies are found.

    python studies/board_copies.py [BOARDS [FIRST SEED]]
    python studies/board_copies.py SCORES.csv ..

Prints, for each kind and size of invented honest boards, the boards with a wrong finding at level .05; or,
for each real table, how many of thirty copies of its models are found, on average and in the worst and the
best of ten boards, by their noise.
"""

from __future__ import annotations

import sys

import numpy as np

from cloneproof.boards import Scores, copied_scores, read_scores

KINDS = ("full", "missing", "coarse", "tenths", "degenerate", "families", "clusters")
SIZES = ((20, 12, 8), (60, 30, 20), (150, 60, 40))  # models, tasks, producers
COPIES, NOISES, SEEDS = 30, (0.005, 0.01, 0.02), range(10)  # planted copies, the standard deviations on every score


def honest_board(kind: str, seed: int, models: int, tasks: int, producers: int) -> Scores:
    """Draw scores of different models: strength, three further factors, and noise of each task.

    missing     a fifth of the scores, in all kinds but "full"
    coarse      two digits; "tenths" one, others four
    degenerate  eight tasks on which weak models all score 0, and one with .5 for most
    families    models of one producer have 0.36 of their noise, and 0.6 of their factors, in common
    clusters    two kinds of models that a second factor tells apart
    """
    dice = np.random.default_rng([seed, KINDS.index(kind), models])
    makers = dice.integers(0, producers, models)
    loadings = dice.normal(size=(tasks, 4)) * [0, 0.4, 0.3, 0.2]
    loadings[:, 0] = dice.uniform(0.5, 1, tasks)
    factors, noise = dice.normal(size=(models, 4)), dice.normal(size=(models, tasks)) * dice.uniform(0.3, 0.7, tasks)
    if kind == "families":
        noise = 0.6 * 0.5 * dice.normal(size=(producers, tasks))[makers] + 0.8 * noise
        factors = np.sqrt(0.6) * dice.normal(size=(producers, 4))[makers] + np.sqrt(0.4) * factors
    if kind == "clusters":
        factors[:, 1] = np.where(dice.random(models) < 0.5, 2, -2) + 0.3 * factors[:, 1]
    scores = 1 / (1 + np.exp(-(0.3 + 0.7 * (factors @ loadings.T + noise))))
    scores = np.round(scores, {"coarse": 2, "tenths": 1}.get(kind, 4))
    if kind == "degenerate":
        scores[factors[:, 0] < -0.3, :8] = 0.0
        scores[:, 8] = np.where(dice.random(models) < 0.6, 0.5, scores[:, 8])
    if kind != "full":
        scores[dice.random(scores.shape) < 0.2] = np.nan
    names = tuple(f"model {k}" for k in range(models))
    return Scores(
        names, tuple(f"task {k}" for k in range(tasks)), scores, tuple(f"maker {k}" for k in makers), ("",) * models
    )


def main(boards: int, first: int) -> None:
    """Print a line for each kind and size."""
    for size in SIZES:
        for kind in KINDS:
            wrong = sum(bool(copied_scores(honest_board(kind, first + seed, *size)).pairs) for seed in range(boards))
            print(f"{kind:12} {size[0]:4} models {size[1]:3} tasks: {wrong} of {boards} boards", flush=True)


def found(scores: Scores, noise: float, seed: int) -> int:
    """Enter some models a second time, under other producers and with noise; count those that are found."""
    dice = np.random.default_rng(seed)
    originals = dice.choice(len(scores.models), COPIES, replace=False)
    again = scores.values[originals] + noise * dice.normal(size=(COPIES, len(scores.tasks)))
    names, makers = (tuple(f"{what} {k}" for k in range(COPIES)) for what in ("copy", "copier"))
    board = Scores(
        scores.models + names, scores.tasks, np.vstack([scores.values, again]), scores.producers + makers,
        scores.parents + ("",) * COPIES,
    )  # fmt: skip
    pairs = {frozenset(pair.models) for pair in copied_scores(board).pairs}
    return sum(frozenset((scores.models[k], name)) in pairs for k, name in zip(originals, names, strict=True))


def planted(path: str) -> None:
    """Print a line for each noise."""
    scores = read_scores(path)
    for noise in NOISES:
        each = [found(scores, noise, seed) for seed in SEEDS]
        print(f"{path}, noise {noise}: {np.mean(each):.0f} of {COPIES} found ({min(each)} to {max(each)})", flush=True)


if __name__ == "__main__" and sys.argv[1:2] and sys.argv[1].endswith(".csv"):
    for path in sys.argv[1:]:
        planted(path)
elif __name__ == "__main__":
    main(*(int(text) for text in [*sys.argv[1:], "40", "1000"][:2]))
