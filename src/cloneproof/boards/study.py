"""Study one board: what variants would have gained each producer and add to a score, and what to run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Final, Self

from cloneproof._checks import count, number_in
from cloneproof._clock import check_time
from cloneproof._data import fields_of, to_data
from cloneproof._findings import Accepted, NamedFinding, WithFindings
from cloneproof.boards.advice import SHOWN, BoardAdvice, recommend_board
from cloneproof.boards.board import Board
from cloneproof.boards.copies import BoardCopies, find_copies
from cloneproof.boards.earned import Earned, earned, gained_ranks
from cloneproof.boards.entrants import LISTING, SAMPLING, EntrantGain, variants_among_entrants
from cloneproof.boards.inflation import PrivateSelection, VariantInflation, private_selection, variant_inflation
from cloneproof.boards.listing import ListingRule, Panel
from cloneproof.boards.rating import one_thread
from cloneproof.boards.rules import listing_rule, sample_board
from cloneproof.boards.variants import COPIED, Standing, VariantGain
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.monte_carlo.sampler import by_deadline
from cloneproof.errors import BoardError, OutOfTimeError

StudyProgress = Callable[[int, int, str], None]
VARIANTS: Final = (1, 2, SHOWN, 10)  # further listings whose gains are computed
PRIVATE: Final = (3, 10, 27)  # private variants of one model
TOP: Final = 10  # producers whose gains are computed for every number of variants
ENOUGH: Final = 0.01  # ranks; a smaller gain counts as none
RUNS: Final = 50  # simulated boards of up to FEW models; of more models there are fewer
FEW: Final = 60
LEAST_RUNS: Final = 10
MOST_SIMULATED: Final = 350  # models of a simulated board
UNEQUAL: Final = (SHOWN, 20)  # variants of unequal strengths
SPREADS: Final = (0, 2, 5, 10, 20)  # Elo: standard deviations of their strengths


def lead_of(board: Board, producer: str) -> float:
    """Return the lead of a producer's best model over the best of all others in Elo points; negative if it trails."""
    own = board.ratings[board.models_of(producer)[0]]
    others = [rating for rating, name in zip(board.ratings, board.producers, strict=True) if name != producer]
    if not others:
        raise BoardError("expected two producers or more, got one; a lead is a lead over somebody")
    return float(own - max(others))


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
    entrants: tuple[EntrantGain, ...]
    """Where entrants fight each other, for the producer that is studied closest: the best listing by each rule of
    sampling, the board's votes so far included. None on a board against one reference."""
    rules: tuple[EntrantGain, ...]
    """Gains of the same producer by each rule of listing, on a board that starts empty."""
    private: tuple[PrivateSelection, ...]
    inflation: tuple[VariantInflation, ...]
    """What variants of unequal strength add to a score, here and on the recommended board."""
    lead: float
    advice: BoardAdvice | None
    left: tuple[str, ...]
    """Questions for which there was no time."""
    seconds: float
    copies: BoardCopies | None = None
    """Models that look like one, if there are battles."""
    earned: tuple[Earned, ...] = ()
    """What near-equal models earn their producers now, the most first."""
    listing: str = "best-of"
    """The rule in use."""

    @property
    def named(self) -> tuple[NamedFinding, ...]:
        """The rule if variants gain by it, models that look like one, and what near-equal ones earn now."""
        rule = [NamedFinding("rule", (self.listing,))] if self.verdict == "exploitable" else []
        alike = () if self.copies is None else self.copies.named
        return (*rule, *alike, *gained_ranks(self.earned))

    def accepting(self, known: Mapping[str, Accepted] | None) -> Self:
        copies = None if self.copies is None else self.copies.accepting(known)
        return replace(self, known=known, copies=copies)

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
        models = zip(board.models, board.producers, board.ratings, board.errors, board.votes,
                     board.weights_of(range(len(board.models))), strict=True)  # fmt: skip
        return {
            "verdict": self.verdict, "caveat": self.caveat, "left": list(self.left), "findings": self.finding_rows,
            "source": board.source, "votes": self.votes, "notes": list(board.notes),
            "models": [
                {"model": model, "producer": maker, "rating": float(rating), "error": float(error), "votes": int(votes),
                 "weight": int(weight)}
                for model, maker, rating, error, votes, weight in models
            ],
            **fields_of(self, "gains", "entrants"), "rules_among_entrants": to_data(self.rules),
            **fields_of(self, "private", "inflation", "lead", "advice", "copies", "earned", "listing"),
        }  # fmt: skip


