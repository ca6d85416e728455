"""The state of a flat mechanism on slots: a timetable of tests over the draws of all agents."""

from __future__ import annotations

from typing import Any

from cloneproof._randomness import word
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.exploration import WAIT
from cloneproof.mechanisms.online.level import level_stream
from cloneproof.mechanisms.online.registration import Allocation, Registration
from cloneproof.mechanisms.online.slot_level import SlotLevel, agent_slots, waiting_arm
from cloneproof.mechanisms.online.streams import FALLBACK_STREAM, LEVELS_STREAM, ORDER_STREAM


class SlotState:
    """First draws of all agents, then second draws of all, ..; the first test that passes gets every later round.

    The order of the agents is drawn at the start. Versions of the level are `first` alone.
    """

    def __init__(
        self, mechanism: Mechanism, registration: Registration, horizon: int, stream: int, first: int = 0
    ) -> None:
        self.mechanism, self.registration, self.version = mechanism, registration, first
        self.stream, rule = word(stream, LEVELS_STREAM), mechanism.arm
        timetable = level_stream(self.stream, first, 0)
        keys = registration.agent_keys
        self.order = sorted(range(len(keys)), key=lambda i: word(word(timetable, ORDER_STREAM), keys[i]))
        self.streams = [level_stream(self.stream, first, key + 1) for key in keys]
        slots = [agent_slots(rule, self.streams[i], registration.arm_keys[i]) for i in range(len(keys))]
        self.slots = [(i, slots[i][draw]) for draw in range(rule.draws) for i in self.order]
        openings = [
            1 / (registration.arms[i] * (len(keys) - k if k < len(keys) else 1)) for k, (i, _) in self._places()
        ]
        if rule.fallback == "draw":
            i = self.order[word(word(timetable, FALLBACK_STREAM), 0) % len(keys)]
            self.slots.append((i, slots[i][rule.draws]))
            openings.append(1 / (registration.arms[i] * len(keys)))
        self.level = SlotLevel(rule, self.slots, openings)
        self.waits = 0
        self._chance: float | None = 1.0

    def _places(self) -> list[tuple[int, tuple[int, int]]]:
        return list(enumerate(self.slots))

    @property
    def chance(self) -> float | None:
        return self._chance

    def next(self, round_: int) -> Allocation:
        level = self.level
        k = level.pick(round_)
        if k == WAIT:
            return self._waiting_round()
        counts = level.counts(k)
        phase = "trial" if level.choice is None else "award"
        level.take(k, counts)
        self._chance = level.chance
        return Allocation(*self.slots[k], phase, False, counts, self.version, k)

    def _waiting_round(self) -> Allocation:
        """Agents in turn, and a uniform draw of one of their arms: neutral to copies, and counted nowhere."""
        i = self.order[self.waits % len(self.order)]
        arm = waiting_arm(self.streams[i], self.waits, self.registration.arm_keys[i])
        self.waits += 1
        self._chance = 1 / self.registration.arms[i]
        return Allocation(i, arm, "waiting", False, False, self.version)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        allocation, level = self.next(round_), self.level
        if self._chance != 1.0 or allocation.phase == "waiting":
            return allocation, 1
        if level.choice is None:  # no reward can change what is left of a test
            most = min(most, 1 + level.explore - level.decided[allocation.slot])
            level.missing += most - 1
        level.repeat(allocation.slot, most - 1)
        return allocation, most

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return 1 + allocation.slot // len(self.order), self.level.decided[allocation.slot]

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.arm_counts and allocation.version == self.version:
            self.level.add(allocation.slot, coin if self.level.rule.binarise else ticks)

    def to_dict(self) -> dict[str, Any]:
        return {"version": self.version, "waits": self.waits, "level": self.level.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.version, self.waits = state["version"], state["waits"]
        self.level.restore(state["level"])
