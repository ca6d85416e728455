"""The contract of a restart: when statistics are cleared, and what runs from then on.

A restart is a frozen dataclass in a file of `restarts/`. It answers the questions below, and the session, every engine
and the audit ask them; none of them asks which class it is.

    at_award         the statistics of arms are cleared once, when the exploration of agents is over
    flat_epochs      a flat mechanism starts afresh in epochs, each with its own rounds of exploration (`arm_rounds`)
    planned_epochs   each epoch runs a mechanism of its own (`plan`), in which an agent with more than `max_arms` arms
                     has no score (None: every agent has one)

Epochs are numbered from 1. What an epoch does may depend on its number, never on the horizon, so that a horizon that
cuts the last epoch short changes nothing before it.
"""

from __future__ import annotations

from itertools import count, takewhile
from typing import ClassVar, Final, NamedTuple

from cloneproof.mechanisms.part import MechanismPart, part_from
from cloneproof.mechanisms.rule import Rule
from cloneproof.mechanisms.score import Score

RESTARTS_PACKAGE: Final = "cloneproof.mechanisms.restarts"


class Restart(MechanismPart):
    """When statistics are cleared; see the module."""

    at_award: ClassVar[bool] = False
    flat_epochs: ClassVar[bool] = False
    planned_epochs: ClassVar[bool] = False
    max_arms: int | None = None

    def check(self, agent: Rule | None, arm: Rule, alone: bool) -> None:
        """Refuse rules that the restart cannot go with; `alone`: there is no other score, sample or fallback."""

    def words(self, rules: str) -> str:
        """The mechanism in a few words, from those for its rules."""
        return f"{rules}, restart {self.name}"

    def epoch_end(self, number: int) -> int:
        """The last round of an epoch; the next round starts the next one."""
        raise NotImplementedError(f"{type(self).__name__} has no epochs")

    def epoch(self, round_: int) -> int:
        """The number of the epoch that a round belongs to, both from 1."""
        return next(number for number in count(1) if self.epoch_end(number) >= round_)

    def ends(self, horizon: int) -> list[int]:
        """The last round of each epoch up to the horizon, which cuts the last one short."""
        return [*takewhile(lambda end: end < horizon, map(self.epoch_end, count(1))), horizon]

    def arm_rounds(self, number: int) -> int:
        """Rounds of exploration of each arm in an epoch of a flat mechanism."""
        raise NotImplementedError(f"{type(self).__name__} has no epochs of a flat mechanism")

    def plan(self, number: int, agents: int, agent: Rule | None, arm: Rule) -> EpochPlan:
        """What runs in an epoch with so many agents; the rules are those that the mechanism names."""
        raise NotImplementedError(f"{type(self).__name__} has no epochs with mechanisms of their own")


class EpochPlan(NamedTuple):
    """A mechanism that runs in one epoch: its rules, when arm statistics are cleared, and its score."""

    agent: Rule | None
    arm: Rule
    restart: Restart
    score: Score


def restart_from(value: object) -> Restart:
    """The restart that is meant by an object, a name, data, or None for never."""
    expected = "restart to be None, 'award', Doubling() or HoldOutEpochs(..)"
    return part_from(Restart, RESTARTS_PACKAGE, "never" if value is None else value, expected)
