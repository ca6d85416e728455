"""What is compared with honesty beside copies: their limit, variants, and what an agent's knowledge is worth."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof._data import Data
from cloneproof.analysis.gain import Finding
from cloneproof.engines.estimate import Estimate


@dataclass(frozen=True)
class CopyLimit(Finding):
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
    by_segment : dict of str to Finding
        Empty: it is of all segments together.
    """

    keys_of_data = (
        "agent", "original", "horizon", "honest", "limit_payoff=copied", "limit_of_gain=gain",
        "limit_of_relative_gain=relative_gain",
    )  # fmt: skip

    agent: str
    original: int
    horizon: int

    @property
    def words(self) -> str:
        """A sentence such as "with ever more copies of original 1 of ana the gain tends to -3 ± 0.2"."""
        return (
            f"with ever more copies of original {self.original} of {self.agent} the gain at horizon {self.horizon} "
            f"tends to {self.gain.value:.4g} ± {self.gain.error:.2g}"
        )


@dataclass(frozen=True)
class KnowledgeGain(Finding):
    """The ceiling of knowledge: what an agent gains that lists its best original alone.

    Attributes
    ----------
    agent : str
        Whose list.
    horizon : int
        The rounds of the market.
    honest, copied, gain : Estimate
        Its honest payoff, that of its best original alone, and the difference.
    proven : bool
        Whether no list gains more, by a theorem (docs/textbook/knowledge.md); otherwise it is an estimate.
    beaten_by : tuple of int or None
        Copies that were found to gain more, where it is not proven.
    by_segment : dict of str to Finding
        Empty: it is of all segments together.
    """

    keys_of_data = ("agent", "horizon", "honest", "gain", "relative_gain", "proven", "beaten_by?")

    agent: str
    horizon: int
    proven: bool
    beaten_by: tuple[int, ...] | None = None


@dataclass(frozen=True)
class CopiesCaught(Finding):
    """What registering so many copies of one original gains if a de-duplicator catches some of them.

    Attributes
    ----------
    copies : int
        How many are registered.
    honest, copied, gain : Estimate
        The honest payoff, that with what is left of the copies, and the difference.
    by_segment : dict of str to Finding
        The same in each segment, where it was computed.
    """

    keys_of_data = ("copies", "honest", "gain", "relative_gain")

    copies: int


@dataclass(frozen=True)
class Deduplication(Data):
    """What a de-duplicator leaves to gain.

    Attributes
    ----------
    caught : float
        The chance that a copy beyond the first of an original is removed before play.
    by_copies : tuple of CopiesCaught
        The gain by number of copies of one original; empty where no copies pay anyway.
    needed : float or None
        The least chance at which no number of copies up to `limit` gains more than `pays` of the honest payoff,
        interpolated; 0 if none is needed, None if it was not computed.
    limit : int
        The most copies.
    pays : float
        The relative gain from which copies count as paying.
    needed_at_most : float or None
        The same as `needed` at the upper ends of the gains.
    """

    caught: float
    by_copies: tuple[CopiesCaught, ...]
    needed: float | None
    limit: int
    pays: float
    needed_at_most: float | None = None


@dataclass(frozen=True)
class InformedResponse(Finding):
    """The best registration found for one realisation of the agent's means.

    Attributes
    ----------
    means : tuple of float
        The realised means of its originals.
    chance : float
        How likely they are under its prior.
    copies : tuple of int
        How often it registers each original then; 0 withholds it.
    honest, copied, gain : Estimate
        Its payoff at these means if it is honest, with these copies, and the difference.
    """

    keys_of_data = ("means", "chance", "copies", "honest", "best=copied")

    means: tuple[float, ...]
    chance: float
    copies: tuple[int, ...]


@dataclass(frozen=True)
class Naming(Finding):
    """What it is worth to name one's best original: to register it alone, with all weight on it.

    Attributes
    ----------
    accuracy : float
        The chance that the best original is named; otherwise another one is, each as likely.
    honest, copied, gain : Estimate
        The agent's honest payoff, that of naming, and the difference.
    regret_if_one, regret_if_all : Estimate
        The platform's regret if the agent names, and if everybody does, each right with this chance.
    """

    keys_of_data = ("accuracy", "honest", "gain", "relative_gain", "regret_if_one", "regret_if_all")

    accuracy: float
    regret_if_one: Estimate
    regret_if_all: Estimate


@dataclass(frozen=True, repr=False)
class InformedGain(Finding):
    """What an agent earns if it knows its means before it registers, against honest others with their priors.

    Attributes
    ----------
    agent : str
        Who is informed.
    horizon : int
        The rounds of the market.
    honest : Estimate
        Its honest payoff before means are drawn.
    copied : Estimate
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
    by_segment : dict of str to Finding
        Empty: it is of all segments together.
    """

    keys_of_data = (
        "agent", "horizon", "honest", "informed=copied", "gain", "relative_gain", "complete", "regret", "naming",
        "responses",
    )  # fmt: skip

    agent: str
    horizon: int
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


@dataclass(frozen=True)
class NearCopyGain(Finding):
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
    by_segment : dict of str to Finding
        Empty: it is of all segments together.
    """

    keys_of_data = (
        "agent", "horizon", "variants", "spread", "new", "honest", "copied", "gain", "relative_gain", "ceiling",
    )  # fmt: skip

    agent: str
    horizon: int
    variants: int
    spread: float | None
    new: float | None
    ceiling: Estimate | None = None
