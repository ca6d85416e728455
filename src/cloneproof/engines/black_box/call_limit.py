"""A time limit for each call of a black box.

In the main thread of a POSIX process an interval timer interrupts a call that runs too long, sleeping or busy; only
compiled code that never comes back to the interpreter escapes it. In another thread, or on another platform, there is
no such timer: a call that takes too long is reported when it returns, and one that never returns hangs. Worker
processes (`workers.py`) have neither gap, on any platform: each writes into a shared array since when it has been in a
call, and the parent kills it when that is too long ago.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, MutableSequence
from time import monotonic
from types import FrameType, TracebackType
from typing import Any, Final, ParamSpec, TypeVar

RUN, ROUND, CALL, SINCE = range(4)
CALL_STATE_SIZE: Final = 4
IDLE: Final = float("inf")
CALLS: Final = ("factory(view)", "select()", "update(arm, reward)")

P = ParamSpec("P")
R = TypeVar("R")


class CallTimeout(BaseException):
    """Raised inside a call that has run too long."""


class CallLimit:
    """Makes calls, each within `seconds`; a context manager that gives the process back the alarm that it had.

    `call_state` is where the parent of a worker process reads which call is under way (see `workers.py`).
    """

    def __init__(self, seconds: float, call_state: MutableSequence[float] | None = None) -> None:
        self.seconds = seconds
        self.call_state: MutableSequence[float] = [0.0] * CALL_STATE_SIZE if call_state is None else call_state
        self.timed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        self.armed = False

    def __enter__(self) -> CallLimit:
        if self.timed:
            self.entered = monotonic()
            self.alarm = signal.getitimer(signal.ITIMER_REAL)
            self.handler: Any = signal.signal(signal.SIGALRM, self._ring)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.call_state[SINCE] = IDLE
        if self.timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self.handler)
            left, interval = self.alarm
            if left:
                signal.setitimer(signal.ITIMER_REAL, max(left - (monotonic() - self.entered), 1e-6), interval)

    def __call__(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call it, or raise `CallTimeout`."""
        start = self.call_state[SINCE] = monotonic()
        if not self.timed:
            result = function(*args, **kwargs)
        else:
            self.armed = True
            # Again and again: a policy with a bare `except:` may swallow the first.
            signal.setitimer(signal.ITIMER_REAL, self.seconds, self.seconds)
            try:
                result = function(*args, **kwargs)
            finally:
                self.armed = False
                signal.setitimer(signal.ITIMER_REAL, 0)
        if monotonic() - start > self.seconds:
            raise CallTimeout
        return result

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self.armed:  # else it rang just after the call had returned
            raise CallTimeout
