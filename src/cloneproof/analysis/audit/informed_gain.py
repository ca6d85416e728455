"""What an agent gains that knows its means before it registers: one answer for each realisation, and their average."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cloneproof._display import Displayed
from cloneproof.engines.estimate import Estimate


@dataclass(frozen=True)
class InformedResponse:
    """The best registration found for one realisation of the agent's means.

    Attributes
    ----------
    means : tuple of float
        The realised means of its originals.
    chance : float
        How likely they are under its prior.
    copies : tuple of int
        How often it registers each original then; 0 withholds it.
    honest, best : Estimate
        Its payoff at these means if it is honest, and with these copies.
    """

    means: tuple[float, ...]
    chance: float
    copies: tuple[int, ...]
    honest: Estimate
    best: Estimate

    def to_dict(self) -> dict[str, Any]:
        """The response as data for JSON.

        Returns
        -------
        dict
            means, chance, copies, honest and best.
        """
        return {
            "means": list(self.means),
            "chance": self.chance,
            "copies": list(self.copies),
            "honest": self.honest.to_dict(),
            "best": self.best.to_dict(),
        }


@dataclass(frozen=True, repr=False)
class InformedGain(Displayed):
    """What an agent earns that knows its means before it registers, against honest others with their priors.

    Attributes
    ----------
    agent : str
        Who is informed.
    horizon : int
        The rounds of the market.
    honest : Estimate
        Its honest payoff before means are drawn.
    informed : Estimate
        The average, over realisations of its means, of its payoff with the best registration found for each.
    gain : Estimate
        The difference.
    responses : tuple of InformedResponse
        The registration for each realisation, up to exchanges of originals of equal prior.
    complete : bool
        Whether no other registration is better at any realisation; else `gain` is that of the best of those tried.
    """

    agent: str
    horizon: int
    honest: Estimate
    informed: Estimate
    gain: Estimate
    responses: tuple[InformedResponse, ...]
    complete: bool

    def __repr__(self) -> str:
        best = "best response" if self.complete else "best of those tried"
        return (
            f"InformedGain(agent={self.agent!r}, horizon={self.horizon}, gain={self.gain.value:.6g} ± "
            f"{self.gain.error:.2g} ({self.relative_gain:+.2%}, {self.gain.kind}), {best})"
        )

    @property
    def relative_gain(self) -> float:
        """The gain as a part of the honest payoff (infinite where that is nothing)."""
        if self.honest.value > 0:
            return self.gain.value / self.honest.value
        return math.inf if self.gain.value > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """The gain as data for JSON; a relative gain over nothing is None.

        Returns
        -------
        dict
            agent, horizon, honest, informed, gain, relative_gain, complete and responses.
        """
        relative = self.relative_gain
        return {
            "agent": self.agent,
            "horizon": self.horizon,
            "honest": self.honest.to_dict(),
            "informed": self.informed.to_dict(),
            "gain": self.gain.to_dict(),
            "relative_gain": relative if math.isfinite(relative) else None,
            "complete": self.complete,
            "responses": [response.to_dict() for response in self.responses],
        }
