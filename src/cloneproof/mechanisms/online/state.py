"""The machine that runs every mechanism: one level over all arms, or an agent's level above one level for each agent.

A decision is a `Slot`; its reward comes back with the slot, at any later time. A committing level judges a candidate
on the rewards of the decisions that explored it, never on the first ones to arrive. While an agent's commitment waits
for rewards, other agents' trials go first; where everything waits, waiting rounds go round-robin over the waiting
agents and their arms, count in no comparison, and lengthen the trial.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from cloneproof._randomness import substream, word
from cloneproof.bounds import doubling_epoch
from cloneproof.mechanisms.holdout import epoch_mechanism
from cloneproof.mechanisms.mechanism import Doubling, HoldOut, HoldOutEpochs, Mechanism
from cloneproof.mechanisms.online.level import WAIT, Level, level_stream
from cloneproof.mechanisms.online.streams import LEVELS_STREAM, SAMPLE_STREAM


@dataclass(frozen=True)
class Registration:
    """What a mechanism may know: who registered how many arms. Keys name agents and arms to the random numbers."""

    names: tuple[str, ...]
    arms: tuple[int, ...]
    agent_keys: tuple[int, ...]
    arm_keys: tuple[tuple[int, ...], ...]


class Allocation(NamedTuple):
    """A decision as the machine remembers it: whom it served, and on which levels its reward counts."""

    agent: int
    arm: int
    phase: str
    agent_counts: bool
    arm_counts: bool
    version: int


class MechanismState(Protocol):
    """What a session needs of a running mechanism."""

    @property
    def chance(self) -> float | None:
        """The probability of the last slot, given everything before it; None where the rule's dice have no formula."""

    def next(self, round_: int) -> Allocation:
        """Decide round `round_`, counted from 1."""

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        """Decide round `round_` and those after it that cannot be decided otherwise, `most` in all; how many."""

    def add(self, slot: Allocation, ticks: int, coin: int) -> None:
        """Enter the reward of a slot, in ticks, and the coin that stands for it where a rule binarises."""

    def to_dict(self) -> dict[str, Any]:
        """The whole state."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""


def initial_state(mechanism: Mechanism, registration: Registration, horizon: int, stream: int) -> MechanismState:
    """A fresh machine for the mechanism that runs over this horizon."""
    running = mechanism.facing(len(registration.names), horizon)
    if isinstance(running.restart, HoldOutEpochs):
        return EpochState(running, registration, horizon, stream)
    kind = OneLevelState if running.agent is None else TwoLevelState
    return kind(running, registration, horizon, stream)


class OneLevelState:
    """A flat mechanism: the arms of all agents side by side."""

    def __init__(self, mechanism: Mechanism, registration: Registration, horizon: int, stream: int) -> None:
        self.mechanism, self.stream = mechanism, word(stream, LEVELS_STREAM)
        arms = [
            ((registration.agent_keys[agent] << 32) + registration.arm_keys[agent][arm], agent, arm)
            for agent in range(len(registration.names))
            for arm in range(registration.arms[agent])
        ]
        if mechanism.sample is not None:
            arms = _sampled(arms, mechanism.sample.size(horizon), word(stream, SAMPLE_STREAM))
        self.arms = [(agent, arm) for _, agent, arm in arms]
        self.position = {arm: k for k, arm in enumerate(self.arms)}
        self.keys = [key for key, _, _ in arms]
        self.version = 0
        self.level = self._level()

    @property
    def chance(self) -> float | None:
        return self.level.chance

    def _level(self) -> Level:
        restart = self.mechanism.restart
        if isinstance(restart, Doubling):
            explore = restart.arm_rounds(max(1, self.version))
        else:
            explore = self.mechanism.arm.explore
        return Level(self.mechanism.arm, explore, level_stream(self.stream, self.version, 0), self.keys)

    def next(self, round_: int) -> Allocation:
        restart = self.mechanism.restart
        if isinstance(restart, Doubling) and restart.epoch(round_) != self.version:
            self.version = restart.epoch(round_)
            self.level = self._level()
        level = self.level
        k = level.pick(round_)
        if k == WAIT:
            k = level.wait(range(len(self.arms)))
            return Allocation(*self.arms[k], "waiting", False, False, self.version)
        counts = not level.rule.commits or level.decided[k] < level.explore
        level.take(k, counts)
        return Allocation(*self.arms[k], "play", False, counts, self.version)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        slot, level = self.next(round_), self.level
        if level.choice is None or level.chance != 1.0 or self.mechanism.restart is not None:
            return slot, 1  # a tie is broken in one round and not in the next
        level.repeat(level.choice, most - 1)
        return slot, most

    def add(self, slot: Allocation, ticks: int, coin: int) -> None:
        if slot.arm_counts and slot.version == self.version:
            self.level.add(self.position[slot.agent, slot.arm], coin if self.level.rule.binarise else ticks)

    def to_dict(self) -> dict[str, Any]:
        return {"version": self.version, "level": self.level.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.version = state["version"]
        self.level = self._level()
        self.level.restore(state["level"])


class TwoLevelState:
    """A hierarchical mechanism: an agent first, then one of its arms. Versions of its levels count from `first`."""

    def __init__(
        self, mechanism: Mechanism, registration: Registration, horizon: int, stream: int, first: int = 0
    ) -> None:
        assert mechanism.agent is not None
        self.mechanism, self.stream, self.registration = mechanism, word(stream, LEVELS_STREAM), registration
        self.staged = mechanism.agent.commits or mechanism.restart == "award"
        self.version = self.first = first
        self.arms: list[list[int]] = []
        for count, keys in zip(registration.arms, registration.arm_keys, strict=True):
            kept = [(keys[arm], arm) for arm in range(count)]
            if mechanism.sample is not None:
                agent_key = registration.agent_keys[len(self.arms)]
                kept = _sampled(kept, mechanism.sample.size(horizon), substream(stream, SAMPLE_STREAM, agent_key))
            self.arms.append([arm for _, arm in kept])
        self.position = [{arm: k for k, arm in enumerate(kept)} for kept in self.arms]
        self.agents = Level(
            mechanism.agent, mechanism.agent.explore, level_stream(self.stream, first, 0), registration.agent_keys
        )
        self.inner = self._inner()
        self._last = self.inner[0]

    @property
    def chance(self) -> float | None:
        of_agent, of_arm = self.agents.chance, self._last.chance
        return None if of_agent is None or of_arm is None else of_agent * of_arm

    def _inner(self) -> list[Level]:
        arm, agent_keys, arm_keys = self.mechanism.arm, self.registration.agent_keys, self.registration.arm_keys
        return [
            Level(
                arm,
                arm.explore,
                level_stream(self.stream, self.version, agent_keys[i] + 1),
                [arm_keys[i][a] for a in kept],
            )
            for i, kept in enumerate(self.arms)
        ]

    def next(self, round_: int) -> Allocation:
        agents = self.agents
        commits = agents.rule.commits
        i = agents.pick(round_)
        if i == WAIT:
            return self._waiting_round()
        if self.version == self.first and self.mechanism.restart == "award" and not agents.exploring:
            self.version += 1
            self.inner = self._inner()
        inner = self._last = self.inner[i]
        a = inner.pick(inner.rounds + 1)
        if a == WAIT:
            a = inner.wait(range(len(inner.keys)))
            agents.rounds += 1  # counted in no comparison, but the next choice of an agent takes fresh dice
            return Allocation(i, self.arms[i][a], "waiting", False, False, self.version)
        agent_counts = (not commits or agents.choice is None) and self._scores(i)
        arm_counts = not inner.rule.commits or inner.decided[a] < inner.explore
        inner.take(a, arm_counts)
        agents.take(i, agent_counts)
        if inner.blocked:  # while one agent's commitment waits, the trials of others go first
            agents.park(i)
        trial = self.version == self.first and agents.choice is None
        phase = "play" if not self.staged else "trial" if trial else "award"
        return Allocation(i, self.arms[i][a], phase, agent_counts, arm_counts, self.version)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        slot, agents, inner = self.next(round_), self.agents, self._last
        if agents.choice is None or inner.choice is None or self.chance != 1.0:
            return slot, 1
        agents.repeat(agents.choice, most - 1)
        inner.repeat(inner.choice, most - 1)
        return slot, most

    def _scores(self, i: int) -> bool:
        """Whether the reward of this round counts towards the score of agent i, if scores are still counted."""
        score = self.mechanism.score
        if not isinstance(score, HoldOut):
            return True
        if not self.agents.rule.commits and self.agents.decided[i] < score.max_arms * self.mechanism.arm.explore:
            return False  # an index rewards having few rewards: everybody's count starts in the same round
        fresh = self.inner[i].choice is not None and self.agents.judged[i] < score.rounds
        return fresh and self.registration.arms[i] <= score.max_arms

    def _waiting_round(self) -> Allocation:
        agents = self.agents
        waiting = [
            k
            for k, inner in enumerate(self.inner)
            if inner.blocked or (agents.rule.commits and agents.judged[k] > agents.arrived[k])
        ]
        i = agents.wait(waiting)
        inner = self._last = self.inner[i]
        a = inner.wait(range(len(inner.keys)))
        return Allocation(i, self.arms[i][a], "waiting", False, False, self.version)

    def add(self, slot: Allocation, ticks: int, coin: int) -> None:
        if slot.agent_counts:
            self.agents.add(slot.agent, coin if self.agents.rule.binarise else ticks)
        if slot.arm_counts and slot.version == self.version:
            inner = self.inner[slot.agent]
            inner.add(self.position[slot.agent][slot.arm], coin if inner.rule.binarise else ticks)
            if inner.missing == 0:
                self.agents.release(slot.agent)

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "agents": self.agents.to_dict(),
            "inner": [level.to_dict() for level in self.inner],
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.version = state["version"]
        self.agents.restore(state["agents"])
        self.inner = self._inner()
        for i, (level, saved) in enumerate(zip(self.inner, state["inner"], strict=True)):
            level.restore(saved)
            if level.blocked:
                self.agents.park(i)


class EpochState:
    """Hold-out mechanisms one after the other, each with its own statistics; rewards of past epochs count nowhere."""

    def __init__(self, mechanism: Mechanism, registration: Registration, horizon: int, stream: int) -> None:
        self.mechanism, self.registration, self.horizon, self.stream = mechanism, registration, horizon, stream
        self._start(1)

    @property
    def chance(self) -> float | None:
        return self.running.chance

    def _start(self, epoch: int) -> None:
        self.epoch = epoch
        running = epoch_mechanism(self.mechanism, epoch, len(self.registration.names))
        self.running = TwoLevelState(running, self.registration, self.horizon, self.stream, 2 * epoch)

    def next(self, round_: int) -> Allocation:
        if doubling_epoch(round_) != self.epoch:
            self._start(doubling_epoch(round_))
        return self.running.next(round_)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        return self.next(round_), 1  # an epoch may end at any round

    def add(self, slot: Allocation, ticks: int, coin: int) -> None:
        if slot.version // 2 == self.epoch:
            self.running.add(slot, ticks, coin)

    def to_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "running": self.running.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self._start(state["epoch"])
        self.running.restore(state["running"])


def _sampled(items: list[Any], size: int, stream: int) -> list[Any]:
    """A uniform sample without replacement of (key, ..) items that travels with the keys, in the given order."""
    ranks = sorted(range(len(items)), key=lambda number: word(stream, items[number][0]))
    return [items[number] for number in sorted(ranks[:size])]
