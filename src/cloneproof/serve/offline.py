"""Reading a service's data without a lock and without writing: replays, past seasons for audits, backups.

Late rewards of a season count too: they pay nothing, but were drawn from their arms. Defaults are left out, which is
unbiased if whether a reward arrives does not depend on its value.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from cloneproof._checks import known
from cloneproof._files import check_place
from cloneproof.analysis.copying.season import ArmRewards
from cloneproof.errors import ServeError
from cloneproof.mechanisms.online.levels import TICK_BITS, ticks
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.dice import MarketDice
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import (
    Misfit,
    SettledSeason,
    checked_entries,
    published_dice,
    replay,
    snapshot_difference,
)
from cloneproof.serve.market.terms import MarketSpec
from cloneproof.serve.storage import display_place, is_postgres, postgres_module
from cloneproof.serve.storage.sqlite import is_service_file

LedgerLines = Iterator[tuple[bytes, bytes | None]]


class StoredLedger(NamedTuple):
    """A market's ledger, which can be read several times, with its secret and snapshot if available."""

    blocks: Callable[[], Iterable[tuple[bytes, bytes, str]]]  # hash before, hash after, lines
    secret: bytes | None = None
    snapshot: tuple[int, bytes] | None = None

    def lines(self) -> LedgerLines:
        """Each line, with the stored hash after it at the end of a block."""
        before = ledger.GENESIS
        for hash_before, hash_after, text in self.blocks():
            lines = text.encode().split(b"\n")
            broken = hash_before != before  # b"" fits no hash, so that the first line of the block is named
            for line in lines[:-1]:
                yield line, b"" if broken else None
            yield lines[-1], b"" if broken else hash_after
            before = hash_after


@dataclass(frozen=True)
class ReplayResult:
    """The result of replaying one market's ledger.

    `unchecked` has a sentence for each thing that the ledger cannot show yet or never will, and `seasons` the rounds
    of each settled season (`rounds` of `last`), with the reason if it was ended before its last one.
    """

    market: str
    fits: bool
    entries: int
    statement: str
    head: str | None = None
    balances: dict[str, int] = field(default_factory=dict)
    seasons: list[dict[str, Any]] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def exit_code(self) -> int:
        """0: everything fits; 1: something does not; 3: what could be checked fits."""
        return 1 if not self.fits else 3 if self.unchecked else 0

    def __str__(self) -> str:
        return f"{self.market}: {self.statement}"


def replay_all(place: str, market: str | None = None) -> list[ReplayResult]:
    """Replay one market of a file or a database, or all of them."""
    with stored_ledgers(place) as by_market:
        where = f"market in {display_place(place)}:"
        names = list(by_market) if market is None else [known(market, by_market, where, ServeError)]
        return [replay_market(name, by_market[name]) for name in names]


def replay_market(name: str, stored: StoredLedger) -> ReplayResult:
    """Replay the ledger of one market, and compare its snapshot with the result.

    Without the market's secret, the published dice are used, so that anybody with the lines can check settled seasons.
    """
    at, snapshot = stored.snapshot or (0, b"")
    problems = list[str]()

    def compare_snapshot(market: LiveMarket) -> None:
        if market.chain.n == at and (difference := snapshot_difference(snapshot, market)) is not None:
            problems.append(difference)

    try:
        dice = published_dice(stored.lines()) if stored.secret is None else MarketDice(stored.secret)
        found = replay(stored.lines(), dice, compare_snapshot)
    except Misfit as misfit:
        return ReplayResult(name, False, misfit.n - 1, str(misfit))
    balances = {record.agent: record.balance for record in found.market.registry.agents.values()}
    entries, head = found.market.chain.n, found.market.chain.hash.hex()
    if (told := found.market.spec.market) != name:
        return ReplayResult(name, False, 0, f"entry 1: this is the ledger of market {told!r}, not of {name!r}")
    if at > entries:
        problems.append("it is of an entry that the ledger does not have")
    if problems:
        words = f"entry {at}: the ledger fits, its snapshot does not: {problems[0]}; restart the service"
        return ReplayResult(name, False, entries, words, None, balances)
    early = [_early_end(one) for one in found.seasons if one.rounds < one.last]
    unchecked = [
        f"whether season {one.season} was cut short at will: a ledger of format 1 has no reasons"
        for one in found.seasons
        if one.rounds < one.last and one.reason is None
    ]
    if found.told is not None:
        season, rounds = found.market.season, found.market.round
        unchecked.append(
            f"season {season}, from entry {found.told} on: its {rounds:,} decisions are possible, but whether its dice "
            "made them, and when it ends, shows when it is settled and its key published"
        )
    words = "; ".join([f"{entries} entries fit, head {head}", *early, *(f"not checked: {one}" for one in unchecked)])
    seasons = [one._asdict() for one in found.seasons]
    return ReplayResult(name, True, entries, words, head, balances, seasons, unchecked)


