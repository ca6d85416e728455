"""What mechanisms follow and bounds reason about: doubling epochs, updates of a falling index, bars on slots.

Doubling epochs are those of Algorithm 4, for platforms that do not know their horizon: rounds 1..2, 3..4, 5..8, ..
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cloneproof._lib.checks import count
from cloneproof.errors import MechanismError


def doubling_epoch(round_: int) -> int:
    """Return the number i of the epoch that a round belongs to: 2^(i-1) < round <= 2^i, and 1 for round 1.

    >>> [doubling_epoch(t) for t in (1, 2, 3, 4, 5, 8, 9)]
    [1, 1, 2, 2, 3, 3, 4]
    """
    if type(round_) is not int or round_ < 1:  # sessions ask in every round: the usual case is quick
        round_ = count(round_, "a round", error=MechanismError)
    return max(1, (round_ - 1).bit_length())


def doubling_length(epoch: int) -> int:
    """Return the number of rounds of an epoch that is not cut short.

    >>> [doubling_length(epoch) for epoch in (1, 2, 3, 4)]
    [2, 2, 4, 8]
    """
    return 2 if epoch == 1 else 2 ** (epoch - 1)


def doubling_ends(horizon: int) -> list[int]:
    """Return the last round of each epoch up to the horizon, which cuts the last one short.

    >>> doubling_ends(11)
    [2, 4, 8, 11]
    """
    return [min(horizon, 2**number) for number in range(1, doubling_epoch(horizon) + 1)]


def next_update(rewards: int) -> int:
    """Return the number of rewards at which a slot's falling index is updated next.

    The index is updated after each of the first 32 rewards and then each time that a sixteenth more have come, so that
    the number of updates grows with the logarithm of the rewards.

    >>> next_update(0), next_update(32), next_update(34)
    (1, 34, 36)
    """
    return rewards + max(1, rewards // 16)


class Bar(NamedTuple):
    """A bar: an attempt starts with `stake` points, a view costs one, and a click earns `whole`, or one more.

    It earns one more with probability `part`, so that a click earns K = whole + part on average, and a slot of mean 1/K
    breaks even.
    """

    stake: int
    whole: int
    part: float


def bar_of(rate: float, clicks: float) -> Bar:
    """Return the bar at a rate, K = 1 / rate to nine decimals, with a stake in clicks: K points each, at least 1 point.

    >>> bar_of(0.025, 0.5), bar_of(0.8, 1.0), bar_of(1.0, 0.1)
    (Bar(stake=20, whole=40, part=0.0), Bar(stake=1, whole=1, part=0.25), Bar(stake=1, whole=1, part=0.0))
    """
    points = round(1 / rate, 9)
    return Bar(max(1, round(clicks * points)), math.floor(points), points % 1)
