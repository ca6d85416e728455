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

from cloneproof._checks import count
from cloneproof._clock import check_time
from cloneproof._data import Data
from cloneproof.boards.board import Board
from cloneproof.boards.listing import (
    BestListing,
    FreshChampion,
    ListingRule,
    NamedFlagships,
    Panel,
    Provisional,
    ReservoirBoard,
    SelfRanked,
)
from cloneproof.boards.rating import one_thread
from cloneproof.boards.rules import RuleRow, judged, listing_rule
from cloneproof.boards.variants import FEW_AVERAGED, MOST_AVERAGED, Standing, signed
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import BoardError
from cloneproof.mechanisms.parameters.pattern_search import PatternSearch

PARTS: Final = 20  # the share of the battles that tests get is a multiple of one part in this many
STRIDES: Final = (6, 2, 1)  # of the search for parameters, in rungs of their ladders
NOISES: Final = (0.0, 20.0, 40.0, 80.0)  # standard deviations in Elo of the self-rankings compared,
FEW_NOISES: Final = (0.0, 40.0)  # and these in a quick comparison
NAMED: Final = (1.0, 0.5)  # shares of the draws that producers give to the model that they name
SHOWN: Final = 5  # variants in the comparison of rules
NAMES: Final = ("fresh-votes(2000, over=10)", "last-of(1)", "mean-of", "cap(3)", "elo", "deviation-ratings")
SAME: Final = 1.02  # factor of the battles up to which rules have as many


@dataclass(frozen=True)
class NamingRow:
    """Wrong pairs if producers say which of their models is best, and err by `noise` Elo (standard deviation)."""

    noise: float
    self_ranked: Estimate
    """You-Rank-We-Rank: the listing ranked first counts."""
    named: Estimate
    """The recommended board, every slot holding what its producer named."""
    half_named: Estimate
    """The recommended board, half of the draws going to what the producer named, the rest to its other models."""


@dataclass(frozen=True)
class BoardAdvice(Data):
    """Recommended rule and the usual ones, all with the same total number of battles and the same opponents."""

    keys_of_data = (
        "slots=rule.slots", "tests=rule.tests", "fresh=rule.fresh", "weight=rule.weight", "balanced=rule.balanced",
        "battles", "pairs", "opponents", "missed", "promise", "price", "rules=rows", "naming",
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
    naming: tuple[NamingRow, ...]
    """What the producers' own knowledge is worth to the board, whatever weights they declared."""
    averaged: int = MOST_AVERAGED
    """Producers, evenly spaced ones of more, over whom gains are averaged."""

    @property
    def promise(self) -> str:
        """Statement that is proven of the recommended rule."""
        start = "If Bradley-Terry holds, no" if self.rule.balanced else "No"
        return (
            f"{start} copies and no withholding raise a producer's expected prize, whatever the others do, as long "
            "as it does not know which of its models is better. Who knows may name its flagship, by weights on its "
            "models: for everybody, whatever they know, no list with copies earns more than the best weights on "
            "distinct models. A variant that is stronger or weaker than its model is no copy but a new model, and may "
            "raise the prize."
        )

    @property
    def price(self) -> str:
        """Cost of the proof, against the most accurate rule without one that leaves no more to gain.

        Rules that take the producers' word for their models are not meant.
        """
        ours = next(row for row in self.rows if row.rule.proven)
        others = [row for row in self.rows if not row.rule.proven and not row.rule.trusting]
        others = [row for row in others if row.pairs == self.pairs and row.battles <= SAME * ours.battles]
        rivals = [row for row in others if row.gain_best.value <= ours.gain_best.value and row.gain_random]
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
            f"{signed(best.gain_best.value)}, of a random one {_random(ours)} against {_random(best)}. These are "
            "averages on this board: without a proof copies or "
            "withholding can pay elsewhere. The proof is worth it where producers can list many models and do not know "
            f"the best. If all know it and name it, {self.naming[0].named.value:.1f} pairs are wrong."
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

    def champion(share: int) -> FreshChampion:
        return FreshChampion(budget * share // PARTS, budget - budget * share // PARTS, turns)

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
    ranked = [SelfRanked(votes, noise, balanced=turns) for noise in (NOISES if thorough else FEW_NOISES)]
    averaged = MOST_AVERAGED if thorough else FEW_AVERAGED
    rules: list[ListingRule] = [
        BestListing(votes, balanced=turns),
        *ranked,
        provisional(*_best(lambda share: wrong(provisional(share), provisional(share).votes), (parts,), (PARTS // 2,))),
        champion(*_best(lambda share: wrong(champion(share), champion(share).search // most), (parts,), (PARTS // 2,))),
        *(listing_rule(name, board, votes, balanced=turns) for name in NAMES),
        NamedFlagships(ours),
        ours,
    ]
    used = listing_rule(listing, board, votes, balanced=turns)
    rules = rules if used.name in [rule.name for rule in rules] else [used, *rules]
    rows = []
    for done, rule in enumerate(rules):
        rows.append(judged(panel, rule, in_use=rule.name == used.name, averaged=averaged))
        if progress is not None:
            progress(done + 1, len(rules))
    weights = [board.weights_of(own) for own in panel.models.values()]  # of the best model first
    missed = max(float(1 - odds[0] / odds.sum()) ** ours.slots for odds in weights)
    pairs, opponents = producers * (producers - 1) // 2, _opponents(board, panel, turns)
    by_rule = dict(zip(rules, rows, strict=True))
    naming = tuple(_naming(panel, ours, rule.noise, by_rule[rule].wrong_pairs) for rule in ranked)
    return BoardAdvice(ours, tuple(rows), budget, pairs, opponents, missed, naming, averaged)


def _naming(panel: Panel, ours: ReservoirBoard, noise: float, ranked: Estimate) -> NamingRow:
    """Return the wrong pairs if producers name flagships with this error, beside those of their self-ranking."""
    check_time("comparison of names")
    fine = panel.fine(ours.tests)
    wrong = [Standing(fine, NamedFlagships(ours, noise, share)).wrong_pairs() for share in NAMED]
    return NamingRow(noise, ranked, *wrong)


def _random(row: RuleRow) -> str:
    return "" if row.gain_random is None else signed(row.gain_random.value)


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
