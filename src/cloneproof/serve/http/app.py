"""The ASGI application: who calls, may they, what do they say, what is the answer.

Bare ASGI and msgspec, because a decision takes microseconds and a framework would take most of the time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from cloneproof.errors import Refused
from cloneproof.serve.api.messages import ItemError
from cloneproof.serve.http.call_log import log_call
from cloneproof.serve.http.keys import Caller
from cloneproof.serve.http.openapi import document
from cloneproof.serve.http.page_files import Header, is_page, page_file
from cloneproof.serve.http.request_limits import MOST_BYTES
from cloneproof.serve.http.routes import READERS, ROUTES, Resolved, Route, Router
from cloneproof.serve.http.service import Service

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_JSON: Final = (b"content-type", b"application/json")
_TEXT: Final = (b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
_encode = msgspec.json.Encoder().encode
log = logging.getLogger("cloneproof.serve")


class App:
    """One service over HTTP. `make_service` is called in the running event loop, when the server starts."""

    def __init__(self, make_service: Callable[[], Service]) -> None:
        self._make_service = make_service
        self._service: Service | None = None
        self._router = Router()
        self._document = _encode(document(ROUTES))

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
        """Finish what was asked, and close the storage."""
        if self._service is not None:
            await self._service.writer.stop()

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, service = time.perf_counter(), self._service
        assert service is not None
        method, path = scope["method"], scope["path"]
        resolved = self._router.find(method, path)
        name = "other"
        kind: tuple[Header, ...] = (_JSON,)
        try:
            if resolved is not None:
                name = resolved[0].route.name
                status, reply = await self._answer(service, *resolved, scope, receive)
                text = _encode(reply)
            else:
                status, text, kind = await self._answer_fixed(service, method, path, scope)
        except Refused as refusal:
            status, scope["refusal"] = refusal.status, refusal.code
            text = _encode(ItemError(status, refusal.code, refusal.message))
        except Exception:
            log.exception("a call to %s failed", name)
            status = 500
            text = _encode(ItemError(500, "internal", "this is a fault of the service; see its log"))
        seconds = time.perf_counter() - begun
        service.metrics.count(name, status, seconds)
        log_call(service, scope, name, status, seconds)
        headers = [*kind, (b"content-length", b"%d" % len(text))]
        if status in (429, 503):
            headers.append((b"retry-after", b"1"))
        elif status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        elif status == 405:
            headers.append((b"allow", ", ".join(self._router.methods(path)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text})

    async def _answer(
        self, service: Service, resolved: Resolved, params: dict[str, str], scope: Scope, receive: Receive
    ) -> tuple[int, Any]:
        route, body, caller = resolved.route, None, None
        scope["market"] = params.get("market")
        if route.roles:
            caller = scope["caller"] = await service.caller(_header(scope, b"authorization"))
            _check_role(caller, route, params)
            if caller.role == "agent":
                service.agent_limit.check(caller.id)
        text = await _body(receive)
        if caller is not None:  # again: the body may have been long on the way, and the key revoked meanwhile
            await service.check_still_valid(caller)
        if resolved.decode is not None:
            try:
                body = resolved.decode(text)
            except msgspec.ValidationError as problem:
                raise Refused(422, "invalid", str(problem)) from None
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
                raise Refused(400, "malformed", f"expected JSON, got something else ({problem})") from None
        if route.query and scope["query_string"]:
            params |= _query(scope["query_string"], route.query)
        return await route.handler(service, caller, params, body)

    async def _answer_fixed(
        self, service: Service, method: str, path: str, scope: Scope
    ) -> tuple[int, bytes, tuple[Header, ...]]:
        """The page, the document, the metrics, or nothing of the kind."""
        if is_page(path) and method == "GET":
            return 200, *page_file(path)
        if path == "/v1/openapi.json" and method == "GET":
            return 200, self._document, (_JSON,)
        if path == "/metrics" and method == "GET":
            caller = await service.caller(_header(scope, b"authorization"))
            if caller.role not in READERS:
                raise Refused(403, "forbidden", "this key may not read the metrics")
            return 200, service.metrics.text(service.writer).encode(), (_TEXT,)
        if is_page(path) or path in ("/v1/openapi.json", "/metrics") or self._router.methods(path):
            raise Refused(405, "method_not_allowed", f"{method} is no method of this path")
        raise Refused(404, "no_such_path", "no such path; /v1/openapi.json lists all of them")


def _check_role(caller: Caller, route: Route, params: dict[str, str]) -> None:
    """Roles; and an agent's key opens only what is that agent's own."""
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
    if message["type"] == "http.disconnect":  # what came so far may look whole, and is not what was meant
        raise Refused(400, "cut_short", "the connection ended before the request did; send it again")
    if len(text) > MOST_BYTES:
        raise Refused(413, "too_large", f"expected a request of at most {MOST_BYTES} bytes; send fewer items at a time")
    return text


def _query(text: bytes, known: tuple[str, ...]) -> dict[str, str]:
    query = dict(parse_qsl(text.decode("latin-1"), keep_blank_values=True))
    for name in query:
        if name not in known:
            raise Refused(422, "invalid", f"expected a query of {', '.join(known)}, got {name[:20]!r}")
    return query
