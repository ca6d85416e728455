"""`cp.read_log`: from files or a table to the statistics of arms."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from os import PathLike
from typing import Any

from cloneproof._checks import is_one_line, whole
from cloneproof.analysis.copying.records import Feature
from cloneproof.errors import LogError, brief
from cloneproof.logs.log import Log, LoggedArm, Moment, two_owners
from cloneproof.logs.reader.cache import cache_place, load_cached, save_cached
from cloneproof.logs.reader.columns import LogColumns, chosen_columns
from cloneproof.logs.reader.fast.csv_scan import plain_csv_sums
from cloneproof.logs.reader.fast.headway import Headway
from cloneproof.logs.reader.fast.parquet_scan import plain_parquet_sums
from cloneproof.logs.reader.faults import Fault, ragged_lines, refuse, row_faults, skipped_lines
from cloneproof.logs.reader.owners import Owners, read_owners
from cloneproof.logs.reader.propensities import propensity_sums
from cloneproof.logs.reader.sources import TWICE, LogSource, log_source
from cloneproof.logs.reader.statistics import (
    ArmSums,
    RewardScale,
    RowTerms,
    arm_sums,
    checked_scale,
    exactness,
    row_terms,
)

LONGEST_NAME = 1000
MOST_LOGGED_ARMS = 1_000_000


def read_log(
    source: Any,  # noqa: ANN401 (a path, several, or a table of one of four packages)
    *,
    agent: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    time: str | None = None,
    propensity: str | None = None,
    count: str | None = None,
    total: str | None = None,
    owners: str | PathLike[str] | Owners | None = None,
    same: Sequence[str] = (),
    limits: tuple[float, float] = (0.0, 1.0),
    local_arms: bool = False,
    leave_out: bool = False,
    cache: bool = True,
    threads: int | None = None,
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
    time, propensity : str, optional
        The column with the time of a round, and with the probability with which the arm was served.
    count, total : str, optional
        Where a row stands for several rounds: the columns with their number and the sum of their rewards.
    owners : path or mapping, optional
        Whose arm it is, where the log has no agent: a mapping, or a file with an arm and an agent a line.
    same : sequence of str, optional
        Columns by which items may be recognised: a title, an address, a vector.
    limits : (float, float), default (0, 1)
        The range of rewards.
    local_arms : bool, default False
        Whether names of arms are only unique inside an agent; otherwise an arm with two agents is a fault.
    leave_out : bool, default False
        Leave out what is wrong and count it in `Log.faults`; otherwise a log with faults is refused.
    cache : bool, default True
        Keep the statistics in a file beside the log, and find them again by its content.
    threads : int, optional
        How many; all cores if left out.
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

    Examples
    --------
    >>> from cloneproof import read_log
    >>> log = read_log({"agent": ["ana", "ana", "bo"], "arm": ["a", "a", "b"], "click": [1, 0, 1]})
    >>> [(arm.agent, arm.arm, arm.rounds, int(arm.total)) for arm in log.arms]
    [('ana', 'a', 2, 1), ('bo', 'b', 1, 1)]
    >>> log.notes
    ('using `agent` as the agent', 'using `arm` as the arm', 'using `click` as the reward')
    """
    scale = checked_scale(limits)
    if threads is not None and (whole(threads) or 0) < 1:
        raise LogError(f"expected a number of threads from 1, got {brief(threads)}; or leave it out")
    same = (same,) if isinstance(same, str) else tuple(same)
    found = log_source(source, whole(threads))
    given = {"agent": agent, "arm": arm, "reward": reward, "time": time, "propensity": propensity, "count": count}
    columns = chosen_columns(list(found.columns), given | {"total": total}, same, owners is not None)
    for name in (*(each for each in columns.to_dict().values() if isinstance(each, str)), *same):
        if found.columns[name].type == TWICE:
            raise LogError(f"expected the column {brief(name)} once, got it twice in the header; rename one of them")
    owned = None if owners is None else read_owners(owners, arm=columns.arm, agent=agent)
    question = (columns, owned, scale, local_arms, leave_out)
    place = cache_place(found.files, question) if cache else None
    if place is not None and (known := load_cached(place)) is not None:
        return known
    notes: list[str] = list(columns.notes)
    headway = Headway()
    log = _with_progress(
        lambda: _read(found, columns, scale, owned, local_arms, leave_out, notes, headway), found, headway, progress
    )
    if place is not None:
        save_cached(log, place, notes.append)
    return log


