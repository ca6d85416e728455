"""Uniform tie-breaking among independent candidates, without an enumeration of who ties with whom.

Give every candidate a uniform number as a tie-breaker. Candidate a wins at value s with tie-breaker x if each other b
is below s, or at s with a smaller tie-breaker: P(a wins at s) = f_a(s) int_0^1 prod_{b != a} (F_b(s-) + x f_b(s)) dx.
The integrand is a polynomial in x with nonnegative coefficients, so a Gauss-Legendre rule of enough nodes is exact, and
free of cancellation.
"""

from __future__ import annotations

import math
from functools import lru_cache

from flint import arb, ctx

from cloneproof.engines.closed_form.laws.arithmetic import BALLS, FLOATS, PRECISION, Arithmetic, Array

_LOG_ERROR = {False: 42.0, True: 110.0}  # relative errors of 6e-19 and 2e-48


def node_count(degree: int, proven: bool) -> int:
    """Enough nodes for a polynomial of that degree with nonnegative coefficients.

    N = degree // 2 + 1 are exact. Fewer do for a large degree k: N nodes integrate x^k with relative error at most
    4 (k+1) exp(-4 N^2 / k), since the Chebyshev coefficients of ((1+t)/2)^k are 2 C(2k, k+j) / 4^k, of which the rule
    misses those from j = 2N on, a binomial tail. Smaller powers do better, so the bound holds for their sums.
    """
    reduced = 0.5 * math.sqrt(degree * (_LOG_ERROR[proven] + math.log(4 * degree + 4)))
    return min(degree // 2 + 1, math.ceil(reduced) + 1)


@lru_cache(maxsize=256)
def _nodes(degree: int, proven: bool) -> tuple[Array, Array]:
    exact, number = degree // 2 + 1, node_count(degree, proven)
    arithmetic = BALLS if proven else FLOATS
    with ctx.workprec(PRECISION):
        pairs = [arb.legendre_p_root(number, k, weight=True) for k in range(number)]
        slack = arb(1) if number == exact else arb(1, 2 * math.exp(-_LOG_ERROR[proven]))
        nodes = arithmetic.array([(1 + root) / 2 for root, _ in pairs])
        weights = arithmetic.array([slack * weight / 2 for _, weight in pairs])
    return nodes, weights


def tie_nodes(degree: int, arithmetic: Arithmetic) -> tuple[Array, Array]:
    """Nodes and weights on [0, 1] that integrate every polynomial of that degree with nonnegative coefficients."""
    return _nodes(degree, arithmetic.proven)


def products_without_each(factors: list[Array]) -> list[Array]:
    """For each factor the product of all others, with no division."""
    before, after = [factors[0] * 0 + 1], [factors[-1] * 0 + 1]
    for factor in factors[:-1]:
        before.append(before[-1] * factor)
    for factor in reversed(factors[1:]):
        after.append(after[-1] * factor)
    return [left * right for left, right in zip(before, reversed(after), strict=True)]
