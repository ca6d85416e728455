"""Services for tests: in this process over ASGI, or in one of their own over a socket."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, ClassVar

import httpx
import msgspec
import uvicorn

from cloneproof.serve import calls
from cloneproof.serve.client import Client
from cloneproof.serve.http.app import App
from cloneproof.serve.http.connection_limits import ConnectionLimits, limited_protocol
from cloneproof.serve.http.service import INTERVALS, Intervals, Service, new_key
from cloneproof.serve.market.dice import MarketDice, make_secret
from cloneproof.serve.market.entries import GENESIS, chain_hashes
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import ReplayedLedger, published_dice, replay
from cloneproof.serve.market.terms import MarketSpec, complete
from cloneproof.serve.messages import DecisionRequest
from cloneproof.serve.offline import StoredLedger
from cloneproof.serve.run import create_key, run
from cloneproof.serve.storage import SqliteStorage, Storage, open_storage
from cloneproof.serve.writer.commands import Decide
from cloneproof.serve.writer.writer import Writer

COMMAND = [sys.executable, "-c", "from cloneproof.cli import main; main()"]

SEED = 7_777_777_777_777_777_777
SECRET = make_secret(SEED)
DICE = MarketDice(SECRET)

TERMS = {
    "market": "feed",
    "mechanism": "h-etc-r",
    "horizon": 10_000,
    "parameters": {"agent_rounds": 6, "arm_rounds": 2},
    "share": 0.4,
    "seed": SEED,
    "wait_rounds": 10_000,
}


def spec(**changes: Any) -> MarketSpec:
    return msgspec.convert(TERMS | changes, MarketSpec)


def with_arms(market: LiveMarket, arms: dict[str, int], at: int = 1000) -> LiveMarket:
    """The market with agents, each with so many arms."""
    for agent, count in arms.items():
        market.register_agent(agent, at)
        for arm in range(count):
            market.register_arm(agent, f"{agent}-{arm}", at)
    return market


def declared(secret: bytes = SECRET, **terms: Any) -> LiveMarket:
    """A market with these terms, before any registration."""
    return LiveMarket.open(complete(spec(seed=None, **terms)), 0, MarketDice(secret))


def started(arms: dict[str, int], **terms: Any) -> LiveMarket:
    """The same with agents, each with so many arms, and its season begun."""
    market = with_arms(declared(**terms), arms)
    market.start(1000)
    return market


def replayed(lines: Iterable[bytes], dice: MarketDice | None = None) -> ReplayedLedger:
    """Replay the lines of a ledger alone, with or without the dice of a running season."""
    return replay([(line, None) for line in lines], dice)


def lines_alone(lines: Sequence[bytes]) -> StoredLedger:
    """A ledger of which somebody has the lines, and nothing else."""
    *_, last = chain_hashes(GENESIS, lines)
    return StoredLedger(lambda: [(GENESIS, last, b"\n".join(lines).decode())])


def published(lines: Iterable[bytes]) -> MarketDice:
    """The dice that everybody knows from the lines."""
    return published_dice([(line, None) for line in lines])


def changed(line: bytes, **fields: Any) -> bytes:
    """A line of a ledger with other fields."""
    return json.dumps(json.loads(line) | fields, separators=(",", ":")).encode()


def session_seed(arms: dict[str, int]) -> bytes:
    """What the session of the first season is seeded with, for the arms that `open_market` registers."""
    seed = with_arms(LiveMarket.open(spec(), 0, MarketDice(SECRET)), arms).open_session(arms).seed
    assert isinstance(seed, bytes)
    return seed


def deciding(market: str, requests: Iterable[str], segment: str | None = None) -> Decide:
    """The command that decides for these requests."""
    return Decide(market, [DecisionRequest(request, segment) for request in requests])


class Clock:
    """A clock that the test turns, in milliseconds."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


