"""Slots that are tested one after the other: what they hold, their timetable, and their level.

Slots are uniform draws with replacement from an agent's arms, or draws by their weights. The draws, the order of tests
and their lengths do not depend on how many arms are registered; the scan theorem rests on this. A test ends when the
rewards of all its pulls are in. If they are late, the next slot is tested meanwhile. Tests count in the order in which
their results are known, ties in the order of the schedule.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from cloneproof._randomness import Stream, substream, uniform
from cloneproof.mechanisms.online.levels import WAIT, Candidates, ticks
from cloneproof.mechanisms.online.registration import nobody_left
from cloneproof.mechanisms.online.streams import SLOT_STREAM
from cloneproof.mechanisms.rule import Rule


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


class SlotLevel(Candidates):
    """Slots in the order of their tests, what each has counted, and the champion, which is the `choice`.

    decided   pulls of each slot that belong to its test
    test      the slot that is pulled now; the number of tests when all have been pulled
    passed    slots whose tests are known to have passed, before one of them is champion
    """

    __slots__ = ("arms", "openings", "passed", "test")
    numbers = ("rounds", "missing", "test", "choice")

    def __init__(self, rule: Rule, slots: Sequence[Any], openings: Sequence[float]) -> None:
        super().__init__(rule, rule.explore, range(len(slots)))
        self.arms, self.openings, self.test = slots, openings, 0
        self.passed: list[int] = []

    def extend(self, slots: Sequence[Any], openings: Sequence[float], kept: int) -> None:
        """Go on with other slots, of which the first `kept` are the same; no test of the rest has begun."""
        self.arms, self.openings, self.keys = slots, openings, range(len(slots))
        for name in self.lists:
            setattr(self, name, getattr(self, name)[:kept] + [0] * (len(slots) - kept))

    def next_test(self) -> int:
        """Return the slot that is pulled next if no test passes; the number of tests if all have been pulled."""
        while self.test < self.tested and self.decided[self.test] >= self.explore:
            self.test += 1
        return self.test

    @property
    def tested(self) -> int:
        """Number of slots tested; one more is held in reserve if the fallback is a fresh draw."""
        return len(self.arms) - (self.rule.slots.fallback == "draw")

    def _passes(self, k: int) -> bool:
        """Whether the test of slot k is known to have passed."""
        threshold = self.rule.slots.threshold
        return threshold is not None and self.arrived[k] == self.explore and self.total[k] >= ticks(threshold)

    def pick(self, clock: int) -> int:
        """Return the slot to play, or WAIT while only rewards are missing."""
        test = self.next_test()
        if self.choice is None and self.passed:
            self.choice, self.test = min(self.passed), self.tested
        elif self.choice is None and test == self.tested:
            if self.missing:
                return WAIT
            left = [k for k in range(len(self.arms)) if k not in self.gone]
            if not left:
                raise nobody_left()
            self.choice = self.tested if left[-1] == self.tested else max(left, key=lambda k: (self.total[k], -k))
        k = self.test if self.choice is None else self.choice
        opens = self.decided[k] == 0 and (self.choice is None or k == self.tested)
        self.chance = self.openings[k] if opens else 1.0
        return k

    def take(self, k: int, counts: bool) -> None:
        """Enter a decision for slot k; `counts` says whether its reward belongs to a test."""
        self.rounds += 1
        self.decided[k] += 1
        self.missing += counts

    def counts(self, k: int) -> bool:
        """Whether the reward of a decision for slot k now belongs to its test."""
        return self.choice is None and self.decided[k] < self.explore

    def add(self, k: int, ticks: int) -> None:
        super().add(k, ticks)
        if self._passes(k) and k not in self.gone:
            self.passed.append(k)

    def leave_out(self, gone: Collection[int]) -> None:
        """Test no further the slots that are left out; after a champion the tests go on where they were."""
        self.test = 0 if self.choice in gone else self.test
        super().leave_out(gone)
        for k in gone:
            self.decided[k] = max(self.decided[k], self.explore)
        self.passed = [k for k in self.passed if k not in gone]

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.passed = [k for k in range(self.tested) if self._passes(k)]


def agent_slots(rule: Rule, stream: Stream, pool: Sequence[int]) -> list[int]:
    """Return the arms that an agent's slots hold, drawn from its pool; plus one if the fallback is a fresh draw."""
    draws = substream(stream, SLOT_STREAM)
    count = rule.draws + (rule.slots.fallback == "draw")
    return [pool[int(uniform(draws, slot) * len(pool))] for slot in range(count)]
