"""A level whose candidates are slots: draws from the arms, tested one after the other, one of which becomes champion.

A slot is a uniform draw with replacement from an agent's registered arms, with statistics of its own. Slots are tested
in the order of the timetable, `rule.explore` pulls each. Which arm a slot holds, which test comes when and how long it
takes do not depend on how many arms are registered: that is what the scan theorem rests on.

A test passes or fails when the rewards of all its pulls are in, and not before. Where they are late the timetable goes
on with the next slot, and the first test that is known to have passed makes its slot champion: tests count in the order
in which they are known, those known at the same time in the order of the timetable. Only when every slot has been
pulled does the level wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloneproof._randomness import uniform, word
from cloneproof.mechanisms.online.level import ticks
from cloneproof.mechanisms.online.streams import SLOT_STREAM
from cloneproof.mechanisms.online.turns import WAIT
from cloneproof.mechanisms.rule import Rule


class SlotLevel:
    """Slots in the order of their tests, what each has counted, and the champion.

    decided   pulls of each slot that belong to its test
    arrived   rewards of a test that have arrived
    total     their sum, in ticks
    test      the slot that is pulled now; the number of tests when all have been pulled
    passed    slots whose tests are known to have passed, before one of them is champion
    choice    the champion
    chance    the probability of the last pick, given everything before it
    """

    __slots__ = (
        "arms", "arrived", "chance", "choice", "decided", "explore", "keys", "missing", "openings", "passed", "rounds",
        "rule", "test", "total",
    )  # fmt: skip

    def __init__(self, rule: Rule, slots: Sequence[Any], openings: Sequence[float]) -> None:
        count = len(slots)
        self.rule, self.explore, self.arms, self.openings = rule, rule.explore, slots, openings
        self.keys = range(count)
        self.decided, self.arrived, self.total = [0] * count, [0] * count, [0] * count
        self.rounds = self.missing = self.test = 0
        self.passed: list[int] = []
        self.choice: int | None = None
        self.chance: float | None = 1.0

    @property
    def tested(self) -> int:
        """How many slots are tested; one more stands by where the fallback is a fresh draw."""
        return len(self.arms) - (self.rule.fallback == "draw")

    @property
    def exploring(self) -> bool:
        """Whether a test is still to be run."""
        return self.choice is None and self.test < self.tested

    def _passes(self, k: int) -> bool:
        """Whether the test of slot k is known to have passed."""
        threshold = self.rule.threshold
        return threshold is not None and self.arrived[k] == self.explore and self.total[k] >= ticks(threshold)

    def _next(self) -> int:
        """The slot whose turn it is, WAIT, or -2 - k where slot k becomes champion."""
        if self.choice is not None:
            return self.choice
        if self.passed:
            return -2 - min(self.passed)
        while self.test < self.tested and self.decided[self.test] >= self.explore:
            self.test += 1
        if self.test < self.tested:
            return self.test
        if self.missing:
            return WAIT
        if self.rule.fallback == "draw":
            return -2 - self.tested
        return -2 - max(range(self.tested), key=lambda k: (self.total[k], -k))

    def pick(self, clock: int) -> int:
        """The slot to play, or WAIT while all that is left to do is to wait for rewards."""
        k = self._next()
        if k == WAIT:
            return k
        if k < WAIT:
            k = self.choice = -2 - k
            self.test = self.tested
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

    def repeat(self, k: int, times: int) -> None:
        """Enter further decisions for slot k, whose rewards are counted as missing elsewhere if they are to count."""
        self.rounds += times
        self.decided[k] += times

    def add(self, k: int, ticks: int) -> None:
        """Enter a reward of a test."""
        self.arrived[k] += 1
        self.total[k] += ticks
        self.missing -= 1
        if self._passes(k):
            self.passed.append(k)

    def to_dict(self) -> dict[str, Any]:
        """The state, from which `restore` goes on identically."""
        names = ("decided", "arrived", "total", "rounds", "missing", "test", "choice")
        return {name: getattr(self, name) for name in names}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state made by `to_dict` of a level like this one."""
        for name in ("decided", "arrived", "total"):
            if len(state[name]) != len(self.arms):
                raise ValueError(name)
            setattr(self, name, list(state[name]))
        self.rounds, self.missing = state["rounds"], state["missing"]
        self.test, self.choice = state["test"], state["choice"]
        self.passed = [k for k in range(self.tested) if self._passes(k)]


def agent_slots(rule: Rule, stream: int, arm_keys: Sequence[int]) -> list[int]:
    """The arms that the slots of an agent hold, and one more where the fallback is a fresh draw."""
    ranked = sorted(range(len(arm_keys)), key=arm_keys.__getitem__)
    draws = word(stream, SLOT_STREAM)
    count = rule.draws + (rule.fallback == "draw")
    return [ranked[int(uniform(draws, slot) * len(ranked))] for slot in range(count)]
