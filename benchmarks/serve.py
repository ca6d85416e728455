"""The live market under load: calls per second, latency at half of the bar, memory, and the time of a start.

`python benchmarks/serve.py` takes about a minute; `--long` does ten million decisions and their rewards instead, for
memory and start-up. The load generator runs on the same machine, in this process: raw sockets, keep-alive, requests
made beforehand. `--postgres` measures two service processes, on a server of the tests' package that waits for the disk,
or on the empty database whose address is given. Decisions are made in the award phase; `--mechanism ucb1` and the like
measure others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import uvloop

from cloneproof.serve import calls
from cloneproof.serve.client import Client
from tables import new_table, print_table

BATCH = 1000
WARM_UP = 60_000  # rounds after which h-etc-r has awarded, waiting for the rewards of a batch included
COMMAND = [sys.executable, "-c", "from cloneproof.cli import main; main()", "serve"]


class Bars(NamedTuple):
    """What is to be reached: calls a second (batched decisions, batched rewards, single ones) and p99 in ms."""

    name: str
    rates: tuple[int, int, int, int]
    latency: int


SQLITE = Bars("SQLite", (100_000, 80_000, 6_000, 6_000), 25)
POSTGRES = Bars("PostgreSQL, two services", (60_000, 30_000, 2_500, 2_500), 40)


class Service:
    """The service in a process of its own, on a file or on a database."""

    def __init__(self, path: Path | str, key: str | None = None) -> None:
        self.path = path
        if key is not None:
            self.key = key
        elif isinstance(path, str) or not path.exists():
            self.key = subprocess.run(
                [*COMMAND, str(path), "--create-key", "platform"], capture_output=True, text=True, check=True
            ).stdout.strip()
        self.start()

    def start(self) -> float:
        """Start it; the seconds until it is ready."""
        begun = time.perf_counter()
        self.process = subprocess.Popen([*COMMAND, str(self.path), "--port", "0"], stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])
        asyncio.run(load(self, [b""], 1, "GET", "/ready"))
        return time.perf_counter() - begun

    def stop(self, how: int = signal.SIGTERM) -> None:
        self.process.send_signal(how)
        self.process.wait()

    def megabytes(self) -> float:
        """Resident memory."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6

    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Connection(asyncio.Protocol):
    """One keep-alive connection that always has one request on its way."""

    def __init__(self, bodies: Iterator[bytes], head: bytes, done: asyncio.Future[None], times: list[float]) -> None:
        self.bodies, self.head, self.done, self.times = bodies, head, done, times
        self.missing = 0
        self.begun = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.transport = transport
        self.send()

    def send(self) -> None:
        body = next(self.bodies, None)
        if body is None:
            self.transport.close()
            if not self.done.done():
                self.done.set_result(None)
            return
        self.begun = time.perf_counter()
        self.transport.write(self.head % len(body) + body)

    def data_received(self, data: bytes) -> None:
        if self.missing == 0:
            if not data.startswith(b"HTTP/1.1 20"):
                self.done.set_exception(RuntimeError(data[:300].decode()))
                return
            end = data.index(b"\r\n\r\n")
            at = data.index(b"content-length: ") + 16
            self.missing = int(data[at : data.index(b"\r\n", at)]) - (len(data) - end - 4)
        else:
            self.missing -= len(data)
        if self.missing == 0:
            self.times.append(time.perf_counter() - self.begun)
            self.send()


def head(service: Service, method: str, path: str) -> bytes:
    key = getattr(service, "key", "none")
    lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: Bearer {key}", "Content-Length: %d", "", ""]
    return "\r\n".join(lines).encode()


async def load(service: Service, bodies: list[bytes], connections: int, method: str, path: str) -> list[float]:
    """Send all, as fast as the answers come; the time of each."""
    loop, times, rest = asyncio.get_running_loop(), list[float](), iter(bodies)
    ends = [loop.create_future() for _ in range(connections)]
    for end in ends:
        made = Connection(rest, head(service, method, path), end, times)
        await loop.create_connection(lambda made=made: made, "127.0.0.1", service.port)
    await asyncio.gather(*ends)
    return times


