"""Every reward of an agent counts towards its score, those of its exploration included."""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.mechanisms.part import Score


@dataclass(frozen=True)
class AllRewards(Score):
    """Average of all rewards, as in the paper."""

    name = "all"

    @property
    def words(self) -> str:
        return ""
