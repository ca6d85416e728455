"""What runs live: the state that a mechanism opens for a session, a segment of one, or a run of the reference.

A decision is an `Allocation`, and its reward comes back with the allocation at any later time. Each family has states
of its own. If arms are drawn, a withdrawal changes nothing until a slot that holds the arm is reached, that is, would
be played; then its agent is out, and the same round goes to the others (docs/textbook/reservoir.md, section 9).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from cloneproof._lib.randomness import Stream
from cloneproof.mechanisms.registration import Allocation, Page, Registration, Withdrawals
from cloneproof.mechanisms.terms import Attention


class StateSetup(NamedTuple):
    """All that a state is made of; `attention` is that of a page's places.

    What slots hold is drawn from `slots`, which all segments of a session share; all else comes from `stream`.
    """

    registration: Registration
    horizon: int
    stream: Stream
    slots: Stream
    withdrawals: Withdrawals
    attention: Attention = 0
    batch: int = 1


class State(ABC):
    """What a session asks of every state, and nothing else.

    coins       whether coins stand for rewards; they are named by pulls (`place`) where arms are drawn
    chance      the probability of the last allocation given everything before; None if it has no formula
    chances     those of a page's places
    tells_late  whether a reward may come too late to count
    """

    coins: bool = False
    tells_late: bool = False
    chances: list[float | None]

    @property
    @abstractmethod
    def chance(self) -> float | None: ...

    @abstractmethod
    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        """Decide a round, counted from 1, and the rounds after it that no reward can change, at most `most` in all."""

    def next_page(self, page: int) -> Page:
        """Decide a page of several places."""
        raise NotImplementedError(f"{type(self).__name__} has no places")

    @abstractmethod
    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        """Enter a reward, with the coin that stands for it."""

    def place(self, allocation: Allocation) -> tuple[int, int]:
        """Return where the last allocation counts if arms are drawn: a draw from 1, or the contest; and pulls there."""
        raise NotImplementedError(f"{type(self).__name__} draws no arms")

    @abstractmethod
    def leave_out(self) -> None:
        """Go on without what is withdrawn or paused and who is out."""

    def is_late(self, allocation: Allocation) -> bool:
        """Whether a reward counts for nothing if it comes now; asked where the state `tells_late`."""
        return False

    @property
    def decided(self) -> bool:
        """Whether a champion has all later rounds, so that nobody can join."""
        return False

    @property
    def turn(self) -> int:
        """The pass of slots that runs or comes next, from 0, in which an agent joins."""
        return 0

    def join(self, registration: Registration) -> None:
        """Go on with more agents; asked only if the mechanism takes joiners."""
        raise NotImplementedError(f"{type(self).__name__} takes no joiners")

    @abstractmethod
    def to_data(self) -> dict[str, Any]:
        """Return what changes as it runs."""

    @abstractmethod
    def restore(self, data: Mapping[str, Any]) -> None:
        """Go on from there."""
