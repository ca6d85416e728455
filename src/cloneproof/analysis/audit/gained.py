"""What is compared with honesty beside copies: their limit, variants, and what an agent's knowledge is worth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from cloneproof._tables import fields_of, to_data
from cloneproof.engines.estimate import Estimate


class Gained:
    """What is compared with honesty: the honest payoff, and a gain."""

    honest: Estimate
    gain: Estimate

    @property
    def relative_gain(self) -> float:
        """Gain as a part of the honest payoff (infinite if that is zero)."""
        if self.honest.value > 0:
            return self.gain.value / self.honest.value
        return math.inf if self.gain.value > 0 else 0.0


@dataclass(frozen=True)
class CopyLimit(Gained):
    """The limit of ever more copies of one original, in which the agent is served only by new copies.

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
    def words(self) -> str:
        """A sentence such as "with ever more copies of original 1 of ana the gain tends to -3 ± 0.2"."""
        return (
            f"with ever more copies of original {self.original} of {self.agent} the gain at horizon {self.horizon} "
            f"tends to {self.gain.value:.4g} ± {self.gain.error:.2g}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the limit as data for JSON; a relative gain over nothing is None."""
        return fields_of(self, "agent", "original", "horizon", "honest") | {
            "limit_payoff": self.copied.to_dict(),
            "limit_of_gain": self.gain.to_dict(),
            "limit_of_relative_gain": to_data(self.relative_gain),
        }


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
        return fields_of(self, "means", "chance", "copies", "honest", "best")


@dataclass(frozen=True)
class Naming(Gained):
    """What it is worth to name one's best original: to register it alone, with all weight on it.

    Attributes
    ----------
    accuracy : float
        The chance that the best original is named; otherwise another one is, each as likely.
    honest, gain : Estimate
        The agent's honest payoff, and what naming adds to it.
    regret_if_one, regret_if_all : Estimate
        The platform's regret if the agent names, and if everybody does, each right with this chance.
    """

    accuracy: float
    honest: Estimate
    gain: Estimate
    regret_if_one: Estimate
    regret_if_all: Estimate

    def to_dict(self) -> dict[str, Any]:
        """Return the naming as data for JSON; a relative gain over nothing is None."""
        return fields_of(self, "accuracy", "honest", "gain", "relative_gain", "regret_if_one", "regret_if_all")


@dataclass(frozen=True, repr=False)
class InformedGain(Gained):
    """What an agent earns if it knows its means before it registers, against honest others with their priors.

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
        The registration for each realisation, up to exchanges of originals of equal prior. Empty if worlds were
        sampled: it registers its best original alone in each.
    complete : bool
        Whether no other registration is better at any realisation; else `gain` is that of the best of those tried.
    regret : Estimate or None
        The platform's regret if nobody names an original; None if it could not be computed.
    naming : tuple of Naming
        What the agent gains and the platform loses if agents name their best original, right with several chances.
    """

    agent: str
    horizon: int
    honest: Estimate
    informed: Estimate
    gain: Estimate
    responses: tuple[InformedResponse, ...]
    complete: bool
    regret: Estimate | None = None
    naming: tuple[Naming, ...] = ()

    def __repr__(self) -> str:
        best = "best response" if self.complete else "best of those tried"
        return (
            f"InformedGain(agent={self.agent!r}, horizon={self.horizon}, gain={self.gain.value:.6g} ± "
            f"{self.gain.error:.2g} ({self.relative_gain:+.2%}, {self.gain.kind}), {best})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as data for JSON; a relative gain over nothing is None."""
        parts = ("honest", "informed", "gain", "relative_gain", "complete", "regret", "naming", "responses")
        return fields_of(self, "agent", "horizon", *parts)


@dataclass(frozen=True)
class NearCopyGain(Gained):
    """What an agent gains that registers variants of each of its originals, against honest others.

    Attributes
    ----------
    agent : str
        Who registers variants.
    horizon : int
        The rounds of the market.
    variants : int
        How many in place of each original.
    spread, new : float or None
        How they differ: the standard deviation of their log-odds, or the chance that one is a new item (`cp.Search`).
    honest, copied, gain : Estimate
        Its honest payoff, its payoff with the variants, and the difference.
    ceiling : Estimate or None
        The most that a theorem lets them gain; None if none applies or no engine could compute it.
    """

    agent: str
    horizon: int
    variants: int
    spread: float | None
    new: float | None
    honest: Estimate
    copied: Estimate
    gain: Estimate
    ceiling: Estimate | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as data for JSON; a relative gain over nothing is None."""
        parts = ("variants", "spread", "new", "honest", "copied", "gain", "relative_gain", "ceiling")
        return fields_of(self, "agent", "horizon", *parts)
