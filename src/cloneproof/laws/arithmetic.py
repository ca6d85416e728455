"""Numbers that all laws compute with: floats, which are only added and multiplied where they are positive.

A payoff is then right to PART of the largest payoff in the market; tests hold laws against fractions.

Ties. Give every candidate a uniform tie-breaker. Candidate a wins at value s with tie-breaker x if each other b is
below s, or at s with a smaller tie-breaker: P(a wins at s) = f_a(s) int_0^1 prod_{b != a} (F_b(s-) + x f_b(s)) dx. The
integrand is a polynomial in x with nonnegative coefficients, so a Gauss-Legendre rule with enough nodes is exact and
free of cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from cloneproof._lib.arrays import FloatArray
from cloneproof.errors import EngineError

Array = NDArray[Any]  # of floats or fractions
Number = Any  # a float or a fraction
Factor = TypeVar("Factor")

PART: Final = 1e-12  # the error of a payoff by a law, as a part of the largest payoff in the market
NEGLIGIBLE: Final = 1e-45  # a probability that may be dropped
_LOG_ERROR = 42.0  # of nodes that are fewer than exact ones: a relative error of 6e-19


_MOST_PRODUCTS: ContextVar[float] = ContextVar("most_products", default=1e10)  # some seconds


def check_products(products: float, what: str, advice: str) -> None:
    """Refuse a law that takes too many products of numbers, counted from above before it begins."""
    most = _MOST_PRODUCTS.get()
    if products > most:
        raise EngineError(
            f"a law expects at most {most:.0e} products of numbers, got {what} with about {products:.0e}; {advice}"
        )


@contextmanager
def at_most_products(most: float = 1e9) -> Iterator[None]:
    """Within this context laws are refused from another number on: a tenth of it where many are computed."""
    token = _MOST_PRODUCTS.set(most)
    try:
        yield
    finally:
        _MOST_PRODUCTS.reset(token)


def node_count(degree: int) -> int:
    """Return enough nodes for a polynomial of that degree with nonnegative coefficients.

    N = degree // 2 + 1 are exact. Fewer do for a large degree k: N nodes integrate x^k with relative error at most
    4 (k+1) exp(-4 N^2 / k), since the Chebyshev coefficients of ((1+t)/2)^k are 2 C(2k, k+j) / 4^k, of which the rule
    misses those from j = 2N on, a binomial tail. Smaller powers do better, so the bound holds for their sums.
    """
    reduced = 0.5 * math.sqrt(degree * (_LOG_ERROR + math.log(4 * degree + 4)))
    return min(degree // 2 + 1, math.ceil(reduced) + 1)


def tie_nodes(degree: int) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights on [0, 1] that integrate every polynomial of that degree with coefficients >= 0."""
    return legendre_nodes(node_count(degree))


@lru_cache(maxsize=256)
def legendre_nodes(count: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of Gauss and Legendre's quadrature on (0, 1).

    Eigenvalues lose a few digits; three steps of Newton's method in long doubles give them back.

    >>> nodes, weights = legendre_nodes(1000)
    >>> abs(float(weights @ nodes**1500) * 1501 - 1) < 1e-12
    True
    """
    x = np.polynomial.legendre.leggauss(count)[0].astype(np.longdouble)
    slope = np.ones_like(x)
    for _ in range(3):
        before, value = np.ones_like(x), x
        for k in range(2, count + 1):
            before, value = value, ((2 * k - 1) * x * value - (k - 1) * before) / np.longdouble(k)
        slope = count * (before - x * value) / (1 - x * x)
        x = x - value / slope
    return ((1 + x) / 2).astype(float), (1 / ((1 - x * x) * slope**2)).astype(float)


def to_the_power(factor: Factor, exponent: int, multiply: Callable[[Factor, Factor], Factor]) -> Factor:
    """Multiply equal factors, by squaring; the exponent is at least 1."""
    if exponent == 1:
        return factor
    half = to_the_power(factor, exponent // 2, multiply)
    square = multiply(half, half)
    return multiply(square, factor) if exponent % 2 else square


def products_of_others(factors: Sequence[Array] | Array) -> list[Array]:
    """Return for each factor the product of all others, with no division.

    >>> products_of_others([2.0, 3.0, 5.0])
    [15.0, 10.0, 6.0]
    """
    before, after = [factors[0] * 0 + 1], [factors[-1] * 0 + 1]
    for factor in factors[:-1]:
        before.append(before[-1] * factor)
    for factor in factors[:0:-1]:
        after.append(after[-1] * factor)
    return [left * right for left, right in zip(before, reversed(after), strict=True)]


def products_of_other_agents(factors: Array, agents: Array) -> Array:
    """Return for an agent of each kind (rows) the product over all others, `agents` being how many a kind has.

    >>> products_of_other_agents(np.array([2.0, 3.0]), np.array([1, 2])).tolist()
    [9.0, 6.0]
    """
    return np.asarray(np.array(products_of_others(factors**agents)) * factors ** (agents - 1))
