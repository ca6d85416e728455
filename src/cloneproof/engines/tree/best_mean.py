"""The expected best mean of all originals, registered or not: what regret is measured against."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import scipy

from cloneproof.errors import EngineError
from cloneproof.market.priors import Beta, Prior, Uniform


def expected_best(priors: Sequence[Prior]) -> tuple[float, float]:
    """E[max of independent draws] and its error.

    E[max] = 1 - integral over [0, 1] of the product of the distribution functions; a sum for discrete priors.

    >>> from cloneproof.market.priors import Discrete
    >>> expected_best([Discrete([0, 1], [0.5, 0.5])] * 2)[0]
    0.75
    """
    cuts = sorted({0.0, 1.0, *(x for prior in priors for x in _cuts(prior))})
    laws = [_distribution(prior) for prior in priors]

    def below(x: float) -> float:
        return math.prod(law(x) for law in laws)

    pieces, errors = [], [len(cuts) * (len(priors) + 4) * 2.0**-52]
    for low, high in pairwise(cuts):
        if all(prior.atoms is not None for prior in priors):
            pieces.append((high - low) * below(low))
        else:
            from scipy.integrate import quad  # half a second to import, and only continuous priors need it

            piece, error = quad(below, low, high, epsabs=1e-13, epsrel=1e-12, limit=200)
            pieces.append(piece)
            errors.append(error)
    return 1.0 - math.fsum(pieces), math.fsum(errors)


def _cuts(prior: Prior) -> tuple[float, ...]:
    if prior.atoms is not None:
        return tuple(value for value, _ in prior.atoms)
    return (prior.low, prior.high) if isinstance(prior, Uniform) else ()


def _distribution(prior: Prior) -> Callable[[float], float]:
    """P(mean <= x); right-continuous, so the value at a cut is the value up to the next cut."""
    if prior.atoms is not None:
        values = [value for value, _ in prior.atoms]
        total = math.fsum(weight for _, weight in prior.atoms)
        cumulated = [math.fsum(w for _, w in prior.atoms[:k]) / total for k in range(len(values))] + [1.0]
        return lambda x: cumulated[bisect_right(values, x)]
    if isinstance(prior, Uniform):
        return lambda x: min(1.0, max(0.0, (x - prior.low) / (prior.high - prior.low)))
    if isinstance(prior, Beta):
        return lambda x: float(scipy.special.betainc(prior.a, prior.b, x))
    raise EngineError(f"the tree expects discrete, uniform or beta priors, got {prior!r}; use engine 'monte-carlo'")
