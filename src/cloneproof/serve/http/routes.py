"""The table of routes: the API is what is listed here, for the dispatcher and for the OpenAPI document alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from cloneproof.serve.api import messages as m
from cloneproof.serve.api.what_if_messages import WhatIf, WhatIfView
from cloneproof.serve.http import handlers as h
from cloneproof.serve.http.what_if import what_if
from cloneproof.serve.ledger.terms import MarketSpec, Role

Handler = Callable[..., Awaitable[tuple[int, Any]]]

PLATFORM: Final = frozenset[Role]({"platform"})
READERS: Final = frozenset[Role]({"platform", "auditor"})
OWNERS: Final = frozenset[Role]({"platform", "agent"})
ALL: Final = frozenset[Role]({"platform", "agent", "auditor"})
NOBODY: Final = frozenset[Role]()


class Route(NamedTuple):
    """A method and a path, who may call it (empty: anybody, without a key), what goes in and what comes out."""

    method: str
    path: str
    handler: Handler
    roles: frozenset[Role]
    body: type | None
    reply: type
    statuses: tuple[int, ...] = (200,)
    query: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A name for metrics and for the document."""
        return self.handler.__name__


MARKET: Final = "/v1/markets/{market}"

ROUTES: Final = (
    Route("GET", "/health", h.health, NOBODY, None, m.Health),
    Route("GET", "/ready", h.ready, NOBODY, None, m.Health, (200, 503)),
    Route("GET", "/version", h.version, NOBODY, None, m.Version),
    Route("POST", "/v1/markets", h.create_market, PLATFORM, MarketSpec, m.MarketView, (200, 201)),
    Route("GET", "/v1/markets", h.list_markets, ALL, None, m.Markets),
    Route("GET", MARKET, h.show_market, ALL, None, m.MarketView),
    Route("GET", f"{MARKET}/progress", h.show_progress, READERS, None, m.Progress),
    Route("GET", f"{MARKET}/history", h.show_history, READERS, None, m.History),
    Route("POST", f"{MARKET}/agents", h.register_agent, OWNERS, m.AgentRequest, m.Registered, (200, 201)),
    Route("GET", f"{MARKET}/agents", h.list_agents, READERS, None, m.Agents),
    Route("GET", f"{MARKET}/agents/{{agent}}", h.show_agent, ALL, None, m.AgentView),
    Route("POST", f"{MARKET}/agents/{{agent}}/arms", h.register_arm, OWNERS, m.ArmRequest, m.Registered, (200, 201)),
    Route("POST", f"{MARKET}/start", h.start, PLATFORM, None, m.MarketView),
    Route("POST", f"{MARKET}/settle", h.settle, PLATFORM, None, m.MarketView),
    Route("POST", f"{MARKET}/seasons", h.open_season, PLATFORM, m.SeasonRequest, m.MarketView, (200, 201)),
    Route("GET", f"{MARKET}/seasons", h.list_seasons, READERS, None, m.Seasons),
    Route("POST", f"{MARKET}/decisions", h.decide, PLATFORM, m.DecisionRequest, m.DecisionReply),
    Route("POST", f"{MARKET}/decisions/batch", h.decide_batch, PLATFORM, m.DecisionBatch, m.Decisions),
    Route("POST", f"{MARKET}/rewards", h.reward, PLATFORM, m.RewardItem, m.RewardReply),
    Route("POST", f"{MARKET}/rewards/batch", h.reward_batch, PLATFORM, m.RewardBatch, m.Rewards),
    Route("GET", f"{MARKET}/ledger", h.show_ledger, ALL, None, m.LedgerPage, query=("after", "limit")),
    Route("GET", f"{MARKET}/balances", h.show_balances, READERS, None, m.Balances),
    Route("POST", f"{MARKET}/what-if", what_if, READERS, WhatIf, WhatIfView),
    Route("POST", "/v1/keys", h.create_key, PLATFORM, m.KeyRequest, m.NewKey, (201,)),
    Route("GET", "/v1/keys", h.list_keys, PLATFORM, None, m.Keys),
    Route("DELETE", "/v1/keys/{key}", h.revoke_key, PLATFORM, None, m.KeyView),
)


class Resolved(NamedTuple):
    """A route ready to be called."""

    route: Route
    decode: Callable[[bytes], Any] | None
    names: tuple[tuple[int, str], ...]  # where its path has variables


class Router:
    """Finds the route of a call by the parts of its path."""

    def __init__(self, routes: tuple[Route, ...] = ROUTES) -> None:
        self._fixed: dict[tuple[str, int], list[tuple[itemgetter[Any], tuple[str, ...], Resolved]]] = {}
        for route in routes:
            parts = route.path.split("/")
            places = [at for at, part in enumerate(parts) if not part.startswith("{")]  # two at least: "" is the first
            fixed = itemgetter(*places)
            names = tuple((at, part[1:-1]) for at, part in enumerate(parts) if part.startswith("{"))
            decode: Callable[[bytes], Any] | None = None
            if route.body is not None:
                decode = msgspec.json.Decoder(route.body).decode
            self._fixed.setdefault((route.method, len(parts)), []).append(
                (fixed, fixed(parts), Resolved(route, decode, names))
            )
        self._methods = sorted({route.method for route in routes})

    def find(self, method: str, path: str) -> tuple[Resolved, dict[str, str]] | None:
        """The route of a call and the variables of its path."""
        parts = path.split("/")
        for fixed, wanted, resolved in self._fixed.get((method, len(parts)), ()):
            if fixed(parts) == wanted:
                return resolved, {name: parts[at] for at, name in resolved.names}
        return None

    def methods(self, path: str) -> list[str]:
        """The methods that a path has."""
        return [method for method in self._methods if self.find(method, path) is not None]
