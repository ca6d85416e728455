"""A bar on slots: a view costs a point, a click earns K, and the slot that has failed least often is shown."""

from __future__ import annotations

from cloneproof._lib.checks import number_in
from cloneproof._lib.discovery import formula
from cloneproof._lib.schedules import bar_of
from cloneproof.errors import MechanismError
from cloneproof.mechanisms.bandits.rule import PriorityInputs, Rule, Slots, positive, rounds_number

LOWEST_BAR = 1e-9  # so that a click earns a billion points at most
LARGEST_STAKE = 1e6  # clicks


@formula("bars")
def equal(inputs: PriorityInputs) -> float:
    """Return the same priority for all slots: how often each has failed decides, which their level counts."""
    return 0.0


def bars(bars: float = 0.02, stake: float = 1.0, draws: int = 16) -> Rule:
    """`draws` slots per agent; each starts with a stake, a view costs a point, a click earns K = 1 / bar points.

    The slot that has failed least often is shown until its balance is 0, which is a failure; the next attempt starts
    with the stake again, which is in clicks. Ties follow an order of all slots that is drawn once. A K that is not
    whole is rounded by a coin. Rewards in [0, 1] become coins.

    >>> bars(bars=0.025, stake=0.5).slots.bar
    Bar(stake=20, whole=40, part=0.0)
    """
    rate = number_in(bars, "the bar", LOWEST_BAR, 1, MechanismError)
    clicks = positive(stake, "the stake", LARGEST_STAKE)
    draws = rounds_number(draws, "the slots of an agent")
    slots = Slots(draws, falling=True, bar=bar_of(rate, clicks))
    return Rule("bars", equal, binarise=True, slots=slots, options={"bars": rate, "stake": clicks, "draws": draws})
