"""Sums over segments, and whether rates differ between values of a column that nobody named as one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

from cloneproof.logs.columns import LIKELY_SEGMENTS
from cloneproof.logs.log import Log, LoggedArm
from cloneproof.logs.statistics import KEYS, LogRows, key_of

LEVEL: Final = 0.001  # of the test behind a note, for all columns together
MOST_VALUES: Final = 1000  # values of a column up to which it is tested
MOST_STUDIED: Final = 6  # segments of a study; further ones are pooled
LEAST_EXPECTED: Final = 5.0  # rewards and failures that a cell of the test must expect


def studied_segments(log: Log) -> dict[str, Log]:
    """Return the log of each segment, the smallest pooled where there are many; the whole log without segments.

    >>> import cloneproof as cp
    >>> rows = {"agent": ["a"] * 3, "arm": ["x"] * 3, "click": [1, 0, 1], "device": ["tv", "tv", "phone"]}
    >>> {name: own.rounds for name, own in studied_segments(cp.read_log(rows, segment="device")).items()}
    {'tv': 2, 'phone': 1}
    """
    if not log.segments:
        return {"": log}
    names = list(log.segments)
    kept = names if len(names) <= MOST_STUDIED else names[: MOST_STUDIED - 1]
    segments = {name: log.segment(name) for name in kept}
    pooled: dict[tuple[str, str], LoggedArm] = {}
    for arm in (arm for name in names[len(kept) :] for arm in log.segments[name]):
        before = pooled.get(arm.place, replace(arm, rounds=0, total=Fraction(0), squares=Fraction(0)))
        sums = {name: getattr(before, name) + getattr(arm, name) for name in ("rounds", "total", "squares")}
        pooled[arm.place] = replace(before, **sums)
    rest = {f"{len(names) - len(kept)} others": tuple(pooled[place] for place in sorted(pooled))} if pooled else {}
    return segments | {name: replace(segments[kept[0]], arms=arms) for name, arms in rest.items()}


def segment_notes(log: LogRows) -> list[str]:
    """Return a note for each column by which rates differ, if no segment was named.

    Of each arm, in each place, the rewards are compared between the values of the column, by Pearson's statistic for a
    common mean; the statistics of all arms are added. Under a common mean it has a chi-square law, for cells that
    expect at least five successes and failures; rewards between 0 and 1 vary less, so that it is smaller for them. A
    policy that serves by the column does not change that, and one that learns from rewards in each of its values a
    little.
    """
    if log.columns.segment:
        return []
    keys = {name: column for name, column in log.source.columns.items() if column.kind in KEYS}
    likely = [name for name in keys if name.lower() in LIKELY_SEGMENTS and name not in log.columns.names]
    return [
        f"rates differ between the values of `{name}` ({_words(chance)}; chi-square within items at a level of "
        f"{LEVEL:g}): --segment {name} asks for each"
        for name in likely
        if (chance := unlikeliness(log, name)) < LEVEL / len(likely)
    ]


def _words(chance: float) -> str:
    return "p below 1e-6" if chance < 1e-6 else f"p = {chance:.1g}"


def unlikeliness(log: LogRows, name: str) -> float:
    """Return the p-value of the hypothesis that each arm has one mean for all values of a column."""
    from scipy.special import chdtrc  # slow to import, and not always needed

    low, width = float(log.scale.low), float(log.scale.high - log.scale.low)
    scaled = f"(CAST({log.reward} AS DOUBLE) - {low!r} * {log.count}) / {width!r}"
    value = f"CAST({key_of(log.source.columns[name], 'the segment')} AS VARCHAR)"
    rows = log.valid(log.source.rows, part=value, n=f"CAST({log.count} AS DOUBLE)", r=scaled)
    ((values,),) = log.source.query(f"SELECT approx_count_distinct(part) FROM {rows}")
    if not 1 < values <= MOST_VALUES:
        return 1.0
    cells = log.source.query(
        f"SELECT agent, arm, place, sum(n), sum(r) FROM {rows} WHERE part IS NOT NULL GROUP BY agent, arm, place, part"
    )
    arms: dict[tuple[object, ...], list[tuple[float, float]]] = {}
    for agent, arm, place, rounds, total in cells:
        arms.setdefault((agent, arm, place), []).append((float(rounds), float(total)))
    statistic, freedom = 0.0, 0
    for own in arms.values():
        mean = sum(total for _, total in own) / max(sum(rounds for rounds, _ in own), 1.0)
        enough = [(n, total) for n, total in own if n * min(mean, 1 - mean) >= LEAST_EXPECTED]
        mean = sum(total for _, total in enough) / max(sum(n for n, _ in enough), 1.0)
        if len(enough) < 2 or not 0.0 < mean < 1.0:
            continue
        statistic += sum((total - n * mean) ** 2 / (n * mean * (1 - mean)) for n, total in enough)
        freedom += len(enough) - 1
    return float(chdtrc(freedom, statistic)) if freedom else 1.0
