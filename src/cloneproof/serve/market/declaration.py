"""What may be declared and registered: no more than the service can carry without making other markets wait.

These limits are checked at the door alone. A ledger that was written under others is replayed as it is.
"""

from __future__ import annotations

from typing import Final

import msgspec

from cloneproof.errors import Refused
from cloneproof.mechanisms.parameters.theorems import SMALLEST_GAP
from cloneproof.serve.ledger.dice import MarketDice, make_secret
from cloneproof.serve.ledger.terms import MarketSpec, complete
from cloneproof.serve.market.engine import MarketEngine

MOST_DECLARED: Final = 1_000_000  # originals of all agents together, and slots of a reservoir
MOST_REGISTERED: Final = 100_000  # arms of all agents together
MOST_COMPARED: Final = 2000  # candidates that a rule looks at anew in every decision: about 20 ms


def check_declaration(spec: MarketSpec) -> None:
    """Refuse at once what is out of bounds, whatever the mechanism."""
    for name, gap in (("gap", spec.gap), ("agent_gap", spec.agent_gap)):
        if gap is not None and gap < SMALLEST_GAP:
            raise Refused(
                422,
                "invalid",
                f"expected {name} of at least {SMALLEST_GAP:g}, got {gap!r}; no horizon tells them apart",
            )
    originals = spec.max_agents * (spec.max_originals or 1)
    if originals > MOST_DECLARED:
        raise Refused(
            422,
            "invalid",
            f"expected max_agents times max_originals of at most {MOST_DECLARED}, got {originals}; declare less",
        )


def declared_market(spec: MarketSpec) -> MarketEngine:
    """The market of a declaration, before its first entry, or one clear refusal; it may take tenths of a second."""
    check_declaration(spec)
    try:
        terms = msgspec.structs.replace(complete(spec), seed=None)
        market = MarketEngine(terms, dice=MarketDice(spec.market, make_secret(spec.seed)))
    except ArithmeticError as problem:
        raise Refused(
            422, "invalid", f"expected parameters that can be computed with, got {problem}; choose others"
        ) from None
    slots = spec.max_agents * max(rule.draws for rule in market.mechanism.rules)
    if slots > MOST_DECLARED:
        raise Refused(
            422, "invalid", f"expected max_agents times draws of at most {MOST_DECLARED}, got {slots}; declare less"
        )
    return market


def check_room(market: MarketEngine, agent: str) -> None:
    """Refuse one arm of an agent more than can be decided about in time."""
    registry, mechanism = market.registry, market.mechanism
    if registry.arm_count >= MOST_REGISTERED:
        raise Refused(409, "quota", f"expected at most {MOST_REGISTERED} arms in a market, got one more; leave it out")
    if mechanism.arm.commits or mechanism.arm.draws:
        return
    compared = registry.arm_count if mechanism.agent is None else len(registry.agent(agent).arms)
    if compared >= MOST_COMPARED:
        raise Refused(
            409,
            "quota",
            f"expected at most {MOST_COMPARED} arms that {mechanism.name!r} compares in every decision, got one more; "
            "leave some out, or declare a mechanism that commits",
        )


def check_room_for_agent(market: MarketEngine) -> None:
    """Refuse one agent more than can be decided about in time."""
    rule = market.mechanism.agent
    if rule is not None and not rule.commits and len(market.registry.agents) >= MOST_COMPARED:
        raise Refused(
            409,
            "quota",
            f"expected at most {MOST_COMPARED} agents that {market.mechanism.name!r} compares in every decision, got "
            "one more; leave some out, or declare a mechanism that commits",
        )
