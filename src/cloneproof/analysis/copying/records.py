"""Arms with their texts, and what their texts say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ArmRecord:
    """An arm of a log: whose it is, and a text (a title, a landing page, an image hash) under each name, if known."""

    agent: str
    arm: str
    features: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Duplicates:
    """Arms whose text under one name (a title, an address, or "arm" for their own names) is equal or names one item."""

    feature: str
    equal: bool
    text: str
    arms: tuple[tuple[str, str], ...]

    @property
    def agents(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(agent for agent, _ in self.arms))
