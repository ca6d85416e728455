"""Sums over cells of time: weeks (days or equal spans of a shorter log), and parts of the week.

The span of a log and the attention of its places are known after the first pass, so these sums take one of their own,
over three columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.logs.statistics import ArmSums, LogRows

DAY: Final = 86_400.0  # seconds
WEEK: Final = 7 * DAY
LEAST_SPANS: Final = 6  # weeks, else days, from which on they are the cells
SPANS: Final = 12  # equal ones of a log that is shorter, or whose times are numbers
MOST_SPANS: Final = 35  # a longer log has several weeks in each
BLOCK: Final = 4  # hours
MOST_TIMED_ARMS: Final = 20_000  # arms of a log whose sums are taken by time
UNITS: Final = (1.0, 1e3, 1e6, 1e9)  # of numbers that are times since 1970: seconds, and thousandths and so on
PLAUSIBLE: Final = (9.4e8, 4.2e9)  # seconds since 1970 that such times lie between: 1999 to 2103
PARTS: Final = 10**6  # of a view, in which attention is counted: sums are of whole numbers, in any order of rows
EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True)
class CellSums:
    """Counts of a log's arms by cell of time.

    what     "weeks", "days" or "spans" of equal length; or "parts of the week"
    names    the cells: of weeks and days the first day, of spans where they begin, of parts of the week such as
             "weekend 8-12 h"
    rounds   of each arm (a row, in the order of `Log.arms`) in each cell (a column); views by their attention
    totals   the sums of rewards, in [0, 1] by the declared range
    """

    what: str
    names: tuple[str, ...]
    rounds: FloatArray
    totals: FloatArray


@dataclass(frozen=True)
class _Spans:
    """How the time of a row becomes a cell: `moment` in SQL, in seconds since 1970 if `dated`."""

    what: str
    moment: str
    start: float
    width: float
    spans: int
    dated: bool

    @property
    def names(self) -> tuple[str, ...]:
        starts = [self.start + self.width * number for number in range(self.spans)]
        if not self.dated:
            return tuple(f"from {start:.6g}" for start in starts)
        dates = [EPOCH + timedelta(seconds=start) for start in starts]
        return tuple(str(date)[: 10 if self.what in ("weeks", "days") else 16] for date in dates)


def time_sums(
    log: LogRows,
    sums: Sequence[ArmSums],
    places: Sequence[tuple[str, str]],
    attention: Mapping[int, float],
) -> tuple[CellSums | None, CellSums | None]:
    """Read the log again: sums by week and by part of the week of the arms that stand at `places`; None without times.

    sums       of the arms, with their first and last times
    attention  of each place on a page, by which views count
    """
    clock = _clock(log, sums)
    if clock is None or len(places) > MOST_TIMED_ARMS:
        return None, None
    counted, parts_of, ticks = log.count, 1, log.scale.ticks
    if attention:
        cases = " ".join(f"WHEN {place} THEN {round(PARTS * weight)}" for place, weight in attention.items())
        counted, parts_of = f"{log.count} * CASE {log.position} {cases} END", PARTS
    week = f"CAST(least(floor(({clock.moment} - {clock.start!r}) / {clock.width!r}), {clock.spans - 1}) AS INTEGER)"
    day = f"(CAST(floor({clock.moment} / {DAY!r}) AS BIGINT) + 3) % 7"  # from Monday
    block = f"CAST(floor(({clock.moment} % {DAY!r}) / {3600.0 * BLOCK!r}) AS INTEGER)"
    part = f"CASE WHEN {day} > 4 THEN {24 // BLOCK} ELSE 0 END + {block}" if clock.dated else "0"
    counts = {"n": f"CAST({counted} AS BIGINT)", "plain": f"CAST({log.count} AS BIGINT)"}
    cells = log.source.query(
        "SELECT agent, arm, week, part, sum(n), sum(r), sum(plain) FROM "
        f"{log.valid(log.source.rows, week=week, part=part, r=log.tick(log.reward), **counts)} "
        "WHERE n IS NOT NULL GROUP BY GROUPING SETS ((agent, arm, week), (agent, arm, part))"
    )
    parts = tuple(f"{days} {hour}-{hour + BLOCK} h" for days in ("weekday", "weekend") for hour in range(0, 24, BLOCK))
    row_of: dict[tuple[str, str] | None, int] = {place: row for row, place in enumerate(places)}
    weeks, hours = (np.zeros((2, len(places), size)) for size in (clock.spans, len(parts)))
    low, width, factor = float(log.scale.low), float(log.scale.high - log.scale.low), 1 if log.whole else ticks
    for agent, arm, week_number, part_number, views, rewards, plain in cells:
        if (row := row_of.get(log.named(agent, arm))) is not None:
            table, column = (hours, part_number) if week_number is None else (weeks, week_number)
            total = (float(rewards) / factor - low * float(plain)) / width
            table[:, row, column] += max(float(views) / parts_of, total), total
    by_week = CellSums(clock.what, clock.names, *weeks)
    used = hours[0].any(axis=0)
    named = tuple(name for name, seen in zip(parts, used, strict=True) if seen)
    return by_week, CellSums("parts of the week", named, *hours[..., used]) if clock.dated else None


def _clock(log: LogRows, sums: Sequence[ArmSums]) -> _Spans | None:
    """Choose the spans: weeks, else days, else equal ones; of a log of many weeks several weeks each."""
    times = [(arm.first, arm.last) for arm in sums if arm.first is not None]
    if log.time is None or not times:
        return None
    first, last = min(first for first, _ in times), max(last for _, last in times)
    if isinstance(first, datetime):
        moment, unit, begin, end = (
            f"epoch({log.time})",
            1.0,
            *((moment - EPOCH).total_seconds() for moment in (first, last)),
        )
    else:
        begin, end, moment = float(first), float(last), f"CAST({log.time} AS DOUBLE)"
        unit = next((unit for unit in UNITS if PLAUSIBLE[0] <= begin / unit <= end / unit <= PLAUSIBLE[1]), 0.0)
    if not -math.inf < begin < end < math.inf:
        return None
    if not unit:
        return _Spans("spans", moment, begin, (end - begin) / SPANS, SPANS, dated=False)
    begin, end, moment = begin / unit, end / unit, f"({moment} / {unit!r})"
    midnight = begin // DAY * DAY
    for what, width in (("weeks", WEEK), ("days", DAY)):
        if (spans := int((end - midnight) // width) + 1) >= LEAST_SPANS:
            several = -(-spans // MOST_SPANS)
            return _Spans(what, moment, midnight, several * width, -(-spans // several), dated=True)
    return _Spans("spans", moment, begin, (end - begin) / SPANS, SPANS, dated=True)
