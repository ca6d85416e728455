"""What is shown of a market."""

from __future__ import annotations

import msgspec

from cloneproof.mechanisms.online.level import TICK_BITS
from cloneproof.serve.api.messages import (
    AgentView,
    ArmView,
    DiceView,
    History,
    HistoryPoint,
    MarketView,
    Progress,
    Seasons,
    SeasonView,
)
from cloneproof.serve.market.engine import MarketEngine
from cloneproof.serve.market.registry import AgentRecord


def market(engine: MarketEngine) -> MarketView:
    """What everybody may see: the terms without the seed, which would tell the dice."""
    terms = msgspec.structs.replace(engine.spec, seed=None)
    dice = [] if engine.spec.seed is not None else [_dice(engine, season) for season in range(1, engine.season + 1)]
    return MarketView(engine.spec.market, engine.season, engine.state, terms, str(engine.mechanism), dice)


def _dice(engine: MarketEngine, season: int) -> DiceView:
    known = engine.dice.season(season)
    seed, salt = known if known is not None and season <= len(engine.ends) else (None, None)
    return DiceView(season, engine.dice.commitment(season), seed, salt)


def agent(record: AgentRecord) -> AgentView:
    """An agent with its arms."""
    arms = [
        ArmView(arm.arm, arm.season, arm.decisions, arm.rewards, _mean(arm.total, arm.rewards)) for arm in record.arms
    ]
    return AgentView(record.agent, record.season, record.balance, arms)


def _mean(total: int, rewards: int) -> float | None:
    return total / (rewards << TICK_BITS) if rewards else None


def seasons(engine: MarketEngine) -> Seasons:
    """All seasons, the present one last."""
    views = []
    first = 1
    for number, last in enumerate(engine.ends, 1):
        views.append(SeasonView(number, "settled", first, last))
        first = last + 1
    if engine.season > len(engine.ends):
        views.append(SeasonView(engine.season, engine.state, first, engine.decisions))
    return Seasons(views)


def history(engine: MarketEngine) -> History:
    """How the season went; an agent that came later has no decisions before."""
    return History(
        engine.season,
        list(engine.registry.agents),
        [HistoryPoint(at, round_, int(paid), decisions) for at, round_, paid, decisions in engine.history.points],
    )


def progress(engine: MarketEngine) -> Progress:
    """What platform and auditors may see."""
    live = engine.session
    return Progress(
        engine.spec.market,
        engine.season,
        engine.state,
        engine.spec.horizon,
        0 if live is None else live.round,
        0 if live is None else len(live.pending),
        engine.decisions,
        engine.chain.n,
        engine.chain.hash.hex(),
        [agent(record) for record in engine.registry.agents.values()],
        engine.phase if engine.state == "running" else engine.state,
        engine.late,
        engine.defaulted,
    )
