"""State of a running mechanism: one level over all arms, or a level of agents above one level for each agent.

A decision is an `Allocation`, and its reward comes back with the allocation at any later time. A committing level
judges a candidate by the rewards of the decisions that explored it, not by the first to arrive. While it waits for
them, rounds are neutral (`waiting`): all agents share them, and they count in no comparison. A level that does not
commit uses what has arrived, and never waits.

Withdrawals (docs/textbook/reservoir.md, section 9): if arms are drawn, nothing changes until a slot that holds a
withdrawn arm is reached, that is, would be played. Then its agent is out, and the same round goes to the others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from cloneproof._lib.randomness import Stream, substream, word
from cloneproof.mechanisms.bandits.levels import WAIT, Level, NeutralRounds, level_stream
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.registration import Allocation, Registration, Withdrawals
from cloneproof.mechanisms.reservoir.rank import SlotLevel, agent_slots, drawn_order, timetable
from cloneproof.mechanisms.streams import (
    COIN_STREAM,
    CONTEST_PLACE,
    LEVELS_STREAM,
    ORDER_STREAM,
    TIE_STREAM,
)
from cloneproof.mechanisms.terms import Attention


class StateSetup(NamedTuple):
    """All that a state is made of. Versions of its levels count from `first`; `attention` is that of a page's places.

    What slots hold is drawn from `slots`, which all segments of a session share; all else comes from `stream`.
    """

    mechanism: Mechanism
    registration: Registration
    horizon: int
    stream: Stream
    slots: Stream
    withdrawals: Withdrawals
    first: int = 0
    attention: Attention = 0
    batch: int = 1


class RunningState:
    """What a session asks of every state: of those of one arm a round, of pages (`laboratory`, `ranked`), and as told.

    chance          the probability of the last allocation given everything before; None if it has no formula
    next_run        decide a round, counted from 1, and the rounds after it that no reward can change
    next_page       decide a page of several places; `chances` has the probability of each
    place           where the last allocation counts if arms are drawn: a draw from 1, or the contest; pulls there
    add             enter a reward in ticks, with the coin that stands for it if a rule binarises
    leave_out       go on without what is withdrawn or paused and who is out
    decided         whether a champion has all later rounds, so that nobody can join
    turn            the pass of slots that runs or comes next, from 0, in which an agent joins
    join            go on with more agents; asked only if the mechanism takes joiners
    is_late         where `tells_late`: whether a reward counts for nothing if it comes now
    """

    tells_late = False

    def is_late(self, allocation: Allocation) -> bool:
        return False

    @property
    def decided(self) -> bool:
        return False

    @property
    def turn(self) -> int:
        return 0

    def join(self, registration: Registration) -> None:
        raise NotImplementedError(f"{type(self).__name__} takes no joiners")

    def _new_level(self, rule: Rule, explore: int, stream: Stream, keys: Sequence[int]) -> Level:
        """Return a level of arms or agents."""
        return Level(rule, explore, stream, keys)


class FlatState(RunningState):
    """One level over the candidates of all agents. A commitment waits for the rewards of exploration in neutral rounds.

    `candidates` has the agent and the arm of each, `position` the inverse if a candidate is an arm.
    """

    level: Level | SlotLevel
    candidates: list[tuple[int, int]]
    position: Mapping[tuple[int, int], int]

    def __init__(self, setup: StateSetup) -> None:
        self.mechanism, self.version, self.withdrawals = setup.mechanism, setup.first, setup.withdrawals
        self.on_slots = setup.mechanism.draws > 0
        self.stream, self.draws = (substream(one, LEVELS_STREAM) for one in (setup.stream, setup.slots))
        self.neutral = NeutralRounds(setup.registration, setup.stream, setup.withdrawals)
        self.ending: Collection[int] = frozenset()  # slots that hold a withdrawn arm

    @property
    def chance(self) -> float | None:
        return known_chance(self.level.chance, self.withdrawals)

    def _draw(self, key: int, pool: Sequence[int]) -> list[int]:
        """Return the arms that the slots of the agent with this key hold."""
        return agent_slots(self.mechanism.arm, level_stream(self.draws, self.version, key + 1), pool)

    def join(self, registration: Registration) -> None:
        self.neutral.join(registration)

    def leave_out(self) -> None:
        gone = self.withdrawals
        if gone.arms or gone.pauses.changes:
            places = range(len(self.candidates))
            self.level.leave_out({k for k in places if gone.skips(*self.candidates[k])})
            self.ending = {k for k in places if gone.ends(*self.candidates[k])}

    def next(self, round_: int) -> Allocation:
        level = self.level
        k = self._pick(round_)
        while k in self.ending:
            self.withdrawals.out.add(self.candidates[k][0])
            self.leave_out()
            k = self._pick(round_)
        if k == WAIT:
            agent, arm, level.chance = self.neutral.turn()
            return Allocation(agent, arm, "waiting", False, False, self.version)
        counts, phase = level.counts(k), self._phase()
        level.take(k, counts)
        slot = k if self.on_slots else -1
        return Allocation(*self.candidates[k], phase, False, counts, self.version, slot)

    def _pick(self, round_: int) -> int:
        """Return the candidate of a round; neutral rounds go on with the other arms if only those paused are drawn."""
        rests = self.withdrawals.pauses.arms and len(self.level.gone) == len(self.candidates)
        return WAIT if rests else self.level.pick(round_)

    def _phase(self) -> str:
        return "play"

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        allocation, level = self.next(round_), self.level
        if most == 1 or level.chance != 1.0 or allocation.phase == "waiting":
            return allocation, 1  # a tie is broken in one round and not in the next
        k = allocation.slot if level.choice is None else level.choice
        more = int(min(most - 1, level.sure_rounds(k)))
        if more:
            level.repeat(k, more)
        return allocation, 1 + more

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.arm_counts and allocation.version == self.version:
            slot = allocation.slot
            k = self.position[allocation.agent, allocation.arm] if slot < 0 else slot
            self.level.add(k, coin if self.level.rule.binarise else ticks, allocation.place)

    def to_dict(self) -> dict[str, Any]:
        return {"version": self.version, "neutral": self.neutral.to_data(), "level": self.level.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.neutral.restore(state["neutral"])
        self.level.restore(state["level"])
        self.leave_out()


def known_chance(chance: float | None, withdrawals: Withdrawals) -> float | None:
    """Return the chance of an allocation where it has a formula.

    Slots that open after a withdrawal have none, and slots after a pause: the order of those that it skipped is hidden.
    """
    opens = chance != 1.0 and withdrawals.arms
    return None if withdrawals.slots and (opens or withdrawals.pauses.changes) else chance


class OneLevelState(FlatState):
    """A flat mechanism: the arms of all agents side by side, or slots under a rule that is not about slots."""

    level: Level

    def __init__(self, setup: StateSetup) -> None:
        super().__init__(setup)
        mechanism, registration, *_ = setup
        arms = [own for agent in range(len(registration.names)) for own in self._held(registration, agent)]
        self.candidates = [(agent, arm) for _, agent, arm in arms]
        self.position = {arm: k for k, arm in enumerate(self.candidates)}
        self.keys = [key for key, _, _ in arms]
        self.level = self._new_level(
            mechanism.arm, mechanism.arm.explore, level_stream(self.stream, self.version, 0), self.keys
        )
        self.leave_out()

    def _held(self, registration: Registration, agent: int) -> list[tuple[Any, ...]]:
        """Return the candidates of an agent, each as its key, the agent and the arm."""
        key, keys = registration.agent_keys[agent], registration.arm_keys[agent]
        held: Iterable[tuple[int, int]] = zip(keys, range(len(keys)), strict=True)
        if self.mechanism.draws:
            held = enumerate(self._draw(key, registration.pools[agent]))
        return [((key << 32) + own, agent, arm) for own, arm in held]

    def place(self, allocation: Allocation) -> tuple[int, int]:
        slot = self.keys[allocation.slot] & 0xFFFFFFFF  # of the agent
        return 1 + slot, self.level.decided[allocation.slot]


class SlotState(FlatState):
    """Slots of all agents, shown by rank.

    If they are tested, ties follow a timetable: first draws of all agents, then second draws of all, and so on. The
    order of the agents is drawn at the start; who joins comes after them, with first draws in the pass that runs. Late
    rewards delay nothing until every draw has been pulled; after that, rounds are neutral. Else ties follow a drawn
    order. The version of the level never changes.
    """

    level: SlotLevel

    def __init__(self, setup: StateSetup) -> None:
        super().__init__(setup)
        self.scans = setup.mechanism.scans
        self.lots, keys = level_stream(self.stream, setup.first, 0), setup.registration.agent_keys
        first = range(setup.registration.first)
        self.order = sorted(first, key=lambda i: word(substream(self.lots, ORDER_STREAM), keys[i]))
        self.slots: list[list[int]] = []  # the arms that the slots of each agent hold
        self.level = SlotLevel(setup.mechanism.arm, substream(self.lots, COIN_STREAM))
        self._seat(setup.registration, 0)
        self.leave_out()

    def _seat(self, registration: Registration, new: int) -> None:
        """Draw for agents that are new, those from number `new` on, and seat all slots."""
        keys = registration.agent_keys
        self.slots += [self._draw(keys[i], registration.pools[i]) for i in range(new, len(keys))]
        self.starts = [0] * registration.first + [start or 0 for start in registration.joined]  # passes of first slots
        if self.scans:
            self.places = timetable(self.mechanism.draws, self.order, registration.joined)
        else:
            self.places = [(i, draw) for i, held in enumerate(self.slots) for draw in range(len(held))]
        self.candidates = [(i, self.slots[i][draw]) for i, draw in self.places]
        kept = next((k for k, (i, _) in enumerate(self.places) if i >= new), len(self.candidates))
        named, first = [(keys[i] << 32) + draw for i, draw in self.places], sum(map(len, self.slots[: len(self.order)]))
        lots = substream(self.lots, TIE_STREAM)
        order = range(len(self.candidates)) if self.scans else drawn_order(lots, named, first)
        self.level.seat(order, self._openings(registration), named, kept)

    def _openings(self, registration: Registration) -> list[float | None]:
        """Return the chance of each slot when it is first shown; None if a hidden order decides."""
        if not self.scans:
            return [None] * len(self.places)
        left = (max(1, registration.first - k) for k in range(len(self.places)))
        pairs = zip(self.candidates, left, strict=True)
        return [registration.share(i, arm) / (len(registration.pools[i]) * agents) for (i, arm), agents in pairs]

    @property
    def decided(self) -> bool:
        return self.scans and self.level.settled

    @property
    def turn(self) -> int:
        if not self.scans:
            return 0
        k = self.level.front()
        over = k is None or not self.level.purse[k]  # but for rewards that are missing
        agent, draw = self.places[-1 if k is None or over else k]
        return self.starts[agent] + draw + over

    def join(self, registration: Registration) -> None:
        super().join(registration)
        self._seat(registration, len(self.slots))
        self.leave_out()

    def _phase(self) -> str:
        return super()._phase() if not self.scans else "trial" if self.level.choice is None else "award"

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return 1 + self.places[allocation.slot][1], self.level.decided[allocation.slot]


class TwoLevelState(RunningState):
    """A hierarchical mechanism: an agent first, then one of its arms.

    While agents are tried, an agent's turns come in stages of equal length: the m rounds of an arm, or all pulls of all
    draws. A stage begins when all rewards of the agent's earlier turns are in. A
    commitment to an agent begins when those of all agents are. Rounds until then are neutral and no part of the
    schedule, which therefore does not depend on what was registered. The winner of an award waits on uniform draws from
    its own arms (docs/textbook/delays.md).
    """

    def __init__(self, setup: StateSetup) -> None:
        mechanism, registration, _, stream, slots, withdrawals, first, *_ = setup
        above, arm = mechanism.rules
        self.withdrawals = withdrawals
        self.mechanism, self.registration, self.on_slots = mechanism, registration, mechanism.draws > 0
        self.stream, self.draws = substream(stream, LEVELS_STREAM), substream(slots, LEVELS_STREAM)
        self.clears = mechanism.clears_at_award
        self.staged = mechanism.awards
        self.version = self.first = first
        self.arms = [list(range(count)) for count in registration.arms]
        self.position = [{arm: k for k, arm in enumerate(kept)} for kept in self.arms]
        keys = registration.agent_keys
        self.agents = self._new_level(above, above.explore, level_stream(self.stream, first, 0), keys)
        self.inner: Sequence[Level | SlotLevel] = self._inner()
        self._last = self.inner[0]
        self.neutral = NeutralRounds(registration, stream, withdrawals)
        self.outstanding = [0] * len(self.inner)  # rewards of each agent that a next phase waits for
        self._read_stages(above, arm)
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
            skipped = {a for a, arm in enumerate(self.arms[i]) if gone.skips(i, arm)}
            if len(skipped) == len(self.arms[i]):
                out.add(i)
            elif skipped or level.gone:
                level.leave_out(skipped)
        self.agents.leave_out(out)

    def _read_stages(self, agent: Rule, arm: Rule) -> None:
        """Compute the turns in a stage, and the turn that ends the last stage with a successor."""
        self.stage = self.last_stage = 0
        if arm.commits:
            self.stage = arm.explore * (arm.draws or 1)
            self.last_stage = min((1 if arm.draws else agent.explore // self.stage) * self.stage, agent.explore)

    def _inner(self) -> list[Level | SlotLevel]:
        """Return the level of each agent, whose candidates are its arms or draws from them."""
        rule, registration = self.mechanism.arm, self.registration
        levels: list[Level | SlotLevel] = []
        for i, keys in enumerate(registration.arm_keys):
            stream = level_stream(self.stream, self.version, registration.agent_keys[i] + 1)
            pool = registration.pools[i]
            if rule.draws:
                slots = level_stream(self.draws, self.version, registration.agent_keys[i] + 1)
                self.arms[i] = agent_slots(rule, slots, pool)
            if rule.draws and rule.commits:
                levels.append(level := SlotLevel(rule))
                openings = [registration.share(i, arm) / len(pool) for arm in self.arms[i]]
                level.seat(range(len(openings)), openings)
            else:
                candidates = range(rule.draws) if rule.draws else [keys[a] for a in self.arms[i]]
                levels.append(self._new_level(rule, rule.explore, stream, candidates))
        return levels

    def next(self, round_: int) -> Allocation:
        agents = self.agents
        while True:
            commits, tried = agents.rule.commits, agents.exploring
            if self.withdrawals.pauses.arms and len(agents.gone) == len(self.inner):
                return self._waiting_round()
            if not tried and commits and agents.choice is None and any(self.outstanding):
                return self._waiting_round()
            i = agents.pick(round_)
            turn = agents.decided[i]
            if tried and self.outstanding[i] and turn <= self.last_stage and turn % self.stage == 0:
                return self._waiting_round()
            if self.clears and self.version == self.first and not tried:
                self.version += 1
                self.inner = self._inner()
                self.leave_out()
            inner = self._last = self.inner[i]
            a = inner.pick(inner.rounds + 1)
            if a == WAIT:
                arm, inner.chance = self.neutral.arm(i)
            else:
                arm = self.arms[i][a]
            if not self.withdrawals.arms or not self.withdrawals.ends(i, arm):
                break
            self.withdrawals.out.add(i)
            self.leave_out()
        awaited = tried and (commits or turn < self.last_stage)
        self.outstanding[i] += awaited
        if a == WAIT:
            agents.take(i, False)
            return Allocation(i, arm, "waiting", False, False, self.version, awaited=awaited)
        agent_counts = (not commits or agents.choice is None) and self._scores(i)
        arm_counts = inner.counts(a)
        inner.take(a, arm_counts)
        agents.take(i, agent_counts)
        trial = self.version == self.first and agents.choice is None
        phase = "play" if not self.staged else "trial" if trial else "award"
        slot = a if self.on_slots else -1
        return Allocation(i, arm, phase, agent_counts, arm_counts, self.version, slot, awaited)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        allocation, agents, inner = self.next(round_), self.agents, self._last
        if agents.choice is None or inner.choice is None or self.chance != 1.0:
            return allocation, 1
        agents.repeat(agents.choice, most - 1)
        inner.repeat(inner.choice, most - 1)
        return allocation, most

    def _scores(self, i: int) -> bool:
        """Whether the reward of this round counts towards the score of agent i."""
        mechanism = self.mechanism
        fresh = self.agents.decided[i] >= mechanism.skipped_rounds and self.inner[i].choice is not None
        return mechanism.counts_all or fresh

    def _waiting_round(self) -> Allocation:
        i, arm, chance = self.neutral.turn()
        self._last, self._last.chance, self.agents.chance = self.inner[i], chance, 1.0
        return Allocation(i, arm, "waiting", False, False, self.version)

    def place(self, allocation: Allocation) -> tuple[int, int]:
        if allocation.arm_counts:
            return 1 + allocation.slot, self.inner[allocation.agent].decided[allocation.slot]
        return CONTEST_PLACE, self.agents.judged[allocation.agent]

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.version < self.first:  # of a past epoch
            return
        if allocation.awaited:
            self.outstanding[allocation.agent] -= 1
        if allocation.agent_counts:
            self.agents.add(allocation.agent, coin if self.agents.rule.binarise else ticks, allocation.place)
        if allocation.arm_counts and allocation.version == self.version:
            inner, slot = self.inner[allocation.agent], allocation.slot
            a = self.position[allocation.agent][allocation.arm] if slot < 0 else slot
            inner.add(a, coin if inner.rule.binarise else ticks, allocation.place)

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
        self.neutral.restore(state["neutral"])
        self.outstanding = list(state["outstanding"])
        self.leave_out()
