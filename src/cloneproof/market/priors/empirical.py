"""Past items as the prior."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cloneproof._checks import whole
from cloneproof.errors import MarketError
from cloneproof.market.priors.discrete import Discrete, discrete_from
from cloneproof.market.priors.prior import Atoms, checked_list, checked_mean, checked_points, step_quantile


@dataclass(frozen=True)
class Empirical:
    """A creator's history as the prior: each past item's quality is equally likely.

    Parameters
    ----------
    samples : sequence of float
        The qualities of past items, each in [0, 1].
    bins : int, optional
        Moves the samples to the means of so many groups of equal size, cut at quantiles of the samples themselves: two
        samples a hair apart make a tiny gap, and every theorem of the paper empty. (Equal bins of [0, 1] would make one
        value of all click rates.) A warning says where fewer values than bins are left, since many samples are equal.

    Examples
    --------
    >>> Empirical([0.002, 0.004, 0.011, 0.013], bins=2).atoms
    ((0.003, 0.5), (0.012, 0.5))
    """

    samples: Sequence[float]
    bins: int | None = None

    def __post_init__(self) -> None:
        listed = checked_list(self.samples, "a prior's samples")
        samples = tuple(checked_mean(sample, "a sample of a prior") for sample in listed)
        if self.bins is not None:
            bins = whole(self.bins)
            if bins is None or bins < 1:
                raise MarketError(
                    f"expected the number of bins to be a whole number from 1, got {self.bins!r}; use e.g. 10"
                )
            object.__setattr__(self, "bins", bins)
        object.__setattr__(self, "samples", samples)
        if self.bins is not None and len(self.atoms) < min(self.bins, len(set(samples))):
            warnings.warn(
                f"{len(self.atoms)} values are left of {self.bins} bins and {len(set(samples))} different samples: "
                "many samples are equal or nearly so; give fewer bins",
                stacklevel=3,
            )

    @property
    def mean(self) -> float:
        return math.fsum(value * weight for value, weight in self.atoms)

    @cached_property
    def atoms(self) -> Atoms:
        counts: dict[float, int] = {}
        for sample in self.samples:
            counts[sample] = counts.get(sample, 0) + 1
        exact = tuple((value, counts[value] / len(self.samples)) for value in sorted(counts))
        if self.bins is None or len(exact) <= self.bins:
            return exact
        grouped = _grouped(exact, self.bins).atoms
        return exact if grouped is None else grouped

    def quantile(self, u: float) -> float:
        return step_quantile(self.atoms, u)

    def discretised(self, n: int) -> Discrete:
        """The means within n groups of equal probability of the sorted samples; the mean is kept up to rounding.

        A sample at the border of two groups is divided between them. Samples (or bins) with at most n different values
        stay as they are.

        Parameters
        ----------
        n : int
            How many values at most, from 1 to 10^5.

        Returns
        -------
        Discrete
            With at most n values.

        Examples
        --------
        >>> Empirical([0.1, 0.2, 0.3, 0.8]).discretised(2).values
        (0.15000000000000002, 0.55)
        """
        count = checked_points(n)
        if len(self.atoms) <= count:
            return discrete_from(*zip(*self.atoms, strict=True))
        return _grouped(self.atoms, count)

    def to_dict(self) -> dict[str, object]:
        return {"samples": list(self.samples)} | ({} if self.bins is None else {"bins": self.bins})


def _grouped(atoms: Atoms, count: int) -> Discrete:
    """The means within so many groups of equal probability; a value at the border of two is divided between them."""
    parts: list[list[float]] = [[] for _ in range(count)]
    begun = 0.0
    for value, weight in atoms:
        ended = min(begun + weight, 1.0)
        for group in range(min(int(begun * count), count - 1), min(math.ceil(ended * count), count)):
            share = min(ended, (group + 1) / count) - max(begun, group / count)
            parts[group].append(value * max(share, 0.0))
        begun = ended
    return discrete_from((count * math.fsum(part) for part in parts), [1 / count] * count)
