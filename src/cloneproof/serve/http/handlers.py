"""What each route does: a few lines between the messages and the markets."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from cloneproof._version import __version__
from cloneproof.errors import Refused
from cloneproof.mechanisms import Session
from cloneproof.serve.api.messages import (
    AgentRequest,
    Agents,
    AgentView,
    ArmRequest,
    Balances,
    DecisionBatch,
    DecisionReply,
    DecisionRequest,
    Decisions,
    Health,
    ItemError,
    KeyRequest,
    Keys,
    KeyView,
    LedgerLine,
    LedgerPage,
    Markets,
    MarketView,
    NewKey,
    Progress,
    Registered,
    RewardBatch,
    RewardItem,
    RewardReply,
    Rewards,
    SeasonRequest,
    Version,
)
from cloneproof.serve.commit.commands import Do
from cloneproof.serve.commit.decide import Decide
from cloneproof.serve.commit.group_writer import milliseconds
from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.commit.reward import Reward
from cloneproof.serve.commit.settle import Settle
from cloneproof.serve.http import views
from cloneproof.serve.http.keys import Caller, new_key
from cloneproof.serve.http.service import Service
from cloneproof.serve.ledger.agent_lines import agent_key, open_position, own_lines, seal_position, shown_to_agent
from cloneproof.serve.ledger.terms import MOST_ITEMS, MarketSpec
from cloneproof.serve.market.declaration import check_declaration, check_room, check_room_for_agent, declared_market
from cloneproof.serve.market.engine import MarketEngine

_QUICK: Final = 500  # arms and slots of a session that is made in a few milliseconds

HttpAnswer = tuple[int, Any]
Params = dict[str, str]


async def health(service: Service, caller: Caller | None, params: Params, body: None) -> HttpAnswer:
    """Whether the process lives."""
    return 200, Health("alive")


async def ready(service: Service, caller: Caller | None, params: Params, body: None) -> HttpAnswer:
    """Whether calls are taken: storage is there and the markets are read."""
    try:
        service.writer.storage.check()
    except Refused as refusal:
        return 503, Health(refusal.message)
    return (200, Health("ready")) if service.writer.ready else (503, Health("storage is not available"))


async def version(service: Service, caller: Caller | None, params: Params, body: None) -> HttpAnswer:
    """Which cloneproof serves; for whoever deploys it, without a key."""
    return 200, Version(__version__, 1)


async def create_market(service: Service, caller: Caller, params: Params, body: MarketSpec) -> HttpAnswer:
    """Declare a market: the mechanism and its terms are public and fixed from then on."""
    check_declaration(body)  # without waiting for the thread
    declared = await service.writer.aside(lambda: declared_market(body))

    def work(markets: ServedMarkets, now: int) -> tuple[MarketView, bool]:
        market, fresh = markets.create(body, now, declared)
        return views.market(market), fresh

    view, fresh = await service.writer.submit(Do(body.market, work))
    return 201 if fresh else 200, view


async def list_markets(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """The names of all markets."""
    return 200, await service.writer.submit(Do("", lambda markets, now: Markets(sorted(markets.by_name))))


async def show_market(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """The terms of a market and where it stands."""
    return 200, await service.writer.submit(
        Do(params["market"], lambda markets, now: views.market(markets.market(params["market"])))
    )


async def show_progress(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """How far the season is, with every agent's and arm's statistics."""
    view: Progress = await service.writer.submit(
        Do(params["market"], lambda markets, now: views.progress(markets.market(params["market"])))
    )
    return 200, view


async def show_history(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """How the season went: some points of it, for a figure."""
    return 200, await service.writer.submit(
        Do(params["market"], lambda markets, now: views.history(markets.market(params["market"])))
    )


async def register_agent(service: Service, caller: Caller, params: Params, body: AgentRequest) -> HttpAnswer:
    """Register an agent: for this season while it is open, else for the next."""
    if caller.role == "agent" and caller.agent != body.agent:
        raise Refused(403, "forbidden", "an agent's key registers that agent alone")

    def work(markets: ServedMarkets, now: int) -> Registered:
        market = markets.market(params["market"])
        if body.agent not in market.registry:
            check_room_for_agent(market)
        entry = market.register_agent(body.agent, now)
        return Registered(body.agent, None, market.registry.agent(body.agent).season, entry is None)

    reply = await service.writer.submit(Do(params["market"], work))
    return 200 if reply.duplicate else 201, reply


async def register_arm(service: Service, caller: Caller, params: Params, body: ArmRequest) -> HttpAnswer:
    """Register an arm of an agent: for this season while it is open, else for the next."""
    agent = params["agent"]

    def work(markets: ServedMarkets, now: int) -> Registered:
        market = markets.market(params["market"])
        if market.registry.check_room_for_arm(agent, body.arm):
            check_room(market, agent)
        entry = market.register_arm(agent, body.arm, now)
        season = next(arm.season for arm in reversed(market.registry.agent(agent).arms) if arm.arm == body.arm)
        return Registered(agent, body.arm, season, entry is None)

    reply = await service.writer.submit(Do(params["market"], work))
    return 200 if reply.duplicate else 201, reply


async def list_agents(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """All agents with their arms, statistics and balances."""

    def work(markets: ServedMarkets, now: int) -> Agents:
        registry = markets.market(params["market"]).registry
        return Agents([views.agent(record) for record in registry.agents.values()])

    return 200, await service.writer.submit(Do(params["market"], work))


async def show_agent(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """One agent with its arms, statistics and balance."""

    def work(markets: ServedMarkets, now: int) -> AgentView:
        return views.agent(markets.market(params["market"]).registry.agent(params["agent"]))

    return 200, await service.writer.submit(Do(params["market"], work))


async def start(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """Close registration; the mechanism runs."""

    def plan(markets: ServedMarkets, now: int) -> tuple[MarketEngine, int, dict[str, int]] | None:
        market = markets.market(params["market"])
        large = market.registry.arm_count + len(market.registry.agents) * market.mechanism.arm.draws > _QUICK
        return (
            None
            if market.state != "open" or not large
            else (market, market.season, market.registry.participants(market.season))
        )

    prepared: tuple[int, dict[str, int], Session] | None = None
    planned = await service.writer.submit(Do(params["market"], plan))
    if planned is not None:
        market, season, registered = planned
        prepared = season, registered, await service.writer.aside(lambda: market.open_session(registered))

    def work(markets: ServedMarkets, now: int) -> MarketView:
        market = markets.market(params["market"])
        market.start(now, prepared)
        return views.market(market)

    return 200, await service.writer.submit(Do(params["market"], work))


async def settle(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """End the season: what still waits gets the default reward, and balances are final."""
    return 200, await service.writer.submit(Settle(params["market"], views.market))


async def open_season(service: Service, caller: Caller, params: Params, body: SeasonRequest) -> HttpAnswer:
    """Open the next season for registration."""

    def work(markets: ServedMarkets, now: int) -> tuple[MarketView, bool]:
        market = markets.market(params["market"])
        entry = market.open_season(body.season, now)
        return views.market(market), entry is not None

    view, fresh = await service.writer.submit(Do(params["market"], work))
    return 201 if fresh else 200, view


async def list_seasons(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """All seasons of a market, with the decisions that belong to each."""
    return 200, await service.writer.submit(
        Do(params["market"], lambda markets, now: views.seasons(markets.market(params["market"])))
    )


def _single(reply: DecisionReply | RewardReply | ItemError) -> HttpAnswer:
    return reply.status, reply


async def decide(service: Service, caller: Caller, params: Params, body: DecisionRequest) -> HttpAnswer:
    """Whom to serve now; the same `request_id` again gets the same decision."""
    return _single((await service.writer.submit(Decide(params["market"], (body.request_id,))))[0])


async def decide_batch(service: Service, caller: Caller, params: Params, body: DecisionBatch) -> HttpAnswer:
    """Up to 1,000 decisions, a result for each."""
    requests = [item.request_id for item in body.items]
    return 200, Decisions(await service.writer.submit(Decide(params["market"], requests)))


async def reward(service: Service, caller: Caller, params: Params, body: RewardItem) -> HttpAnswer:
    """Enter a reward; durable before the reply, once and for all."""
    return _single((await service.writer.submit(Reward(params["market"], (body,))))[0])


async def reward_batch(service: Service, caller: Caller, params: Params, body: RewardBatch) -> HttpAnswer:
    """Up to 1,000 rewards, a result for each."""
    return 200, Rewards(await service.writer.submit(Reward(params["market"], body.items)))


async def show_ledger(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """Lines of the ledger after a number; an agent gets those that are about it, without what counts others' lines."""
    limit = max(1, _number(params, "limit", 100, MOST_ITEMS))
    if caller.agent is not None:
        return 200, await _agent_page(service, caller.agent, params, limit)
    after = _number(params, "after", 0, 1 << 40)
    number = await service.writer.submit(Do(params["market"], lambda markets, now: markets.number(params["market"])))
    lines = await service.writer.read(lambda: service.writer.storage.lines(number, after, limit))
    return 200, LedgerPage(
        [LedgerLine(line.hash.hex(), msgspec.Raw(line.line)) for line in lines], lines[-1].n if lines else None
    )


