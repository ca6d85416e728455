"""What a backtest needs of the propensities of a log: sums by arm, in two halves of the rows.

For a target policy that serves arm a with probability q(a) whatever came before, the estimators of a backtest are
functions of these sums (`backtest`). Even and odd rows are kept apart, so that a policy that was chosen on one half is
judged on the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cloneproof.logs.reader.columns import LogColumns
from cloneproof.logs.reader.sources import LogSource
from cloneproof.logs.reader.statistics import RewardScale, RowTerms


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


def propensity_sums(
    source: LogSource, columns: LogColumns, scale: RewardScale, terms: RowTerms, owners: dict[str, str] | None
) -> tuple[PropensitySums, ...]:
    """A second pass, where the log has propensities."""
    low, width = float(scale.low), float(scale.high - scale.low)
    source.database.connection.execute("SET preserve_insertion_order = true")
    sql = (
        "SELECT agent, arm, half, count(*), sum(r), sum(1 / p), sum(r / p), sum(1 / (p * p)), sum(r / (p * p)), "
        "sum(r * r / (p * p)), min(p), max(p) FROM (SELECT "
        f"{terms.agent} AS agent, {terms.arm} AS arm, log_row % 2 AS half, "
        f"(CAST({terms.reward} AS DOUBLE) - {low!r}) / {width!r} AS r, CAST({terms.propensity} AS DOUBLE) AS p "
        f"FROM {source.numbered} WHERE {terms.usable}) WHERE arm IS NOT NULL GROUP BY agent, arm, half "
        "ORDER BY agent, arm, half"
    )
    found: list[PropensitySums] = []
    for agent, arm, half, rows, *sums in source.query(sql):
        name = str(arm)
        owner: Any = (owners or {}).get(name) if columns.agent is None else agent
        if owner is not None:
            found.append(PropensitySums(str(owner), name, int(half), int(rows), *(float(each) for each in sums)))
    return tuple(found)
