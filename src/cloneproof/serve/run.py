"""Run a service: uvicorn over the application, on loopback unless told otherwise."""

from __future__ import annotations

import gc
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, Self

import msgspec
import uvicorn

from cloneproof._lib.checks import count, number_in, toml_tables
from cloneproof.errors import ServeError, brief
from cloneproof.serve.http.app import App, Starting
from cloneproof.serve.http.connection_limits import ConnectionLimits, limited_protocol
from cloneproof.serve.http.service import Service, install_keys, key_from_file, log, new_key
from cloneproof.serve.market.terms import MarketSpec, Name, Role, with_fields
from cloneproof.serve.storage import open_storage
from cloneproof.serve.storage.storage import Storage
from cloneproof.serve.writer.writer import Writer, milliseconds

_COMMAND: Final = [sys.executable, "-c", "from cloneproof.cli import main; main()"]


def run(
    place: str,
    host: str,
    port: int,
    agent_rate: float | None,
    announce: Callable[[str], None],
    key_files: Mapping[Role, str] = MappingProxyType({}),
    terms: str | None = None,
) -> None:
    """Serve the storage at a place until told to stop; new keys in files are installed first.

    A market that a file of terms declares is opened if there is none of its name.
    """
    spec = None if terms is None else read_terms(terms)
    given = [key_from_file(path, role, milliseconds()) for role, path in key_files.items()]
    if agent_rate is not None:
        number_in(agent_rate, "calls a second", 0, error=ServeError, low_open=True)
    with ExitStack() as undo:
        socket_ = _listen(host, port)  # before the storage is opened, so that an error leaves no new file behind
        undo.callback(socket_.close)
        storage = open_storage(place)
        undo.callback(storage.close)
        install_keys(storage, given)
        sys.setswitchinterval(0.001)  # so that computing threads do not delay the event loop
        with answered(socket_, storage):
            writer = Writer(storage)  # before the service, so that an unreadable storage is one clear error
        if spec is not None:
            writer.declare(spec)
        undo.pop_all()
    gc.set_threshold(100_000, 20, 100)  # a group makes thousands of small objects and hardly any cycles
    signal.signal(signal.SIGHUP, _ignore_hangup)
    announce(f"http://{_address(socket_)}")
    _server(App(lambda: Service(writer, agent_rate)), "on").run(sockets=[socket_])


def _server(app: App | Starting, lifespan: Literal["on", "off"]) -> uvicorn.Server:
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http=limited_protocol(ConnectionLimits()),
        ws="none",
        lifespan=lifespan,
        access_log=False,
        proxy_headers=False,  # nothing here depends on the caller's address
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=10,
    )
    return uvicorn.Server(config)


@contextmanager
def answered(listening: socket.socket, storage: Storage) -> Iterator[None]:
    """Say on a socket how far a start is that takes longer than a second: reading a whole ledger takes minutes."""
    server, done = _server(Starting(storage), "off"), threading.Event()

    def answer() -> None:
        if not done.wait(1.0):
            server.run(sockets=[listening.dup()])

    thread = threading.Thread(target=answer)
    thread.start()
    try:
        yield
    finally:
        done.set()
        server.should_exit = True
        thread.join()


def read_terms(path: str) -> MarketSpec:
    """Return the terms in a TOML file, as `cloneproof recommend --toml` writes them."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as problem:
        raise ServeError(f"expected a file of terms, got {path!r}: {problem}; check the path") from None
    try:
        return msgspec.convert(toml_tables(text, path, ServeError), MarketSpec)
    except msgspec.ValidationError as problem:
        raise ServeError(f"{path}: {with_fields(problem, MarketSpec)}") from None


def _ignore_hangup(number: int, frame: object) -> None:
    """Go on: many take the signal for a request to read settings again, and none can change while a service runs."""
    log.warning("SIGHUP is ignored; settings are read at the start, and SIGTERM ends the service")


def create_key(place: str, role: Role, agent: str | None) -> str:
    """Make a new key in the storage at a place; a file must not be in use by a service."""
    if agent is not None:
        try:
            msgspec.convert(agent, Name)
        except msgspec.ValidationError:
            raise ServeError(
                f"expected an agent's name of letters, digits and . _ : @ -, at most 64, got {brief(agent)}; change it"
            ) from None
    key, record = new_key(role, agent, milliseconds())
    storage = open_storage(place)
    try:
        storage.put_key(record)
    finally:
        storage.close()
    return key


@contextmanager
def _address_errors(host: str, port: int) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as problem:  # also if another process bound the same address before we listen
        raise ServeError(f"cannot listen on {host}:{port} ({problem}); choose another host or port") from None


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens."""
    count(port, "a port", 0, 65_535, ServeError)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with _address_errors(host, port), ExitStack() as undo:
        socket_ = undo.enter_context(socket.socket(family))
        socket_.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            socket_.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        socket_.bind((host, port))
        socket_.listen(2048)
        undo.pop_all()
    return socket_


def _address(socket_: socket.socket) -> str:
    host, port = socket_.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class LocalService:
    """`cloneproof serve` over a file, on a free loopback port; ends with `stop`, or with its `with` block.

    Ctrl-C does not reach its process, so that this one can finish its calls first.
    """

    def __init__(self, place: str) -> None:
        self._process = subprocess.Popen(
            [*_COMMAND, "serve", place, "--port", "0"], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        try:
            line = self._process.stdout.readline()  # printed when it listens
        except BaseException:
            self.stop()
            raise
        if not line:
            self.stop()
            raise ServeError(f"the service over {place!r} did not start; it has said why")
        self.address = line.split()[-1]

    def stop(self) -> None:
        """Stop the service; everything it acknowledged is in the file."""
        self._process.terminate()
        self._process.communicate(timeout=30)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.stop()
