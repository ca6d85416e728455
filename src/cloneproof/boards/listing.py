"""Listing rules: how battles on a fixed panel become one published score for each producer.

A rule has a few parameters and the method `law`, the distribution of a producer's published score given how often each
of its models is listed. A new rule is a new class with the same methods. With `balanced` the opponents of the panel
take turns: every listing or slot meets each of them equally often; else each battle draws one.

Under the reservoir board neither copies nor withholding raise the expected prize of a producer who does not know
which of its models is better: docs/textbook/boards.md has the theorem and its proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final, Protocol

import numpy as np
from scipy.special import ndtr

from cloneproof._checks import count, number_in
from cloneproof.boards.board import Board, Floats
from cloneproof.boards.laws import (
    balanced_law,
    best_of,
    champion_of_all,
    champion_of_slots,
    mixture,
    normal_law,
    published,
)
from cloneproof.errors import BoardError
from cloneproof.laws.counts import CountLaw, binomial_floats, scale

RESOLUTION: Final = 5.0  # units of a coarse panel in a standard deviation of a count
NODES: Final = 201  # nodes of the integral over the noise of a self-ranking
NEGLIGIBLE: Final = 1e-18  # weight below which a node is left out
_noise = cache(np.polynomial.hermite_e.hermegauss)


class Panel:
    """A board's models against its fixed panel: win probabilities, means, and cached laws of counts."""

    def __init__(self, board: Board) -> None:
        self.board, self.chances = board, board.chances()
        self.means: Floats = self.chances.mean(axis=1)
        self.variances: Floats = (self.chances * (1 - self.chances)).mean(axis=1)
        self.unit = 0
        self._laws: dict[tuple[int, int, bool], CountLaw] = {}

    def coarse(self, battles: int) -> Panel:
        """Return the panel with normal counts in units that still resolve `battles` battles.

        Use it to search for parameters, and the exact panel to judge them.
        """
        rough = copy(self)
        rough.unit = max(1, int(math.sqrt(battles * float(np.median(self.variances))) / RESOLUTION))
        rough._laws = {}
        return rough

    def law(self, model: int, battles: int, *, balanced: bool = False) -> CountLaw:
        """Return the law of a model's wins in `battles` battles, with random opponents or opponents that take turns."""
        key = (model, battles, balanced)
        if key not in self._laws:
            self._laws[key] = self._made(model, battles, balanced)
        return self._laws[key]

    def _made(self, model: int, battles: int, balanced: bool) -> CountLaw:
        mean = float(self.means[model])
        if self.unit:
            variance = float(self.variances[model]) if balanced else mean * (1 - mean)
            return normal_law(battles, mean, variance, self.unit)
        return balanced_law(battles, self.chances[model]) if balanced else binomial_floats(battles, mean)

    @cached_property
    def models(self) -> dict[str, tuple[int, ...]]:
        """Indices of each producer's models, the best first."""
        return {name: tuple(int(i) for i in self.board.models_of(name)) for name in self.board.names}


class ListingRule(Protocol):
    """Rule that turns battles into a published score for each producer."""

    @property
    def name(self) -> str:
        """Short description of the rule."""

    @property
    def scale(self) -> int:
        """Divisor that makes a published score a win rate."""

    @property
    def proven(self) -> bool:
        """Whether a theorem says that no copies and no withholding pay."""

    @property
    def trusting(self) -> bool:
        """Whether it takes the producers' word for which of their models is better."""

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        """Return the law of the published score of a producer that lists each model `copies` times (0: withheld)."""

    def battles(self, listed: int) -> int:
        """Return how many battles a producer with `listed` listings takes part in."""


@dataclass(frozen=True)
class ByListing:
    """Rules under which every listing fights `votes` battles, and nothing else."""

    votes: int
    balanced: bool = field(default=False, kw_only=True)
    proven = False
    trusting = False

    def __post_init__(self) -> None:
        count(self.votes, "votes", error=BoardError)

    @property
    def scale(self) -> int:
        return self.votes

    def battles(self, listed: int) -> int:
        return self.votes * listed


@dataclass(frozen=True)
class BestListing(ByListing):
    """Every listing fights `votes` battles; a producer is as good as its best listing. The usual board."""

    name = "best listing"

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        return best_of([panel.law(model, self.votes, balanced=self.balanced) for model in _listings(models, copies)])


@dataclass(frozen=True)
class SelfRanked(ByListing):
    """You-Rank-We-Rank (Hays et al. 2026): a listing scores the least of those that its producer ranks before it.

    The best published score is thus that of the listing ranked first. Producers err by `noise` Elo (standard
    deviation).
    """

    noise: float = 0.0
    trusting = True

    def __post_init__(self) -> None:
        super().__post_init__()
        number_in(self.noise, "the noise of a self-ranking", 0, error=BoardError)

    @property
    def name(self) -> str:
        return f"self-ranked, off by {self.noise:g} Elo" if self.noise else "self-ranked, without error"

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        listed = _listings(models, copies)
        chosen = _ranked_first(panel.board.ratings[listed], self.noise)
        parts = zip((panel.law(model, self.votes, balanced=self.balanced) for model in listed), chosen, strict=True)
        return mixture([scale(law, share) for law, share in parts])


@dataclass(frozen=True)
class Provisional:
    """Every listing fights `votes` battles; the best is provisional until `fresh` more battles, which alone count."""

    votes: int
    fresh: int
    balanced: bool = False
    proven = trusting = False

    @property
    def name(self) -> str:
        return f"provisional until {self.fresh:,} fresh votes"

    @property
    def scale(self) -> int:
        return self.fresh

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        return _fresh_law(panel, _listings(models, copies), self.votes, self.fresh, self.balanced)

    def battles(self, listed: int) -> int:
        return self.votes * listed + self.fresh


