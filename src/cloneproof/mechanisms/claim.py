"""A claim about a mechanism, with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """What is claimed of a mechanism, by whom, and what we found: there to be refuted."""

    property: str
    source: str
    finding: str = ""

    def __str__(self) -> str:
        return f"{self.property} ({self.source}{'; ' + self.finding if self.finding else ''})"
