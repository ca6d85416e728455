"""Sufficient statistics of a log, in one pass: arms x (rounds, sum, sum of squares, first and last time).

Sums are 128-bit whole numbers in DuckDB: of the rewards if these are whole numbers, else of ticks, to which rewards are
rounded. So the order of rows does not matter, and the sums are exact if every reward is a multiple of a tick.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

from cloneproof.errors import LogError, brief
from cloneproof.logs.columns import LogColumns
from cloneproof.logs.sources import LogColumn, LogSource
from cloneproof.market.positions import MOST_PLACES

WHOLE: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "BOOLEAN")
NUMBERS: Final = (*WHOLE, "HUGEINT", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL")
KEYS: Final = (*NUMBERS, "VARCHAR", "UUID", "DATE", "TIMESTAMP", "TIMESTAMP_NS", "ENUM")
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
    """A group of rows: agent and arm as written, rows, valid rows, and their sums in ticks."""

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
    segment: str | None = None
    position: int | None = None

    def __add__(self, other: ArmSums) -> ArmSums:
        """Return the sums over the rows of both, of the same agent and arm."""
        summed = {
            name: getattr(self, name) + getattr(other, name)
            for name in ("rows", "usable", "rounds", "total", "squares")
        }
        pairs = list(zip(self.features, other.features, strict=True))
        mixed = [None not in pair and pair[0] != pair[1] for pair in pairs]
        return replace(
            self,
            **summed,
            off=max(self.off, other.off),
            first=_least(min, self.first, other.first),
            last=_least(max, self.last, other.last),
            features=tuple(_least(min, *pair) for pair in pairs),
            several=tuple(map(any, zip(self.several, other.several, mixed, strict=True))),
            segment=None,
            position=None,
        )


def _least(choose: Callable[..., Any], one: Any, two: Any) -> Any:  # noqa: ANN401 (texts, numbers or times)
    return one if two is None else two if one is None else choose(one, two)


def number_of(column: LogColumn, what: str) -> str:
    """Return a column as a number; NULL if it is not one."""
    if column.kind == "BOOLEAN":
        return f"CAST({column.sql} AS TINYINT)"
    if column.kind in NUMBERS:
        return column.sql if column.kind in WHOLE else f"CAST({column.sql} AS DOUBLE)"
    if column.kind == "VARCHAR":
        return f"TRY_CAST({column.sql} AS DOUBLE)"
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


class LogRows:
    """Rows of a log: their source, the meaning of columns, the range of rewards, and the terms of every query.

    agent, arm, reward, count, time, propensity   columns as names, numbers and times in SQL; None for no time
    segment  the crossed columns as one name; NULL where one of them is empty, or without any
    position the place on the page; NULL without one
    whole    whether rewards are whole numbers, which are then summed as they are
    usable   which rows are valid
    """

    def __init__(self, source: LogSource, columns: LogColumns, scale: RewardScale) -> None:
        self.source, self.columns, self.scale = source, columns, scale
        by_name = source.columns
        self.agent = "NULL" if columns.agent is None else key_of(by_name[columns.agent], "the agent")
        self.arm = key_of(by_name[columns.arm], "the arm")
        parts = [f"CAST({key_of(by_name[name], 'the segment')} AS VARCHAR)" for name in columns.segment]
        self.segment = f" || {CROSSED!r} || ".join(parts) or "NULL"
        value = by_name[columns.value]
        reward = number_of(value, "the sum of rewards" if columns.aggregated else "the reward")
        self.reward = reward = f"-({reward})" if columns.is_cost else reward
        low, high = float(scale.low), float(scale.high)
        self.whole = value.kind in WHOLE and max(abs(low), abs(high)) < NEAR
        self.count, self.time, self.propensity = "1", None, ""
        usable = f"{reward} >= {low!r} AND {reward} <= {high!r}"
        if columns.count is not None:
            self.count = count = number_of(by_name[columns.count], "the number of rounds")
            usable = (
                f"{count} >= 0 AND {count} <= 1e15 AND {count} = floor({count}) AND {reward} >= {low!r} * {count} AND "
                f"{reward} <= {high!r} * {count}"
            )
        if columns.time is not None:
            self.time = time_of(by_name[columns.time], source)
            usable += "" if self.time is None else f" AND ({self.time}) IS NOT NULL"
        if columns.propensity is not None:
            self.propensity = number_of(by_name[columns.propensity], "the propensity")
            usable += f" AND {self.propensity} > 0 AND {self.propensity} <= 1"
        usable += f" AND ({self.segment}) IS NOT NULL" if columns.segment else ""
        self.position = "NULL"
        if columns.position is not None:
            if scale.low != 0:
                raise LogError(
                    f"expected rewards from 0 on where places are named, as attention multiplies them, got a range "
                    f"from {low:g}; leave --position out"
                )
            self.position = place = number_of(by_name[columns.position], "the place")
            usable += f" AND {place} >= 1 AND {place} <= {MOST_PLACES} AND {place} = floor({place})"
        self.usable = f"({usable})"

    def tick(self, reward: str) -> str:
        """Return a reward in SQL as a whole number: as it is, or in ticks."""
        return (
            f"CAST({reward} AS BIGINT)" if self.whole else f"TRY_CAST(round({reward} * {self.scale.ticks}) AS BIGINT)"
        )


def arm_sums(log: LogRows) -> list[ArmSums]:
    """Read the log once: a group for each agent, arm, segment and place that occur together, also missing names."""
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
    rows_of = f"(SELECT {', '.join(inner)} FROM {source.rows})"
    sql = (
        f"SELECT agent, arm, segment, position, {', '.join(sums)} FROM {rows_of} GROUP BY agent, arm, segment, position"
    )
    factor = ticks if log.whole else 1
    return [
        ArmSums(
            agent, arm, int(rows), int(usable_rows), int(rounds or 0), int(total or 0) * factor,
            int(squares or 0) * factor * factor, float(off or 0.0), first, last, tuple(rest[::2]),
            tuple(bool(mixed) for mixed in rest[1::2]), segment, position,
        )
        for agent, arm, segment, position, rows, usable_rows, rounds, total, squares, off, first, last, *rest
        in source.query(sql)
    ]  # fmt: skip


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


@dataclass(frozen=True)
class PropensitySums:
    """One arm in one half of the rows, with rewards r in [0, 1] and propensities p.

    Sums over its rows of 1, r, 1/p, r/p, 1/p^2, r/p^2 and r^2/p^2; the least and the largest p.
    """

    agent: str
    arm: str
    half: int
    rows: int
    rewards: float
    weights: float
    weighted: float
    squares: float
    weighted_squares: float
    squared_rewards: float
    least: float
    most: float


def propensity_sums(log: LogRows, owners: dict[str, str] | None) -> tuple[PropensitySums, ...]:
    """Read the log a second time, if it has propensities.

    For a target policy that serves arm a with probability q(a), the estimators of a backtest are functions of these
    sums (`backtest`). Even and odd rows are kept separate, so that a policy chosen on one half is judged on the other.
    """
    low, width = float(log.scale.low), float(log.scale.high - log.scale.low)
    log.source.connection.execute("SET preserve_insertion_order = true")
    sql = (
        "SELECT agent, arm, half, count(*), sum(r), sum(1 / p), sum(r / p), sum(1 / (p * p)), sum(r / (p * p)), "
        "sum(r * r / (p * p)), min(p), max(p) FROM (SELECT "
        f"{log.agent} AS agent, {log.arm} AS arm, log_row % 2 AS half, "
        f"(CAST({log.reward} AS DOUBLE) - {low!r}) / {width!r} AS r, CAST({log.propensity} AS DOUBLE) AS p "
        f"FROM {log.source.numbered} WHERE {log.usable}) WHERE arm IS NOT NULL GROUP BY agent, arm, half "
        "ORDER BY agent, arm, half"
    )
    halves: list[PropensitySums] = []
    for agent, arm, half, rows, *sums in log.source.query(sql):
        name = str(arm)
        owner: Any = (owners or {}).get(name) if log.columns.agent is None else agent
        if owner is not None:
            halves.append(PropensitySums(str(owner), name, int(half), int(rows), *(float(value) for value in sums)))
    return tuple(halves)
