"""Reading a service's data without a lock and without writing: replays, rewards as rows of a log, backups."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from sys import intern
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from cloneproof._lib.checks import known
from cloneproof._lib.files import check_place
from cloneproof.errors import OutOfTimeError, ServeError
from cloneproof.mechanisms import Mechanism
from cloneproof.runs.deadline import Deadline
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
from cloneproof.serve.market.terms import MarketSpec, build_mechanism
from cloneproof.serve.storage import display_place, is_postgres, postgres_module
from cloneproof.serve.storage.sqlite import is_service_file

LOOKS: Final = 1024  # entries between two looks at the clock
REASONS: Final = 5  # of withdrawals and pauses by the platform, which are named
LedgerLines = Iterator[tuple[bytes, bytes | None]]


class StoredLedger(NamedTuple):
    """A market's ledger, which can be read several times, with its secret and snapshot if available."""

    blocks: Callable[[], Iterable[tuple[bytes, bytes, str]]]  # hash before, hash after, lines
    secret: bytes | None = None
    snapshot: tuple[int, bytes] | None = None

    def lines(self) -> LedgerLines:
        """Yield each line, with the stored hash after it at the end of a block."""
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
    """Result of replaying one market's ledger.

    `unchecked` has a sentence for each thing that the ledger cannot show yet or never will, and `seasons` the rounds
    of each settled season (`rounds` of `last`), with the reason if it was ended before its last one. `forced` has the
    arms that the platform withdrew or paused, with its reasons.
    """

    market: str
    fits: bool
    entries: int
    statement: str
    head: str | None = None
    balances: dict[str, int] = field(default_factory=dict)
    seasons: list[dict[str, Any]] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    forced: list[dict[str, Any]] = field(default_factory=list)

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
    entries, head = found.head.n, found.head.hash.hex()
    if (named := found.market.spec.market) != name:
        return ReplayResult(name, False, 0, f"entry 1: this is the ledger of market {named!r}, not of {name!r}")
    if at > entries:
        problems.append("it is of an entry that the ledger does not have")
    if problems:
        words = f"entry {at}: the ledger fits, its snapshot does not: {problems[0]}; restart the service"
        return ReplayResult(name, False, entries, words, None, balances)
    told = [_early_end(one) for one in found.seasons if one.rounds < one.last]
    told += [words for kind in (ledger.ArmWithdrawn, ledger.ArmPaused) for words in _acts(found.acts, kind)]
    unchecked = list[str]()
    if found.unchecked_from is not None:
        unchecked.append(
            f"season {found.market.season}, from entry {found.unchecked_from} on: its lines are chained by their "
            "hashes, and all else can be checked when it is settled and its key published"
        )
    words = "; ".join([f"{entries} entries fit, head {head}", *told, *(f"not checked: {one}" for one in unchecked)])
    seasons = [one._asdict() for one in found.seasons]
    acts = [{key: getattr(one, key) for key in ("n", "season", "agent", "arm", "reason")} for one in found.acts]
    forced = [act for act, one in zip(acts, found.acts, strict=True) if _by(one) == "platform"]
    return ReplayResult(name, True, entries, words, head, balances, seasons, unchecked, forced)


def _by(one: ledger.ArmWithdrawn | ledger.ArmPaused) -> ledger.Withdrawer:
    return one.by if isinstance(one, ledger.ArmWithdrawn) else "platform"


def _acts(acts: Sequence[ledger.ArmWithdrawn | ledger.ArmPaused], kind: type) -> Iterator[str]:
    """Say how many withdrawals, or pauses, there were by agents and by the platform, and why."""
    what = "withdrawals" if kind is ledger.ArmWithdrawn else "pauses"
    by = Counter(_by(one) for one in acts if isinstance(one, kind))
    if by:
        reasons = Counter(one.reason for one in acts if isinstance(one, kind) and one.reason is not None)
        named = ", ".join(f"{reason!r} ({count})" for reason, count in reasons.most_common(REASONS))
        rest = f", {len(reasons) - REASONS} others" if len(reasons) > REASONS else ""
        why = f", because of {named}{rest}" if reasons else ""
        yield f"{what} by agents: {by['agent']}, by the platform: {by['platform']}{why}"


def _early_end(one: SettledSeason) -> str:
    why = "" if one.reason is None else f": {one.reason!r}"
    return f"season {one.season} was ended early, after {one.rounds:,} of {one.last:,} rounds{why}"


@contextmanager
def stored_ledgers(place: str) -> Iterator[dict[str, StoredLedger]]:
    """Yield the ledgers at a place by market, in one consistent view, also while it is served."""
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
    """Yield a function that runs queries, all in one consistent view."""
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
    """Return a connection that cannot write."""
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
class LedgerRows:
    """Rewards of a market's seasons as the columns of a log, with its terms, and where and what was read in words.

    A decision whose window ended without a reward counts with the default: who reports clicks only is silent about all
    else. A late reward takes the default's place: it pays nothing, but was drawn from its arm. Decisions that still
    await a reward, and those that did when their season was settled, are left out and counted in the words.
    """

    spec: MarketSpec
    columns: dict[str, Sequence[str] | Sequence[float]]
    words: str
    place: str = ""

    @property
    def mechanism(self) -> Mechanism:
        """Mechanism of the market, with the parameters of its terms."""
        return build_mechanism(self.spec)


