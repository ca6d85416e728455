"""State of a mechanism that explores and then commits: one level over all arms, or agents above their arms.

A committing level judges a candidate by the rewards of the decisions that explored it, not by the first to arrive, and
waits for them in neutral rounds (`waiting`): all agents share them, and they count in no comparison.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from cloneproof._lib.randomness import Stream, substream
from cloneproof.mechanisms.bandits.levels import ExplorationQueue, Level, level_stream
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.neutral import NeutralRounds
from cloneproof.mechanisms.registration import Allocation
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.streams import LEVELS_STREAM

if TYPE_CHECKING:
    from cloneproof.mechanisms.committing.committing import Committing

WAIT: Final = -1  # nothing is picked, while only rewards are missing


class ExploringLevel(Level):
    """A level that explores in some order and then keeps to a choice, if its rule commits."""

    __slots__ = ()

    def __init__(self, rule: Rule, stream: Stream, keys: Sequence[int]) -> None:
        super().__init__(rule, rule.tries, stream, keys)

    def _explore_anew(self) -> None:
        self.queue = ExplorationQueue(self.rule.order, self.explore, self.decided, self._orders, self.left)

    def pick(self, clock: int) -> int:
        """Pick the candidate of the level's round `clock`, or WAIT while a commitment waits for rewards."""
        if self.choice is not None:
            self.chance = 1.0
            return self.choice
        if self.exploring or not self.rule.commits:
            return super().pick(clock)
        if self.missing:
            return WAIT
        self.choice = super().pick(clock)
        return self.choice

    def counts(self, k: int) -> bool:
        """Whether the reward of a decision for candidate k now counts towards its statistics."""
        return not self.rule.commits or self.decided[k] < self.explore


class OneExplorationState(State):
    """One level over all arms, anew in epochs that double in length, if there are any: `version` is the epoch."""

    def __init__(self, mechanism: Committing, setup: StateSetup) -> None:
        self.mechanism, self.withdrawals, self.registration = mechanism, setup.withdrawals, setup.registration
        self.stream = substream(setup.stream, LEVELS_STREAM)
        self.neutral = NeutralRounds(setup.registration, setup.stream, setup.withdrawals)
        self.candidates = [(agent, arm) for agent, arms in enumerate(self.registration.arms) for arm in range(arms)]
        self.position = {arm: k for k, arm in enumerate(self.candidates)}
        self._begin(0 if mechanism.power is None else 1)

    def _begin(self, version: int) -> None:
        """Begin an epoch, with statistics of its own; waiting rounds go on."""
        self.version, rule = version, self.mechanism.arm
        if version:
            rule = replace(rule, tries=self.mechanism.rounds_of(version))
        agents, arms = self.registration.agent_keys, self.registration.arm_keys
        keys = [(agents[agent] << 32) + arms[agent][arm] for agent, arm in self.candidates]
        self.level = ExploringLevel(rule, level_stream(self.stream, version, 0), keys)
        self.leave_out()

    @property
    def chance(self) -> float | None:
        return self.level.chance

    def leave_out(self) -> None:
        gone = self.withdrawals
        if gone.arms or gone.pauses.changes:
            self.level.leave_out({k for k, arm in enumerate(self.candidates) if gone.skips(*arm)})

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        if self.version and round_ > 1 << self.version:
            self._begin(self.version + 1)
        level = self.level
        k = level.pick(round_)
        if k == WAIT:
            agent, arm, level.chance = self.neutral.turn()
            return Allocation(agent, arm, "waiting", False, False, self.version), 1
        counts = level.counts(k)
        level.take(k, counts)
        allocation = Allocation(*self.candidates[k], "play", False, counts, self.version)
        if self.version or most == 1 or level.choice is None or level.chance != 1.0:  # an epoch may end at any round
            return allocation, 1
        level.repeat(k, most - 1)
        return allocation, most

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.arm_counts and allocation.version == self.version:
            self.level.add(self.position[allocation.agent, allocation.arm], ticks)

    def to_data(self) -> dict[str, Any]:
        return {"version": self.version, "neutral": self.neutral.to_data(), "level": self.level.to_dict()}

    def restore(self, data: Mapping[str, Any]) -> None:
        self._begin(data["version"])
        self.neutral.restore(data["neutral"])
        self.level.restore(data["level"])
        self.leave_out()


