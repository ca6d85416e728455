"""The contract of a score: which of an agent's rewards count when agents are compared.

A score is a frozen dataclass in a file of `scores/`. It states its numbers, and the session, every engine, the audit
and the pages read them; none of them asks which class it is. Declare a parameter that has the name of one of these
numbers as `max_arms: int = field()`, so that it has no default.

    fresh      whether only rewards of the arm that the agent's level has committed to count, and those of its
               exploration do not; this expects agents above a rule for arms that commits
    rounds     how many rewards count at most: the first ones; None: all
    max_arms   an agent with more arms registered has no score, and ranks below every agent with one; None: no limit
"""

from __future__ import annotations

from typing import Final

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.part import MechanismPart, part_from
from cloneproof.mechanisms.rule import Rule

SCORES_PACKAGE: Final = "cloneproof.mechanisms.scores"


class Score(MechanismPart):
    """Which rewards count towards an agent's score; see the module."""

    fresh: bool = False
    rounds: int | None = None
    max_arms: int | None = None

    def skipped_rounds(self, arms: int, arm_rounds: int, commits: bool) -> int:
        """How many first rounds of an agent with so many arms never count, besides exploration where it is `fresh`.

        `arm_rounds` are the rounds of exploration of each arm, and `commits` says whether the rule for agents commits.
        """
        return 0

    def check(self, agent: Rule | None, arm: Rule) -> None:
        """Refuse rules that the score cannot go with, and trials that are too short for it."""
        if not self.fresh:
            return
        if agent is None or not arm.commits:
            raise MechanismError(
                f"a {type(self).__name__} score expects agents above a committing rule for arms; "
                "use an etc rule that commits"
            )
        if self.rounds is None or self.max_arms is None:
            return
        counted = self.rounds if agent.commits else 1  # an index goes on counting after the exploration
        skipped = self.skipped_rounds(self.max_arms, arm.explore, agent.commits)
        needed = max(skipped, arm.explore * self.max_arms) + counted
        if agent.explore < needed:
            raise MechanismError(
                f"a {type(self).__name__} score of {self.rounds} rounds expects at least {needed} agent rounds, "
                f"got {agent.explore}; make the trial longer"
            )

    @property
    def words(self) -> str:
        """The score in a few words; nothing where every reward counts."""
        return f"score {self.name}"

    @property
    def partial(self) -> bool:
        """Whether some rewards of an agent that has a score do not count towards it."""
        skips = type(self).skipped_rounds is not Score.skipped_rounds
        return self.fresh or self.rounds is not None or skips

    @property
    def same_number(self) -> bool:
        """Whether every score counts the same number of rewards: all of the trial, or so many fresh ones of one arm."""
        return not self.partial or (self.fresh and self.rounds is not None and self.max_arms is not None)

    @property
    def counts_all(self) -> bool:
        """Whether every reward of every agent counts."""
        return not self.partial and self.max_arms is None

    def allows(self, arms: int) -> bool:
        """Whether an agent with so many arms has a score."""
        return self.max_arms is None or arms <= self.max_arms

    def counted_in(self, trial: int) -> int:
        """How many rewards count in a trial of so many rounds, where that is the same for every agent with a score."""
        return trial if self.rounds is None else self.rounds


def score_from(value: object) -> Score:
    """The score that is meant by an object, a name or data."""
    return part_from(Score, SCORES_PACKAGE, value, "score to be 'all' or a score such as HoldOut(..)")
