"""Parts of a mechanism as data: a score or a restart, given by name, as an object, or as the data of a saved file.

A part is a frozen dataclass in a file of `scores/` or `restarts/`, and a new file there is found automatically. The
session, the engines, the audit and the pages read the attributes below and never ask for the class. A part without
parameters is known by its name, such as "award". Declare a parameter with the name of one of these attributes as
`max_arms: int = field()`, so that it has no default.

A score says which of an agent's rewards count when agents are compared:

    fresh      whether only rewards of the arm that the agent's level has committed to count, and those of its
               exploration do not; this expects agents above a rule for arms that commits
    rounds     how many rewards count at most: the first ones; None: all
    max_arms   an agent with more arms registered has no score, and ranks below every agent with one; None: no limit

A restart says when statistics are cleared, and what runs from then on:

    at_award         the statistics of arms are cleared once, when the exploration of agents is over
    flat_epochs      a flat mechanism restarts in epochs, each with its own rounds of exploration (`arm_rounds`)
    planned_epochs   each epoch runs a mechanism of its own (`plan`), in which an agent with more than `max_arms` arms
                     has no score (None: every agent has one)

Epochs are numbered from 1. What an epoch does may depend on its number, never on the horizon, so that a horizon that
cuts the last epoch short changes nothing before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from itertools import count, pairwise, takewhile
from typing import Any, ClassVar, Final, Self, TypeVar

from cloneproof._checks import known
from cloneproof._discovery import classes
from cloneproof._schedules import doubling_epoch
from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.rule import Rule

SCORES_PACKAGE: Final = "cloneproof.mechanisms.scores"
RESTARTS_PACKAGE: Final = "cloneproof.mechanisms.restarts"


class MechanismPart:
    """Base of scores and restarts; each is a frozen dataclass with a name."""

    name: ClassVar[str]

    def to_dict(self) -> str | dict[str, Any] | None:
        """Return the part as data: its name, or its kind and its parameters; infinity is a word, as JSON has none."""
        parameters: dict[str, Any] = asdict(self) if is_dataclass(self) else {}
        for key, value in parameters.items():
            parameters[key] = list(value) if isinstance(value, tuple) else "inf" if value == math.inf else value
        return {"kind": self.name, **parameters} if parameters else self.name

    @classmethod
    def from_dict(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the part with these parameters, as `to_dict` wrote them."""
        return cls(**{key: math.inf if value == "inf" else value for key, value in parameters.items()})


P = TypeVar("P", bound=MechanismPart)


def part_from(kind: type[P], package: str, value: object, expected: str) -> P:
    """Return the part given by an object, a name or data; raises an error for anything else."""
    if isinstance(value, kind):
        return value
    kinds: Mapping[str, type[P]] = classes(package)
    if isinstance(value, str) and value in kinds and not getattr(kinds[value], "__dataclass_fields__", ()):
        return kinds[value]()
    if isinstance(value, Mapping) and "kind" in value:
        own = kinds[known(value["kind"], kinds, f"kind of {kind.__name__.lower()}", MechanismError)]
        return own.from_dict({key: number for key, number in value.items() if key != "kind"})
    raise MechanismError(f"expected {expected}, got {brief(value)}; use one of them")


def short_spelling(part: P, package: str) -> P | str | None:
    """Name of a part without parameters if the package registers it under that name; else the part itself."""
    data = part.to_dict()
    by_name = classes(package).get(part.name) is type(part) and not isinstance(data, dict)
    return data if by_name else part  # type: ignore[return-value]


