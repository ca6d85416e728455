"""Ranks on a slate: who stands where, what the best slate is worth, and what the reservoir with a laboratory loses.

A page has places 1, .., P of falling attention, and each provider stands in one of them at most. The reservoir tests
draws on a fixed timetable, always in the last place, the laboratory: first draws of all providers, n pages each, then
second draws, up to s each. The places in front go to providers by the best count of their finished tests, each with the
arm of that test; who has none yet takes turns in what is left, with uniform draws. After the last test the laboratory
goes to the next in rank (docs/textbook/slates.md). With fewer providers than places the last places stay empty, and the
laboratory is the last of those that are filled.

If all providers have j finished tests, provider k stands in rank m + 1 if m of the others have a better best count.
Given its own, the others are independent, so the number ahead is a sum of independent coins (`rank_chances`). Counts in
the laboratory have the law of a rate times its attention, so this market is one of scaled rates, and each page is worth
the expected rates in rank 1, 2, .. times attention. `SlateMarket` breaks ties of counts at random and takes a pass, in
which some providers have one test more than others, at the average of its ends; the closed form has neither.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.bounds.draws import ValueWeights, weights_of
from cloneproof.bounds.reservoir import CELLS, ReservoirMarket, ReservoirNumbers
from cloneproof.bounds.scan import LawArray

MOST_DRAWS = 200  # of a provider that are tried
DRAWS = 1.5  # of them, per original and ln(T)
PULLS = 3.0  # ratio of the lengths of tests that are tried first
FINEST = 1.05  # ratio at which the search ends
LOTS, EVENLY = 5, 4  # nodes of a quadrature over the tie-breaker, evenly spaced


def rank_chances(others: Sequence[tuple[int, LawArray]], places: int) -> LawArray:
    """Return the chances that 0, 1, .., places - 1 of the others are ahead, along a last axis.

    Each kind of others is given by its number and the chance that one of them is ahead.

    >>> rank_chances([(1, np.array(0.5)), (2, np.array(0.25))], 2).tolist()
    [0.28125, 0.46875]
    """
    found: LawArray | None = None
    for count, ahead in others:
        kept = min(places, count + 1)
        terms = [math.comb(count, m) * ahead**m * (1 - ahead) ** (count - m) for m in range(kept)]
        law = np.stack([*terms, *[ahead * 0] * (places - kept)], axis=-1)
        found = law if found is None else _joined(found, law)
    assert found is not None
    return found


def _joined(first: LawArray, second: LawArray) -> LawArray:
    """Return the law of a sum of two numbers, as far as the first one goes."""
    places = first.shape[-1]
    out = first * second[..., :1]
    for m in range(1, places):
        out[..., m:] += first[..., : places - m] * second[..., m : m + 1]
    return np.asarray(out)


def places_taken(attention: Sequence[float], agents: int) -> tuple[float, ...]:
    """Return the attention of the places that are filled: as many as there are providers, at most."""
    return tuple(attention[: min(len(attention), agents)])


def slate_worth(
    values: LawArray, below: LawArray, agents: Sequence[int], attention: Sequence[float] | LawArray
) -> LawArray:
    """Return the expected worth of a page with the best arm of each provider, the best of them in front.

    Parameters
    ----------
    values
        All values of bests, rising.
    below
        For each kind of providers (rows), the chance that the best of one is below the end of each interval between
        neighbouring values.
    agents
        The number of providers of each kind.
    attention
        Of the places that are filled.

    >>> float(slate_worth(np.array([0.0, 1.0]), np.array([[0.5]]), [2], (1.0, 0.5)))  # two, one or no hit
    0.875
    """
    kinds = [(count, 1 - row) for count, row in zip(agents, below, strict=True)]
    fewer = np.cumsum(rank_chances(kinds, len(attention)), axis=-1)  # at most 0, 1, .. bests are above
    steps = (values[1:] - values[:-1])[:, None]
    ranked = values[0] + ((1 - fewer) * steps).sum(axis=0)
    return np.asarray((ranked * np.array(attention)).sum())


def best_slate_of_quantiles(
    providers: Sequence[Sequence[Callable[[float], float]]], attention: Sequence[float], cells: int = 4000
) -> float:
    """Return the worth of the best slate for continuous priors, given the quantile functions of each provider.

    The chances are taken at the middle of the intervals of a fine grid, with an error of the order of 1 / cells^2.

    >>> round(best_slate_of_quantiles([[lambda u: u]] * 3, (1.0, 0.5)), 6)
    1.0
    """
    t = np.linspace(0.0, 1.0, cells + 1)
    places = t * t * (3 - 2 * t)
    functions = {quantile for provider in providers for quantile in provider}
    tables = {quantile: np.array([quantile(float(u)) for u in places]) for quantile in functions}
    grid = np.unique(np.concatenate([*tables.values()]))
    below = []
    for provider in providers:
        up_to = np.prod([np.interp(grid, tables[q], places) ** count for q, count in Counter(provider).items()], axis=0)
        below.append((up_to[1:] + up_to[:-1]) / 2)
    return float(slate_worth(grid, np.array(below), [1] * len(providers), places_taken(attention, len(providers))))


class TunedSlates(NamedTuple):
    """Pulls of a test and draws of each provider, their regret, and the share of the pages with tests."""

    rounds: int
    draws: int
    regret: float
    exploration: float


@dataclass(frozen=True)
class SlateMarket:
    """A market with places as the regret sees it: priors, pages, and the attention of each place.

    >>> prior = [(0.1, 0.5), (0.3, 0.5)]
    >>> market = SlateMarket([[prior, prior]] * 3, 10_000, (1.0, 0.5))
    >>> [round(market.regret(100, draws)) for draws in (1, 4, 16)]
    [589, 123, 195]
    """

    agents: Sequence[Sequence[ValueWeights]]
    horizon: int
    attention: Sequence[float]
    expected_best: float | None = None  # worth of a page of the best slate, if values are nodes of a quadrature
    cells: int = CELLS

    @cached_property
    def filled(self) -> FloatArray:
        """Attention of the places that are filled; the last is the laboratory's."""
        return np.array(places_taken(self.attention, len(self.agents)))

    @cached_property
    def tested(self) -> ReservoirMarket:
        """Return the market as the laboratory sees it: rates times its attention."""
        scale = float(self.filled[-1])
        scaled = [[[(value * scale, weight) for value, weight in atoms] for atoms in agent] for agent in self.agents]
        return ReservoirMarket(scaled, self.horizon, self.expected_best, self.cells)

    @cached_property
    def average(self) -> float:
        """Return the expected rate of a uniform draw of a random provider."""
        means = [
            sum(v * w for v, w in atoms) / sum(w for _, w in atoms) / len(agent)
            for agent in self.agents
            for atoms in agent
        ]
        return sum(means) / len(self.agents)

    @cached_property
    def best_page(self) -> float:
        """Return the expected clicks of a page of the best slate of different providers."""
        if self.expected_best is not None:
            return self.expected_best
        kinds = ReservoirMarket(self.agents, self.horizon)
        below = [np.prod([np.cumsum(weights_of(a, kinds.values)) for a in agent], axis=0) for agent in kinds.alike]
        return float(slate_worth(kinds.values, np.array(below)[:, :-1], [*kinds.alike.values()], self.filled.tolist()))

    def ranked_rates(self, rounds: int, draws: int) -> tuple[FloatArray, FloatArray]:
        """Return expected rates in rank 1, 2, ..: after 0, 1, .. tests of all, and during first tests by their number.

        During first tests some have one and the others none; each of the others is taken to have one with the chance
        that is right on average. A place without a provider in rank shows a uniform draw.
        """
        market, places, count = self.tested, len(self.filled), len(self.agents)
        kinds = np.array([*market.alike.values()])
        after, first = np.zeros((draws + 1, places)), np.zeros((count, places))
        some = np.arange(count)[:, None]  # providers with a finished first test
        share = np.maximum(0, some - 1) / max(1, count - 1)
        for below, at, weights in market.scores(ReservoirNumbers(rounds, draws, None), EVENLY, LOTS):
            failed, _, paid = market.draws.powers(draws, below, at)  # kinds x levels x j
            for k, own in enumerate(kinds):
                others = [(int(n) - (k == i), 1 - failed[i]) for i, n in enumerate(kinds)]
                ahead = rank_chances(others, places)  # levels x j x m
                pay = own * weights[:, None] * paid[k] * np.arange(1, draws + 2)
                after[1:] += (pay[:, :-1, None] * ahead[:, 1:]).sum(axis=0)
                early = rank_chances([(n, share * ahead[:, 1]) for n, ahead in others], places)  # some x levels x m
                first += (pay[:, 0, None] * early).sum(axis=1) * some / count
        scale = float(self.filled[-1])
        after, first = after / scale, first / scale
        after[0] = self.average
        late = np.arange(places) >= some
        return after, np.where(late, self.average, first)

    def regrets(self, rounds: int, draws: int) -> FloatArray:
        """Return the regret with 1, 2, .., `draws` draws."""
        count, horizon, places = len(self.agents), self.horizon, self.filled
        if places[-1] == 0:  # nothing is ever learnt in such a laboratory
            return np.full(draws, horizon * (self.best_page - self.average * float(places.sum())))
        after, first = self.ranked_rates(rounds, draws)
        front = np.append(places[:-1], 0.0)
        early, whole = first @ front, after @ front
        earned, left = np.empty(draws), horizon
        tests = 0.0
        for j in range(draws):
            stages = np.clip(left - rounds * np.arange(count), 0, rounds)
            pages = stages.sum()
            mixed = (stages * early).sum() if j == 0 else pages * (whole[j] + whole[j + 1]) / 2
            tests += mixed + pages * places[-1] * self.average
            left -= pages
            earned[j] = tests + left * float(after[j + 1] @ places)
        return np.asarray(horizon * self.best_page - earned)

    def regret(self, rounds: int, draws: int) -> float:
        """Return the expected clicks lost against the best slate of different providers, if everybody is honest."""
        return float(self.regrets(rounds, draws)[-1])


