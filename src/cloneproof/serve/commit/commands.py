"""Commands: what can be asked of the markets, which old entries it needs to see, and what it does.

A command runs between two commits, so nothing happens at the same time. Its reply is sent after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, Self

from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets

LATER: Final = object()
"""The reply of a command that has more to do, and is to be run again in the next group, before others of its market."""


class Command(Protocol):
    """Something to be done between two commits."""

    @property
    def market(self) -> str:
        """The market that it is about; empty where it is about none that exists."""

    @property
    def size(self) -> int:
        """How many items it has."""

    def part(self, start: int, most: int) -> Self:
        """The command for its items from `start` on, at most so many; itself where it cannot be divided."""

    def wanted_keys(self, markets: ServedMarkets) -> tuple[int, Sequence[str]] | None:
        """The market and the keys whose old entries must be known."""

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        """Do it; the reply."""


@dataclass(frozen=True, slots=True)
class Do:
    """Anything that needs no old entries."""

    market: str
    work: Callable[[ServedMarkets, int], Any]
    size = 1

    def part(self, start: int, most: int) -> Do:
        return self

    def wanted_keys(self, markets: ServedMarkets) -> None:
        """None."""

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        return self.work(markets, now)
