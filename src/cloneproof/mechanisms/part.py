"""Parts of a mechanism as data: a score or a restart, given by name, as an object, or as the data of a saved file.

A part is a frozen dataclass in a file of `scores/` or `restarts/`, and a new file there is found automatically. The
session, the engines, the audit and the pages read the attributes below and never ask for the class. A part without
parameters is known by its name, such as "award".

A score says which of an agent's rewards count when agents are compared:

    fresh   whether only rewards of the arm that the agent's level has committed to count, and those of its
               exploration do not; this expects agents above a rule for arms that commits

A restart says when statistics are cleared, and what runs from then on:

    at_award      the statistics of arms are cleared once, when the exploration of agents is over
    flat_epochs   a flat mechanism restarts in epochs, each with its own rounds of exploration (`arm_rounds`)

Epochs are numbered from 1. What an epoch does may depend on its number, never on the horizon, so that a horizon that
cuts the last epoch short changes nothing before it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from itertools import count, pairwise, takewhile
from typing import Any, ClassVar, Final, Self, TypeVar

from cloneproof._lib.checks import known
from cloneproof._lib.discovery import classes
from cloneproof._lib.schedules import doubling_epoch
from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.bandits.rule import Rule

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

    @property
    def skipped_rounds(self) -> int:
        """How many first rounds of an agent never count, in addition to exploration if the score is `fresh`."""
        return 0

    def check(self, agent: Rule | None, arm: Rule) -> None:
        """Refuse rules that do not fit the score."""
        if self.fresh and (agent is None or not arm.commits):
            raise MechanismError(
                f"a {type(self).__name__} score expects agents above a committing rule for arms; "
                "use an etc rule that commits"
            )

    @property
    def words(self) -> str:
        """Short description of the score; empty if every reward counts."""
        return f"score {self.name}"

    @property
    def counts_all(self) -> bool:
        """Whether every reward of every agent counts."""
        return not self.fresh


def score_from(value: object) -> Score:
    """Return the score given by an object, a name or data."""
    return part_from(Score, SCORES_PACKAGE, value, "score to be 'all' or a contest of champions")


class Restart(MechanismPart):
    """When statistics are cleared; see the module's docstring."""

    at_award: ClassVar[bool] = False
    flat_epochs: ClassVar[bool] = False

    def check(self, agent: Rule | None, arm: Rule) -> None:
        """Refuse rules that do not fit the restart."""

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


class DoublingEpochs(Restart):
    """Epochs of rounds 1..2, 3..4, 5..8, .. (Algorithm 4): 2^(i-1) < round <= 2^i, and 1 for round 1."""

    def epoch_end(self, number: int) -> int:
        return 1 << number

    def epoch(self, round_: int) -> int:
        return doubling_epoch(round_)


def restart_from(value: object) -> Restart:
    """Return the restart given by an object, a name or data; None for never."""
    expected = "restart to be None, 'award' or Doubling()"
    return part_from(Restart, RESTARTS_PACKAGE, "never" if value is None else value, expected)
