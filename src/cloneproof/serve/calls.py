"""Every call of the API as data, typed by its reply; both clients send these."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar
from urllib.parse import quote

import msgspec

from cloneproof.serve import messages as m
from cloneproof.serve.market.terms import MarketSpec, Role, Segments

T = TypeVar("T")


class Call(msgspec.Struct, Generic[T], frozen=True):
    """A method, a path, the type of the reply, and a body."""

    method: str
    path: str
    reply: type[T]
    body: object = None


def _market(market: str, *rest: str) -> str:
    return "/".join(("/v1/markets", *(quote(part, safe="") for part in (market, *rest))))


def create_market(spec: MarketSpec) -> Call[m.MarketView]:
    """Declare a market."""
    return Call("POST", "/v1/markets", m.MarketView, spec)


def markets() -> Call[m.Markets]:
    """Ask for the names of all markets."""
    return Call("GET", "/v1/markets", m.Markets)


def market(name: str) -> Call[m.MarketView]:
    """Ask for the terms and the state of a market."""
    return Call("GET", _market(name), m.MarketView)


def progress(name: str) -> Call[m.Progress]:
    """Ask for the progress of the season, with all statistics."""
    return Call("GET", _market(name, "progress"), m.Progress)


def register_agent(name: str, agent: str) -> Call[m.Registered]:
    """Register an agent."""
    return Call("POST", _market(name, "agents"), m.Registered, m.AgentRequest(agent))


def register_arm(
    name: str, agent: str, arm: str, weight: int | None = None, title: str | None = None
) -> Call[m.Registered]:
    """Register an arm; or declare another weight of one, from the next season's start on."""
    return Call("POST", _market(name, "agents", agent, "arms"), m.Registered, m.ArmRequest(arm, weight, title))


def join(name: str, agent: str, beacon: str | None = None) -> Call[m.Registered]:
    """Let an agent join the season that runs."""
    return Call("POST", _market(name, "agents", agent, "join"), m.Registered, m.JoinRequest(beacon))


def withdraw_arm(name: str, agent: str, arm: str, reason: str | None = None) -> Call[m.WithdrawalReply]:
    """Show an arm no more; with a platform's key for a reason that its agent can read."""
    body = m.WithdrawalRequest(reason)
    return Call("DELETE", _market(name, "agents", agent, "arms", arm), m.WithdrawalReply, body)


def pause(name: str, agent: str, reason: str, arm: str | None = None, resume: bool = False) -> Call[m.AgentView]:
    """Pause an arm, or all arms of an agent, in the season that runs; or resume them."""
    return Call("POST", _market(name, "agents", agent, "pause"), m.AgentView, m.PauseRequest(reason, arm, resume))


def agent(name: str, agent_name: str) -> Call[m.AgentView]:
    """Ask for one agent."""
    return Call("GET", _market(name, "agents", agent_name), m.AgentView)


def start(name: str, beacon: str | None = None) -> Call[m.MarketView]:
    """Close registration and start the mechanism."""
    return Call("POST", _market(name, "start"), m.MarketView, m.StartRequest(beacon))


def settle(name: str, reason: str | None = None) -> Call[m.MarketView]:
    """End the season; before its last round, for a reason that agents can read."""
    return Call("POST", _market(name, "settle"), m.MarketView, m.SettleRequest(reason))


def open_season(name: str, season: int, segments: Segments | None = None) -> Call[m.MarketView]:
    """Open the next season; with all segments from then on, if some are added."""
    return Call("POST", _market(name, "seasons"), m.MarketView, m.SeasonRequest(season, segments))


def seasons(name: str) -> Call[m.Seasons]:
    """Ask for all seasons of a market."""
    return Call("GET", _market(name, "seasons"), m.Seasons)


def decide(name: str, request_id: str, segment: str | None = None) -> Call[m.DecisionReply]:
    """Decide whom to serve, in a segment if the market has some."""
    return Call("POST", _market(name, "decisions"), m.DecisionReply, m.DecisionRequest(request_id, segment))


def decide_batch(name: str, request_ids: Iterable[str], segments: Iterable[str] | None = None) -> Call[m.Decisions]:
    """Ask for up to 1,000 decisions; with the segment of each, if the market has some."""
    items = m.DecisionBatch(_items(request_ids, segments))
    return Call("POST", _market(name, "decisions", "batch"), m.Decisions, items)


def decide_slate(name: str, request_id: str, segment: str | None = None) -> Call[m.SlateReply]:
    """Fill a page of several places; each of its `decisions` takes a reward."""
    return Call("POST", _market(name, "slates"), m.SlateReply, m.DecisionRequest(request_id, segment))


def slate_batch(name: str, request_ids: Iterable[str], segments: Iterable[str] | None = None) -> Call[m.Slates]:
    """Ask for up to 100 pages; with the segment of each, if the market has some."""
    return Call("POST", _market(name, "slates", "batch"), m.Slates, m.SlateBatch(_items(request_ids, segments)))


def _items(request_ids: Iterable[str], segments: Iterable[str] | None) -> list[m.DecisionRequest]:
    ids = list(request_ids)
    named = [None] * len(ids) if segments is None else segments
    return [m.DecisionRequest(*each) for each in zip(ids, named, strict=True)]


def reward(name: str, event_id: str, served: m.DecisionReply, value: float) -> Call[m.RewardReply]:
    """Enter the reward of a decision."""
    item = m.RewardItem(event_id, served.decision, served.request_id, value)
    return Call("POST", _market(name, "rewards"), m.RewardReply, item)


def reward_batch(name: str, items: Iterable[tuple[str, m.DecisionReply, float]]) -> Call[m.Rewards]:
    """Send up to 1,000 rewards, as (event id, decision, value)."""
    rewards = [m.RewardItem(event, served.decision, served.request_id, value) for event, served, value in items]
    return Call("POST", _market(name, "rewards", "batch"), m.Rewards, m.RewardBatch(rewards))


def ledger(name: str, after: int | str = 0, limit: int = 1000) -> Call[m.LedgerPage]:
    """Ask for a page of the ledger."""
    return Call("GET", f"{_market(name, 'ledger')}?after={after}&limit={limit}", m.LedgerPage)


def balances(name: str) -> Call[m.Balances]:
    """Return every balance."""
    return Call("GET", _market(name, "balances"), m.Balances)


def create_key(role: Role, agent_name: str | None = None) -> Call[m.NewKey]:
    """Make an API key."""
    return Call("POST", "/v1/keys", m.NewKey, m.KeyRequest(role, agent_name))


def revoke_key(key_id: str) -> Call[m.KeyView]:
    """Revoke a key."""
    return Call("DELETE", f"/v1/keys/{quote(key_id, safe='')}", m.KeyView)
