"""The tables of docs/textbook/boards.md: wrong pairs and gains of every rule, from a file of ratings.

python studies/board_figures.py RATINGS.csv
"""

from __future__ import annotations

import sys

from cloneproof.boards import read_board, recommend_board, variants_among_entrants
from cloneproof.boards.entrants import LISTING

VOTES = (1_590, 5_300, 50_085)
MOST_MODELS = 5
PRODUCER = 8  # the one whose variants are followed among entrants, by rank from 0
RUNS = 200


def main(path: str) -> None:
    """Print the numbers that were tuned and the rules, for each number of votes a model."""
    board = read_board(path).at_most(MOST_MODELS)
    for votes in VOTES:
        advice = recommend_board(board, battles=votes * len(board.models) // len(board.names))
        print(votes, advice.rule)
        for row in advice.rows:
            gains = f"{row.gain_best.value:+8.2f}{row.gain_random.value:+8.2f}"
            print(f"  {row.rule.name:40}{row.wrong_pairs.value:8.2f}{gains}")
        for rule in LISTING:
            found = variants_among_entrants(
                board,
                board.names[PRODUCER],
                5,
                battles=votes * len(board.models) // 2,
                rule=rule,
                empty=True,
                runs=RUNS,
            )
            numbers = (f"{each.value:8.2f} +- {each.error:.2f}" for each in (found.wrong_pairs, found.ranks, found.elo))
            print(f"  among entrants: {rule:24}", *numbers)


if __name__ == "__main__":
    main(sys.argv[1])
