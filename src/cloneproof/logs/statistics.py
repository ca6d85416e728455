"""Sufficient statistics of a log, in one pass: arms x (rounds, sum, sum of squares, first and last time).

The same sums by segment and by place come with it. Others, by time, are known only after it and take
a pass of their own over the valid rows.

Sums are 128-bit whole numbers in DuckDB: of the rewards if these are whole numbers, else of ticks, to which rewards are
rounded. So the order of rows does not matter, and the sums are exact if every reward is a multiple of a tick.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, NamedTuple

from cloneproof._lib.sources import LogColumn, LogSource, text_literal
from cloneproof.errors import LogError, brief
from cloneproof.logs.columns import LogColumns
from cloneproof.market.positions import MOST_PLACES

WHOLE: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "BOOLEAN")
NUMBERS: Final = (*WHOLE, "HUGEINT", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
KEYS: Final = (*NUMBERS, "VARCHAR", "UUID", "DATE", "TIMESTAMP", "TIMESTAMP_NS", "ENUM")
WORDS: Final = {"yes": 1, "true": 1, "y": 1, "t": 1, "no": 0, "false": 0, "n": 0, "f": 0}  # for numbers
ROUNDED: Final = 1e-4  # rounding error of a decimal number in binary form, in ticks
CROSSED: Final = " / "  # between the parts of a segment of several columns
NEAR: Final = 2**31  # whole numbers up to this have products of 64 bits


@dataclass(frozen=True)
class RewardScale:
    """Range of rewards as declared, and how many ticks make 1: rewards are counted in ticks."""

    low: Fraction
    high: Fraction
    ticks: int


@dataclass(frozen=True)
class ArmSums:
    """A group of rows: names as written, rows, valid rows, and their sums in ticks.

    `segment` and `position` are None where the group is of all segments or places.
    """

    agent: Any
    arm: Any
    segment: str | None
    position: int | None
    rows: int
    usable: int
    rounds: int
    total: int
    squares: int
    off: float
    first: Any
    last: Any
    features: tuple[Any, ...]
    several: tuple[bool, ...]


def number_of(column: LogColumn, what: str) -> str:
    """Return a column as a number, yes and true as 1 and no and false as 0; NULL if it is nothing of these."""
    if column.kind == "BOOLEAN":
        return f"CAST({column.sql} AS TINYINT)"
    if column.kind in NUMBERS:
        return column.sql if column.kind in WHOLE else f"CAST({column.sql} AS DOUBLE)"
    if column.kind == "VARCHAR":
        words = " ".join(f"WHEN {text_literal(word)} THEN {value}" for word, value in WORDS.items())
        return f"coalesce(TRY_CAST({column.sql} AS DOUBLE), CASE lower(trim({column.sql})) {words} END)"
    raise LogError(f"expected numbers for {what}, got a column of type {column.type}; name another one")


def key_of(column: LogColumn, what: str) -> str:
    """Return a column as a name; empty text is NULL."""
    if column.kind not in KEYS:
        raise LogError(f"expected names or numbers for {what}, got a column of type {column.type}; name another one")
    return f"NULLIF({column.sql}, '')" if column.kind == "VARCHAR" else column.sql


def time_of(column: LogColumn, source: LogSource) -> str | None:
    """Return a column as a time: a number or a date, else NULL. For text the first rows decide; or None."""
    if column.kind in NUMBERS:
        return column.sql
    if column.kind.startswith(("DATE", "TIMESTAMP")):
        return f"CAST({column.sql} AS TIMESTAMP)"
    if column.kind != "VARCHAR":
        raise LogError(f"expected times or numbers, got a column of type {column.type}; name another one")
    sample = f"(SELECT {column.sql} AS moment FROM {source.rows} WHERE {column.sql} IS NOT NULL LIMIT 1000)"
    ((rows, numbers, times),) = source.query(
        f"SELECT count(*), count(TRY_CAST(moment AS DOUBLE)), count(TRY_CAST(moment AS TIMESTAMP)) FROM {sample}"
    )
    if numbers == rows:
        return f"TRY_CAST({column.sql} AS DOUBLE)"
    return f"TRY_CAST({column.sql} AS TIMESTAMP)" if times else None


class RowCheck(NamedTuple):
    """What a row must be to count, in SQL; the kind of fault if it is not, and the column to look at."""

    fault: str
    valid: str
    column: str


class LogRows:
    """Rows of a log: their source, the meaning of columns, the range of rewards, and the terms of every query.

    agent, arm, reward, count, time   columns as names, numbers and times in SQL; None for no time
    segment  the crossed columns as one name; NULL where one of them is empty, or without any
    position the place on the page; NULL without one
    whole    whether rewards are whole numbers, which are then summed as they are
    checks   what a row must be; a fault is the first that fails
    usable   which rows are valid: those that pass all checks
    """

    def __init__(
        self, source: LogSource, columns: LogColumns, scale: RewardScale, owners: Mapping[str, str] | None
    ) -> None:
        self.source, self.columns, self.scale, self.owners = source, columns, scale, owners
        by_name, value = source.columns, source.columns[columns.value]
        low, high = float(scale.low), float(scale.high)
        self.agent = "NULL" if columns.agent is None else key_of(by_name[columns.agent], "the agent")
        self.arm = key_of(by_name[columns.arm], "the arm")
        parts = [f"CAST({key_of(by_name[name], 'the segment')} AS VARCHAR)" for name in columns.segment]
        self.segment = f" || {CROSSED!r} || ".join(parts) or "NULL"
        self.reward = reward = number_of(value, "the sum of rewards" if columns.aggregated else "the reward")
        self.whole = value.kind in WHOLE and max(abs(low), abs(high)) < NEAR
        self.count, self.time, self.arrival, self.position = "1", None, None, "NULL"
        self.checks: list[RowCheck] = []
        if columns.agent is not None:
            self._check("no agent", f"({self.agent}) IS NOT NULL", columns.agent)
        self._check("no arm", f"({self.arm}) IS NOT NULL", columns.arm)
        if columns.segment:
            self._check("no segment", f"({self.segment}) IS NOT NULL", columns.segment[0])
        self._check("no reward", f"{value.sql} IS NOT NULL", columns.value)
        self._check("a reward that is no number", f"isfinite(CAST({reward} AS DOUBLE))", columns.value)
        if columns.count is not None:
            self.count = number_of(by_name[columns.count], "the number of rounds")
            self._check("a number of rounds that is none", _whole_number(self.count, 0, "1e15"), columns.count)
        self._check(f"a reward below {low:g}", f"{reward} >= {low!r} * {self.count}", columns.value)
        self._check(f"a reward above {high:g}", f"{reward} <= {high!r} * {self.count}", columns.value)
        if columns.time is not None:
            self.time = time_of(by_name[columns.time], source)
            if self.time is not None:
                self._check("a time that is none", f"({self.time}) IS NOT NULL", columns.time)
        if columns.arrival is not None and self.time is not None:
            self.arrival = time_of(by_name[columns.arrival], source)
        if columns.position is not None:
            if scale.low != 0:
                raise LogError(
                    f"expected rewards from 0 on where places are named, as attention multiplies them, got a range "
                    f"from {low:g}; leave --position out"
                )
            self.position = number_of(by_name[columns.position], "the place")
            kind = f"a place that is no whole number from 1 to {MOST_PLACES:,}"
            self._check(kind, _whole_number(self.position, 1, MOST_PLACES), columns.position)
        self.usable = f"({' AND '.join(f'({check.valid})' for check in self.checks)})"

    def _check(self, fault: str, valid: str, column: str) -> None:
        self.checks.append(RowCheck(fault, valid, column))

    def named(self, agent: object, arm: object) -> tuple[str, str] | None:
        """Return the agent and the arm of a group by name; None for an arm without an owner."""
        owner = agent if self.owners is None else self.owners.get(str(arm))
        return None if owner is None else (str(owner), str(arm))

    def valid(self, rows: str, **more: str) -> str:
        """Return the valid rows in SQL: agent, arm, place, number of rounds, reward, and more terms by name."""
        terms = {"agent": self.agent, "arm": self.arm, "place": self.position, "n": self.count, "r": self.reward} | more
        listed = ", ".join(f"{sql} AS {name}" for name, sql in terms.items())
        return f"(SELECT {listed} FROM {rows} WHERE {self.usable})"

    def tick(self, reward: str) -> str:
        """Return a reward in SQL as a whole number: as it is, or in ticks."""
        return (
            f"CAST({reward} AS BIGINT)" if self.whole else f"TRY_CAST(round({reward} * {self.scale.ticks}) AS BIGINT)"
        )


def _whole_number(sql: str, least: int, most: object) -> str:
    return f"{sql} >= {least} AND {sql} <= {most} AND {sql} = floor({sql})"


def arm_sums(log: LogRows) -> tuple[list[ArmSums], list[ArmSums], list[ArmSums]]:
    """Read the log once: groups by agent and arm, also by segment, and also by place; those without names too.

    Without segments or places there are no such groups.
    """
    source, aggregated, ticks = log.source, log.columns.aggregated, log.scale.ticks
    features = [source.columns[name].sql for name in log.columns.same]
    tick = log.tick("reward")
    usable = f"CASE WHEN {log.usable} THEN"
    inner = [f"{log.agent} AS agent", f"{log.arm} AS arm", f"{log.segment} AS segment"]
    inner += [f"{usable} CAST({log.position} AS BIGINT) END AS position"]
    inner += [f"{usable} {log.reward} END AS reward"]
    inner += [f"{usable} {log.count} END AS rounds"] if aggregated else []
    inner += [f"{usable} {log.time} END AS moment"] if log.time else []
    inner += [f"{sql} AS feature{number}" for number, sql in enumerate(features)]
    sums = ["count(*)", "count(reward)", "CAST(sum(rounds) AS HUGEINT)" if aggregated else "count(reward)"]
    sums += [f"sum({tick})", "0" if aggregated else f"sum({tick} * {tick})"]
    sums += ["0.0" if log.whole else f"max(abs(reward * {ticks} - round(reward * {ticks})))"]
    sums += ["min(moment)", "max(moment)"] if log.time else ["NULL", "NULL"]
    for number in range(len(features)):
        sums += [f"min(feature{number})", f"min(feature{number}) IS DISTINCT FROM max(feature{number})"]
    divided = {"segment": log.columns.segment, "position": log.columns.position}
    finer = [name for name, columns in divided.items() if columns]
    keys = ["agent", "arm", *finer]
    sets = ", ".join(f"({', '.join(keys[: 2 + level])})" for level in range(1 + len(finer)))
    level = " + ".join(["0", *(f"1 - GROUPING({name})" for name in finer)])
    names = ", ".join(name if name in keys else f"NULL AS {name}" for name in ("agent", "arm", "segment", "position"))
    rows_of = f"(SELECT {', '.join(inner)} FROM {source.rows})"
    groups: dict[str, list[ArmSums]] = {"arm": [], "segment": [], "position": []}
    factor = ticks if log.whole else 1
    for kind, agent, arm, segment, position, *values in source.query(
        f"SELECT {level}, {names}, {', '.join(sums)} FROM {rows_of} GROUP BY GROUPING SETS ({sets})"
    ):
        rows, valid, rounds, total, squares = (int(value or 0) for value in values[:5])
        off, first, last, *texts = values[5:]
        groups[["arm", *finer][kind]].append(
            ArmSums(
                agent, arm, segment, position, rows, valid, rounds, total * factor, squares * factor**2,
                float(off or 0.0), first, last, tuple(texts[::2]), tuple(map(bool, texts[1::2])),
            )
        )  # fmt: skip
    return groups["arm"], groups["segment"], groups["position"]


def exactness(sums: Sequence[ArmSums], scale: RewardScale, whole: bool) -> str:
    """Describe what is exact about the sums."""
    if whole:
        return "rewards are whole numbers and their sums exact"
    tick = "1" if scale.ticks == 1 else f"1/{scale.ticks:,}"
    if max((arm.off for arm in sums), default=0.0) <= ROUNDED:
        return f"rewards are multiples of {tick} and their sums exact"
    return f"rewards are rounded to multiples of {tick}, of which sums are exact: a mean is off by at most half of that"


def checked_scale(reward_range: object) -> RewardScale:
    """Return the declared range of rewards, in ticks of a millionth, or as fine as 64 bits allow."""
    if isinstance(reward_range, Sequence) and not isinstance(reward_range, str) and len(reward_range) == 2:
        try:
            low, high = (float(end) for end in reward_range)
        except (TypeError, ValueError, OverflowError):
            low = high = 0.0
        if low < high and abs(low) <= 1e9 and abs(high) <= 1e9:
            ticks = 10**6
            while ticks > 1 and max(abs(low), abs(high)) * ticks > NEAR:
                ticks //= 10
            return RewardScale(Fraction(str(low)), Fraction(str(high)), ticks)
    raise LogError(
        f"expected reward_range as two numbers, the lower first, got {brief(reward_range)}; give e.g. (1, 5)"
    )
