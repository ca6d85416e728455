"""A season's rewards, read from a ledger: for audits of history.

Rewards count whether they came in time or late: a late one pays nothing, but it was drawn from its arm. A default is no
reward of the arm and is left out; that is fair where whether a reward comes does not depend on what it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from cloneproof.analysis.history import ArmRewards
from cloneproof.mechanisms.online.level import TICK_BITS, ticks
from cloneproof.serve.ledger.entries import (
    ArmRegistered,
    Decided,
    Defaulted,
    Entry,
    Late,
    Opened,
    Rewarded,
    SeasonOpened,
    Settled,
    Started,
)
from cloneproof.serve.ledger.terms import MarketSpec, ServeError
from cloneproof.serve.market.ledger_replay import chained
from cloneproof.serve.offline.reading import known, ledgers
from cloneproof.serve.storage import shown


@dataclass(frozen=True)
class Season:
    """A season as the ledger tells it: the terms, every arm that took part, and how many rewards never came."""

    spec: MarketSpec
    season: int
    state: str
    arms: tuple[ArmRewards, ...]
    decisions: int
    missing: int


def read_season(place: str, market: str | None = None, season: int | None = None) -> Season:
    """One season of one market of a file or a database; the only market and the last started season if not named."""
    with ledgers(place) as found:
        if market is None and len(found) != 1:
            raise ServeError(f"expected --market, since {shown(place)!r} has {sorted(found) or 'none yet'}; name one")
        name = next(iter(found)) if market is None else known(place, market, found)
        return season_of((entry for _, entry in chained(found[name])), season)


def season_of(entries: Iterable[Entry], season: int | None = None) -> Season:
    """What happened in one season; in the last one that was started, if it is not named."""
    spec: MarketSpec | None = None
    registered: list[ArmRegistered] = []
    firsts: list[int] = []  # the first decision of each started season
    states: dict[int, str] = {}
    last = 0
    sums: defaultdict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0])  # rewards, and their total
    missing: defaultdict[int, int] = defaultdict(int)
    for entry in entries:
        if isinstance(entry, Opened):
            spec = entry.spec
        elif isinstance(entry, ArmRegistered):
            registered.append(entry)
        elif isinstance(entry, Started):
            firsts.append(last + 1)
            states[entry.season] = "running"
        elif isinstance(entry, Decided):
            last = entry.id
        elif isinstance(entry, Rewarded | Late):
            played = bisect_right(firsts, entry.id)
            found = sums[played, entry.agent, entry.arm]
            found[0] += 1
            found[1] += ticks(entry.value)
            missing[played] -= isinstance(entry, Late)
        elif isinstance(entry, Defaulted):
            missing[len(firsts)] += 1
        elif isinstance(entry, Settled | SeasonOpened):
            states[entry.season] = "settled" if isinstance(entry, Settled) else "open"
    if spec is None:
        raise ServeError("expected a ledger with at least its opening entry, got an empty one; name another market")
    which = len(firsts) if season is None else season
    if not 1 <= which <= len(firsts):
        raise ServeError(f"expected a season from 1 to {len(firsts)} that was started, got {which}; start it first")
    arms = [
        ArmRewards(one.agent, one.arm, count, total / (max(1, count) << TICK_BITS))
        for one in registered
        if one.season <= which
        for count, total in [sums[which, one.agent, one.arm]]
    ]
    ends = [*(first - 1 for first in firsts[1:]), last]
    return Season(spec, which, states[which], tuple(arms), ends[which - 1] - firsts[which - 1] + 1, missing[which])
