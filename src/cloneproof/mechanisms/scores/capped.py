"""Every reward counts, as in the paper, but an agent with too many arms has no score."""

from __future__ import annotations

from dataclasses import dataclass, field

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.part import Score
from cloneproof.mechanisms.rule import Rule, rounds_number


@dataclass(frozen=True)
class Capped(Score):
    """Average of all rewards; an agent with more than `max_arms` arms has no score.

    With at most floor(M/m) arms, a trial of M rounds explores each arm for m rounds.

    Parameters
    ----------
    max_arms : int
        The arms up to which an agent has a score.

    References
    ----------
    docs/textbook/capped-h-etc-r.md.
    """

    max_arms: int = field()

    name = "capped"

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_arms", rounds_number(self.max_arms, "the arms that a capped score allows"))

    def check(self, agent: Rule | None, arm: Rule) -> None:
        if agent is None:
            raise MechanismError(
                "a Capped score expects agents above arms, got a flat mechanism, which compares no agents; "
                "give a rule for agents"
            )

    @property
    def words(self) -> str:
        return f"no score above {self.max_arms} arms"
