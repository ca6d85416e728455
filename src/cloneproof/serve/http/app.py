"""ASGI application: the table of routes, the OpenAPI document made from it, the page, and how a call is answered.

It uses bare ASGI and msgspec. A whole Starlette application added 61 microseconds of processor time to a decision of
142, and Litestar 106 (aarch64, in process): both less than .8 of the decisions a second, and no fewer lines here.
"""

from __future__ import annotations

import inspect
import logging
import re
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.serve import messages as m
from cloneproof.serve.http import handlers as h
from cloneproof.serve.http.monitoring import log_call
from cloneproof.serve.http.service import MOST_BYTES, Service
from cloneproof.serve.market.terms import MarketSpec, Role, invalid, with_fields
from cloneproof.serve.storage.storage import KeyRecord, Storage

Header = tuple[bytes, bytes]
Handler = Callable[..., Awaitable[tuple[int, Any]]]
Decode = Callable[[bytes], Any] | None
Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_PAGE: Final = files("cloneproof.serve.http") / "page"
_REPORT_STYLE: Final = files("cloneproof.report") / "templates" / "page.css"
_TYPES: Final = {"html": b"text/html; charset=utf-8", "css": b"text/css; charset=utf-8", "js": b"text/javascript"}
_FILES: Final = {"/": "index.html"} | {f"/{name}": name for name in ("page.css", "page.js", "draw.js", "records.js")}
SAFE: Final[tuple[Header, ...]] = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
        b"form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-cache"),
)
_JSON: Final = (b"content-type", b"application/json")
_TEXT: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
PLATFORM: Final = frozenset[Role]({"platform"})
READERS: Final = frozenset[Role]({"platform", "auditor"})
OWNERS: Final = frozenset[Role]({"platform", "agent"})
ALL: Final = frozenset[Role]({"platform", "agent", "auditor"})
NOBODY: Final = frozenset[Role]()
_REFUSALS: Final = {
    400: "not JSON",
    401: "no valid key",
    403: "not for this key",
    404: "not found",
    409: "not now, or in conflict with what was recorded",
    413: "too large",
    422: "not a valid request",
    429: "too many requests",
    503: "try again",
}
_QUERY: Final = {
    "after": (0, 1 << 40, "the number of the last line already seen"),
    "limit": (1, 1000, "how many lines"),
}
MARKET: Final = "/v1/markets/{market}"


class Route(NamedTuple):
    """A method and a path, the roles that may call it (none: no key is needed), its body and its reply."""

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


_encode = msgspec.json.Encoder().encode
log = logging.getLogger("cloneproof.serve")

ROUTES: Final = (
    Route("GET", "/health", h.health, NOBODY, None, m.Health),
    Route("GET", "/ready", h.ready, NOBODY, None, m.Health, (200, 503)),
    Route("GET", "/version", h.version, NOBODY, None, m.Version),
    Route("POST", "/v1/markets", h.create_market, PLATFORM, MarketSpec, m.MarketView, (200, 201)),
    Route("GET", "/v1/markets", h.list_markets, ALL, None, m.Markets),
    Route("GET", MARKET, h.show_market, ALL, None, m.MarketView),
    Route("GET", f"{MARKET}/progress", h.show_progress, READERS, None, m.Progress),
    Route("POST", f"{MARKET}/agents", h.register_agent, PLATFORM, m.AgentRequest, m.Registered, (200, 201)),
    Route("GET", f"{MARKET}/agents/{{agent}}", h.show_agent, ALL, None, m.AgentView),
    Route("POST", f"{MARKET}/agents/{{agent}}/arms", h.register_arm, OWNERS, m.ArmRequest, m.Registered, (200, 201)),
    Route(
        "DELETE",
        f"{MARKET}/agents/{{agent}}/arms/{{arm}}",
        h.withdraw_arm,
        OWNERS,
        m.WithdrawalRequest,
        m.WithdrawalReply,
    ),
    Route("POST", f"{MARKET}/agents/{{agent}}/pause", h.pause, PLATFORM, m.PauseRequest, m.AgentView),
    Route("POST", f"{MARKET}/agents/{{agent}}/join", h.join, PLATFORM, m.JoinRequest, m.Registered, (200, 201)),
    Route("POST", f"{MARKET}/start", h.start, PLATFORM, m.StartRequest, m.MarketView),
    Route("POST", f"{MARKET}/settle", h.settle, PLATFORM, m.SettleRequest, m.MarketView),
    Route("POST", f"{MARKET}/seasons", h.open_season, PLATFORM, m.SeasonRequest, m.MarketView, (200, 201)),
    Route("GET", f"{MARKET}/seasons", h.list_seasons, READERS, None, m.Seasons),
    Route("POST", f"{MARKET}/decisions", h.decide, PLATFORM, m.DecisionRequest, m.DecisionReply),
    Route("POST", f"{MARKET}/decisions/batch", h.decide_batch, PLATFORM, m.DecisionBatch, m.Decisions),
    Route("POST", f"{MARKET}/slates", h.decide_slate, PLATFORM, m.DecisionRequest, m.SlateReply),
    Route("POST", f"{MARKET}/slates/batch", h.slate_batch, PLATFORM, m.SlateBatch, m.Slates),
    Route("POST", f"{MARKET}/rewards", h.reward, PLATFORM, m.RewardItem, m.RewardReply),
    Route("POST", f"{MARKET}/rewards/batch", h.reward_batch, PLATFORM, m.RewardBatch, m.Rewards),
    Route("GET", f"{MARKET}/ledger", h.show_ledger, ALL, None, m.LedgerPage, query=("after", "limit")),
    Route("GET", f"{MARKET}/balances", h.show_balances, READERS, None, m.Balances),
    Route("POST", "/v1/keys", h.create_key, PLATFORM, m.KeyRequest, m.NewKey, (201,)),
    Route("GET", "/v1/keys", h.list_keys, PLATFORM, None, m.Keys),
    Route("DELETE", "/v1/keys/{key}", h.revoke_key, PLATFORM, None, m.KeyView),
)
_METHODS: Final = sorted({route.method for route in ROUTES})
_COMPILED: Final = defaultdict[tuple[str, int], list[tuple[re.Pattern[str], Route, Decode]]](list)
for _route in ROUTES:
    _COMPILED[_route.method, _route.path.count("/")].append(
        (
            re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]*)", _route.path)),
            _route,
            None if _route.body is None else msgspec.json.Decoder(_route.body).decode,
        )
    )


