"""Advice for a leaderboard: a reservoir board tuned to put the fewest producers in the wrong order.

Any slots, tests and weight are clone-proof; they affect only the accuracy. A search over them minimises
the number of wrong pairs, taking the ratings that were read as the truth. The rules that it is compared with have the
same battles in total and the same opponents, and those that divide their battles in two are tuned in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat, takewhile
from typing import Final

import numpy as np

from cloneproof._lib.checks import count
from cloneproof._lib.clock import check_time
from cloneproof._lib.data import Data
from cloneproof.boards.board import Board, one_thread
from cloneproof.boards.listing import (
    BestListing,
    ListingRule,
    Panel,
    Provisional,
    ReservoirBoard,
)
from cloneproof.boards.variants import FEW_AVERAGED, MOST_AVERAGED, RuleRow, Standing, judged, listing_rule, signed
from cloneproof.errors import BoardError
from cloneproof.mechanisms.pattern_search import PatternSearch

PARTS: Final = 20  # the share of the battles that tests get is a multiple of one part in this many
STRIDES: Final = (6, 2, 1)  # of the search for parameters, in rungs of their ladders
SHOWN: Final = 5  # variants in the comparison of rules
NAMES: Final = ("fresh-votes(2000, over=10)", "last-of(1)", "mean-of", "cap(3)")
SAME: Final = 1.02  # factor of the battles up to which rules have as many


@dataclass(frozen=True)
class BoardAdvice(Data):
    """Recommended rule and the usual ones, all with the same total number of battles and the same opponents."""

    keys_of_data = (
        "slots=rule.slots", "tests=rule.tests", "fresh=rule.fresh", "weight=rule.weight", "balanced=rule.balanced",
        "battles", "pairs", "opponents", "missed", "promise", "price", "rules=rows",
    )  # fmt: skip

    rule: ReservoirBoard
    rows: tuple[RuleRow, ...]
    battles: int
    """Battles a producer."""
    pairs: int
    opponents: str
    """Opponents of every slot and every listing."""
    missed: float
    """Chance that no slot holds a producer's best model, for the producer for whom it is largest."""
    averaged: int = MOST_AVERAGED
    """Producers, evenly spaced ones of more, over whom gains are averaged."""

    @property
    def promise(self) -> str:
        """Statement that is proven of the recommended rule."""
        start = "If Bradley-Terry holds, no" if self.rule.balanced else "No"
        return (
            f"{start} copies and no withholding raise a producer's expected prize, whatever the others do, as long "
            "as it does not know which of its models is better. Who knows gains no more by copies of the best one than "
            "by listing it alone. A variant that is stronger or weaker than its model is no copy but a new model, and "
            "may raise the prize."
        )

    @property
    def price(self) -> str:
        """Cost of the proof, against the most accurate rule without one that leaves no more to gain.

        Rules that take the producers' word for their models are not meant.
        """
        ours = next(row for row in self.rows if row.rule.proven)
        others = [row for row in self.rows if not row.rule.proven and not row.rule.trusting]
        others = [row for row in others if row.battles <= SAME * ours.battles]
        rivals = [row for row in others if row.gain_best.value <= ours.gain_best.value]
        missed = (
            f" Slots are draws: a producer's best model may be in none of them, with a chance of up to "
            f"{self.missed:.2f}."
        )
        text = missed if self.missed > 0 else ""
        best = min(rivals, key=lambda row: row.wrong_pairs.value, default=ours)
        dearer = ours.wrong_pairs.value - best.wrong_pairs.value
        if dearer <= 0:
            return f"The proof costs nothing here: no rule that leaves as little to gain is more accurate.{text}"
        return (
            f"The proof costs {dearer:.1f} wrong pairs of {self.pairs:,}: {ours.wrong_pairs.value:.1f} against "
            f'{best.wrong_pairs.value:.1f} with the rule "{best.rule.name}", same battles and opponents.{text} Five '
            f"copies of a best model that its producer knows gain {signed(ours.gain_best.value)} ranks against "
            f"{signed(best.gain_best.value)}, of a random one {signed(ours.gain_random.value)} against "
            f"{signed(best.gain_random.value)}. These are averages on this board: without a proof copies or "
            "withholding can pay elsewhere. The proof is worth it where producers can list many models and do not know "
            "the best."
        )


