"""How often different entries look this much alike, counted where copies are not, and which pairs are named for it.

Pairs fall into *strata*: inside each owner, and between owners. Where copies are not, pairs of a stratum are the *null*
of another one: they say how many pairs of different entries have at least a given score. At a score t that is

    expected(t) = ratio x (null pairs of at least t + 1),

where the ratio says how many more pairs the stratum has than its null, and the + 1 keeps small catalogues honest. Named
are all pairs from the least score on at which expected(t) is at most the share asked of their number. A stratum's own
copies do not disturb its null; what both have in common, such as a resold product, makes it too large, which is safe.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof.same.likeness import LARGE, Pairs, shops

BoolArray = NDArray[np.bool_]

STEP: Final = 0.25
MIDDLE: Final = -5.5, -2.0  # scores of clearly different pairs, by which strata are compared
GRID: Final = np.arange(MIDDLE[0], 6.5, STEP)
GROWTH: Final = 0.15  # standard deviation, a priori, of how the ratio grows with a unit of the score
FREE: Final = 20  # pairs that the ratio of all is worth, against that of items without a likeness elsewhere
BRANDS: Final = 3.0  # times as many alike pairs inside owners as between: these keep to brands
OWN_TAIL: Final = 60  # pairs of the middle from which on a stratum has a tail of its own
ACCOUNTS_SHARE: Final = 1 / 3  # of the share asked, for the question whether two owners are one at all
ASSUMED: Final = 3.0  # times the tail
NO_RIVAL: Final = -7.0  # score where there is no other candidate
FLOOR: Final = -3.0  # score from which on pairs are named inside owners and in lists
AHEAD: Final = 0.7  # weight of how far ahead of its rivals a pair is
LEAST_SHARED: Final = 2.0  # rarity shared by a lone pair of two owners that is named


@dataclass
class Chances:
    """What is named, and what it rests on.

    named     which pairs
    share     of each pair, the expected share of errors among those of its stratum that are at least as alike
    wrong     how many of the named pairs are expected to be wrong
    notes     sentences on strata
    accounts  pairs of owners whose entries match one to one, with the pairs that do
    brands    whether owners keep to brands, so that titles alone cannot tell
    """

    named: BoolArray
    share: FloatArray
    wrong: float = 0.0
    notes: list[str] = field(default_factory=list)
    accounts: list[tuple[int, int, IntArray]] = field(default_factory=list)
    brands: bool = False

    def take(
        self, some: BoolArray, score: FloatArray, expected: FloatArray, share: float,
        note: str = "", floor: float = -math.inf,
    ) -> BoolArray:  # fmt: skip
        """Name, among some pairs, all from the least score of GRID on at which few enough are expected by chance."""
        got = at_least(score[some])
        wrong = np.where(got > 0, np.minimum(1.0, expected / np.maximum(got, 1)), 1.0)
        cell = np.clip(((score - GRID[0]) / STEP).astype(int), 0, len(GRID) - 1)
        self.share[some] = np.minimum(self.share, wrong[cell])[some]
        fits = np.flatnonzero((got > 0) & (wrong <= share) & (floor <= GRID))
        if not len(fits):
            return np.zeros(len(score), bool)
        named: BoolArray = some & (score >= GRID[fits[0]])
        if (named & ~self.named).any():
            self.wrong += float(expected[fits[0]])
            self.notes += [note.format(wrong=expected[fits[0]])] if note else []
        self.named |= named
        return named

    def join(self, some: BoolArray, found: Chances) -> None:
        """Name also what was found among some of the pairs alone."""
        self.named[some] |= found.named
        self.share[some] = np.minimum(self.share[some], found.share)
        if found.wrong > self.wrong:
            self.wrong, self.notes = found.wrong, found.notes


def at_least(score: FloatArray) -> FloatArray:
    """Count the pairs of at least each score of GRID."""
    return len(score) - np.searchsorted(np.sort(score), GRID, side="left").astype(float)


def chances(pairs: Pairs, owners: IntArray, share: float) -> Chances:
    """Return what is named at a share of errors, by the strata that the owners make."""
    found = Chances(np.zeros(len(pairs), bool), np.ones(len(pairs)))
    if len(pairs) and owners.max() == 0:
        note = (
            "{wrong:.1f} pairs look this much alike by chance, if the more alike ones go on as the less alike ones do"
        )
        _assumed(found, pairs, np.ones(len(pairs), bool), note, share)
    elif len(pairs):
        within = owners[pairs.first] == owners[pairs.second]
        (_few_owners if shops(owners) else _many_owners)(found, pairs, within, owners, np.bincount(owners), share)
    return found


def _assumed(found: Chances, pairs: Pairs, some: BoolArray, note: str, share: float) -> None:
    """Name by ASSUMED times a tail on which only less alike pairs bear, and one; the same words by the tail itself.

    The line holds for more alike pairs: below them it says less than is there.
    """
    score = pairs.score
    tail = straight_tail(at_least(score[some]))
    found.take(some, score, ASSUMED * tail + 1, share, note, FLOOR)
    found.take(some & pairs.same_words, score, tail, share, note, FLOOR)


def _few_owners(
    found: Chances, pairs: Pairs, within: BoolArray, owners: IntArray, sizes: IntArray, share: float
) -> None:
    """Shops that sell the same products: nearest pairs inside two shops are the null of nearest pairs between them."""
    score = pairs.score
    usable = ~(within & (pairs.column("the same words") > 0))  # the same words inside a shop are its copies, no decoys
    one, other = owners[pairs.first], owners[pairs.second]
    middle = (score >= MIDDLE[0]) & (score < MIDDLE[1])
    ahead, between, null = np.full(len(pairs), NO_RIVAL), np.zeros(len(pairs), bool), np.zeros(len(GRID))
    middles, unsold = np.ones(2), np.zeros(2)  # between shops and inside, of all items and of those that one sells
    for a, b in combinations(range(len(sizes)), 2):
        both = usable & ((one == a) | (one == b)) & ((other == a) | (other == b))
        inside, across = both & within, both & ~within
        rivalled = against_rivals(pairs, score, within, both)
        ahead[across] = rivalled[across]
        between |= mutual(pairs, rivalled, across)
        sold = _touched(pairs, across & (score >= MIDDLE[1]), len(owners))
        null += at_least(rivalled[mutual(pairs, rivalled, both) & inside])
        middles += (middle & across).sum(), (middle & inside).sum()
        unsold += (middle & across & (sold == 0)).sum(), (middle & inside & (sold == 0)).sum()
    ratio = middles[0] / middles[1]
    ratio = min(ratio, (unsold[0] + FREE * ratio) / (unsold[1] + FREE))  # variants of what both sell make it too large
    note = "pairs between sellers look this much alike {wrong:.1f} times by chance, as pairs inside sellers say"
    found.take(between, ahead, ratio * (null + 1), share, note)
    for owner in np.flatnonzero(sizes >= LARGE * len(owners)):
        note = "inside a seller {wrong:.1f} pairs look this much alike by chance, as less alike pairs say"
        _assumed(found, pairs, within & (one == owner), note, share)


def _touched(pairs: Pairs, some: BoolArray, entries: int) -> IntArray:
    """Return, for each pair, how many of its entries are in one of some pairs."""
    held = np.zeros(entries, int)
    held[pairs.first[some]] = held[pairs.second[some]] = 1
    return np.asarray(held[pairs.first] + held[pairs.second])


def _many_owners(
    found: Chances, pairs: Pairs, within: BoolArray, owners: IntArray, sizes: IntArray, share: float
) -> None:
    """Many sellers: pairs between them are the null of pairs inside, and of two sellers those between all others."""
    score = pairs.score
    inside_pairs = max(1.0, float((sizes * (sizes - 1) / 2).sum()))
    between_pairs = max(1.0, len(owners) * (len(owners) - 1) / 2 - inside_pairs)
    expected, ratio = _inside(pairs, score, within, owners, inside_pairs, between_pairs)
    found.brands = ratio > BRANDS
    own_tail = straight_tail(at_least(score[within]))
    note = "pairs inside a seller look this much alike {wrong:.1f} times by chance, as pairs between sellers say"
    if found.brands and ((score >= MIDDLE[0]) & (score < MIDDLE[1]) & within).sum() >= OWN_TAIL:
        expected = own_tail  # less alike pairs inside say more then
        note = "pairs inside a seller look so alike {wrong:.1f} times by chance, as less alike ones there say"
    found.take(within, score, expected, share, note, FLOOR)
    found.take(within & pairs.same_words, score, own_tail, share, note)
    _accounts(found, pairs, score, within, owners, sizes, between_pairs, share)
    alone = mutual(pairs, score, ~within) & pairs.equal & (pairs.column("shared") > LEAST_SHARED)
    found.take(alone, score, np.minimum(straight_tail(at_least(score[~within])), share), share, floor=0.5)


def _inside(
    pairs: Pairs, score: FloatArray, within: BoolArray, owners: IntArray, inside_pairs: float, between_pairs: float
) -> tuple[FloatArray, float]:
    """Expected pairs of different entries inside owners, and how much denser these are than between (1: as by chance).

    The ratio of densities may grow with the score (owners that keep to brands have more near variants); it is fitted to
    the middle, without the entries that have a likeness inside their owner.
    """
    likely = within & (score >= MIDDLE[1])
    left = owners[np.setdiff1d(np.arange(len(owners)), np.r_[pairs.first[likely], pairs.second[likely]])]
    sizes = np.bincount(left)
    free_pairs = max(1.0, float((sizes * (sizes - 1) / 2).sum()))
    edges = np.arange(MIDDLE[0], MIDDLE[1] + 0.01, 0.5)
    inside = np.histogram(score[within & (_touched(pairs, likely, len(owners)) == 0)], edges)[0].astype(float)
    between = np.histogram(score[~within], edges)[0] + 0.5
    at = (edges[:-1] + edges[1:]) / 2
    _, growth, mean = poisson_line(at, inside, between, 0.0, 1 / GROWTH**2, (0.0, math.inf))
    fitted = float((between * np.exp(growth * (at - mean))).sum())
    level = math.log((inside.sum() + 1) / (fitted + between_pairs / free_pairs) * inside_pairs / free_pairs)
    cells = -np.diff(np.r_[at_least(score[~within]), 0.0])
    grown = np.exp(level + growth * (np.minimum(np.array([GRID + STEP / 2, GRID]), -1.0) - mean))  # no more beyond -1
    return np.cumsum((cells * grown[0])[::-1])[::-1] + grown[1], math.exp(level) * between_pairs / inside_pairs


def _accounts(
    found: Chances, pairs: Pairs, score: FloatArray, within: BoolArray, owners: IntArray, sizes: IntArray,
    between_pairs: float, share: float,
) -> None:  # fmt: skip
    """Name owners whose entries match one to one more often than those of other owners do: two pairs raise each other.

    The null of two owners are the pairs between all others. Half of the smaller one's entries in the same words, two at
    least, are enough however few others there are.
    """
    from scipy.special import gammainc

    one, other = owners[pairs.first], owners[pairs.second]
    by: dict[tuple[int, int], list[int]] = defaultdict(list)
    for pair in np.flatnonzero(~within & (score >= MIDDLE[0])).tolist():
        by[min(int(one[pair]), int(other[pair])), max(int(one[pair]), int(other[pair]))].append(pair)
    counts = at_least(score[~within])
    middles = counts[0] - np.interp(MIDDLE[1], GRID, counts)
    questions = max(1.0, len(sizes) * (len(sizes) - 1) / 2)
    for key, alike in by.items():
        matched = one_to_one(pairs, score, [pair for pair in alike if score[pair] >= MIDDLE[1] - 0.5])
        if len(matched) < 2:
            continue
        many = float(sizes[key[0]]) * float(sizes[key[1]])
        others = max(1.0, between_pairs - many)
        own_middle = sum(score[pair] < MIDDLE[1] for pair in alike)
        ratio = max(1.0, (own_middle + 2) / (many * (middles - own_middle) / others + 2))
        expected = many * ratio * (counts - at_least(score[alike]) + 1) / others
        got = at_least(score[matched])
        surprise = questions * gammainc(got[got >= 2], expected[got >= 2]).min(initial=1.0)  # Poisson tail
        mask = np.zeros(len(pairs), bool)
        mask[matched] = True
        if surprise > share * ACCOUNTS_SHARE:
            mask &= pairs.same_words
            if mask.sum() < max(2.0, min(sizes[key[0]], sizes[key[1]]) / 2):
                continue
            expected = np.minimum(expected, share * at_least(score[mask]))  # the same words need no counting
        named = found.take(mask, score, expected, share)
        if named.any():
            found.wrong += min(surprise, share)
            found.accounts.append((*key, np.flatnonzero(named)))


def one_to_one(pairs: Pairs, score: FloatArray, some: Sequence[int]) -> IntArray:
    """Choose pairs greedily, the most alike first, so that each entry is in one."""
    used: set[int] = set()
    chosen = []
    for pair in sorted(some, key=lambda pair: (-score[pair], pair)):
        ends = {int(pairs.first[pair]), int(pairs.second[pair])}
        if used.isdisjoint(ends):
            used |= ends
            chosen.append(pair)
    return np.array(chosen, int)


def mutual(pairs: Pairs, score: FloatArray, some: BoolArray) -> BoolArray:
    """Return the pairs, among some, neither of whose entries has a more alike partner among them."""
    best = np.full(int(pairs.second.max(initial=0)) + 1, -np.inf)
    for end in (pairs.first, pairs.second):
        np.maximum.at(best, end[some], score[some])
    return np.asarray(some & (score >= best[pairs.first]) & (score >= best[pairs.second]))


def against_rivals(pairs: Pairs, score: FloatArray, within: BoolArray, usable: BoolArray) -> FloatArray:
    """Return scores that say how far a pair is ahead of other pairs of its entries.

    An item that two shops sell is nearer to its partner than to anything else there, and in its own shop; a different
    item that happens to be nearest has others as near. Inside shops and between them this is counted alike.
    """
    ends = 2 * np.array([pairs.first, pairs.second]) + within
    keys, values = ends[:, usable].ravel(), np.tile(score[usable], 2)
    order = np.lexsort((values, keys))
    keys, values = keys[order], np.maximum(values[order], NO_RIVAL)
    best = np.full((2, int(ends.max(initial=0)) + 2), NO_RIVAL)  # of each entry and side, and the next best
    last = np.flatnonzero(np.diff(keys, append=-1))
    best[0, keys[last]] = values[last]
    last = last[(last > 0) & (keys[last - 1] == keys[last])]
    best[1, keys[last]] = values[last - 1]
    rival = np.where(score >= best[0, ends], best[1, ends], best[0, ends]).max(axis=0)
    elsewhere = best[0, ends ^ 1].max(axis=0)
    return np.asarray(score + AHEAD * (np.clip(score - rival, -3, 3) + np.clip(score - elsewhere, -3, 3) - 1))


def straight_tail(counts: FloatArray) -> FloatArray:
    """Continue the counts of the middle as a straight line of logarithms, with a slope of about -1 a unit."""
    used = (GRID >= -4.5) & (GRID < -1.0)
    cells, at = (counts[:-1] - counts[1:])[used[:-1]], GRID[:-1][used[:-1]] + STEP / 2
    level, slope, mean = poisson_line(at, cells, np.ones(len(at)), -1.0, 4.0, (-1.5, -0.6))
    return np.asarray(np.exp(level + slope * (GRID - mean)) / STEP / -slope)


def poisson_line(
    at: FloatArray, counts: FloatArray, base: FloatArray, prior: float, worth: float, bounds: tuple[float, float]
) -> tuple[float, float, float]:
    """Fit counts by base x exp(level + slope x (at - mean)); return level, slope and mean.

    Poisson regression with a normal prior of the slope, of so much precision, between bounds.
    """
    mean = float((at * base).sum() / base.sum())
    lever = at - mean
    level, slope = math.log(max(float(counts.sum()), 0.3) / float(base.sum())), prior
    for _ in range(60):
        mu = base * np.exp(level + slope * lever)
        first = float((counts - mu).sum()), float(((counts - mu) * lever).sum()) - worth * (slope - prior)
        bend = float(mu.sum()) + 0.3, float((mu * lever).sum()), float((mu * lever**2).sum()) + worth
        size = bend[0] * bend[2] - bend[1] ** 2
        level += min(1.0, max(-1.0, (bend[2] * first[0] - bend[1] * first[1]) / size))  # few pairs: short steps
        slope = min(max(slope + (bend[0] * first[1] - bend[1] * first[0]) / size, bounds[0]), bounds[1])
    return level, slope, mean