class Score(MechanismPart):
    """Which rewards count towards an agent's score; see the module's docstring."""

    fresh: bool = False
    rounds: int | None = None
    max_arms: int | None = None

    def skipped_rounds(self, arms: int, arm_rounds: int, commits: bool) -> int:
        """Return how many first rounds of an agent never count, in addition to exploration if the score is `fresh`.

        `arm_rounds` are the rounds of exploration of each arm, and `commits` says whether the rule for agents commits.
        """
        return 0

    def check(self, agent: Rule | None, arm: Rule) -> None:
        """Refuse rules that do not fit the score, and trials that are too short for it."""
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
        """Short description of the score; empty if every reward counts."""
        return f"score {self.name}"

    @property
    def partial(self) -> bool:
        """Whether some rewards of an agent that has a score do not count towards it."""
        skips = type(self).skipped_rounds is not Score.skipped_rounds
        return self.fresh or self.rounds is not None or skips

    @property
    def same_number(self) -> bool:
        """Whether every score counts the same number of rewards: the whole trial, or a fixed number from one arm."""
        return not self.partial or (self.fresh and self.rounds is not None and self.max_arms is not None)

    @property
    def counts_all(self) -> bool:
        """Whether every reward of every agent counts."""
        return not self.partial and self.max_arms is None

    def allows(self, arms: int) -> bool:
        """Return whether an agent with this many arms has a score."""
        return self.max_arms is None or arms <= self.max_arms

    def counted_in(self, trial: int) -> int:
        """Return how many rewards count in a trial of `trial` rounds, if equally many for all agents with a score."""
        return trial if self.rounds is None else self.rounds


def score_from(value: object) -> Score:
    """Return the score given by an object, a name or data."""
    return part_from(Score, SCORES_PACKAGE, value, "score to be 'all' or a score such as HoldOut(..)")


class Restart(MechanismPart):
    """When statistics are cleared; see the module's docstring."""

    at_award: ClassVar[bool] = False
    flat_epochs: ClassVar[bool] = False
    planned_epochs: ClassVar[bool] = False
    max_arms: int | None = None

    def check(self, agent: Rule | None, arm: Rule, alone: bool) -> None:
        """Refuse rules that do not fit the restart; `alone` says that there is no other score, sample or fallback."""

    def words(self, rules: str) -> str:
        """Describe the mechanism in a few words, given those for its rules."""
        return f"{rules}, restart {self.name}"

    def epoch_end(self, number: int) -> int:
        """Return the last round of an epoch."""
        raise NotImplementedError(f"{type(self).__name__} has no epochs")

    def epoch(self, round_: int) -> int:
        """Return the number of the epoch that a round belongs to, both from 1."""
        return next(number for number in count(1) if self.epoch_end(number) >= round_)

    def ends(self, horizon: int) -> list[int]:
        """Return the last round of each epoch up to the horizon, which cuts the last one short."""
        return [*takewhile(lambda end: end < horizon, map(self.epoch_end, count(1))), horizon]

    def lengths(self, horizon: int) -> list[int]:
        """Return the rounds of each epoch up to the horizon."""
        return [end - before for before, end in pairwise([0, *self.ends(horizon)])]

    def arm_rounds(self, number: int) -> int:
        """Return the rounds of exploration of each arm in an epoch of a flat mechanism."""
        raise NotImplementedError(f"{type(self).__name__} has no epochs of a flat mechanism")

    def plan(self, number: int, agents: int, agent: Rule | None, arm: Rule) -> Any:  # noqa: ANN401 (made of parts)
        """Return the `Mechanism` of an epoch with `agents` agents, given the rules that the whole one names."""
        raise NotImplementedError(f"{type(self).__name__} has no epochs with mechanisms of their own")


class DoublingEpochs(Restart):
    """Epochs of rounds 1..2, 3..4, 5..8, .. (Algorithm 4): 2^(i-1) < round <= 2^i, and 1 for round 1."""

    def epoch_end(self, number: int) -> int:
        return 1 << number

    def epoch(self, round_: int) -> int:
        return doubling_epoch(round_)


def restart_from(value: object) -> Restart:
    """Return the restart given by an object, a name or data; None for never."""
    expected = "restart to be None, 'award', Doubling() or HoldOutEpochs(..)"
    return part_from(Restart, RESTARTS_PACKAGE, "never" if value is None else value, expected)