def read_rows(
    place: str, market: str | None = None, season: int | None = None, clock: Deadline | None = None
) -> LedgerRows:
    """Read the rewards of a market from a file or a database: the only market if none is named, all seasons or one."""
    with stored_ledgers(place) as by_market:
        if market is None:
            if len(by_market) != 1:
                several = sorted(by_market) or "none yet"
                raise ServeError(f"expected --market, since {display_place(place)!r} has {several}; name one")
            market = next(iter(by_market))
        stored = by_market[known(market, by_market, f"market in {display_place(place)}:", ServeError)]
        found = collect_rows(_timely(checked_entries(stored.lines()), clock or Deadline(None)), season)
    return replace(found, place=display_place(place))


def _timely(entries: Iterable[tuple[bytes, ledger.Entry]], clock: Deadline) -> Iterator[ledger.Entry]:
    for _, entry in entries:
        if entry.n % LOOKS == 0 and clock.spent:
            raise OutOfTimeError(
                f"expected to read the ledger within {clock.limit:g} s, got its first {entry.n:,} entries",
                "give more --seconds",
            )
        yield entry


class _Rows:
    """Decisions of a ledger so far, and its rewards as rows of a log; of all seasons, or of one.

    row_of      of each decision that counts with the default, the row; -1 of others
    defaulted   rows that are still the default, as none came in time
    unsettled   decisions that awaited a reward when their season was settled, and still have none
    """

    def __init__(self, season: int | None) -> None:
        self.season, self.firsts = season, list[int]()  # the first decision of each started season
        self.segments, self.places, self.row_of = list[str](), array("i"), array("q")
        self.agents, self.arms, self.rewards, self.numbers = list[str](), list[str](), array("d"), array("q")
        self.decisions = self.defaulted = self.unsettled = 0

    def decide(self, entry: ledger.Made) -> None:
        made = len(entry.shown) if isinstance(entry, ledger.SlateDecided) else 1
        if isinstance(entry, ledger.SlateDecided):
            self.places.extend(one.place for one in entry.shown)
        self.segments += [intern(entry.segment or "")] * made
        self.row_of.extend([-1] * made)
        self.decisions += made * (self.season in (None, len(self.firsts)))

    def reward(self, entry: ledger.Rewarded | ledger.Late | ledger.Defaulted) -> None:
        if self.season not in (None, bisect_right(self.firsts, entry.id)):
            return
        row = self.row_of[entry.id - 1]
        if isinstance(entry, ledger.Late):
            self.defaulted, self.unsettled = self.defaulted - (row >= 0), self.unsettled - (row < 0)
        if isinstance(entry, ledger.Defaulted):
            if entry.because == "settlement":
                self.unsettled += 1
                return
            self.defaulted, self.row_of[entry.id - 1] = self.defaulted + 1, len(self.rewards)
        if row >= 0:
            self.rewards[row] = entry.value
            return
        self.agents.append(intern(entry.agent))  # millions of rows share a few names
        self.arms.append(intern(entry.arm))
        self.rewards.append(entry.value)
        self.numbers.append(entry.id)

    @property
    def columns(self) -> dict[str, Sequence[str] | Sequence[float]]:
        found: dict[str, Sequence[str] | Sequence[float]] = {}
        found |= {"agent": self.agents, "arm": self.arms, "reward": self.rewards}
        if any(self.segments):
            found["segment"] = [self.segments[number - 1] for number in self.numbers]
        if self.places:
            found["position"] = [str(self.places[number - 1]) for number in self.numbers]
        return found

    def __str__(self) -> str:
        """Return what is left out, and what is no reward, after the rewards and decisions in words."""
        words, awaited = "", self.decisions - len(self.rewards) - self.unsettled
        if self.defaulted:
            words += f"; {self.defaulted:,} of them are the default, as none came in time"
        for count, why in ((awaited, "await a reward"), (self.unsettled, "did when their season was settled")):
            words += f"; {count:,} decisions that {why} are left out" if count else ""
        return words


def collect_rows(entries: Iterable[ledger.Entry], season: int | None = None) -> LedgerRows:
    """Return the rewards in the entries of a ledger."""
    spec: MarketSpec | None = None
    rows = _Rows(season)
    for entry in entries:
        if isinstance(entry, ledger.Opened):
            spec = entry.spec
        elif isinstance(entry, ledger.Started):
            rows.firsts.append(len(rows.row_of) + 1)
        elif isinstance(entry, ledger.Made):
            rows.decide(entry)
        elif isinstance(entry, ledger.Rewarded | ledger.Late | ledger.Defaulted):
            rows.reward(entry)
    if spec is None:
        raise ServeError("expected a ledger with at least its opening entry, got an empty one; name another market")
    if season is not None and not 1 <= season <= len(rows.firsts):
        raise ServeError(
            f"expected a season from 1 to {len(rows.firsts)} that was started, got {season}; start it first"
        )
    which = "all seasons" if season is None else f"season {season}"
    if not rows.rewards:
        raise ServeError(f"expected rewards to study, got none in {which} of {spec.market}; wait until some have come")
    words = f"{which} of {spec.market}: {len(rows.rewards):,} rewards of {rows.decisions:,} decisions"
    return LedgerRows(spec, rows.columns, f"{words} by {spec.mechanism}{rows}")


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
        raise ServeError(
            f"{place!r} cannot be copied ({problem}); make room, or check it with cloneproof replay"
        ) from None
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
