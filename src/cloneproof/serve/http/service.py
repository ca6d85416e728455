"""A service: the writer over a storage, the keys, the limits, the metrics. What handlers are given."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from cloneproof.serve.http.keys import KeyRing
from cloneproof.serve.http.limits import RateLimit
from cloneproof.serve.http.metrics import Metrics
from cloneproof.serve.writer import Writer


@dataclass
class Service:
    """Everything that a call may need."""

    writer: Writer
    keys: KeyRing
    agent_limit: RateLimit = field(default_factory=lambda: RateLimit(20.0))
    metrics: Metrics = field(default_factory=Metrics)
    auditing: asyncio.Lock = field(default_factory=asyncio.Lock)
    audit_seconds: float = 30.0  # the longest that "what would a copy earn?" may take

    @classmethod
    def over(cls, writer: Writer, agent_rate: float | None = 20.0) -> Service:
        """A service over a writer, with the keys of its storage."""
        return cls(writer, KeyRing(writer.storage.keys()), RateLimit(agent_rate))
