"""A market declared by a few numbers: equal agents, and the click rates of their items."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloneproof._lib.checks import real
from cloneproof.errors import MarketError, brief
from cloneproof.market.priors import Beta, Discrete
from cloneproof.market.segments import MeanLaw

MOST_ITEMS = 3000  # of all agents together
TAIL = 0.05  # of the rates, below the lower one of two that were declared; as many lie above the higher one
SHAPES = (1e-3, 1e9)  # parameters a of Beta priors among which the one for two rates is searched
DIGITS = 5  # of the parameters of such a prior


def law_of_items(rates: Sequence[float] | MeanLaw | None, values: Sequence[float] | None) -> MeanLaw:
    """Return the law of every item's rate: as given, between two `rates`, or all `values` equally likely.

    >>> law_of_items((0.002, 0.006), None)
    Beta(a=9.3542, b=2469.4)
    >>> law_of_items(None, (0.002, 0.006)).values
    (0.002, 0.006)
    """
    if (rates is None) == (values is None):
        raise MarketError(
            "expected the click rates as rates=(low, high) or a prior, or as values=(..), one of them; e.g. "
            "rates=(0.002, 0.006)"
        )
    if rates is None:
        return _listed(values)
    return prior_between(rates) if isinstance(rates, Sequence) else rates


def prior_between(rates: object) -> Beta:
    """Return the Beta prior of which nine tenths lie between two rates, and a twentieth on either side.

    >>> prior = prior_between((0.01, 0.05))
    >>> prior, round(prior.quantile(0.05), 4), round(prior.quantile(0.95), 4)
    (Beta(a=4.485, b=162.78), 0.01, 0.05)
    """
    from scipy.optimize import brentq  # SciPy loads late
    from scipy.special import betaincinv

    ends = _checked_rates(rates)
    if len(ends) != 2 or ends[1] == 1:
        raise MarketError(
            f"expected rates as (low, high) below 1, between which nine of ten items lie, got {brief(rates)}; give "
            "rates that are all there are as values"
        )
    low, high = ends

    def other(a: float) -> float:
        """The parameter b with which the lower rate is where it should be: the quantile falls as b grows."""
        return float(brentq(lambda b: betaincinv(a, math.exp(b), TAIL) - low, -60.0, 60.0))

    def spread(log_a: float) -> float:
        """How far the higher quantile is from the higher rate: it falls as both parameters grow."""
        a = math.exp(log_a)
        return float(betaincinv(a, math.exp(other(a)), 1 - TAIL)) - high

    a = math.exp(brentq(spread, *map(math.log, SHAPES)))
    return Beta(*(float(f"{number:.{DIGITS}g}") for number in (a, math.exp(other(a)))))


def _listed(values: object) -> Discrete:
    means = _checked_rates(values)
    return Discrete(list(means), [1 / len(means)] * len(means))


def check_size(items: int) -> None:
    """Refuse more items than a recommendation looks at."""
    if items > MOST_ITEMS:
        raise MarketError(
            f"expected at most {MOST_ITEMS:,} items of all agents together, got {items:,}; ask for a part of the "
            "market, whose traffic is as much smaller"
        )


def _checked_rates(rates: object) -> tuple[float, ...]:
    numbers = [real(rate) for rate in rates] if isinstance(rates, Sequence) and not isinstance(rates, str) else []
    if not numbers or any(number is None or not 0 < number <= 1 for number in numbers):
        raise MarketError(
            f"expected rates above 0 and at most 1, got {brief(rates)}; half a percent is 0.005, e.g. "
            "rates=(0.002, 0.006)"
        )
    checked = [number for number in numbers if number is not None]
    if sorted(set(checked)) != checked:
        raise MarketError(f"expected rates from the lowest to the highest, got {brief(rates)}; put them in order")
    return tuple(checked)
