"""The table of `cloneproof mechanisms --award-table`: from which horizon on the hold-out mechanism has an award."""

from __future__ import annotations

from typing import Any, Final

from cloneproof.bounds import holdout_award_horizon

AGENTS: Final = (2, 5, 20, 100)
ORIGINALS: Final = (2, 3, 5)
GAPS: Final = (0.5, 0.2, 0.1)
COLUMNS: Final = (
    "agents",
    "originals",
    *(f"gap {gap:g}" for gap in GAPS),
    "0.1, unknown between agents",
    "no gap known",
)


def award_rows() -> list[dict[str, Any]]:
    """One row for each (n, L): K = L, rewards in [0, 1], the agents' gap equal to the gap unless a column says more.

    >>> award_rows()[0]["gap 0.5"]
    100
    """
    rows = []
    for agents in AGENTS:
        for originals in ORIGINALS:
            known = [holdout_award_horizon(agents, originals, gap, gap) for gap in GAPS]
            half = holdout_award_horizon(agents, originals, GAPS[-1], None)
            nothing = holdout_award_horizon(agents, originals, None, None)
            rows.append(dict(zip(COLUMNS, (agents, originals, *known, half, nothing), strict=True)))
    return rows
