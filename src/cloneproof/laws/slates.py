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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.laws.best import best_of_atoms, places_taken, rank_chances
from cloneproof.laws.draws import ValueWeights
from cloneproof.laws.reservoir import CELLS, ReservoirMarket, ReservoirNumbers

LOTS, EVENLY = 5, 4  # nodes of a quadrature over the tie-breaker, evenly spaced


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
        kinds = ReservoirMarket(self.agents, self.horizon).alike
        return float(best_of_atoms([own for own, count in kinds.items() for _ in range(count)], self.attention))

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
