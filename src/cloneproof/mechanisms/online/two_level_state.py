"""The state of a mechanism of two levels."""

from __future__ import annotations

import math
from typing import Any

from cloneproof._randomness import substream, word
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.exploration import WAIT
from cloneproof.mechanisms.online.level import Level, level_stream
from cloneproof.mechanisms.online.registration import Allocation, Registration, sampled
from cloneproof.mechanisms.online.slot_level import SlotLevel, agent_slots, waiting_arm
from cloneproof.mechanisms.online.streams import CONTEST_PLACE, LEVELS_STREAM, SAMPLE_STREAM
from cloneproof.mechanisms.rule import Rule


class TwoLevelState:
    """A hierarchical mechanism: an agent first, then one of its arms. Versions of its levels count from `first`."""

    def __init__(
        self, mechanism: Mechanism, registration: Registration, horizon: int, stream: int, first: int = 0
    ) -> None:
        assert mechanism.agent is not None
        self.mechanism, self.stream, self.registration = mechanism, word(stream, LEVELS_STREAM), registration
        self.clears = mechanism.clearing.at_award
        self.staged = mechanism.agent.commits or self.clears
        self.version = self.first = first
        self.arms: list[list[int]] = []
        for count, keys in zip(registration.arms, registration.arm_keys, strict=True):
            kept: list[tuple[Any, ...]] = [(keys[arm], arm) for arm in range(count)]
            if mechanism.sample is not None:
                agent_key = registration.agent_keys[len(self.arms)]
                kept = sampled(kept, mechanism.sample.size(horizon), substream(stream, SAMPLE_STREAM, agent_key))
            self.arms.append([arm for _, arm in kept])
        self.position = [{arm: k for k, arm in enumerate(kept)} for kept in self.arms]
        self.agents = Level(
            mechanism.agent, mechanism.agent.explore, level_stream(self.stream, first, 0), registration.agent_keys
        )
        self.inner: list[Level | SlotLevel] = self._inner()
        self._last = self.inner[0]
        self._read_score(mechanism.agent)

    @property
    def chance(self) -> float | None:
        of_agent, of_arm = self.agents.chance, self._last.chance
        return None if of_agent is None or of_arm is None else of_agent * of_arm

    def _read_score(self, rule: Rule) -> None:
        """What of the score's declaration is asked for in every round, by agent."""
        score, explore = self.mechanism.scoring, self.mechanism.arm.explore
        rewards = math.inf if score.rounds is None else score.rounds
        self.counts_all, self.fresh = score.counts_all, score.fresh
        self.most = [rewards if score.allows(arms) else 0 for arms in self.registration.arms]
        self.skipped = [score.skipped_rounds(len(kept), explore, rule.commits) for kept in self.arms]

    def _inner(self) -> list[Level | SlotLevel]:
        if self.mechanism.arm.draws:
            return self._inner_slots()
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

    def _inner_slots(self) -> list[Level | SlotLevel]:
        """Levels whose candidates are draws from an agent's arms; a rule that does not commit picks among them."""
        rule, registration = self.mechanism.arm, self.registration
        levels: list[Level | SlotLevel] = []
        for i, keys in enumerate(registration.arm_keys):
            stream = level_stream(self.stream, self.version, registration.agent_keys[i] + 1)
            self.arms[i] = agent_slots(rule, stream, keys)
            if rule.commits:
                levels.append(SlotLevel(rule, self.arms[i], [1 / len(keys)] * len(self.arms[i])))
            else:
                levels.append(Level(rule, rule.explore, stream, range(rule.draws)))
        return levels

    def next(self, round_: int) -> Allocation:
        agents = self.agents
        commits = agents.rule.commits
        i = agents.pick(round_)
        if i == WAIT:
            return self._waiting_round()
        if self.clears and self.version == self.first and not agents.exploring:
            self.version += 1
            self.inner = self._inner()
        inner = self._last = self.inner[i]
        a = inner.pick(inner.rounds + 1)
        if a == WAIT:
            agents.rounds += 1  # counted in no comparison, but the next choice of an agent takes fresh dice
            return Allocation(i, self._waiting_arm(i), "waiting", False, False, self.version)
        agent_counts = (not commits or agents.choice is None) and self._scores(i)
        arm_counts = inner.counts(a)
        inner.take(a, arm_counts)
        agents.take(i, agent_counts)
        if inner.blocked:  # while one agent's commitment waits, the trials of others go first
            agents.queue.park(i)
        trial = self.version == self.first and agents.choice is None
        phase = "play" if not self.staged else "trial" if trial else "award"
        slot = a if inner.rule.draws else -1
        return Allocation(i, self.arms[i][a], phase, agent_counts, arm_counts, self.version, slot)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        allocation, agents, inner = self.next(round_), self.agents, self._last
        if agents.choice is None or inner.choice is None or self.chance != 1.0:
            return allocation, 1
        agents.repeat(agents.choice, most - 1)
        inner.repeat(inner.choice, most - 1)
        return allocation, most

    def _scores(self, i: int) -> bool:
        """Whether the reward of this round counts towards the score of agent i, if scores are still counted."""
        if self.counts_all:
            return True
        agents = self.agents
        if agents.judged[i] >= self.most[i] or agents.decided[i] < self.skipped[i]:
            return False
        return not self.fresh or self.inner[i].choice is not None

    def _waiting_round(self) -> Allocation:
        agents = self.agents
        waiting = [
            k
            for k, inner in enumerate(self.inner)
            if inner.blocked or (agents.rule.commits and agents.judged[k] > agents.arrived[k])
        ]
        i = agents.wait(waiting)
        self._last = self.inner[i]
        return Allocation(i, self._waiting_arm(i), "waiting", False, False, self.version)

    def _waiting_arm(self, i: int) -> int:
        """An arm of agent i for a waiting round: its arms in turn, or a uniform draw where its candidates are slots."""
        inner = self.inner[i]
        if isinstance(inner, Level):
            return self.arms[i][inner.wait(range(len(inner.keys)))]
        keys = self.registration.arm_keys[i]
        stream = level_stream(self.stream, self.version, self.registration.agent_keys[i] + 1)
        inner.waits += 1
        inner.chance = 1 / len(keys)
        return waiting_arm(stream, inner.waits, keys)

    def place(self, allocation: Allocation) -> tuple[int, int]:
        if allocation.arm_counts:
            return 1 + allocation.slot, self.inner[allocation.agent].decided[allocation.slot]
        return CONTEST_PLACE, self.agents.judged[allocation.agent]

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.agent_counts:
            self.agents.add(allocation.agent, coin if self.agents.rule.binarise else ticks)
        if allocation.arm_counts and allocation.version == self.version:
            inner, slot = self.inner[allocation.agent], allocation.slot
            a = self.position[allocation.agent][allocation.arm] if slot < 0 else slot
            inner.add(a, coin if inner.rule.binarise else ticks)
            if not inner.blocked:
                self.agents.queue.release(allocation.agent)

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
                self.agents.queue.park(i)
