"""How often an interval that is looked at after every reward is wrong at some time: exactly."""

from __future__ import annotations

import math

import numpy as np

from cloneproof._arrays import FloatArray


def formula(last: int, spread: float, alpha: float = 0.05) -> FloatArray:
    """Howard, Ramdas, McAuliffe and Sekhon (2021), eq. 1.2, for 1, 2, .., last rewards; ln ln is 0 where it is less."""
    count = np.arange(1, last + 1)
    iterated = np.log(np.maximum(1.0, np.log(2.0 * count)))
    return 1.7 * spread * np.sqrt((iterated + 0.72 * math.log(10.4 / alpha)) / count)


def ever_wrong(chance: float, half: FloatArray) -> float:
    """The probability that the mean of binary rewards is ever further off than `half`: by the law of the successes.

    What leaves the band is gone; what stays is carried to the next reward.
    """
    law, first, gone = np.ones(1), 0, 0.0
    for count, width in enumerate(half, 1):
        grown = np.append(law * (1 - chance), 0.0)
        grown[1:] += law * chance
        low = max(first, math.ceil(count * (chance - width) - 1e-9))
        high = min(first + len(law), math.floor(count * (chance + width) + 1e-9))
        law = grown[low - first : high + 1 - first]
        gone += float(grown[: low - first].sum() + grown[high + 1 - first :].sum())
        first = low
    return gone
