"""An audit in a process of its own, below the service's priority and for a limited time."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Final

import msgspec

from cloneproof.errors import Refused
from cloneproof.serve.api.what_if_messages import Task, WhatIfFailed, WhatIfView

SEARCH_FRACTION: Final = 0.3  # of the time limit; the rest is for the start of the process and for proving the best
_MOST_BYTES: Final = 1 << 24  # of an answer


async def run_audit(task: Task, seconds: float) -> WhatIfView:
    """The answer of the process, or a refusal with the sentence that it gave."""
    reply = msgspec.json.decode(await _last_line(msgspec.json.encode(task), seconds), type=dict)
    if reply.get("kind") == "failed":
        raise Refused(422, "no_answer", msgspec.convert(reply, WhatIfFailed).message)
    return msgspec.convert(reply, WhatIfView)


async def _last_line(task: bytes, seconds: float) -> bytes:
    """The last answer of a process that is stopped when its time is over, or when the caller's is."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "cloneproof.serve.what_if.answer",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_MOST_BYTES,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None and process.stdout is not None  # noqa: PT018 (both are pipes)
    answer = b""
    try:
        async with asyncio.timeout(seconds):
            process.stdin.write(task + b"\n")  # and is left open: its end tells the process that this one is gone
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
        process.stdin.close()
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        raise RuntimeError(f"the audit's process ended with {process.returncode}")
    return answer
