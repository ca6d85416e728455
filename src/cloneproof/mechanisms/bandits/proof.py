"""What is proven of rules by priority: little of copies, and of two levels that naming one's best is the best list."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from cloneproof.laws.counts import expected_minimum
from cloneproof.mechanisms.proof import (
    BLIND,
    DECIDES,
    EXPLORING,
    NO_THEOREM,
    ONE_MEAN,
    Case,
    Lists,
    Proof,
    never_erring,
)

if TYPE_CHECKING:
    from cloneproof.mechanisms.bandits.bandit import Bandit


def proof(bandit: Bandit, case: Case) -> Proof:
    """Return what is known of an agent's lists; rounds of its own are the horizon of one that is alone."""
    named = _named(bandit, case)
    late = (None, DECIDES) if bandit.agent is None or not bandit.agent.uniform else (None, NO_THEOREM)
    if case.market.places:  # the rest is about one arm a round
        return Proof(named=named, late=late)
    alone, tried, rounds = case.agents == 1, bandit.arm.tries, case.market.horizon
    apart = alone or (bandit.agent is not None and bandit.agent.uniform)
    words = ""
    if case.of_one_mean and (alone or bandit.agent is not None):
        words = ONE_MEAN
    elif case.exchangeable and apart and bandit.arm.uniform:
        words = BLIND
    elif case.exchangeable and apart and rounds <= case.agent.count * tried:
        words = EXPLORING
    chance = Fraction(1, case.agents if bandit.agent is not None else 1)

    def first(arms: int) -> float:
        return float(expected_minimum(rounds, chance, arms)) if chance < 1 else min(rounds, arms)

    earns = never_erring(case, [(float(rounds * chance), first, tried)]) if apart else None
    covers = frozenset((Lists.COPIES,)) if words else frozenset[Lists]()
    return Proof(words, covers, same=bool(words), apart=apart, named=named, late=late, earns=earns)


def _named(bandit: Bandit, case: Case) -> bool | None:
    """Return whether no list earns more than the best original alone (docs/textbook/knowledge.md).

    The theorem is about two levels whose upper one ranks agents by a steady index of all their own rewards, for rewards
    of at least 0, in time, in one place. Under other rules for agents it is a question.
    """
    if bandit.agent is None or bandit.agent.uniform:
        return None
    market = case.market
    return bandit.agent.steady and market.positions is None and market.delays == "none" and market.family.low >= 0
