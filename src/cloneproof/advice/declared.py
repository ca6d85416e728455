"""A market declared by a few numbers: equal agents, and the click rates of their items."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloneproof._checks import count as checked_count
from cloneproof._checks import real
from cloneproof.errors import MarketError, brief
from cloneproof.market.market import Agent, Market, checked_market
from cloneproof.market.priors import Discrete

MOST_VALUES = 12  # rates that are told apart; a wider range gets larger steps
MOST_ITEMS = 3000  # of all agents together
RELATIVE_GAP = 0.25


def declared_market(
    agents: int,
    originals: int,
    horizon: int,
    *,
    rates: Sequence[float] | None = None,
    relative_gap: float = RELATIVE_GAP,
    values: Sequence[float] | None = None,
) -> Market:
    """Equal agents whose items have one of some equally likely click rates.

    The rates are `values`, or run from the lowest to the highest of `rates` in equal ratios of at least
    1 + `relative_gap`.

    >>> market = declared_market(20, 3, 10**8, rates=(0.002, 0.006), relative_gap=0.5)
    >>> [round(value, 6) for value in market.agents[0].support]
    [0.002, 0.003464, 0.006]
    """
    count = checked_count(agents, "agents", error=MarketError)
    items = checked_count(originals, "originals", error=MarketError)
    _check_size(count * items)
    rounds = checked_count(horizon, "rounds", count, error=MarketError)
    if (rates is None) == (values is None):
        raise MarketError(
            "expected the click rates as rates=(lowest, highest) or as values=(..), one of them; e.g. "
            "rates=(0.002, 0.006)"
        )
    means = rates_between(rates, relative_gap) if rates is not None else _checked_rates(values)
    prior = Discrete(list(means), [1 / len(means)] * len(means))
    width = len(str(count))
    return Market([Agent(f"agent {k + 1:0{width}}", items, prior) for k in range(count)], rounds)


def _check_size(items: int) -> None:
    if items > MOST_ITEMS:
        raise MarketError(
            f"expected at most {MOST_ITEMS:,} items of all agents together, got {items:,}; ask for a part of the "
            "market, whose traffic is as much smaller"
        )


def rates_between(rates: Sequence[float], relative_gap: float = RELATIVE_GAP) -> tuple[float, ...]:
    """From the lowest to the highest in equal ratios of at least 1 + relative_gap, at most a dozen."""
    ends = _checked_rates(rates)
    step = real(relative_gap)
    if step is None or step <= 0:
        raise MarketError(
            f"expected a relative gap above 0, got {brief(relative_gap)}; 0.25 says that two items that differ, "
            "differ by at least a quarter"
        )
    if len(ends) > 2:
        raise MarketError(f"expected rates as (lowest, highest), got {brief(rates)}; give a list as values")
    if len(ends) == 1:
        return ends
    low, high = ends
    steps = min(MOST_VALUES - 1, max(1, math.floor(math.log(high / low) / math.log1p(step) + 1e-9)))
    return (low, *(low * (high / low) ** (k / steps) for k in range(1, steps)), high)


def _checked_rates(rates: object) -> tuple[float, ...]:
    numbers = [real(rate) for rate in rates] if isinstance(rates, Sequence) and not isinstance(rates, str) else []
    if not numbers or any(number is None or not 0 < number <= 1 for number in numbers):
        raise MarketError(
            f"expected rates above 0 and at most 1, got {brief(rates)}; half a percent is 0.005, e.g. "
            "rates=(0.002, 0.006)"
        )
    found = [number for number in numbers if number is not None]
    if sorted(set(found)) != found:
        raise MarketError(f"expected rates from the lowest to the highest, got {brief(rates)}; put them in order")
    return tuple(found)


def asked_market(
    market: Market | None,
    agents: int | None,
    originals: int | None,
    horizon: int | None,
    rates: Sequence[float] | None,
    relative_gap: float,
    values: Sequence[float] | None,
) -> Market:
    """Return the given or the declared market; raises an error if there is neither or both."""
    declared = {"agents": agents, "originals": originals, "horizon": horizon, "rates": rates, "values": values}
    given = [name for name, value in declared.items() if value is not None]
    if market is not None:
        if given:
            raise MarketError(f"expected a market or what to make one of, got a market and {given[0]}; leave one out")
        checked_market(market)
        _check_size(market.originals)
        if market.horizon < len(market.agents):
            raise MarketError(
                f"expected at least as many rounds as there are agents, {len(market.agents)}, got {market.horizon}; "
                "give more rounds, or fewer agents"
            )
        return market
    missing = [name for name in ("agents", "originals", "horizon") if declared[name] is None]
    if missing or agents is None or originals is None or horizon is None:
        raise MarketError(
            f"expected a market, or agents, originals, horizon and rates, got no {' and no '.join(missing)}; give "
            "them, e.g. agents=20, originals=3, horizon=10**8, rates=(0.002, 0.006)"
        )
    return declared_market(agents, originals, horizon, rates=rates, relative_gap=relative_gap, values=values)
