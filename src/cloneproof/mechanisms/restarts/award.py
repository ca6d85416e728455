"""Arm statistics are cleared when the agents' exploration is over, as in H-ETC-R."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.part import Restart


@dataclass(frozen=True)
class Award(Restart):
    """Give the agent with the highest score all remaining rounds, and clear the statistics of its arms."""

    name = "award"
    at_award = True

    def check(self, agent: Rule | None, arm: Rule) -> None:
        if agent is None or agent.explore == 0:
            raise MechanismError(
                "restart 'award' expects an agent rule that explores, got none; use e.g. agent=etc(80), or no restart"
            )

    def words(self, rules: str) -> str:
        return f"{rules}, restart at the award"
