"""The values that means can have, as the pairs theorem takes them: declared by a platform, or read off a market.

values              the means that items can have
rates, relative_gap all means lie between two rates, and two that differ do so by at least that part of the lower one
sub_gaussian        the sub-Gaussian constant of rewards, where they are not in [0, 1]; checked against the family
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from cloneproof._checks import listed, number_in
from cloneproof.bounds import pairs_apply
from cloneproof.bounds.pairs import TailBound, arm_rounds_for, rate_values, score_rounds_for
from cloneproof.errors import MechanismError, brief
from cloneproof.market.market import Agent, Market
from cloneproof.mechanisms.parameters.theorems import SMALLEST_GAP

MOST_SUPPORTS = 40  # different sets of values up to which agents are compared pair by pair
MOST_NAMED = 6  # values that a claim lists by name


class KnownValues(NamedTuple):
    """Values that means can have: of each agent, in pairs of two agents, and their range; and the tail bound to use."""

    supports: tuple[tuple[float, ...], ...]
    rivals: tuple[tuple[float, float], ...]
    extent: float
    tail: TailBound
    spread: float
    words: str

    def arm_rounds(self, originals: int, horizon: int) -> int:
        """Return the smallest m of the pairs theorem."""
        pairs = {pair for support in self.supports for pair in pairwise(support)}
        return arm_rounds_for(originals, pairs, horizon, self.tail, self.spread)

    def score_rounds(self, agents: int, horizon: int) -> int:
        """Return the smallest W with which scores tell agents apart."""
        return 1 if agents == 1 else score_rounds_for(agents, self.rivals, horizon, self.tail, self.spread)

    def covered(self, originals: int, arm_rounds: int, horizon: int) -> bool:
        """Return whether the pairs theorem covers this many rounds."""
        tail = self.tail, self.spread
        return all(pairs_apply(originals, support, arm_rounds, horizon, *tail) for support in self.supports)

    @property
    def gap(self) -> float:
        """Return the smallest distance of two values of an agent; infinite for a single value."""
        return min((v - u for support in self.supports for u, v in pairwise(support)), default=math.inf)

    @property
    def agent_gap(self) -> float:
        """Return the smallest distance of the best values of two agents; infinite if they cannot differ."""
        return min((v - u for u, v in self.rivals), default=math.inf)


def declared_values(
    values: Sequence[float] | None,
    rates: Sequence[float] | None,
    relative_gap: float | None,
    market: Market | None,
    spread: float | None,
) -> KnownValues | None:
    """Read what a platform declares about its items' means; None if it declares neither values nor rates."""
    if values is not None and rates is not None:
        raise MechanismError("expected values or rates, got both; give the values alone, which say more")
    if rates is None and relative_gap is not None:
        raise MechanismError(
            f"expected rates=(lowest, highest) with relative_gap={brief(relative_gap)}, got none; "
            "give e.g. rates=(0.002, 0.05)"
        )
    tail = _tail(market, spread)
    if rates is not None:
        lowest, highest, relative = _checked_rates(rates, relative_gap)
        means, extent = rate_values(lowest, highest, relative), highest - lowest
        words = f"rates from {lowest:g} to {highest:g} that are equal or at least {100 * relative:g} % apart"
        tail = "chernoff" if tail == "exact" else tail
    elif values is not None:
        means = _checked_values(values)
        extent, words = means[-1] - means[0], _among(means)
    else:
        return None
    return KnownValues((means,), tuple(pairwise(means)), extent, tail, _spread(market, spread), words)


def market_values(market: Market, spread: float | None) -> KnownValues | None:
    """Read the values off a market's priors; None if a prior is continuous or values cannot be told apart."""
    supports = {agent.support for agent in market.agents}
    if None in supports:
        return None
    known = tuple(sorted(support for support in supports if support is not None))
    means = sorted({value for support in known for value in support})
    rivals = tuple(sorted(set(_rivals(market.agents))))
    words = _among(tuple(means)) if len(known) == 1 else "the market's values"
    values = KnownValues(known, rivals, means[-1] - means[0], _tail(market, spread), _spread(market, spread), words)
    return values if values.gap >= SMALLEST_GAP else None


