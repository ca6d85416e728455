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
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np
from scipy.special import expit, logit, ndtri

from cloneproof._lib.checks import count
from cloneproof.boards.board import ELO, Board, Floats, win_chance
from cloneproof.boards.laws import (
    balanced_law,
    best_of,
    champion_of_all,
    champion_of_slots,
    normal_law,
    published,
    stretched,
)
from cloneproof.errors import BoardError
from cloneproof.laws.counts import CountLaw, binomial_floats

RESOLUTION: Final = 5.0  # units of a coarse panel in a standard deviation of a count
FINE: Final = 8.0  # the same of a panel in which rules are judged
NORMAL: Final = 500  # battles from which on rules are judged by normal counts
FINEST: Final = 2_000  # least number of steps from 0 to 1 of a mean of counts
RUNS: Final = 4  # runs of neighbours on the board, for which parameters are searched
IN_RUN: Final = 8  # producers in each


class Panel:
    """A board's models against its fixed panel: win probabilities, means, and cached laws of counts."""

    def __init__(self, board: Board) -> None:
        self.board, self.chances = board, board.chances()
        self.means: Floats = self.chances.mean(axis=1)
        self.variances: Floats = (self.chances * (1 - self.chances)).mean(axis=1)
        self.unit, self.normal_from = 0, math.inf
        self.rows: dict[int, Floats] = {}  # chances of variants, which have numbers after those of the models
        self._laws: dict[tuple[int, int, bool], CountLaw] = {}

    def coarse(self, battles: int, resolution: float = RESOLUTION) -> Panel:
        """Return the panel with normal counts in units that still resolve `battles` battles.

        Use it to search for parameters, and `fine` to judge them.
        """
        rough = copy(self)
        rough.unit = max(1, int(math.sqrt(battles * float(np.median(self.variances))) / resolution))
        rough._laws = {}
        return rough

    def fine(self, battles: int) -> Panel:
        """Return the panel with normal counts of many battles, in small units if all counts are such."""
        rough = self.coarse(battles if battles >= NORMAL else 0, FINE)
        rough.unit, rough.normal_from = rough.unit if battles >= NORMAL else 0, NORMAL
        return rough

    def part(self) -> Panel:
        """Return the panel with some producers only, where there are many: runs of neighbours, from the top to the end.

        Use it to search for parameters.
        """
        some = copy(self)
        runs = np.array_split(np.arange(len(self.models)), RUNS)
        names = list(self.models)
        some.models = {names[i]: self.models[names[i]] for run in runs for i in run[:IN_RUN]}
        return some

    def with_variants(self, name: str, variants: int, spread: float) -> tuple[Panel, tuple[int, ...]]:
        """Return the panel with variants of a producer's best model, and its models, the best first.

        Their strengths are normal quantiles with a standard deviation of `spread` Elo about the model's; opponents
        stay.
        """
        board, (best, *_) = self.board, self.models[name]
        steps = ndtri((np.arange(variants) + 0.5) / variants)
        steps = steps * (spread / max(float(steps.std()), 1e-9))
        panel = board.ratings if board.panel is None else board.panel
        rating, mean = float(board.ratings[best]), None if board.means is None else float(board.means[best])
        rows = (
            win_chance(rating + steps[:, None] - panel) if mean is None else expit(logit(mean) + steps / ELO)[:, None]
        )
        more = copy(self)
        more._laws = dict(self._laws)
        more.board = replace(
            board, models=(*board.models, *(f"variant {k} of {name}" for k in range(variants))),
            producers=(*board.producers, *[name] * variants), ratings=np.append(board.ratings, rating + steps),
            errors=np.append(board.errors, np.zeros(variants)), votes=np.append(board.votes, np.zeros(variants, int)),
            panel=panel, means=None if board.means is None else np.append(board.means, rows.mean(axis=1)),
        )  # fmt: skip
        more.means = np.append(self.means, rows.mean(axis=1))
        more.variances = np.append(self.variances, (rows * (1 - rows)).mean(axis=1))
        more.rows = {len(board.models) + k: row for k, row in enumerate(rows)}
        return more, tuple(sorted((*self.models[name], *more.rows), key=lambda i: -more.board.ratings[i]))

    def law(self, model: int, battles: int, *, balanced: bool = False) -> CountLaw:
        """Return the law of a model's wins in `battles` battles, with random opponents or opponents that take turns."""
        key = (model, battles, balanced)
        if key not in self._laws:
            self._laws[key] = self._computed(model, battles, balanced)
        return self._laws[key]

    def _computed(self, model: int, battles: int, balanced: bool) -> CountLaw:
        mean = float(self.means[model])
        if self.unit or battles >= self.normal_from:
            variance = float(self.variances[model]) if balanced else mean * (1 - mean)
            return normal_law(battles, mean, variance, max(1, self.unit))
        if not balanced:
            return binomial_floats(battles, mean)
        return balanced_law(battles, self.rows[model] if model in self.rows else self.chances[model])

    @cached_property
    def models(self) -> dict[str, tuple[int, ...]]:
        """Indices of each producer's models, the best first."""
        return {name: tuple(int(i) for i in self.board.models_of(name)) for name in self.board.names}


