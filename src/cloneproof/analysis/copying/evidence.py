"""What each arm's rewards say about its mean, on a grid that suits the log: click rates of .4 % as well as ratings.

The grid is even on the scale  2 arcsin(sqrt(mean)),  on which n binary rewards have the standard deviation 1/sqrt(n) at
every mean, and reaches as far as the arms do. The likelihood is the binomial one of each arm's mean; for rewards
other than 0 and 1 it is quasi-binomial (Wedderburn 1974): n rewards count as n d binary ones, with d the ratio of
m (1 - m) to the rewards' variance, over all arms together. No arm is believed to be known better than two steps of the
grid, so that two arms of one mean between two points do not fall on different ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import xlog1py, xlogy

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.analysis.copying.records import ArmRecord

FEWEST, MOST = 401, 2001
_FAR: Final = 5.0  # standard deviations that the grid reaches beyond the arms
_FINE: Final = 3.0  # points of the grid within the smallest standard deviation


@dataclass(frozen=True)
class ArmEvidence:
    """The log-likelihood of each arm (rows) on the grid, where each arm is on its scale, and the grid's step.

    worth      how many binary rewards one reward is worth
    means      the grid as means
    believed   as how many binary rewards each arm's count
    """

    log_likelihood: FloatArray
    places: FloatArray
    step: float
    worth: float
    means: FloatArray
    believed: FloatArray

    def drawn(self, arm: int, points: IntArray, dice: np.random.Generator) -> FloatArray:
        """The likelihood of drawn rewards of an arm, had it these points of the grid as means; a row for each."""
        rewards = max(1, round(float(self.believed[arm])))
        counts = dice.binomial(rewards, self.means[points])[:, None]
        inside = np.clip(self.means, 1e-300, 1 - 1e-16)
        logs = counts * np.log(inside) + (rewards - counts) * np.log1p(-inside)
        return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def arm_evidence(records: Sequence[ArmRecord]) -> ArmEvidence:
    """The evidence of arms that all have rewards.

    >>> seen = arm_evidence([ArmRecord("ana", "a", 400, 100.0, 100.0), ArmRecord("bo", "b", 100, 25.0, 25.0)])
    >>> [round(float(np.sin(place / 2) ** 2), 3) for place in seen.places], seen.worth
    ([0.25, 0.25], 1.0)
    """
    rounds = np.array([record.rounds for record in records], dtype=float)
    means = np.clip(np.array([record.total for record in records]) / rounds, 0.0, 1.0)
    worth = _binary_worth(records, rounds, means)
    places = 2 * np.arcsin(np.sqrt((means * rounds * worth + 0.375) / (rounds * worth + 0.75)))  # Anscombe's
    if worth == 1.0:
        places = np.where((means > 0) & (means < 1), 2 * np.arcsin(np.sqrt(means)), places)
    spread = 1 / np.sqrt(rounds * worth)
    low, high = max(0.0, float((places - _FAR * spread).min())), min(np.pi, float((places + _FAR * spread).max()))
    points = int(np.clip((high - low) / (float(spread.min()) / _FINE), FEWEST, MOST))
    grid = np.linspace(low, high, points)
    step = float(grid[1] - grid[0])
    believed = np.minimum(rounds * worth, (2 * step) ** -2.0)
    mean = np.sin(grid / 2) ** 2
    logs = believed[:, None] * (xlogy(means[:, None], mean) + xlog1py(1 - means[:, None], -mean))
    return ArmEvidence(np.asarray(logs - logs.max(axis=1, keepdims=True)), places, step, worth, mean, believed)


def _binary_worth(records: Sequence[ArmRecord], rounds: FloatArray, means: FloatArray) -> float:
    """The ratio of the binary variance to the rewards' own, pooled; at least 1, as for all rewards in [0, 1]."""
    squares = np.array([record.squares for record in records])
    own, binary = float((squares - rounds * means**2).sum()), float((rounds * means * (1 - means)).sum())
    return min(max(1.0, binary / own), 1e6) if own > 0 and binary > own * (1 + 1e-9) else 1.0