def _read(
    source: LogSource,
    columns: LogColumns,
    scale: RewardScale,
    owners: dict[str, str] | None,
    local_arms: bool,
    leave_out: bool,
    notes: list[str],
    headway: Headway,
) -> Log:
    source, terms, sums = _sums(source, columns, scale, headway)
    if columns.time is not None and not terms.time:
        notes.append(f"`{columns.time}` has no times that can be read, and is not used")
    faults = ragged_lines(source)
    rows = sum(each.rows for each in sums) + skipped_lines(source)
    if source.lenient or any(
        each.usable < each.rows or each.arm is None or (owners is None and each.agent is None) for each in sums
    ):
        faults += row_faults(source, columns, scale, terms)
    arms = _arms(sums, columns, scale, owners, faults)
    if not local_arms and (several := two_owners(arms)):
        faults.append(Fault("an arm with two agents (or are names unique only inside an agent? then --local-arms)",
                            len(several), "arm", brief(several[0])))  # fmt: skip
        dropped = set(several)
        arms = [each for each in arms if each.arm not in dropped]
    if not rows and not faults:
        raise LogError("expected a log with rows, got a header and none below it; write the rows first")
    if not leave_out:
        refuse(faults, rows)
    if not arms:
        refuse(faults, rows)
        raise LogError("expected rows that can be used, got none; check which column is what")
    for number, name in enumerate(columns.same):
        mixed = sum(each.several[number] for each in sums)
        if mixed:
            notes.append(f"{mixed:,} arms have several values of `{name}`; the first by the alphabet counts")
    if columns.aggregated:
        notes.append("a row stands for several rounds, so rewards count as 0 or 1 (the widest law for their mean)")
    propensities = (
        propensity_sums(source, columns, scale, terms, owners) if columns.propensity and not columns.aggregated else ()
    )
    return Log(
        arms=tuple(sorted(arms, key=lambda each: (each.agent, each.arm))),
        rows=rows,
        low=scale.low,
        high=scale.high,
        columns=columns,
        faults=tuple(faults),
        notes=tuple(notes),
        exact=exactness(sums, scale, terms.whole),
        places=tuple(str(file) for file in source.files),
        propensities=propensities,
    )


def _sums(
    source: LogSource, columns: LogColumns, scale: RewardScale, headway: Headway
) -> tuple[LogSource, RowTerms, list[ArmSums]]:
    """By a quick way if there is one, else by DuckDB; CSV files with lines that cannot be split are read leniently."""
    try:
        terms = row_terms(source, columns, scale)
        quick = plain_csv_sums if source.kind == "csv" else plain_parquet_sums
        sums = quick(source, columns, scale, terms, headway)
        return source, terms, arm_sums(source, columns, scale, terms) if sums is None else sums
    except LogError:
        if source.kind != "csv" or headway.stop.is_set():
            raise
    source = source.leniently()
    terms = row_terms(source, columns, scale)
    return source, terms, arm_sums(source, columns, scale, terms)


def _arms(
    sums: list[ArmSums], columns: LogColumns, scale: RewardScale, owners: dict[str, str] | None, faults: list[Fault]
) -> list[LoggedArm]:
    """The arms with a name and an owner; what else is wrong with them is added to the faults."""
    arms, unowned, odd = [], [], []
    for each in sums:
        if each.arm is None or (owners is None and each.agent is None):
            continue
        name = str(each.arm)
        agent = str(each.agent) if owners is None else owners.get(name)
        if agent is None:
            unowned.append(name)
        elif not all(is_one_line(text) and len(text) <= LONGEST_NAME for text in (name, agent)):
            odd.append(name)
        elif each.rounds:
            arms.append(_arm(each, name, agent, columns, scale))
    if unowned:
        faults.append(Fault("an arm without an owner", len(unowned), "arm", brief(min(unowned))))
    if odd:
        kind = f"a name with a control character or more than {LONGEST_NAME:,} letters"
        faults.append(Fault(kind, len(odd), "arm", brief(min(odd))))
    if len(arms) > MOST_LOGGED_ARMS:
        raise LogError(
            f"expected at most {MOST_LOGGED_ARMS:,} arms, got {len(arms):,}; is {columns.arm!r} the item that was "
            "served, and not the round?"
        )
    return arms


def _arm(each: ArmSums, name: str, agent: str, columns: LogColumns, scale: RewardScale) -> LoggedArm:
    rounds, low, width, ticks = each.rounds, scale.low, scale.high - scale.low, scale.ticks
    a, b = low.as_integer_ratio()  # whole numbers, and one fraction of them at the end
    moved = Fraction((each.total * b - rounds * a * ticks) * width.denominator, ticks * b * width.numerator)
    if columns.aggregated:
        squares = moved
    else:
        above = each.squares * b * b - 2 * a * b * each.total * ticks + rounds * (a * ticks) ** 2
        squares = Fraction(above * width.denominator**2, (ticks * b * width.numerator) ** 2)
    features = {key: value for key, raw in zip(columns.same, each.features, strict=True) if (value := _feature(raw))}
    return LoggedArm(agent, name, rounds, moved, squares, _moment(each.first), _moment(each.last), features)


def _moment(value: object) -> Moment:
    if value is None:
        return None
    return float(value) if isinstance(value, int | float) else str(value)


def _feature(value: object) -> Feature | None:
    """A text or a vector; a text that is a JSON list of numbers is a vector."""
    if isinstance(value, str) and value.startswith("[") and value.endswith("]"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return str(value)
    if isinstance(value, list | tuple):
        try:
            numbers = tuple(float(each) for each in value)
        except (TypeError, ValueError):
            return str(value)
        return numbers if numbers and all(math.isfinite(each) for each in numbers) else None
    return None if value is None or value == "" else str(value)


def _with_progress(
    work: Callable[[], Log], source: LogSource, headway: Headway, progress: Callable[[float], None] | None
) -> Log:
    """Do the work in a thread of its own while this one asks how far it is; nobody asks, no thread."""
    if progress is None:
        return work()
    done: list[Log] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as problem:  # it is raised where somebody waits for it
            failed.append(problem)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
            progress(min(max(source.database.part, headway.part), 1.0))
    except BaseException:
        headway.stop.set()
        source.database.interrupt()
        raise
    if failed:
        raise failed[0]
    return done[0]
