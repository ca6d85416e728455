"""Limits without a key: what is too large, too slow or never read is refused or closed; the rest is served."""

import asyncio
import functools
import logging
import resource
import socket
import struct
import time
from contextlib import suppress

import httpx
import msgspec
import pytest
import uvicorn
from uvicorn.server import ServerState

from cloneproof.serve.http import connection_limits
from cloneproof.serve.http.connection_limits import ConnectionLimits, limited_protocol
from support.service import in_thread


class Wire:
    """A transport that remembers what was written."""

    def __init__(self):
        self.written, self.closed, self.aborted, self.unread = b"", False, False, 0

    def get_extra_info(self, name):
        return None

    def is_closing(self):
        return self.closed

    def write(self, data):
        self.written += data

    def close(self):
        self.closed = True

    def abort(self):
        self.closed = self.aborted = True

    def get_write_buffer_size(self):
        return self.unread

    def pause_reading(self):
        pass

    resume_reading = pause_reading


async def app(scope, receive, send):
    """Answers when the request is whole; every key is valid."""
    size = 0
    if any(name == b"authorization" for name, _ in scope["headers"]):
        scope["caller"] = "the key's record"
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        size += len(message["body"])
        if not message["more_body"]:
            break
    text = b"%d" % size
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(text))]})
    await send({"type": "http.response.body", "body": text})


class Bench:
    """A server's connections without sockets and without a clock: `limits.sweep()` is a second."""

    def __init__(self, **limits):
        self.limits = ConnectionLimits(**limits)
        self.config = uvicorn.Config(app, http=limited_protocol(self.limits), ws="none", log_level="critical")
        self.config.load()
        self.state = ServerState()

    def connect(self):
        made = limited_protocol(self.limits)(
            config=self.config, server_state=self.state, app_state={}, _loop=asyncio.get_running_loop()
        )
        made.connection_made(Wire())
        return made


async def answered(connection, *pieces):
    for piece in pieces:
        connection.data_received(piece)
    for _ in range(5):
        await asyncio.sleep(0)
    return connection.transport.written


def in_a_loop(test):
    """A test that is a coroutine."""

    @functools.wraps(test)
    def run(*arguments, **named):
        asyncio.run(test(*arguments, **named))

    return run


def status(written):
    return int(written.split(b" ", 2)[1]) if written else None


HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("pieces", "wanted"),
    [
        ([b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"], 200),
        ([HEAD + b"Content-Length: 3\r\n\r\nabc"], 200),
        ([HEAD + b"Content-Length: 3\r\n", b"\r\na", b"b", b"c"], 200),
        ([CHUNKED] + [b"400\r\n" + bytes(1024) + b"\r\n"] * 200 + [b"0\r\n\r\n"], 200),
        ([b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"], 414),
        ([b"GET /"] + [b"a" * 1000] * 100, 414),
        ([HEAD] + [b"a: b\r\n"] * 200, 431),
        ([HEAD + b"a: b\r\n" * 200], 431),
        ([HEAD + b"a: "] + [b"b" * 10_000] * 20, 431),
        ([HEAD + b"a: " + b"b" * 40_000 + b"\r\n\r\n"], 431),
        ([CHUNKED + b"1\r\na\r\n" * 2000], 400),
        ([CHUNKED] + [b"1\r\na\r\n"] * 2000, 400),
        ([CHUNKED] + [b"1;" + b"x" * 100_000 + b"\r\na\r\n"] * 40, 413),
        ([CHUNKED + b"0\r\nb: "] + [b"b" * 100_000] * 30, 413),
        ([b"\r\n"] * 50_000, 431),
        ([b"nonsense\r\n\r\n"], 400),
    ],
)
@in_a_loop
async def test_what_is_too_large_is_refused_before_it_is_whole(pieces, wanted):
    bench = Bench()
    connection = bench.connect()
    transport, written = connection.transport, await answered(connection, *pieces)
    assert status(written) == wanted
    assert not transport.closed  # who sends such things over and over waits for a second each time
    for _ in range(2):
        bench.limits.sweep()
    await answered(connection)
    assert transport.closed == (wanted != 200)
    assert transport.written == written
    if wanted != 200:
        assert msgspec.json.decode(written.split(b"\r\n\r\n", 1)[1])["status"] == wanted


@pytest.mark.parametrize(
    ("begun", "seconds"),
    [
        ([], 11),
        ([b"POST / HTT"], 11),
        ([b"\r\n"], 11),
        ([HEAD], 11),
        ([HEAD + b"Content-Length: 10\r\n\r\nabc"], 31),
        ([b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"\r\n"], 11),
        ([b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GE"], 11),
    ],
)
@in_a_loop
async def test_half_a_request_is_given_its_time_and_no_more(begun, seconds):
    """A byte now and then does not make it longer."""
    bench = Bench()
    connection = bench.connect()
    for piece in begun:
        await answered(connection, piece)
    for _ in range(seconds - 1):
        bench.limits.sweep()
    assert not connection.transport.closed
    bench.limits.sweep()
    await asyncio.sleep(0)
    assert connection.transport.closed
    assert b"HTTP/1.1 408" in connection.transport.written


@in_a_loop
async def test_a_call_may_take_its_time_once_it_is_sent():
    bench = Bench()
    connection = bench.connect()
    connection.data_received(HEAD + b"Content-Length: 3\r\n\r\nabc")
    for _ in range(100):
        bench.limits.sweep()
    assert status(await answered(connection)) == 200


@in_a_loop
async def test_an_answer_that_is_not_read_ends_the_connection():
    bench = Bench()
    unread, closing = bench.connect(), bench.connect()
    for connection in (unread, closing):
        await answered(connection, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    unread.transport.unread = 5000
    closing.transport.close()  # and what is left to be sent is never read
    for _ in range(31):
        bench.limits.sweep()
    assert unread.transport.aborted
    assert closing.transport.aborted


GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
KEY = b"Authorization: Bearer x\r\n"
WITH_KEY = b"GET / HTTP/1.1\r\nHost: x\r\n" + KEY + b"\r\n"
HALF = HEAD + b"Content-Length: 10\r\n\r\nabc"


@pytest.mark.parametrize("begun", [b"", b"GET", GET, HALF, GET + b"GET", GET + HALF, GET * 5 + HALF])
@in_a_loop
async def test_connections_without_a_key_make_room_for_others(begun):
    """Also those that were answered before and then send half a body, for which they would have 30 s."""
    bench = Bench(most=20)
    platform = bench.connect()
    assert status(await answered(platform, WITH_KEY)) == 200
    strangers = [bench.connect() for _ in range(300)]
    for connection in strangers:
        if not connection.transport.closed:
            await answered(connection, begun)
        if connection.transport.closed:
            connection.connection_lost(None)
    new, later = bench.connect(), []
    assert status(await answered(new, WITH_KEY)) == 200
    for _ in range(100):
        later.append(bench.connect())
        await answered(later[-1], begun)
    assert not platform.transport.closed
    assert not new.transport.closed
    assert 0 < sum(not one.transport.closed for one in later) <= 18


@in_a_loop
async def test_where_all_connections_have_a_key_one_more_is_refused():
    bench = Bench(most=2)
    callers = [bench.connect() for _ in range(2)]
    for caller in callers:
        await answered(caller, WITH_KEY)
        await answered(caller, HEAD + KEY)
    assert status(bench.connect().transport.written) == 503
    assert not any(caller.transport.closed for caller in callers)


@in_a_loop
async def test_a_connection_whose_last_call_had_no_key_makes_room():
    """A key that was valid once, and may be revoked by now, holds no place for ever."""
    bench = Bench(most=2)
    first, second = bench.connect(), bench.connect()
    for piece in (WITH_KEY, GET, b"GE"):
        await answered(first, piece)
    await answered(second, WITH_KEY)
    connections = first, second, bench.connect()
    assert [one.transport.closed for one in connections] == [True, False, False]


@pytest.mark.parametrize("closing", [False, True])
@in_a_loop
async def test_who_does_not_read_its_answers_makes_room_at_once(closing):
    """Also where uvicorn is about to close it; else it would be counted for ten more seconds."""
    bench = Bench(most=2)
    unread = [bench.connect() for _ in range(2)]
    for connection in unread:
        await answered(connection, GET)
        connection.transport.unread = 5000
        connection.transport.closed = closing
    new = [bench.connect() for _ in range(2)]
    assert all(one.transport.aborted for one in unread)
    assert new == list(bench.limits.open)
    assert not new[0].transport.closed


@in_a_loop
async def test_a_refusal_that_is_not_read_is_dropped_a_second_later():
    bench, delays = Bench(most=1), []
    first = bench.connect()
    first.loop = type("Loop", (), {"call_later": lambda self, seconds, call: (delays.append(seconds), call())})()
    bench.connect()
    assert (status(first.transport.written), first.transport.aborted, delays) == (503, True, [1])
    assert first not in bench.limits.open


@in_a_loop
async def test_a_refusal_amid_several_requests_leaves_no_error_line(caplog):
    """The one that is being answered is the first of them, not the last."""

    async def cut_short(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await gone.wait()
        with suppress(RuntimeError):
            raise RuntimeError("uvloop's transport is closed")

    gone, log = asyncio.Event(), logging.getLogger("uvicorn.error")
    bench = Bench(most=1)
    log.setLevel(logging.ERROR)
    log.addHandler(caplog.handler)
    bench.config.loaded_app = cut_short
    connection = bench.connect()
    await answered(connection, GET * 3)
    bench.connect()
    gone.set()
    await answered(connection)
    log.removeHandler(caplog.handler)
    assert [record.getMessage() for record in caplog.records] == []


def test_connections_fit_the_descriptors_of_the_process():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, limits[1]))
    try:
        assert connection_limits.most_connections() == 192
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_over_sockets_as_the_service_runs():
    """Pieces of one byte, a long address and half a body at once: each refused, and the service answers."""
    with in_thread() as (address, key):
        port = int(address.rsplit(":", 1)[1])
        drip, long = (socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(2))
        drip.sendall(b"POST /v1/keys HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 5000)
        long.sendall(b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
        assert status(drip.recv(1000)) in (400, 401)
        assert status(long.recv(1000)) == 414
        cut = socket.create_connection(("127.0.0.1", port), timeout=30)
        body = b'{"market": "feed", "mechanism": "ucb1", "horizon": 10}'
        cut.sendall(
            b"POST /v1/markets HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n"
            % key.encode() + b"%x\r\n%s\r\n" % (len(body), body)
        )  # fmt: skip
        cut.close()  # before the last chunk: what came looks whole, and is not done
        headers = {"Authorization": f"Bearer {key}"}
        assert httpx.get(f"{address}/v1/markets", headers=headers).json() == {"markets": []}
        drip.close()
        long.close()


def test_a_key_in_a_trailer_does_not_count():
    """Whoever stands before the service looks at headers; what follows the body is none."""
    with in_thread() as (address, key):
        call = (
            b"POST /v1/keys HTTP/1.1\r\nHost: x\r\n%sTransfer-Encoding: chunked\r\n\r\n"
            b'13\r\n{"role": "auditor"}\r\n0\r\n%s\r\n'
        )
        bearer = b"Authorization: Bearer %s\r\n" % key.encode()
        for header, trailer, wanted in ((bearer, b"", 201), (b"", bearer, 401), (bearer, b"Authorization: x\r\n", 201)):
            with socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1])), timeout=30) as caller:
                caller.sendall(call % (header, trailer))
                assert status(caller.recv(1000)) == wanted


def test_a_connection_that_is_reset_leaves_no_traceback(capfd):
    with in_thread() as (address, key):
        for _ in range(5):
            caller = socket.create_connection(("127.0.0.1", int(address.rsplit(":", 1)[1])), timeout=30)
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            head = b"GET /v1/openapi.json HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % key.encode()
            caller.sendall(head * 200)
            time.sleep(0.02)
            caller.close()  # with answers under way: a reset
        assert httpx.get(f"{address}/health").status_code == 200
    assert "Traceback" not in capfd.readouterr().err
