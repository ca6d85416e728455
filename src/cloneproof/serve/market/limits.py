"""Limits of markets: declarations and registrations that a service could not decide with in time are refused."""

from __future__ import annotations

from typing import Final

from cloneproof.errors import Refused
from cloneproof.serve.market.dice import MarketDice, make_secret
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.terms import MOST_DECLARED, MarketSpec, public_terms

MOST_REGISTERED: Final = 100_000  # arms of all agents together
MOST_COMPARED: Final = 2000  # candidates that a rule looks at anew in every decision: about 20 ms


def declared_market(spec: MarketSpec) -> LiveMarket:
    """Return the market of a declaration, before its first entry, or a refusal; may take tenths of a second."""
    market = LiveMarket(public_terms(spec), dice=MarketDice(make_secret(spec.seed)))
    market.dice.key(0)  # takes milliseconds here instead of in the opening
    return market


def check_room(market: LiveMarket, agent: str) -> None:
    """Refuse an arm if decisions would take too long, in total or for the agent's equal share of that limit."""
    registry, facts = market.registry, market.facts
    own, others = len(registry.agent(agent).arms), registry.arm_count
    compared = f"that {market.mechanism.name!r} compares in every decision"
    if "arms of an agent" in facts.compares:
        _check_quota(own, MOST_COMPARED, f"arms of an agent {compared}")
    most, what = (MOST_COMPARED, compared) if "arms" in facts.compares else (MOST_REGISTERED, "in a market")
    _check_quota(others, most, f"arms {what}")
    if not facts.slots:
        _check_quota(others * max(1, len(market.spec.segments)), MOST_DECLARED, "arms in all segments together")
    _check_quota(own, max(1, most // market.spec.max_agents), f"arms of each of {market.spec.max_agents} agents")


def _check_quota(count: int, most: int, what: str) -> None:
    if count >= most:
        raise Refused(409, "quota", f"expected at most {most} {what}, got one more; leave some out")


def check_room_for_agent(market: LiveMarket) -> None:
    """Refuse an agent if decisions would take too long with it."""
    if "agents" in market.facts.compares:
        what = f"agents that {market.mechanism.name!r} compares in every decision"
        _check_quota(len(market.registry.agents), MOST_COMPARED, what)