@cache
def page_file(path: str) -> tuple[bytes, tuple[Header, ...]]:
    """Return a file of the page and its headers; its style extends that of audit reports."""
    name = _FILES[path]
    text = (_PAGE / name).read_bytes()
    if name == "page.css":
        text = _REPORT_STYLE.read_bytes() + b"\n" + text
    return text, ((b"content-type", _TYPES[name.rpartition(".")[2]]), *SAFE)


def find_route(method: str, path: str) -> tuple[Route, Decode, dict[str, str]] | None:
    """Return the route of a call, the decoder of its body, and the variables of its path."""
    for pattern, route, decode in _COMPILED.get((method, path.count("/")), ()):
        if match := pattern.fullmatch(path):
            return route, decode, match.groupdict()
    return None


def _methods_of(path: str) -> list[str]:
    return [method for method in _METHODS if find_route(method, path) is not None]


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the OpenAPI document, version 3.1."""
    used = [type_ for route in routes for type_ in (route.body, route.reply) if type_ is not None]
    types = list(dict.fromkeys([*used, m.ItemError]))
    shapes, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, shapes, strict=True))
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "cloneproof serve",
            "version": "1",
            "description": "A live market run by a clone-proof mechanism. Money is in whole micro-units.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "cp_ID_SECRET"}},
        },
    }


def _operation(route: Route, schema_of: dict[Any, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": (inspect.getdoc(route.handler) or "").partition("\n")[0],
        "parameters": _parameters(route),
        "responses": {str(status): _content(schema_of[route.reply], "done") for status in route.statuses},
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": schema_of[route.body]}},
        }
    if route.roles:
        operation["security"] = [{"key": []}]
        operation["x-roles"] = sorted(route.roles)
        for status, words in _REFUSALS.items():
            operation["responses"].setdefault(str(status), _content(schema_of[m.ItemError], words))
    return operation


def _content(schema: Any, words: str) -> dict[str, Any]:  # noqa: ANN401
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _parameters(route: Route) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    text = {"type": "string", "minLength": 1}
    found: list[dict[str, Any]] = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
    for name in route.query:
        least, most, words = _QUERY[name]
        number = {"type": "integer", "minimum": least, "maximum": most}
        found.append({"name": name, "in": "query", "description": words, "schema": number})
    return found


@cache
def _document() -> bytes:
    return _encode(document(ROUTES))


class App:
    """One service over HTTP. `make_service` is called in the running event loop, when the server starts."""

    def __init__(self, make_service: Callable[[], Service]) -> None:
        self._make_service = make_service
        self._service: Service | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._http(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            self.open()
        except Exception as problem:
            await send({"type": "lifespan.startup.failed", "message": str(problem)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    def open(self) -> None:
        """Make the service; in a running event loop."""
        self._service = self._make_service()
        self._service.writer.start()

    async def close(self) -> None:
        """Finish queued calls, and close the storage."""
        if self._service is not None:
            await self._service.writer.stop()

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, service = time.perf_counter(), self._service
        assert service is not None
        method, path = scope["method"], scope["path"]
        found = find_route(method, path)
        name = "other"
        kind: tuple[Header, ...] = (_JSON,)
        try:
            if found is not None:
                name = found[0].name
                status, reply = await self._answer(service, *found, scope, receive)
                text = _encode(reply)
            else:
                status, text, kind = await self._answer_fixed(service, method, path, scope)
        except Refused as refusal:
            status, scope["refusal"] = refusal.status, refusal.code
            text = _encode(m.ItemError(status, refusal.code, refusal.message))
        except ServeError as damage:  # of the storage
            log.error("a call to %s failed: %s", name, damage)
            status, scope["refusal"] = 503, "storage"
            text = _encode(m.ItemError(503, "storage", str(damage)))
        except Exception:
            log.exception("a call to %s failed", name)
            status = 500
            text = _encode(m.ItemError(500, "internal", "this is a fault of the service; see its log"))
        seconds = time.perf_counter() - begun
        service.metrics.count(name, status, seconds)
        log_call(service.writer.markets.by_name, scope, name, status, seconds)
        headers = [*kind, (b"content-length", b"%d" % len(text))]
        if status in (429, 503):
            headers.append((b"retry-after", b"1"))
        elif status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        elif status == 405:
            headers.append((b"allow", ", ".join(_methods_of(path)).encode()))
        with suppress(RuntimeError):  # the connection was closed meanwhile
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": text})

    async def _answer(
        self, service: Service, route: Route, decode: Decode, params: dict[str, str], scope: Scope, receive: Receive
    ) -> tuple[int, Any]:
        body, caller = None, None
        scope["market"] = params.get("market")
        if route.roles:
            caller = scope["caller"] = await service.caller(_header(scope, b"authorization"))
            _check_role(caller, route, params)
            if caller.role == "agent":
                service.agent_limit.check(caller.id)
        text = await _body(receive)
        if caller is not None:  # again: the key may have been revoked while the body arrived
            await service.check_still_valid(caller)
        if decode is not None:
            try:
                body = decode(text or b"{}")
            except msgspec.ValidationError as problem:
                raise invalid(with_fields(problem, route.body)) from None
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
                raise Refused(400, "malformed", f"expected JSON, got something else ({problem})") from None
        if route.query and scope["query_string"]:
            params |= _query(scope["query_string"], route.query)
        return await route.handler(service, caller, params, body)

    async def _answer_fixed(
        self, service: Service, method: str, path: str, scope: Scope
    ) -> tuple[int, bytes, tuple[Header, ...]]:
        """Answer with the page, the document or the metrics; else a refusal."""
        if path not in (*_FILES, "/v1/openapi.json", "/metrics") and not _methods_of(path):
            raise Refused(404, "no_such_path", "no such path; /v1/openapi.json lists all of them")
        if method != "GET" or _methods_of(path):
            raise Refused(405, "method_not_allowed", f"{method} is no method of this path")
        if path in _FILES:
            return 200, *page_file(path)
        if path == "/v1/openapi.json":
            return 200, _document(), (_JSON,)
        caller = scope["caller"] = await service.caller(_header(scope, b"authorization"))
        if caller.role not in READERS:
            raise Refused(403, "forbidden", "this key may not read the metrics")
        return 200, await service.metrics.text(), (_TEXT,)


class Starting:
    """What answers while markets are read back: the process lives, and all else is 503 with how far it has got."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = f"the service is starting ({self._storage.progress}); try again"
        status, reply = {
            "/health": (200, m.Health("alive")),
            "/ready": (503, m.Health(message)),
        }.get(scope["path"], (503, m.ItemError(503, "unavailable", message)))
        text = _encode(reply)
        headers = [_JSON, (b"content-length", b"%d" % len(text)), *([(b"retry-after", b"1")] if status == 503 else [])]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})


