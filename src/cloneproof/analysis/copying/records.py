"""Input and results of the search for copies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from cloneproof._arrays import FloatArray
from cloneproof._data import Data

Feature = str | tuple[float, ...]
GroupKind = Literal["one agent", "across agents"]


@dataclass(frozen=True)
class ArmRecord:
    """An arm of a log: what it earned, and what else is known of it.

    rounds    how many rewards came
    total     their sum; rewards lie in [0, 1] (a log with another range is scaled to it first)
    squares   the sum of their squares: `total` where rewards are 0 and 1
    features  a text (a title, a landing page, an image hash) or a vector under each name; what is missing is left out
    cells     under the name of each table of cells (segment, week) an array with (rewards, their sum) in each cell, the
              same cells for all arms; none: arms are compared by their means alone
    """

    agent: str
    arm: str
    rounds: int
    total: float
    squares: float
    features: Mapping[str, Feature] = field(default_factory=dict)
    cells: Mapping[str, FloatArray] = field(default_factory=dict)


@dataclass(frozen=True)
class Duplicates:
    """Arms whose text under one name (a title, an address, or "arm" for their own names) is equal or names one item.

    Uses neither statistics nor rewards.
    """

    feature: str
    equal: bool
    text: str
    arms: tuple[tuple[str, str], ...]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(agent for agent, _ in self.arms))


@dataclass(frozen=True)
class MatchedArm:
    """An arm of a group: its text (a title, if there is one), what it earned a round, and what is alike in another."""

    agent: str
    arm: str
    text: str
    rounds: int
    mean: float
    matched: str


@dataclass(frozen=True)
class CopyGroup:
    """Arms that may be one item, and what speaks for it.

    kind         arms of one agent, or of several
    agents       whose they are, each once
    arms         (agent, arm), in the order of the records
    e_value      how many times likelier the rewards are with copies than without; its expected value is at most 1
                 where there are none and the fitted laws are right
    weight       what the features make of it (1 where there are none); chosen without the rewards
    probability  of one agent's arms: that all of them are one item, at the prior odds of `CopyFindings`; else None
    found        whether it is among the findings at the level
    evidence     in words: sentences about these arms, not about anybody's intentions
    rows         the arms as a table; of two agents, the pairs that matched
    """

    kind: GroupKind
    agents: tuple[str, ...]
    arms: tuple[tuple[str, str], ...]
    e_value: float
    weight: float
    probability: float | None
    found: bool
    evidence: str
    rows: tuple[MatchedArm, ...] = ()


@dataclass(frozen=True)
class CopyPower:
    """Chance with which copies of one item would have been found, and a 95 % interval for it (Clopper and Pearson)."""

    copies: int
    chance: float
    low: float
    high: float
    draws: int

    @property
    def words(self) -> str:
        """The chance in a sentence."""
        return (
            f"Had an item of this log been listed {self.copies} times under different titles, this would have been "
            f"found with chance {self.chance:.2g} ({self.low:.2g} to {self.high:.2g}, by {self.draws} planted items)."
        )


@dataclass(frozen=True)
class CopyFindings(Data):
    """Findings of the search at its level, and those that came near.

    groups      the findings first, then what comes nearest to being one; the strongest first in both
    level       the false discovery rate that is aimed at: the expected share of wrong findings among all findings
    odds        prior odds that two arms of one agent are copies, for the probabilities
    hypotheses  number of questions, including those that were not pursued
    guarantee   what holds at the level, and under which assumption
    notes       further remarks, a sentence each
    duplicates  arms whose texts are equal or name one item: equal texts first, then those that few agents share, then
                those with the most arms; listed even without time for the rest
    late        number of questions for which there was no time
    power       how often copies of an item of this log would have been found, if that was asked
    """

    groups: tuple[CopyGroup, ...]
    level: float
    odds: float
    hypotheses: int
    guarantee: str
    notes: tuple[str, ...] = ()
    duplicates: tuple[Duplicates, ...] = ()
    late: int = 0
    power: CopyPower | None = None

    @property
    def found(self) -> tuple[CopyGroup, ...]:
        return tuple(group for group in self.groups if group.found)
