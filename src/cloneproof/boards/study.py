"""Study one board: what variants would have gained each producer and add to a score, and what to run.

What near-equal entries of one owner earn it now: the best of several measurements is higher than one of them.

Entries of a group have strengths about a common mean, and each was measured with an error. How much the strengths
themselves differ is what the spread of the measurements leaves beyond these errors (often nothing). From strengths that
fit, measurements are drawn anew: the score and the rank of the best of the group, and of one of them, whichever. What
lies between is luck of selection and, where strengths differ, the lead of the best.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final

import numpy as np
from scipy.special import ndtr

from cloneproof._lib.checks import count, number_in
from cloneproof._lib.clock import check_time
from cloneproof._lib.data import Data, fields_of
from cloneproof._lib.findings import NamedFinding, WithFindings
from cloneproof.boards.advice import SHOWN, BoardAdvice, recommend_board
from cloneproof.boards.board import Board, Floats, one_thread
from cloneproof.boards.listing import ListingRule, Panel
from cloneproof.boards.variants import COPIED, Standing, VariantGain, VariantInflation, listing_rule, variant_inflation
from cloneproof.errors import BoardError, OutOfTimeError
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.sampler import by_deadline

APART: Final = 2.0  # standard errors of a difference up to which entries are near
MOST_ERROR: Final = 60.0  # Elo: standard error from which on a model is measured too poorly, about 34 even battles
NEAR_IF_EQUAL: Final = 0.954  # chance that two equal entries are so near
DRAWS: Final = 200  # strengths that fit, and of each as many measurements
GRID: Final = 500
SEED: Final = 11


@dataclass(frozen=True)
class Earned(Data):
    """One owner's group of entries: scores and expected ranks with 95 % intervals, of their best and of one alone."""

    keys_of_data = ("owner", "entries", "score", "alone", "rank", "rank_alone", "points", "ranks")

    owner: str
    entries: tuple[str, ...]
    score: Estimate
    alone: Estimate
    rank: Estimate
    rank_alone: Estimate
    points: Estimate
    """Score of the best less that of one alone."""
    ranks: Estimate
    """Ranks that the best stands above one alone."""

    @property
    def about(self) -> tuple[str, ...]:
        """What a finding is about: its owner and the entries."""
        return self.owner, *self.entries


def earned(board: Board) -> tuple[Earned, ...]:
    """Return what each owner's models near its best in strength earn it, the largest first.

    Models with a few dozen battles or less are left out: their ratings are not yet normal about their strengths.
    """
    near = {}
    for name in board.names:
        own = board.models_of(name)
        measured = own[(board.errors[own] > 0) & (board.errors[own] <= MOST_ERROR)]
        first = measured[:1] if len(measured) else own[:1]
        apart = (board.ratings[first] - board.ratings[measured]) / np.hypot(board.errors[first], board.errors[measured])
        near[name] = measured[apart <= APART] if len(measured) else first
    return of_groups(board.models, board.ratings, board.errors, near)


def gained_ranks(rows: Sequence[Earned]) -> tuple[NamedFinding, ...]:
    """Return the findings: groups whose best stands above one of them alone, beyond the error."""
    return tuple(NamedFinding("near-equal", row.about) for row in rows if row.ranks.low > 0)


def of_groups(
    names: Sequence[str], values: Floats, errors: Floats, groups: Mapping[str, np.ndarray]
) -> tuple[Earned, ...]:
    """Return what groups of entries earn their owners where the best counts; groups of one are rivals only."""
    best = np.array([own[values[own].argmax()] for own in groups.values()])
    earnings = []
    for place, (owner, own) in enumerate(groups.items()):
        if len(own) < 2:
            continue
        check_time("worth of variants")
        with_all, alone = _measured(values[own], np.maximum(errors[own], 1e-9), np.random.default_rng((SEED, place)))
        others = np.delete(best, place)
        grid = np.linspace(alone.min(), with_all.max(), GRID)  # of scores, at which the expected rank is computed
        above = ndtr((values[others] - grid[:, None]) / np.maximum(errors[others], 1e-9)).sum(axis=1)
        points = [drawn.mean(axis=1) for drawn in (with_all, alone)]
        ranks = [1 + np.interp(drawn, grid, above).mean(axis=1) for drawn in (with_all, alone)]
        entries = tuple(names[i] for i in own)
        rows = (*points, *ranks, points[0] - points[1], ranks[1] - ranks[0])
        earnings.append(Earned(owner, entries, *map(_interval, rows)))
    return tuple(sorted(earnings, key=lambda row: -row.ranks.value))


