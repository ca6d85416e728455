"""A score on fresh rewards: rewards that chose an arm do not judge it."""

from __future__ import annotations

from dataclasses import dataclass, field

from cloneproof.mechanisms.part import Score
from cloneproof.mechanisms.rule import rounds_number


@dataclass(frozen=True)
class HoldOut(Score):
    """An agent's score counts the first `rounds` rewards after its commitment; above `max_arms` arms it has none.

    If the rule for agents does not commit, counting starts after max_arms * m rounds of the agent, however few arms it
    has. An index favours agents with few rewards, and copies would otherwise reduce their number.

    Parameters
    ----------
    rounds : int
        W, the fresh rewards that count.
    max_arms : int
        K, the arms up to which an agent has a score.

    References
    ----------
    docs/textbook/hold-out.md.
    """

    rounds: int = field()
    max_arms: int = field()

    name = "hold-out"
    fresh = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", rounds_number(self.rounds, "the rounds of a hold-out score"))
        object.__setattr__(self, "max_arms", rounds_number(self.max_arms, "the arms that a hold-out score allows"))

    def skipped_rounds(self, arms: int, arm_rounds: int, commits: bool) -> int:
        return 0 if commits else self.max_arms * arm_rounds

    @property
    def words(self) -> str:
        return f"score on {self.rounds} fresh rewards"
