"""What a leaderboard should run: a reservoir board tuned to put the fewest producers in the wrong order.

Any slots, tests and weight are clone-proof; they affect only the accuracy. A coordinate search minimises the exact
number of wrong pairs, taking the ratings that were read as the truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cloneproof._checks import count
from cloneproof._tables import fields_of, to_data
from cloneproof.boards.board import Board
from cloneproof.boards.listing import (
    BestListing,
    FreshChampion,
    ListingRule,
    Panel,
    Provisional,
    ReservoirBoard,
    SelfRanked,
)
from cloneproof.boards.variants import Standing
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import BoardError

SLOTS: Final = (4, 6, 8, 10, 12, 15, 18, 22, 27, 33, 40)
SHARES: Final = (0.3, 0.4, 0.5, 0.6, 0.7)
WEIGHTS: Final = (0, 1, 2, 3, 4, 6)
NOISES: Final = (0.0, 20.0, 40.0, 80.0)
SHOWN: Final = 5  # variants in the comparison of rules


@dataclass(frozen=True)
class RuleRow:
    """One rule on this board: its accuracy, and what five variants gain under it on average."""

    rule: ListingRule
    wrong_pairs: Estimate
    gain_best: Estimate
    gain_random: Estimate

    def to_dict(self) -> dict[str, object]:
        estimates = fields_of(self, "wrong_pairs", "gain_best", "gain_random")
        return {"rule": self.rule.name, "proven": self.rule.proven, **estimates}


@dataclass(frozen=True)
class BoardAdvice:
    """The recommended rule and the usual ones, all with the same total number of battles."""

    rule: ReservoirBoard
    rows: tuple[RuleRow, ...]
    battles: int
    """Battles a producer."""
    pairs: int

    @property
    def promise(self) -> str:
        """What is proven of the recommended rule."""
        start = "If Bradley-Terry holds, no" if self.rule.balanced else "No"
        return (
            f"{start} variants and no withholding raise a producer's expected prize, whatever the others do, as long "
            "as it does not know which of its models is better."
        )

    def to_dict(self) -> dict[str, object]:
        numbers = fields_of(self.rule, "slots", "tests", "fresh", "weight", "balanced")
        return {**numbers, **fields_of(self, "battles", "pairs", "promise"), "rules": to_data(self.rows)}


def recommend_board(
    board: Board,
    *,
    battles: int | None = None,
    balanced: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> BoardAdvice:
    """Tune a reservoir board to so many battles per producer (default: the board's own traffic) and compare rules."""
    panel = Panel(board)
    producers, models = len(board.names), len(board.models)
    if producers < 2:
        raise BoardError(f"expected two producers or more, got {producers}; say who made which model with owners=")
    each = count(battles or max(100, int(board.votes.sum()) // producers), "battles a producer", 20, error=BoardError)
    turns = board.means is None if balanced is None else balanced
    best = _tuned(Panel(board, quick=True), each, turns)
    votes = max(1, each * producers // models)
    search = 3 * each // 10
    rules: list[ListingRule] = [
        BestListing(votes),
        *(SelfRanked(votes, noise) for noise in NOISES),
        Provisional(max(1, votes * 7 // 10), max(1, each - models * max(1, votes * 7 // 10) // producers)),
        FreshChampion(search, each - search),
        best,
    ]
    rows = []
    for done, rule in enumerate(rules):
        standing = Standing(panel, rule)
        gains = [standing.average_rank_gain(copied, SHOWN) for copied in ("best", "random")]
        rows.append(RuleRow(rule, standing.wrong_pairs(), *gains))
        if progress is not None:
            progress(done + 1, len(rules))
    return BoardAdvice(best, tuple(rows), each, producers * (producers - 1) // 2)


def _tuned(panel: Panel, each: int, balanced: bool) -> ReservoirBoard:
    """Coordinate search over slots, the share of the search, and the weight, until no change helps."""
    known: dict[ReservoirBoard, float] = {}

    def wrong(rule: ReservoirBoard) -> float:
        if rule not in known:
            known[rule] = Standing(panel, rule).wrong_pairs().value
        return known[rule]

    numbers = {"slots": 15, "share": 0.5, "weight": 2}
    while True:
        before = dict(numbers)
        for name, choices in (("slots", SLOTS), ("share", SHARES), ("weight", WEIGHTS)):
            tried = [numbers | {name: choice} for choice in choices]
            numbers = min(tried, key=lambda one: wrong(_rule(one, each, balanced)))
        if numbers == before:
            return _rule(numbers, each, balanced)


def _rule(numbers: dict[str, float], each: int, balanced: bool) -> ReservoirBoard:
    slots = int(numbers["slots"])
    tests = max(1, int(each * numbers["share"]) // slots)
    return ReservoirBoard(slots, tests, max(1, each - slots * tests), int(numbers["weight"]), balanced)
