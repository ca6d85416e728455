"""A thin typed client. `Client` blocks, `AsyncClient` is awaited; both send the calls of `cloneproof.serve.calls`.

    from cloneproof.serve import calls
    from cloneproof.serve.client import Client

    with Client("http://127.0.0.1:8642", key) as api:
        served = api.send(calls.decide("feed", "page-view-1"))
        api.send(calls.reward("feed", "click-1", served, 1.0))

Calls that failed without a connection, or with 429 or 503, are sent again. This is safe: decisions and rewards carry
ids, and all other calls state a result instead of a change. (A repeated `create_key` makes another key.)
"""

from __future__ import annotations

import asyncio
import time
from typing import Final, Generic, Self, TypeVar

import httpx
import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.calls import Call
from cloneproof.serve.messages import ItemError

T = TypeVar("T")
_RETRYABLE: Final = frozenset({429, 503})
_encode = msgspec.json.Encoder().encode


Outcome = httpx.Response | httpx.TransportError


class _Attempts(Generic[T]):
    """Attempts of one call, with growing pauses until these add up to the patience."""

    def __init__(self, call: Call[T], patience: float) -> None:
        self.content = None if call.body is None else _encode(call.body)
        self._reply, self._patience, self._pause = call.reply, patience, 0.05

    def pause(self, outcome: Outcome) -> float | None:
        """Return seconds to wait after this outcome before the next attempt; None if it is final."""
        retryable = isinstance(outcome, httpx.TransportError) or outcome.status_code in _RETRYABLE
        if not retryable or self._patience <= 0:
            return None
        pause, self._pause = self._pause, min(1.0, 2 * self._pause)
        self._patience -= pause
        return pause

    def reply(self, outcome: Outcome) -> T:
        """Return the typed reply, or raise the refusal."""
        if isinstance(outcome, httpx.TransportError):
            raise ServeError(f"the service cannot be reached ({outcome!r}); is it running, and is the address right?")
        if outcome.is_success:
            return msgspec.json.decode(outcome.content, type=self._reply)
        try:
            refusal = msgspec.json.decode(outcome.content, type=ItemError)
        except msgspec.MsgspecError:
            refusal = ItemError(outcome.status_code, "unknown", f"the service answered {outcome.status_code}")
        raise Refused(refusal.status, refusal.error, refusal.message)


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


class Client:
    """A blocking client; `patience` is how many seconds it keeps trying."""

    def __init__(self, address: str, key: str, patience: float = 10.0, timeout: float = 30.0) -> None:
        self._http = httpx.Client(base_url=address, headers=_headers(key), timeout=timeout)
        self._patience = patience

    def send(self, call: Call[T]) -> T:
        """Send a call until it is answered."""
        attempts = _Attempts(call, self._patience)
        while True:
            try:
                outcome: Outcome = self._http.request(call.method, call.path, content=attempts.content)
            except httpx.TransportError as failure:
                outcome = failure
            if (pause := attempts.pause(outcome)) is None:
                return attempts.reply(outcome)
            time.sleep(pause)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()


class AsyncClient:
    """`Client` with methods to be awaited."""

    def __init__(self, address: str, key: str, patience: float = 10.0, timeout: float = 30.0) -> None:
        self._http = httpx.AsyncClient(base_url=address, headers=_headers(key), timeout=timeout)
        self._patience = patience

    async def send(self, call: Call[T]) -> T:
        """Send a call until it is answered."""
        attempts = _Attempts(call, self._patience)
        while True:
            try:
                outcome: Outcome = await self._http.request(call.method, call.path, content=attempts.content)
            except httpx.TransportError as failure:
                outcome = failure
            if (pause := attempts.pause(outcome)) is None:
                return attempts.reply(outcome)
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.close()
