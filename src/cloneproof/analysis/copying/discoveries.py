"""Which e-values are discoveries: weighted e-BH (Wang and Ramdas 2022).

K hypotheses have e-values e and weights w >= 0 of average at most 1, fixed without the data behind the e-values. The
k hypotheses of the largest w e are discoveries for the largest k with  (k-th largest w e) >= K / (level k). If
E[e] <= 1 under every true null, the expected share of true nulls among the discoveries is at most the level, however
the e-values depend on each other: each rejected null has 1 <= level k w e / K, so the share is at most
level sum(w e over nulls) / K, whose expected value is at most the level.
"""

from __future__ import annotations

import numpy as np

from cloneproof._arrays import FloatArray


def discoveries(log_e: FloatArray, weights: FloatArray, hypotheses: int, level: float) -> list[int]:
    """The numbers of the discoveries; e-values are given by their logarithms, hypotheses without one count as e = 0.

    >>> discoveries(np.log([90.0, 50.0, 2.0]), np.ones(3), hypotheses=4, level=0.05)
    [0, 1]
    """
    if not len(log_e):
        return []
    with np.errstate(divide="ignore"):
        weighted = log_e + np.log(weights)
    order = np.argsort(-weighted, kind="stable")
    ranks = np.arange(1, len(order) + 1)
    passed = np.nonzero(weighted[order] >= np.log(hypotheses / level) - np.log(ranks))[0]
    return [int(number) for number in order[: passed[-1] + 1]] if len(passed) else []