@dataclass(frozen=True)
class FreshChampion:
    """`search` battles per producer, divided equally over its listings; the best listing then fights `fresh` more."""

    search: int
    fresh: int
    balanced: bool = False
    name = "one champion on fresh votes"
    proven = trusting = False

    @property
    def scale(self) -> int:
        return self.fresh

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        listed = _listings(models, copies)
        return _fresh_law(panel, listed, max(1, self.search // len(listed)), self.fresh, self.balanced)

    def battles(self, listed: int) -> int:
        return max(1, self.search // listed) * listed + self.fresh


@dataclass(frozen=True)
class ReservoirBoard:
    """`slots` draws from the listings, by the producer's weights, `tests` battles each; the best fights `fresh` more.

    The score is `weight` times the champion's count in its test plus its fresh count. With `balanced` the opponents of
    the panel take turns, and the theorem then assumes Bradley-Terry.
    """

    slots: int
    tests: int
    fresh: int
    weight: int = 1
    balanced: bool = False
    name = "reservoir board"
    proven = True
    trusting = False

    def __post_init__(self) -> None:
        count(self.slots, "slots", error=BoardError)
        count(self.tests, "battles a slot", error=BoardError)
        count(self.fresh, "fresh battles", least=0, error=BoardError)
        count(self.weight, "the weight of a test", least=0, error=BoardError)
        if self.weight == self.fresh == 0:
            raise BoardError("expected fresh battles or a weight for tests, got 0 and 0; nothing would be published")

    @property
    def scale(self) -> int:
        return self.weight * self.tests + self.fresh

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        """Return the law if every listing of a model has the model's weight: copies are weights by another name."""
        return self.law_of_draws(panel, models, panel.board.weights_of(models) * np.asarray(copies))

    def law_of_draws(self, panel: Panel, models: Sequence[int], weights: Floats) -> CountLaw:
        """Return the law of the published score if slots hold these models with these odds."""
        if not weights.any():
            raise BoardError("expected a listing with a weight above 0, got none; a producer lists what it names")
        own = [model for model, weight in zip(models, weights, strict=True) if weight]
        laws = [panel.law(model, self.tests, balanced=self.balanced) for model in own]
        champions = champion_of_slots(laws, weights[weights > 0] / weights.sum(), self.slots)
        fresh = [panel.law(model, self.fresh, balanced=self.balanced) for model in own]
        return published(champions, fresh, self.weight)

    def battles(self, listed: int) -> int:
        return self.slots * self.tests + self.fresh


@dataclass(frozen=True)
class NamedFlagships:
    """A reservoir board on which each producer gives a `share` of its draws to the model that it believes best.

    The rest is divided over its other models. Producers err by `noise` Elo (standard deviation), as under `SelfRanked`.
    """

    board: ReservoirBoard
    noise: float = 0.0
    share: float = 1.0
    proven = False  # of weights that a producer has chosen: others may be better
    trusting = True

    def __post_init__(self) -> None:
        number_in(self.noise, "the noise of a name", 0, error=BoardError)
        number_in(self.share, "the share of the draws", 0, 1, error=BoardError, low_open=True)

    @property
    def name(self) -> str:
        off = f"off by {self.noise:g} Elo" if self.noise else "without error"
        return f"reservoir board, {self.share:.0%} of the draws to a named flagship, {off}"

    @property
    def scale(self) -> int:
        return self.board.scale

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        own = [model for model, times in zip(models, copies, strict=True) if times]
        rest = 1 if len(own) == 1 else (1 - self.share) / (len(own) - 1)
        parts = []
        for place, chance in enumerate(_ranked_first(panel.board.ratings[own], self.noise)):
            if chance > NEGLIGIBLE:
                weights = np.where(np.arange(len(own)) == place, self.share, rest)
                law = self.board.law_of_draws(panel, own, weights)
                parts.append(scale(law, chance))
        return mixture(parts)

    def battles(self, listed: int) -> int:
        return self.board.battles(listed)


def _fresh_law(panel: Panel, listed: Sequence[int], votes: int, fresh: int, balanced: bool) -> CountLaw:
    """Return the law of `fresh` battles of the listing that won most of its `votes` battles; a lot breaks ties."""
    champions = champion_of_all([panel.law(model, votes, balanced=balanced) for model in listed])
    return published(champions, [panel.law(model, fresh, balanced=balanced) for model in listed], 0)


def _listings(models: Sequence[int], copies: Sequence[int]) -> list[int]:
    listed = [model for model, times in zip(models, copies, strict=True) for _ in range(times)]
    if not listed:
        raise BoardError("expected at least one listing, got none; a producer without one is not on the board")
    return listed


def _ranked_first(ratings: Floats, noise: float) -> Floats:
    """Return the chance of each listing to be ranked first by a producer who sees ratings with normal noise."""
    if noise == 0:
        best = ratings == ratings.max()
        return np.asarray(best / best.sum(), dtype=float)
    nodes, weights = _noise(NODES)
    nodes, weights = nodes[weights > NEGLIGIBLE], weights[weights > NEGLIGIBLE]
    seen = ratings[:, None] + noise * nodes[None, :]
    below = ndtr((seen[:, None, :] - ratings[None, :, None]) / noise)
    for i in range(len(ratings)):
        below[i, i] = 1.0
    chance = below.prod(axis=1) @ weights
    return np.asarray(chance / chance.sum(), dtype=float)
