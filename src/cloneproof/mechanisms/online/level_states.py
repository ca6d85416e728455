"""Which state runs a mechanism without epochs: one level of arms, a timetable of slots, or two levels."""

from __future__ import annotations

from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.one_level_state import OneLevelState
from cloneproof.mechanisms.online.slot_state import SlotState
from cloneproof.mechanisms.online.two_level_state import TwoLevelState


def level_state(mechanism: Mechanism) -> type[OneLevelState | SlotState | TwoLevelState]:
    """The class of the state, by the structure of the mechanism."""
    if mechanism.agent is not None:
        return TwoLevelState
    return SlotState if mechanism.arm.draws and mechanism.arm.commits else OneLevelState
