"""Decisions and their rewards as a session tells them, and the history of all of them that it keeps."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Decision(NamedTuple):
    """Whom to serve this round.

    Attributes
    ----------
    id : int
        The round, from 1; a reward names it.
    agent : str
        Whose arm.
    arm : int
        Which of its arms, from 0.
    phase : {"trial", "award", "waiting", "play"}
        "trial" or "award" where agents are first tried and one is then chosen, "waiting" where a commitment waits for
        rewards, and "play" otherwise.
    slot : int
        The number of the draw that is played, where the mechanism draws from arms; else -1.
    """

    id: int
    agent: str
    arm: int
    phase: str
    slot: int = -1


class SessionEntry(NamedTuple):
    """A line of the ledger: the reward of a decision and what its owner was paid."""

    id: int
    agent: str
    arm: int
    reward: float
    paid: float


class SessionHistory:
    """Every decision with its reward, in columns: 24 bytes each."""

    def __init__(self) -> None:
        self._agent_of, self._arm_of, self._value_of = array("q"), array("q"), array("d")

    def add(self, agent: int, arm: int, count: int) -> None:
        """So many decisions for the same arm, which await their rewards."""
        self._agent_of.extend([agent] * count)
        self._arm_of.extend([arm] * count)
        self._value_of.extend([math.nan] * count)

    def enter(self, decision: int, value: float) -> None:
        """The reward of a decision."""
        self._value_of[decision - 1] = value

    def value(self, decision: int) -> float:
        """The reward of a decision; not a number where it is awaited."""
        return self._value_of[decision - 1]

    def entries(self, names: Sequence[str], share: float) -> Iterator[SessionEntry]:
        """The ledger: every reward that has arrived, by decision."""
        lines = enumerate(zip(self._agent_of, self._arm_of, self._value_of, strict=True), start=1)
        for number, (agent, arm, value) in lines:
            if value == value:
                yield SessionEntry(number, names[agent], arm, value, share * value)

    def to_data(self) -> dict[str, Any]:
        """The columns of a session file."""
        return {
            "agent_of": self._agent_of.tolist(),
            "arm_of": self._arm_of.tolist(),
            "value_of": [None if math.isnan(value) else value for value in self._value_of],
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> SessionHistory:
        """The history from those columns."""
        made = cls()
        made._agent_of, made._arm_of = array("q", data["agent_of"]), array("q", data["arm_of"])
        made._value_of = array("d", [math.nan if value is None else value for value in data["value_of"]])
        return made