def _check_role(caller: KeyRecord, route: Route, params: dict[str, str]) -> None:
    """Refuse a role that the route does not allow, and an agent's key for what belongs to another agent."""
    if caller.role not in route.roles:
        raise Refused(403, "forbidden", f"a key of role {caller.role} may not do this")
    if caller.role == "agent" and "agent" in params and params["agent"] != caller.agent:
        raise Refused(403, "forbidden", "an agent's key opens only what is that agent's own")


def _header(scope: Scope, name: bytes) -> bytes | None:
    for key, value in scope["headers"]:
        if key == name:
            return bytes(value)
    return None


async def _body(receive: Receive) -> bytes:
    message = await receive()
    text: bytes = message.get("body", b"")
    while message.get("more_body"):
        if len(text) > MOST_BYTES:
            break
        message = await receive()
        text += message.get("body", b"")
    if message["type"] == "http.disconnect":  # what arrived may look complete without being so
        raise Refused(400, "cut_short", "the connection ended before the request did; send it again")
    if len(text) > MOST_BYTES:
        raise Refused(413, "too_large", f"expected a request of at most {MOST_BYTES} bytes; send fewer items at a time")
    return text


def _query(text: bytes, known: tuple[str, ...]) -> dict[str, str]:
    query = dict(parse_qsl(text.decode("latin-1"), keep_blank_values=True))
    for name in query:
        if name not in known:
            raise invalid(f"expected a query of {', '.join(known)}, got {name[:20]!r}")
    return query
