"""Parameters by theorem, from a market. The formulas are in `cloneproof.bounds`.

L (the largest number of originals) and the gaps are declared by the principal or read off the priors of the market,
never inferred from what was registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cloneproof.bounds import etc_rounds
from cloneproof.errors import MechanismError
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Claim, Mechanism

SMALLEST_GAP = 1e-7  # its square still leaves m below 10^15 or so rounds

Given = Mapping[str, Any]


class Derived(NamedTuple):
    """What a theorem makes of a market and the parameters given: the missing ones, and what is claimed with them.

    Empty claims leave the mechanism's own. `build` stands for a variant of the mechanism, built in its place.
    """

    parameters: Mapping[str, Any]
    claims: tuple[Claim, ...] = ()
    build: Callable[..., Mechanism] | None = None


def known_gap(market: Market) -> float:
    """The market's gap, or the error that a theorem needs one."""
    if market.gap is None:
        raise MechanismError(
            "expected a market with a gap, which the theorem needs, got continuous priors without one; "
            "declare gap in the market, use prior.discretised(5), or give the rounds yourself"
        )
    if market.gap < SMALLEST_GAP:
        raise MechanismError(
            f"expected a gap of at least {SMALLEST_GAP:g}, got {market.gap:g}, which no horizon can tell apart; "
            "declare a larger gap in the market, or bin an empirical prior"
        )
    return market.gap


def etc_parameters(market: Market, given: Given, factor: float = 2.0) -> Derived:
    """Theorem 3 with l = all originals of the market, which a flat mechanism compares."""
    if "arm_rounds" in given:
        return Derived({})
    return Derived({"arm_rounds": etc_rounds(market.originals, known_gap(market), market.horizon, factor)})


def uniform_etc_parameters(market: Market, given: Given, factor: float = 2.0) -> Derived:
    """Theorem 3 inside one agent, so l = L."""
    if "arm_rounds" in given:
        return Derived({})
    return Derived({"arm_rounds": etc_rounds(market.most_originals, known_gap(market), market.horizon, factor)})