def _early_end(one: SettledSeason) -> str:
    why = "" if one.reason is None else f": {one.reason!r}"
    return f"season {one.season} was ended early, after {one.rounds:,} of {one.last:,} rounds{why}"


@contextmanager
def stored_ledgers(place: str) -> Iterator[dict[str, StoredLedger]]:
    """The ledgers at a place by market, in one consistent view, also while it is served."""
    with _reading(place) as rows:
        found = list(rows("SELECT name, number, secret FROM markets ORDER BY number"))
        snapshots = {number: (entry, body) for number, entry, body in rows("SELECT market, entry, body FROM snapshots")}
        blocks = "SELECT hash_before, hash_after, lines FROM ledger WHERE place > ? AND place < ? ORDER BY place"
        yield {
            name: StoredLedger(partial(rows, blocks, number << 40, (number + 1) << 40), secret, snapshots.get(number))
            for name, number, secret in found
        }


@contextmanager
def _reading(place: str) -> Iterator[Callable[..., Iterable[Any]]]:
    """A function that runs queries, all in one consistent view."""
    if is_postgres(place):
        with postgres_module().reading(place) as rows:
            yield rows
        return
    connection = open_for_reading(place)
    try:
        connection.execute("BEGIN")
        yield lambda statement, *values: connection.execute(statement, values)
    except sqlite3.DatabaseError as problem:
        raise ServeError(f"{place!r} cannot be read ({problem}); restore it from a copy") from None
    finally:
        connection.close()


def open_for_reading(place: str) -> sqlite3.Connection:
    """A connection that cannot write."""
    if not os.path.isfile(place):
        raise ServeError(f"expected the file of a service, got {place!r}, which is no file; check the path")
    file = os.path.realpath(place)
    fixed = not os.access(os.path.dirname(file), os.W_OK) and not os.path.exists(f"{file}-wal")  # nothing beside it
    uri = f"file:{quote(os.path.abspath(place))}?mode=ro{'&immutable=1' if fixed else ''}"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    try:
        ours = is_service_file(connection)
    except sqlite3.OperationalError as problem:
        connection.close()
        raise ServeError(f"{place!r} cannot be read ({problem}); copy it to a folder that may be written") from None
    except sqlite3.DatabaseError:
        ours = False
    except ServeError:
        connection.close()
        raise
    if not ours:
        connection.close()
        raise ServeError(f"expected a file made by `cloneproof serve`, got {place!r}, which is none; check the path")
    return connection


@dataclass(frozen=True)
class Season:
    """A season from the ledger: the terms, every arm that took part, and the number of rewards that never came."""

    spec: MarketSpec
    season: int
    state: str
    arms: tuple[ArmRewards, ...]
    decisions: int
    missing: int


def read_season(place: str, market: str | None = None, season: int | None = None) -> Season:
    """One season of one market of a file or a database; the only market and the last started season if not named."""
    with stored_ledgers(place) as by_market:
        if market is None:
            if len(by_market) != 1:
                several = sorted(by_market) or "none yet"
                raise ServeError(f"expected --market, since {display_place(place)!r} has {several}; name one")
            market = next(iter(by_market))
        stored = by_market[known(market, by_market, f"market in {display_place(place)}:", ServeError)]
        return collect_season((entry for _, entry in checked_entries(stored.lines())), season)


