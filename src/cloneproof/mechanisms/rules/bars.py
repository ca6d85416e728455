"""Bars on slots: a view costs a point, a click earns K, and the slot that has failed least often is shown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cloneproof._checks import listed, number_in, real
from cloneproof._discovery import formula
from cloneproof._schedules import bar_of
from cloneproof.errors import MechanismError, brief
from cloneproof.mechanisms.rule import PriorityInputs, Rule, Slots, positive, rounds_number

LOWEST_BAR = 1e-9  # so that a click earns a billion points at most
LARGEST_STAKE = 1e6  # clicks
MOST_BARS = 1000


@formula("bars")
def equal(inputs: PriorityInputs) -> float:
    """Return the same priority for all slots: how often each has failed decides, which their level counts."""
    return 0.0


def bars(bars: float | Sequence[float] = 0.02, stake: float | Sequence[float] = 1.0, draws: int = 16) -> Rule:
    """`draws` slots per agent; each starts with a stake, a view costs a point, a click earns K = 1 / bar points.

    The slot that has failed least often is shown until its balance is 0, which is a failure; the next attempt then has
    the next bar and its stake, and the last bar stays. A stake is in clicks, for all bars or for each. Ties follow an
    order of all slots that is drawn once. A K that is not whole is rounded by a coin. Rewards in [0, 1] become coins.

    >>> bars(bars=0.025, stake=0.5).slots.bars
    (Bar(stake=20, whole=40, part=0.0),)
    """
    rates = [
        number_in(rate, "a bar", LOWEST_BAR, 1, MechanismError)
        for rate in ([bars] if real(bars) is not None else listed(bars, "bars", MechanismError))
    ]
    if len(rates) > MOST_BARS or any(later > rate for rate, later in pairwise(rates)):
        raise MechanismError(
            f"expected up to {MOST_BARS} bars that do not rise, got {brief(bars)}; begin with the highest"
        )
    clicks = [
        positive(each, "a stake", LARGEST_STAKE)
        for each in ([stake] if real(stake) is not None else listed(stake, "stakes", MechanismError))
    ]
    if len(clicks) not in (1, len(rates)):
        raise MechanismError(
            f"expected one stake, or one for each of {len(rates)} bars, got {len(clicks)}; give as many as bars"
        )
    draws = rounds_number(draws, "the slots of an agent")
    stakes = clicks * len(rates) if len(clicks) == 1 else clicks
    slots = Slots(draws, falling=True, bars=tuple(map(bar_of, rates, stakes)))
    options = {"bars": _shortest(rates), "stake": _shortest(clicks), "draws": draws}
    return Rule("bars", equal, binarise=True, slots=slots, options=options)


def _shortest(numbers: list[float]) -> float | list[float]:
    """Return a number where there is one only, as it is written in files and terms."""
    return numbers[0] if len(numbers) == 1 else numbers
