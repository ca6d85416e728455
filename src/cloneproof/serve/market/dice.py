"""Dice of a market: one key for each season, committed to in the ledger's first line and published one by one.

The secret is stored beside the ledger and never in its lines. It determines a chain of keys: the SHA-256 of a season's
key is the key of the previous season, and that of season 1's key is the commitment in the line that opens the market.
The platform is thus bound to the keys of all seasons before anybody registers. A key is published when its season is
settled and reveals nothing about later ones. A session draws from a hash, under its season's key, of the registrations
and of a public beacon's value if the terms name one. Neither is known before registration closes. The draws of an agent
that joins later follow from a hash, under the same key, of its registration and of a new value of the beacon; without
a beacon, of its registration and of the whole ledger.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Any, Final

import msgspec

from cloneproof.serve.market.terms import MOST_SEASONS, invalid

LEAST_SEED: Final = 1 << 48


def make_secret(seed: int | None) -> bytes:
    """Return a market's secret: 256 random bits, or derived from a seed that is too large to be guessed."""
    if seed is None:
        return secrets.token_bytes(32)
    if seed < LEAST_SEED:
        raise invalid(f"expected no seed, or one of at least 2^48 that nobody can guess, got {seed}; leave it out")
    return sha256(b"cloneproof seed" + seed.to_bytes(8, "big")).digest()


@lru_cache(maxsize=100)
def season_keys(secret: bytes, season: int) -> list[bytes]:
    """Return the keys of a market up to a season; number 0 is the commitment.

    >>> keys = season_keys(bytes(32), 2)
    >>> [sha256(key).digest() for key in keys[1:]] == keys[:2]
    True
    """
    key, keys = blake2b(key=secret, digest_size=32, person=b"cloneproof dice").digest(), []
    for number in range(MOST_SEASONS, -1, -1):
        if number <= season:
            keys.append(key)
        key = sha256(key).digest()
    return keys[::-1]


def registration_digest(key: bytes, declared: list[dict[str, Any]]) -> str:
    """Return a hash of all registrations that nobody can guess them from until the season's key is published."""
    return blake2b(msgspec.json.encode(declared), key=key, digest_size=32, person=b"cloneproof arms").hexdigest()


def session_key(key: bytes, market: str, season: int, registered: str, beacon: str | None) -> bytes:
    """Return the seed of a season's session: its key, mixed with the registrations and the beacon's value."""
    mixed = msgspec.json.encode([market, season, registered, beacon])
    return blake2b(mixed, key=key, digest_size=32, person=b"cloneproof start").digest()


class MarketDice:
    """Known keys of a market's seasons: all by the secret, or those that were published."""

    def __init__(self, secret: bytes | None = None, published: Sequence[bytes] = ()) -> None:
        self.secret, self._published = secret, published

    def key(self, season: int) -> bytes | None:
        """Return the key of a season, if it is known; that of season 0 is the commitment."""
        if self.secret is not None:
            return season_keys(self.secret, season)[-1]
        return self._published[season] if season < len(self._published) else None
