"""A claim about a mechanism, with its source."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """What is claimed of a mechanism, by whom, and what we found: there to be refuted.

    Parameters
    ----------
    property : str
        What is claimed.
    source : str
        Where it is claimed.
    finding : str, optional
        What we found.
    """

    property: str
    source: str
    finding: str = ""

    def __str__(self) -> str:
        return f"{self.property} ({self.source}{'; ' + self.finding if self.finding else ''})"
