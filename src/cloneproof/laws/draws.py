"""Moments of uniform draws with replacement from an agent's arms, whose means are drawn once.

Given the means, each of j draws independently has a property (its test fails, its count is below a level) with the
average f of the arms' probabilities, so all have it with probability E f^j. The numbers of times that Poisson(c) draws
take each original, registered k_o times among K arms, are independent. Hence E f^j times the probability of j draws is
the coefficient of z^j in a product of one series for each original, with the coefficients E f^k Poisson(k; c k_o / K).
All terms are positive, so nothing cancels. Where one coefficient is enough, the product is taken at roots of unity.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from cloneproof._lib.arrays import FloatArray
from cloneproof.laws.arithmetic import to_the_power
from cloneproof.laws.scan import powers

ValueWeights = Sequence[tuple[float, float]]  # values of a prior and their weights
AgentPriors = tuple[tuple[tuple[float, Any], ...], ...]  # of the originals of an agent
AnyArray = npt.NDArray[Any]  # of coefficients, or of complex values at roots of unity
Multiply = Callable[[AnyArray, AnyArray], AnyArray]
AT_FIRST = 1500  # draws of which each number has a probability that fits a float, for one Poisson law
DIRECTLY = 40  # draws up to which series are multiplied as they are
ALIAS = 64  # coefficients beyond twice the draws that are kept apart: a Poisson law reaches no further


class AlikeAgents(NamedTuple):
    """Agents with equally many originals of a first, a second, .. prior, which may differ between agents."""

    places: list[int]
    laws: list[FloatArray]  # for each prior: agents x values
    counts: tuple[int, ...]  # of originals with each prior
    copies: tuple[int, ...]  # of each of them

    @property
    def shares(self) -> list[float]:
        """Chance that a draw has each prior."""
        arms = [count * copies for count, copies in zip(self.counts, self.copies, strict=True)]
        return [number / sum(arms) for number in arms]

    @property
    def drawn(self) -> list[FloatArray]:
        """Chance that a draw has each prior, times the law of its mean."""
        return [law * share for law, share in zip(self.laws, self.shares, strict=True)]

    def poisson(self, mean: float, most: int) -> list[FloatArray]:
        """Return the law of the draws of one original for each prior, if there are Poisson(mean) in all."""
        arms = sum(count * copies for count, copies in zip(self.counts, self.copies, strict=True))
        return [_poisson(mean * copies / arms, most) for copies in self.copies]

    def alone(self, raised: FloatArray, mean: float) -> list[FloatArray]:
        """Return the series of one original for each prior: agents x cases x k."""
        chances = self.poisson(mean, raised.shape[2] - 1)
        return [np.tensordot(law, raised, axes=(1, 1)) * own for law, own in zip(self.laws, chances, strict=True)]

    def all_but_one(self, own: Sequence[AnyArray], multiply: Multiply, unit: FloatArray) -> list[AnyArray]:
        """Return, for each prior, the product over all originals but one that has it, given one original's factor."""
        products = []
        for without in range(len(own)):
            left = [(one, count - (k == without)) for k, (one, count) in enumerate(zip(own, self.counts, strict=True))]
            factors = [to_the_power(one, count, multiply) for one, count in left if count]
            products.append(reduce(multiply, factors, unit + np.zeros(own[0].shape)))
        return products


