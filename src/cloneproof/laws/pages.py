"""What reservoirs on pages lose if everybody is honest, on drawn worlds: for tuning, where a search compares numbers.

A page has places of falling attention; K' of them are filled (`mechanisms.reservoir.pages` has the mechanisms).
Counts of a block are sums of coins with chances attention times rate, so each value of a rate has one exact law, and a
count is drawn from it by inversion. All numbers are tried on the same worlds and the same uniform numbers, so that
differences between them are far better known than what each loses.

After the laboratory a score is what it was plus a binomial count of designated clicks. What a page is worth at a time
depends on the law at that time only, so that one uniform number an agent will do for all times; the count is its
normal quantile with the correction for skewness, rounded. The integral over time is a midpoint rule in its root.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import scipy

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof.laws.best import places_taken
from cloneproof.laws.draws import ValueWeights

TIMES = 10  # at which a page after the laboratory is looked at
TAIL = 12.0  # standard deviations, and as many counts, after which a law of counts ends
FEWEST, MOST_WORLDS = 60, 1500
WORK = 3e5  # draws of counts in an evaluation, which takes about a thirtieth of a second
ERRORS = 2.58  # an interval at 99 % has this many standard errors


class PageNumbers(NamedTuple):
    """Numbers of a reservoir on pages.

    kind    "tests": `size` draws of `length` views a place; "streams": `size` blocks of `length` rotations
    """

    kind: str
    length: int
    size: int = 1

    def pages(self, agents: int) -> int:
        """Return the pages of the laboratory."""
        return agents * self.length * self.size


@dataclass(frozen=True)
class PageMarket:
    """A market with places as tuning sees it: the atoms or nodes of priors, pages, and the attention of each place.

    >>> prior = [(0.02, 0.5), (0.06, 0.5)]
    >>> market = PageMarket([[prior, prior]] * 3, 20_000, (1.0, 0.5))
    >>> [round(market.lost(PageNumbers("tests", views, 4))[0], 2) for views in (10, 80, 500)]
    [0.1, 0.07, 0.12]
    """

    agents: Sequence[Sequence[ValueWeights]]
    horizon: int
    attention: Sequence[float]

    @cached_property
    def filled(self) -> FloatArray:
        """Attention of the places that are filled and seen."""
        taken = np.array(places_taken(self.attention, len(self.agents)), dtype=float)
        return taken[taken > 0]

    @property
    def everybody(self) -> bool:
        """Whether every agent has a place."""
        return len(self.filled) == len(self.agents)

    @cached_property
    def values(self) -> FloatArray:
        """Rates that an original may have."""
        return np.unique([value for own in self.agents for atoms in own for value, _ in atoms])

    @cached_property
    def best_item(self) -> float:
        """Expected rate of the best original of an agent, on average over agents."""
        return float(self._best_rates(MOST_WORLDS).mean())

    def worlds_for(self, numbers: PageNumbers, work: float) -> int:
        """Return how many worlds an evaluation has, so that each takes about as long as any other."""
        drawn = len(self.agents) * (numbers.size + 2 * TIMES)
        return max(FEWEST, min(MOST_WORLDS, int(work / drawn)))

    @cached_property
    def _originals(self) -> IntArray:
        """Places in `values` of the drawn rates: worlds x agents x originals; -1 after the last one of an agent."""
        most = max(map(len, self.agents))
        drawn = np.full((MOST_WORLDS, len(self.agents), most), -1)
        chances = _uniform(0, drawn.shape)
        for i, own in enumerate(self.agents):
            for o, atoms in enumerate(own):
                places = np.searchsorted(self.values, [value for value, _ in atoms])
                reached = np.cumsum([weight for _, weight in atoms])
                at = np.searchsorted(reached, chances[:, i, o] * reached[-1], side="right")
                drawn[:, i, o] = places[np.minimum(at, len(places) - 1)]
        return drawn

    def _drawn(self, worlds: int, draw: int) -> IntArray:
        """Return what draw number `draw` of each agent holds, as places in `values`: worlds x agents."""
        counts = np.array([len(own) for own in self.agents])
        chosen = (_uniform(1 + 2 * draw, (worlds, len(counts))) * counts).astype(int)
        return np.take_along_axis(self._originals[:worlds], chosen[..., None], axis=2)[..., 0]

    def _best_rates(self, worlds: int) -> FloatArray:
        """Return the rate of the best original of each agent: worlds x agents."""
        held = self._originals[:worlds]
        return np.asarray(np.where(held < 0, 0.0, self.values[held]).max(axis=2))

    def lost(self, numbers: PageNumbers, work: float = WORK) -> tuple[float, float]:
        """Return which part of the best page's clicks is lost, and the error of that at 99 %."""
        worlds = self.worlds_for(numbers, work)
        best = self.horizon * (-np.sort(-self._best_rates(worlds), axis=1)[:, : len(self.filled)] @ self.filled)
        lost, scale = best - self._earned(worlds, numbers), float(best.mean())
        return float(lost.mean()) / scale, ERRORS * float(lost.std()) / worlds**0.5 / scale

    def _earned(self, worlds: int, numbers: PageNumbers) -> FloatArray:
        """Return what is earned in each world in the laboratory and after it."""
        kind, length, size = numbers
        law, seen = ClickLaws(self.values, np.repeat(self.filled, length)), float(self.filled.sum())
        held, views = self._drawn(worlds, 0), np.zeros(worlds)
        if kind == "tests":
            best = np.full(held.shape, -1)
            champion = held
            for draw in range(size):
                held = self._drawn(worlds, draw)
                level = law.drawn(held, _uniform(2 + 2 * draw, held.shape))
                champion, best = np.where(level > best, held, champion), np.maximum(level, best)
                views += length * self.values[held].sum(axis=1)
            held, score = champion, best
        else:
            streams = _Streams(self, worlds, law)
            for _ in range(size):
                views += length * self.values[streams.held].sum(axis=1)
                streams.step()
            held, score = streams.held, streams.balance
        rest = max(0, self.horizon - numbers.pages(len(self.agents)))
        earned: FloatArray = views * seen + self._after(held, score, rest)
        return earned

    def _after(self, held: IntArray, score: IntArray, rest: int) -> FloatArray:
        """Return what is earned in each world on `rest` pages after the laboratory."""
        agents, worlds = len(self.agents), len(held)
        rates, earned = self.values[held], np.zeros(worlds)
        chance, lots = self.filled[-1] * rates, 0.5 * _uniform(-1, held.shape)
        normal = scipy.special.ndtri(_uniform(-2, held.shape))
        if len(self.filled) == 1 and not self.everybody:  # no click counts
            ranked = np.take_along_axis(rates, np.argsort(-(score + lots), axis=1), axis=1)
            return np.asarray(rest * (ranked[:, : len(self.filled)] @ self.filled))
        edges = rest * (np.arange(TIMES + 1) / TIMES) ** 2
        for start, end in pairwise(edges.tolist()):
            turns = (start + end) / 2 / (1 if self.everybody else agents)
            spread = np.sqrt(turns * chance * (1 - chance))
            count = turns * chance + spread * normal + (1 - 2 * chance) * (normal**2 - 1) / 6
            total = score + np.maximum(0.0, np.round(count)) + lots
            ranked = np.take_along_axis(rates, np.argsort(-total, axis=1), axis=1)
            earned += (end - start) * self._page(ranked)
        return earned

    def _page(self, ranked: FloatArray) -> FloatArray:
        """Return what a page is worth by rates in order of rank: the last place goes to a designated agent."""
        places, agents = self.filled, len(self.agents)
        worth = ranked[:, : len(places)] @ places
        if not self.everybody:
            last = len(places) - 1
            behind = ranked[:, last:].sum(axis=1) - (agents - last) * ranked[:, last]
            worth = worth + places[-1] * behind / agents
        return np.asarray(worth)


