"""The CUDA C++ source as one text, and the options with which it is compiled."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from cloneproof.engines.reference import SESSION_STREAM, TAPE_STREAM
from cloneproof.mechanisms.online.streams import (
    COIN_STREAM,
    DRAW_STREAM,
    EXPLORE_STREAM,
    LEVELS_STREAM,
    SAMPLE_STREAM,
    STATE_STREAM,
    TIE_STREAM,
)

FOLDER: Final = Path(__file__).parent / "source"
_STREAMS: Final = {
    "TAPE_STREAM": TAPE_STREAM, "SESSION_STREAM": SESSION_STREAM, "STATE_STREAM": STATE_STREAM,
    "LEVELS_STREAM": LEVELS_STREAM, "SAMPLE_STREAM": SAMPLE_STREAM, "EXPLORE_STREAM": EXPLORE_STREAM,
    "TIE_STREAM": TIE_STREAM, "COIN_STREAM": COIN_STREAM, "DRAW_STREAM": DRAW_STREAM,
}  # fmt: skip


@cache
def source_text() -> str:
    """`kernels.cu` with every header in its place once, so that a compiler's cache sees all of it."""
    seen: set[str] = set()

    def text(name: str) -> str:
        if name in seen:
            return ""
        seen.add(name)
        whole = (FOLDER / name).read_text().replace("#pragma once\n", "")
        return re.sub(r'#include "(\w+\.h)"\n', lambda found: text(found[1]), whole)

    return text("kernels.cu")


def definitions(threads: int, kernel: int = 0, arms: int = 0, levels: int = 0, shared: bool = False) -> tuple[str, ...]:
    """The macros of a build."""
    numbers = {**_STREAMS, "THREADS": threads, "KERNEL": kernel, "ARMS": arms, "LEVELS": levels, "SHARED": int(shared)}
    return tuple(f"-D{name}={number}" for name, number in numbers.items())
