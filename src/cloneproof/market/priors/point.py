"""A mean that is known."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.market.priors.discrete import Discrete
from cloneproof.market.priors.prior import Atoms, checked_mean, checked_points


@dataclass(frozen=True)
class Point:
    """A mean that is known.

    Parameters
    ----------
    value : float
        The mean, in [0, 1].

    References
    ----------
    Agents who know all of their means are the fully informed agents of Shin, Lee and Ok (2022).

    Examples
    --------
    >>> Point(0.6).mean
    0.6
    """

    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", checked_mean(self.value, "the point of a prior"))

    @property
    def mean(self) -> float:
        return self.value

    @property
    def atoms(self) -> Atoms:
        return ((self.value, 1.0),)

    def quantile(self, u: float) -> float:
        return self.value

    def discretised(self, n: int) -> Discrete:
        """The same as a `Discrete` of one value, for every n."""
        checked_points(n)
        return Discrete((self.value,), (1.0,))

    def to_dict(self) -> dict[str, object]:
        return {"point": self.value}
