"""How many rounds each arm can expect: exploration and commitment are piecewise linear in the number of rounds.

So the expectation over a random number of rounds H needs E min(H, j m) for a few j, and nothing of the size of T.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from cloneproof.engines.closed_form.laws.arithmetic import Number, ball
from cloneproof.engines.closed_form.laws.binomial_law import expected_minimum
from cloneproof.mechanisms.rule import Order


@dataclass(frozen=True)
class Fixed:
    """A number of rounds that takes finitely many values."""

    chances: tuple[tuple[Fraction, int], ...]

    @classmethod
    def of(cls, rounds: int) -> Fixed:
        """Exactly that many rounds."""
        return cls(((Fraction(1), rounds),))

    @property
    def mean(self) -> Number:
        """The expected number of rounds."""
        return ball(sum((chance * rounds for chance, rounds in self.chances), Fraction(0)))

    def minimum(self, cap: int) -> Number:
        """The expectation of min(H, cap)."""
        return ball(sum((chance * min(rounds, cap) for chance, rounds in self.chances), Fraction(0)))


@dataclass(frozen=True)
class Binomial:
    """The rounds of an agent that is chosen with this chance in each of so many rounds."""

    rounds: int
    chance: Fraction

    @property
    def mean(self) -> Number:
        """The expected number of rounds."""
        return ball(self.chance * self.rounds)

    def minimum(self, cap: int) -> Number:
        """The expectation of min(H, cap)."""
        return expected_minimum(self.rounds, self.chance, cap)


Rounds = Fixed | Binomial


@dataclass(frozen=True)
class Schedule:
    """Expected exploration rounds of each entry of a level, and the expected rounds after the commitment."""

    exploration: tuple[Number, ...]
    committed: Number


def schedule(copies: Sequence[int], order: Order, arm_rounds: int, rounds: Rounds) -> Schedule:
    """The schedule of ETC over entries of so many arms each, in order of registration.

    round-robin and block treat all arms alike, so each expects the same number of exploration rounds.
    """
    arms = sum(copies)
    explored = rounds.minimum(arms * arm_rounds)
    committed = rounds.mean - explored
    if order != "index":
        return Schedule(tuple(explored * count / arms for count in copies), committed)
    ends, end = [], 0
    for count in copies:
        end += count * arm_rounds
        ends.append(rounds.minimum(end))
    return Schedule(tuple(end - start for start, end in zip([ball(0), *ends[:-1]], ends, strict=True)), committed)


def unfinished_trial(agents: int, order: Order, trial: int, horizon: int) -> list[Fixed]:
    """The rounds of each agent where the horizon ends within the trials."""
    if order == "round-robin":
        each, extra = divmod(horizon, agents)
        more = Fraction(extra, agents)
        return [Fixed(((1 - more, each), (more, each + 1)))] * agents
    turns = [min(max(horizon - trial * turn, 0), trial) for turn in range(agents)]
    if order == "index":
        return [Fixed.of(turn) for turn in turns]
    return [Fixed(tuple((Fraction(1, agents), turn) for turn in turns))] * agents