async def paced(service: Service, bodies: list[bytes], rate: float, path: str, connections: int = 200) -> list[float]:
    """Send at a steady rate whatever the answers do; the time of each from when it was due."""
    begun = time.perf_counter()
    due = iter([begun + number / rate for number in range(len(bodies))])
    rest, times, loop = iter(bodies), list[float](), asyncio.get_running_loop()
    request_head = head(service, "POST", path)

    class Paced(Connection):
        def send(self) -> None:
            when = next(due, None)
            if when is None:
                self.transport.close()
                self.done.set_result(None)
                return
            self.begun = when
            loop.call_at(loop.time() + max(0.0, when - time.perf_counter()), self.go)

        def go(self) -> None:
            body = next(rest)
            self.transport.write(self.head % len(body) + body)

    ends = [loop.create_future() for _ in range(connections)]
    for end in ends:
        made = Paced(rest, request_head, end, times)
        await loop.create_connection(lambda made=made: made, "127.0.0.1", service.port)
    await asyncio.gather(*ends)
    return times


def call(service: Service, path: str, body: object) -> None:
    uvloop.run(load(service, [json.dumps(body).encode() if body is not None else b""], 1, "POST", path))


def requests(count: int) -> list[bytes]:
    return [json.dumps({"request_id": str(uuid.uuid4())}).encode() for _ in range(count)]


_asked: dict[str, list[str]] = {}  # by the address of a service: the requests of its decisions, in order
_read: dict[str, int] = {}  # lines of the ledger that they were read from


def rewards(service: Service, first: int, count: int) -> list[bytes]:
    """Rewards of decisions, whose requests the ledger has."""
    address = f"http://127.0.0.1:{service.port}"
    asked = _asked.setdefault(str(service.path), [])
    with Client(address, service.key) as api:
        while len(asked) < first + count - 1:
            page = api.send(calls.ledger("m", _read.get(str(service.path), 0)))
            entries = [json.loads(bytes(line.entry)) for line in page.lines]
            asked += [entry["request"] for entry in entries if entry["kind"] == "decision"]
            _read[str(service.path)] = entries[-1]["n"]
    return [
        json.dumps(
            {"event_id": str(uuid.uuid4()), "decision": n, "request_id": asked[n - 1], "value": 1.0 if n % 3 else 0.0}
        ).encode()
        for n in range(first, first + count)
    ]


def batched(bodies: list[bytes]) -> list[bytes]:
    return [b'{"items":[' + b",".join(bodies[n : n + BATCH]) + b"]}" for n in range(0, len(bodies), BATCH)]


def opened(path: Path | str, horizon: int, mechanism: str) -> Service:
    """A service with a market that runs."""
    service = Service(path)
    parameters = {"agent_rounds": 800, "arm_rounds": 40} if mechanism == "h-etc-r" else {}
    terms = {
        "market": "m",
        "mechanism": mechanism,
        "horizon": horizon,
        "parameters": parameters,
        "wait_rounds": horizon,
    }
    call(service, "/v1/markets", terms)
    for agent in range(10):
        call(service, "/v1/markets/m/agents", {"agent": f"agent{agent}"})
        for arm in range(5):
            call(service, f"/v1/markets/m/agents/agent{agent}/arms", {"arm": f"arm{arm}"})
    call(service, "/v1/markets/m/start", None)
    for done in range(0, WARM_UP, BATCH):  # past the trial, whose commitments wait for rewards
        uvloop.run(load(service, batched(requests(BATCH)), 1, "POST", "/v1/markets/m/decisions/batch"))
        uvloop.run(load(service, batched(rewards(service, done + 1, BATCH)), 1, "POST", "/v1/markets/m/rewards/batch"))
    return service


def measured(
    services: list[Service], what: str, bodies: list[bytes], connections: int, path: str
) -> tuple[str, float, float]:
    """Items a second, and the services' processor time for an item."""
    items = sum(max(1, body.count(b"{") - (b"items" in body)) for body in bodies[:1]) * len(bodies)
    cpu, begun = sum(service.cpu() for service in services), time.perf_counter()
    uvloop.run(spread(services, bodies, lambda service, mine: load(service, mine, connections, "POST", path)))
    seconds = time.perf_counter() - begun
    return what, items / seconds, (sum(service.cpu() for service in services) - cpu) / items * 1e6


async def spread(
    services: list[Service], bodies: list[bytes], send: Callable[[Service, list[bytes]], Awaitable[list[float]]]
) -> list[float]:
    """Each service gets its part of the calls, all at the same time."""
    parts = [send(service, bodies[number :: len(services)]) for number, service in enumerate(services)]
    return [seconds for part in await asyncio.gather(*parts) for seconds in part]


