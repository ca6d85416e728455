"""Limits of a connection before its key is known: sizes, times, the number of connections.

uvicorn has none of these for the parser used here: `timeout_keep_alive` counts only between requests, and any byte ends
it; `h11_max_incomplete_event_size` belongs to the other parser. docs/serve.md says what a proxy should add.
"""

from __future__ import annotations

import asyncio
import resource
from dataclasses import dataclass, field
from typing import Any, Final

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from cloneproof.serve.http.service import MOST_BYTES
from cloneproof.serve.messages import ItemError

_RESERVED: Final = 64  # descriptors for storage, audits and the like
_HEAD, _BODY, _DONE = range(3)
# What one request may send, so that no caller keeps the service busy:
MOST_URL: Final = 8192  # bytes
MOST_HEADERS: Final = 100  # in number
MOST_HEAD: Final = 32_768  # bytes of headers
LEAST_CHUNK: Final = 256  # bytes on average, after the first few
FEW_CHUNKS: Final = 64  # pieces of any size


def most_connections() -> int:
    """Return as many connections as the process has descriptors for, at most 10,000."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = 10_000 if allowed == resource.RLIM_INFINITY else min(10_000, allowed - _RESERVED)
    return max(1, most)


@dataclass
class ConnectionLimits:
    """Time limits of a connection in seconds, and the number of connections; shared by all connections of a server."""

    head: int = 10  # from the connection, or the first byte of a request, to the end of its headers
    body: int = 30
    unread: int = 30  # while nothing of an answer is read
    most: int = field(default_factory=most_connections)
    now: int = 0  # seconds during which there were connections
    keyless: dict[LimitedProtocol, None] = field(default_factory=dict)  # whose last call had no valid key, oldest first
    open: dict[LimitedProtocol, None] = field(default_factory=dict)
    timer: asyncio.TimerHandle | None = None

    def enter(self, connection: LimitedProtocol) -> None:
        """Add a connection; if there are too many, refuse the oldest of those that have shown no valid key."""
        self.open[connection] = self.keyless[connection] = None
        if self.timer is None:
            self.timer = connection.loop.call_later(1, self.sweep, connection.loop)
        if len(self.open) > self.most:
            oldest = connection
            while self.keyless and (oldest := next(iter(self.keyless))).has_key:
                del self.keyless[oldest]  # its key was found valid after it had been entered here
            oldest.refuse(503, "overloaded", "too many connections; try again a little later")

    def leave(self, connection: LimitedProtocol) -> None:
        """Remove a closed connection."""
        self.open.pop(connection, None)
        self.keyless.pop(connection, None)

    def sweep(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """Check the times of all connections; called every second."""
        self.now += 1
        for connection in list(self.open):
            connection.check_time()
        if loop is not None:
            self.timer = loop.call_later(1, self.sweep, loop) if self.open else None


class LimitedProtocol(HttpToolsProtocol):
    """A connection of uvicorn that is refused or closed beyond the limits.

    It has slots, since with its many attributes instances would not share the keys of their dictionaries and be slow.
    """

    __slots__ = (
        "_answering", "_body_bytes", "_chunks", "_due", "_messages", "_received", "_refusal", "_refused", "_stage",
        "_stuck", "_unread",
    )  # fmt: skip
    limits: ConnectionLimits

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401 (as uvicorn's)
        super().__init__(*args, **options)
        self._stage, self._due = _HEAD, self.limits.now + self.limits.head + 1
        self._messages = self._received = self._body_bytes = self._chunks = 0
        self._refusal: tuple[int, str, str] | None = None
        self._refused = False
        self._answering: RequestResponseCycle | None = None  # the first of the requests that were sent without waiting
        self._unread = self._stuck = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.limits.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.limits.leave(self)
        self.pipeline.clear()  # waiting requests need no answer any more
        self._stop_answering()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused or self.transport.is_closing():
            return
        message = self._messages
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError:
            malformed = (400, "malformed", "expected a request of HTTP/1.1; check the client")
            self.refuse(*(self._refusal or malformed), linger=True)
            return
        except httptools.HttpParserUpgrade:
            pass  # the request is answered as if it had not asked for an upgrade
        if self._messages != message:
            return
        if self._stage == _DONE and self.cycle.response_complete:  # empty lines between requests
            self._stage, self._due = _HEAD, self.limits.now + self.limits.head + 1
        elif self._stage != _DONE:  # all data belongs to one unfinished message
            self._received += len(data)
            if self._received > (2 * MOST_HEAD if self._stage == _HEAD else 2 * MOST_BYTES):
                status = 431 if self._stage == _HEAD else 413
                self.refuse(status, "too_large", "the request is too large; send less", linger=True)

    @property
    def has_key(self) -> bool:
        """Whether the present call, or the last one if none has begun, came with a valid key."""
        return self.scope is not None and "caller" in self.scope

    def on_message_begin(self) -> None:
        if self.has_key:  # half a request after it may take its time
            self.limits.keyless.pop(self, None)
        else:
            self.limits.keyless.setdefault(self)
        super().on_message_begin()
        self._messages += 1
        self._stage, self._due = _HEAD, self.limits.now + self.limits.head + 1
        self._received = self._body_bytes = self._chunks = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > MOST_URL:
            self._stop(414, "too_large", f"expected an address of at most {MOST_URL} bytes; shorten it")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._stage != _HEAD:
            return  # a trailer, which a proxy may not have checked
        if len(self.headers) >= MOST_HEADERS:
            self._stop(431, "too_large", f"expected at most {MOST_HEADERS} headers; send fewer")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if sum([len(value) for _, value in self.headers]) > MOST_HEAD:
            self._stop(431, "too_large", f"expected at most {MOST_HEAD} bytes of headers; send less")
        self._stage, self._due, self._received = _BODY, self.limits.now + self.limits.body + 1, 0
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle

    def on_body(self, body: bytes) -> None:
        self._chunks += 1
        self._body_bytes += len(body)
        if self._chunks > FEW_CHUNKS + self._body_bytes // LEAST_CHUNK:
            self._stop(400, "malformed", f"expected pieces of {LEAST_CHUNK} bytes or more; send larger ones")
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._stage = _DONE
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        super().on_response_complete()

    def _stop_answering(self) -> None:
        """Let the answer under way, if any, end where it is; uvicorn would log an error for it."""
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    def check_time(self) -> None:
        """Close a connection that takes too long to send a request, to read an answer or to close."""
        transport = self.transport
        if transport.is_closing():
            self._stuck += 1
            if self._stuck > self.limits.head:
                transport.abort()
        elif self._refused:
            if self.limits.now >= self._due:
                self._close(1)
        elif self.flow.read_paused:  # its data waits here behind an earlier request
            self._due = self.limits.now + self.limits.body
        elif self._stage != _DONE and self.limits.now >= self._due:
            self.refuse(408, "timeout", "the request did not come in time; send it again")
        elif transport.get_write_buffer_size():
            self._unread += 1
            if self._unread > self.limits.unread:
                transport.abort()
        else:
            self._unread = 0

    def _stop(self, status: int, code: str, message: str) -> None:
        """Refuse while parsing; the error stops the parser."""
        self._refusal = status, code, message
        raise ValueError(message)

    def refuse(self, status: int, code: str, message: str, linger: bool = False) -> None:
        """Send the refusal, if no answer has begun, and close; at once where earlier answers are not read.

        With `linger` the connection closes a second later and reads nothing until then, which slows repeated attempts.
        """
        unread, cycle = self.transport.get_write_buffer_size() > 0, self._answering
        if not linger and (unread or self._refused or self.transport.is_closing()):
            self._close(0)
            return
        self._refused = True
        if not unread and (cycle is None or cycle.response_complete or not cycle.response_started):
            text = msgspec.json.encode(ItemError(status, code, message))
            head = b"content-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(text)
            self.transport.write(STATUS_LINE[status] + head + text)
        self._stop_answering()
        if linger:
            self.flow.pause_reading()
            self._due = self.limits.now + 2
        else:
            self._close(1)

    def _close(self, seconds: int) -> None:
        """Close, also if nothing is read within so many seconds; it takes nobody's place from now on."""
        self.limits.leave(self)
        self._stop_answering()
        if seconds:
            self.transport.close()
            self.loop.call_later(seconds, self.transport.abort)
        else:
            self.transport.abort()


def limited_protocol(limits: ConnectionLimits) -> type[LimitedProtocol]:
    """Return the protocol for a server, with its limits."""
    return type("LimitedProtocol", (LimitedProtocol,), {"limits": limits})
