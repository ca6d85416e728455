"""Rules of listing by name, and what each of them is worth on a board.

A name is data: ``fresh-votes(2000, over=10)``, ``cap(3)``, ``last-of(1)``. A rule of one's own is a small class, a
`ByListing` with a `name` and a `law`, and is taken wherever a name is.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from cloneproof._lib.clock import check_time
from cloneproof._lib.data import Data
from cloneproof.boards.board import Board
from cloneproof.boards.listing import (
    BestListing,
    ListingRule,
    MeanListing,
    Panel,
    Provisional,
    ReservoirBoard,
)
from cloneproof.boards.variants import MOST_AVERAGED, Standing
from cloneproof.errors import BoardError, brief
from cloneproof.runs.estimate import Estimate

NUMBERS: Final = (2, 5, 20)  # variants that are listed
SPREAD: Final = 10.0  # Elo: standard deviation of the strengths of unequal ones
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
    gain_random: Estimate
    """Ranks gained by 5 copies of a model drawn at random."""
    in_use: bool = False

    @property
    def gain_best(self) -> Estimate:
        """Ranks gained by 5 copies of the best model."""
        return self.identical[1]


def judged(panel: Panel, rule: ListingRule, *, in_use: bool = False, averaged: int = MOST_AVERAGED) -> RuleRow:
    """Return the row of a rule, its gains averaged over so many producers."""
    check_time("comparison of rules")
    battles = float(np.mean([rule.battles(len(models)) for models in panel.models.values()]))
    least = getattr(rule, "tests", getattr(rule, "votes", 0))  # battles by which listings are compared
    standing, owners = Standing(panel.fine(least), rule), len(panel.models)
    same, unequal = (
        tuple(standing.average_rank_gain("best", number, spread, averaged) for number in NUMBERS)
        for spread in (0, SPREAD)
    )
    random = standing.average_rank_gain("random", NUMBERS[1], most=averaged)
    pairs = owners * (owners - 1) // 2
    return RuleRow(rule, standing.wrong_pairs(), pairs, battles, same, unequal, random, in_use)


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
        "reservoir": lambda slots=None, tests=1, fresh=0, weight=1: (
            tuned() if slots is None else ReservoirBoard(slots, tests, fresh, weight, balanced)
        ),
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
