"""Past items as the prior."""

from __future__ import annotations

import math
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
        Moves the samples to the middles of that many equal bins of [0, 1]: two samples a hair apart make a tiny gap,
        and every theorem of the paper empty.

    Examples
    --------
    >>> Empirical([0.31, 0.29, 0.9], bins=5).atoms
    ((0.3, 0.6666666666666666), (0.9, 0.3333333333333333))
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

    @property
    def mean(self) -> float:
        return math.fsum(value * weight for value, weight in self.atoms)

    @cached_property
    def atoms(self) -> Atoms:
        counts: dict[float, int] = {}
        for sample in self.samples:
            value = sample if self.bins is None else (min(int(sample * self.bins), self.bins - 1) + 0.5) / self.bins
            counts[value] = counts.get(value, 0) + 1
        return tuple((value, counts[value] / len(self.samples)) for value in sorted(counts))

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
        parts: list[list[float]] = [[] for _ in range(count)]
        begun = 0.0
        for value, weight in self.atoms:
            ended = min(begun + weight, 1.0)
            for group in range(min(int(begun * count), count - 1), min(math.ceil(ended * count), count)):
                share = min(ended, (group + 1) / count) - max(begun, group / count)
                parts[group].append(value * max(share, 0.0))
            begun = ended
        return discrete_from((count * math.fsum(part) for part in parts), [1 / count] * count)

    def to_dict(self) -> dict[str, object]:
        return {"samples": list(self.samples)} | ({} if self.bins is None else {"bins": self.bins})
