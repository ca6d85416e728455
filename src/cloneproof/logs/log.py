"""A log after reading: its arms with exact statistics, and notes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, Final

from cloneproof._lib.checks import known
from cloneproof._lib.data import columns_of, fields_of, to_data
from cloneproof._lib.tables import Tabular
from cloneproof.errors import LogError
from cloneproof.logs.attention import PlaceAttention
from cloneproof.logs.columns import LogColumns
from cloneproof.logs.faults import Fault
from cloneproof.market.delays import Delays

Moment = str | float | None
EPOCH: Final = datetime(1970, 1, 1)
SECONDS, MILLISECONDS = 1e8, 1e11  # numbers from these on are times since 1970


@dataclass(frozen=True)
class LoggedArm:
    """An arm of a log.

    Attributes
    ----------
    agent, arm : str
        Whose it is, and its name.
    rounds : int
        How many rewards it has.
    total, squares : Fraction
        The sum of its rewards and of their squares, in [0, 1] by the declared range; exact as `Log.exact` says.
    first, last : str or float or None
        When it was met first and last, where the log has times.
    features : dict of str to str
        What the log says of it: a title, an address.
    """

    agent: str
    arm: str
    rounds: int
    total: Fraction
    squares: Fraction
    first: Moment = None
    last: Moment = None
    features: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, str]:
        return self.agent, self.arm

    @property
    def mean(self) -> float:
        """Mean reward; 0 without rewards."""
        return float(self.total / self.rounds) if self.rounds else 0.0


@dataclass(frozen=True, repr=False)
class Log(Tabular):
    """Statistics of a log's arms: the result of `cp.read_log`.

    Attributes
    ----------
    arms : tuple of LoggedArm
        In the order of agents and arms by name.
    rows : int
        How many rows were read, those with faults included.
    low, high : Fraction
        The declared range of rewards; in `arms` they are moved to [0, 1].
    columns : LogColumns
        Which column is what.
    faults : tuple of Fault
        What was left out, with the first row of each kind.
    notes : tuple of str
        What was guessed and what else is worth saying.
    exact : str
        What is exact about the sums.
    places : tuple of str
        The files.
    segments : dict of str to tuple of LoggedArm
        The arms of each segment that have rewards in it, the segment with the most rounds first; none without
        segments. `log.segment(name)` is the log of one.
    attention : tuple of PlaceAttention
        The places of a page with their attention, where the log has places. A round of an arm is then a view in the
        first place: views count by their attention, rounded up to whole rounds, and rewards stay as counted.
    delays : Delays, optional
        How late rewards came, where the log has their times.
    """

    said_in = "log"
    arms: tuple[LoggedArm, ...]
    rows: int
    low: Fraction
    high: Fraction
    columns: LogColumns
    faults: tuple[Fault, ...]
    notes: tuple[str, ...]
    exact: str
    places: tuple[str, ...] = ()
    segments: Mapping[str, tuple[LoggedArm, ...]] = field(default_factory=dict)
    attention: tuple[PlaceAttention, ...] = ()
    delays: Delays | None = None

    def __repr__(self) -> str:
        return f"Log({self.rounds:,} rounds, {len(self.arms):,} arms of {len(self.agents):,} agents)"

    @property
    def agents(self) -> tuple[str, ...]:
        """Their names, in the order of `arms`."""
        return tuple(dict.fromkeys(arm.agent for arm in self.arms))

    @property
    def rounds(self) -> int:
        """Number of rounds in all: the log's traffic."""
        return sum(arm.rounds for arm in self.arms)

    @property
    def mean(self) -> float:
        """Mean reward of a round, in [0, 1] by the declared range."""
        rounds = self.rounds
        return float(sum((arm.total for arm in self.arms), Fraction(0)) / rounds) if rounds else 0.0

    def unscaled(self, reward: float) -> float:
        """Return a mean in [0, 1] in the unit of the log."""
        return float(self.low) + reward * float(self.high - self.low)

    def of(self, agent: str) -> tuple[LoggedArm, ...]:
        """Return an agent's arms."""
        return tuple(arm for arm in self.arms if arm.agent == agent)

    def segment(self, name: str) -> Log:
        """Return the log of one segment: its arms, and their rewards in it."""
        arms = self.segments[known(name, self.segments, "segment", LogError)]
        return replace(self, arms=arms, segments={})

    @property
    def positions(self) -> tuple[float, ...]:
        """Attention of each place as a market takes it: the most first, and that of the first place at most."""
        return tuple(sorted((min(place.attention, 1.0) for place in self.attention), reverse=True))

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """First and last time, where the log has times of a calendar: numbers count (milli)seconds since 1970."""
        ends = [arm.first for arm in self.arms if arm.first is not None]
        ends += [arm.last for arm in self.arms if arm.last is not None]
        try:
            moments = [moment_of(end) for end in ends]
            return min(moments), max(moments)
        except (ValueError, TypeError, OverflowError):
            return None

    @property
    def dates(self) -> str:
        """First and last day in words; nothing without times.

        >>> arm = LoggedArm("ana", "a", 1, Fraction(0), Fraction(0), "2026-06-01 10:00:00", "2026-06-30 09:00:00")
        >>> Log((arm,), 1, Fraction(0), Fraction(1), LogColumns("arm"), (), (), "").dates
        '1 to 30 June 2026'
        """
        if self.span is None:
            return ""
        first, last = self.span
        said = ["" if first.year == last.year else f" {first:%B %Y}", f" {first:%B}", ""]
        begin = said[0] or said[1 + (first.month == last.month)]
        return f"{first.day}{begin} to {last.day} {last:%B %Y}"

    @property
    def left_out(self) -> int:
        """Number of rows that were left out."""
        return sum(fault.count for fault in self.faults if fault.unit != "arm")

    def to_columns(self) -> dict[str, list[Any]]:
        """Return one row for each arm: agent, arm, rounds, total, mean, first, last."""
        columns = columns_of(self.arms, "agent", "arm", "rounds", "total", "mean", "first", "last")
        return columns | {"total": [float(total) for total in columns["total"]]}

    def to_dict(self) -> dict[str, Any]:
        """Return the log as data for JSON; sums are fractions as text."""
        return {
            "rows": self.rows,
            "rounds": self.rounds,
            "range": [float(self.low), float(self.high)],
            "columns": self.columns.to_dict(),
            "exact": self.exact,
            "faults": to_data(self.faults),
            "notes": list(self.notes),
            "arms": [_as_data(arm) for arm in self.arms],
            "segments": {name: [_as_data(arm) for arm in arms] for name, arms in self.segments.items()},
            "attention": to_data(self.attention),
            "dates": self.dates,
            "delays": to_data(self.delays),
        }


def moment_of(value: str | float) -> datetime:
    """Return a time of the calendar.

    >>> moment_of("2026-06-01 10:00:00").hour, moment_of(1_780_000_000).year, moment_of(1_780_000_000_000).year
    (10, 2026, 2026)
    """
    if isinstance(value, str):
        return datetime.fromisoformat(value).replace(tzinfo=None)
    if value < SECONDS:
        raise ValueError("a counter")
    return EPOCH + timedelta(seconds=value if value < MILLISECONDS else value / 1000)


def _as_data(arm: LoggedArm) -> dict[str, Any]:
    sums = {"total": str(arm.total), "squares": str(arm.squares)}
    return fields_of(arm, "agent", "arm", "rounds") | sums | fields_of(arm, "mean", "first", "last", "features")
