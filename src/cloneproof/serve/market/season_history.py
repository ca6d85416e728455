"""How a season went, in a few points: for people who look at it. Nothing is decided by it.

A point is taken every so many rounds. When there are too many, every other one is dropped and the distance at least
doubles, so a season of any length has at most `MOST_POINTS`, and not fewer than half of that after its first rounds.
"""

from __future__ import annotations

from typing import Any, Final

from cloneproof.serve.market.registry import Registry

MOST_POINTS: Final = 64
MOST_AGENTS: Final = 40  # of a market whose agents are told apart


class SeasonHistory:
    """Points of the season: time, rounds decided, paid so far, and the decisions of each agent, in order."""

    def __init__(self) -> None:
        self.step = 1
        self.points: list[list[Any]] = []

    def note(self, at: int, round_: int, registry: Registry) -> None:
        """Take a point, where it is time for one."""
        if self.points and round_ < self.points[-1][1] + self.step:
            return
        agents = registry.agents.values()
        served = [sum(arm.decisions for arm in record.arms) for record in agents] if len(agents) <= MOST_AGENTS else []
        self.points.append([at, round_, str(sum(record.balance for record in agents)), served])
        if len(self.points) > MOST_POINTS:
            self.points = self.points[1::2]
            self.step = max(2 * self.step, round_ // len(self.points))  # decisions may come many at a time

    def begin(self, at: int, registry: Registry) -> None:
        """Begin a season, with a point before its first round."""
        self.step, self.points = 1, []
        self.note(at, 0, registry)

    def to_dict(self) -> dict[str, Any]:
        """The state, for a snapshot."""
        return {"step": self.step, "points": self.points}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a state."""
        self.step, self.points = state["step"], state["points"]
