"""The table of rules of `cloneproof board`, drawn again by a simulation that imports nothing of cloneproof.

cloneproof board FILE --json > board.json
python studies/board_rules.py board.json [RUNS]

Takes the strengths of the models, the producers and the votes from the file, plays battles with the panel, opponent by
opponent, and compares wrong pairs and what 5 copies of the best model gain, by best-of, cap(3), mean-of and, on boards
of up to 400 models, fresh-votes(2000, over=10). Ends with 1 if one is off by more than 4.9 standard errors and .5 %.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np

COPIES, MOST_AVERAGED, MOST_FRESH = 5, 30, 400
SURE = 4.9  # standard errors: one wrong alarm in a million


def schedule(battles: int, opponents: int) -> np.ndarray:
    """Return how often each opponent is met: as equally as possible, the rest spread evenly."""
    times = np.full(opponents, battles // opponents)
    rest = battles % opponents
    times[((np.arange(rest) + 0.5) * opponents / max(rest, 1)).astype(int)] += 1
    return times


def main(path: str, runs: int) -> int:
    """Print a line for each rule; return how many numbers are off."""
    with open(path, encoding="utf-8") as file:
        said = json.load(file)
    ratings = np.array([row["rating"] for row in said["models"]])
    makers = [row["producer"] for row in said["models"]]
    order = np.argsort(-ratings, kind="stable")
    names = list(dict.fromkeys(makers[i] for i in order))
    owned = {name: [int(i) for i in order if makers[i] == name] for name in names}
    budget = max(20, said["votes"] * len(ratings) // len(names))
    votes = max(1, budget * len(names) // len(ratings))
    dice = np.random.default_rng(5)

    def won(model: int, battles: int, times: int = 1) -> np.ndarray:
        """Return the wins of a model in each run, so many times."""
        meets = schedule(battles, len(ratings))
        met = np.flatnonzero(meets)
        chances = 1 / (1 + 10 ** ((ratings[met] - ratings[model]) / 400))
        return np.stack(
            [dice.binomial(meets[met], chances, (runs, len(met))).sum(axis=1) for _ in range(times)], axis=1
        )

    counts = [won(model, votes)[:, 0] for model in range(len(ratings))]

    def fresh(wins: np.ndarray, models: list[int]) -> np.ndarray:
        """Return win rates: of the best listing, or of its fresh votes where there are more than ten listings."""
        if len(models) <= 10:
            return wins.max(axis=1) / votes
        champion = (wins + dice.random(wins.shape) / 2).argmax(axis=1)
        again = {model: won(model, 2000)[:, 0] for model in {models[k] for k in champion}}
        return np.array([again[models[k]][run] for run, k in enumerate(champion)]) / 2000

    rules: dict[str, Callable[[np.ndarray, list[int]], np.ndarray]] = {
        "best-of": lambda wins, models: wins.max(axis=1),
        "cap(3)": lambda wins, models: wins[:, :3].max(axis=1),
        "mean-of": lambda wins, models: wins.mean(axis=1),
    }
    if len(ratings) <= MOST_FRESH:
        rules["fresh-votes(2000, over=10)"] = fresh
    wrong = 0
    for rule, score in rules.items():
        row = next(row for row in said["advice"]["rules"] if row["rule"] == rule)
        scores = np.stack([score(np.stack([counts[i] for i in own], axis=1), own) for own in owned.values()], axis=1)
        bests = np.array([ratings[own[0]] for own in owned.values()])
        pairs = np.full(runs, np.triu(bests[:, None] == bests, 1).sum() / 2)  # of equal producers one half is wrong
        for place, own in enumerate(owned.values()):
            rivals = scores[:, bests < ratings[own[0]]]
            pairs += (rivals > scores[:, [place]]).sum(axis=1) + (rivals == scores[:, [place]]).sum(axis=1) / 2
        gains = []
        for place in range(0, len(names), -(-len(names) // MOST_AVERAGED)):
            own = owned[names[place]]
            wins = np.column_stack([counts[own[0]], won(own[0], votes, COPIES), *(counts[i] for i in own[1:])])
            higher = score(wins, [own[0]] * (COPIES + 1) + own[1:])
            others = np.delete(scores, place, axis=1)
            beaten = [(others < each[:, None]).sum(axis=1) + (others == each[:, None]).sum(axis=1) / 2
                      for each in (higher, scores[:, place])]  # fmt: skip
            gains.append(beaten[0] - beaten[1])
        for what, drawn, known in (
            ("wrong pairs", pairs, row["wrong_pairs"]["value"]),
            (f"ranks by {COPIES} copies", np.mean(gains, axis=0), row["identical"][1]["value"]),
        ):
            error = drawn.std() / runs**0.5
            off = abs(drawn.mean() - known) > SURE * error + 0.005 * abs(known) + 0.005
            wrong += off
            mark = "OFF" if off else ""
            print(f"{rule:28} {what:18} said {known:9.3f}  drawn {drawn.mean():9.3f} ± {error:.3f} {mark}", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1], int([*sys.argv, "400"][2]))))
