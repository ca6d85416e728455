"""Doubling epochs: rounds 1..2, 3..4, 5..8, 9..16, .. (Algorithm 4), for platforms that do not know their horizon."""

from __future__ import annotations

import math

from cloneproof.bounds._domain import checked, count

LN_2 = 0.6931471805599453  # the double nearest to ln 2


def doubling_epoch(round_: int) -> int:
    """The number i of the epoch that a round belongs to: 2^(i-1) < round <= 2^i, and 1 for round 1.

    Parameters
    ----------
    round_ : int
        The round, from 1.

    Returns
    -------
    int
        The number of the epoch.

    References
    ----------
    The paper, Algorithm 4.

    Examples
    --------
    >>> [doubling_epoch(t) for t in (1, 2, 3, 4, 5, 8, 9)]
    [1, 1, 2, 2, 3, 3, 4]
    """
    if type(round_) is not int or round_ < 1:  # sessions ask in every round: the usual case is quick
        round_ = count(round_, "a round")
    return max(1, (round_ - 1).bit_length())


@checked
def doubling_length(epoch: int) -> int:
    """The rounds of an epoch that is not cut short.

    Parameters
    ----------
    epoch : int
        The number i of the epoch, from 1.

    Returns
    -------
    int
        Its rounds.

    References
    ----------
    The paper, Algorithm 4.

    Examples
    --------
    >>> [doubling_length(epoch) for epoch in (1, 2, 3, 4)]
    [2, 2, 4, 8]
    """
    return 2 if epoch == 1 else 2 ** (epoch - 1)


@checked
def doubling_ends(horizon: int) -> list[int]:
    """The last round of each epoch up to the horizon, which cuts the last one short.

    Parameters
    ----------
    horizon : int
        The number T of rounds.

    Returns
    -------
    list of int
        The last rounds, rising.

    References
    ----------
    The paper, Algorithm 4.

    Examples
    --------
    >>> doubling_ends(11)
    [2, 4, 8, 11]
    """
    return [min(horizon, 2**number) for number in range(1, doubling_epoch(horizon) + 1)]


@checked
def doubling_arm_rounds(epoch: int, power: float = 4.0) -> int:
    """The m of an epoch in prior-independent ETC, floor(ln(2^i)^power); at least 1, where the paper's formula has 0.

    Parameters
    ----------
    epoch : int
        The number i of the epoch, from 1.
    power : float, default 4.0
        The power of the logarithm.

    Returns
    -------
    int
        The rounds for each arm.

    References
    ----------
    The paper, Algorithm 4.
    """
    return max(1, math.floor(math.pow(epoch * LN_2, power)))
