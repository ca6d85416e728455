"""Rows that take a moment and compute little, for tests of what runs rows."""

import time

from cloneproof.paper.evidence import above
from cloneproof.paper.findings import Findings, FindingsTable, claim
from cloneproof.runs.estimate import Estimate

MOMENT = 0.15  # seconds


def planted(number, setting):
    """Findings that depend on the row, the seed and the scale, and on nothing else."""
    time.sleep(MOMENT)
    gain = Estimate(0.1 * number + setting.seed, 0.01, "exact", "planted")
    return Findings(
        f"planted, {setting.scale}",
        (claim("it is positive", above(gain), ("gain", gain), ("row", number)),),
        (FindingsTable("a table", ("row", "gain"), ((str(number), gain), ("a third", 1 / 3))),),
    )