class ListingRule:
    """Rule that turns battles into a published score for each producer.

    proven  whether a theorem says that no copies and no withholding pay
    """

    proven = False

    @property
    def name(self) -> str:
        """Short description of the rule."""
        raise NotImplementedError

    @property
    def scale(self) -> int:
        """Divisor that makes a published score a win rate."""
        raise NotImplementedError

    @property
    def trusting(self) -> bool:
        """Whether it takes the producers' word for which of their models is better."""
        return False

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        """Return the law of the published score of a producer that lists each model `copies` times (0: withheld)."""
        raise NotImplementedError

    def battles(self, listed: int) -> int:
        """Return how many battles a producer with `listed` listings takes part in."""
        raise NotImplementedError


@dataclass(frozen=True)
class ByListing(ListingRule):
    """Rules under which every listing fights `votes` battles, and nothing else."""

    votes: int
    balanced: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        count(self.votes, "votes", error=BoardError)

    @property
    def scale(self) -> int:
        return self.votes

    def battles(self, listed: int) -> int:
        return self.votes * listed


@dataclass(frozen=True)
class BestListing(ByListing):
    """Every listing fights `votes` battles; a producer is as good as its best listing. The usual board.

    With `most` only so many listings of a producer count, those that it believes best; with `cap` it has no others.
    """

    most: int | None = field(default=None, kw_only=True)
    cap: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cap or self.most is not None:
            count(self.most, "listings that count", error=BoardError)

    @property
    def trusting(self) -> bool:
        return self.most is not None

    @property
    def name(self) -> str:
        return f"cap({self.most})" if self.cap else "best-of" if self.most is None else f"best-of({self.most})"

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        listed = _listings(models, copies)[: self.most]
        return best_of([panel.law(model, self.votes, balanced=self.balanced) for model in listed])

    def battles(self, listed: int) -> int:
        return super().battles(min(listed, self.most or listed) if self.cap else listed)


@dataclass(frozen=True)
class MeanListing(ByListing):
    """Every listing fights `votes` battles; a producer is as good as the mean of its last ones, of all without `last`.

    Producers enter their models in the order of strength, so that the best come last. Means are taken as normal.
    """

    last: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.last is not None:
            count(self.last, "listings that count", error=BoardError)

    @property
    def trusting(self) -> bool:
        return self.last is not None

    @property
    def name(self) -> str:
        return "mean-of" if self.last is None else f"last-of({self.last})"

    @property
    def scale(self) -> int:
        return self.votes * max(1, round(FINEST / self.votes))  # means of few votes lie between counts

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        listed = _listings(models, copies)[: self.last]
        means = panel.means[listed]
        variances = panel.variances[listed] if self.balanced else means * (1 - means)
        variance = self.scale / self.votes * float(variances.mean()) / len(listed)
        return normal_law(self.scale, float(means.mean()), variance, max(1, panel.unit * self.scale // self.votes))


@dataclass(frozen=True)
class Provisional(ListingRule):
    """Every listing fights `votes` battles; the best is provisional until `fresh` more battles, which alone count.

    With `over` that holds for producers with more than so many listings; of others the best listing counts.
    """

    votes: int
    fresh: int
    balanced: bool = False
    over: int = 0

    @property
    def name(self) -> str:
        return f"fresh-votes({self.fresh}, over={self.over})" if self.over else f"fresh-votes({self.fresh})"

    @property
    def scale(self) -> int:
        return max(self.votes, self.fresh) if self.over else self.fresh

    def law(self, panel: Panel, models: Sequence[int], copies: Sequence[int]) -> CountLaw:
        listed = _listings(models, copies)
        counts = [panel.law(model, self.votes, balanced=self.balanced) for model in listed]
        if len(listed) <= self.over:
            return stretched(best_of(counts), self.scale / self.votes)
        fresh = [panel.law(model, self.fresh, balanced=self.balanced) for model in listed]
        return stretched(published(champion_of_all(counts), fresh, 0), self.scale / self.fresh)

    def battles(self, listed: int) -> int:
        return self.votes * listed + self.fresh * (listed > self.over)


@dataclass(frozen=True)
class ReservoirBoard(ListingRule):
    """`slots` draws from the listings, `tests` battles each; the best fights `fresh` more.

    The score is `weight` times the champion's count in its test plus its fresh count. With `balanced` the opponents of
    the panel take turns, and the theorem then assumes Bradley-Terry.
    """

    slots: int
    tests: int
    fresh: int
    weight: int = 1
    balanced: bool = False
    proven = True

    @property
    def name(self) -> str:
        return f"reservoir({self.slots}, {self.tests}, {self.fresh}, weight={self.weight})"

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
        own, times = zip(*((model, times) for model, times in zip(models, copies, strict=True) if times), strict=True)
        laws = [panel.law(model, self.tests, balanced=self.balanced) for model in own]
        champions = champion_of_slots(laws, np.array(times) / sum(times), self.slots)
        fresh = [panel.law(model, self.fresh, balanced=self.balanced) for model in own]
        return published(champions, fresh, self.weight)

    def battles(self, listed: int) -> int:
        return self.slots * self.tests + self.fresh


def _listings(models: Sequence[int], copies: Sequence[int]) -> list[int]:
    listed = [model for model, times in zip(models, copies, strict=True) for _ in range(times)]
    if not listed:
        raise BoardError("expected at least one listing, got none; a producer without one is not on the board")
    return listed
