"""The dice of a season: drawn from the market's secret, committed to before anybody registers, published at the end.

The secret is stored beside the ledger and is in none of its lines. From it follow, by a keyed hash, the seed and a salt
for each season; the line that opens a season has the SHA-256 of both, the line that settles it has both themselves.
So nobody can predict a decision while it matters, and afterwards everybody can check that the dice were those that the
platform had committed to. A published season says nothing of the others, as far as BLAKE2 hides its key.

Markets that were opened before this have their seed in their first line; they go on as they were.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha256
from typing import Final, NamedTuple

from cloneproof._randomness import word
from cloneproof.errors import Refused
from cloneproof.serve.ledger.entries import Entry, Opened, SeasonOpened, Settled

LEAST_SEED: Final = 1 << 48


class SeasonDice(NamedTuple):
    """The seed of a season's session, and the salt without which its commitment could be searched for the seed."""

    seed: int
    salt: str


def commitment(market: str, season: int, dice: SeasonDice) -> str:
    """What the platform says of the dice before a season.

    >>> commitment("feed", 1, SeasonDice(7, "00"))[:16]
    '7135eafb874cd0e5'
    """
    return sha256(f"cloneproof dice {market} {season} {dice.seed} {dice.salt}".encode()).hexdigest()


def make_secret(seed: int | None) -> bytes:
    """A market's secret: 256 random bits, or what follows from a seed that is too large to be guessed."""
    if seed is None:
        return secrets.token_bytes(32)
    if seed < LEAST_SEED:
        raise Refused(
            422,
            "invalid",
            f"expected no seed, or one of at least 2^48 that nobody can guess, got {seed}; leave it out",
        )
    return sha256(b"cloneproof seed" + seed.to_bytes(8, "big")).digest()


def season_dice(secret: bytes, season: int) -> SeasonDice:
    """The dice of a season."""
    digest = blake2b(season.to_bytes(8, "big"), key=secret, digest_size=24, person=b"cloneproof dice").digest()
    return SeasonDice(int.from_bytes(digest[:8], "big") >> 1, digest[8:].hex())


class MarketDice:
    """The dice of all seasons of a market, as far as they are known: by the secret, or because they were published."""

    def __init__(
        self,
        market: str,
        secret: bytes | None = None,
        published: Mapping[int, SeasonDice] | None = None,
        committed: Mapping[int, str] | None = None,
    ) -> None:
        self.secret = secret
        self._market, self._published, self._committed = market, published or {}, committed or {}

    def season(self, season: int) -> SeasonDice | None:
        """The dice of a season, if they are known."""
        return self._published.get(season) if self.secret is None else season_dice(self.secret, season)

    def commitment(self, season: int) -> str | None:
        """What was, or is to be, said of a season's dice beforehand."""
        dice = self.season(season)
        return self._committed.get(season) if dice is None else commitment(self._market, season, dice)


def published_dice(market: str, entries: Iterable[Entry]) -> MarketDice:
    """The dice as a ledger tells them, for whoever does not have the secret."""
    published, committed = dict[int, SeasonDice](), dict[int, str]()
    for entry in entries:
        if isinstance(entry, Settled) and entry.seed is not None and entry.salt is not None:
            published[entry.season] = SeasonDice(entry.seed, entry.salt)
        elif isinstance(entry, Opened | SeasonOpened) and entry.commitment is not None:
            committed[entry.season if isinstance(entry, SeasonOpened) else 1] = entry.commitment
    return MarketDice(market, None, published, committed)


def old_season_seed(seed: int, season: int) -> int:
    """The seed of a season where that of the market is in its first line: the same, or a hash of it after season 1."""
    return seed if season == 1 else word(seed, season) >> 1
