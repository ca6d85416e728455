"""The best of independent originals: what a round with the best mean, or a page of the best arms, is worth.

A page has places of falling attention, and each provider stands in one of them at most, with the best of its originals.
One place and one provider of all originals is the best mean of all. With v_0 < v_1 < .. all values of bests, rank m + 1
is worth v_0 plus the sum over k of v_(k+1) - v_k times the chance that more than m providers have a best above v_k, and
that number is a sum of independent coins (`rank_chances`). Numbers may be floats or fractions.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import scipy

from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import Array, Number
from cloneproof.laws.points import ELSEWHERE
from cloneproof.market.priors import Beta, Prior, Uniform, quantiles

AnyAtoms = tuple[tuple[float, Any], ...]  # values of a prior and their weights, floats or fractions
CELLS = 4000  # of the levels of quantile functions


def rank_chances(others: Sequence[tuple[int, Array]], places: int) -> Array:
    """Return the chances that 0, 1, .., places - 1 of the others are ahead, along a last axis.

    Each kind of others is given by its number and the chance that one of them is ahead.

    >>> rank_chances([(1, np.array(0.5)), (2, np.array(0.25))], 2).tolist()
    [0.28125, 0.46875]
    """
    chances: Array | None = None
    for count, ahead in others:
        kept = min(places, count + 1)
        terms = [math.comb(count, m) * ahead**m * (1 - ahead) ** (count - m) for m in range(kept)]
        law = np.stack([*terms, *[ahead * 0] * (places - kept)], axis=-1)
        if chances is None:
            chances = law
            continue
        joined = chances * law[..., :1]
        for m in range(1, places):
            joined[..., m:] += chances[..., : places - m] * law[..., m : m + 1]
        chances = joined
    assert chances is not None
    return chances


def places_taken(attention: Sequence[float], agents: int) -> tuple[float, ...]:
    """Return the attention of the places that are filled: as many as there are providers, at most."""
    return tuple(attention[: min(len(attention), agents)])


def page_worth(values: Array, below: Array, providers: Sequence[int], attention: Array) -> Number:
    """Return the expected worth of a page with the best arm of each provider, the best of them in front.

    `values` are those of all bests, rising, and `attention` is that of the places that are filled. Of each kind of
    providers there is their number and, as a row of `below`, the chance that the best of one is below the end of each
    interval between neighbouring values.

    >>> page_worth(np.array([0.0, 1.0]), np.array([[0.5]]), [2], np.array([1.0, 0.5]))  # two, one or no hit
    0.875
    """
    kinds = [(count, 1 - row) for count, row in zip(providers, below, strict=True)]
    fewer = np.cumsum(rank_chances(kinds, len(attention)), axis=-1)  # at most 0, 1, .. bests are above
    steps = (values[1:] - values[:-1])[:, None]
    ranked = values[0] + ((1 - fewer) * steps).sum(axis=0)
    return np.asarray((ranked * attention).sum()).item()


def best_of_atoms(
    providers: Sequence[Sequence[AnyAtoms]],
    attention: Sequence[float] = (1.0,),
    number: Callable[[Any], Number] = float,
) -> Number:
    """Return the expected worth of the best page, given the originals' values and weights; `number` makes numbers.

    >>> hit_or_dud = ((0.0, Fraction(1, 2)), (1.0, Fraction(1, 2)))
    >>> best_of_atoms([[hit_or_dud], [hit_or_dud]], (1.0, 0.5), Fraction), best_of_atoms([[hit_or_dud] * 2])
    (Fraction(7, 8), 0.75)
    """
    values = sorted({value for own in providers for atoms in own for value, _ in atoms})
    filled = np.array([number(Fraction(seen)) for seen in places_taken(attention, len(providers))])
    rising = np.array([number(Fraction(value)) for value in values])
    if len(values) == 1:
        return np.asarray(rising[0] * filled.sum()).item()
    kinds = Counter(tuple(sorted(own)) for own in providers)
    rows = {atoms: _below(atoms, values, number) for own in kinds for atoms in own}
    below = [math.prod(rows[atoms] ** count for atoms, count in Counter(own).items()) for own in kinds]
    return page_worth(rising, np.array(below), [*kinds.values()], filled)


def _below(atoms: AnyAtoms, values: Sequence[float], number: Callable[[Any], Number]) -> Array:
    """Return the chances of at most each of the values but the last."""
    weight_of: dict[float, Any] = defaultdict(int)
    for value, weight in atoms:
        weight_of[value] += weight
    total = sum(weight_of.values())
    return np.array([number(up_to / total) for up_to in accumulate(weight_of[value] for value in values[:-1])])


def best_of_quantiles(providers: Sequence[Sequence[Prior]], attention: Sequence[float] = (1.0,)) -> float:
    """Return the same for priors of which some are continuous, by their quantiles.

    The chances are taken at the middle of the intervals of a fine grid, with an error of the order of 1 / CELLS^2.

    >>> abs(best_of_quantiles([[Uniform(0.1, 0.9)] * 15]) - (0.1 + 0.8 * 15 / 16)) < 1e-6
    True
    >>> round(best_of_quantiles([[Uniform()]] * 3, (1.0, 0.5)), 6)
    1.0
    """
    t = np.linspace(0.0, 1.0, CELLS + 1)
    places = t * t * (3 - 2 * t)
    tables = {prior: quantiles(prior, places) for prior in {prior for own in providers for prior in own}}
    grid = np.unique(np.concatenate([*tables.values()]))
    below = []
    for own in providers:
        rows = [np.interp(grid, tables[prior], places) ** count for prior, count in Counter(own).items()]
        up_to = np.prod(rows, axis=0)
        below.append((up_to[1:] + up_to[:-1]) / 2)
    filled = np.array(places_taken(attention, len(providers)))
    return float(page_worth(grid, np.array(below), [1] * len(providers), filled))


def best_round(agents: Sequence[Sequence[Prior]], places: Sequence[float] = ()) -> float:
    """Return the expected best mean of all originals, or the worth of the best page if there are places."""
    providers = agents if places else [[prior for own in agents for prior in own]]
    attention = places or (1.0,)
    if any(prior.atoms is None for own in providers for prior in own):
        return best_of_quantiles(providers, attention)
    return float(best_of_atoms([[prior.atoms or () for prior in own] for own in providers], attention))


def best_mean(priors: Sequence[Prior]) -> tuple[float, float]:
    """Return E[max of independent draws] and its error, for discrete, uniform and beta priors.

    E[max] = 1 - integral over [0, 1] of the product of the distribution functions; a sum for discrete priors.

    >>> from cloneproof.market.priors import Discrete
    >>> best_mean([Discrete([0, 1], [0.5, 0.5])] * 2)[0]
    0.75
    """
    cuts = sorted({0.0, 1.0, *(x for prior in priors for x in _cuts(prior))})
    rounding = len(cuts) * (len(priors) + 4) * 2.0**-52
    if all(prior.atoms is not None for prior in priors):
        return best_round([priors]), rounding
    from scipy.integrate import quad  # half a second to import, and only continuous priors need it

    laws = [_distribution(prior) for prior in priors]

    def below(x: float) -> float:
        return math.prod(law(x) for law in laws)

    pieces = [quad(below, low, high, epsabs=1e-13, epsrel=1e-12, limit=200) for low, high in pairwise(cuts)]
    return 1.0 - math.fsum(piece for piece, _ in pieces), math.fsum([rounding, *(error for _, error in pieces)])


def _cuts(prior: Prior) -> tuple[float, ...]:
    if prior.atoms is not None:
        return tuple(value for value, _ in prior.atoms)
    return (prior.low, prior.high) if isinstance(prior, Uniform) else ()


def _distribution(prior: Prior) -> Callable[[float], float]:
    """Return P(mean <= x), right-continuous."""
    if prior.atoms is not None:
        values = [value for value, _ in prior.atoms]
        total = math.fsum(weight for _, weight in prior.atoms)
        cumulated = [math.fsum(w for _, w in prior.atoms[:k]) / total for k in range(len(values))] + [1.0]
        return lambda x: cumulated[bisect_right(values, x)]
    if isinstance(prior, Uniform):
        return lambda x: min(1.0, max(0.0, (x - prior.low) / (prior.high - prior.low)))
    if isinstance(prior, Beta):
        return lambda x: float(scipy.special.betainc(prior.a, prior.b, x))
    raise EngineError(f"an exact engine expects discrete, uniform or beta priors, got {prior!r}", ELSEWHERE)
