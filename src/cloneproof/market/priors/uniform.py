"""A mean spread evenly over an interval."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.errors import MarketError
from cloneproof.market.priors.discrete import Discrete, discrete_from
from cloneproof.market.priors.prior import checked_mean, checked_points


@dataclass(frozen=True)
class Uniform:
    """A mean spread evenly over an interval of [0, 1].

    Parameters
    ----------
    low, high : float, default 0 and 1
        The ends of the interval.

    Examples
    --------
    >>> Uniform(0.2, 0.6).quantile(0.5)
    0.4
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "low", checked_mean(self.low, "the low end of a uniform prior"))
        object.__setattr__(self, "high", checked_mean(self.high, "the high end of a uniform prior"))
        if self.low >= self.high:
            raise MarketError(
                f"expected a uniform prior's low end below its high end, got {self.low} and {self.high}; "
                "swap them, or use a point"
            )

    @property
    def mean(self) -> float:
        return (self.low + self.high) / 2

    @property
    def atoms(self) -> None:
        return None

    def quantile(self, u: float) -> float:
        return min(self.low + (self.high - self.low) * u, self.high)

    def discretised(self, n: int) -> Discrete:
        """The middles of n bins of equal length, each with probability 1/n; the mean is kept up to rounding.

        Parameters
        ----------
        n : int
            How many values, from 1 to 10^5.

        Returns
        -------
        Discrete
            With n values at distances of (high - low) / n.

        Examples
        --------
        >>> Uniform(0.0, 1.0).discretised(2)
        Discrete(values=(0.25, 0.75), weights=(0.5, 0.5))
        """
        count = checked_points(n)
        width = (self.high - self.low) / count
        return discrete_from((self.low + (k + 0.5) * width for k in range(count)), [1 / count] * count)

    def to_dict(self) -> dict[str, object]:
        return {"uniform": [self.low, self.high]}