async def _agent_page(service: Service, agent: str, params: Params, limit: int) -> LedgerPage:
    """At most `limit` lines of an agent among the next thousand of the ledger; `next` tells nothing of the others."""

    def place(markets: ServedMarkets, now: int) -> tuple[int, bytes]:
        market = markets.market(params["market"])
        return markets.number(params["market"]), agent_key(market.dice.secret, market.spec.seed, agent)

    number, key = await service.writer.submit(Do(params["market"], place))
    after = open_position(key, params.get("after", "0"))

    def read() -> LedgerPage:
        lines = service.writer.storage.lines(number, after, MOST_ITEMS)
        own = own_lines(lines, agent, limit)
        last = lines[-1].n if len(lines) == MOST_ITEMS and len(own) < limit else own[-1][0] if own else None
        shown = [LedgerLine(None, shown_to_agent(line, key)) for _, line in own]
        return LedgerPage(shown, None if last is None else seal_position(key, last))

    page: LedgerPage = await service.writer.read(read)
    return page


async def show_balances(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """Every agent's balance in micro-units."""

    def work(markets: ServedMarkets, now: int) -> Balances:
        agents = markets.market(params["market"]).registry.agents
        return Balances({name: record.balance for name, record in agents.items()})

    return 200, await service.writer.submit(Do(params["market"], work))


async def create_key(service: Service, caller: Caller, params: Params, body: KeyRequest) -> HttpAnswer:
    """Make an API key; it is shown this once."""
    key, record = new_key(body.role, body.agent, milliseconds())
    await service.writer.in_writing_thread(lambda: service.writer.storage.put_key(record))
    service.keys.records[record.id] = record
    return 201, NewKey(key, record.id, record.role, record.agent)


async def list_keys(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """All keys, without their secrets."""
    return 200, Keys([_key(record) for record in service.keys.records.values()])


async def revoke_key(service: Service, caller: Caller, params: Params, body: None) -> HttpAnswer:
    """Make a key useless."""
    record = service.keys.records.get(params["key"])
    if record is None:
        raise Refused(404, "unknown_key", "expected the id of a key; list the keys first")
    revoked = msgspec.structs.replace(record, revoked=True)
    await service.writer.in_writing_thread(lambda: service.writer.storage.put_key(revoked))
    service.keys.records[record.id] = revoked
    return 200, _key(revoked)


def _key(record: Any) -> KeyView:  # noqa: ANN401
    return KeyView(record.id, record.role, record.agent, record.created, record.revoked)


def _number(params: Params, name: str, default: int, most: int) -> int:
    text = params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) > most:
        raise Refused(422, "invalid", f"expected {name} as a whole number from 0 to {most}, got {text[:20]!r}")
    return int(text)
