"""Arms that are kept from the start: a sample of fixed size, or arms that are admitted with falling chances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from cloneproof._randomness import uniform, word
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.logarithm import ln
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
        if self.scope not in ("agent", "all"):
            raise MechanismError(
                f"expected the scope of a sample to be 'agent' or 'all', got {self.scope!r}; use one of them"
            )

    def size(self, horizon: int) -> int:
        """How many arms are kept at most."""
        return max(1, math.floor(self.factor * ln(horizon)))

    def kept(self, arms: int, horizon: int, stream: int) -> int:
        """How many of so many arms are kept; `stream` is that of the sample."""
        return min(arms, self.size(horizon))

    def size_law(self, arms: int, horizon: int) -> tuple[tuple[int, float], ...]:
        """How many of so many arms are kept, with probabilities."""
        return ((min(arms, self.size(horizon)), 1.0),)

    @property
    def words(self) -> str:
        """The sample in a few words."""
        return f"sample of {self.factor:g} ln T arms"

    def to_dict(self) -> dict[str, Any]:
        """The sample as data."""
        return {"factor": self.factor, "scope": self.scope}


@dataclass(frozen=True)
class Admission:
    """Arms arrive one after another in a random order, and the k-th is kept with probability min(1, first / k).

    The k-th of all arms is kept whatever the others are, so how many are kept is a sum of independent coins, and given
    that number they are a uniform sample. About first (1 + ln(K / first)) of K arms are kept.

    Parameters
    ----------
    first : int
        Arrivals that are certainly kept.

    References
    ----------
    Liu and Ho (2018), Rand_UCB with p_t = min(1, M / t), where arms are contributed while the bandit runs. Here all
    arms are registered before the first round, so t counts arrivals in an order that nobody can choose.

    Examples
    --------
    >>> Admission(1).size_law(3, 100)[0]  # one of three arms: neither the second nor the third is kept
    (1, 0.3333333333333333)
    """

    first: int
    scope: ClassVar[Literal["agent", "all"]] = "all"

    def __post_init__(self) -> None:
        object.__setattr__(self, "first", rounds_number(self.first, "the arms that are certainly admitted"))

    def kept(self, arms: int, horizon: int, stream: int) -> int:
        """How many of so many arms are kept; `stream` is that of the sample."""
        coins = word(stream, ADMISSION)
        return sum(uniform(coins, k) * k < self.first for k in range(1, arms + 1))

    def size_law(self, arms: int, horizon: int) -> tuple[tuple[int, float], ...]:
        """How many of so many arms are kept, with probabilities."""
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
        """The sample in a few words."""
        return f"arm k admitted with probability min(1, {self.first}/k)"

    def to_dict(self) -> dict[str, Any]:
        """The admission as data."""
        return {"first": self.first}


def sample_from_dict(data: dict[str, Any]) -> Sample | Admission:
    """The inverse of `to_dict` of both."""
    return Admission(**data) if "first" in data else Sample(**data)
