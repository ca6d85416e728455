"""Statistics are never cleared."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.mechanisms.part import Restart


@dataclass(frozen=True)
class Never(Restart):
    """No restart."""

    name = "never"

    def words(self, rules: str) -> str:
        return rules

    def to_dict(self) -> None:
        return None
