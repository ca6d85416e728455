"""Instances in dictionary form, and their permutations (paper, section 4).

An instance lists the means of one agent's originals and how often each is registered. Permuting it moves the numbers
of copies among the originals; two originals of equal mean stay two originals (they do not merge into one key), so the
average over all permutations is the average over which original was copied.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from cloneproof._checks import real, whole
from cloneproof.errors import MarketError, brief


@dataclass(frozen=True)
class Instance:
    """Means of originals, and copies of each.

    Parameters
    ----------
    means : tuple of float
        The mean of each original, in [0, 1].
    copies : tuple of int
        How often each is registered.

    References
    ----------
    The paper, section 4: dictionary form, and the random permutations behind RP-regret.

    Examples
    --------
    >>> instance = Instance((0.5, 0.7), (1, 2))
    >>> instance.dictionary
    {0.5: 1, 0.7: 2}
    >>> instance.permuted((1, 0)).dictionary
    {0.5: 2, 0.7: 1}
    >>> [(str(weight), other.arms) for weight, other in instance.permutations()]
    [('1/2', (0.5, 0.7, 0.7)), ('1/2', (0.5, 0.5, 0.7))]
    """

    means: tuple[float, ...]
    copies: tuple[int, ...]

    def __post_init__(self) -> None:
        for name in ("means", "copies"):
            numbers = getattr(self, name)
            if isinstance(numbers, str) or not isinstance(numbers, Sequence):
                raise MarketError(f"expected {name} as a list of numbers, got {brief(numbers)}; give e.g. (1, 2)")
            object.__setattr__(self, name, tuple(numbers))
        for mean in self.means:
            number = real(mean)
            if number is None or not 0 <= number <= 1:
                raise MarketError(f"expected means in [0, 1], got {brief(mean)}; scale the rewards so that means do")
        if len(self.means) != len(self.copies) or not self.means:
            raise MarketError(
                f"expected one number of copies for each mean, got {len(self.means)} means "
                f"and {len(self.copies)} copies; make them equally long"
            )
        counts = [whole(count) for count in self.copies]
        if any(count is None or count < 0 for count in counts):
            raise MarketError(f"expected copies to be whole numbers from 0, got {self.copies}; 1 is honest")
        object.__setattr__(self, "copies", tuple(count or 0 for count in counts))

    @property
    def dictionary(self) -> dict[float, int]:
        """The paper's dictionary form: each mean with the number of arms that have it."""
        form: dict[float, int] = {}
        for mean, count in sorted(zip(self.means, self.copies, strict=True)):
            form[mean] = form.get(mean, 0) + count
        return form

    @property
    def arms(self) -> tuple[float, ...]:
        """The mean of every registered arm."""
        return tuple(mean for mean, count in zip(self.means, self.copies, strict=True) for _ in range(count))

    def permuted(self, sigma: Sequence[int]) -> Instance:
        """The instance in which original a has the copies of original sigma[a]."""
        if sorted(sigma) != list(range(len(self.means))):
            raise MarketError(
                f"expected a permutation of 0..{len(self.means) - 1}, got {list(sigma)}; list each number once"
            )
        return Instance(self.means, tuple(self.copies[a] for a in sigma))

    def permutations(self) -> Iterator[tuple[Fraction, Instance]]:
        """The different permuted instances, each with its weight under a uniformly random permutation.

        Equal instances are merged before they are listed: cost follows the number of different assignments of copies
        to groups of equal means, never l!.
        """
        groups = Counter(self.means)
        order = list(groups)
        total = math.factorial(len(self.means))
        for split, ways in _splits(Counter(self.copies), [groups[mean] for mean in order]):
            means = tuple(mean for mean in order for _ in range(groups[mean]))
            copies = tuple(count for part in split for count in part)
            yield Fraction(ways, total), Instance(means, copies)


def _splits(pool: Counter[int], sizes: Sequence[int]) -> Iterator[tuple[tuple[tuple[int, ...], ...], int]]:
    """Deal the pool into groups of these sizes; with each deal, the number of permutations that lead to it."""
    if not sizes:
        yield (), 1
        return
    for part in _choose(sorted(pool.items()), sizes[0]):
        chosen = Counter(dict(part))
        ways = math.factorial(sizes[0])
        for count, number in chosen.items():
            ways *= math.comb(pool[count], number)
        hand = tuple(sorted(chosen.elements()))
        for rest, rest_ways in _splits(pool - chosen, sizes[1:]):
            yield (hand, *rest), ways * rest_ways


def _choose(pool: Sequence[tuple[int, int]], size: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Multisets of that size from the pool, as (item, number) pairs."""
    if not pool:
        if size == 0:
            yield ()
        return
    (item, available), rest = pool[0], pool[1:]
    for number in range(min(available, size), -1, -1):
        for others in _choose(rest, size - number):
            yield ((item, number), *others) if number else others
