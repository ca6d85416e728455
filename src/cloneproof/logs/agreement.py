"""Whether the rewards of arms contradict that they are one item.

Real copies do not share one rate: in the Upworthy archive the log-odds of packages that are equal in all fields differ
by .139 +- .007 beyond sampling (studies/upworthy_copies.py). So the squared distances of log-odds from their common
mean, over the variances of sampling and of that spread, add up to a chi-square if the arms are one item. Rewards can
contradict, and never prove: different items may well earn alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy.special import chdtrc

from cloneproof.logs.log import LoggedArm

ONE_ITEM_SPREAD: Final = 0.14  # standard deviation of the log-odds of one item's arms
UNLIKELY: Final = 0.001  # chance below which rewards contradict


def agreement(arms: Sequence[LoggedArm]) -> float | None:
    """Return the chance of rewards that differ at least as much if the arms are one item; None for fewer than two.

    Arms that were never served say nothing. Rewards of a smaller variance than binary ones count as so many more.

    >>> near, far = (LoggedArm("ana", name, 10_000, hits, hits) for name, hits in (("a", 310), ("b", 700)))
    >>> agreement([near, near]), round(agreement([near, far]), 6)
    (1.0, 4.7e-05)
    """
    served = [arm for arm in arms if arm.rounds]
    if len(served) < 2:
        return None
    rounds, totals, squares = (
        np.array([float(getattr(arm, name)) for arm in served]) for name in ("rounds", "total", "squares")
    )
    own, binary = (squares - totals**2 / rounds).sum(), (totals * (rounds - totals) / rounds).sum()
    worth = max(binary / own, 1.0) if own > 0 else 1.0
    hits, misses = totals * worth + 0.5, (rounds - totals) * worth + 0.5
    odds, weights = np.log(hits / misses), 1 / (1 / hits + 1 / misses + ONE_ITEM_SPREAD**2)
    apart = weights @ (odds - np.average(odds, weights=weights)) ** 2
    return float(chdtrc(len(served) - 1, apart))