def tune_slates(market: SlateMarket, coarse: SlateMarket | None = None) -> TunedSlates:
    """Find the pulls and draws of about the smallest regret; searches in a coarse market if one is given.

    >>> prior = [(0.1, 0.5), (0.3, 0.5)]
    >>> tuned = tune_slates(SlateMarket([[prior, prior]] * 3, 10_000, (1.0, 0.5)))
    >>> tuned.regret < 160
    True
    """
    searched = market if coarse is None else coarse
    count, horizon = len(market.agents), market.horizon
    most = min(MOST_DRAWS, math.ceil(DRAWS * max(map(len, market.agents)) * math.log(horizon + 1)))
    known: dict[int, tuple[float, int]] = {}

    def cost(rounds: int) -> float:
        if rounds not in known:
            regrets = searched.regrets(rounds, max(1, min(most, -(-horizon // (rounds * count)))))
            known[rounds] = float(regrets.min()), 1 + int(regrets.argmin())
        return known[rounds][0]

    longest = max(1, horizon // count)
    tried = sorted({min(longest, round(PULLS**k)) for k in range(math.ceil(math.log(longest + 1, PULLS)) + 1)})
    best, ratio = min(tried, key=cost), PULLS
    while (ratio := math.sqrt(ratio)) > FINEST:
        near = [best, max(1, round(best / ratio)), min(longest, round(best * ratio))]
        best = min(near, key=cost)
    draws = known[best][1]
    return TunedSlates(best, draws, market.regret(best, draws), min(1.0, best * draws * count / horizon))