@one_thread
def recommend_board(
    board: Board,
    *,
    battles: int | None = None,
    balanced: bool | None = None,
    listing: str | ListingRule = "best-of",
    thorough: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> BoardAdvice:
    """Tune a reservoir board to a number of battles per producer (default: the board's traffic) and compare rules.

    `listing` is the rule in use, by name or a rule of one's own, which is marked in the comparison. Unless `thorough`,
    gains are averaged over fewer producers of a large board.
    """
    panel = Panel(board)
    some = panel.part()
    producers, models = len(board.names), len(board.models)
    if producers < 2:
        raise BoardError(f"expected two producers or more, got {producers}; say who made which model with owners=")
    own = battles or max(100, board.typical_votes() * models // producers)
    budget = count(own, "battles a producer", 20, error=BoardError)
    turns = board.means is None if balanced is None else balanced
    votes = max(1, budget * producers // models)
    most = max(len(own) for own in panel.models.values())

    def provisional(share: int) -> Provisional:
        tests = max(1, votes * share // PARTS)
        return Provisional(tests, max(1, budget - models * tests // producers), turns)

    def reservoir(slots: int, share: int, weight: int) -> ReservoirBoard:
        tests = max(1, budget * share // PARTS // slots)
        return ReservoirBoard(slots, tests, max(1, budget - slots * tests), weight, turns)

    def wrong(rule: ListingRule, tests: int) -> float:
        check_time("search for the best board")
        return Standing(some.coarse(tests), rule).wrong_pairs().value

    parts = range(1, PARTS)
    ours = reservoir(*_best(
        lambda slots, share, weight: wrong(reservoir(slots, share, weight), reservoir(slots, share, weight).tests),
        (_ladder(1, budget // 2), parts, [0, *_ladder(1, budget)]), (2 * most, PARTS // 2, 2),
    ))  # fmt: skip
    averaged = MOST_AVERAGED if thorough else FEW_AVERAGED
    rules: list[ListingRule] = [
        BestListing(votes, balanced=turns),
        provisional(*_best(lambda share: wrong(provisional(share), provisional(share).votes), (parts,), (PARTS // 2,))),
        *(listing_rule(name, board, votes, balanced=turns) for name in NAMES),
        ours,
    ]
    used = listing_rule(listing, board, votes, balanced=turns)
    rules = rules if used.name in [rule.name for rule in rules] else [used, *rules]
    rows = []
    for done, rule in enumerate(rules):
        rows.append(judged(panel, rule, in_use=rule.name == used.name, averaged=averaged))
        if progress is not None:
            progress(done + 1, len(rules))
    missed = (1 - 1 / most) ** ours.slots
    pairs, opponents = producers * (producers - 1) // 2, _opponents(board, panel, turns)
    return BoardAdvice(ours, tuple(rows), budget, pairs, opponents, missed, averaged)


def _opponents(board: Board, panel: Panel, turns: bool) -> str:
    """Describe the opponents of every slot."""
    number = panel.chances.shape[1]
    if number == 1:
        return "the reference"
    which = f"the {number:,} models that were on this board when it was read"
    return f"{which}, in turns" if turns else f"{which}, drawn at random"


def _ladder(first: int, last: int) -> list[int]:
    """Return whole numbers from the first to the last at most, each about a tenth more than the one before.

    >>> _ladder(10, 20)
    [10, 11, 12, 13, 14, 15, 16, 18, 20]
    """
    steps = accumulate(repeat(first), lambda number, _: max(number + 1, round(1.1 * number)))
    return list(takewhile(lambda number: number <= last, steps))


def _best(cost: Callable[..., float], ladders: Sequence[Sequence[int]], start: Sequence[int]) -> list[int]:
    """Return the rungs of least cost: up or down one ladder at a time, in ever smaller strides, until no step helps."""
    search = PatternSearch[tuple[int, ...]](
        lambda places: cost(*(ladder[place] for ladder, place in zip(ladders, places, strict=True)))
    )

    def near(here: tuple[int, ...], stride: int) -> list[tuple[int, ...]]:
        moved = []
        for axis, ladder in enumerate(ladders):
            for place in (here[axis] - stride, here[axis] + stride):
                moved.append((*here[:axis], place, *here[axis + 1 :]) if 0 <= place < len(ladder) else here)
        return moved

    here = tuple(int(np.searchsorted(ladder[:-1], first)) for ladder, first in zip(ladders, start, strict=True))
    best = search.descend(here, near, STRIDES)
    return [ladder[place] for ladder, place in zip(ladders, best, strict=True)]
