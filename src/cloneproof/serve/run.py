"""Run a service: uvicorn over the application, on loopback unless told otherwise."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable

import uvicorn

from cloneproof.errors import CloneproofError
from cloneproof.serve.commit.group_writer import milliseconds
from cloneproof.serve.commit.shared_writer import writer_over
from cloneproof.serve.http.app import App
from cloneproof.serve.http.keys import new_key
from cloneproof.serve.http.service import Service
from cloneproof.serve.ledger.terms import ServeError
from cloneproof.serve.storage import open_storage
from cloneproof.serve.storage.interface import Role


def run(place: str, host: str, port: int, agent_rate: float | None, announce: Callable[[str], None]) -> None:
    """Serve the storage at a place until told to stop."""
    storage = open_storage(place)
    try:  # before anybody can call: what cannot be read is one sentence, and no service
        writer = writer_over(storage)
        listening = _listening(host, port)
    except CloneproofError:
        storage.close()
        raise
    app = App(lambda: Service.over(writer, agent_rate))
    gc.set_threshold(100_000, 20, 100)  # a group makes thousands of small objects, and hardly any cycle
    config = uvicorn.Config(
        app,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=10,
    )
    announce(f"http://{_address(listening)}")
    uvicorn.Server(config).run(sockets=[listening])


def create_key(place: str, role: Role, agent: str | None) -> str:
    """A new key in the storage at a place, which no service may hold at the moment if it is a file."""
    storage = open_storage(place)
    try:
        key, record = new_key(role, agent, milliseconds())
        storage.put_key(record)
    finally:
        storage.close()
    return key


def _listening(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65_535:
        raise ServeError(f"expected a port from 0 to 65535, got {port}; choose another")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        made = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as problem:
        raise ServeError(f"cannot listen on {host}:{port} ({problem}); choose another host or port") from None
    return made


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
