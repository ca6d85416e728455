"""Wait windows: how long a decision waits for its reward before the default is entered in its place.

A window is a time, and where the terms say so also a number of decisions made after it. Windows end in the order of the
decisions. Decisions of the same thousandth of a window's time share one end, so memory is bounded however many
decisions are made in it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Container
from itertools import islice
from typing import Final

_STEPS: Final = 1000  # in a window


class WaitWindows:
    """The windows of one season's rounds, oldest first; times are in milliseconds."""

    def __init__(self, seconds: float, rounds: int | None = None) -> None:
        self._rounds = math.inf if rounds is None else rounds
        self._length = max(1, round(seconds * 1000))
        self._step = max(1, self._length // _STEPS)
        self.starts: deque[list[int]] = deque()  # [time, last round decided up to then]
        self.oldest = 1  # no round before it awaits a reward

    @property
    def longest(self) -> int:
        """How long a decision may await its reward."""
        return self._length + self._step

    def begin(self, last_round: int, now: int) -> None:
        """Let the windows of all rounds up to this one begin, as far as they have not."""
        starts = self.starts
        if starts and now < starts[-1][0]:
            starts[-1][1] = last_round
        else:
            starts.append([now + self._step if self._step > 1 else now, last_round])

    def any_over(self, last_round: int, now: int) -> bool:
        """Whether a window is over, which says nothing of whether its rounds still await rewards."""
        in_time = not self.starts or now < self.starts[0][0] + self._length
        return not in_time or last_round - self.oldest >= self._rounds

    def first_overdue(self, pending: Container[int], last_round: int, now: int) -> int | None:
        """The oldest round that awaits a reward after the end of its window."""
        overdue = self.first_pending(pending, last_round - self._rounds)
        if overdue is not None:
            return overdue
        starts = self.starts
        while starts and starts[0][0] + self._length <= now:
            overdue = self.first_pending(pending, starts[0][1])
            if overdue is not None:
                return overdue
            starts.popleft()
        return None

    def rounds_left(self, pending: Container[int], last_round: int) -> int | None:
        """How many rounds can be decided until a window is over by their number; None where no number is declared."""
        if math.isinf(self._rounds):
            return None
        self.first_pending(pending, last_round)
        return int(self._rounds) - (last_round - self.oldest)

    def first_pending(self, pending: Container[int], last_round: float) -> int | None:
        """The oldest round up to this one that awaits a reward, over or not."""
        while self.oldest <= last_round:
            if self.oldest in pending:
                return self.oldest
            self.oldest += 1
        return None

    def oldest_pending(self, pending: Container[int], last_round: int, most: int) -> list[int]:
        """The oldest rounds that await a reward, so many at most, over or not."""
        rounds = filter(pending.__contains__, range(self.oldest, last_round + 1))
        return list(islice(rounds, most))

    def clear(self) -> None:
        """Begin a season: no round was decided."""
        self.starts.clear()
        self.oldest = 1
