"""What is proven of rules by priority: little of copies, and of two levels that naming one's best is the best list."""

from __future__ import annotations

from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.proof import EXPLORING, ONE_MEAN, Case, Lists, Proof, never_erring


def proof(mechanism: Mechanism, case: Case) -> Proof:
    """Return what is known of an agent's lists."""
    named = _named(mechanism, case)
    if case.market.places:  # the rest is about one arm a round
        return Proof(named=named)
    alone, tried = case.agents == 1, mechanism.arm_rounds
    words, rounds = "", case.market.horizon
    if case.of_one_mean and (alone or not mechanism.flat):
        words = ONE_MEAN
    elif alone and case.exchangeable and rounds <= case.agent.count * tried:
        words = EXPLORING
    earns = never_erring(case, [(rounds, lambda first: min(rounds, first), tried)]) if alone else None
    covers = frozenset((Lists.COPIES,)) if words else frozenset[Lists]()
    return Proof(words, covers, same=bool(words), apart=alone, named=named, earns=earns)


def _named(mechanism: Mechanism, case: Case) -> bool | None:
    """Return whether no list earns more than the best original alone (docs/textbook/knowledge.md).

    The theorem is about two levels whose upper one ranks agents by a steady index of all their own rewards, for rewards
    of at least 0, in time, in one place. Under other rules for agents it is a question.
    """
    if mechanism.agent is None:
        return None
    market = case.market
    return mechanism.agent.steady and market.positions is None and market.delays == "none" and market.family.low >= 0
