"""Agents: the providers, their originals and what they know of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cloneproof._checks import is_one_line, whole
from cloneproof.errors import MarketError, brief
from cloneproof.market.priors import Prior, smallest_gap

MOST_ORIGINALS = 10**6


@dataclass(frozen=True)
class Agent:
    """A provider with some originals; one prior for all of them, or one for each (the paper's asymmetric setting).

    Parameters
    ----------
    name : str
        A name of its own in the market, on one line.
    originals : int, optional
        How many distinct items it has, from 1 to 10^6; as many as there are priors if left out.
    prior : Point, Discrete, Uniform, Beta, Empirical, or a sequence of them
        What it knows of the mean reward of its items: one prior for all originals, drawn independently, or one for
        each.

    Raises
    ------
    MarketError
        For a name that is empty or has a line break, a number of originals that is none, or something else in the
        place of a prior.

    References
    ----------
    The paper, section 2: agent i has originals whose means are drawn from F_i.

    Examples
    --------
    >>> from cloneproof import Agent, Point
    >>> Agent("ana", originals=2, prior=Point(0.5)).originals
    2
    >>> Agent("bo", prior=[Point(0.9), Point(0.2)]).originals
    2
    """

    name: str
    originals: int | None = None
    prior: Prior | Sequence[Prior] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        if isinstance(self.prior, Sequence):
            object.__setattr__(self, "prior", tuple(self.prior))
        given = self.prior if isinstance(self.prior, tuple) else (self.prior,)
        for prior in given:
            if not hasattr(prior, "quantile"):
                raise MarketError(
                    f"expected a prior such as Point(0.5) for agent {self.name!r}, got {brief(prior)}; "
                    "use Point, Discrete, Uniform, Beta or Empirical"
                )
        if self.originals is None:
            object.__setattr__(self, "originals", len(given))
        originals = whole(self.originals)
        if originals is None or not 1 <= originals <= MOST_ORIGINALS:
            raise MarketError(
                f"expected agent {self.name!r} to have a whole number of originals from 1 to {MOST_ORIGINALS}, "
                f"got {brief(self.originals)}; give it at least one and not more than that"
            )
        object.__setattr__(self, "originals", originals)
        if isinstance(self.prior, tuple) and len(self.prior) != self.originals:
            raise MarketError(
                f"expected one prior or {self.originals} of them for the originals of agent {self.name!r}, "
                f"got {len(self.prior)}; give one for each original"
            )

    @property
    def priors(self) -> tuple[Prior, ...]:
        """The prior of each original."""
        if isinstance(self.prior, Sequence):
            return tuple(self.prior)
        assert self.prior is not None
        return (self.prior,) * self.count

    @property
    def count(self) -> int:
        """How many originals it has."""
        assert self.originals is not None
        return self.originals

    @cached_property
    def support(self) -> tuple[float, ...] | None:
        """The possible means of its originals in increasing order, or None where a prior is continuous."""
        atoms = [prior.atoms for prior in self._different]
        if any(a is None for a in atoms):
            return None
        return tuple(sorted({value for a in atoms if a is not None for value, _ in a}))

    @property
    def gap(self) -> float | None:
        """The smallest gap in the union of its supports; infinite for one point, None for a continuous prior."""
        return None if self.support is None else smallest_gap(self.support)

    @cached_property
    def least_best(self) -> float:
        """A lower bound of its best mean: the largest of the lowest possible means of its originals."""
        lows = [-math.inf if prior.atoms is None else prior.atoms[0][0] for prior in self._different]
        return max(lows)

    @property
    def _different(self) -> tuple[Prior, ...]:
        """The priors as given: one where all originals share it."""
        return self.priors if isinstance(self.prior, Sequence) else self.priors[:1]


def check_name(name: object) -> None:
    """Refuse what is no name: something else than text, nothing, or text that breaks a line of a table.

    >>> check_name("ana maria")
    """
    if not isinstance(name, str) or not name.strip():
        raise MarketError(f"expected an agent's name to be some text, got {brief(name)}; name every agent")
    if not is_one_line(name):
        raise MarketError(
            f"expected an agent's name on one line of printable text, got {brief(name)}; leave out line breaks and "
            "control characters"
        )
