"""Ledger: all events of a market in order, chained by hash.

A line is a small JSON object: `n` counts the market's entries from 1, `at` is the time in milliseconds, `id` a decision
(counted from 1 over all seasons), and money is in whole micro-units. A market can be rebuilt from these lines alone.
The hash of an entry is SHA-256 over the previous hash and the entry's line. Changing, dropping or inserting a line
changes every later hash, which anybody who noted the last hash can detect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import Meta

from cloneproof._lib.ticks import TICK_BITS
from cloneproof.errors import ServeError
from cloneproof.serve.market.terms import MarketSpec, Name, Segments, Title, Weight

FORMAT: Final = 3
"""The format of ledgers, which the opening names; one of another format is refused."""
GENESIS: Final = sha256(b"cloneproof ledger 1").digest()
_HALF: Final = 1 << (TICK_BITS - 1)
SNAPSHOT: Final = 5
"""The version of new snapshots. One of another version is left aside, and its market rebuilt from the ledger."""


class _Entry(msgspec.Struct, tag_field="kind", gc=False):
    """Fields that all lines have."""

    n: int
    at: Annotated[int, Meta(description="milliseconds since 1970")]


Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z")]


class Opened(_Entry, tag="opened", omit_defaults=True):
    """A commitment of the platform to a mechanism, and to the dice of all seasons."""

    spec: MarketSpec
    commitment: Digest
    format: Literal[3]  # FORMAT


class AgentRegistered(_Entry, tag="agent"):
    """An agent, from a season on."""

    agent: Name
    season: int


class ArmRegistered(_Entry, tag="arm", omit_defaults=True):
    """An arm of an agent, from a season on; or a weight of it, if one is declared."""

    agent: Name
    arm: Name
    season: int
    weight: Weight | None = None
    title: Title | None = None


Withdrawer = Literal["agent", "platform"]


class ArmWithdrawn(_Entry, tag="withdrawn", omit_defaults=True):
    """An arm that is shown no more, from this season on: who withdrew it, and why if it was the platform."""

    agent: str
    arm: str
    season: int
    by: Withdrawer
    reason: str | None = None


class ArmPaused(_Entry, tag="pause", omit_defaults=True):
    """An arm (all arms of the agent if none is named) that is not shown until it is resumed, and why; or is again."""

    agent: Name
    season: int
    reason: str
    arm: Name | None = None
    resumed: bool = False


class Started(_Entry, tag="started", omit_defaults=True):
    """Registration closed, with this digest of who takes part with what; the mechanism runs."""

    season: int
    registered: Digest
    beacon: str | None = None


class AgentJoined(_Entry, tag="joined", omit_defaults=True):
    """An agent that joins the season that runs, with this digest of its arms.

    The beacon's value is part of its dice; without one the hash before is.
    """

    agent: str
    season: int
    registered: Digest
    beacon: str | None = None


class Decided(_Entry, tag="decision", omit_defaults=True):
    """Whom to serve, and the conditional probability of this choice (null if it has no formula)."""

    id: int
    agent: str
    arm: str
    phase: str
    probability: float | None
    request: str
    segment: str | None = None


class ShownPlace(msgspec.Struct, gc=False):
    """What a place of a page shows, and the conditional probability of this choice (null if it has no formula)."""

    place: int
    agent: str
    arm: str
    phase: str
    probability: float | None


class SlateDecided(_Entry, tag="slate", omit_defaults=True):
    """A page of so many places: `id` is the decision for the first of those shown, and the next ones follow."""

    id: int
    places: int
    shown: list[ShownPlace]
    request: str
    segment: str | None = None

    @property
    def rounds(self) -> range:
        """Decisions of the page."""
        return range(self.id, self.id + len(self.shown))


class Rewarded(_Entry, tag="reward", omit_defaults=True):
    """A reward, what its owner was paid, and whether it came too late for the mechanism to count it."""

    id: int
    agent: str
    arm: str
    value: float
    paid: int
    event: str
    late: bool = False


class Defaulted(_Entry, tag="default"):
    """A default reward, entered because none arrived in the wait window or before the settlement."""

    id: int
    agent: str
    arm: str
    value: float
    paid: int
    because: Literal["window", "settlement"]
    request: str


class Late(_Entry, tag="late"):
    """A reward that arrived after the default was entered: recorded, without payment or effect."""

    id: int
    value: float
    event: str
    agent: str
    arm: str


class NobodyLeft(_Entry, tag="nobody", omit_defaults=True):
    """Withdrawals have left nobody to serve, so the season (or a segment of it) has no further round."""

    season: int
    segment: str | None = None


class Ended(_Entry, tag="ended"):
    """An end of the season by the platform before its last round, for this reason."""

    season: int
    reason: str


class Settled(_Entry, tag="settled"):
    """A settlement: the season is over and paid; the key of its dice is published."""

    season: int
    key: Digest


class SeasonOpened(_Entry, tag="season", omit_defaults=True):
    """A new season is open for registration; with the segments from then on, if they changed."""

    season: int
    segments: Segments | None = None


Entry = (
    Opened
    | AgentRegistered
    | ArmRegistered
    | ArmWithdrawn
    | ArmPaused
    | Started
    | AgentJoined
    | Decided
    | SlateDecided
    | Rewarded
    | Defaulted
    | Late
    | NobodyLeft
    | Ended
    | Settled
    | SeasonOpened
)

Made = Decided | SlateDecided  # what a request is answered with: a market has one kind

_encoder, _decoder = msgspec.json.Encoder(), msgspec.json.Decoder(Entry)
encode = _encoder.encode


class _Versioned(msgspec.Struct):
    """Kind of an entry, the format that an opening names, and the version of a snapshot."""

    kind: str = ""
    format: int = 1
    version: int = 0


def _version_of(text: str | bytes) -> _Versioned:
    try:
        return msgspec.json.decode(text, type=_Versioned)
    except msgspec.MsgspecError:
        return _Versioned()


def decode(line: str | bytes) -> Entry:
    """Return the entry of a line; an error that says so if its ledger has another format."""
    try:
        entry: Entry = _decoder.decode(line)
        return entry
    except msgspec.MsgspecError:
        found = _version_of(line)
        if found.kind == "opened" and found.format != FORMAT:
            raise ServeError(
                f"expected a ledger of format {FORMAT}, got format {found.format}; use the cloneproof that wrote it"
            ) from None
        raise


def encode_lines(entries: Sequence[Entry]) -> list[bytes]:
    """Return the line of each entry."""
    return _encoder.encode_lines(entries).split(b"\n")[:-1]  # there are no line feeds in encoded JSON


Known = dict[str, Any]  # entries by their keys


def keys_of(entry: Entry) -> tuple[str, ...]:
    """Return the keys by which an entry is found again: q:request, e:event, and d: or l:decision.

    The last two are of a default and of a late reward.

    >>> keys_of(Late(7, 0, 3, 1.0, "click-9", "ana", "a"))
    ('e:click-9', 'l:3')
    """
    if type(entry) is Decided or type(entry) is SlateDecided:
        return (f"q:{entry.request}",)
    if type(entry) is Rewarded:
        return (f"e:{entry.event}",)
    if type(entry) is Defaulted:
        return (f"d:{entry.id}",)
    return (f"e:{entry.event}", f"l:{entry.id}") if type(entry) is Late else ()


def by_key(entries: Iterable[Entry]) -> Known:
    """Return those entries that have keys, by each of these."""
    return {key: entry for entry in entries for key in keys_of(entry)}


class Head(NamedTuple):
    """Where a chain ends: the number of its last entry and the hash over everything up to it."""

    n: int
    hash: bytes


EMPTY: Final = Head(0, GENESIS)


class Appended(NamedTuple):
    """New entries of a chain, their lines, and the hash after each."""

    first: int
    before: bytes
    lines: list[bytes]
    hashes: list[bytes]
    entries: list[Entry]
    secret: bytes | None = None  # of a new market; stored beside its ledger


class Chain:
    """End of a ledger in memory: entries appended since the last `take`, which are still to be stored."""

    def __init__(self, head: Head = EMPTY) -> None:
        self.n, self.hash = head
        self._before = self.hash
        self._lines: list[bytes] = []
        self._hashes: list[bytes] = []
        self._entries: list[Entry] = []

    def append(self, *entries: Entry) -> None:
        """Chain entries; the `n` of the first must be the next one."""
        assert entries[0].n == self.n + 1
        lines = encode_lines(entries)
        self._lines += lines
        self._hashes += chain_hashes(self.hash, lines)
        self._entries += entries
        self.hash = self._hashes[-1]
        self.n += len(entries)

    @property
    def head(self) -> Head:
        return Head(self.n, self.hash)

    def take(self) -> Appended | None:
        """Return what is new since the last call."""
        if not self._lines:
            return None
        appended = Appended(self.n - len(self._lines) + 1, self._before, self._lines, self._hashes, self._entries)
        self._before, self._lines, self._hashes, self._entries = self.hash, [], [], []
        return appended


def chain_hashes(hash_before: bytes, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the hash after each line.

    >>> [digest.hex()[:8] for digest in chain_hashes(GENESIS, [b"a", b"b"])]
    ['41a5179a', '8b803532']
    """
    for line in lines:
        hash_before = sha256(hash_before + line).digest()
        yield hash_before


