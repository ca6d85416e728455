"""The state of a flat mechanism."""

from __future__ import annotations

from typing import Any

from cloneproof._randomness import word
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.level import Level, level_stream
from cloneproof.mechanisms.online.registration import Allocation, Registration, sampled
from cloneproof.mechanisms.online.slot_level import agent_slots
from cloneproof.mechanisms.online.streams import LEVELS_STREAM, SAMPLE_STREAM
from cloneproof.mechanisms.online.turns import WAIT, NeutralRounds


class OneLevelState:
    """A flat mechanism: the arms of all agents side by side. Versions of its level count from `first`.

    A commitment waits for the rewards of the exploration, in neutral rounds.
    """

    def __init__(
        self, mechanism: Mechanism, registration: Registration, horizon: int, stream: int, first: int = 0
    ) -> None:
        self.mechanism, self.stream = mechanism, word(stream, LEVELS_STREAM)
        self.epochs = mechanism.clearing if mechanism.clearing.flat_epochs else None
        arms: list[tuple[Any, ...]] = [
            ((registration.agent_keys[agent] << 32) + registration.arm_keys[agent][arm], agent, arm)
            for agent in range(len(registration.names))
            for arm in range(registration.arms[agent])
        ]
        if mechanism.arm.draws:
            streams = [level_stream(self.stream, first, key + 1) for key in registration.agent_keys]
            arms = [
                ((registration.agent_keys[agent] << 32) + slot, agent, arm)
                for agent, keys in enumerate(registration.arm_keys)
                for slot, arm in enumerate(agent_slots(mechanism.arm, streams[agent], keys))
            ]
        if mechanism.sample is not None:
            lots = word(stream, SAMPLE_STREAM)
            arms = sampled(arms, mechanism.sample.kept(len(arms), horizon, lots), lots)
        self.arms = [(agent, arm) for _, agent, arm in arms]
        self.position = {arm: k for k, arm in enumerate(self.arms)}
        self.keys = [key for key, _, _ in arms]
        self.version = first
        self.level = self._level()
        self.neutral = NeutralRounds(registration, stream)

    @property
    def chance(self) -> float | None:
        return self.level.chance

    def _level(self) -> Level:
        arm = self.mechanism.arm
        explore = arm.explore if self.epochs is None else self.epochs.arm_rounds(max(1, self.version))
        return Level(arm, explore, level_stream(self.stream, self.version, 0), self.keys)

    def next(self, round_: int) -> Allocation:
        if self.epochs is not None and self.epochs.epoch(round_) != self.version:
            self.version = self.epochs.epoch(round_)
            self.level = self._level()
        level = self.level
        k = level.pick(round_)
        if k == WAIT:
            agent, arm, level.chance = self.neutral.turn()
            return Allocation(agent, arm, "waiting", False, False, self.version)
        counts = level.counts(k)
        level.take(k, counts)
        slot = k if level.rule.draws else -1
        return Allocation(*self.arms[k], "play", False, counts, self.version, slot)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        allocation, level = self.next(round_), self.level
        if level.choice is None or level.chance != 1.0 or self.epochs is not None:
            return allocation, 1  # a tie is broken in one round and not in the next
        level.repeat(level.choice, most - 1)
        return allocation, most

    def place(self, allocation: Allocation) -> tuple[int, int]:
        slot = self.keys[allocation.slot] & 0xFFFFFFFF  # of the agent
        return 1 + slot, self.level.decided[allocation.slot]

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.arm_counts and allocation.version == self.version:
            slot = allocation.slot
            k = self.position[allocation.agent, allocation.arm] if slot < 0 else slot
            self.level.add(k, coin if self.level.rule.binarise else ticks)

    def to_dict(self) -> dict[str, Any]:
        return {"version": self.version, "level": self.level.to_dict(), "neutral": self.neutral.to_data()}

    def restore(self, state: dict[str, Any]) -> None:
        self.version = state["version"]
        self.level = self._level()
        self.level.restore(state["level"])
        self.neutral.restore(state.get("neutral", (0, 0)))
