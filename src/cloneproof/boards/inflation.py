"""What listing variants of one model, of unequal strengths, adds to its published score.

The model wins half of its battles, against opponents drawn at random. The win rates of its listed
variants are uniform about one half. Where the best listing counts, its score is too high by the luck of the best and by
its true lead, and the first does not vanish with the spread. On a reservoir board the score exceeds that of the model
listed alone by at most `bounds.variant_inflation_ceiling`, and by no more than if all slots held the strongest variant
that there can be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from cloneproof._lib.checks import count, number_in
from cloneproof.boards.board import ELO, simulated_mean
from cloneproof.boards.laws import best_of
from cloneproof.boards.listing import ReservoirBoard
from cloneproof.bounds import variant_inflation_ceiling
from cloneproof.errors import BoardError
from cloneproof.laws.counts import binomial_floats
from cloneproof.runs.estimate import Estimate

EVEN: Final = 0.5  # win rate of the model whose variants are listed
POINTS: Final = ELO / (EVEN * (1 - EVEN))  # Elo points in a unit of the win rate, there
MOST_SPREAD: Final = 100.0  # Elo: up to here win rates stay between 0 and 1


@dataclass(frozen=True)
class VariantInflation:
    """Elo points that listing variants of one model adds to its producer's score, by simulation, with 99 % intervals.

    All but the ceiling are expected values over strengths, draws and battles.
    """

    variants: int
    spread: float
    """Standard deviation of the variants' strengths, in Elo points near a win rate of one half."""
    usual: Estimate
    """Where the best listing counts."""
    leader: Estimate
    """Lead in true strength of that listing over the model."""
    reservoir: Estimate
    """On the reservoir board, above what the model listed alone is published with."""
    champion: Estimate
    """Lead in true strength of its champion over the model."""
    ceiling: float
    """Proven bound on what such variants, however many, add on the reservoir board."""


def variant_inflation(
    board: ReservoirBoard, votes: int, variants: int, spread: float, *, runs: int = 10_000, seed: int = 0
) -> VariantInflation:
    """Simulate what variants of unequal strength add to a score: `votes` a listing if the best counts, and on `board`.

    >>> found = variant_inflation(ReservoirBoard(15, 169, 1705, 3), 1590, 5, 0, runs=1000)
    >>> found.usual.low > 8, found.reservoir.low < 0 < found.reservoir.high, found.ceiling
    (True, True, 0.0)
    """
    votes, variants = (
        count(value, name, error=BoardError) for value, name in ((votes, "votes"), (variants, "variants"))
    )
    deviation = number_in(spread, "the spread of variants", 0, MOST_SPREAD, BoardError) / POINTS
    runs = count(runs, "runs", least=2, error=BoardError)
    rng, run = np.random.default_rng((seed, variants)), np.arange(runs)
    reach = math.sqrt(3) * deviation  # half the range of uniform numbers with this deviation
    strengths = EVEN + reach * rng.uniform(-1, 1, (runs, variants))
    counts = rng.binomial(votes, strengths)
    leader = strengths[run, counts.argmax(axis=1)]
    held = np.take_along_axis(strengths, rng.integers(0, variants, (runs, board.slots)), axis=1)
    tests = rng.binomial(board.tests, held)
    champion = held[run, tests.argmax(axis=1)]
    alone, strongest = _expected_score(board, EVEN), _expected_score(board, EVEN + reach)
    bound = variant_inflation_ceiling(board.slots, board.tests, deviation, EVEN - reach, EVEN + reach)
    published = board.weight * tests.max(axis=1) + board.fresh * champion  # fresh battles at their mean
    leads = counts.max(axis=1) / votes - EVEN, leader - EVEN, (published - alone) / board.scale, champion - EVEN
    usual, listed, reservoir, held_best = (simulated_mean(POINTS * lead, f"{runs:,} runs") for lead in leads)
    ceiling = POINTS * min(bound, (strongest - alone) / board.scale)
    return VariantInflation(variants, spread, usual, listed, reservoir, held_best, ceiling)


def _expected_score(board: ReservoirBoard, mean: float) -> float:
    """Return the expected score of a producer with one model."""
    return board.weight * best_of([binomial_floats(board.tests, mean)] * board.slots).mean + board.fresh * mean
