"""Two arithmetics behind one vocabulary: floats for speed, balls for proof.

Vectors are NumPy arrays, of floats or of `flint.arb` balls (as objects), so one text computes with both. Everything
that feeds them (binomial laws, Gauss nodes, expected rounds) is found in ball arithmetic first, so a float table is
right to its last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np
from flint import arb, arb_poly, fmpq
from numpy.typing import NDArray

Array = NDArray[Any]
Number = Any  # a float or a ball

PRECISION: Final = 192  # bits; lgamma at 10^15 rounds loses about 60 of them
UNIT: Final = 2.0**-53  # the relative error of one rounding
NEGLIGIBLE: Final = 1e-45  # a probability that may be dropped; all of those together stay below LOST
LOST: Final = 1e-30  # the probability that is lost to dropped tails, at most


def ball(value: Fraction | float) -> Number:
    """The exact number as a ball; a float is the dyadic fraction that it is."""
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


@dataclass(frozen=True)
class Arithmetic:
    """How numbers are kept: `proven` in balls, otherwise in floats."""

    proven: bool

    def number(self, value: Number | Fraction) -> Number:
        """A ball, fraction, whole number or float, in this arithmetic."""
        if self.proven:
            return value if isinstance(value, arb) else ball(value)
        return float(value)

    def array(self, values: list[Number]) -> Array:
        """A vector of numbers in this arithmetic."""
        if not self.proven:
            return np.array([float(value) for value in values])
        made = np.empty(len(values), dtype=object)
        made[:] = [self.number(value) for value in values]
        return made

    def zeros(self, *shape: int) -> Array:
        """An array of zeros."""
        if not self.proven:
            return np.zeros(shape)
        made = np.empty(shape, dtype=object)
        made[...] = arb(0)
        return made

    def convolve(self, a: Array, b: Array) -> Array:
        """The product of two polynomials with nonnegative coefficients, with no cancellation."""
        if not self.proven:
            return np.convolve(a, b)
        product = (arb_poly(a.tolist()) * arb_poly(b.tolist())).coeffs()
        made = self.zeros(len(a) + len(b) - 1)
        made[: len(product)] = product
        return made


FLOATS: Final = Arithmetic(proven=False)
BALLS: Final = Arithmetic(proven=True)