class Desk:
    """A service in this process: every call goes through the whole application, without a socket.

    A reward that names no request gets that of its decision, as the last reply about it said.
    """

    asked: ClassVar[dict[tuple[str, int], str]] = {}  # of all services, as some share a database

    def __init__(
        self,
        storage: Storage | None = None,
        agent_rate: float | None = None,
        clock: Clock | None = None,
        intervals: Intervals = INTERVALS,
    ) -> None:
        self.clock = clock or Clock()
        self.storage = storage or open_storage(":memory:")
        self.key, record = new_key("platform", None, 0)
        self.storage.put_key(record)
        self.runner = asyncio.Runner()
        self.agent_rate, self.intervals, self.closed, self.views = agent_rate, intervals, False, 0
        self.open()

    def writer(self) -> Writer:
        return Writer(self.storage, self.clock, tick=0.1)

    def open(self) -> None:
        async def opened() -> None:
            self.app = App(lambda: Service(self.writer(), self.agent_rate, self.intervals))
            self.app.open()
            if self.storage.shared:  # its loop stands still between calls, perhaps in a turn that a
                self.app._service.writer._ticking.cancel()  # tick began: then nobody else could have one
            self.http = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url="http://test")

        self.runner.run(opened())

    def call(self, method: str, path: str, body: Any = None, key: str | None = None) -> httpx.Response:
        headers, market = {"Authorization": f"Bearer {key or self.key}"}, path.split("/")[3:4]
        for item in (body or {}).get("items", [body]) if "/rewards" in path and isinstance(body, dict) else []:
            if isinstance(item, dict) and isinstance(item.get("decision"), int):
                item.setdefault("request_id", self.asked.get((*market, item["decision"]), "?"))
        reply = self.runner.run(self.http.request(method, path, json=body, headers=headers))
        if "/decisions" in path and reply.status_code == 200:
            for made in reply.json().get("results", [reply.json()]):
                if "decision" in made:
                    self.asked[*market, made["decision"]] = made["request_id"]
        return reply

    def post(self, path: str, body: Any = None, key: str | None = None) -> httpx.Response:
        """A call to a path of the market `feed`, or to any path where it is absolute."""
        return self.call("POST", path if path.startswith("/") else f"/v1/markets/feed/{path}", body, key)

    def get(self, path: str, key: str | None = None) -> httpx.Response:
        """The same for reading; an empty path is the market itself."""
        return self.call("GET", path if path.startswith("/") else f"/v1/markets/feed/{path}".rstrip("/"), None, key)

    def together(self, *calls: tuple[str, str, Any]) -> list[int]:
        """The statuses of calls (method, path, body) that come at the same time."""

        async def sent() -> list[int]:
            headers = {"Authorization": f"Bearer {self.key}"}
            made = [self.http.request(method, path, json=body, headers=headers) for method, path, body in calls]
            return [reply.status_code for reply in await asyncio.gather(*made)]

        return self.runner.run(sent())

    def patiently(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """The answer, as a client gets it that asks again after a 503."""
        while (reply := self.call(method, path, body)).status_code == 503:
            self.runner.run(asyncio.sleep(0.02))
        return reply

    def decide(self, request: str) -> dict[str, Any]:
        """The decision for a request."""
        return self.post("decisions", {"request_id": request}).json()

    def decide_batch(self, requests: Iterable[str]) -> list[dict[str, Any]]:
        """A result for each request."""
        items = [{"request_id": request} for request in requests]
        return self.post("decisions/batch", {"items": items}).json()["results"]

    def reward(self, event: str, decision: int, value: float = 1.0) -> str:
        """What became of a reward, or why it was refused, in one word."""
        reply = self.post("rewards", {"event_id": event, "decision": decision, "value": value}).json()
        return reply.get("result") or reply["error"]

    def shown(self, number: int, value: float = 0.0) -> list[tuple[str, str]]:
        """Whom the next decisions show, as agents and arms, each rewarded at once."""
        found = []
        for _ in range(number):
            self.views += 1
            made = self.decide(f"view {self.views}")
            self.reward(f"click {made['decision']}", made["decision"], value)
            found.append((made["agent"], made["arm"]))
        return found

    def play(self, names: Iterable[str], value_of: Callable[[int], float] = lambda number: number % 3 == 0) -> None:
        """Decide, and reward at once, by the place of a name among them."""
        for number, name in enumerate(names):
            assert self.reward(name, self.decide(name)["decision"], float(value_of(number))) == "recorded"

    def make_key(self, role: str, agent: str | None = None) -> str:
        return self.call("POST", "/v1/keys", {"role": role, "agent": agent}).json()["key"]

    def close(self) -> None:
        """Stop orderly; nothing, where it was stopped already."""
        if self.closed:
            return
        self.closed = True
        try:
            self.runner.run(self.app.close())
            self.runner.run(self.http.aclose())
        finally:
            self.runner.close()

    def crash(self) -> None:
        """Leave everything as it is, as `kill -9` does."""
        self.closed = True
        self.storage.close()
        self.runner.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *what: object) -> None:
        self.close()


