"""The checker's laws: what realised means come to in rewards and scores, in rational and ball arithmetic.

Nothing of the search and nothing of the engines is used here. Realised means are enumerated one by one, laws are whole
and ties are integrals of polynomials in a uniform tie-breaker x: a candidate at value s wins if each other one is
below s, or at s with a smaller tie-breaker. Numbers of the file are the dyadic fractions that they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import Any

from flint import arb, arb_poly, fmpq, fmpz

from cloneproof.analysis.certificate.document import require
from cloneproof.analysis.certificate.game import Game, likely

TICK = 1 << 60  # the session adds up rewards in these parts, and judges by averages rounded once to a float
Ball = Any
CheckedMeans = tuple[tuple[Fraction, int], ...]  # realised means, and how many arms have each


def to_ball(value: Fraction | int) -> Ball:
    """The fraction as a ball around its nearest numbers."""
    return arb(fmpq(value.numerator, value.denominator))


@cache
def _binomial_polynomial(mean: Fraction, rounds: int) -> Ball:
    """The binomial law as a generating polynomial, whole."""
    p, q, ways = to_ball(mean), to_ball(1 - mean), fmpz.bin_uiui
    return arb_poly([arb(ways(rounds, j)) * p**j * q ** (rounds - j) for j in range(rounds + 1)])


def _binomial_law(mean: Fraction, rounds: int) -> list[Ball]:
    return [_binomial_polynomial(mean, rounds)[j] for j in range(rounds + 1)]


@lru_cache(maxsize=32)
def _law_until(mean: Fraction, rounds: int, last: int) -> list[Ball]:
    """The binomial law up to a number of successes, term by term."""
    if mean in (0, 1):
        return [arb(int(j == rounds * mean)) for j in range(last + 1)]
    odds, law = to_ball(mean / (1 - mean)), [to_ball(1 - mean) ** rounds]
    for j in range(last):
        law.append(law[j] * odds * (rounds - j) / (j + 1))
    return law


@lru_cache(maxsize=32)
def _fresh_scores(mean: Fraction, rounds: int, last: int) -> list[Ball]:
    """The law of a score; what is above the last one is one more score, twice for ties among them."""
    law = _law_until(mean, rounds, last)
    if last == rounds:
        return law
    missed = (1 - sum(law, arb(0))).nonnegative_part()
    return [*law, (2 * missed).union(arb(0))]


def mean_of(types: CheckedMeans) -> Fraction:
    """The average mean over the arms."""
    return sum((v * count for v, count in types), Fraction(0)) / sum(count for _, count in types)


def late_rounds(game: Game, arms: int) -> Ball:
    """E max(H - k m, 0): the rounds of the trial after the commitment; exactly 0 where there are none."""
    cap, total = arms * game.m, arb(0)
    if game.trial is not None:  # not drawn round by round
        return to_ball(sum((chance * max(0, rounds - cap) for chance, rounds in game.trial), Fraction(0)))
    game.spend(2 * game.horizon)
    term = arb(1) / arb(game.n) ** game.horizon  # P(H = T), and on downwards
    for h in range(game.horizon, cap, -1):
        total += term * (h - cap)
        term = term * (game.n - 1) * h / (game.horizon - h + 1)
    return total


def realised_means(game: Game, name: str, copies: tuple[int, ...]) -> dict[CheckedMeans, Fraction]:
    """Every multiset of realised means with its probability."""
    priors, chances = game.priors[name], dict[CheckedMeans, Fraction]()
    require(len(copies) == len(priors) and sum(copies) > 0, f"{name!r} has other originals than {copies}")
    game.spend(10 * math.prod(len(p) for p in priors) + 100 * sum(copies))
    for drawn in product(*priors):
        arms = dict[Fraction, int]()
        for (value, _), copied in zip(drawn, copies, strict=True):
            arms[value] = arms.get(value, 0) + copied
        types = tuple(sorted((value, copied) for value, copied in arms.items() if copied))
        chances[types] = chances.get(types, Fraction(0)) + math.prod((w for _, w in drawn), start=Fraction(1))
    each = 150 + sum(copies) + sum(copies) ** 2 // 200  # of a commitment, for every type and success
    for types in (types for types in chances if len(types) > 1 and game.bernoulli):
        game.spend(each * len(types) * likely(types[-1][0], game.m))
    return chances


@cache
def committed_chances(m: int, bernoulli: bool, types: CheckedMeans) -> tuple[Ball, ...]:
    """The chance that the arm committed to is of each type."""
    if len(types) == 1:
        return (arb(1),)
    if not bernoulli:
        seen = [float(Fraction(round(v * TICK), TICK)) for v, _ in types]
        tied = [count if value == max(seen) else 0 for value, (_, count) in zip(seen, types, strict=True)]
        return tuple(to_ball(Fraction(count, sum(tied))) for count in tied)
    last = likely(types[-1][0], m)  # more successes than that: any of the arms may be the one
    laws = [_law_until(v, m, last) for v, _ in types]
    totals, below = [arb(0)] * len(types), [arb(0)] * len(types)
    for s in range(last + 1):
        factors = [arb_poly([low, law[s]]) for low, law in zip(below, laws, strict=True)]
        for t, (_, arms) in enumerate(types):
            if laws[t][s] != 0:
                rest = math.prod((f ** (types[u][1] - (u == t)) for u, f in enumerate(factors)), start=arb_poly([1]))
                totals[t] += arms * laws[t][s] * rest.integral()(arb(1))
        below = [low + law[s] for low, law in zip(below, laws, strict=True)]
    missed = sum((arms * (1 - low) for low, (_, arms) in zip(below, types, strict=True)), arb(0)).nonnegative_part()
    return tuple(total + missed.union(arb(0)) if last < m else total for total in totals)


def committed_mean(game: Game, types: CheckedMeans) -> Ball:
    """The expected mean of the arm committed to."""
    return sum(
        (to_ball(t[0]) * c for t, c in zip(types, committed_chances(game.m, game.bernoulli, types), strict=True)),
        arb(0),
    )


def award_reward(game: Game, types: CheckedMeans) -> Ball:
    """What the award pays with these means."""
    early = min(game.award, game.m * sum(count for _, count in types))
    return to_ball(mean_of(types) * early) + committed_mean(game, types) * (game.award - early)


@lru_cache(maxsize=256)  # whole laws: many games in one process must not fill its memory
def score_law(game: Game, types: CheckedMeans) -> dict[float, Ball]:
    """The law of the score given the realised means."""
    arms, law = sum(count for _, count in types), dict[float, Ball]()
    left, chances = game.length - arms * game.m, committed_chances(game.m, game.bernoulli, types)
    if not game.has_score(arms):
        return {-math.inf: arb(1)}  # below every score
    if game.fresh and game.bernoulli:
        laws = [_fresh_scores(value, game.scored, game.last_score) for value, _ in types]
        by_score = enumerate(zip(*laws, strict=True))
        return {key: sum((c * w for c, w in zip(chances, at, strict=True)), arb(0)) for key, at in by_score}
    if game.fresh:
        parts = [(chance, [(v, game.scored)]) for (v, _), chance in zip(types, chances, strict=True)]
    elif len(types) == 1 or left == 0:
        parts = [(arb(1), [(v, game.length * count // arms) for v, count in types])]
    elif left < 0:
        parts = list(_cut_exploration(game, types, arms))
    elif game.bernoulli:
        return dict(enumerate(_success_law(game, types, left)))
    else:
        explored = [(v, count * game.m) for v, count in types]
        parts = [(chance, [*explored, (v, left)]) for (v, _), chance in zip(types, chances, strict=True)]
    for chance, pulls in parts:
        sums: Iterable[tuple[float, Ball]]
        if game.bernoulli:
            sums = enumerate(math.prod((_binomial_polynomial(v, r) for v, r in pulls), start=arb_poly([1])).coeffs())
        else:
            total = Fraction(sum(round(v * TICK) * rounds for v, rounds in pulls), game.scored * TICK)
            sums = [(float(total), arb(1))]
        for key, weight in sums:
            law[key] = law.get(key, arb(0)) + chance * weight
    return law


def _cut_exploration(game: Game, types: CheckedMeans, arms: int) -> Iterator[tuple[Ball, list[tuple[Fraction, int]]]]:
    """Exploration that ends early: a random set of arms has one pull more, or its block (and one arm a part of it)."""
    counts, step = [count for _, count in types], game.m if game.block else 1
    each, draws = (0, game.length // game.m) if game.block else divmod(game.length, arms)
    part = game.length % game.m if game.block else 0
    for begun in range(len(types) if part else 1):
        left = [count - (part > 0 and t == begun) for t, count in enumerate(counts)]
        for drawn in product(*(range(min(count, draws) + 1) for count in left[:-1])):
            counted = (*drawn, draws - sum(drawn))
            if 0 <= counted[-1] <= left[-1]:
                game.spend(game.length * len(types) * (2 + game.length // 400))
                ways = math.prod(math.comb(c, d) for c, d in zip(left, counted, strict=True))
                chance = Fraction(ways, math.comb(sum(left), draws)) * (Fraction(counts[begun], arms) if part else 1)
                more = [step * d + (part if t == begun else 0) for t, d in enumerate(counted)]
                yield to_ball(chance), [(v, each * c + extra) for (v, c), extra in zip(types, more, strict=True)]


def _success_law(game: Game, types: CheckedMeans, left: int) -> list[Ball]:
    """All successes of the trial, summed over every best value s of exploration and every number of ties there."""
    game.spend(len(types) * game.m**2 * sum(count for _, count in types) ** 3)
    laws, skipped = [_binomial_law(v, game.m) for v, _ in types], arb(0)
    below, totals = [arb(0)] * len(types), [arb_poly([0])] * len(types)
    for s in range(game.m + 1):
        below = [low + law[s] for low, law in zip(below, laws, strict=True)]
        chance = math.prod((low**count for low, (_, count) in zip(below, types, strict=True)), start=arb(1))
        if chance < 1e-60:
            skipped = chance.union(arb(0))  # the best is at most s: all that was left out so far
            continue
        for t, arms in [(t, arms) for t, (_, arms) in enumerate(types) if laws[t][s] != 0]:
            ties = [arb_poly([0] * s + [arms * laws[t][s]])]
            for u, (_, count) in enumerate(types):
                others, low, top = count - (u == t), arb_poly(laws[u][:s]), arb_poly([0] * s + [laws[u][s]])
                more = [arb_poly([0])] * (len(ties) + others)
                for j in range((others if laws[u][s] != 0 else 0) + 1):
                    term = low ** (others - j) * top**j * math.comb(others, j)
                    more = [part + (ties[i - j] * term if 0 <= i - j < len(ties) else 0) for i, part in enumerate(more)]
                ties = more
            totals[t] += sum((part * to_ball(Fraction(1, j + 1)) for j, part in enumerate(ties)), arb_poly([0]))
    total = sum(
        (part * _binomial_polynomial(v, left) for part, (v, _) in zip(totals, types, strict=True)), arb_poly([0])
    )
    return [total[j] + skipped for j in range(game.length + 1)]
