"""What is named in the end: rewards that contradict, identifiers, groups, and why.

1. Titles name pairs at a share of errors (`chance`). An equal, rare identifier names a pair too; unequal ones forbid.
2. Rewards forbid a pair whose items earn differently, beyond what one item at two places does (`rewards_differ`), and
   tell how many of the named pairs are different items (`different_share`): if that is more than was asked for, a pair
   is named only where its own rewards agree.
3. Groups are joined by named pairs, unless two members contradict each other; then the weakest link goes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof.same.chance import BoolArray

SPREAD: Final = 0.14  # standard deviation of one item's log-odds between two entries of it
CONTRADICTS: Final = 3.3  # |z| from which on rewards speak against one item (p < .001)
CLEARLY: Final = 2.0  # times the share asked, from which on rewards say that too many are different
DOUBT: Final = 0.5  # fall of the log-likelihood at the end of a 68 % interval


class ClicksAndViews(NamedTuple):
    """Clicks and views of each entry; no views: not known."""

    clicks: FloatArray
    views: FloatArray

    def differences(self, first: IntArray, second: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the difference of log-odds of each pair, half a click added to each count, and its variance."""
        hits, misses = self.clicks + 0.5, self.views - self.clicks + 0.5
        odds, noise = np.log(hits / misses), 1 / hits + 1 / misses
        unknown = (self.views[first] <= 0) | (self.views[second] <= 0)
        return np.where(unknown, 0.0, odds[first] - odds[second]), noise[first] + noise[second] + 2 * SPREAD**2

    @property
    def scatter(self) -> float:
        """The variance of log-odds among items, beyond that of their counts."""
        known = self.views > 0
        hits, misses = self.clicks[known] + 0.5, (self.views - self.clicks)[known] + 0.5
        if len(hits) < 3:
            return 0.0
        return max(0.0, float(np.var(np.log(hits / misses)) - np.mean(1 / hits + 1 / misses)))


def rewards_differ(rewards: ClicksAndViews, first: IntArray, second: IntArray) -> FloatArray:
    """Return |z| of each pair: how far its rewards are from those of one item."""
    difference, variance = rewards.differences(first, second)
    return np.abs(difference) / np.sqrt(variance)


def odds_of_different(rewards: ClicksAndViews, first: IntArray, second: IntArray) -> FloatArray:
    """Return how many times likelier the rewards of each pair are for two different items than for one."""
    difference, same = rewards.differences(first, second)
    other = same + 2 * rewards.scatter
    odds = np.sqrt(same / other) * np.exp(0.5 * difference**2 * (1 / same - 1 / other))
    return np.where((rewards.views[first] > 0) & (rewards.views[second] > 0), odds, 1.0)


def different_share(odds: FloatArray) -> tuple[float, float]:
    """Return the likeliest share of different items among pairs, and the lower end of its 68 % interval.

    >>> different_share(np.full(40, 0.5))[0], different_share(np.array([8.0] * 20 + [0.4] * 5))[1] > 0.5
    (0.0, True)
    """
    shares = np.linspace(0, 1, 201)
    likelihood = np.log1p(shares[:, None] * (np.minimum(odds, 1e6) - 1)[None, :]).sum(axis=1)
    best = int(likelihood.argmax())
    return float(shares[best]), float(shares[np.flatnonzero(likelihood >= likelihood[best] - DOUBT)[0]])


def kept_by_rewards(odds: FloatArray, share: float) -> BoolArray:
    """Return which of the pairs that titles name stay named: all, unless rewards say that too many are different."""
    likely, _ = different_share(odds)
    if likely <= CLEARLY * share:
        return np.ones(len(odds), bool)
    wrong = likely * odds / (1 - likely + likely * odds)
    order = np.argsort(wrong, kind="stable")
    few = np.cumsum(wrong[order]) <= share * np.arange(1, len(order) + 1)
    kept = np.zeros(len(odds), bool)
    kept[order[: int(few.sum())]] = True
    return kept


def grouped(
    entries: int, links: Iterable[tuple[int, int, float]], contradict: Callable[[int, int], bool]
) -> list[list[int]]:
    """Join entries by links, the strongest first, unless two entries of the joined group contradict each other.

    >>> grouped(4, [(0, 1, 3.0), (1, 2, 1.0), (2, 3, 2.0)], lambda one, other: (one, other) == (0, 3))
    [[0, 1], [2, 3]]
    """
    group = list(range(entries))
    members: dict[int, list[int]] = defaultdict(list)
    for one, other, _ in sorted(links, key=lambda link: (-link[2], link[:2])):
        a, b = group[one], group[other]
        if a == b:
            continue
        mine, theirs = members[a] or [a], members[b] or [b]
        if any(contradict(min(x, y), max(x, y)) for x in mine for y in theirs):
            continue
        members[a] = mine + theirs
        members.pop(b, None)
        for entry in theirs:
            group[entry] = a
    return sorted(sorted(joined) for joined in members.values() if len(joined) > 1)


def by_identifier(
    values: Sequence[object],
) -> tuple[list[tuple[int, int]], Callable[[int, int], bool]]:
    """Return the pairs with one rare identifier, and what tells whether two entries have different ones."""
    places: dict[str, list[int]] = defaultdict(list)
    known = ["" if value is None else "".join(str(value).split()).casefold() for value in values]
    for entry, value in enumerate(known):
        if value:
            places[value].append(entry)
    rare = max(2.0, math.sqrt(len(known)))
    pairs = [
        (one, other)
        for same in places.values() if 1 < len(same) <= rare
        for at, one in enumerate(same) for other in same[at + 1 :]
    ]  # fmt: skip
    return pairs, lambda one, other: bool(known[one] and known[other] and known[one] != known[other])
