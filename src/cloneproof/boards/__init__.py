"""Leaderboards: whether submitting variants pays, and what stops it.

In the paper's terms a producer is an agent, a distinct model an original, an equally strong variant a copy and a battle
a reward.
`read_board` reads battles or a table; `study_board` answers all questions; the other functions answer one each, and
`find_copies` says which models of a table of scores look like one.

>>> from cloneproof import boards
>>> round(boards.private_selection(variants=27, votes=2000).inflation, 1)    # Elo points that selection adds
15.5
"""

from cloneproof.boards.advice import BoardAdvice, recommend_board
from cloneproof.boards.board import Battles, Board, Scores
from cloneproof.boards.copies import BoardCopies, find_copies
from cloneproof.boards.earned import Competition, Earned, earned, study_competition
from cloneproof.boards.entrants import EntrantGain, variants_among_entrants
from cloneproof.boards.inflation import PrivateSelection, VariantInflation, private_selection, variant_inflation
from cloneproof.boards.listing import (
    BestListing,
    ByListing,
    EloListing,
    FreshChampion,
    MeanListing,
    NamedFlagships,
    Panel,
    Provisional,
    ReservoirBoard,
    SelfRanked,
)
from cloneproof.boards.rating import bradley_terry, deviation_ratings, rate
from cloneproof.boards.reading import read_board, read_scores, read_submissions
from cloneproof.boards.rules import DeviationListing, RuleRow, listing_rule
from cloneproof.boards.study import BoardStudy, study_board
from cloneproof.boards.variants import Standing, VariantGain

__all__ = [
    "Battles", "BestListing", "Board", "BoardAdvice", "BoardCopies", "BoardStudy", "ByListing", "Competition",
    "DeviationListing", "Earned", "EloListing", "EntrantGain", "FreshChampion", "MeanListing", "NamedFlagships",
    "Panel", "PrivateSelection", "Provisional", "ReservoirBoard", "RuleRow", "Scores", "SelfRanked", "Standing",
    "VariantGain", "VariantInflation", "bradley_terry", "deviation_ratings", "earned", "find_copies", "listing_rule",
    "private_selection", "rate", "read_board", "read_scores", "read_submissions", "recommend_board", "study_board",
    "study_competition", "variant_inflation", "variants_among_entrants",
]  # fmt: skip
