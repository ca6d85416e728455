"""Commands: what can be asked of the markets, which old entries it needs to see, and what it does.

A command runs between two commits, so nothing happens at the same time. Its reply is sent after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets


class Command(Protocol):
    """Something to be done between two commits."""

    @property
    def size(self) -> int:
        """How many items it has."""

    def wanted_keys(self, markets: ServedMarkets) -> tuple[int, Sequence[str]] | None:
        """The market and the keys whose old entries must be known."""

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        """Do it; the reply."""


@dataclass(frozen=True, slots=True)
class Do:
    """Anything that needs no old entries."""

    work: Callable[[ServedMarkets, int], Any]
    size = 1

    def wanted_keys(self, markets: ServedMarkets) -> None:
        """None."""

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        return self.work(markets, now)
