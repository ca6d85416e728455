"""A recommendation as terms of a market: what `cloneproof serve` takes when a market is created."""

from __future__ import annotations

from typing import Any

import tomli_w

from cloneproof.advice.recommendation import AssessedMechanism
from cloneproof.errors import MechanismError
from cloneproof.market.market import Market

QUOTA = 100  # registration quota of an agent, where the mechanism has no number of its own


def market_terms(market: Market, chosen: AssessedMechanism, name: str = "market") -> dict[str, Any]:
    """The fields of `serve.ledger.terms.MarketSpec`: the mechanism with every number that it needs."""
    parameters = {key: value for key, value in chosen.parameters.items() if not isinstance(value, bool)}
    if any(value is not True for key, value in chosen.parameters.items() if key not in parameters):
        raise MechanismError("expected parameters that terms can say, got one that is off; leave it at its default")
    if any(not isinstance(value, int | float | str) for value in parameters.values()):
        raise MechanismError(f"expected parameters that are numbers or words, got {parameters}; terms have no others")
    return {
        "market": name,
        "mechanism": chosen.name,
        "horizon": market.horizon,
        "share": market.share,
        "rewards": market.family.to_dict(),
        "max_agents": len(market.agents),
        "max_arms": int(parameters.get("max_arms", max(QUOTA, market.most_originals))),
        "parameters": parameters,
    }


def terms_toml(market: Market, chosen: AssessedMechanism, name: str = "market") -> str:
    """The same as the text of a TOML file."""
    return tomli_w.dumps(market_terms(market, chosen, name))
