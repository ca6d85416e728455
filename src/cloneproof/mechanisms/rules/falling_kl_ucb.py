"""KL-UCB on slots, each counted with its lowest index so far."""

from __future__ import annotations

from cloneproof.mechanisms.bandits.rule import Rule, Slots, positive, rounds_number
from cloneproof.mechanisms.rules.steady_kl_ucb import index


def falling_kl_ucb(draws: int = 12, constant: float = 2.0) -> Rule:
    """`draws` slots per agent in one contest, ranked by their lowest index so far: n kl(mean, index) = constant.

    An index is updated after 1, 2, .., 32 rewards and then each time a sixteenth more have come; between updates a slot
    is pulled on. That an index cannot rise affects only ties, which follow an order of all slots that is drawn once. In
    a market that ends at random this is a best of all slots by independent scores (docs/textbook/index-on-slots.md).
    Rewards in [0, 1] become coins.

    >>> falling_kl_ucb(draws=8, constant=1.5).slots.falling
    True
    """
    draws, constant = rounds_number(draws, "the slots of an agent"), positive(constant, "the constant of the index")
    options = {"draws": draws, "constant": constant}
    return Rule("falling-kl-ucb", index, (constant,), binarise=True, slots=Slots(draws, falling=True), options=options)
