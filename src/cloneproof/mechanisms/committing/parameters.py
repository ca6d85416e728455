"""Parameters by theorem, from a market. The formulas are in `cloneproof.bounds`.

L (the largest number of originals) and the gaps are declared by the principal or read off the priors of the market,
never inferred from what was registered.
"""

from __future__ import annotations

from collections.abc import Mapping

from cloneproof.bounds import etc_rounds, trial_rounds
from cloneproof.errors import MechanismError
from cloneproof.market.market import Market
from cloneproof.mechanisms.bandits.rule import rounds_number
from cloneproof.mechanisms.committing.committing import Committing
from cloneproof.mechanisms.mechanism import Derived, Given, Mechanism

SMALLEST_GAP = 1e-7  # smallest gap for which m, which grows with its inverse square, stays below about 10^15


def known_gap(market: Market) -> float:
    """Return the market's gap, or raise if it has none that a theorem can use."""
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
    """Apply Theorem 3 with l = all originals of the market, which a flat mechanism compares."""
    if "arm_rounds" in given:
        return Derived({})
    return Derived({"arm_rounds": etc_rounds(market.originals, known_gap(market), market.horizon, factor)})


def uniform_etc_parameters(market: Market, given: Given, factor: float = 2.0) -> Derived:
    """Apply Theorem 3 inside one agent, so l = L."""
    if "arm_rounds" in given:
        return Derived({})
    return Derived({"arm_rounds": etc_rounds(market.most_originals, known_gap(market), market.horizon, factor)})


def h_etc_r_parameters(market: Market, given: Given, factor: float = 2.0) -> Derived:
    """Derive m by Theorem 4 and M by Theorem 5."""
    if "arm_rounds" in given:
        m = rounds_number(given["arm_rounds"], "arm_rounds")
    else:
        m = etc_rounds(market.most_originals, known_gap(market), market.horizon, factor)
    return Derived({"arm_rounds": m, "agent_rounds": trial_rounds(m, market.most_originals, market.horizon)})


def outside_conditions(mechanism: Mechanism, registered: Mapping[str, int], horizon: int) -> list[str]:
    """Return a sentence for each condition of the theorem that fails; the mechanism runs anyway.

    >>> from cloneproof.mechanisms.catalogue import mechanism
    >>> outside_conditions(mechanism("h-etc-r", agent_rounds=10, arm_rounds=5), {"ana": 3, "bo": 1}, 100)
    ["the trial of 10 rounds cannot explore the 3 arms of 'ana' for 5 rounds each"]
    """
    if not isinstance(mechanism, Committing):
        return []
    trial = mechanism.agent_rounds
    if not trial:
        return _exploration_only(mechanism, registered, horizon)
    sentences = []
    needed = len(registered) * trial
    if horizon < needed:
        sentences.append(
            f"a horizon of {horizon} is shorter than the trials of {needed} rounds: the trial does not end"
        )
    for name, arms in registered.items():
        if arms * mechanism.arm_rounds > trial:
            sentences.append(
                f"the trial of {trial} rounds cannot explore the {arms} arms of {name!r} "
                f"for {mechanism.arm_rounds} rounds each"
            )
    return sentences


def _exploration_only(mechanism: Committing, registered: Mapping[str, int], horizon: int) -> list[str]:
    """Check whether explore-then-commit ever reaches its commitment."""
    if mechanism.choice != "commit" or mechanism.power is not None:
        return []
    rounds = (sum if mechanism.agent is None else max)(registered.values()) * mechanism.arm_rounds
    if horizon >= rounds:
        return []
    return [f"a horizon of {horizon} is shorter than the exploration of {rounds} rounds: nothing is ever committed to"]