class UniformDraws:
    """Draws of several agents, each from its own arms: its originals, once or as often as `copies` says.

    Cases are rows of `base` and `gain`, which have a column for each value. Results have axes for agents, cases and j.

    >>> hit_or_dud = ((0.0, 0.5), (1.0, 0.5))
    >>> pair = UniformDraws([(hit_or_dud, hit_or_dud)], np.array([0.0, 1.0]))
    >>> failed, _, _ = pair.powers(3, np.array([[1.0, 0.0]]), np.zeros((1, 2)))  # a dud fails, a hit never does
    >>> np.round(failed[0, 0], 6).tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """

    def __init__(
        self, agents: Sequence[AgentPriors], values: FloatArray, copies: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.values, self.count = values, len(agents)
        groups: dict[tuple[tuple[int, int], ...], list[tuple[int, list[FloatArray]]]] = defaultdict(list)
        for place, agent in enumerate(agents):
            listed = zip(agent, copies[place] if copies else [1] * len(agent), strict=True)
            priors = sorted(Counter(listed).items(), key=lambda prior: (prior[1], prior[0][1]))
            key = tuple((count, copied) for (_, copied), count in priors)
            groups[key].append((place, [weights_of(own, values) for (own, _), _ in priors]))
        self.groups = [
            AlikeAgents(
                [at for at, _ in alike],
                [np.array(law) for law in zip(*(own for _, own in alike), strict=True)],
                *zip(*key, strict=True),
            )
            for key, alike in groups.items()
        ]

    def powers(self, draws: int, base: FloatArray, gain: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return E f^j, E v f^j, E g f^j for j = 0, .., s: f, v, g average base, value, gain x value over originals."""
        raised, moments = powers(base, draws), np.empty((3, self.count, len(base), draws + 1))
        for window, mean in _windows(draws):
            shown, chances = raised[:, :, : window.stop], _poisson(mean, window.stop - 1)[window]
            factors = shown * self.values[:, None], shown * (gain * self.values)[:, :, None]
            for group in self.groups:
                own = group.alone(shown, mean)
                others = group.all_but_one(own, _times, np.eye(1, window.stop)[0])
                products = [_times(own[0], others[0])]
                for factor in factors:
                    drawn = zip(group.alone(factor, mean), others, group.shares, strict=True)
                    products.append(np.sum([share * _times(one, rest) for one, rest, share in drawn], axis=0))
                for k, product in enumerate(products):
                    moments[k, group.places, :, window] = product[:, :, window] / chances
        return moments[0], moments[1], moments[2]

    def last_powers(
        self, draws: int, base: FloatArray, gain: FloatArray, directly: int = DIRECTLY
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return E f^s, E h f^(s - 1), E g f^(s - 1), h the average of gain, g as in `powers`; exact up to 1e-15.

        Axes: agents, cases. Up to `directly` draws errors are relative.
        """
        raised, moments = powers(base, draws), np.empty((3, self.count, len(base)))
        gained, chances = raised * gain[:, :, None], _poisson(float(draws), draws)
        transform, multiply, coefficient = _SERIES if draws <= directly else _ON_CIRCLE
        for group in self.groups:
            own, *factors = (
                [transform(one) for one in group.alone(factor, draws)]
                for factor in (raised, gained, gained * self.values[:, None])
            )
            others = group.all_but_one(own, multiply, transform(np.eye(1, draws + 1)[0]))
            moments[0, group.places] = coefficient(draws, own[0], others[0], draws) / chances[draws]
            for k, factor in enumerate(factors, start=1):
                moments[k, group.places] = sum(
                    share * coefficient(draws - 1, one, rest, draws) / chances[draws - 1]
                    for one, rest, share in zip(factor, others, group.shares, strict=True)
                )
        return moments[0], moments[1], moments[2]

    def champions(
        self, draws: int, passes: FloatArray, scores: Iterable[tuple[FloatArray, FloatArray, FloatArray]]
    ) -> FloatArray:
        """Return each agent's champion law, agents x values: the first draw that passes, else that of best score.

        `scores` are the probabilities of a score below some, and of that score, for each value, with weights.
        """
        law, best = np.zeros((2, self.count, len(self.values)))
        last = draws - 1
        raised = powers((1 - passes)[None, :], last)
        for window, mean in _windows(last):
            shown, chances = raised[:, :, : window.stop], _poisson(mean, window.stop - 1)[window]
            for group in self.groups:
                others = group.all_but_one(group.alone(shown, mean), _times, np.eye(1, window.stop)[0])
                for rest, weights, drawn in zip(others, group.drawn, group.poisson(mean, window.stop - 1), strict=True):
                    own = (shown * drawn).repeat(len(group.places), axis=0)
                    reached = _times(own, rest.repeat(len(self.values), axis=1))[:, :, window] / chances
                    law[group.places] += weights * passes * reached.sum(axis=2)
        mean = float(max(1, last))
        for below, at, share in scores:
            raised = powers(below, last)
            for group in self.groups:
                alone = [_on_circle(one) for one in group.alone(raised, mean)]
                others = group.all_but_one(alone, np.multiply, np.ones(1))
                for values, weights, drawn in zip(others, group.drawn, group.poisson(mean, last), strict=True):
                    own = raised * (drawn / _poisson(mean, last)[last])
                    rest = np.moveaxis(_coefficients(values)[:, :, last::-1], 0, 2)
                    best[group.places] += draws * weights * np.einsum("c,cv,cva->av", share, at, own @ rest)
        left = np.maximum(0.0, 1 - law.sum(axis=1)) / np.maximum(best.sum(axis=1), 1e-300)
        return np.asarray(law + best * left[:, None])  # the quadrature over scores may miss a part


def weights_of(atoms: ValueWeights, values: FloatArray) -> FloatArray:
    """Return the distribution of one original over the values."""
    law: FloatArray = np.zeros(len(values))
    np.add.at(law, np.searchsorted(values, [value for value, _ in atoms]), [float(weight) for _, weight in atoms])
    return np.asarray(law / law.sum())


def _windows(draws: int) -> Iterator[tuple[slice, float]]:
    """Return numbers of draws that a Poisson law with one mean has with probabilities far above the smallest float."""
    stop = min(draws, AT_FIRST) + 1
    yield slice(0, stop), stop / math.e
    while stop <= draws:
        begin, stop = stop, min(draws + 1, stop + round(50 * math.sqrt(stop)))
        yield slice(begin, stop), (begin + stop) / 2


@lru_cache(maxsize=64)
def _poisson(mean: float, most: int) -> FloatArray:
    """Return the probabilities of 0, 1, .., most."""
    k = np.arange(most + 1)
    return np.asarray(np.exp(k * math.log(mean) - mean - scipy.special.gammaln(k + 1)))


def _times(first: AnyArray, second: AnyArray) -> AnyArray:
    """Multiply series along the last axis, up to their last coefficient."""
    rows, count = math.prod(first.shape[:-1]), first.shape[-1]
    if rows < count:
        pairs = zip(first.reshape(rows, count), second.reshape(rows, count), strict=True)
        return np.array([np.convolve(*pair)[:count] for pair in pairs]).reshape(first.shape)
    product = first[..., :1] * second
    for k in range(1, count):
        product[..., k:] += first[..., k, None] * second[..., : count - k]
    return np.asarray(product)


def _on_circle(series: FloatArray) -> AnyArray:
    """Evaluate series at roots of unity, at enough of them to recover all coefficients."""
    return np.asarray(scipy.fft.rfft(series, _roots(series.shape[-1] - 1)))


def _roots(last: int) -> int:
    return int(scipy.fft.next_fast_len(2 * last + ALIAS, real=True)) // 2 * 2


def _coefficients(values: AnyArray) -> FloatArray:
    """Return the coefficients of a polynomial from its values at roots of unity; at least 0, as all of ours are."""
    return np.asarray(np.maximum(0.0, scipy.fft.irfft(values, 2 * (values.shape[-1] - 1))))


def _coefficient_of_series(power: int, first: AnyArray, second: AnyArray, last: int) -> FloatArray:
    """Return one coefficient of a product of series."""
    return np.asarray((first[..., : power + 1] * second[..., power::-1]).sum(axis=-1))


def _coefficient_on_circle(power: int, first: AnyArray, second: AnyArray, last: int) -> FloatArray:
    """Return the same coefficient, given the series' values at roots of unity."""
    turns, roots = np.arange(first.shape[-1]), _roots(last)
    twice = np.where((turns == 0) | (turns == roots // 2), 1.0, 2.0) / roots  # the other half are conjugates
    turned = twice * np.exp(2j * np.pi * power * turns / roots)
    return np.asarray(np.maximum(0.0, ((first * second) @ turned).real))


_SERIES = np.asarray, _times, _coefficient_of_series
_ON_CIRCLE = _on_circle, np.multiply, _coefficient_on_circle
