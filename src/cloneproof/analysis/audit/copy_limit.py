"""What ever more copies of one original come to: the limit of the gain, at a given horizon."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cloneproof.engines.estimate import Estimate


@dataclass(frozen=True)
class CopyLimit:
    """The limit in which the copies of one original never end and all that is served of the agent is a fresh one.

    Attributes
    ----------
    agent : str
        Who copies.
    original : int
        Which of its originals, counted from 1.
    horizon : int
        The rounds of the market.
    honest, copied, gain : Estimate
        Its payoff when honest, the payoff that copies tend to, and the difference: no gain of any number of copies.
    """

    agent: str
    original: int
    horizon: int
    honest: Estimate
    copied: Estimate
    gain: Estimate

    @property
    def relative_gain(self) -> float:
        """The limit of the gain as a part of the honest payoff (infinite where that is nothing)."""
        if self.honest.value > 0:
            return self.gain.value / self.honest.value
        return math.inf if self.gain.value > 0 else 0.0

    @property
    def words(self) -> str:
        """A sentence, such as "with ever more copies of original 1 of ana the gain tends to -3 ± 0.2"."""
        return (
            f"with ever more copies of original {self.original} of {self.agent} the gain at horizon {self.horizon} "
            f"tends to {self.gain.value:.4g} ± {self.gain.error:.2g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """The limit as data for JSON; a relative gain over nothing is None."""
        relative = self.relative_gain
        return {
            "agent": self.agent,
            "original": self.original,
            "horizon": self.horizon,
            "honest": self.honest.to_dict(),
            "limit_payoff": self.copied.to_dict(),
            "limit_of_gain": self.gain.to_dict(),
            "limit_of_relative_gain": relative if math.isfinite(relative) else None,
        }
