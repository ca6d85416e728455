"""Slots: draws from agents' arms, shown by rank. Ranks depend on a slot's own rewards alone and never fall.

Slots are uniform draws with replacement from an agent's arms, or draws by their weights. The slot of lowest rank is
shown, ties in an order of all slots that depends on no reward. Neither draws nor order nor ranks depend on how many
arms are registered; the theorems on slots rest on this (docs/textbook/reservoir.md, index-on-slots.md,
bars-on-slots.md). What is a mechanism's own is how rewards raise a rank, a `Rank`:

    first pass       what a test that failed lacks; a slot whose test passed stays where untested ones are
    falling index    minus the lowest index that the slot has had
    bars             how often its points have been used up
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from cloneproof._lib.randomness import MASK, Stream, substream, uniform, word
from cloneproof._lib.schedules import Bar, next_update
from cloneproof._lib.ticks import ONE, ticks
from cloneproof.mechanisms.bandits.levels import Candidates
from cloneproof.mechanisms.bandits.rule import PriorityInputs
from cloneproof.mechanisms.bandits.rules import steady_kl_index
from cloneproof.mechanisms.registration import nobody_left
from cloneproof.mechanisms.streams import SLOT_STREAM

WAIT: Final = -1  # no slot, while only rewards are missing


class Rank(NamedTuple):
    """How a slot's own rewards raise its rank, by pure functions of numbers, which the kernels compile too.

    start        the rank of a slot without rewards
    purse        the rewards until it is judged
    again        the probability of showing a slot once more, given everything before; None if a hidden order may decide
    after        `after(pulls, total, rank, *parameters)` -> rank and purse of a slot whose purse is used up, with a
                 purse of 0 if for good: `pulls` rewards are in, and `total` is their sum
    parameters   numbers that both functions get at their ends, and the function of an index before them
    points       `points(rank, *parameters)` -> what a click adds to the purse: a whole number, and the probability of
                 one more; None if clicks add nothing
    origin       what `total` is counted from, in ticks: sums are exact, and rounded only when counted from there, so
                 that none passes a threshold by rounding
    """

    start: float
    purse: int
    again: float | None
    after: Callable[..., tuple[float, int]]
    parameters: tuple[Any, ...]
    points: Callable[..., tuple[int, float]] | None = None
    origin: int = 0

    def judged(self, pulls: int, total: int, rank: float) -> tuple[float, int]:
        """Return rank and purse of a slot whose purse is used up, after rewards of this sum in ticks."""
        return self.after(pulls, (total - self.origin) / ONE, rank, *self.parameters)


def first_pass(rounds: int, threshold: float | None) -> Rank:
    """Tests of so many rounds, which pass at a threshold; without one none passes, and the best count is lowest."""
    least, origin = (math.inf, 0) if threshold is None else (0.0, ticks(threshold))
    return Rank(-math.inf, rounds, 1.0, pass_or_fail, (least,), origin=origin)


def pass_or_fail(pulls: int, total: float, rank: float, least: float) -> tuple[float, int]:
    """Judge a test when all its rewards are in: it passes with the least total."""
    return (rank if total >= least else -total), 0


def falling_index(priority: Callable[..., float], parameters: tuple[float, ...]) -> Rank:
    """Minus the lowest index so far, which is updated after 1, 2, .., 32 rewards, then after each sixteenth more."""
    return Rank(-math.inf, next_update(0), None, lowest_index, (priority, *parameters))


def lowest_index(
    pulls: int, total: float, rank: float, priority: Callable[..., float], *parameters: float
) -> tuple[float, int]:
    """Lower the index to that of all rewards so far, if that is lower."""
    inputs = PriorityInputs(0, -math.inf, pulls, total / pulls, 0.5, 0.5, 1)
    return max(rank, -priority(inputs, *parameters)), next_update(pulls) - pulls


def failures(bar: Bar) -> Rank:
    """How often a slot's points were used up; it then starts again with its stake.

    A view costs its point, and a click earns its points, when the reward is in. So while rewards are missing a slot is
    shown on, and each further reward counts towards the attempt that runs when it arrives.
    """
    again = 1.0  # which slots follow each other is known once they were shown
    return Rank(0, bar.stake, again, failed, bar, earned)


def failed(pulls: int, total: float, rank: float, stake: int, whole: int, part: float) -> tuple[float, int]:
    """Count a failure, and begin the next attempt."""
    return rank + 1, stake


def earned(rank: float, stake: int, whole: int, part: float) -> tuple[int, float]:
    """Return the points of a click."""
    return whole, part


@dataclass(frozen=True)
class SlotRule:
    """How the slots of a reservoir are judged, in numbers.

    draws      how many slots each agent has
    tries      pulls of a test, if slots are tested (`commits`): the first to pass a threshold is kept, else the best;
               of streams, the rotations of a block
    binarise   whether rewards in [0, 1] become coins
    threshold  the sum of rewards at which a test passes; None: all slots are tested
    width      of the index by which slots are ranked, if they are
    bar        what slots start with and earn, if they are ranked by balances
    streams    whether an agent's slots are shown one after the other in blocks of pages, as many as there are draws
    """

    name: str
    draws: int
    tries: int = 0
    commits: bool = False
    binarise: bool = True
    threshold: float | None = None
    width: float | None = None
    bar: Bar | None = None
    streams: bool = False

    @property
    def ranked(self) -> bool:
        """Whether slots are shown by ranks that never fall, with no tests before."""
        return self.width is not None or self.bar is not None

    @property
    def judge(self) -> Rank:
        """How rewards raise ranks."""
        if self.bar is not None:
            return failures(self.bar)
        if self.width is not None:
            return falling_index(steady_kl_index, (self.width,))
        return first_pass(self.tries, self.threshold)


def passing_count(rule: SlotRule) -> int:
    """Return the lowest count of coins with which a slot's test passes; more than its rounds if none does.

    >>> from cloneproof.mechanisms.reservoir.reservoirs import Scan
    >>> passing_count(Scan(rounds=9, threshold=6).arm), passing_count(Scan(rounds=9).arm)
    (6, 10)
    """
    judge, counts = rule.judge, range(rule.tries + 1)

    def passes(count: int) -> bool:
        return judge.judged(rule.tries, count * ONE, judge.start)[0] == judge.start

    return bisect_left(counts, True, key=passes)


class SlotLevel(Candidates):
    """Slots with their ranks. Under a rule that commits, the first to be shown after its test is the `choice`.

    judge      how rewards raise ranks
    order      the place of each slot among those of one rank
    openings   the probability that it is the next to be shown for the first time
    rank       of each slot
    purse      rewards until its rank can change

    A test ends when the rewards of all its pulls are in; while the last are missing the slot is not shown. So passes
    count in the order in which they are known, ties in that of the slots. A slot that has not passed is chosen when
    nothing is missing. As ranks never fall, a heap that is cleared of old ranks at its front has the slot to show.
    """

    __slots__ = ("_coins", "_heap", "_lots", "judge", "openings", "order", "purse", "rank")
    lists = (*Candidates.lists, "rank", "purse")

    def __init__(self, rule: SlotRule, coins: Stream = 0) -> None:
        super().__init__(rule, rule.tries, ())
        self.judge, self._lots = rule.judge, coins
        self.rank: list[float] = []
        self.purse: list[int] = []

    def seat(
        self, order: Sequence[int], openings: Sequence[float | None], keys: Sequence[int] = (), kept: int = 0
    ) -> None:
        """Go on with these slots, of which the first `kept` are as they were; the others are new.

        `keys` name them to the coins of bars.
        """
        self.order, self.openings, self.keys, new = order, openings, keys, len(order) - kept
        for name, value in zip(self.lists, (0, 0, 0, self.judge.start, self.judge.purse), strict=True):
            setattr(self, name, getattr(self, name)[:kept] + [value] * new)
        self._coins = [substream(self._lots, key) for key in keys] if self.rule.bar else []
        self._queue_anew()

    def _queue_anew(self) -> None:
        self._heap = [(self.rank[k], self.order[k], k) for k in range(len(self.order)) if k not in self.gone]
        heapq.heapify(self._heap)

    def front(self) -> int | None:
        """Return the slot of lowest rank, without those whose tests only wait for rewards; None if nothing is left."""
        heap, waits = self._heap, self.rule.commits
        while heap:
            rank, _, k = heap[0]
            if rank == self.rank[k] and not (waits and 0 < self.purse[k] <= self.decided[k] - self.arrived[k]):
                return k
            heapq.heappop(heap)
        return None

    @property
    def settled(self) -> bool:
        """Whether one slot has all later rounds: it was chosen, or its test is known to have passed."""
        k = self.front()
        return self.choice is not None or (k is not None and self.passed(k))

    def passed(self, k: int) -> bool:
        """Whether the test of slot k is known to have passed."""
        return not self.purse[k] and self.rank[k] == self.judge.start

    def best_of(self, agents: Sequence[int]) -> list[int]:
        """Return the best tested slot of each agent that has one, the best first; `agents` has that of each slot."""
        tested = [(self.rank[k], self.order[k], k) for k in range(len(agents)) if not self.purse[k]]
        best: dict[int, int] = {}
        for *_, k in sorted(tested):
            best.setdefault(agents[k], k)
        return list(best.values())

    def pick(self) -> int:
        """Return the slot to show, or WAIT while only rewards are missing."""
        k, commits = self.choice, self.rule.commits
        if k is None:
            k = self.front()
            if commits and self.missing and (k is None or self.rank[k] > self.judge.start):
                return WAIT
            if k is None:
                raise nobody_left()
            if commits and not self.purse[k]:
                self.choice = k
        self.chance = self.judge.again if self.decided[k] else self.openings[k]
        return k

    def counts(self, k: int) -> bool:
        """Whether the reward of a decision for slot k now counts towards its rank."""
        return self.choice is None

    def take(self, k: int, counts: bool) -> None:
        """Enter a decision for slot k; `counts` says whether its reward counts."""
        self.rounds += 1
        self.decided[k] += 1
        self.missing += counts

    def sure_rounds(self, k: int) -> float:
        return math.inf if self.choice == k else max(0, self.purse[k] - self.decided[k] + self.arrived[k])

    def repeat(self, k: int, times: int) -> None:
        super().repeat(k, times)
        self.missing += times * self.counts(k)

    def add(self, k: int, ticks: int, place: int = 0) -> None:
        super().add(k, ticks)
        judge, pulls, rank, purse = self.judge, self.arrived[k], self.rank[k], self.purse[k] - 1
        if ticks and judge.points is not None:
            whole, part = judge.points(rank, *judge.parameters)
            purse += whole + (uniform(self._coins[k], pulls - 1) < part)
        if not purse:
            rank, purse = judge.judged(pulls, self.total[k], rank)
            if (rank != self.rank[k] or not purse) and k not in self.gone:
                heapq.heappush(self._heap, (rank, self.order[k], k))
        self.rank[k], self.purse[k] = rank, purse

    def leave_out(self, gone: Collection[int]) -> None:
        super().leave_out(gone)
        self._queue_anew()

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"rank": [None if rank == -math.inf else rank for rank in self.rank]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.rank = [-math.inf if rank is None else rank for rank in state["rank"]]
        self._queue_anew()


def agent_slots(rule: SlotRule, stream: Stream, pool: Sequence[int]) -> list[int]:
    """Return the arms that an agent's slots hold, drawn from its pool."""
    draws = substream(stream, SLOT_STREAM)
    return [pool[int(uniform(draws, slot) * len(pool))] for slot in range(rule.draws)]


def drawn_order(stream: Stream, keys: Sequence[int], first: int) -> list[int]:
    """Return the place of each slot in an order that is drawn once and hidden, those of agents that joined being last.

    If newcomers came before the `first` slots, waiting would pay (docs/textbook/seasons.md).
    """
    return [word(stream, key) if k < first else MASK + 1 + k for k, key in enumerate(keys)]


def timetable(draws: int, order: Sequence[int], joined: Sequence[int | None]) -> list[tuple[int, int]]:
    """Return the slots in the order of their tests, each as its agent and the number of the agent's draw.

    In each pass the agents in their order have a slot, then those that joined, each from the pass in which it did; who
    joined when all was decided has none.

    >>> timetable(2, [1, 0], [1])
    [(1, 0), (0, 0), (1, 1), (0, 1), (2, 0), (2, 1)]
    """
    late = [(agent, start) for agent, start in enumerate(joined, len(order)) if start is not None]
    seats = [*((agent, 0) for agent in order), *late]
    passes = range(draws + max((start for _, start in late), default=0))
    return [(agent, turn - start) for turn in passes for agent, start in seats if 0 <= turn - start < draws]
