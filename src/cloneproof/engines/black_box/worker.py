"""The child: a process that plays runs of black boxes as it is told, and says of each how it went."""

from __future__ import annotations

import pickle
import signal
import traceback
from collections.abc import MutableSequence
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import NamedTuple

from cloneproof.engines.black_box.failure import BlackBoxError, said
from cloneproof.engines.black_box.play import Player
from cloneproof.engines.reference import Run


class Ready(NamedTuple):
    """The worker has understood the job."""


class Unreadable(NamedTuple):
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


def work(line: Connection, board: MutableSequence[float]) -> None:
    """Serve until the line is closed: a job as bytes, or a range of its runs."""
    player: Player | None = None
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's affair, and it ends us
    with suppress(EOFError, BrokenPipeError):
        while True:
            order = line.recv()
            if isinstance(order, bytes):
                try:
                    player = Player(pickle.loads(order), board)
                except Exception as error:
                    line.send(Unreadable(said(error)))
                else:
                    line.send(Ready())
                continue
            assert player is not None
            for number in order:
                try:
                    run = player.run(number)
                except BlackBoxError as error:
                    line.send(RunFailed(number, str(error), "".join(traceback.format_exception(error))))
                    return
                line.send(RunDone(number, run))