def checked_sub_gaussian(value: object, market: Market | None) -> float:
    """Return the sub-Gaussian constant, or raise if the rewards need a larger one.

    A standard deviation is not enough: a coin of mean p is sub-Gaussian with sqrt((1 - 2p) / (2 ln((1 - p) / p))),
    which is .45 for p = .15, where the standard deviation is .36, and never with less.

    >>> round(coin_constant(0.15), 3), coin_constant(0.5)
    (0.449, 0.5)
    """
    number = number_in(value, "sub_gaussian", 0, 1e6, MechanismError, low_open=True)
    least, whose = 0.5, "any rewards in [0, 1]"
    if market is not None:
        least, whose = _least_constant(market), f"these {market.family.name} rewards"
    if number < least * (1 - 1e-9):
        raise MechanismError(
            f"expected sub_gaussian of at least {math.ceil(1000 * least) / 1000:g}, the sub-Gaussian constant of "
            f"{whose}, got {brief(value)}; it is not their standard deviation, and can be left out"
        )
    return number


def coin_constant(mean: float) -> float:
    """Return the smallest sub-Gaussian constant of a coin (Kearns and Saul 1998)."""
    if mean in (0.0, 1.0):
        return 0.0
    if abs(mean - 0.5) < 1e-4:
        return 0.5  # at least the limit, which is 1/2
    return math.sqrt((1 - 2 * mean) / (2 * math.log((1 - mean) / mean)))


def _least_constant(market: Market) -> float:
    family = market.family
    if family.law == "point":
        return 0.0
    if family.law != "coin":
        return family.spread
    supports = [agent.support for agent in market.agents]
    return max(0.5 if support is None else max(map(coin_constant, support)) for support in supports)


def _tail(market: Market | None, spread: float | None) -> TailBound:
    if spread is not None:
        return "sub-gaussian"
    if market is None:
        return "chernoff"
    family = market.family
    if family.law == "coin":
        return "exact"
    return "chernoff" if family.low >= 0 and family.high <= 1 else "sub-gaussian"


def _spread(market: Market | None, spread: float | None) -> float:
    return spread if spread is not None else market.family.spread if market is not None else 0.5


def _rivals(agents: Sequence[Agent]) -> Iterator[tuple[float, float]]:
    """Yield neighbouring values that can be the best means of two different agents."""
    bests = [tuple(v for v in agent.support or () if v >= agent.least_best) for agent in agents]
    if len(set(bests)) > MOST_SUPPORTS:
        yield from pairwise(sorted({value for best in bests for value in best}))
        return
    for best in set(bests):
        for other in set(bests):
            if best is other and bests.count(best) == 1:
                continue
            for v in best:
                below = [u for u in other if u < v]
                if below:
                    yield below[-1], v


def _checked_values(values: object) -> tuple[float, ...]:
    numbers = listed(values, "values", MechanismError)
    means = tuple(sorted({number_in(number, "values", 0, 1, MechanismError) for number in numbers}))
    if any(v - u < SMALLEST_GAP for u, v in pairwise(means)):
        raise MechanismError(
            f"expected values at least {SMALLEST_GAP:g} apart, which no horizon could tell apart else, got "
            f"{brief(values)}; leave one of two out"
        )
    return means


def _checked_rates(rates: object, relative_gap: object) -> tuple[float, float, float]:
    given = listed(rates, "rates", MechanismError)
    both = [number_in(rate, "rates", 0, 1, MechanismError, low_open=True) for rate in given]
    if len(both) != 2 or both[0] > both[1]:
        raise MechanismError(
            f"expected rates=(lowest, highest), got {brief(rates)}; "
            "for half a percent to five percent give rates=(0.005, 0.05)"
        )
    return both[0], both[1], number_in(relative_gap, "relative_gap", 1e-4, error=MechanismError)


def _among(values: tuple[float, ...]) -> str:
    if len(values) == 1:
        return f"the mean {values[0]:g}"
    if len(values) > MOST_NAMED:
        return f"means among {len(values)} values from {values[0]:g} to {values[-1]:g}"
    return f"means among {', '.join(f'{value:g}' for value in values)}"
