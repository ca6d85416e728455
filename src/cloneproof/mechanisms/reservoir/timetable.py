"""State of slots of all agents that are shown by rank, and what its states share: withdrawals and waiting rounds.

If slots are tested, ties follow a timetable: first draws of all agents, then second draws of all, and so on. The order
of the agents is drawn at the start; who joins comes after them, with first draws in the pass that runs. Late rewards
delay nothing until every draw has been pulled; after that, rounds are neutral. Else ties follow a drawn order.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from cloneproof._lib.randomness import substream, word
from cloneproof.mechanisms.bandits.levels import level_stream
from cloneproof.mechanisms.neutral import NeutralRounds
from cloneproof.mechanisms.registration import Allocation, Registration, Withdrawals
from cloneproof.mechanisms.reservoir import rank
from cloneproof.mechanisms.reservoir.rank import WAIT, SlotLevel, drawn_order, timetable
from cloneproof.mechanisms.state import State, StateSetup
from cloneproof.mechanisms.streams import COIN_STREAM, LEVELS_STREAM, ORDER_STREAM, TIE_STREAM

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.reservoirs import Reservoir


def known_chance(chance: float | None, withdrawals: Withdrawals) -> float | None:
    """Return the chance of an allocation where it has a formula.

    Slots that open after a withdrawal have none, and slots after a pause: the order of those that it skipped is hidden.
    """
    return None if (chance != 1.0 and withdrawals.arms) or withdrawals.pauses.changes else chance


class SlotState(State):
    """Slots of all agents: `places` has the agent and the draw of each, `candidates` the agent and the arm."""

    def __init__(self, mechanism: Reservoir, setup: StateSetup) -> None:
        self.rule, self.withdrawals, registration = mechanism.arm, setup.withdrawals, setup.registration
        self.withdrawals.slots = True
        self.coins, self.scans = self.rule.binarise, self.rule.commits
        stream, self.draws = (substream(one, LEVELS_STREAM) for one in (setup.stream, setup.slots))
        self.neutral = NeutralRounds(registration, setup.stream, setup.withdrawals)
        self.ending: Collection[int] = frozenset()  # slots that hold a withdrawn arm
        self.lots, keys = level_stream(stream, 0, 0), registration.agent_keys
        self.order = sorted(range(registration.first), key=lambda i: word(substream(self.lots, ORDER_STREAM), keys[i]))
        self.slots: list[list[int]] = []  # the arms that the slots of each agent hold
        self.level = SlotLevel(self.rule, substream(self.lots, COIN_STREAM))
        self._seat(registration, 0)
        self.leave_out()

    def _seat(self, registration: Registration, new: int) -> None:
        """Draw for agents that are new, those from number `new` on, and seat all slots."""
        keys = registration.agent_keys
        self.slots += [
            rank.agent_slots(self.rule, level_stream(self.draws, 0, keys[i] + 1), registration.pools[i])
            for i in range(new, len(keys))
        ]
        self.starts = [0] * registration.first + [start or 0 for start in registration.joined]  # passes of first slots
        if self.scans:
            self.places = timetable(self.rule.draws, self.order, registration.joined)
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
    def chance(self) -> float | None:
        return known_chance(self.level.chance, self.withdrawals)

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
        self.neutral.join(registration)
        self._seat(registration, len(self.slots))
        self.leave_out()

    def leave_out(self) -> None:
        gone = self.withdrawals
        if gone.arms or gone.pauses.changes:
            places = range(len(self.candidates))
            self.level.leave_out({k for k in places if gone.skips(*self.candidates[k])})
            self.ending = {k for k in places if gone.ends(*self.candidates[k])}

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        level, k = self.level, self._pick()
        while k in self.ending:
            self.withdrawals.out.add(self.candidates[k][0])
            self.leave_out()
            k = self._pick()
        if k == WAIT:
            agent, arm, level.chance = self.neutral.turn()
            return Allocation(agent, arm, "waiting", False, False, 0), 1
        counts = level.counts(k)
        phase = "play" if not self.scans else "trial" if level.choice is None else "award"
        level.take(k, counts)
        allocation = Allocation(*self.candidates[k], phase, False, counts, 0, k)
        if most == 1 or self.level.chance != 1.0:
            return allocation, 1
        more = int(min(most - 1, level.sure_rounds(k)))
        if more:
            level.repeat(k, more)
        return allocation, 1 + more

    def _pick(self) -> int:
        """Return the slot of a round; neutral rounds go on with the other arms if only those paused are drawn."""
        rests = self.withdrawals.pauses.arms and len(self.level.gone) == len(self.candidates)
        return WAIT if rests else self.level.pick()

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return 1 + self.places[allocation.slot][1], self.level.decided[allocation.slot]

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.arm_counts:
            self.level.add(allocation.slot, coin if self.coins else ticks, allocation.place)

    def to_data(self) -> dict[str, Any]:
        return {"neutral": self.neutral.to_data(), "level": self.level.to_dict()}

    def restore(self, data: Mapping[str, Any]) -> None:
        self.neutral.restore(data["neutral"])
        self.level.restore(data["level"])
        self.leave_out()
