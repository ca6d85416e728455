"""A thin typed client. `Client` blocks, `AsyncClient` is awaited; both send the calls of `cloneproof.serve.api.calls`.

    from cloneproof.serve.api import calls
    from cloneproof.serve.api.client import Client

    with Client("http://127.0.0.1:8642", key) as api:
        served = api.send(calls.decide("feed", "page-view-1"))
        api.send(calls.reward("feed", "click-1", served.decision, 1.0))

What failed and may be sent again (no connection, 429, 503) is sent again: every call is safe to repeat, as decisions
and rewards carry ids and all else says what is to be, not what is to change. (A repeated `create_key` makes one more.)
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final, Self, TypeVar

import httpx
import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.api.calls import Call
from cloneproof.serve.api.messages import ItemError

T = TypeVar("T")
_RETRYABLE: Final = frozenset({429, 503})
_encode = msgspec.json.Encoder().encode


def _pauses(patience: float) -> Iterator[float]:
    """Growing pauses between attempts, until they add up to the patience."""
    pause, spent = 0.05, 0.0
    while spent < patience:
        yield pause
        spent += pause
        pause = min(1.0, 2 * pause)


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def _content(call: Call[T]) -> bytes | None:
    return None if call.body is None else _encode(call.body)


def _reply(call: Call[T], response: httpx.Response) -> T:
    """The typed reply, or the refusal."""
    if response.is_success:
        return msgspec.json.decode(response.content, type=call.reply)
    try:
        refusal = msgspec.json.decode(response.content, type=ItemError)
    except msgspec.MsgspecError:
        refusal = ItemError(response.status_code, "unknown", f"the service answered {response.status_code}")
    raise Refused(refusal.status, refusal.error, refusal.message)


def _unreachable(problem: Exception | None) -> ServeError:
    return ServeError(f"the service cannot be reached ({problem!r}); is it running, and is the address right?")


class Client:
    """A blocking client; `patience` is how long it keeps trying, in seconds."""

    def __init__(self, address: str, key: str, patience: float = 10.0, timeout: float = 30.0) -> None:
        self._http = httpx.Client(base_url=address, headers=_headers(key), timeout=timeout)
        self._patience = patience

    def send(self, call: Call[T]) -> T:
        """Send a call until it is answered."""
        problem: Exception | None = None
        for pause in _pauses(self._patience):
            try:
                response = self._http.request(call.method, call.path, content=_content(call))
                if response.status_code not in _RETRYABLE:
                    return _reply(call, response)
                problem = None
            except httpx.TransportError as failure:
                problem = failure
            time.sleep(pause)
        if problem is None:
            return _reply(call, self._http.request(call.method, call.path, content=_content(call)))
        raise _unreachable(problem)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient:
    """The same, to be awaited."""

    def __init__(self, address: str, key: str, patience: float = 10.0, timeout: float = 30.0) -> None:
        self._http = httpx.AsyncClient(base_url=address, headers=_headers(key), timeout=timeout)
        self._patience = patience

    async def send(self, call: Call[T]) -> T:
        """Send a call until it is answered."""
        problem: Exception | None = None
        for pause in _pauses(self._patience):
            try:
                response = await self._http.request(call.method, call.path, content=_content(call))
                if response.status_code not in _RETRYABLE:
                    return _reply(call, response)
                problem = None
            except httpx.TransportError as failure:
                problem = failure
            await asyncio.sleep(pause)
        if problem is None:
            return _reply(call, await self._http.request(call.method, call.path, content=_content(call)))
        raise _unreachable(problem)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()
