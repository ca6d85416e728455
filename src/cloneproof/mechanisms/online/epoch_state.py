"""The state of a mechanism without epochs, by its structure, and of one whose epochs run mechanisms of their own."""

from __future__ import annotations

from typing import Any

from cloneproof.mechanisms.epochs import epoch_mechanism
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.one_level_state import OneLevelState
from cloneproof.mechanisms.online.registration import Allocation, Registration
from cloneproof.mechanisms.online.slot_state import SlotState
from cloneproof.mechanisms.online.two_level_state import TwoLevelState


def level_state(mechanism: Mechanism) -> type[OneLevelState | SlotState | TwoLevelState]:
    """The class of the state, by the structure of the mechanism."""
    if mechanism.agent is not None:
        return TwoLevelState
    return SlotState if mechanism.arm.draws and mechanism.arm.commits else OneLevelState


class EpochState:
    """Mechanisms one after the other, each with its own statistics; rewards of past epochs count nowhere.

    The levels of epoch e have the versions 2e and, after an award, 2e + 1.
    """

    def __init__(self, mechanism: Mechanism, registration: Registration, horizon: int, stream: int) -> None:
        self.mechanism, self.registration, self.horizon, self.stream = mechanism, registration, horizon, stream
        self._start(1)

    @property
    def chance(self) -> float | None:
        return self.running.chance

    def _start(self, epoch: int) -> None:
        self.epoch, self.end = epoch, self.mechanism.clearing.epoch_end(epoch)
        planned = epoch_mechanism(self.mechanism, epoch, len(self.registration.names))
        self.running = level_state(planned)(planned, self.registration, self.horizon, self.stream, 2 * epoch)

    def next(self, round_: int) -> Allocation:
        if round_ > self.end:
            self._start(self.epoch + 1)
        return self.running.next(round_)

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        return self.next(round_), 1  # an epoch may end at any round

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return self.running.place(allocation)

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        if allocation.version // 2 == self.epoch:
            self.running.add(allocation, ticks, coin)

    def to_dict(self) -> dict[str, Any]:
        return {"epoch": self.epoch, "running": self.running.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self._start(state["epoch"])
        self.running.restore(state["running"])
