"""Service that handlers get: the writer over a storage, the metrics, the API keys and the rate limit of agents.

API keys are `cp_ID_SECRET`. Storage has the hash of the secret; a key is shown once and never logged. The secret has
256 random bits and cannot be guessed, so one SHA-256 is enough.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.http.monitoring import Metrics
from cloneproof.serve.market.terms import Role, invalid
from cloneproof.serve.storage.storage import KeyRecord, Storage
from cloneproof.serve.writer.writer import Writer

log = logging.getLogger("cloneproof.serve")
_NOBODY = bytes(32)
_WHOLE = re.compile(r"cp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_LONGEST = 4096  # characters of a file with a key
MOST_BYTES: Final = 1 << 20  # of a request


def new_key(role: Role, agent: str | None, created: int) -> tuple[str, KeyRecord]:
    """Make a new key: as its owner gets it, and as it is stored."""
    if (role == "agent") != (agent is not None):
        raise invalid("a key of role agent names its agent, and only such a key does; correct the request")
    number, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return f"cp_{number}_{secret}", KeyRecord(number, role, agent, sha256(secret.encode()).digest(), created)


def key_from_file(path: str, role: Role, created: int) -> KeyRecord:
    """Return the key in an operator's file, such as a container's secret, as it is stored."""
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(_LONGEST).strip()
            if os.fstat(file.fileno()).st_mode & 0o077:
                log.warning("others than its owner may read the key in %r; chmod 600 it", path)
    except (OSError, UnicodeDecodeError) as problem:
        raise ServeError(f"expected a file with a key, got {path!r} ({type(problem).__name__}); check it") from None
    match = _WHOLE.fullmatch(text)
    if match is None:
        raise ServeError(
            f"expected a key cp_.. in {path!r}, got something else; "
            f"make one with cloneproof serve :memory: --create-key {role}"
        )
    return KeyRecord(match[1], role, None, sha256(match[2].encode()).digest(), created)


def by_id(records: Iterable[KeyRecord]) -> dict[str, KeyRecord]:
    """Return keys by their ids."""
    return {record.id: record for record in records}


def install_keys(storage: Storage, records: list[KeyRecord]) -> None:
    """Store keys that are new. A revoked key stays revoked until the file has another one."""
    known = by_id(storage.keys() if records else [])
    for record in records:
        old = known.get(record.id)
        if old is None:
            storage.put_key(record)
        elif (old.hash, old.role) != (record.hash, record.role):
            raise ServeError(
                f"expected a new key or the one that is known as {record.id}, got another secret or role; "
                "make a new key for the file"
            )


def key_holder(keys: Mapping[str, KeyRecord], header: bytes | None) -> KeyRecord:
    """Return the key in this Authorization header; the comparison takes the same time for every wrong key."""
    text = (header or b"").decode("latin-1")
    scheme, _, key = text.partition(" ")
    prefix, _, rest = key.strip().partition("_")
    number, _, secret = rest.partition("_")
    record = keys.get(number)
    expected = _NOBODY if record is None else record.hash
    fits = hmac.compare_digest(sha256(secret.encode("utf-8")).digest(), expected)
    if not fits or record is None or record.revoked or scheme.lower() != "bearer" or prefix != "cp":
        raise _unauthorized()
    return record


def _unauthorized() -> Refused:
    return Refused(401, "unauthorized", "expected a valid key as 'Authorization: Bearer cp_..'; check the key")


class RateLimit:
    """A token bucket for each key: `rate` calls a second on average, twice as many at once."""

    def __init__(self, rate: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.rate, self._clock = rate, clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def check(self, key: str) -> None:
        """Refuse a call that comes too soon."""
        if self.rate is None:
            return
        now, most = self._clock(), 2 * self.rate
        tokens, then = self._buckets.get(key, (most, now))
        tokens = min(most, tokens + (now - then) * self.rate)
        if tokens < min(1, most):
            self._buckets[key] = (tokens, now)
            raise Refused(429, "too_many_requests", f"expected at most {self.rate:g} calls a second; wait a little")
        self._buckets[key] = (tokens - 1, now)


class Intervals(NamedTuple):
    """How often a service asks its storage, in seconds.

    keys   after which keys that another process made or revoked are known here
    pause  between two readings of keys because of an unknown one
    probe  between two test writes
    reply  how long storage may take for a test write
    """

    keys: float = 1.0
    pause: float = 0.1
    probe: float = 1.0
    reply: float = 2.0


INTERVALS: Final = Intervals()


class Service:
    """Everything that a handler may need: a writer, the keys of its storage, the rate limit of agents, the metrics."""

    def __init__(self, writer: Writer, agent_rate: float | None = 20.0, intervals: Intervals = INTERVALS) -> None:
        self.intervals = intervals
        self.writer, self.metrics, self.agent_limit = writer, Metrics(writer), RateLimit(agent_rate)
        self.keys, self.keys_read = by_id(writer.storage.keys()), time.monotonic()
        self.reading: asyncio.Task[list[KeyRecord]] | None = None  # of keys
        self.probe: asyncio.Task[None] | None = None  # a test write
        self.probed = 0.0

    async def caller(self, header: bytes | None) -> KeyRecord:
        """Return the key in this Authorization header; other processes may make and revoke keys too."""
        if not self.writer.storage.shared:
            return key_holder(self.keys, header)
        if time.monotonic() - self.keys_read > self.intervals.keys:
            await self._read_keys()
        try:
            return key_holder(self.keys, header)
        except Refused:
            if time.monotonic() - self.keys_read < self.intervals.pause:
                raise
        await self._read_keys()
        return key_holder(self.keys, header)

    async def check_still_valid(self, caller: KeyRecord) -> None:
        """Refuse a caller whose key was revoked since it was checked."""
        if self.writer.storage.shared and time.monotonic() - self.keys_read > self.intervals.keys:
            await self._read_keys()
        record = self.keys.get(caller.id)
        if record is None or record.revoked:
            raise _unauthorized()

    async def _read_keys(self) -> None:
        """Read the keys once for all waiting calls, so that none waits for several readings of a slow storage."""
        begun = time.monotonic()
        if self.reading is None or self.reading.done():
            self.reading = asyncio.create_task(self.writer.threads.read(self.writer.storage.keys))
        self.keys = by_id(await asyncio.shield(self.reading))
        self.keys_read = begun

    async def check_ready(self) -> None:
        """Raise an error unless the markets are read and a test write, at most one a second, succeeds."""
        self.writer.storage.check()
        if not self.writer.ready:
            raise Refused(503, "storage", "storage is not available")
        if self.probe is None or (self.probe.done() and time.monotonic() - self.probed > self.intervals.probe):
            self.probed = time.monotonic()
            self.probe = asyncio.create_task(self.writer.threads.storage(self.writer.storage.probe))
        try:
            await asyncio.wait_for(asyncio.shield(self.probe), self.intervals.reply)
        except Exception as problem:
            raise Refused(503, "storage", f"storage cannot be written to ({type(problem).__name__})") from None