@one_thread
def study_board(
    board: Board,
    *,
    producer: str | None = None,
    votes: int | None = None,
    recommend: bool = True,
    listing: str | ListingRule = "best-of",
    runs: int | None = None,
    seed: int = 0,
    seconds: float | None = None,
    thorough: bool = False,
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
    runs, seed : int
        Of the simulation between entrants; by default 50 runs, fewer of boards with more than 60 models.
    seconds : float, optional
        Leave the questions that are open after this time; default: answer all.
    thorough : bool
        Average gains over more producers of a large board, and simulate more boards.
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
    simulated = () if board.means is not None else (*SAMPLING, *LISTING)
    steps = len(names) + bool(recommend) + len(simulated)
    used = listing_rule(listing, board, per_model)
    gains: list[VariantGain] = []
    entrants: list[EntrantGain] = []
    rules: list[EntrantGain] = []
    inflation: list[VariantInflation] = []
    left: list[str] = []
    worth: tuple[Earned, ...] = ()
    advice, copies = None, None
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
        with _question(left, "which models look like one"):
            copies = None if board.battles is None else by_deadline(lambda: find_copies(board))
        with _question(left, "what to run instead"):
            if recommend:
                deadline.tell(len(names), steps, "tuning a reservoir board")
                tuned = partial(
                    recommend_board, board, battles=max(20, per_model * len(board.models) // len(board.names)),
                    listing=listing, thorough=thorough,
                    progress=lambda done, of: deadline.tell(len(names), steps, f"rule {done} of {of}"),
                )  # fmt: skip
                advice = by_deadline(tuned)
        with _question(left, "what unequal variants add to a score"):
            for ours, number, spread in product([advice.rule] if advice else [], UNEQUAL, SPREADS):
                check_time("simulation of unequal variants")
                inflation.append(variant_inflation(ours, per_model, number, spread, seed=seed))
        closest = max(gains, key=lambda gain: gain.ranks.value).producer if gains else names[0]
        small = sample_board(board, MOST_SIMULATED)
        few = max(LEAST_RUNS, RUNS * (FEW if thorough else FEW // 2) // max(FEW, len(small.models)))
        among = partial(
            variants_among_entrants, small, closest if closest in small.names else small.names[0], SHOWN,
            battles=per_model * len(small.models) // 2, runs=few if runs is None else runs, seed=seed,
        )  # fmt: skip
        with _question(left, "what variants gain where entrants fight each other"):
            for sampling in SAMPLING if simulated else ():
                deadline.tell(steps - len(simulated) + len(entrants), steps, "variants among entrants")
                entrants.append(by_deadline(partial(among, sampling=sampling)))
            for rule in LISTING if simulated else ():
                deadline.tell(steps - len(LISTING) + len(rules), steps, "rules among entrants")
                rules.append(by_deadline(partial(among, rule=rule, empty=True)))
    lead = lead_of(board, names[0])
    private = tuple(private_selection(number, per_model, abs(lead)) for number in PRIVATE)
    answers = (tuple(gains), tuple(entrants), tuple(rules), private, tuple(inflation))
    found = (copies, worth, used.name)
    return BoardStudy(board, names, per_model, *answers, lead, advice, tuple(left), deadline.elapsed, *found)


@contextmanager
def _question(
    left: list[str], what: str, names: Sequence[str] = (), gains: Sequence[VariantGain] = ()
) -> Iterator[None]:
    """Note a question for which there is no time; `{}` stands for the number of names without gains."""
    try:
        yield
    except OutOfTimeError:
        left.append(what.format(len(names) - len({gain.producer for gain in gains})))
