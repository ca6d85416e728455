"""What a theorem needs to know of a market; the numbers that follow from it are in `cloneproof.bounds`."""

from __future__ import annotations

from cloneproof.errors import MechanismError
from cloneproof.market.market import Market

SMALLEST_GAP = 1e-7  # its square still leaves m below 10^15 or so rounds


def known_gap(market: Market) -> float:
    """The market's gap, or the error that a theorem needs one."""
    if market.gap is None:
        raise MechanismError(
            "expected a market with a gap, which the theorem needs, got continuous priors without one; "
            "declare gap in the market, bin an empirical prior, or give the rounds yourself"
        )
    if market.gap < SMALLEST_GAP:
        raise MechanismError(
            f"expected a gap of at least {SMALLEST_GAP:g}, got {market.gap:g}, which no horizon can tell apart; "
            "declare a larger gap in the market, or bin an empirical prior"
        )
    return market.gap
