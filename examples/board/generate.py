"""Write an invented board, battles.csv and owners.csv: 12 models of 5 makers, one of whom lists four variants.

python examples/board/generate.py examples/board
"""

import csv
import random
import sys
from pathlib import Path

MODELS = {  # name: (maker, strength in Elo)
    "aurora-2": ("Aurora Labs", 62), "aurora-2-mini": ("Aurora Labs", -30), "birch-70b": ("Birch", 55),
    "birch-70b-v2": ("Birch", 55), "birch-70b-0611": ("Birch", 55), "birch-70b-chat": ("Birch", 55),
    "cobalt-large": ("Cobalt", 48), "cobalt-small": ("Cobalt", -60), "dune-xl": ("Dune", 30), "dune-m": ("Dune", -10),
    "ember-1": ("Ember", 12), "ember-0": ("Ember", -85),
}  # fmt: skip
BATTLES = 4_000


def main(folder: Path) -> None:
    """Draw battles between random pairs; one in ten is a tie."""
    rng, names = random.Random(7), list(MODELS)
    with (folder / "battles.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["model_a", "model_b", "winner"])
        for _ in range(BATTLES):
            left, right = rng.sample(names, 2)
            chance = 1 / (1 + 10 ** ((MODELS[right][1] - MODELS[left][1]) / 400))
            tie = rng.random() < 0.1
            rows.writerow([left, right, "tie" if tie else "model_a" if rng.random() < chance else "model_b"])
    with (folder / "owners.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["model", "producer"])
        rows.writerows((name, maker) for name, (maker, _) in MODELS.items())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
