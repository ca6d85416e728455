"""Rows counted by agent, arm and reward, where rewards have few values: the terms are then worked out once a group.

DuckDB groups columns as they are stored faster than terms of them (a dictionary of names is hashed once, not every
row). The groups have the log's own columns, so the terms of a log apply to them as to its rows.
"""

from __future__ import annotations

from typing import Final

from cloneproof.logs.reader.columns import LogColumns
from cloneproof.logs.reader.sources import LogSource

SMALL: Final = ("BOOLEAN", "TINYINT", "UTINYINT")
MOST_VALUES: Final = 256


def counted_rows(source: LogSource, columns: LogColumns, whole: bool, moment: str) -> str | None:
    """A relation with `log_count`, the rows of a group, and `log_last`, its last time; None where it is no gain.

    Rewards must be whole numbers; `moment` is the term of the time, empty where there is none.
    """
    taken = any(name.lower().startswith("log_") for name in source.columns)
    if taken or not whole or columns.aggregated or columns.propensity is not None or columns.same:
        return None
    reward = source.columns[str(columns.reward)]
    keys = [source.columns[name].sql for name in (columns.agent, columns.arm, columns.reward) if name is not None]
    timed = []
    if moment:
        time = source.columns[str(columns.time)]
        if time.type == "VARCHAR":
            return None  # its first value by the alphabet need not be its first time
        keys.append(f"{time.sql} IS NULL AS log_untimed")
        timed = [f"min({time.sql}) AS {time.sql}", f"max({moment}) AS log_last"]
    if len(set(keys)) < len(keys) or (reward.type not in SMALL and not _few_values(source, reward.sql)):
        return None
    numbers = ", ".join(str(number) for number in range(1, len(keys) + 1))
    selected = ", ".join([*keys, *timed, "count(*) AS log_count"])
    return f"(SELECT {selected} FROM {source.rows} GROUP BY {numbers})"


def _few_values(source: LogSource, column: str) -> bool:
    """Whether whole numbers are near each other; the statistics of a Parquet file say so without a look at its rows."""
    if source.kind != "parquet":
        return False
    ((low, high),) = source.query(f"SELECT min({column}), max({column}) FROM {source.rows}")
    return low is not None and int(high) - int(low) < MOST_VALUES
