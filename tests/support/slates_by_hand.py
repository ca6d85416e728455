"""The reservoir on slates by enumeration in fractions: a second program, by the words of the definition only."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import permutations, product

Means = Sequence[Sequence[Fraction]]  # of the arms that each agent registered, copies included


def laboratory_payoffs(
    means: Means, attention: Sequence[Fraction], pulls: int, draws: int, horizons: Sequence[int]
) -> dict[int, list[Fraction]]:
    """Return each agent's expected clicks at each horizon, over all orders, draws and counts."""
    agents, filled = len(means), [*attention[: len(means)]]
    paid = {horizon: [Fraction(0)] * agents for horizon in horizons}
    orders = list(permutations(range(agents)))
    for order in orders:
        timetable = [agent for _ in range(draws) for agent in order]
        for held in product(*(range(len(means[agent])) for agent in timetable)):
            rates = [means[agent][arm] for agent, arm in zip(timetable, held, strict=True)]
            drawn = Fraction(1, len(orders) * math.prod(len(means[agent]) for agent in timetable))
            for chance, counts in _counts(rates, filled[-1], pulls):
                pages = _pages(means, order, timetable, rates, counts, filled, pulls, max(horizons))
                earned = [Fraction(0)] * agents
                for page, clicks in enumerate(pages, start=1):
                    earned = [a + b for a, b in zip(earned, clicks, strict=True)]
                    if page in paid:
                        paid[page] = [a + drawn * chance * b for a, b in zip(paid[page], earned, strict=True)]
    return paid


def _counts(rates: Sequence[Fraction], attention: Fraction, pulls: int) -> Iterator[tuple[Fraction, tuple[int, ...]]]:
    laws = [
        [math.comb(pulls, k) * (attention * v) ** k * (1 - attention * v) ** (pulls - k) for k in range(pulls + 1)]
        for v in rates
    ]
    for counts in product(range(pulls + 1), repeat=len(rates)):
        chance = math.prod((law[k] for law, k in zip(laws, counts, strict=True)), start=Fraction(1))
        if chance:
            yield chance, counts


def _pages(
    means: Means,
    order: Sequence[int],
    timetable: Sequence[int],
    rates: Sequence[Fraction],
    counts: Sequence[int],
    filled: Sequence[Fraction],
    pulls: int,
    horizon: int,
) -> Iterator[list[Fraction]]:
    """Yield the expected clicks of each agent on each page, given draws and counts."""
    for page in range(horizon):
        test = page // pulls
        clicks = [Fraction(0)] * len(means)
        finished = range(min(test, len(timetable)))
        ranked: list[int] = []
        for k in sorted(finished, key=lambda k: (-counts[k], k)):
            if timetable[k] not in [timetable[other] for other in ranked]:
                ranked.append(k)
        places = list(filled)
        if test < len(timetable):
            clicks[timetable[test]] += places.pop() * rates[test]
        waiting = [agent for agent in order if agent not in [timetable[k] for k in ranked]]
        for place, attention in enumerate(places):
            if place < len(ranked):
                clicks[timetable[ranked[place]]] += attention * rates[ranked[place]]
            elif waiting:
                agent = waiting[(page + place - len(ranked)) % len(waiting)]
                clicks[agent] += attention * sum(means[agent]) / len(means[agent])
        yield clicks
