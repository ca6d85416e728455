"""What is shown of a market."""

from __future__ import annotations

import msgspec

from cloneproof.mechanisms.online.level import TICK_BITS
from cloneproof.serve.api.messages import AgentView, ArmView, MarketView, Progress, Seasons, SeasonView
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.registry import AgentRecord


def market(one: MarketEngine) -> MarketView:
    """What everybody may see: the terms without the seed, which would tell the dice."""
    terms = msgspec.structs.replace(one.spec, seed=None)
    return MarketView(one.spec.market, one.season, one.state, terms, str(one.mechanism))


def agent(record: AgentRecord) -> AgentView:
    """An agent with its arms."""
    arms = [
        ArmView(arm.arm, arm.season, arm.decisions, arm.rewards, _mean(arm.total, arm.rewards)) for arm in record.arms
    ]
    return AgentView(record.agent, record.season, record.balance, arms)


def _mean(total: int, rewards: int) -> float | None:
    return total / (rewards << TICK_BITS) if rewards else None


def seasons(one: MarketEngine) -> Seasons:
    """All seasons, the present one last."""
    found = []
    first = 1
    for number, last in enumerate(one.ends, 1):
        found.append(SeasonView(number, "settled", first, last))
        first = last + 1
    if one.season > len(one.ends):
        found.append(SeasonView(one.season, one.state, first, one.decisions))
    return Seasons(found)


def progress(one: MarketEngine) -> Progress:
    """What platform and auditors may see."""
    live = one.session
    return Progress(
        one.spec.market,
        one.season,
        one.state,
        one.spec.horizon,
        0 if live is None else live.round,
        0 if live is None else len(live.pending),
        one.decisions,
        one.chain.n,
        one.chain.hash.hex(),
        [agent(record) for record in one.registry.agents.values()],
    )