def _measured(values: Floats, errors: Floats, dice: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw measurements of the best entry, and of any one: a row for each set of strengths that fits."""
    size = len(values)
    spread = values.var(ddof=1) * (size - 1) / dice.chisquare(size - 1, DRAWS)
    between = np.maximum(spread - (errors**2).mean(), 0)[:, None]
    weights = 1 / (between + errors**2)
    mean = (weights * values).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
    mean = mean + dice.normal(size=(DRAWS, 1)) / np.sqrt(weights.sum(axis=1, keepdims=True))
    kept = between * weights
    strengths = mean + kept * (values - mean) + np.sqrt(kept) * errors * dice.normal(size=(DRAWS, size))
    drawn = strengths[:, None] + errors * dice.normal(size=(DRAWS, DRAWS, size))
    one = dice.integers(size, size=(DRAWS, DRAWS, 1))
    return drawn.max(axis=2), np.take_along_axis(drawn, one, axis=2)[..., 0]


def _interval(values: Floats) -> Estimate:
    low, high = np.quantile(values, [0.025, 0.975])
    return Estimate(
        float(values.mean()), float(high - low) / 2, "posterior", f"{DRAWS} sets of strengths, 95 %", level=0.95
    )


StudyProgress = Callable[[int, int, str], None]
VARIANTS: Final = (1, 2, SHOWN, 10)  # further listings whose gains are computed
TOP: Final = 10  # producers whose gains are computed for every number of variants
ENOUGH: Final = 0.01  # ranks; a smaller gain counts as none
UNEQUAL: Final = (SHOWN, 20)  # variants of unequal strengths
SPREADS: Final = (0, 2, 5, 10, 20)  # Elo: standard deviations of their strengths


@dataclass(frozen=True)
class BoardStudy(WithFindings):
    """Result of `cloneproof board`, with `to_dict()` for its `--json`."""

    said_in = "board"
    board: Board
    producers: tuple[str, ...]
    votes: int
    """Votes a model, the median of the board's."""
    gains: tuple[VariantGain, ...]
    """On a fixed panel, by the rule in use."""
    inflation: tuple[VariantInflation, ...]
    """What variants of unequal strength add to a score, here and on the recommended board."""
    advice: BoardAdvice | None
    left: tuple[str, ...]
    """Questions for which there was no time."""
    seconds: float
    earned: tuple[Earned, ...] = ()
    """What near-equal models earn their producers now, the most first."""
    listing: str = "best-of"
    """The rule in use."""

    @property
    def named(self) -> tuple[NamedFinding, ...]:
        """The rule if variants gain by it, and what near-equal models earn now."""
        rule = [NamedFinding("rule", (self.listing,))] if self.verdict == "exploitable" else []
        return (*rule, *gained_ranks(self.earned))

    @property
    def verdict(self) -> str:
        """Whether variants pay on this board as it is: exploitable, or undecided if no gain was seen."""
        return "exploitable" if any(gain.ranks.low > ENOUGH for gain in self.gains) else "undecided"

    @property
    def worst(self) -> VariantGain | None:
        """Largest gain in ranks; None if there was no time for any."""
        return max(self.gains, key=lambda gain: gain.ranks.value, default=None)

    @property
    def caveat(self) -> str:
        """Caveat to read before anything else; empty if there is none."""
        if self.board.unowned:
            return "No producers were named, so every model is taken for its own producer."
        return ""

    def to_dict(self) -> dict[str, object]:
        board = self.board
        models = zip(board.models, board.producers, board.ratings, board.errors, board.votes, strict=True)
        return {
            "verdict": self.verdict, "caveat": self.caveat, "left": list(self.left), "findings": self.finding_rows,
            "source": board.source, "votes": self.votes, "notes": list(board.notes),
            "models": [
                {"model": model, "producer": maker, "rating": float(rating), "error": float(error), "votes": int(votes)}
                for model, maker, rating, error, votes in models
            ],
            **fields_of(self, "gains", "inflation", "advice", "earned", "listing"),
        }  # fmt: skip


@one_thread
def study_board(
    board: Board,
    *,
    producer: str | None = None,
    votes: int | None = None,
    recommend: bool = True,
    listing: str | ListingRule = "best-of",
    seed: int = 0,
    seconds: float | None = None,
    progress: StudyProgress | None = None,
) -> BoardStudy:
    """Study what variants would have paid on this board, and what to run instead.

    Parameters
    ----------
    board : Board
        As `read_board` returns it.
    producer : str, optional
        Only this one; default: all of them.
    votes : int, optional
        Votes a model; default: the median of what the board's are worth.
    recommend : bool
        Whether to tune a reservoir board and compare the rules.
    listing : str or rule
        The rule in use, such as "cap(3)" (`boards.listing_rule`), or a rule of one's own.
    seed : int
        Of what unequal variants add to a score.
    seconds : float, optional
        Leave the questions that are open after this time; default: answer all.
    progress : callable, optional
        Called with steps done, steps in all, and what is done now.
    """
    if seconds is not None:
        number_in(seconds, "seconds", 0, error=BoardError)
    deadline = Deadline(seconds, progress)
    if len(board.names) < 2:
        raise BoardError("expected two producers or more, got one; say who made which model with owners=")
    names = board.names if producer is None else (board.producers[board.models_of(producer)[0]],)
    per_model = count(votes or max(10, board.typical_votes()), "votes", error=BoardError)
    steps = len(names) + bool(recommend)
    used = listing_rule(listing, board, per_model)
    gains: list[VariantGain] = []
    inflation: list[VariantInflation] = []
    left: list[str] = []
    worth: tuple[Earned, ...] = ()
    advice = None
    with deadline.for_engines():
        with _question(left, "what near-equal models earn now"):
            worth = earned(board)
        with _question(left, "what variants gain {} of the producers", names, gains):
            standing = by_deadline(lambda: Standing(Panel(board).fine(per_model), used))
            for done, name in enumerate(names):
                deadline.tell(done, steps, "variants on a fixed panel")
                kinds = COPIED if name in names[:TOP] else COPIED[:1]
                numbers = VARIANTS if name in names[:TOP] else (SHOWN,)
                gains += [standing.gain(name, copied, number) for copied in kinds for number in numbers]
        with _question(left, "what to run instead"):
            if recommend:
                deadline.tell(len(names), steps, "tuning a reservoir board")
                tuned = partial(
                    recommend_board, board, battles=max(20, per_model * len(board.models) // len(board.names)),
                    listing=listing, thorough=False,
                    progress=lambda done, of: deadline.tell(len(names), steps, f"rule {done} of {of}"),
                )  # fmt: skip
                advice = by_deadline(tuned)
        with _question(left, "what unequal variants add to a score"):
            for ours, number, spread in product([advice.rule] if advice else [], UNEQUAL, SPREADS):
                check_time("simulation of unequal variants")
                inflation.append(variant_inflation(ours, per_model, number, spread, seed=seed))
    return BoardStudy(
        board, names, per_model, tuple(gains), tuple(inflation), advice, tuple(left), deadline.seconds, worth, used.name
    )


@contextmanager
def _question(
    left: list[str], what: str, names: Sequence[str] = (), gains: Sequence[VariantGain] = ()
) -> Iterator[None]:
    """Note a question for which there is no time; `{}` stands for the number of names without gains."""
    try:
        yield
    except OutOfTimeError:
        left.append(what.format(len(names) - len({gain.producer for gain in gains})))
