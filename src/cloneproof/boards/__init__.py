"""Leaderboards: whether submitting variants pays, and what stops it.

In the paper's terms a producer is an agent, a distinct model an original, an equally strong variant a copy and a battle
a reward.
`read_board` reads battles or a table; `study_board` answers all questions; the other functions answer one each.

>>> from cloneproof import boards
>>> round(boards.private_selection(variants=27, votes=2000).inflation, 1)    # Elo points that selection adds
15.5
"""

from cloneproof.boards.advice import BoardAdvice, recommend_board
from cloneproof.boards.board import Battles, Board
from cloneproof.boards.entrants import EntrantGain, variants_among_entrants
from cloneproof.boards.inflation import PrivateSelection, VariantInflation, private_selection, variant_inflation
from cloneproof.boards.listing import (
    BestListing,
    FreshChampion,
    NamedFlagships,
    Panel,
    Provisional,
    ReservoirBoard,
    SelfRanked,
)
from cloneproof.boards.rating import bradley_terry, rate
from cloneproof.boards.reading import read_board
from cloneproof.boards.study import BoardStudy, study_board
from cloneproof.boards.variants import Standing, VariantGain

__all__ = [
    "Battles", "BestListing", "Board", "BoardAdvice", "BoardStudy", "EntrantGain", "FreshChampion",
    "NamedFlagships", "Panel", "PrivateSelection", "Provisional", "ReservoirBoard", "SelfRanked", "Standing",
    "VariantGain", "VariantInflation", "bradley_terry", "private_selection", "rate", "read_board",
    "recommend_board", "study_board", "variant_inflation", "variants_among_entrants",
]  # fmt: skip
