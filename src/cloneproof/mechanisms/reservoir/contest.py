"""State of a contest of champions: every agent finds one by tests of its own, then they compete on fresh rewards.

While agents are tried, an agent's first turns are a stage, all pulls of all its draws, and the next one begins when all
rewards of the stage are in. Rounds until then are neutral and no part of the schedule, which therefore does not depend
on what was registered (docs/textbook/delays.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cloneproof._lib.randomness import substream
from cloneproof.mechanisms.bandits.levels import Level, level_stream
from cloneproof.mechanisms.neutral import NeutralRounds
from cloneproof.mechanisms.registration import Allocation
from cloneproof.mechanisms.reservoir import rank
from cloneproof.mechanisms.reservoir.rank import WAIT, SlotLevel
from cloneproof.mechanisms.reservoir.timetable import known_chance
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.streams import CONTEST_PLACE, LEVELS_STREAM

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.reservoirs import Contest


class ContestState(State):
    """A level of agents above the slots of each.

    tests        pulls of all draws of an agent, after which its rewards count in the contest
    arms         what the slots of each agent hold
    outstanding  rewards of each agent that its contest waits for
    """

    def __init__(self, mechanism: Contest, setup: StateSetup) -> None:
        rule, above, registration = mechanism.arm, mechanism.agent, setup.registration
        self.withdrawals, self.rule, self.tests = setup.withdrawals, rule, mechanism.skipped_rounds
        self.withdrawals.slots = True
        self.coins = rule.binarise or above.binarise
        stream, draws = (substream(one, LEVELS_STREAM) for one in (setup.stream, setup.slots))
        keys = registration.agent_keys
        self.agents = Level(above, above.tries, level_stream(stream, 0, 0), keys)
        self.arms: list[list[int]] = []
        self.inner: list[SlotLevel] = []
        for i, pool in enumerate(registration.pools):
            held = rank.agent_slots(rule, level_stream(draws, 0, keys[i] + 1), pool)
            self.arms.append(held)
            self.inner.append(level := SlotLevel(rule))
            level.seat(range(len(held)), [registration.share(i, arm) / len(pool) for arm in held])
        self._last = self.inner[0]
        self.neutral = NeutralRounds(registration, setup.stream, setup.withdrawals)
        self.outstanding = [0] * len(self.inner)
        self.leave_out()

    @property
    def chance(self) -> float | None:
        of_agent, of_arm = self.agents.chance, self._last.chance
        chance = None if of_agent is None or of_arm is None else of_agent * of_arm
        return known_chance(chance, self.withdrawals)

    def leave_out(self) -> None:
        gone = self.withdrawals
        if not gone.arms and not gone.pauses.changes:
            return
        out = set(gone.out)
        for i, level in enumerate(self.inner):
            skipped = {slot for slot, arm in enumerate(self.arms[i]) if gone.skips(i, arm)}
            if len(skipped) == len(self.arms[i]):
                out.add(i)
            elif skipped or level.gone:
                level.leave_out(skipped)
        self.agents.leave_out(out)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        agents = self.agents
        while True:
            tried = agents.exploring
            if self.withdrawals.pauses.arms and len(agents.gone) == len(self.inner):
                return self._waiting_round(), 1
            i = agents.pick(round_)
            turn = agents.decided[i]
            if tried and self.outstanding[i] and turn == self.tests:
                return self._waiting_round(), 1
            inner = self._last = self.inner[i]
            slot = inner.pick()
            if slot == WAIT:
                arm, inner.chance = self.neutral.arm(i)
            else:
                arm = self.arms[i][slot]
            if not self.withdrawals.arms or not self.withdrawals.ends(i, arm):
                break
            self.withdrawals.out.add(i)
            self.leave_out()
        awaited = tried and turn < self.tests
        self.outstanding[i] += awaited
        if slot == WAIT:
            agents.take(i, False)
            return Allocation(i, arm, "waiting", False, False, 0, awaited=awaited), 1
        agent_counts = turn >= self.tests and inner.choice is not None
        arm_counts = inner.counts(slot)
        inner.take(slot, arm_counts)
        agents.take(i, agent_counts)
        return Allocation(i, arm, "play", agent_counts, arm_counts, 0, slot, awaited), 1

    def _waiting_round(self) -> Allocation:
        i, arm, chance = self.neutral.turn()
        self._last, self._last.chance, self.agents.chance = self.inner[i], chance, 1.0
        return Allocation(i, arm, "waiting", False, False, 0)

    def place(self, allocation: Allocation) -> tuple[int, int]:
        if allocation.arm_counts:
            return 1 + allocation.slot, self.inner[allocation.agent].decided[allocation.slot]
        return CONTEST_PLACE, self.agents.judged[allocation.agent]

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        i = allocation.agent
        if allocation.awaited:
            self.outstanding[i] -= 1
        if allocation.agent_counts:
            self.agents.add(i, coin if self.agents.rule.binarise else ticks)
        if allocation.arm_counts:
            self.inner[i].add(allocation.slot, coin if self.rule.binarise else ticks)

    def to_data(self) -> dict[str, Any]:
        return {
            "agents": self.agents.to_dict(),
            "inner": [level.to_dict() for level in self.inner],
            "neutral": self.neutral.to_data(),
            "outstanding": self.outstanding,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        self.agents.restore(data["agents"])
        for level, saved in zip(self.inner, data["inner"], strict=True):
            level.restore(saved)
        self.neutral.restore(data["neutral"])
        self.outstanding = list(data["outstanding"])
        self.leave_out()
