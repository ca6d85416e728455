"""State of a running bandit: one level over all arms, or a level of agents above one level for each agent.

It uses what has arrived, and never waits. A withdrawn arm is skipped, and nothing is promised.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cloneproof._lib.randomness import Stream, substream
from cloneproof.mechanisms.bandits.levels import Level, level_stream
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.registration import Allocation
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.streams import LEVELS_STREAM

if TYPE_CHECKING:
    from cloneproof.mechanisms.bandits.bandit import Bandit


class OneLevelState(State):
    """The arms of all agents side by side: `candidates` has the agent and the arm of each, `position` the inverse."""

    level: Level

    def __init__(self, bandit: Bandit, setup: StateSetup) -> None:
        self.withdrawals, registration = setup.withdrawals, setup.registration
        self.coins = bandit.arm.binarise
        self.candidates = [(agent, arm) for agent, arms in enumerate(registration.arms) for arm in range(arms)]
        self.position = {arm: k for k, arm in enumerate(self.candidates)}
        agents, arms = registration.agent_keys, registration.arm_keys
        keys = [(agents[agent] << 32) + arms[agent][arm] for agent, arm in self.candidates]
        self.level = self._new_level(bandit.arm, level_stream(substream(setup.stream, LEVELS_STREAM), 0, 0), keys)
        self.leave_out()

    def _new_level(self, rule: Rule, stream: Stream, keys: Sequence[int]) -> Level:
        return Level(rule, rule.tries, stream, keys)

    @property
    def chance(self) -> float | None:
        return self.level.chance

    def leave_out(self) -> None:
        gone = self.withdrawals
        if gone.arms or gone.pauses.changes:
            self.level.leave_out({k for k, arm in enumerate(self.candidates) if gone.skips(*arm)})

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        k = self.level.pick(round_)
        self.level.take(k, True)
        return Allocation(*self.candidates[k], "play", False, True, 0), 1

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        k = self.position[allocation.agent, allocation.arm]
        self.level.add(k, coin if self.coins else ticks, allocation.place)

    def to_data(self) -> dict[str, Any]:
        return {"level": self.level.to_dict()}

    def restore(self, data: Mapping[str, Any]) -> None:
        self.level.restore(data["level"])
        self.leave_out()


class TwoLevelState(State):
    """An agent first, by all its rewards, then one of its arms."""

    agents: Level
    inner: Sequence[Level]

    def __init__(self, bandit: Bandit, setup: StateSetup) -> None:
        above, arm = bandit.rules
        self.withdrawals, registration = setup.withdrawals, setup.registration
        self.coins = above.binarise or arm.binarise
        stream, keys = substream(setup.stream, LEVELS_STREAM), registration.agent_keys
        self.agents = self._new_level(above, level_stream(stream, 0, 0), keys)
        self.inner = [
            self._new_level(arm, level_stream(stream, 0, key + 1), own)
            for key, own in zip(keys, registration.arm_keys, strict=True)
        ]
        self._last = self.inner[0]
        self.leave_out()

    def _new_level(self, rule: Rule, stream: Stream, keys: Sequence[int]) -> Level:
        return Level(rule, rule.tries, stream, keys)

    @property
    def chance(self) -> float | None:
        of_agent, of_arm = self.agents.chance, self._last.chance
        return None if of_agent is None or of_arm is None else of_agent * of_arm

    def leave_out(self) -> None:
        gone = self.withdrawals
        if not gone.arms and not gone.pauses.changes:
            return
        out = set(gone.out)
        for i, level in enumerate(self.inner):
            skipped = {arm for arm in range(len(level.keys)) if gone.skips(i, arm)}
            if len(skipped) == len(level.keys):
                out.add(i)
            elif skipped or level.gone:
                level.leave_out(skipped)
        self.agents.leave_out(out)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        agents = self.agents
        i = agents.pick(round_)
        inner = self._last = self.inner[i]
        arm = inner.pick(inner.rounds + 1)
        inner.take(arm, True)
        agents.take(i, True)
        return Allocation(i, arm, "play", True, True, 0), 1

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        agents, inner = self.agents, self.inner[allocation.agent]
        agents.add(allocation.agent, coin if agents.rule.binarise else ticks, allocation.place)
        inner.add(allocation.arm, coin if inner.rule.binarise else ticks, allocation.place)

    def to_data(self) -> dict[str, Any]:
        return {"agents": self.agents.to_dict(), "inner": [level.to_dict() for level in self.inner]}

    def restore(self, data: Mapping[str, Any]) -> None:
        self.agents.restore(data["agents"])
        for level, saved in zip(self.inner, data["inner"], strict=True):
            level.restore(saved)
        self.leave_out()
