"""Private selection: what testing N variants in private and listing the best adds to a listed score.

For N equally strong variants with v votes each, the listed score is the best of N measurements and too high by E[max of
N] standard errors. Pooling with F fresh votes reduces this to v / (v + F) of it. Counts are taken as normal, which is
within 1 % from 200 votes on (a test compares with binomial counts); near win rates of one half a standard error is ELO
/ sqrt(v / 4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from cloneproof._checks import count, number_in
from cloneproof._tables import fields_of
from cloneproof.boards.board import ELO, Board
from cloneproof.errors import BoardError

STEP = 1e-3
LIMIT = 9.0


@dataclass(frozen=True)
class PrivateSelection:
    """The best of `variants` private variants, listed after `votes` votes each."""

    variants: int
    votes: int
    inflation: float
    """Expected Elo points by which the listed score is too high."""
    explained: float | None = None
    """The chance that selection alone lifts a score by the lead that was asked about."""

    def fresh_votes(self, points: float) -> int:
        """Fresh votes that, pooled with the old ones, bring the inflation down to so many Elo points."""
        number_in(points, "the Elo points that may be left", 0, error=BoardError, low_open=True)
        return max(0, math.ceil(self.votes * (self.inflation / points - 1)))

    def to_dict(self) -> dict[str, object]:
        fresh = {str(points): self.fresh_votes(points) for points in (1, 2, 5)}
        return fields_of(self, "variants", "votes", "inflation", "explained") | {"fresh_votes": fresh}


def private_selection(variants: int, votes: int, lead: float | None = None) -> PrivateSelection:
    """What the best of so many private variants gains, and the chance that this alone explains a lead.

    >>> round(private_selection(27, 2000).inflation, 1)      # 27 variants, 2,000 votes each
    15.5
    """
    variants = count(variants, "variants", error=BoardError)
    votes = count(votes, "votes", error=BoardError)
    error = 2 * ELO / math.sqrt(votes)  # of one measured rating, near a win rate of one half
    explained = None if lead is None else -math.expm1(variants * float(log_ndtr(lead / error)))
    return PrivateSelection(variants, votes, expected_maximum(variants) * error, explained)


def expected_maximum(variants: int) -> float:
    """The expected largest of so many standard normal numbers: the integral of x N phi(x) Phi(x)^(N - 1).

    >>> round(expected_maximum(2), 6)      # 1 / sqrt(pi)
    0.56419
    """
    grid = np.arange(-LIMIT, LIMIT + STEP, STEP)
    density = variants * np.exp(-(grid**2) / 2 + (variants - 1) * log_ndtr(grid)) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(grid * density, dx=STEP))


def lead_of(board: Board, producer: str) -> float:
    """By how many Elo points a producer's best model leads the best of all others (negative: trails)."""
    own = board.ratings[board.models_of(producer)[0]]
    others = [rating for rating, name in zip(board.ratings, board.producers, strict=True) if name != producer]
    if not others:
        raise BoardError("expected two producers or more, got one; a lead is a lead over somebody")
    return float(own - max(others))
