"""A season's rewards, read from a ledger: for audits of past seasons.

Rewards count whether they came in time or late: a late one pays nothing, but it was drawn from its arm. A default is no
reward of the arm and is left out; that is fair where whether a reward comes does not depend on what it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from cloneproof.analysis.history import ArmRewards
from cloneproof.errors import ServeError
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
from cloneproof.serve.ledger.terms import MarketSpec
from cloneproof.serve.market.ledger_replay import checked_entries
from cloneproof.serve.offline.reading import check_market, ledgers
from cloneproof.serve.storage import display_place


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
    with ledgers(place) as by_market:
        if market is None:
            if len(by_market) != 1:
                known = sorted(by_market) or "none yet"
                raise ServeError(f"expected --market, since {display_place(place)!r} has {known}; name one")
            market = next(iter(by_market))
        check_market(place, market, by_market)
        return collect_season((entry for _, entry in checked_entries(by_market[market])), season)


def collect_season(entries: Iterable[Entry], season: int | None = None) -> Season:
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
            number = bisect_right(firsts, entry.id)
            rewards = sums[number, entry.agent, entry.arm]
            rewards[0] += 1
            rewards[1] += ticks(entry.value)
            missing[number] -= isinstance(entry, Late)
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
        ArmRewards(arm.agent, arm.arm, count, total / (max(1, count) << TICK_BITS))
        for arm in registered
        if arm.season <= which
        for count, total in [sums[which, arm.agent, arm.arm]]
    ]
    ends = [*(first - 1 for first in firsts[1:]), last]
    return Season(spec, which, states[which], tuple(arms), ends[which - 1] - firsts[which - 1] + 1, missing[which])
