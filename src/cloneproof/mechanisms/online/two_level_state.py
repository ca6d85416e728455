"""The state of a mechanism of two levels."""

from __future__ import annotations

import math
from typing import Any

from cloneproof._randomness import substream, word
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.level import Level, level_stream
from cloneproof.mechanisms.online.registration import Allocation, Registration, sampled
from cloneproof.mechanisms.online.slot_level import SlotLevel, agent_slots
from cloneproof.mechanisms.online.streams import CONTEST_PLACE, LEVELS_STREAM, SAMPLE_STREAM
from cloneproof.mechanisms.online.turns import WAIT, NeutralRounds
from cloneproof.mechanisms.rule import Rule


class TwoLevelState:
    """A hierarchical mechanism: an agent first, then one of its arms. Versions of its levels count from `first`.

    While agents are tried, an agent's turns come in stages of equal length, at the end of which any number of arms may
    be done with exploring: the m rounds of an arm, up to the arms that are allowed a score; or all pulls of all draws.
    A stage begins when all rewards of the agent's turns before it are in, those that count nowhere included, and a
    commitment to an agent when those of all turns of all agents are. Until then rounds are neutral and no part of the
    timetable, which therefore does not depend on what was registered. In its own turns an agent with too many arms, or
    the winner of an award, waits on uniform draws from its arms (docs/textbook/delays.md).
    """

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
                lots = substream(stream, SAMPLE_STREAM, registration.agent_keys[len(self.arms)])
                kept = sampled(kept, mechanism.sample.kept(count, horizon, lots), lots)
            self.arms.append([arm for _, arm in kept])
        self.position = [{arm: k for k, arm in enumerate(kept)} for kept in self.arms]
        self.agents = Level(
            mechanism.agent, mechanism.agent.explore, level_stream(self.stream, first, 0), registration.agent_keys
        )
        self.inner: list[Level | SlotLevel] = self._inner()
        self._last = self.inner[0]
        self.neutral = NeutralRounds(registration, stream)
        self.outstanding = [0] * len(self.inner)  # rewards of each agent that a next phase waits for
        self._read_score(mechanism.agent)
        self._read_stages(mechanism.agent, mechanism.arm)

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

    def _read_stages(self, agent: Rule, arm: Rule) -> None:
        """How many turns of an agent make a stage, and after how many the last one ends that has a next one."""
        self.stage = self.last_stage = 0
        if arm.commits:
            self.stage = arm.explore * (arm.draws or 1)
            most = self.mechanism.scoring.max_arms or agent.explore // self.stage
            self.last_stage = min((1 if arm.draws else most) * self.stage, agent.explore)

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
        commits, tried = agents.rule.commits, agents.exploring
        if not tried and commits and agents.choice is None and any(self.outstanding):
            return self._waiting_round()
        i = agents.pick(round_)
        turn = agents.decided[i]
        if tried and self.outstanding[i] and turn <= self.last_stage and turn % self.stage == 0:
            return self._waiting_round()
        if self.clears and self.version == self.first and not tried:
            self.version += 1
            self.inner = self._inner()
        inner = self._last = self.inner[i]
        awaited = tried and (commits or turn < self.last_stage)
        self.outstanding[i] += awaited
        a = inner.pick(inner.rounds + 1)
        if a == WAIT:
            agents.take(i, False)
            arm, inner.chance = self.neutral.arm(i)
            return Allocation(i, arm, "waiting", False, False, self.version, awaited=awaited)
        agent_counts = (not commits or agents.choice is None) and self._scores(i)
        arm_counts = inner.counts(a)
        inner.take(a, arm_counts)
        agents.take(i, agent_counts)
        trial = self.version == self.first and agents.choice is None
        phase = "play" if not self.staged else "trial" if trial else "award"
        slot = a if inner.rule.draws else -1
        return Allocation(i, self.arms[i][a], phase, agent_counts, arm_counts, self.version, slot, awaited)

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
        i, arm, chance = self.neutral.turn()
        self._last, self._last.chance, self.agents.chance = self.inner[i], chance, 1.0
        return Allocation(i, arm, "waiting", False, False, self.version)

    def place(self, allocation: Allocation) -> tuple[int, int]:
        if allocation.arm_counts:
            return 1 + allocation.slot, self.inner[allocation.agent].decided[allocation.slot]
        return CONTEST_PLACE, self.agents.judged[allocation.agent]

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.awaited:
            self.outstanding[allocation.agent] -= 1
        if allocation.agent_counts:
            self.agents.add(allocation.agent, coin if self.agents.rule.binarise else ticks)
        if allocation.arm_counts and allocation.version == self.version:
            inner, slot = self.inner[allocation.agent], allocation.slot
            a = self.position[allocation.agent][allocation.arm] if slot < 0 else slot
            inner.add(a, coin if inner.rule.binarise else ticks)

    def to_dict(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "agents": self.agents.to_dict(),
            "inner": [level.to_dict() for level in self.inner],
            "neutral": self.neutral.to_data(),
            "outstanding": self.outstanding,
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.version = state["version"]
        self.agents.restore(state["agents"])
        self.inner = self._inner()
        for level, saved in zip(self.inner, state["inner"], strict=True):
            level.restore(saved)
        self.neutral.restore(state.get("neutral", (0, 0)))
        self.outstanding = list(state.get("outstanding", self.outstanding))
