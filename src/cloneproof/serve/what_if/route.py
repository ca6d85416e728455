"""The route "what would a copy earn?": one audit at a time, in a process of its own, with a time limit."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import msgspec

from cloneproof.mechanisms.online.level import TICK_BITS
from cloneproof.serve.api.what_if_messages import Task, WhatIf, WhatIfFailed, WhatIfView
from cloneproof.serve.commit.commands import Do
from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.http.keys import Caller
from cloneproof.serve.http.service import Service
from cloneproof.serve.ledger.terms import Refused

_FOR_THE_SEARCH = 0.3  # of the time limit; the rest is for the start of the process and for proving the best found
_LONGEST = 1 << 24  # bytes of an answer


async def what_if(service: Service, caller: Caller, params: dict[str, str], body: WhatIf) -> tuple[int, Any]:
    """What would a copy earn? The audit of this market's mechanism, under a given belief or fitted priors."""

    def work(house: ServedMarkets, now: int) -> Task:
        market = house.market(params["market"])
        playing = market.registry.playing(market.season)
        arms = [
            (name, arm.arm, arm.rewards, arm.total / (max(1, arm.rewards) << TICK_BITS))
            for name, count in playing.items()
            for arm in market.registry.agents[name].arms[:count]
        ]
        return Task(market.spec, body, arms, _FOR_THE_SEARCH * service.audit_seconds)

    if service.auditing.locked():
        raise Refused(429, "busy", "another audit is running; try again in a moment")
    async with service.auditing:
        task = await service.writer.submit(Do(work))
        text = await _asked(msgspec.json.encode(task), service.audit_seconds)
    reply = msgspec.json.decode(text, type=dict)
    if reply.get("kind") == "failed":
        raise Refused(422, "no_answer", msgspec.convert(reply, WhatIfFailed).message)
    return 200, msgspec.convert(reply, WhatIfView)


async def _asked(task: bytes, seconds: float) -> bytes:
    """The last answer of a process that is stopped when its time is over, or when the caller's is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cloneproof.serve.what_if.answer",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_LONGEST,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018 (both are pipes)
    answer = b""
    try:
        async with asyncio.timeout(seconds):
            process.stdin.write(task)
            process.stdin.close()
            async for line in process.stdout:
                answer = line
            await process.wait()
    except TimeoutError:
        if answer:
            return answer  # a draft
        raise Refused(
            422,
            "too_hard",
            f"the audit takes more than {seconds:g} s; ask about one agent, fewer copies or a shorter horizon",
        ) from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"the audit's process ended with {process.returncode}")
    return answer
