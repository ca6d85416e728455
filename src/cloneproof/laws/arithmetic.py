"""Two arithmetics behind one interface: floats for speed, balls for proof. Ties, and quadratures that are exact.

Vectors are NumPy arrays of floats or of `flint.arb` balls, so that the same code computes with both. Gauss nodes are
computed in ball arithmetic first, so float tables are correctly rounded.

Ties. Give every candidate a uniform tie-breaker. Candidate a wins at value s with tie-breaker x if each other b is
below s, or at s with a smaller tie-breaker: P(a wins at s) = f_a(s) int_0^1 prod_{b != a} (F_b(s-) + x f_b(s)) dx. The
integrand is a polynomial in x with nonnegative coefficients, so a Gauss-Legendre rule with enough nodes is exact and
free of cancellation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, TypeVar

import numpy as np
from flint import arb, arb_poly, ctx, fmpq
from numpy.typing import NDArray

from cloneproof._arrays import FloatArray

Array = NDArray[Any]  # of floats, fractions or balls
Number = Any  # a float or a ball
Factor = TypeVar("Factor")

PRECISION: Final = 192  # bits; lgamma at 10^15 rounds loses about 60 of them
UNIT: Final = 2.0**-53  # the relative error of one rounding
NEGLIGIBLE: Final = 1e-45  # a probability that may be dropped; all of those together stay below LOST
LOST: Final = 1e-30  # the probability that is lost to dropped tails, at most
_LOG_ERROR = {False: 42.0, True: 110.0}  # relative errors of 6e-19 and 2e-48


def ball(value: Fraction | float) -> Number:
    """Return the exact number as a ball; a float is read as a dyadic fraction."""
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


@dataclass(frozen=True)
class Arithmetic:
    """Arithmetic of a computation: in balls if `proven`, otherwise in floats."""

    proven: bool

    def number(self, value: Number | Fraction) -> Number:
        """Return a ball, fraction, whole number or float, in this arithmetic."""
        if self.proven:
            return value if isinstance(value, arb) else ball(value)
        return float(value)

    def array(self, values: list[Number]) -> Array:
        if not self.proven:
            return np.array([float(value) for value in values])
        balls = np.empty(len(values), dtype=object)
        balls[:] = [self.number(value) for value in values]
        return balls

    def zeros(self, *shape: int) -> Array:
        if not self.proven:
            return np.zeros(shape)
        balls = np.empty(shape, dtype=object)
        balls[...] = arb(0)
        return balls

    def convolve(self, a: Array, b: Array) -> Array:
        """Multiply two polynomials with nonnegative coefficients, without cancellation."""
        if not self.proven:
            return np.convolve(a, b)
        product = (arb_poly(a.tolist()) * arb_poly(b.tolist())).coeffs()
        coefficients = self.zeros(len(a) + len(b) - 1)
        coefficients[: len(product)] = product
        return coefficients


FLOATS: Final = Arithmetic(proven=False)
BALLS: Final = Arithmetic(proven=True)


def node_count(degree: int, proven: bool) -> int:
    """Return enough nodes for a polynomial of that degree with nonnegative coefficients.

    N = degree // 2 + 1 are exact. Fewer do for a large degree k: N nodes integrate x^k with relative error at most
    4 (k+1) exp(-4 N^2 / k), since the Chebyshev coefficients of ((1+t)/2)^k are 2 C(2k, k+j) / 4^k, of which the rule
    misses those from j = 2N on, a binomial tail. Smaller powers do better, so the bound holds for their sums.
    """
    reduced = 0.5 * math.sqrt(degree * (_LOG_ERROR[proven] + math.log(4 * degree + 4)))
    return min(degree // 2 + 1, math.ceil(reduced) + 1)


@lru_cache(maxsize=256)
def tie_nodes(degree: int, arithmetic: Arithmetic) -> tuple[Array, Array]:
    """Return nodes and weights on [0, 1] that integrate every polynomial of that degree with coefficients >= 0."""
    exact, number = degree // 2 + 1, node_count(degree, arithmetic.proven)
    with ctx.workprec(PRECISION):
        pairs = [arb.legendre_p_root(number, k, weight=True) for k in range(number)]
        slack = arb(1) if number == exact else arb(1, 2 * math.exp(-_LOG_ERROR[arithmetic.proven]))
        nodes = arithmetic.array([(1 + root) / 2 for root, _ in pairs])
        weights = arithmetic.array([slack * weight / 2 for _, weight in pairs])
    return nodes, weights


@lru_cache(maxsize=64)
def legendre_nodes(count: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and weights of Gauss and Legendre's quadrature on (0, 1), in floats."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


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