class TwoPhaseState(State):
    """Agents above their arms: uniform turns, or trials and then an award.

    While agents are tried, an agent's turns come in stages of equal length, the m rounds of an arm. A stage begins when
    all rewards of the agent's earlier turns are in, a commitment to an agent when those of all agents are. Rounds until
    then are neutral and no part of the schedule, which therefore does not depend on what was registered. The winner of
    an award waits on uniform draws from its own arms (docs/textbook/delays.md). `version` is 1 once statistics of arms
    were cleared at the award.
    """

    def __init__(self, mechanism: Committing, setup: StateSetup) -> None:
        above, arm = mechanism.rules
        self.mechanism, self.withdrawals, self.registration = mechanism, setup.withdrawals, setup.registration
        self.stream = substream(setup.stream, LEVELS_STREAM)
        self.agents = ExploringLevel(above, level_stream(self.stream, 0, 0), self.registration.agent_keys)
        self._begin(0)
        self._last = self.inner[0]
        self.neutral = NeutralRounds(setup.registration, setup.stream, setup.withdrawals)
        self.outstanding = [0] * len(self.inner)  # rewards of each agent that a next phase waits for
        self.stage = arm.tries if arm.commits else 0
        self.last_stage = above.tries // self.stage * self.stage if self.stage else 0

    def _begin(self, version: int) -> None:
        """Begin with fresh statistics of arms."""
        self.version = version
        pairs = zip(self.registration.agent_keys, self.registration.arm_keys, strict=True)
        streams = [(level_stream(self.stream, version, key + 1), own) for key, own in pairs]
        self.inner = [ExploringLevel(self.mechanism.arm, *own) for own in streams]
        self.leave_out()

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
        agents, commits = self.agents, self.agents.rule.commits
        tried = agents.exploring
        if not tried and commits and agents.choice is None and any(self.outstanding):
            return self._waiting_round(), 1
        i = agents.pick(round_)
        turn = agents.decided[i]
        if tried and self.outstanding[i] and turn <= self.last_stage and turn % self.stage == 0:
            return self._waiting_round(), 1
        if self.mechanism.clears and not self.version and not tried:
            self._begin(1)
        inner = self._last = self.inner[i]
        a = inner.pick(inner.rounds + 1)
        awaited = tried and (commits or turn < self.last_stage)
        self.outstanding[i] += awaited
        if a == WAIT:
            arm, inner.chance = self.neutral.arm(i)
            agents.take(i, False)
            return Allocation(i, arm, "waiting", False, False, self.version, awaited=awaited), 1
        agent_counts, arm_counts = not commits or agents.choice is None, inner.counts(a)
        inner.take(a, arm_counts)
        agents.take(i, agent_counts)
        phase = "trial" if not self.version and agents.choice is None else "award"
        if not commits and not self.mechanism.clears:
            phase = "play"
        allocation = Allocation(i, a, phase, agent_counts, arm_counts, self.version, awaited=awaited)
        if agents.choice is None or inner.choice is None or self.chance != 1.0:
            return allocation, 1
        agents.repeat(i, most - 1)
        inner.repeat(a, most - 1)
        return allocation, most

    def _waiting_round(self) -> Allocation:
        i, arm, chance = self.neutral.turn()
        self._last, self._last.chance, self.agents.chance = self.inner[i], chance, 1.0
        return Allocation(i, arm, "waiting", False, False, self.version)

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        i = allocation.agent
        if allocation.awaited:
            self.outstanding[i] -= 1
        if allocation.agent_counts:
            self.agents.add(i, ticks)
        if allocation.arm_counts and allocation.version == self.version:
            self.inner[i].add(allocation.arm, ticks)

    def to_data(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "agents": self.agents.to_dict(),
            "inner": [level.to_dict() for level in self.inner],
            "neutral": self.neutral.to_data(),
            "outstanding": self.outstanding,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        self._begin(data["version"])
        self.agents.restore(data["agents"])
        for level, saved in zip(self.inner, data["inner"], strict=True):
            level.restore(saved)
        self.neutral.restore(data["neutral"])
        self.outstanding = list(data["outstanding"])
        self.leave_out()
