"""What the rewards of one arm say about its mean: a likelihood on a grid of means.

Whom a mechanism serves depends on past rewards and on its own dice, so the choice of rounds drops out of the
likelihood: adaptive sampling changes nothing here (it would, for confidence intervals). The laws:

    bernoulli, or any rewards in [0, 1]   binomial. Among the laws on [0, 1] with a given mean the binary one has the
                                          largest variance, so for others this says less than the rewards do, not more
    beta                                  quasi-binomial (Wedderburn 1974): the beta law's variance, m(1-m)/(c+1)
    gaussian                              exact
    deterministic                         exact, up to the grid

No arm is believed to be known better than two steps of the grid: beyond that its evidence is scaled down. Two arms of
the same mean that lies between two points of the grid would otherwise fall on different points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import xlog1py, xlogy

from cloneproof._arrays import FloatArray
from cloneproof.errors import EngineError
from cloneproof.market.family import BOUNDED, RewardFamily

POINTS: Final = 2001
GRID: Final[FloatArray] = np.linspace(0.0, 1.0, POINTS)
_RESOLVED: Final = (2 / (POINTS - 1)) ** 2  # the smallest variance of a mean that the grid can carry
_EDGE: Final = 4000.0  # so many binary rewards are believed at any mean: near 0 and 1 the variance alone is no guide


@dataclass(frozen=True)
class ArmRewards:
    """An arm of a season: how many rewards came, and their mean (whatever it is where there are none)."""

    agent: str
    arm: str
    rewards: int
    mean: float


def log_likelihood(arm: ArmRewards, family: RewardFamily) -> FloatArray:
    """The log-likelihood of each mean on the grid, up to a constant; its largest value is 0.

    >>> seen = log_likelihood(ArmRewards("ana", "a", 10, 0.3), BOUNDED)
    >>> float(GRID[np.argmax(seen)]), float(seen[0]) == -np.inf
    (0.3, True)
    """
    if arm.rewards == 0:
        return np.zeros(POINTS)
    if family.name in ("gaussian", "deterministic"):
        variance = family.options.get("sd", 0.0) ** 2 / arm.rewards
        logarithm = -((GRID - arm.mean) ** 2) / (2 * max(variance, _RESOLVED))
    else:
        mean = min(max(arm.mean, 0.0), 1.0)
        worth = _binary_worth(family) * arm.rewards
        smooth = (mean * worth + 0.5) / (worth + 1)
        believed = min(worth, max(_EDGE, smooth * (1 - smooth) / _RESOLVED))
        logarithm = believed * (xlogy(mean, GRID) + xlog1py(1 - mean, -GRID))
    return np.asarray(logarithm - logarithm.max())


def _binary_worth(family: RewardFamily) -> float:
    """How many binary rewards one reward of this family is worth: the ratio of their variances at the same mean."""
    if family.name in ("bernoulli", BOUNDED.name):
        return 1.0
    if family.name == "beta":
        return 1.0 + family.options["concentration"]
    raise EngineError(
        f"expected rewards that are bernoulli, beta, gaussian, deterministic or just bounded, got {family.name!r}; "
        "declare the market without a family, which takes any rewards in [0, 1]"
    )
