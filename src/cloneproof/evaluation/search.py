"""Search for deviations: its options (`cp.Search`), and the one loop of all searches.

*Proposals* say what to evaluate next: a list of vectors of copies, or a generator that chooses by what is known so far.
An *evaluator* evaluates a proposal, keeps what it learns, and says when nothing more is needed. `run_search` joins the
two. Exact audits, withholding, splits and best responses evaluate by `Answers`, a function that may refuse;
sampled audits by `race_state.Race`, which draws pairs of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, Protocol, TypeVar

from cloneproof._lib.checks import count, number_in
from cloneproof.errors import EngineError
from cloneproof.mechanisms.streams import checked_seed
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import BoundsName
from cloneproof.runs.sampler import MOST_RUNS, DeviceName, check_sampling, checked_device

MOST_COPIES = 10**6


@dataclass(frozen=True)
class Search:
    """Options of a search for deviations: how far, how long, and how to sample where no exact engine applies.

    Attributes
    ----------
    copies : int, default 4
        Audits try every vector of up to this many copies of each original, besides ladders of 2, 4, 8, .. copies.
    seconds : float, optional
        A deadline, and nothing else: what it cuts is `undecided`, or has a wider interval. Left out, precision alone
        decides when to stop, so that one seed gives one answer on every machine.
    runs : int, optional
        The most runs, or pairs of runs for a deviation.
    seed : int, default 0
        One seed, the same bits.
    bounds : {"asymptotic", "distribution-free"}, default "asymptotic"
        "asymptotic" intervals hold at their confidence in the limit of many runs, with room for what few may have
        missed; "distribution-free" ones for any number of runs, and are several times wider. Estimates say which they
        are.
    device : {"auto", "cpu", "gpu"}, default "auto"
        Where runs are drawn, with the same bits. "auto" takes a GPU that is there where that pays.

    Examples
    --------
    >>> from cloneproof import Search
    >>> Search(copies=2, seconds=30)  # doctest: +ELLIPSIS
    Search(copies=2, seconds=30.0, runs=None, seed=0, ...)
    """

    copies: int = 4
    seconds: float | None = None
    runs: int | None = None
    seed: int = 0
    bounds: BoundsName = "asymptotic"
    device: DeviceName = "auto"

    def __post_init__(self) -> None:
        check_sampling(bounds=self.bounds)
        checked: dict[str, Any] = {
            "copies": count(self.copies, "copies", 1, MOST_COPIES, EngineError),
            "runs": None if self.runs is None else count(self.runs, "runs", 1, MOST_RUNS, EngineError),
            "seed": checked_seed(self.seed),
            "device": checked_device(self.device),
        }
        if self.seconds is not None:
            checked["seconds"] = number_in(self.seconds, "seconds", 0, error=EngineError, low_open=True)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def within(self, seconds: float | None) -> Search:
        """Return the search with this limit, if there is one: what `seconds=` beside `search=` of a question means."""
        return self if seconds is None else replace(self, seconds=seconds)


SEARCH: Final = Search()  # the default of every question

Proposed = TypeVar("Proposed", bound=Hashable)
Proposed_contra = TypeVar("Proposed_contra", contravariant=True)
Answered = TypeVar("Answered")


class Evaluator(Protocol[Proposed_contra]):
    """Evaluates proposals, keeps what it learns, and says when nothing more is needed."""

    @property
    def done(self) -> bool: ...

    def evaluate(self, proposal: Proposed_contra) -> None: ...


def run_search(evaluator: Evaluator[Proposed_contra], proposals: Iterable[Proposed_contra]) -> None:
    """Evaluate one proposal after the other, until the evaluator is done or nothing is proposed."""
    upcoming = iter(proposals)
    while not evaluator.done:
        try:
            proposal = next(upcoming)  # a generator decides only now, by what is known of the earlier ones
        except StopIteration:
            return
        evaluator.evaluate(proposal)


@dataclass
class Answers(Generic[Proposed, Answered]):
    """An evaluator that asks a function, which raises an `EngineError` to refuse; done when time is over."""

    ask: Callable[[Proposed], Answered]
    clock: Deadline = field(default_factory=Deadline)
    evaluated: dict[Proposed, Answered] = field(default_factory=dict)
    left_out: dict[Proposed, str] = field(default_factory=dict)  # what was refused, and why

    @property
    def done(self) -> bool:
        return self.clock.spent

    def evaluate(self, proposal: Proposed) -> None:
        """Ask about a proposal, unless that was done before."""
        if proposal not in self.evaluated and proposal not in self.left_out:
            try:
                with self.clock.for_engines():
                    self.evaluated[proposal] = self.ask(proposal)
            except EngineError as refusal:
                self.left_out[proposal] = refusal.reason

    def climb(self, ladder: Sequence[Proposed]) -> Iterator[Proposed]:
        """Propose rungs in turn until one is refused; leave out those beyond it."""
        for number, rung in enumerate(ladder, start=1):
            yield rung
            if rung in self.left_out:
                for beyond in ladder[number:]:
                    if beyond not in self.evaluated:
                        self.left_out.setdefault(beyond, self.left_out[rung])
                return


@contextmanager
def until_interrupted(clock: Deadline) -> Iterator[None]:
    """Within this context Ctrl-C ends the search, and what was found stays; the clock is marked `interrupted`."""
    try:
        yield
    except KeyboardInterrupt:
        clock.interrupt()
