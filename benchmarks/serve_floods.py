"""What the calls of a market take while another caller floods the service, in each way that is known.

`python benchmarks/serve_floods.py` takes about two minutes. Decisions of a small market are asked for a hundred times a
second; their time counts from when each was due. The floods come from a process of their own, on the same machine.
Floods without a key are marked. A row whose flood ended before the calls did says so, and the script exits with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import uvloop

from serve import BATCH, Service, batched, call, head, load, requests
from tables import new_table, print_table

PROBES = 4
LONGEST = 20.0  # seconds that a call waits for its answer
PACE = 0.04  # seconds between the calls of one probe
TERMS = {"horizon": 10**8}
TRIAL = {"agent_rounds": 10**6, "arm_rounds": 40}


def opened(path: Path) -> Service:
    """A service with a small market, one with much to do, and one whose rule looks at 400 arms every time."""
    service = Service(path)
    for name, mechanism, parameters, agents, arms in (
        ("small", "h-etc-r", {"agent_rounds": 8, "arm_rounds": 2}, 2, 2),
        ("large", "h-etc-r", TRIAL, 10, 5),
        ("slow", "thompson", {}, 20, 20),
        ("unpaid", "h-etc-r", TRIAL, 10, 5),
    ):
        call(service, "/v1/markets", TERMS | {"market": name, "mechanism": mechanism, "parameters": parameters})
        for agent in range(agents):
            call(service, f"/v1/markets/{name}/agents", {"agent": f"agent{agent}"})
            for arm in range(arms):
                call(service, f"/v1/markets/{name}/agents/agent{agent}/arms", {"arm": f"arm{arm}"})
        call(service, f"/v1/markets/{name}/start", None)
    return service


def send_all(service: Service, bodies: list[bytes], connections: int, path: str) -> None:
    """Over and over, whatever the answers are."""
    while True:
        with suppress(RuntimeError, OSError):
            uvloop.run(load(service, bodies, connections, "POST", path))


def many(count: int) -> list[bytes]:
    """Batches with ids that are quickly made."""
    tag = time.time_ns()
    return batched([b'{"request_id":"%d-%d"}' % (tag, n) for n in range(count * BATCH)])


def batches(service: Service) -> None:
    send_all(service, many(800), 100, "/v1/markets/large/decisions/batch")


def slow_rule(service: Service) -> None:
    send_all(service, many(50), 50, "/v1/markets/slow/decisions/batch")


def burn(service: Service) -> None:
    """A process that computes and asks the service for nothing: what the machine itself adds."""
    while True:
        sum(range(10**6))


def declarations(service: Service) -> None:
    large = {"mechanism": "h-etc-r", "max_agents": 10_000, "max_originals": 100, "gap": 0.1, "agent_gap": 0.1}
    bodies = [json.dumps(TERMS | large | {"market": f"m{n}"}).encode() for n in range(200)]
    send_all(service, bodies, 4, "/v1/markets")


def bad_declarations(service: Service) -> None:
    terms = {"mechanism": "h-etc-r", "market": "bad", "max_originals": 2, "gap": 0.1, "agent_gap": 1e-300}
    send_all(service, [json.dumps(TERMS | terms).encode()] * 10, 4, "/v1/markets")


def settlement(service: Service) -> None:
    with suppress(RuntimeError, OSError):
        uvloop.run(load(service, [b'{"reason": "a measurement"}'], 1, "POST", "/v1/markets/unpaid/settle"))


def streams(service: Service, begin: bytes, piece: bytes, connections: int) -> None:
    """Connections that send a beginning and then one piece after the other; who is thrown out comes again."""
    sockets: list[socket.socket] = []
    while True:
        while len(sockets) < connections:
            with suppress(OSError):
                made = socket.create_connection(("127.0.0.1", service.port), timeout=1)
                made.sendall(begin)
                made.setblocking(False)
                sockets.append(made)
        for one in list(sockets):
            try:
                one.send(piece)
            except BlockingIOError:
                continue
            except OSError:
                one.close()
                sockets.remove(one)
        if not piece:
            time.sleep(0.1)


def chunks(service: Service) -> None:
    chunked = b"POST /v1/markets HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    streams(service, chunked, b"1\r\na\r\n" * 10_000, 8)


def long_header(service: Service) -> None:
    streams(service, b"GET /health HTTP/1.1\r\nHost: x\r\na: ", b"a" * 65_536, 8)


def many_headers(service: Service) -> None:
    streams(service, b"GET /health HTTP/1.1\r\nHost: x\r\n", b"a: b\r\n" * 10_000, 8)


def long_address(service: Service) -> None:
    streams(service, b"GET /", b"a" * 65_536, 8)


def idle(service: Service) -> None:
    streams(service, b"GET /he", b"", 600)


FLOODS: dict[str, Callable[[Service], None] | None] = {
    "nothing": None,
    "nothing, and a process that computes": burn,
    "800 batches of 1,000 on 100 connections": batches,
    "batches of a rule that looks at 400 arms": slow_rule,
    "declarations of 10,000 agents x 100 originals": declarations,
    "declarations with agent_gap 1e-300": bad_declarations,
    "a settlement with 100,000 rewards missing": settlement,
    "no key: chunks of 1 byte": chunks,
    "no key: a header without end": long_header,
    "no key: headers without end": many_headers,
    "no key: an address without end": long_address,
    "no key: 600 half requests": idle,
}


async def probe(service: Service, bodies: list[bytes], seconds: float) -> tuple[list[float], int]:
    """The time of each call from when it was due, and how many were not answered as they should."""
    times, failed = list[float](), 0
    text, end = head(service, "POST", "/v1/markets/small/decisions"), time.perf_counter() + seconds

    async def one() -> None:
        nonlocal failed
        due, streams = time.perf_counter(), None
        while due < end:
            due += PACE
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            try:
                streams = streams or await asyncio.open_connection("127.0.0.1", service.port)
                body = bodies.pop()
                streams[1].write(text % len(body) + body)
                answer = await asyncio.wait_for(streams[0].readuntil(b"}"), LONGEST)
                failed += not answer.startswith(b"HTTP/1.1 200")
            except (OSError, asyncio.IncompleteReadError):  # a time-out is an OSError
                failed += 1
                streams = None
            times.append(time.perf_counter() - due)

    await asyncio.gather(*(one() for _ in range(PROBES)))
    return times, failed


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=8.0, help="of each flood")
    options.add_argument("--only", default="", help="floods whose name has this in it")
    chosen = options.parse_args()
    table = new_table(f"A call of another market; load {os.getloadavg()[0]:.1f}", "flood", "calls", "p50 ms", "p99 ms",
                      "longest ms", "failed")  # fmt: skip
    unlike = 0  # rows that are not what their names say
    for name, flood in FLOODS.items():
        if chosen.only not in name:
            continue
        process = None
        with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
            service = opened(Path(folder) / "market.db")
            ends.callback(service.process.wait)
            ends.callback(service.process.kill)
            if flood is settlement:
                path = "/v1/markets/unpaid/decisions/batch"
                uvloop.run(load(service, many(100), 1, "POST", path))
            if flood is not None:
                process = multiprocessing.Process(target=flood, args=(service,), daemon=True)
                process.start()
                ends.callback(process.kill)
                time.sleep(2)
            bodies = requests(PROBES * round(chosen.seconds / PACE + 10))
            times, failed = uvloop.run(probe(service, bodies, chosen.seconds))
            ended = process is not None and process.exitcode not in ((None, 0) if flood is settlement else (None,))
        unlike += ended
        times.sort()
        marks = [1e3 * times[min(len(times) - 1, int(len(times) * q))] for q in (0.5, 0.99, 1.0)]
        told = f"{name} (the flood ended early)" if ended else name
        table.add_row(told, f"{len(times)}", *(f"{mark:,.1f}" for mark in marks), f"{failed}")
    print_table(table)
    sys.exit(1 if unlike or not table.rows else 0)


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    main()
