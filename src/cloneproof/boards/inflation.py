"""What variants of one model add to its published score: the best of private tests, and listings of unequal strength.

*Private selection.* For N equally strong variants with v votes each, the listed score is the best of N measurements and
too high by E[max of N] standard errors. Pooling with F fresh votes reduces this to v / (v + F) of it. Counts are taken
as normal, which is within 1 % from 200 votes on (a test compares with binomial counts); near win rates of one half a
standard error is ELO / sqrt(v / 4).

*Unequal variants.* The model wins half of its battles, against opponents drawn at random. The win rates of its listed
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
from scipy.special import log_ndtr

from cloneproof._checks import count, number_in
from cloneproof._data import Data
from cloneproof.boards.board import ELO, simulated_mean
from cloneproof.boards.laws import best_of
from cloneproof.boards.listing import ReservoirBoard
from cloneproof.bounds import variant_inflation_ceiling
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import BoardError
from cloneproof.laws.counts import binomial_floats

STEP: Final = 1e-3  # of the integral for the expected maximum of normal numbers
LIMIT: Final = 9.0  # its ends, in standard deviations
EVEN: Final = 0.5  # win rate of the model whose variants are listed
POINTS: Final = ELO / (EVEN * (1 - EVEN))  # Elo points in a unit of the win rate, there
MOST_SPREAD: Final = 100.0  # Elo: up to here win rates stay between 0 and 1


@dataclass(frozen=True)
class PrivateSelection(Data):
    """Best of `variants` private variants, listed after `votes` votes each."""

    keys_of_data = ("variants", "votes", "inflation", "explained", "fresh_votes=_fresh_votes")

    variants: int
    votes: int
    inflation: float
    """Expected Elo points by which the listed score is too high."""
    explained: float | None = None
    """Chance that selection alone lifts a score by the lead that was asked about."""

    @property
    def _fresh_votes(self) -> dict[str, int]:
        return {str(points): self.fresh_votes(points) for points in (1, 2, 5)}

    def fresh_votes(self, points: float) -> int:
        """Return how many fresh votes, pooled with the old ones, bring the inflation down to `points` Elo points."""
        number_in(points, "the Elo points that may be left", 0, error=BoardError, low_open=True)
        return max(0, math.ceil(self.votes * (self.inflation / points - 1)))


def private_selection(variants: int, votes: int, lead: float | None = None) -> PrivateSelection:
    """Compute what the best of `variants` private variants gains, and the chance that this alone explains a lead.

    >>> round(private_selection(27, 2000).inflation, 1)      # 27 variants, 2,000 votes each
    15.5
    """
    variants = count(variants, "variants", error=BoardError)
    votes = count(votes, "votes", error=BoardError)
    error = 2 * ELO / math.sqrt(votes)  # of one measured rating, near a win rate of one half
    explained = None if lead is None else -math.expm1(variants * float(log_ndtr(lead / error)))
    return PrivateSelection(variants, votes, expected_maximum(variants) * error, explained)


def expected_maximum(variants: int) -> float:
    """Return the expected largest of `variants` standard normal numbers: the integral of x N phi(x) Phi(x)^(N - 1).

    >>> round(expected_maximum(2), 6)      # 1 / sqrt(pi)
    0.56419
    """
    grid = np.arange(-LIMIT, LIMIT + STEP, STEP)
    density = variants * np.exp(-(grid**2) / 2 + (variants - 1) * log_ndtr(grid)) / math.sqrt(2 * math.pi)
    return float(np.trapezoid(grid * density, dx=STEP))


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
    rule: ReservoirBoard, votes: int, variants: int, spread: float, *, runs: int = 10_000, seed: int = 0
) -> VariantInflation:
    """Simulate what variants of unequal strength add to a score: `votes` a listing if the best counts, and by `rule`.

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
    held = np.take_along_axis(strengths, rng.integers(0, variants, (runs, rule.slots)), axis=1)
    tests = rng.binomial(rule.tests, held)
    champion = held[run, tests.argmax(axis=1)]
    alone, strongest = _expected_score(rule, EVEN), _expected_score(rule, EVEN + reach)
    bound = variant_inflation_ceiling(rule.slots, rule.tests, deviation, EVEN - reach, EVEN + reach)
    published = rule.weight * tests.max(axis=1) + rule.fresh * champion  # fresh battles at their mean
    leads = counts.max(axis=1) / votes - EVEN, leader - EVEN, (published - alone) / rule.scale, champion - EVEN
    usual, listed, reservoir, held_best = (simulated_mean(POINTS * lead, f"{runs:,} runs") for lead in leads)
    ceiling = POINTS * min(bound, (strongest - alone) / rule.scale)
    return VariantInflation(variants, spread, usual, listed, reservoir, held_best, ceiling)


def _expected_score(rule: ReservoirBoard, mean: float) -> float:
    """Return the expected score of a producer with one model."""
    return rule.weight * best_of([binomial_floats(rule.tests, mean)] * rule.slots).mean + rule.fresh * mean
