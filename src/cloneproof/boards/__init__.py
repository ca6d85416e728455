"""Leaderboards: whether submitting variants pays, and what stops it.

In the paper's terms a producer is an agent, a distinct model an original, an equally strong variant a copy and a battle
a reward.
`read_board` reads battles or a table; `study_board` answers all questions; the other functions answer one each, and
`copied_scores` says which models of a table of scores look like one.

>>> from cloneproof import boards
>>> battles = boards.Battles.from_sequence(2, first=[0] * 30, second=[1] * 30, points=[1] * 20 + [0] * 10)
>>> boards.bradley_terry(battles.wins).values.round(1).tolist()      # Elo points about the average
[60.1, -60.1]
"""

from cloneproof.boards.advice import BoardAdvice, recommend_board
from cloneproof.boards.board import Battles, Board, Scores, bradley_terry
from cloneproof.boards.copies import BoardCopies, copied_scores
from cloneproof.boards.listing import BestListing, ByListing, MeanListing, Panel, Provisional, ReservoirBoard
from cloneproof.boards.reading import read_board, read_scores
from cloneproof.boards.study import BoardStudy, Earned, earned, study_board
from cloneproof.boards.variants import RuleRow, Standing, VariantGain, VariantInflation, listing_rule, variant_inflation

__all__ = [
    "Battles", "BestListing", "Board", "BoardAdvice", "BoardCopies", "BoardStudy", "ByListing", "Earned", "MeanListing",
    "Panel", "Provisional", "ReservoirBoard", "RuleRow", "Scores", "Standing", "VariantGain", "VariantInflation",
    "bradley_terry", "copied_scores", "earned", "listing_rule", "read_board", "read_scores", "recommend_board",
    "study_board", "variant_inflation",
]  # fmt: skip
