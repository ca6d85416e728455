"""A contest of champions: only fresh rewards count, for every agent from the same number of rounds on."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.bandits.rule import Rule, rounds_number
from cloneproof.mechanisms.part import Score


@dataclass(frozen=True)
class Champions(Score):
    """Rewards of an agent's champion count once the agent has had `after` rounds, however many arms it has.

    Earlier rewards never count, so every agent enters the contest with none.
    """

    after: int = 1

    name = "champions"
    fresh = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "after", rounds_number(self.after, "the rounds before a contest of champions"))

    @property
    def skipped_rounds(self) -> int:
        return self.after

    def check(self, agent: Rule | None, arm: Rule) -> None:
        super().check(agent, arm)
        if not arm.draws or arm.draws * arm.explore > self.after:
            raise MechanismError(
                f"a contest of champions after {self.after} rounds expects a rule for arms that draws and is done by "
                f"then, got {arm.name!r} with {arm.draws} draws of {arm.explore} pulls; use first-pass or best-of-draws"
            )
        if agent is not None and agent.explore <= self.after:
            raise MechanismError(
                f"a contest of champions expects more than {self.after} rounds of exploration for each agent, got "
                f"{agent.explore}; give the rule for agents rounds={self.after + 1}"
            )

    @property
    def words(self) -> str:
        return f"contest of champions after {self.after} rounds each"
