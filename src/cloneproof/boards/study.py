"""Study one board: what variants would have gained each producer, private selection, and what to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from cloneproof._checks import count
from cloneproof._tables import fields_of, to_data
from cloneproof.boards.advice import BoardAdvice, recommend_board
from cloneproof.boards.board import Board
from cloneproof.boards.entrants import LISTING, SAMPLING, EntrantGain, variants_among_entrants
from cloneproof.boards.listing import BestListing, Panel
from cloneproof.boards.selection import PrivateSelection, lead_of, private_selection
from cloneproof.boards.variants import COPIED, Standing, VariantGain
from cloneproof.errors import BoardError

StudyProgress = Callable[[int, int, str], None]
VARIANTS = (1, 2, 5, 10)
PRIVATE = (3, 10, 27)  # private variants of one model
TOP = 10  # producers whose gains are listed for every number of variants
ENOUGH = 0.01  # ranks: a gain below that counts as none


@dataclass(frozen=True)
class BoardStudy:
    """What `cloneproof board` says, with `to_dict()` for its `--json`."""

    board: Board
    producers: tuple[str, ...]
    votes: int
    """Votes a model, the median of the board's."""
    gains: tuple[VariantGain, ...]
    """On a fixed panel, where the best listing counts."""
    entrants: tuple[EntrantGain, ...]
    """Where entrants fight each other, for the producer that is studied closest: the best listing by each rule of
    sampling, the board's votes so far included."""
    rules: tuple[EntrantGain, ...]
    """The same producer by each rule of listing, on a board that starts empty."""
    private: tuple[PrivateSelection, ...]
    lead: float
    advice: BoardAdvice | None
    seconds: float

    @property
    def verdict(self) -> str:
        """Whether variants pay on this board as it is: exploitable, or undecided if no gain was seen."""
        return "exploitable" if any(gain.ranks.low > ENOUGH for gain in self.gains) else "undecided"

    @property
    def worst(self) -> VariantGain:
        """The largest gain in ranks."""
        return max(self.gains, key=lambda gain: gain.ranks.value)

    def to_dict(self) -> dict[str, object]:
        board = self.board
        models = zip(board.models, board.producers, board.ratings, board.errors, board.votes, strict=True)
        return {
            "verdict": self.verdict, "source": board.source, "votes": self.votes, "notes": list(board.notes),
            "models": [
                {"model": model, "producer": maker, "rating": float(rating), "error": float(error), "votes": int(votes)}
                for model, maker, rating, error, votes in models
            ],
            **fields_of(self, "gains", "entrants"), "rules_among_entrants": to_data(self.rules),
            **fields_of(self, "private", "lead", "advice", "seconds"),
        }  # fmt: skip


def study_board(
    board: Board,
    *,
    producer: str | None = None,
    votes: int | None = None,
    recommend: bool = True,
    runs: int = 50,
    seed: int = 0,
    progress: StudyProgress | None = None,
) -> BoardStudy:
    """What variants would have paid on this board, and what to run instead.

    Parameters
    ----------
    board : Board
        As `read_board` returns it.
    producer : str, optional
        Only this one; default: all of them.
    votes : int, optional
        Votes a model; default: the median of the board's.
    recommend : bool
        Whether to tune a reservoir board and compare the rules.
    runs, seed : int
        Of the simulation between entrants.
    progress : callable, optional
        Called with steps done, steps in all, and what is done now.
    """
    start = time.monotonic()
    tell = progress or (lambda done, total, what: None)
    if len(board.names) < 2:
        raise BoardError("expected two producers or more, got one; say who made which model with owners=")
    names = board.names if producer is None else (board.producers[board.models_of(producer)[0]],)
    each = count(votes or max(10, sorted(board.votes)[len(board.votes) // 2]), "votes", error=BoardError)
    standing = Standing(Panel(board), BestListing(each))
    steps = len(names) + len(SAMPLING) + len(LISTING) + bool(recommend)
    gains = []
    for done, name in enumerate(names):
        tell(done, steps, "variants on a fixed panel")
        kinds = COPIED if name in names[:TOP] else COPIED[:1]
        numbers = VARIANTS if name in names[:TOP] else (5,)
        gains += [standing.gain(name, copied, number) for copied in kinds for number in numbers]
    closest = max(gains, key=lambda gain: gain.ranks.value).producer
    battles = each * len(board.models) // 2
    among = partial(variants_among_entrants, board, closest, 5, battles=battles, runs=runs, seed=seed)
    entrants, rules = [], []
    for done, sampling in enumerate(SAMPLING):
        tell(len(names) + done, steps, "variants among entrants")
        entrants.append(among(sampling=sampling))
    for done, rule in enumerate(LISTING):
        tell(len(names) + len(SAMPLING) + done, steps, "rules among entrants")
        rules.append(among(rule=rule, empty=True))
    tell(steps - 1, steps, "tuning a reservoir board")
    advice = (
        recommend_board(board, battles=max(20, each * len(board.models) // len(board.names))) if recommend else None
    )
    lead = lead_of(board, names[0])
    private = tuple(private_selection(number, each, abs(lead)) for number in PRIVATE)
    found = (tuple(gains), tuple(entrants), tuple(rules), private)
    return BoardStudy(board, names, each, *found, lead, advice, time.monotonic() - start)
