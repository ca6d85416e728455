"""The child: a process that plays runs of black boxes as it is told, and says of each how it went."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import MutableSequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

from cloneproof.engines.black_box.failure import BlackBoxError, exception_text
from cloneproof.engines.black_box.play import Player
from cloneproof.engines.reference import Run


class JobReady(NamedTuple):
    """The worker has understood the job."""


class JobUnreadable(NamedTuple):
    """The worker cannot make sense of the job, for this reason."""

    reason: str


class RunDone(NamedTuple):
    """One run is over."""

    number: int
    run: Run


class RunFailed(NamedTuple):
    """One run went wrong; the worker has stopped."""

    number: int
    message: str
    trace: str


def work(connection: Connection, call_state: MutableSequence[float]) -> None:
    """Serve until the connection is closed: a job as bytes, or a range of its runs."""
    player: Player | None = None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair, and it ends us
    with suppress(EOFError, BrokenPipeError):
        while True:
            order = connection.recv()
            if isinstance(order, bytes):
                try:
                    player = Player(pickle.loads(order), call_state)
                except Exception as error:
                    connection.send(JobUnreadable(exception_text(error)))
                else:
                    connection.send(JobReady())
                continue
            assert player is not None
            for number in order:
                try:
                    run = player.run(number)
                except BlackBoxError as error:
                    connection.send(RunFailed(number, str(error), "".join(traceback.format_exception(error))))
                    return
                connection.send(RunDone(number, run))
