"""The state of a running mechanism: one level over all arms, or an agents' level above one level for each agent.

A decision is an `Allocation`; its reward comes back with the allocation, at any later time. A committing level judges a
candidate on the rewards of the decisions that explored it, never on the first ones to arrive. Where it has to wait for
them, rounds are neutral (`waiting`): all agents share them, whoever is late, and they count in no comparison. A level
that does not commit decides on what has arrived, and never waits.
"""

from __future__ import annotations

from typing import Any, Protocol

from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.epoch_state import EpochState, level_state
from cloneproof.mechanisms.online.registration import Allocation, Registration


class MechanismState(Protocol):
    """What a session needs of a running mechanism."""

    @property
    def chance(self) -> float | None:
        """The probability of the last allocation given everything before it; None where the dice have no formula."""

    def next(self, round_: int) -> Allocation:
        """Decide round `round_`, counted from 1."""

    def next_run(self, round_: int, most: int) -> tuple[Allocation, int]:
        """Decide round `round_` and those after it that cannot be decided otherwise, `most` in all; how many."""

    def place(self, allocation: Allocation) -> tuple[int, int]:
        """Where the last allocation counts, if arms are drawn from: a draw from 1, or the contest; and pulls there."""

    def add(self, allocation: Allocation, ticks: int, coin: int) -> None:
        """Enter the reward of an allocation, in ticks, and the coin that stands for it where a rule binarises."""

    def to_dict(self) -> dict[str, Any]:
        """The whole state."""

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""


def initial_state(mechanism: Mechanism, registration: Registration, horizon: int, stream: int) -> MechanismState:
    """The state before the first round of the mechanism that runs over this horizon."""
    running = mechanism.at_horizon(len(registration.names), horizon)
    if running.clearing.planned_epochs:
        return EpochState(running, registration, horizon, stream)
    return level_state(running)(running, registration, horizon, stream)
