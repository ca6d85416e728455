"""A sample of the registered arms, drawn once before the first round."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from cloneproof.errors import MechanismError
from cloneproof.mechanisms.logarithm import ln
from cloneproof.mechanisms.rule import positive


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
