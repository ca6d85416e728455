"""The time that an audit may take, and where it reports how far it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

ProgressCallback = Callable[[int, int, str], None]  # (done, total, what)


@dataclass
class Deadline:
    """A budget of seconds since a start (None: no limit), and a listener to progress (None: nobody)."""

    budget: float | None = None
    report: ProgressCallback | None = None
    start: float = field(default_factory=time.perf_counter)
    until: float | None = None  # seconds since the start at which a share of the budget is spent

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.start

    @property
    def left(self) -> float | None:
        """Until the budget is spent."""
        end = self.budget if self.until is None else self.until
        return None if end is None else max(0.0, end - self.seconds)

    def share(self, parts: int) -> Deadline:
        """An earlier deadline for the first of so many equal parts of what is left."""
        return self if self.left is None else replace(self, until=self.seconds + self.left / parts)

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.left == 0.0

    def tell(self, done: int, total: int, what: str) -> None:
        """Report progress, where somebody listens."""
        if self.report is not None:
            self.report(done, total, what)
