"""Command line: `cloneproof COMMAND`. Data on stdout, progress and errors on stderr.

Exit codes: 0 done, 2 bad input, 3 out of time with questions left, 70 a bug in cloneproof, 130 interrupted (with what
there was, marked partial).
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from types import FrameType

from cloneproof._lib.clock import process_began
from cloneproof.errors import CloneproofError, OutOfTimeError

PATIENCE = 0.8  # seconds that a command has after Ctrl-C to say what there is
WORKER = "cloneproof-work"  # name of a thread of `runs.sampler`, which loads late
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def command() -> None:
    """Run the command line as a process of its own, whose --seconds begin with it and end it."""
    try:
        main(process_began())
    except SystemExit as end:
        sys.stdout.flush()
        if any(thread.name == WORKER for thread in threading.enumerate()):  # for what there was no time
            _leave(int(end.code or 0))
        raise


def main(since: float | None = None) -> None:
    """Run the command line; every error that the user can fix is one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without the letters of a name still gets its table
    try:
        with _prompt_interrupts() as interrupted:
            try:
                from cloneproof.cli.app import app
                from cloneproof.cli.options import SINCE

                SINCE.set(since)
                app()
            except SystemExit as end:
                sys.stdout.flush()  # now, while an error can still be told
                if interrupted.is_set():
                    _leave()
                raise end
    except OutOfTimeError as error:
        _end(str(error), 3)
    except CloneproofError as error:
        _end(str(error), 2)
    except KeyboardInterrupt:  # before a command began
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough, e.g. `| head`
        _discard_output()
        sys.exit(141)
    except BrokenExecutor:
        got = "one that was killed, perhaps for want of memory"
        _end(f"expected worker processes to live, got {got}; run it again with more memory", 2)
    except Exception as problem:
        if isinstance(problem, OSError) and problem.errno in NO_ROOM:
            _discard_output()
            _end(f"expected room to write to, got: {problem.strerror}; make room, or write elsewhere", 2)
        traceback.print_exc()
        _end("this is a fault of cloneproof, not of your input; please report the lines above", 70)


def _end(sentence: str, code: int) -> None:
    print(f"error: {sentence}", file=sys.stderr)
    sys.exit(code)


def _leave(code: int = 130) -> None:
    """Exit, as interrupted, without waiting for threads and processes that still compute."""
    for child in active_children():
        child.kill()
    sys.stderr.flush()
    os._exit(code)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _prompt_interrupts() -> Iterator[threading.Event]:
    """Exit with code 130 within a second of Ctrl-C, whatever is being computed.

    Compiled code and joined workers keep Python's own handler waiting. The byte that every signal writes to the pipe
    wakes a thread anyway. A service handles signals itself.
    """
    interrupted = threading.Event()
    if threading.current_thread() is not threading.main_thread() or sys.argv[1:2] == ["serve"]:
        yield interrupted
        return
    readable, writable = os.pipe()
    os.set_blocking(writable, False)

    def watch() -> None:
        while (number := os.read(readable, 1)) != b"":
            if number[0] == signal.SIGINT:
                interrupted.set()
                if not over.wait(PATIENCE):
                    os.write(2, b"interrupted\n")
                    _leave()

    def told(number: int, frame: FrameType | None) -> None:
        interrupted.set()  # before the command can end, which may be sooner than the other thread wakes
        signal.default_int_handler(number, frame)

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        signal.signal(signal.SIGINT, told)
    over, before = threading.Event(), signal.set_wakeup_fd(writable)
    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield interrupted
    finally:
        over.set()
        if usual:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.set_wakeup_fd(before)
        os.close(writable)
        thread.join()
        os.close(readable)
