"""`cp.read_log`: from files or a table to the statistics of arms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from fractions import Fraction
from functools import partial
from os import PathLike
from typing import Any, Final

import numpy as np

from cloneproof._lib.checks import count as checked_count
from cloneproof._lib.checks import is_one_line
from cloneproof._lib.sources import TWICE, LogSource, log_source
from cloneproof.errors import LogError, OutOfTimeError, brief
from cloneproof.logs.attention import PlaceAttention, by_attention
from cloneproof.logs.columns import LIKELY_SEGMENTS, LogColumns, chosen_columns
from cloneproof.logs.faults import Fault, refuse, row_faults, skipped_lines
from cloneproof.logs.log import MILLISECONDS, SECONDS, Log, LoggedArm, Moment
from cloneproof.logs.statistics import (
    KEYS,
    ArmSums,
    LogRows,
    RewardScale,
    arm_sums,
    checked_scale,
    exactness,
    key_of,
)
from cloneproof.market.delays import Delays, delays_of
from cloneproof.runs.deadline import Deadline

LONGEST_NAME: Final = 1000  # letters of an agent's or arm's name
MOST_LOGGED_ARMS: Final = 1_000_000
MOST_LOGGED_SEGMENTS: Final = 10_000
LEVEL: Final = 0.001  # of the test behind a note, for all columns together
MOST_VALUES: Final = 1000  # values of a column up to which it is tested
LEAST_EXPECTED: Final = 5.0  # rewards and failures that a cell of the test must expect


def read_owners(owners: object, arm: str | None = None, agent: str | None = None) -> dict[str, str]:
    """Read the agent of each arm; a file's columns by name, or the first named like an arm and like an agent.

    >>> read_owners({"a": "ana", 7: "bo"})
    {'a': 'ana', '7': 'bo'}
    """
    if isinstance(owners, Mapping):
        return {str(key): str(value) for key, value in owners.items()}
    if not isinstance(owners, str | PathLike):
        raise LogError(f"expected a mapping of arms to agents, or a file of them, got {brief(owners)}; give one")
    source = log_source(owners)
    names = list(source.columns)
    if len(names) == 2 and arm is None and agent is None:
        pair = names
    else:
        here = {"arm": arm if arm in names else None, "agent": agent if agent in names else None}
        columns = chosen_columns([*names, "reward"], here | {"reward": "reward"})
        pair = [columns.arm, str(columns.agent)]
    first, second = (f"CAST({source.columns[name].sql} AS VARCHAR)" for name in pair)
    rows = source.query(
        f"SELECT {first} AS arm, min({second}), count(DISTINCT {second}) FROM {source.rows} GROUP BY arm"
    )
    named = {}
    for name, owner, several in rows:
        if not name or not owner:
            raise LogError("expected an arm and an agent in every line of the owners, got one without; complete it")
        if several > 1:
            raise LogError(f"expected one agent for the arm {brief(name)}, got {several} in the owners; keep one")
        named[str(name)] = str(owner)
    if not named:
        raise LogError("expected owners of arms, got a file without rows; write a line for each arm")
    return named


def read_log(
    source: Any,  # noqa: ANN401 (a path, several, or a table of one of four packages)
    *,
    agent: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    time: str | None = None,
    count: str | None = None,
    total: str | None = None,
    owners: str | PathLike[str] | Mapping[str, str] | None = None,
    segment: str | Sequence[str] = (),
    position: str | None = None,
    same: str | Sequence[str] = (),
    reward_range: tuple[float, float] = (0.0, 1.0),
    local_arms: bool = False,
    leave_out: bool = False,
    threads: int | None = None,
    seconds: float | None = None,
    progress: Callable[[float], None] | None = None,
) -> Log:
    """Read a log: which agent's arm was served, and what the reward was.

    One pass over the rows, by DuckDB (extra `cloneproof[log]`), which streams files of any size. Everything after
    costs what the arms cost, not the rows.

    Parameters
    ----------
    source : str, path, list of them, or table
        Files, globs or folders of CSV, Parquet or JSON lines; or a table of DuckDB, pandas, polars or pyarrow.
    agent, arm, reward : str, optional
        The columns with the provider, the item that was served and its reward. Guessed where left out (`Log.notes`).
    time : str, optional
        The column with the time of a round.
    count, total : str, optional
        Where a row stands for several rounds: the columns with their number and the sum of their rewards.
    owners : path or mapping, optional
        Whose arm it is, where the log has no agent: a mapping, or a file with an arm and an agent a line.
    segment : str or sequence of str, optional
        The column with the segment of the user (device, query, type of request); several are crossed.
    position : str, optional
        The column with the place on the page, from 1; rates are then corrected by the attention of each
        (`Log.attention`).
    same : sequence of str, optional
        Columns by which items may be recognised: a title, an address.
    reward_range : (float, float), default (0, 1)
        The range of rewards.
    local_arms : bool, default False
        Whether names of arms are only unique inside an agent; otherwise an arm with two agents is a fault.
    leave_out : bool, default False
        Leave out what is wrong and count it in `Log.faults`; otherwise a log with faults is refused.
    threads : int, optional
        How many; all cores if left out.
    seconds : float, optional
        Give up after this much wall-clock time.
    progress : callable, optional
        Called with the part of the rows that is done, from 0 to 1.

    Returns
    -------
    Log
        Its `arms` have rounds, the sum of rewards and of their squares.

    Raises
    ------
    LogError
        Where the log cannot be read, or has faults.
    OutOfTimeError
        If it was not read in time.

    Examples
    --------
    >>> from cloneproof import read_log
    >>> log = read_log({"agent": ["ana", "ana", "bo"], "arm": ["a", "a", "b"], "click": [1, 0, 1]})
    >>> [(arm.agent, arm.arm, arm.rounds, int(arm.total)) for arm in log.arms]
    [('ana', 'a', 2, 1), ('bo', 'b', 1, 1)]
    >>> log.notes
    ('using `agent` as the agent', 'using `arm` as the arm', 'using `click` as the reward')
    """
    scale = checked_scale(reward_range)
    same, segment = ((names,) if isinstance(names, str) else tuple(names) for names in (same, segment))
    clock = Deadline(seconds)
    table = log_source(source, None if threads is None else checked_count(threads, "threads", error=LogError))
    given = {"agent": agent, "arm": arm, "reward": reward, "time": time, "count": count}
    columns = chosen_columns(
        list(table.columns),
        given | {"total": total, "position": position},
        same,
        owners is not None,
        segment,
        str(table.files[0]) if len(table.files) == 1 else "FILE",
    )
    for name in columns.names:
        if table.columns[name].type == TWICE:
            raise LogError(f"expected the column {brief(name)} once, got it twice in the header; rename one of them")
    owned = None if owners is None else read_owners(owners, arm=columns.arm, agent=agent)
    work = partial(_read, table, columns, scale, owned, local_arms, leave_out)
    return _watched(work, table, clock, progress)


def _read(
    source: LogSource,
    columns: LogColumns,
    scale: RewardScale,
    owners: dict[str, str] | None,
    local_arms: bool,
    leave_out: bool,
) -> Log:
    """Read CSV files leniently if some lines cannot be split."""
    try:
        log = LogRows(source, columns, scale, owners)
        sums, in_segments, in_places = arm_sums(log)
    except LogError:
        if source.kind != "csv" or source.lenient:
            raise
        return _read(source.leniently(), columns, scale, owners, local_arms, leave_out)
    skipped, faults = skipped_lines(source)
    rows = sum(arm.rows for arm in sums) + skipped
    places: tuple[PlaceAttention, ...] = ()
    if columns.position is not None:
        sums, in_segments, places, unknown = by_attention(sums, in_segments, in_places, scale.high * scale.ticks)
        faults += unknown
    if source.lenient or any(arm.usable < arm.rows for arm in sums):
        faults += row_faults(log)
    arms = _arms(sums, log, faults)
    several = {name for name, count in Counter(arm.arm for arm in arms).items() if count > 1}
    if several and not local_arms:
        kind = "an arm with two agents (or are names unique only inside an agent? then --local-arms)"
        faults.append(Fault(kind, len(several), "arm", brief(min(several))))
        arms = [arm for arm in arms if arm.arm not in several]
    if owners is not None:
        known = {arm.arm for arm in arms} | several | {str(own.arm) for own in sums}
        none = Fraction(0)
        arms += [LoggedArm(owner, name, 0, none, none) for name, owner in owners.items() if name not in known]
    segments = _segments(in_segments, {arm.place for arm in arms}, log)
    if not rows and not faults:
        raise LogError("expected a log with rows, got a header and none below it; write the rows first")
    if not leave_out or not arms:
        refuse(faults, rows)
    if not arms:
        raise LogError("expected rows that can be used, got none; check which column is what")
    arms.sort(key=lambda arm: arm.place)
    return Log(
        arms=tuple(arms),
        rows=rows,
        low=scale.low,
        high=scale.high,
        columns=columns,
        faults=tuple(faults),
        notes=(*columns.notes, *_notes(log, sums)),
        exact=exactness(sums, scale, log.whole),
        places=tuple(str(file) for file in source.files),
        segments=segments,
        attention=places,
        delays=_delays(log),
    )


def _delays(log: LogRows) -> Delays | None:
    """Return the law of the delays of rewards, if the log tells when they came."""
    if log.time is None or log.arrival is None or log.columns.aggregated:
        return None
    calendar = "TIMESTAMP" in log.time
    ends = [f"epoch({sql})" if calendar else f"CAST({sql} AS DOUBLE)" for sql in (log.time, log.arrival)]
    rows = log.valid(log.source.rows, shown=ends[0], came=ends[1])
    moments = np.array(
        log.source.query(f"SELECT shown, came FROM {rows} WHERE r > {float(log.scale.low)!r} AND came >= shown")
    )
    if not len(moments) or (not calendar and moments.min() < SECONDS):
        return None
    hour = 3600.0 if calendar or moments.max() < MILLISECONDS else 3.6e6
    return delays_of(*(moments.T / hour).tolist())


def _segments(
    sums: Sequence[ArmSums], kept: Collection[tuple[str, str]], log: LogRows
) -> dict[str, tuple[LoggedArm, ...]]:
    """Return the arms of each segment, without those that are left out of the log; the largest segment first."""
    by_name: dict[str, list[ArmSums]] = {}
    for own in sums:
        if own.segment is not None:
            by_name.setdefault(own.segment, []).append(own)
    odd = next((name for name in by_name if not is_one_line(name) or len(name) > LONGEST_NAME), None)
    if odd is not None or len(by_name) > MOST_LOGGED_SEGMENTS:
        got = brief(odd) if odd is not None else f"{len(by_name):,} of them"
        raise LogError(
            f"expected up to {MOST_LOGGED_SEGMENTS:,} segments with names of one line, got {got}; name a column with "
            "fewer values by --segment"
        )
    arms = {name: [arm for arm in _arms(groups, log, []) if arm.place in kept] for name, groups in by_name.items()}
    sized = sorted(arms, key=lambda name: (-sum(arm.rounds for arm in arms[name]), name))
    return {name: tuple(sorted(arms[name], key=lambda arm: arm.place)) for name in sized if arms[name]}


def _notes(log: LogRows, sums: Sequence[ArmSums]) -> list[str]:
    notes, columns = [], log.columns
    if columns.time is not None and log.time is None:
        notes.append(f"`{columns.time}` has no times that can be read, and is not used")
    for number, name in enumerate(columns.same):
        if mixed := sum(arm.several[number] for arm in sums):
            notes.append(f"{mixed:,} arms have several values of `{name}`; the first by the alphabet counts")
    notes += _segment_notes(log)
    if columns.position is not None:
        notes.append(
            "rates are those in the first place: a view counts by the attention of its place, an item's rounds are "
            "rounded up, and rewards stay as counted; below, attention is taken as known"
        )
    if columns.aggregated:
        notes.append("a row stands for several rounds, so rewards count as 0 or 1 (the widest law for their mean)")
    return notes


def _segment_notes(log: LogRows) -> list[str]:
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
        if (chance := _unlikeliness(log, name)) < LEVEL / len(likely)
    ]


def _words(chance: float) -> str:
    return "p below 1e-6" if chance < 1e-6 else f"p = {chance:.1g}"


def _unlikeliness(log: LogRows, name: str) -> float:
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


def _arms(sums: Sequence[ArmSums], log: LogRows, faults: list[Fault]) -> list[LoggedArm]:
    """Return the arms with a name and an owner; adds other problems to the faults."""
    arms, unowned, odd = [], [], []
    for own in sums:
        if own.arm is None or (log.owners is None and own.agent is None):
            continue
        place = log.named(own.agent, own.arm)
        if place is None:
            unowned.append(str(own.arm))
        elif not all(is_one_line(text) and len(text) <= LONGEST_NAME for text in place):
            odd.append(place[1])
        elif own.rounds:
            arms.append(_arm(own, *place, log.columns, log.scale))
    if unowned:
        faults.append(Fault("an arm without an owner", len(unowned), "arm", brief(min(unowned))))
    if odd:
        kind = f"a name with a control character or more than {LONGEST_NAME:,} letters"
        faults.append(Fault(kind, len(odd), "arm", brief(min(odd))))
    if len(arms) > MOST_LOGGED_ARMS:
        raise LogError(
            f"expected at most {MOST_LOGGED_ARMS:,} arms, got {len(arms):,}; is {log.columns.arm!r} the item that was "
            "served, and not the round?"
        )
    return arms


def _arm(sums: ArmSums, agent: str, name: str, columns: LogColumns, scale: RewardScale) -> LoggedArm:
    rounds, low, width, ticks = sums.rounds, scale.low, scale.high - scale.low, scale.ticks
    a, b = low.as_integer_ratio()  # whole numbers, and one fraction of them at the end
    moved = Fraction((sums.total * b - rounds * a * ticks) * width.denominator, ticks * b * width.numerator)
    if columns.aggregated:
        squares = moved
    else:
        above = sums.squares * b * b - 2 * a * b * sums.total * ticks + rounds * (a * ticks) ** 2
        squares = Fraction(above * width.denominator**2, (ticks * b * width.numerator) ** 2)
    texts = zip(columns.same, sums.features, strict=True)
    features = {key: str(value) for key, value in texts if value is not None and value != ""}
    return LoggedArm(agent, name, rounds, moved, squares, _moment(sums.first), _moment(sums.last), features)


def _moment(value: object) -> Moment:
    if value is None:
        return None
    return float(value) if isinstance(value, int | float) else str(value)


def _watched(
    work: Callable[[], Log], source: LogSource, clock: Deadline, progress: Callable[[float], None] | None
) -> Log:
    """Do the work in another thread; this one reports progress and interrupts it when time is out."""
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(work)
        try:
            while not job.done():
                wait([job], 0.2)
                if progress is not None:
                    progress(source.part)
                if clock.spent and not job.done():
                    raise OutOfTimeError(
                        f"expected to read the log within {clock.limit:g} s, got about {source.part:.0%} of its rows",
                        "give more --seconds",
                    )
        except BaseException:
            while not job.done():
                source.connection.interrupt()
                wait([job], 0.2)
            raise
        return job.result()
