"""Rules of listing by name, and what each of them is worth on a board.

A name is data: ``fresh-votes(2000, over=10)``, ``cap(3)``, ``last-of(1)``. A rule of one's own is a small class, a
`ByListing` with a `name` and a `law`, and is taken wherever a name is.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from scipy.special import ndtri

from cloneproof._clock import check_time
from cloneproof._data import Data
from cloneproof.boards.board import Board, simulated_mean, win_chance, wrong_pairs
from cloneproof.boards.listing import (
    BestListing,
    ByListing,
    EloListing,
    ListingRule,
    MeanListing,
    NamedFlagships,
    Panel,
    Provisional,
    ReservoirBoard,
    SelfRanked,
)
from cloneproof.boards.rating import battle_payoffs, deviation_ratings
from cloneproof.boards.variants import MOST_AVERAGED, Standing
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import BoardError, brief
from cloneproof.laws.counts import CountLaw

NUMBERS: Final = (2, 5, 20)  # variants that are listed
SPREAD: Final = 10.0  # Elo: standard deviation of the strengths of unequal ones
RUNS: Final = 20  # boards that are drawn for a rule without laws of counts
MOST_RATED: Final = 30  # models on them
SLOTS: Final = 15  # of a reservoir that is not tuned; half of its battles are tests


@dataclass(frozen=True)
class RuleRow(Data):
    """One rule on this board: its accuracy, what variants gain under it on average, and the votes that it takes."""

    keys_of_data = (
        "rule=rule.name", "proven=rule.proven", "in_use", "wrong_pairs", "pairs", "battles", "identical", "unequal",
        "gain_best", "gain_random",
    )  # fmt: skip

    rule: ListingRule
    wrong_pairs: Estimate
    pairs: int
    """Pairs of producers, of which so many are in the wrong order, everybody honest."""
    battles: float
    """Battles a producer, everybody honest."""
    identical: tuple[Estimate, ...]
    """Ranks gained by 2, 5 and 20 copies of the best model."""
    unequal: tuple[Estimate, ...]
    """The same of variants whose strengths differ by 10 Elo (standard deviation)."""
    gain_random: Estimate | None = None
    """Ranks gained by 5 copies of a model drawn at random, where that was computed."""
    in_use: bool = False

    @property
    def gain_best(self) -> Estimate:
        """Ranks gained by 5 copies of the best model."""
        return self.identical[1]


def judged(panel: Panel, rule: ListingRule, *, in_use: bool = False, averaged: int = MOST_AVERAGED) -> RuleRow:
    """Return the row of a rule, its gains averaged over so many producers."""
    check_time("comparison of rules")
    battles = float(np.mean([rule.battles(len(models)) for models in panel.models.values()]))
    if isinstance(rule, DeviationListing):
        return _simulated(panel.board, rule, battles, in_use)
    least = getattr(rule, "tests", getattr(rule, "votes", 0))  # battles by which listings are compared
    standing, owners = Standing(panel.fine(least), rule), len(panel.models)
    same, unequal = (
        tuple(standing.average_rank_gain("best", number, spread, averaged) for number in NUMBERS)
        for spread in (0, SPREAD)
    )
    random = standing.average_rank_gain("random", NUMBERS[1], most=averaged)
    pairs = owners * (owners - 1) // 2
    return RuleRow(rule, standing.wrong_pairs(), pairs, battles, same, unequal, random, in_use)


@dataclass(frozen=True)
class DeviationListing(ByListing):
    """Listings fight each other `votes` battles each; Deviation Ratings; a producer is as good as its best listing.

    Its ratings depend on all battles together, so it has no law of counts: its row is simulated.
    """

    name = "deviation-ratings"

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        raise BoardError(
            "expected a rule with laws of counts, got deviation-ratings; the table of rules has it in any case, so "
            "give the rule in use"
        )


def _simulated(board: Board, rule: DeviationListing, battles: float, in_use: bool) -> RuleRow:
    """Return the row of Deviation Ratings by boards that are drawn, with 99 % intervals; each has one deviating owner.

    A large board is represented by the best models of some producers.
    """
    small = sample_board(board, MOST_RATED)
    owners = np.array([small.names.index(maker) for maker in small.producers])
    truth = np.array([small.ratings[small.models_of(name)[0]] for name in small.names])
    rows, most = [], max(NUMBERS)
    for run in range(RUNS):
        check_time("simulation of Deviation Ratings")
        dice = np.random.default_rng(run)
        own = int(dice.integers(len(truth)))
        steps = {number: ndtri((np.arange(number) + 0.5) / number) for number in NUMBERS}
        kinds = [np.zeros(most), *(SPREAD * step / step.std() for step in steps.values())]
        strengths = np.concatenate([small.ratings, *(truth[own] + kind for kind in kinds)])
        wins = dice.poisson(rule.votes / (len(small.models) - 1) * win_chance(strengths[:, None] - strengths))
        starts = len(small.models) + np.cumsum([0, *map(len, kinds)])
        lists = [range(starts[0], starts[0] + number) for number in (0, *NUMBERS)]
        lists += [range(start, start + number) for start, number in zip(starts[1:], NUMBERS, strict=False)]
        ranks, wrong = [], 0.0
        for listed in lists:
            kept = [*range(len(small.models)), *listed]
            rated = deviation_ratings(battle_payoffs(wins[np.ix_(kept, kept)].astype(float))).round(9)
            scores = np.full(len(truth), -np.inf)
            np.maximum.at(scores, [*owners, *[own] * len(listed)], rated)
            ranks.append((scores > scores[own]).sum() + (scores == scores[own]).sum() / 2)
            if not listed:
                wrong = wrong_pairs(scores, truth)
        rows.append([wrong, *(ranks[0] - rank for rank in ranks[1:])])
    estimates = [simulated_mean(column, f"{len(rows)} boards that were drawn") for column in np.array(rows).T]
    pairs = len(truth) * (len(truth) - 1) // 2
    return RuleRow(rule, estimates[0], pairs, battles, tuple(estimates[1:4]), tuple(estimates[4:]), None, in_use)


def sample_board(board: Board, most: int) -> Board:
    """Return a board of at most so many models: the best of each producer, of some evenly spaced ones if need be."""
    if len(board.models) <= most:
        return board
    sizes = [len(board.models_of(name)) for name in board.names]
    best = max((k for k in range(1, most + 1) if sum(min(size, k) for size in sizes) <= most), default=1)
    names = board.names[:: -(-len(board.names) // most)]
    return board.subset(sorted(int(i) for name in names for i in board.models_of(name)[:best]))


def listing_rule(rule: str | ListingRule, board: Board, votes: int, *, balanced: bool = False) -> ListingRule:
    """Return the rule of a name such as "cap(3)" on a board with so many votes a model; a rule is returned as it is.

    >>> board = Board(("a", "b"), ("a", "b"), np.zeros(2), np.ones(2), np.ones(2, dtype=np.int64), "ratings")
    >>> listing_rule("fresh-votes(2000, over=10)", board, 500)
    Provisional(votes=500, fresh=2000, balanced=False, over=10)
    """
    if not isinstance(rule, str):
        return rule
    own = max(4, votes * len(board.models) // len(board.names))
    tuned = partial(ReservoirBoard, SLOTS, max(1, own // 2 // SLOTS), max(1, own // 2), 1, balanced)
    rules: dict[str, Callable[..., ListingRule]] = {
        "best-of": lambda k=None: BestListing(votes, balanced=balanced, most=k),
        "cap": lambda n: BestListing(votes, balanced=balanced, most=n, cap=True),
        "last-of": lambda k=1: MeanListing(votes, balanced=balanced, last=k),
        "mean-of": lambda: MeanListing(votes, balanced=balanced),
        "fresh-votes": lambda fresh, over=0: Provisional(votes, fresh, balanced, over),
        "you-rank-we-rank": lambda noise=0.0: SelfRanked(votes, noise, balanced=balanced),
        "one-flagship": lambda noise=0.0, share=1.0: NamedFlagships(tuned(), noise, share),
        "reservoir": lambda slots=None, tests=1, fresh=0, weight=1: (
            tuned() if slots is None else ReservoirBoard(slots, tests, fresh, weight, balanced)
        ),
        "elo": lambda step=4.0: EloListing(votes, step, balanced=balanced),
        "deviation-ratings": lambda: DeviationListing(votes, balanced=balanced),
    }
    name, given, named = _parsed(rule)
    if name not in rules:
        raise BoardError(f"expected a rule of listing ({', '.join(rules)}), got {brief(rule)}; choose one of them")
    try:
        inspect.signature(rules[name]).bind(*given, **named)
    except TypeError:
        wanted = str(inspect.signature(rules[name]))
        raise BoardError(f"expected {name}{wanted}, got {brief(rule)}; correct what stands in brackets") from None
    return rules[name](*given, **named)


def _parsed(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the name, the arguments and the named arguments of "name(1, key=2)"."""
    name, bracket, inside = text.strip().partition("(")
    try:
        call = ast.parse(f"rule({inside}" if bracket else "rule()", mode="eval").body
        if not isinstance(call, ast.Call):
            raise ValueError
        named = {str(argument.arg): ast.literal_eval(argument.value) for argument in call.keywords}
        return name.strip().lower(), [ast.literal_eval(argument) for argument in call.args], named
    except (SyntaxError, ValueError):
        raise BoardError(
            f"expected a rule such as cap(3) or mean-of, got {brief(text)}; write numbers in brackets"
        ) from None