def payment(reward_ticks: int, share_micro: int) -> int:
    """Return the payment for a reward in whole micro-units, rounded half up; integers only, so equal on every machine.

    >>> from cloneproof._lib.ticks import ticks
    >>> payment(ticks(0.5), 1_000_000), payment(ticks(1.0), 400_000), payment(ticks(0.3333333), 1_000_000)
    (500000, 400000, 333333)
    """
    return (reward_ticks * share_micro + _HALF) >> TICK_BITS


class Unsealed(NamedTuple):
    """A text with a valid digest, the head that it belongs to, and the version that it says it has."""

    head: Head
    text: bytes
    version: int


def seal(head: Head, text: bytes) -> bytes:
    """Return the text with its head and digest.

    >>> unseal(seal(Head(3, bytes(32)), b"state")).text
    b'state'
    """
    rest = b"%d %s\n%s" % (head.n, head.hash.hex().encode(), text)
    return sha256(rest).hexdigest().encode() + b" " + rest


def unseal(sealed: bytes) -> Unsealed | None:
    """Return the sealed text; None if the digest does not fit."""
    digest, _, rest = sealed.partition(b" ")
    if sha256(rest).hexdigest().encode() != digest:
        return None
    header, _, text = rest.partition(b"\n")
    number, hash_ = header.split(b" ")
    return Unsealed(Head(int(number), bytes.fromhex(hash_.decode())), text, _version_of(text).version)
