"""The lines of the ledger: everything that ever happened in a market, in the order in which it counted.

A line is a small JSON object; its `n` counts the market's entries from 1, `at` is the time in milliseconds, `id` a
decision (counted from 1 over all seasons), money is in whole micro-units. From these lines alone a market can be
rebuilt, which is what a restart and `cloneproof replay` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from cloneproof.serve.ledger.terms import MarketSpec


class _Entry(msgspec.Struct, tag_field="kind", gc=False):
    """What every line has."""

    n: int
    at: Annotated[int, Meta(description="milliseconds since 1970")]


class Opened(_Entry, tag="opened", omit_defaults=True):
    """The platform committed to a mechanism, and to the dice of the first season."""

    spec: MarketSpec
    commitment: str | None = None  # none where the seed is in the terms, as it once was


class AgentRegistered(_Entry, tag="agent"):
    """An agent, from a season on."""

    agent: str
    season: int


class ArmRegistered(_Entry, tag="arm"):
    """An arm of an agent, from a season on."""

    agent: str
    arm: str
    season: int


class Started(_Entry, tag="started"):
    """Registration closed; the mechanism runs."""

    season: int


class Decided(_Entry, tag="decision"):
    """Whom to serve, with the probability of that given everything before (null where it has no formula)."""

    id: int
    agent: str
    arm: str
    phase: str
    probability: float | None
    request: str


class Rewarded(_Entry, tag="reward"):
    """A reward and what its owner was paid for it."""

    id: int
    agent: str
    arm: str
    value: float
    paid: int
    event: str


class Defaulted(_Entry, tag="default"):
    """The default reward, entered because none came in the wait window or before the settlement."""

    id: int
    agent: str
    arm: str
    value: float
    paid: int
    because: Literal["window", "settlement"]


class Late(_Entry, tag="late"):
    """A reward that came after the default had been entered: recorded and flagged, it pays and decides nothing."""

    id: int
    value: float
    event: str
    agent: str
    arm: str


class Settled(_Entry, tag="settled", omit_defaults=True):
    """The season is over and paid; its dice are published."""

    season: int
    seed: int | None = None
    salt: str | None = None


class SeasonOpened(_Entry, tag="season", omit_defaults=True):
    """A new season is open for registration; the platform committed to its dice."""

    season: int
    commitment: str | None = None


Entry = (
    Opened | AgentRegistered | ArmRegistered | Started | Decided | Rewarded | Defaulted | Late | Settled | SeasonOpened
)

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
decode = msgspec.json.Decoder(Entry).decode


def encode_lines(entries: Sequence[Entry]) -> list[bytes]:
    """The line of each entry."""
    if len(entries) == 1:
        return [encode(entries[0])]
    return _encoder.encode_lines(entries).split(b"\n")[:-1]  # there are no line feeds in encoded JSON


def keys(entry: Entry) -> tuple[str, ...]:
    """Under which names the entry must be found again, at any age.

    >>> keys(Late(7, 0, 3, 1.0, "click-9", "ana", "a"))
    ('e:click-9', 'l:3')
    """
    if type(entry) is Decided:
        return (f"q:{entry.request}",)
    if type(entry) is Rewarded:
        return (f"e:{entry.event}",)
    if type(entry) is Defaulted:
        return (f"d:{entry.id}",)
    if type(entry) is Late:
        return f"e:{entry.event}", f"l:{entry.id}"
    return ()


def owner(entry: Entry) -> str | None:
    """The agent that an entry is about, if it is about one."""
    agent: Any = getattr(entry, "agent", None)
    return agent if isinstance(agent, str) else None