def open_market(desk: Desk, arms: dict[str, int], **changes: Any) -> None:
    """A market with its agents and arms, started."""
    terms = TERMS | changes
    path = f"/v1/markets/{terms['market']}"
    assert desk.post("/v1/markets", terms).status_code == 201
    for agent, count in arms.items():
        assert desk.post(f"{path}/agents", {"agent": agent}).status_code == 201
        for arm in range(count):
            assert desk.post(f"{path}/agents/{agent}/arms", {"arm": f"{agent}-{arm}"}).status_code == 201
    assert desk.post(f"{path}/start").status_code == 200


def start_market(api: Client, arms: dict[str, int], **changes: Any) -> str:
    """The same by a client; the market's name."""
    terms = spec(**changes)
    api.send(calls.create_market(terms))
    for agent, count in arms.items():
        api.send(calls.register_agent(terms.market, agent))
        for arm in range(count):
            api.send(calls.register_arm(terms.market, agent, f"{agent}-{arm}"))
    api.send(calls.start(terms.market))
    return terms.market


@contextmanager
def in_thread(storage: Storage | None = None) -> Iterator[tuple[str, str]]:
    """A service of this process on a socket, as browsers need one; its address and a platform's key."""
    storage = storage or open_storage(":memory:")
    key, record = new_key("platform", None, 0)
    storage.put_key(record)
    listening = socket.create_server(("127.0.0.1", 0))
    app = App(lambda: Service(Writer(storage)))
    server = uvicorn.Server(
        uvicorn.Config(app, loop="uvloop", http=limited_protocol(ConnectionLimits()), ws="none", log_level="warning")
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", key
    finally:
        server.should_exit = True
        thread.join()


PROCESSES = get_context("forkserver")  # which has imported the service once, and forks
PROCESSES.set_forkserver_preload(["httpx", "cloneproof.serve.run", "cloneproof.serve.storage.postgres"])


def _serve(place: str, port: int, announced: Connection) -> None:
    run(place, "127.0.0.1", port, None, announced.send)


class Process:
    """A service in a process of its own, which can be killed."""

    def __init__(self, place: str, key: str | None = None) -> None:
        self.place = place
        self.key = key or create_key(place, "platform", None)
        self.port = 0

    def start(self) -> float:
        """Start it, on the port it had before; the seconds until it is ready."""
        begun = time.monotonic()
        heard, announced = PROCESSES.Pipe(duplex=False)
        self.process = PROCESSES.Process(target=_serve, args=(self.place, self.port, announced), daemon=True)
        self.process.start()
        announced.close()
        self.port = int(heard.recv().rsplit(":", 1)[1])
        while True:
            try:
                if httpx.get(f"{self.address}/ready").status_code == 200:
                    return time.monotonic() - begun
            except httpx.TransportError:
                assert self.process.is_alive()
            time.sleep(0.01)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **options: Any) -> Client:
        return Client(self.address, self.key, **options)

    def kill(self) -> None:
        """`kill -9`."""
        self.process.kill()
        self.process.join()


def start_all(services: Iterable[Process]) -> None:
    """Start them at the same time."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(Process.start, services))


def sqlite(path: Path, interval: int = 1 << 17) -> SqliteStorage:
    return SqliteStorage(str(path), interval=interval)
