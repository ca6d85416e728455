"""What a session runs: the state of its mechanism, anew in each epoch if these are planned, and uniform traffic."""

from __future__ import annotations

from typing import Any

from cloneproof._randomness import Stream, substream, uniform
from cloneproof.mechanisms.mechanism import Mechanism, epoch_mechanism
from cloneproof.mechanisms.online.laboratory import LaboratoryState
from cloneproof.mechanisms.online.levels import NeutralRounds
from cloneproof.mechanisms.online.registration import Allocation, Registration
from cloneproof.mechanisms.online.state import OneLevelState, RunningState, SlotState, StateSetup, TwoLevelState


def level_state(mechanism: Mechanism) -> type[OneLevelState | SlotState | TwoLevelState]:
    """Return the class of the state, by the structure of the mechanism."""
    if not mechanism.flat:
        return TwoLevelState
    return SlotState if mechanism.scans or (mechanism.draws and mechanism.ranks_slots) else OneLevelState


class EpochState(RunningState):
    """Mechanisms one after the other, each with its own statistics; rewards of past epochs do not count.

    The levels of epoch e have the versions 2e and, after an award, 2e + 1.
    """

    def __init__(self, setup: StateSetup) -> None:
        self.setup = setup
        self._start(1)

    @property
    def chance(self) -> float | None:
        return self.running.chance

    def _start(self, epoch: int) -> None:
        mechanism = self.setup.mechanism
        self.epoch, self.end = epoch, mechanism.clearing.epoch_end(epoch)
        planned = epoch_mechanism(mechanism, epoch, len(self.setup.registration.names))
        self.running = level_state(planned)(self.setup._replace(mechanism=planned, first=2 * epoch))

    def leave_out(self) -> None:
        self.running.leave_out()

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


MechanismState = OneLevelState | SlotState | TwoLevelState | EpochState | LaboratoryState


def initial_state(setup: StateSetup) -> MechanismState:
    """Return the state before the first round of the mechanism for this horizon."""
    running = setup.mechanism.at_horizon(len(setup.registration.names), setup.horizon)
    if running.streams and running.flat:
        return LaboratoryState(setup._replace(mechanism=running))
    made = EpochState if running.in_epochs else level_state(running)
    return made(setup._replace(mechanism=running))


class UniformTraffic(RunningState):
    """A mechanism that gets all rounds but a share, which goes to agents in turn and a draw from their arms.

    Coins choose these rounds, and no statistics count their rewards. So they are worth the average of an agent's prior,
    however many copies it registers, and the mechanism plays as it would in a shorter season.
    """

    def __init__(self, state: MechanismState, share: float, setup: StateSetup, stream: Stream) -> None:
        self.state: MechanismState = state
        self.share, self.coins = share, substream(stream, 0)
        self.draws = NeutralRounds(setup.registration, substream(stream, 1), setup.withdrawals)
        self._chance: float | None = None  # of the last round, if it was a uniform draw
        self._next = 0  # all rounds before it that are still to come are the mechanism's

    @property
    def chance(self) -> float | None:
        return self.state.chance if self._chance is None else self._chance

    @property
    def decided(self) -> bool:
        return self.state.decided

    @property
    def turn(self) -> int:
        return self.state.turn

    def join(self, registration: Registration) -> None:
        self.state.join(registration)
        self.draws.join(registration)

    def leave_out(self) -> None:
        self.state.leave_out()

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        self._next, end = max(self._next, round_), round_ + most
        while self._next < end and uniform(self.coins, self._next) >= self.share:
            self._next += 1
        if self._next == round_:
            agent, arm, self._chance = self.draws.turn()
            return Allocation(agent, arm, "uniform", False, False, 0), 1
        self._chance = None
        return self.state.next_run(round_ - self.draws.shared, min(self._next, end) - round_)

    def place(self, allocation: Allocation) -> tuple[int, int]:
        return self.state.place(allocation)

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        self.state.add(allocation, ticks, coin)

    def to_dict(self) -> dict[str, Any]:
        return {"draws": self.draws.to_data(), "state": self.state.to_dict()}

    def restore(self, state: dict[str, Any]) -> None:
        self.draws.restore(state["draws"])
        self.state.restore(state["state"])
