"""The tables of docs/textbook/boards.md: wrong pairs and gains of every rule, from a file of ratings.

python studies/board_figures.py RATINGS.csv
"""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import product

import numpy as np
from scipy.special import ndtri

from cloneproof.boards import Board, BoardAdvice, Panel, Standing, read_board, recommend_board, variant_inflation
from cloneproof.boards.listing import ListingRule
from cloneproof.boards.study import SPREADS as INFLATED
from cloneproof.boards.study import UNEQUAL

VOTES = (30, 1_590, 50_085)
MOST_MODELS = 5
VARIANTS = 5
SPREADS = (0, 5, 10, 15, 20, 40)  # Elo: standard deviation of a variant's strength about its model's
SUBSETS = 10  # random halves of a producer's models


def main(path: str) -> None:
    """Print all figures for each number of votes a model, with all models and with each producer's best ones."""
    whole = read_board(path)
    board = whole.at_most(MOST_MODELS)
    for votes in VOTES:
        print("all models", end=" ")
        show_rules(whole, votes)
        advice = show_rules(board, votes)
        ours = next(row.rule for row in advice.rows if row.rule.proven)
        for spread in SPREADS:
            print(f"  five variants that differ by {spread} Elo: {unequal_variants(board, ours, spread):+.3f} ranks")
        for variants, spread in product(UNEQUAL, INFLATED):
            found = variant_inflation(advice.rule, votes, variants, spread, runs=40_000)
            added = (found.usual, found.leader, found.reservoir, found.champion)
            numbers = (f"{each.value:8.2f} +- {each.error:.2f}" for each in added)
            print(f"  Elo added by {variants} variants, spread {spread}:", *numbers, f"{found.ceiling:8.2f}")


def show_rules(board: Board, votes: int) -> BoardAdvice:
    """Print the rules at so many votes a model, and what listing a random half of one's models gains."""
    advice = recommend_board(board, battles=votes * len(board.models) // len(board.names))
    print(votes, advice.rule, f"best model missed with chance {advice.missed:.3f} at most")
    for row in advice.rows:
        gains = f"{row.gain_best.value:+8.3f}{row.gain_random.value:+8.3f}{withholding(board, row.rule):+8.3f}"
        print(f"  {row.rule.name:40}{row.wrong_pairs.value:8.2f}{gains}")
    return advice


def unequal_variants(board: Board, rule: ListingRule, spread: float) -> float:
    """Ranks gained by variants of a random model whose strengths lie about its own, averaged over producers.

    The strengths are normal quantiles, so that nothing is drawn.
    """
    standing, gains = Standing(Panel(board), rule), []
    offsets = spread * ndtri((np.arange(VARIANTS) + 0.5) / VARIANTS)
    for name, own in standing.panel.models.items():
        ranks = []
        for model in own:
            more = tuple(f"variant {i}" for i in range(VARIANTS))
            wider = replace(
                board, models=board.models + more, producers=board.producers + (name,) * VARIANTS,
                ratings=np.append(board.ratings, board.ratings[model] + offsets),
                errors=np.append(board.errors, [1.0] * VARIANTS), votes=np.append(board.votes, [1] * VARIANTS),
                battles=None, panel=board.ratings if board.panel is None else board.panel,
            )  # fmt: skip
            listed = [*own, *range(len(board.models), len(wider.models))]
            ranks.append(standing.rank(name, rule.law(Panel(wider), listed, [1] * len(listed))))
        gains.append(standing.rank(name) - np.mean(ranks))
    return float(np.mean(gains))


def withholding(board: Board, rule: ListingRule) -> float:
    """Ranks gained by listing a random half of one's models, averaged over producers with two or more."""
    standing, rng, gains = Standing(Panel(board), rule), np.random.default_rng(0), []
    for name, own in standing.panel.models.items():
        if len(own) > 1:
            kept = [rng.permutation(len(own)) < len(own) / 2 for _ in range(SUBSETS)]
            laws = [rule.law(standing.panel, own, half.astype(int)) for half in kept]
            gains.append(standing.rank(name) - np.mean([standing.rank(name, law) for law in laws]))
    return float(np.mean(gains))


if __name__ == "__main__":
    main(sys.argv[1])