def collect_season(entries: Iterable[ledger.Entry], season: int | None = None) -> Season:
    """One season from the entries of a ledger; by default the last one that was started."""
    spec: MarketSpec | None = None
    registered: dict[tuple[str, str], int] = {}  # the first season of each arm that is not withdrawn
    playing: list[list[tuple[str, str]]] = []  # the arms of each started season
    firsts: list[int] = []  # the first decision of each started season
    states: dict[int, str] = {}
    last = 0
    sums: defaultdict[tuple[int, str, str], list[int]] = defaultdict(lambda: [0, 0])  # rewards, and their total
    missing: defaultdict[int, int] = defaultdict(int)
    for entry in entries:
        if isinstance(entry, ledger.Opened):
            spec = entry.spec
        elif isinstance(entry, ledger.ArmRegistered):
            registered[entry.agent, entry.arm] = entry.season
        elif isinstance(entry, ledger.ArmWithdrawn):
            del registered[entry.agent, entry.arm]
        elif isinstance(entry, ledger.Started):
            firsts.append(last + 1)
            playing.append([arm for arm, first in registered.items() if first <= entry.season])
            states[entry.season] = "running"
        elif isinstance(entry, ledger.Decided):
            last = entry.id
        elif isinstance(entry, ledger.Rewarded | ledger.Late):
            number = bisect_right(firsts, entry.id)
            rewards = sums[number, entry.agent, entry.arm]
            rewards[0] += 1
            rewards[1] += ticks(entry.value)
            missing[number] -= isinstance(entry, ledger.Late)
        elif isinstance(entry, ledger.Defaulted):
            missing[len(firsts)] += 1
        elif isinstance(entry, ledger.Settled | ledger.SeasonOpened):
            states[entry.season] = "settled" if isinstance(entry, ledger.Settled) else "open"
    if spec is None:
        raise ServeError("expected a ledger with at least its opening entry, got an empty one; name another market")
    which = len(firsts) if season is None else season
    if not 1 <= which <= len(firsts):
        raise ServeError(f"expected a season from 1 to {len(firsts)} that was started, got {which}; start it first")
    arms = [
        ArmRewards(agent, arm, count, total / (max(1, count) << TICK_BITS))
        for agent, arm in playing[which - 1]
        for count, total in [sums[which, agent, arm]]
    ]
    ends = [*(first - 1 for first in firsts[1:]), last]
    return Season(spec, which, states[which], tuple(arms), ends[which - 1] - firsts[which - 1] + 1, missing[which])


def back_up(place: str, target: str) -> dict[str, int]:
    """Copy the file to a new one; returns the number of ledger entries of each market in the copy.

    Uses SQLite's online backup from a read-only connection, so that writers continue meanwhile. The copy is a temporary
    file beside the target until it is checked, forced to the disk and renamed. Only its owner may read it.
    """
    if is_postgres(place) or place == ":memory:":
        advice = (
            "use pg_dump --schema=cloneproof, which copies it at one moment as well"
            if is_postgres(place)
            else "a service on :memory: keeps nothing"
        )
        raise ServeError(f"expected the SQLite file of a service to copy, got another place; {advice}")
    check_place(target)
    if os.path.lexists(target):
        raise ServeError(f"expected a new file for the backup, got {target!r}, which exists; name another")
    source = open_for_reading(place)
    folder = os.path.dirname(os.path.abspath(target))
    try:
        handle, name = tempfile.mkstemp(prefix=f".{os.path.basename(target)}.", dir=folder)  # readable by its owner
        os.close(handle)
        try:
            entries = _copy(source, name)
            _force(name)
            os.replace(name, target)
            _force(folder)
        finally:
            Path(name).unlink(missing_ok=True)
    except sqlite3.DatabaseError as problem:
        raise ServeError(f"{place!r} cannot be copied ({problem}); check it with cloneproof replay") from None
    except OSError as problem:
        raise ServeError(
            f"expected to write {target!r}, got: {problem.strerror or problem}; make room, or choose another place"
        ) from None
    finally:
        source.close()
    return entries


def _copy(source: sqlite3.Connection, name: str) -> dict[str, int]:
    copy = sqlite3.connect(name, isolation_level=None)
    try:
        source.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode = DELETE").fetchall()  # one file, without a log beside it
        copy.execute("UPDATE api_keys SET revoked = 1")  # a restore must not revive keys that are revoked later
        found = copy.execute("PRAGMA quick_check").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        rows = copy.execute(
            "SELECT name, coalesce(sum(count), 0) FROM markets LEFT JOIN ledger "
            "ON place > number << 40 AND place < (number + 1) << 40 GROUP BY number ORDER BY name"
        )
        return dict(rows.fetchall())
    finally:
        copy.close()


def _force(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
