"""The state of a flat mechanism on slots: a timetable of tests over the draws of all agents."""

from __future__ import annotations

from typing import Any

from cloneproof._randomness import word
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.level import level_stream
from cloneproof.mechanisms.online.registration import Allocation, Registration
from cloneproof.mechanisms.online.slot_level import SlotLevel, agent_slots
from cloneproof.mechanisms.online.streams import FALLBACK_STREAM, LEVELS_STREAM, ORDER_STREAM
from cloneproof.mechanisms.online.turns import WAIT, NeutralRounds


class SlotState:
    """First draws of all agents, then second draws of all, ..; the first test that passes gets every later round.

    The order of the agents is drawn at the start. Late rewards hold nothing up until every draw has been pulled; rounds
    are neutral then. Versions of the level are `first` alone.
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
        self.neutral = NeutralRounds(registration, stream)
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
            agent, arm, self._chance = self.neutral.turn()
            return Allocation(agent, arm, "waiting", False, False, self.version)
        counts = level.counts(k)
        phase = "trial" if level.choice is None else "award"
        level.take(k, counts)
        self._chance = level.chance
        return Allocation(*self.slots[k], phase, False, counts, self.version, k)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        allocation, level = self.next(round_), self.level
        if self._chance != 1.0 or allocation.phase == "waiting":
            return allocation, 1
        if level.choice is None:  # until a reward arrives, what is left of a test
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
        return {"version": self.version, "neutral": self.neutral.to_data(), "level": self.level.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.version = state["version"]
        self.neutral.restore(state.get("neutral", (0, 0)))
        self.level.restore(state["level"])
