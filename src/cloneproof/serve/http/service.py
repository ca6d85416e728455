"""A service: the writer over a storage, the keys, the limits, the metrics. What handlers are given."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import Final

from cloneproof.errors import Refused
from cloneproof.serve.commit.group_writer import Writer
from cloneproof.serve.commit.shared_writer import SharedWriter
from cloneproof.serve.http.keys import Caller, KeyRing
from cloneproof.serve.http.metrics import Metrics
from cloneproof.serve.http.request_limits import RateLimit

_KEYS_AGE: Final = 1.0  # seconds until keys that another process made or revoked are known here
_KEYS_PAUSE: Final = 0.1  # at most this often are they read for the sake of a key that is not known


@dataclass
class Service:
    """Everything that a call may need."""

    writer: Writer
    keys: KeyRing
    agent_limit: RateLimit = field(default_factory=lambda: RateLimit(20.0))
    metrics: Metrics = field(default_factory=Metrics)
    audit_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    audit_seconds: float = 30.0  # the longest that "what would a copy earn?" may take
    keys_read: float = field(default_factory=time.monotonic)

    @classmethod
    def from_writer(cls, writer: Writer, agent_rate: float | None = 20.0) -> Service:
        """A service over a writer, with the keys of its storage."""
        return cls(writer, KeyRing(writer.storage.keys()), RateLimit(agent_rate))

    async def caller(self, header: bytes | None) -> Caller:
        """Who sent this Authorization header, where other processes make and revoke keys as well."""
        if not isinstance(self.writer, SharedWriter):
            return self.keys.caller(header)
        if time.monotonic() - self.keys_read > _KEYS_AGE:
            await self._read_keys()
        try:
            return self.keys.caller(header)
        except Refused:
            if time.monotonic() - self.keys_read < _KEYS_PAUSE:
                raise
        await self._read_keys()
        return self.keys.caller(header)

    async def check_still_valid(self, caller: Caller) -> None:
        """Refuse a caller whose key was revoked since it was looked at."""
        if isinstance(self.writer, SharedWriter) and time.monotonic() - self.keys_read > _KEYS_AGE:
            await self._read_keys()
        self.keys.check_still_valid(caller)

    async def _read_keys(self) -> None:
        before, self.keys_read = self.keys_read, time.monotonic()
        try:
            self.keys = KeyRing(await self.writer.read(self.writer.storage.keys))
        except BaseException:
            self.keys_read = before
            raise
