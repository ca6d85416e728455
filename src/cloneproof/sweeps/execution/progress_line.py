"""How far a sweep is, in one line: for a terminal's bar, and once a minute for the log in the store."""

from __future__ import annotations

import time
from datetime import datetime
from pathlib import Path

from cloneproof.sweeps.execution.sweep_run import SweepState

LOG_SECONDS = 60.0


def line(state: SweepState) -> str:
    """Throughput and time left.

    >>> state = SweepState(points=200, parts=200, missing=200, reused=0, begun=time.monotonic() - 100)
    >>> state.finished, state.chunks, state.runs, state.workers, state.left_seconds = 40, 61, 1_200_000, 2, 400.0
    >>> line(state)
    '40 of 200 parts, 61 chunks, 1.2e+06 runs, 1.2e+04 runs/s on 2 workers, 6 min 40 s left'
    """
    parts = f"{state.finished} of {state.missing} parts, {state.chunks} chunks"
    if state.runs:
        parts += f", {state.runs:.3g} runs, {state.runs / max(state.seconds, 1e-9):.2g} runs/s"
    parts += f" on {state.workers} worker{'s' if state.workers != 1 else ''}"
    if state.finished == state.missing:
        return parts
    return f"{parts}, {duration(state.left_seconds) + ' left' if state.chunks else 'time left not known yet'}"


def duration(seconds: float) -> str:
    """Two units of time.

    >>> duration(7.6), duration(61), duration(100_000)
    ('8 s', '1 min 1 s', '1 d 3 h')
    """
    left, words = round(seconds), list[str]()
    for unit, name in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if left >= unit:
            words.append(f"{left // unit} {name}")
            left %= unit
        elif words:
            break
    return " ".join(words[:2]) or "0 s"


class ProgressLog:
    """A line when the sweep begins, one a minute, one at the end; a log that cannot be written stops nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._last = time.monotonic()

    def __call__(self, state: SweepState) -> None:
        """Maybe a line."""
        if time.monotonic() - self._last >= LOG_SECONDS:
            self.say(line(state))

    def say(self, text: str) -> None:
        """A line now."""
        self._last = time.monotonic()
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(f"{datetime.now().astimezone().isoformat(timespec='seconds')} {text}\n")
        except OSError:
            pass