def main() -> None:
    """Print the table of the bars."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--long", action="store_true", help="ten million decisions instead of the table of the bars")
    options.add_argument("--count", type=int, default=20_000, help="single calls of each kind")
    options.add_argument("--decisions", type=int, default=10_000_000, help="how many --long makes")
    options.add_argument("--postgres", metavar="ADDRESS", nargs="?", const="", help="two services on PostgreSQL")
    options.add_argument("--mechanism", default="h-etc-r", help="which one decides")
    chosen = options.parse_args()
    with ExitStack() as stack:
        if chosen.postgres is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            services, bars = [opened(Path(folder) / "market.db", 10**8, chosen.mechanism)], SQLITE
        else:
            address = chosen.postgres or stack.enter_context(database())
            first = opened(address, 10**8, chosen.mechanism)
            services, bars = [first, Service(address, first.key)], POSTGRES
        for service in services:
            stack.callback(service.stop)
        if chosen.long:
            long(services, chosen.decisions)
        else:
            short(services, chosen.count, bars)


@contextmanager
def database() -> Iterator[str]:
    """An empty database of a server that waits for the disk, as the tests start one."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from support.postgres import Server

    server = Server(durable=True)
    try:
        yield server.new_database()
    finally:
        server.close()


def short(services: list[Service], count: int, bars: Bars) -> None:
    many, first, market = 20 * count, WARM_UP + 1, "/v1/markets/m"
    each = 64 // len(services)
    rows = [
        measured(services, "decisions, batched", batched(requests(many)), 4, f"{market}/decisions/batch"),
        measured(
            services, "rewards, batched", batched(rewards(services[0], first, many)), 4, f"{market}/rewards/batch"
        ),
        measured(services, "decisions, single", requests(count), each, f"{market}/decisions"),
        measured(services, "rewards, single", rewards(services[0], first + many, count), each, f"{market}/rewards"),
    ]
    table = new_table(f"{bars.name}, each durable before its reply; load {os.getloadavg()[0]:.1f}", "calls", "a second",
                      "bar", "service's µs of processor each")  # fmt: skip
    for (what, rate, cpu), bar in zip(rows, bars.rates, strict=True):
        table.add_row(what, f"{rate:,.0f}", f"{bar:,}", f"{cpu:.1f}")
    print_table(table)
    pace = bars.rates[-1] / 2
    table = new_table(f"Latency at half of the bar, {pace:,.0f} single calls a second", "calls", "p50 ms", "p99 ms",
                      "bar")  # fmt: skip
    for path in ("decisions", "rewards"):
        bodies = requests(count) if path == "decisions" else rewards(services[0], first + many + count, count)

        async def steady(service: Service, mine: list[bytes], path: str = path) -> list[float]:
            return await paced(service, mine, pace / len(services), f"{market}/{path}", 200 // len(services))

        latencies = sorted(uvloop.run(spread(services, bodies, steady)))
        table.add_row(
            path, *(f"{1e3 * latencies[int(len(latencies) * q)]:.1f}" for q in (0.5, 0.99)), f"{bars.latency}"
        )
    print_table(table)


def long(services: list[Service], decisions: int) -> None:
    """Many decisions and rewards: memory and speed on the way, and starts when half of them and when all are made."""
    market, step = "/v1/markets/m", max(BATCH, decisions // 20)
    table = new_table(f"{decisions:,} decisions and their rewards", "decisions", "MB", "decisions/s", "rewards/s",
                      "start after kill, s", "after a stop, s")  # fmt: skip
    for done in range(step, decisions + 1, step):
        first = WARM_UP + done - step + 1
        _, made, _ = measured(services, "", batched(requests(step)), 4, f"{market}/decisions/batch")
        _, paid, _ = measured(services, "", batched(rewards(services[0], first, step)), 4, f"{market}/rewards/batch")
        megabytes = max(service.megabytes() for service in services)
        starts = ["", ""]
        if done in (decisions // 2, decisions):
            starts = [
                f"{max(_restarted(process, how) for process in services):.1f}"
                for how in (signal.SIGKILL, signal.SIGTERM)
            ]
        table.add_row(f"{done:,}", f"{megabytes:.0f}", f"{made:,.0f}", f"{paid:,.0f}", *starts)
    print_table(table)


def _restarted(service: Service, how: int) -> float:
    service.stop(how)
    return service.start()


if __name__ == "__main__":
    main()
