"""Samples of the arms: who takes part from the start, all others never."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from cloneproof._checks import one_of
from cloneproof._randomness import Stream, substream, uniform
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.arithmetic import ln
from cloneproof.mechanisms.rule import positive, rounds_number

ADMISSION: Final = (1 << 64) - 1
"""Of the stream of a sample: which arrivals are admitted. The other numbers of that stream are keys of arms."""


@dataclass(frozen=True)
class Sample:
    """Keep a uniform sample of floor(factor ln T) arms, at least one, from the start: per agent, or of all arms.

    Parameters
    ----------
    factor : float
        The constant before ln T.
    scope : {"agent", "all"}, default "agent"
        Whether every agent has a sample of its own, or all arms have one.

    References
    ----------
    Shin, Lee and Ok (2022), RH-UCB and S-UCB.
    """

    factor: float
    scope: Literal["agent", "all"] = "agent"

    def __post_init__(self) -> None:
        positive(self.factor, "the factor of a sample of arms")
        one_of(self.scope, ("agent", "all"), "scope of a sample", MechanismError)

    def size(self, horizon: int) -> int:
        """Return the largest number of arms kept."""
        return max(1, math.floor(self.factor * ln(horizon)))

    def kept(self, arms: int, horizon: int, stream: Stream) -> int:
        """Draw from `stream` how many of `arms` arms are kept."""
        return min(arms, self.size(horizon))

    def size_law(self, arms: int, horizon: int) -> tuple[tuple[int, float], ...]:
        """Return the distribution of the number of arms kept."""
        return ((min(arms, self.size(horizon)), 1.0),)

    @property
    def words(self) -> str:
        """Short description of the sample."""
        return f"sample of {self.factor:g} ln T arms"


@dataclass(frozen=True)
class Admission:
    """Arms arrive in a random order, and the k-th is kept with probability min(1, first / k).

    Arrivals are kept independently, so the number kept is a sum of independent coins, and given that number they are a
    uniform sample. About first (1 + ln(K / first)) of K arms are kept.

    Parameters
    ----------
    first : int
        Arrivals that are certainly kept.

    References
    ----------
    Liu and Ho (2018), Rand_UCB with p_t = min(1, M / t). Here t counts arrivals, in an order that nobody can choose.

    Examples
    --------
    >>> Admission(1).size_law(3, 100)[0]  # one of three arms: neither the second nor the third is kept
    (1, 0.3333333333333333)
    """

    first: int
    scope: ClassVar[Literal["agent", "all"]] = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", rounds_number(self.first, "the arms that are certainly admitted"))

    def kept(self, arms: int, horizon: int, stream: Stream) -> int:
        """Draw from `stream` how many of `arms` arms are kept."""
        coins = substream(stream, ADMISSION)
        return sum(uniform(coins, k) * k < self.first for k in range(1, arms + 1))

    def size_law(self, arms: int, horizon: int) -> tuple[tuple[int, float], ...]:
        """Return the distribution of the number of arms kept."""
        law = {min(arms, self.first): 1.0}
        for k in range(self.first + 1, arms + 1):
            after: dict[int, float] = {}
            for number, weight in law.items():
                after[number] = after.get(number, 0.0) + weight * ((k - self.first) / k)
                after[number + 1] = after.get(number + 1, 0.0) + weight * (self.first / k)
            law = after
        return tuple(law.items())

    @property
    def words(self) -> str:
        """Short description of the sample."""
        return f"arm k admitted with probability min(1, {self.first}/k)"
