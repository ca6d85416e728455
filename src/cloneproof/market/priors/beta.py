"""A Beta distributed mean."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import scipy

from cloneproof.errors import MarketError
from cloneproof.market.priors.discrete import Discrete, discrete_from
from cloneproof.market.priors.prior import checked_number, checked_points

LARGEST = 1e12  # of a parameter: the distribution is a point by then


@dataclass(frozen=True)
class Beta:
    """A Beta(a, b) distributed mean.

    Parameters
    ----------
    a, b : float
        The parameters, above 0: as if an item had earned a - 1 times and not earned b - 1 times.

    Examples
    --------
    >>> Beta(2, 2).mean
    0.5
    """

    a: float
    b: float

    def __post_init__(self) -> None:
        for name in ("a", "b"):
            number = checked_number(getattr(self, name), f"the parameter {name} of a beta prior")
            if not 0 < number <= LARGEST:
                raise MarketError(
                    f"expected the parameter {name} of a beta prior above 0 and at most {LARGEST:g}, got {number}; "
                    "use a positive number such as 2"
                )
            object.__setattr__(self, name, number)

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)

    @property
    def atoms(self) -> None:
        return None

    def quantile(self, u: float) -> float:
        return float(scipy.special.betaincinv(self.a, self.b, u))

    def discretised(self, n: int) -> Discrete:
        """The means within n bins of equal probability, each with probability 1/n; the mean is kept up to rounding.

        The part of the mean that lies below x is mean times I_x(a + 1, b), with I the regularised incomplete beta
        function, so a bin's mean is n times a difference of two of these.

        Parameters
        ----------
        n : int
            How many values, from 1 to 10^5. Values that are equal as floats are merged.

        Returns
        -------
        Discrete
            With n values, fewer where some are equal.

        Examples
        --------
        >>> [round(value, 4) for value in Beta(2, 2).discretised(2).values]
        [0.3125, 0.6875]
        """
        count = checked_points(n)
        ends = [0.0, *(self.quantile(k / count) for k in range(1, count)), 1.0]
        below = [float(scipy.special.betainc(self.a + 1, self.b, end)) for end in ends]
        values = [count * self.mean * (right - left) for left, right in pairwise(below)]
        return discrete_from(values, [1 / count] * count)

    def to_dict(self) -> dict[str, object]:
        return {"beta": [self.a, self.b]}