class ClickLaws:
    """Laws of the number of clicks of given views, for each value of a rate."""

    def __init__(self, values: FloatArray, attention: FloatArray) -> None:
        chances = np.outer(values, attention)
        mean, spread = chances.sum(axis=1), np.sqrt((chances * (1 - chances)).sum(axis=1))
        most = min(len(attention), int((mean + TAIL * spread).max() + TAIL))
        law = np.zeros((len(values), most + 1))
        law[:, 0] = 1.0
        different, repeats = np.unique(attention, return_counts=True)
        for seen, views in zip(different, repeats, strict=True):
            below = scipy.special.bdtr(np.minimum(np.arange(most + 1), views), views, (seen * values)[:, None])
            added = np.diff(below, axis=1, prepend=0.0)
            size = 2 * most + 2
            law = np.fft.irfft(np.fft.rfft(law, size) * np.fft.rfft(added, size), size)[:, : most + 1]
        reached = np.minimum(1.0, np.maximum.accumulate(np.cumsum(np.maximum(law, 0.0), axis=1), axis=1))
        self._width, self._table = most + 1, (reached + np.arange(len(values))[:, None]).ravel()

    def drawn(self, held: IntArray, chances: FloatArray) -> IntArray:
        """Return counts of the values at these places, by inversion."""
        at = np.searchsorted(self._table, held + chances) - held * self._width
        return np.asarray(np.clip(at, 0, self._width - 1))


class _Streams:
    """Streams of all agents in all worlds: what each shows, and the balance of that."""

    def __init__(self, market: PageMarket, worlds: int, law: ClickLaws) -> None:
        self.market, self.law, self.block = market, law, 0
        self.held = market._drawn(worlds, 0)
        self.balance = np.ones(self.held.shape, int)

    def step(self) -> None:
        """Charge a block to each."""
        self.block += 1
        self.balance += self.law.drawn(self.held, _uniform(2 * self.block, self.held.shape)) - 1
        broke = self.balance == 0
        self.held = np.where(broke, self.market._drawn(len(self.held), self.block), self.held)
        self.balance[broke] = 1


def _uniform(stream: int, shape: tuple[int, ...]) -> FloatArray:
    """Return uniform numbers in (0, 1), the same on all machines, row by row: more rows leave the first as they are.

    >>> bool((_uniform(3, (2, 2)) == _uniform(3, (5, 2))[:2]).all())
    True
    """
    words = np.random.PCG64(stream + 2).random_raw(int(np.prod(shape)))
    return np.asarray(((words >> np.uint64(11)) + 0.5) * 2.0**-53).reshape(shape)
