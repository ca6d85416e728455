"""Sufficient statistics of a log, in one pass: arms x (rounds, sum, sum of squares, first and last time).

Sums are whole numbers in DuckDB (128 bits): of the rewards themselves where they are whole numbers, else of ticks, in
which rewards are rounded to a stated resolution. So the order in which threads meet the rows cannot matter, and where
every reward is a multiple of the resolution the sums are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from cloneproof.errors import LogError, brief
from cloneproof.logs.reader.columns import LogColumns
from cloneproof.logs.reader.few_rewards import counted_rows
from cloneproof.logs.reader.sources import LogColumn, LogSource

WHOLE: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "BOOLEAN")
NUMBERS: Final = (*WHOLE, "HUGEINT", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
KEYS: Final = (*NUMBERS, "VARCHAR", "UUID", "DATE", "TIMESTAMP", "TIMESTAMP_NS", "ENUM")
ROUNDED: Final = 1e-4  # of a tick: what the binary form of a decimal number may be off
NEAR: Final = 2**31  # products of whole numbers up to here fit 64 bits


@dataclass(frozen=True)
class RewardScale:
    """The range of rewards as declared, and how many ticks make 1: rewards are counted in ticks."""

    low: Fraction
    high: Fraction
    ticks: int

    @classmethod
    def of(cls, low: float, high: float) -> RewardScale:
        """A millionth, or as fine as the range allows in 64 bits."""
        ticks = 10**6
        while ticks > 1 and max(abs(low), abs(high)) * ticks > NEAR:
            ticks //= 10
        return cls(Fraction(str(low)), Fraction(str(high)), ticks)


@dataclass(frozen=True)
class ArmSums:
    """A group of rows: the agent and the arm as they stand there, rows, those in order, and their sums in ticks."""

    agent: Any
    arm: Any
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
    """A column as a number; what is none is NULL."""
    if column.type == "BOOLEAN":
        return f"CAST({column.sql} AS TINYINT)"
    if _plain_type(column) in NUMBERS:
        return column.sql if column.type in WHOLE else f"CAST({column.sql} AS DOUBLE)"
    if column.type == "VARCHAR":
        return f"TRY_CAST({column.sql} AS DOUBLE)"
    raise LogError(f"expected numbers for {what}, got a column of type {column.type}; name another one")


def _plain_type(column: LogColumn) -> str:
    """The type without its width, e.g. DECIMAL of DECIMAL(18,3); a list of numbers is no number."""
    return "" if column.type.endswith("]") else column.type.partition("(")[0]


def key_of(column: LogColumn, what: str) -> str:
    """A column as a name; empty text is none."""
    if _plain_type(column) not in KEYS:
        raise LogError(f"expected names or numbers for {what}, got a column of type {column.type}; name another one")
    return f"NULLIF({column.sql}, '')" if column.type == "VARCHAR" else column.sql


def time_of(column: LogColumn, source: LogSource) -> str:
    """A column as a time: a number, or a date; what is neither is NULL. Of text, the first rows decide which."""
    if _plain_type(column) in NUMBERS:
        return column.sql
    if column.type.startswith(("DATE", "TIMESTAMP")):
        return f"CAST({column.sql} AS TIMESTAMP)"
    if column.type != "VARCHAR":
        raise LogError(f"expected times or numbers, got a column of type {column.type}; name another one")
    sample = f"(SELECT {column.sql} AS moment FROM {source.rows} WHERE {column.sql} IS NOT NULL LIMIT 1000)"
    ((rows, numbers, times),) = source.query(
        f"SELECT count(*), count(TRY_CAST(moment AS DOUBLE)), count(TRY_CAST(moment AS TIMESTAMP)) FROM {sample}"
    )
    if numbers == rows:
        return f"TRY_CAST({column.sql} AS DOUBLE)"
    return f"TRY_CAST({column.sql} AS TIMESTAMP)" if times else ""


@dataclass(frozen=True)
class RowTerms:
    """The columns of a log in SQL: names, numbers, times, and which rows are in order."""

    agent: str
    arm: str
    reward: str
    whole: bool
    count: str
    time: str
    propensity: str
    usable: str


def row_terms(source: LogSource, columns: LogColumns, scale: RewardScale) -> RowTerms:
    """The terms in which every query about this log is written."""
    known = source.columns
    agent = "NULL" if columns.agent is None else key_of(known[columns.agent], "the agent")
    arm = key_of(known[columns.arm], "the arm")
    value = known[columns.total if columns.aggregated else columns.reward]  # type: ignore[index]
    reward = number_of(value, "the sum of rewards" if columns.aggregated else "the reward")
    reward = f"-({reward})" if columns.is_cost else reward
    low, high = float(scale.low), float(scale.high)
    count, time, propensity = "1", "", ""
    if columns.count is not None:
        count = number_of(known[columns.count], "the number of rounds")
        usable = (
            f"({count} >= 0 AND {count} <= 1e15 AND {count} = floor({count}) AND {reward} >= {low!r} * {count} AND "
            f"{reward} <= {high!r} * {count})"
        )
    else:
        usable = f"({reward} >= {low!r} AND {reward} <= {high!r})"
    if columns.time is not None:
        time = time_of(known[columns.time], source)
        usable += f" AND ({time}) IS NOT NULL" if time else ""
    if columns.propensity is not None:
        propensity = number_of(known[columns.propensity], "the propensity")
        usable += f" AND {propensity} > 0 AND {propensity} <= 1"
    whole = value.type in WHOLE and max(abs(low), abs(high)) < NEAR
    return RowTerms(agent, arm, reward, whole, count, time, propensity, usable)


def arm_sums(source: LogSource, columns: LogColumns, scale: RewardScale, terms: RowTerms) -> list[ArmSums]:
    """The one pass: a group for each agent and arm that occur together, those without a name included."""
    features = [source.columns[name].sql for name in columns.same]
    tick = "CAST(reward AS BIGINT)" if terms.whole else f"TRY_CAST(round(reward * {scale.ticks}) AS BIGINT)"
    usable = f"CASE WHEN {terms.usable} THEN"
    inner = [f"{terms.agent} AS agent", f"{terms.arm} AS arm", f"{usable} {terms.reward} END AS reward"]
    inner += [f"{usable} {terms.count} END AS rounds"] if columns.aggregated else []
    inner += [f"{usable} {terms.time} END AS moment"] if terms.time else []
    inner += [f"{sql} AS feature{number}" for number, sql in enumerate(features)]
    counted = counted_rows(source, columns, terms.whole, terms.time)
    if counted is None:
        sums = ["count(*)", "count(reward)", "CAST(sum(rounds) AS HUGEINT)" if columns.aggregated else "count(reward)"]
        sums.append(f"sum({tick})")
        sums.append("0" if columns.aggregated else f"sum({tick} * {tick})")
    else:
        inner += ["CAST(log_count AS HUGEINT) AS times"]
        inner += [f"{usable} log_last END AS last_moment"] if terms.time else []
        usable_rows = "sum(times) FILTER (reward IS NOT NULL)"
        sums = ["sum(times)", usable_rows, usable_rows, "sum(reward * times)", "sum(reward * (reward * times))"]
    off = f"max(abs(reward * {scale.ticks} - round(reward * {scale.ticks})))"
    sums.append("0.0" if terms.whole else off)
    last = "moment" if counted is None else "last_moment"
    sums += ["min(moment)", f"max({last})"] if terms.time else ["NULL", "NULL"]
    for number in range(len(features)):
        sums += [f"min(feature{number})", f"min(feature{number}) IS DISTINCT FROM max(feature{number})"]
    sql = (
        f"SELECT agent, arm, {', '.join(sums)} FROM (SELECT {', '.join(inner)} FROM {counted or source.rows}) "
        "GROUP BY agent, arm"
    )
    ticks = 1 if terms.whole else scale.ticks
    found = []
    for agent, arm, rows, usable, rounds, total, squares, off, first, last, *rest in source.query(sql):
        factor = scale.ticks // ticks
        found.append(
            ArmSums(
                agent, arm, int(rows), int(usable or 0), int(rounds or 0), int(total or 0) * factor,
                int(squares or 0) * factor * factor, float(off or 0.0), first, last, tuple(rest[::2]),
                tuple(bool(each) for each in rest[1::2]),
            )
        )  # fmt: skip
    return found


def exactness(sums: Sequence[ArmSums], scale: RewardScale, whole: bool) -> str:
    """What is exact about the sums, in a sentence."""
    if whole:
        return "rewards are whole numbers and their sums exact"
    if max((each.off for each in sums), default=0.0) <= ROUNDED:
        return f"rewards are multiples of {_resolution(scale)} and their sums exact"
    return (
        f"rewards are rounded to multiples of {_resolution(scale)}, of which sums are exact: a mean is off by at most "
        f"half of that"
    )


def _resolution(scale: RewardScale) -> str:
    return "1" if scale.ticks == 1 else f"1/{scale.ticks:,}"


def checked_scale(limits: object) -> RewardScale:
    """The declared range of rewards."""
    if isinstance(limits, Sequence) and not isinstance(limits, str) and len(limits) == 2:
        try:
            low, high = (float(each) for each in limits)
        except (TypeError, ValueError, OverflowError):
            low = high = 0.0
        if low < high and abs(low) <= 1e9 and abs(high) <= 1e9:
            return RewardScale.of(low, high)
    raise LogError(f"expected the range of rewards as two numbers, the lower first, got {brief(limits)}; e.g. (1, 5)")
