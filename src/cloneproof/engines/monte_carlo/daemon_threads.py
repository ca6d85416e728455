"""Threads that nobody waits for: a kernel that outlives its budget keeps neither the caller nor the interpreter."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")
_Task = tuple[Future[Any], Callable[[], Any]]


class DaemonThreads(Executor):
    """That many daemon threads, which take what is submitted in order.

    The pool of the standard library joins its threads when the interpreter ends, however long they take.

    >>> pool = DaemonThreads(2)
    >>> pool.submit(pow, 2, 10).result()
    1024
    >>> pool.shutdown(wait=False)
    """

    def __init__(self, threads: int) -> None:
        self.tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self.threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:  # noqa: ANN401
        """The future of a call."""
        future: Future[T] = Future()
        self.tasks.put((future, lambda: work(*arguments, **named)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads when they are done with what they have, or before what is waiting."""
        while cancel_futures and not self.tasks.empty():
            task = self.tasks.get()
            if task is not None:
                task[0].cancel()
        for _ in self.threads:
            self.tasks.put(None)
        for thread in self.threads if wait else ():
            thread.join()

    def _serve(self) -> None:
        while (task := self.tasks.get()) is not None:
            future, work = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
