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
BRANDS: Final = 3.0  # times as many alike pairs inside owners as between: these keep to brands
OWN_TAIL: Final = 60  # pairs of the middle from which on a stratum has a tail of its own
ACCOUNTS_SHARE: Final = 1 / 3  # of the share asked, for the question whether two owners are one at all
ASSUMED: Final = 3.0  # times the tail
NO_RIVAL: Final = -7.0  # score where there is no other candidate
FREE: Final = 20  # pairs that the ratio of all is worth, against that of items without a likeness elsewhere
FLOOR: Final = -3.0  # score from which on pairs are named inside owners and in lists
AHEAD: Final = 0.7  # weight of how far ahead of its rivals a pair is
LEAST_SHARED: Final = 2.0  # rarity shared by a lone pair of two owners that is named


@dataclass
class Stratum:
    """Pairs among which copies are looked for: what is expected by chance from each score of GRID on."""

    name: str
    pairs: BoolArray
    expected: FloatArray
    note: str = ""
    floor: float = -math.inf

    def named(self, score: FloatArray, share: float) -> tuple[BoolArray, float, float]:
        """Return the pairs named at a share of errors, how many are expected to be wrong, and from which score."""
        got = at_least(score[self.pairs])
        wrong = np.where(got > 0, self.expected / np.maximum(got, 1), np.inf)
        fits = np.flatnonzero((wrong <= share) & (self.floor <= GRID))
        if not len(fits):
            return np.zeros(len(score), bool), 0.0, math.inf
        start = fits[0]
        return self.pairs & (score >= GRID[start]), float(self.expected[start]), float(GRID[start])


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

    def take(self, stratum: Stratum, score: FloatArray, share: float) -> None:
        """Name what a stratum allows."""
        named, wrong, _ = stratum.named(score, share)
        got = at_least(score[stratum.pairs])
        cell = np.clip(((score - GRID[0]) / STEP).astype(int), 0, len(GRID) - 1)
        chance = np.minimum(1.0, stratum.expected / np.maximum(got, 1))
        new = named & ~self.named
        self.share[stratum.pairs] = np.minimum(self.share, chance[cell])[stratum.pairs]
        self.named |= named
        if new.any():
            self.wrong += wrong
            if stratum.note:
                self.notes.append(stratum.note.format(wrong=wrong, named=int(named.sum())))


def at_least(score: FloatArray) -> FloatArray:
    """Count the pairs of at least each score of GRID."""
    return len(score) - np.searchsorted(np.sort(score), GRID, side="left").astype(float)


def chances(pairs: Pairs, owners: IntArray, share: float) -> Chances:
    """Return what is named at a share of errors, by the strata that the owners make."""
    score, sizes = pairs.score, np.bincount(owners)
    found = Chances(np.zeros(len(pairs), bool), np.ones(len(pairs)))
    if not len(pairs):
        return found
    within = owners[pairs.first] == owners[pairs.second]
    if len(sizes) == 1:
        _one_list(found, pairs, score, share, len(owners))
    elif shops(owners):
        _few_owners(found, pairs, score, within, owners, sizes, share)
    else:
        _many_owners(found, pairs, score, within, owners, sizes, share)
    return found


def _few_owners(
    found: Chances, pairs: Pairs, score: FloatArray, within: BoolArray, owners: IntArray, sizes: IntArray, share: float
) -> None:
    """Shops that sell the same products: nearest pairs inside a shop are the null of nearest pairs between shops."""
    usable = ~(within & (pairs.column("the same words") > 0))  # the same words inside a shop are its copies, no decoys
    rivalled = against_rivals(pairs, score, within, usable, owners)
    middle = (score >= MIDDLE[0]) & (score < MIDDLE[1])
    held = np.zeros(len(owners), bool)
    likely = ~within & (score >= MIDDLE[1])
    held[pairs.first[likely]] = held[pairs.second[likely]] = True
    free = middle & ~held[pairs.first] & ~held[pairs.second]
    decoys = mutual(pairs, rivalled, usable)
    between = Stratum("between", mutual(pairs, rivalled, ~within, owners), np.zeros(len(GRID)))
    mine = owners[pairs.first]
    large = [owner for owner in range(len(sizes)) if sizes[owner] >= LARGE * len(owners)]
    nulls = []
    for owner in [*(large if len(sizes) == 2 else []), None]:  # the cleaner of two shops, or all together
        inside = within if owner is None else within & (mine == owner)
        across = ~within if owner is None else ~within & ((mine == owner) | (owners[pairs.second] == owner))
        ratio = (middle[across].sum() + 1) / (middle[inside].sum() + 1)
        unsold = (free[across].sum() + FREE * ratio) / (free[inside].sum() + FREE)  # of items without a likeness there
        ratio = min(ratio, unsold)  # variants of what both sell make either too large
        nulls.append(ratio * (at_least(rivalled[decoys & inside]) + 1))
    between.expected = np.min(nulls, axis=0)
    between.note = "pairs between sellers look this much alike {wrong:.1f} times by chance, as pairs inside sellers say"
    found.take(between, rivalled, share)
    tail, _ = straight_tail(at_least(score))
    for owner in large:
        inside = within & (mine == owner)
        many = sizes[owner] * (sizes[owner] - 1) / 2
        dense = _density(middle, inside, many, len(owners))
        note = "inside a seller {wrong:.1f} pairs look this much alike by chance, as less alike pairs say"
        _assumed(found, pairs, inside, many * dense * tail / _all(len(owners)), note, score, share)


def _one_list(found: Chances, pairs: Pairs, score: FloatArray, share: float, entries: int) -> None:
    """A list without owners: only less alike pairs say how often different entries look alike (an assumption)."""
    tail, _ = straight_tail(at_least(score))
    note = "{wrong:.1f} pairs look this much alike by chance, if the more alike ones go on as the less alike ones do"
    _assumed(found, pairs, np.ones(len(pairs), bool), tail, note, score, share)


def _assumed(
    found: Chances, pairs: Pairs, some: BoolArray, tail: FloatArray, note: str, score: FloatArray, share: float
) -> None:
    """Name by ASSUMED times a tail on which only less alike pairs bear, and one; the same words by the tail itself.

    The line holds for the more alike pairs: below them it says less than is there.
    """
    found.take(Stratum("assumed", some, ASSUMED * tail + 1, note, floor=FLOOR), score, share)
    equal = (pairs.column("the same words") > 0) & (pairs.column("slips") == 0)
    found.take(Stratum("equal", some & equal, tail, note, floor=FLOOR), score, share)


def _many_owners(
    found: Chances, pairs: Pairs, score: FloatArray, within: BoolArray, owners: IntArray, sizes: IntArray, share: float
) -> None:
    """Many sellers: pairs between them are the null of pairs inside, and of two sellers those between all others."""
    entries = len(owners)
    inside_pairs = max(1.0, float((sizes * (sizes - 1) / 2).sum()))
    between_pairs = _all(entries) - inside_pairs
    middle = (score >= MIDDLE[0]) & (score < MIDDLE[1])
    expected, ratio = _inside(pairs, score, within, owners, inside_pairs, between_pairs)
    found.brands = ratio > BRANDS
    note = "pairs inside a seller look this much alike {wrong:.1f} times by chance, as pairs between sellers say"
    if (middle & within).sum() >= OWN_TAIL and found.brands:  # less alike pairs inside say more then
        expected = straight_tail(at_least(score[within]))[0]
        note = "pairs inside a seller look so alike {wrong:.1f} times by chance, as less alike ones there say"
    found.take(Stratum("inside", within, expected, note, floor=FLOOR), score, share)
    equal = (pairs.column("the same words") > 0) & (pairs.column("slips") == 0)
    found.take(Stratum("equal", within & equal, straight_tail(at_least(score[within]))[0], note), score, share)
    _accounts(found, pairs, score, within, owners, sizes, share)
    tail = straight_tail(at_least(score))[0] / _all(entries)
    alone = ~within & mutual(pairs, score, ~within) & equal & (pairs.column("shared") > LEAST_SHARED)
    chance = np.minimum(between_pairs * _density(middle, ~within, between_pairs, entries) * tail, share)
    found.take(Stratum("alone", alone, chance, "", floor=0.5), score, share)


def _inside(
    pairs: Pairs, score: FloatArray, within: BoolArray, owners: IntArray, inside_pairs: float, between_pairs: float
) -> tuple[FloatArray, float]:
    """Expected pairs of different entries inside owners, and how much denser these are than between (1: as by chance).

    The ratio of densities may grow with the score (owners that keep to brands have more near variants); it is fitted to
    the middle by Poisson regression, without the entries that have a likeness inside their owner.
    """
    held = np.zeros(len(owners), bool)
    likeness = within & (score >= MIDDLE[1])
    held[pairs.first[likeness]] = held[pairs.second[likeness]] = True
    free = ~held[pairs.first] & ~held[pairs.second]
    left = np.bincount(owners[~held], minlength=int(owners.max()) + 1)
    free_pairs = max(1.0, float((left * (left - 1) / 2).sum()))
    edges = np.arange(MIDDLE[0], MIDDLE[1] + 0.01, 0.5)
    inside = np.histogram(score[within & free], edges)[0].astype(float)
    between = np.histogram(score[~within], edges)[0] + 0.5
    at = (edges[:-1] + edges[1:]) / 2
    mean = float((at * between).sum() / between.sum())
    chance = free_pairs / between_pairs
    level, growth = math.log((inside.sum() + 2 * chance + 0.2) / (between.sum() + 2)), 0.0
    for _ in range(50):
        mu = between * np.exp(level + growth * (at - mean))
        slope = (inside - mu).sum(), ((inside - mu) * (at - mean)).sum() - growth / GROWTH**2
        bend = mu.sum() + 0.01, (mu * (at - mean)).sum(), (mu * (at - mean) ** 2).sum() + 1 / GROWTH**2
        size = bend[0] * bend[2] - bend[1] ** 2
        level += (bend[2] * slope[0] - bend[1] * slope[1]) / size
        growth += (bend[0] * slope[1] - bend[1] * slope[0]) / size
    growth = max(growth, 0.0)
    fitted = float((between * np.exp(growth * (at - mean))).sum())
    level = math.log((inside.sum() + 1) / (fitted + 1 / chance)) - math.log(free_pairs / inside_pairs)
    cells = -np.diff(np.r_[at_least(score[~within]), 0.0])
    last = np.minimum(GRID, -1.0)  # beyond, the ratio does not grow
    cells = cells * np.exp(level + growth * (np.minimum(GRID + STEP / 2, -1.0) - mean))
    expected = np.cumsum(cells[::-1])[::-1] + np.exp(level + growth * (last - mean))
    return expected, math.exp(level) * between_pairs / inside_pairs


def _accounts(
    found: Chances, pairs: Pairs, score: FloatArray, within: BoolArray, owners: IntArray, sizes: IntArray, share: float
) -> None:
    """Name owners whose entries match one to one more often than those of other owners do: two pairs raise each other.

    The null of two owners are the pairs between all others. Half of the smaller one's entries in the same words, two at
    least, are enough however few others there are.
    """
    one, other = owners[pairs.first], owners[pairs.second]
    between = np.flatnonzero(~within & (score >= MIDDLE[0]))
    by: dict[tuple[int, int], list[int]] = defaultdict(list)
    for pair in between:
        by[min(int(one[pair]), int(other[pair])), max(int(one[pair]), int(other[pair]))].append(int(pair))
    all_counts, middles = at_least(score[~within]), int((score[between] < MIDDLE[1]).sum())
    equal = (pairs.column("the same words") > 0) & (pairs.column("slips") == 0)
    questions = max(1.0, len(sizes) * (len(sizes) - 1) / 2)
    many_pairs = _all(len(owners)) - float((sizes * (sizes - 1) / 2).sum())
    for key, alike in by.items():
        matched = one_to_one(pairs, score, [pair for pair in alike if score[pair] >= MIDDLE[1] - 0.5])
        if len(matched) < 2:
            continue
        many = float(sizes[key[0]]) * float(sizes[key[1]])
        others = max(1.0, many_pairs - many)
        own_middle = sum(score[pair] < MIDDLE[1] for pair in alike)
        ratio = max(1.0, (own_middle + 2) / (many * (middles - own_middle) / others + 2))
        expected = many * ratio * (all_counts - at_least(score[alike]) + 1) / others
        got = at_least(score[matched])
        surprise = min(
            (poisson_tail(int(count), float(mean)) for count, mean in zip(got, expected, strict=True) if count >= 2),
            default=1.0,
        )
        surprising = surprise * questions <= share * ACCOUNTS_SHARE
        if not surprising and int(equal[matched].sum()) < max(2.0, min(sizes[key[0]], sizes[key[1]]) / 2):
            continue
        mask = np.zeros(len(pairs), bool)
        mask[matched] = True
        stratum = Stratum("accounts", mask, expected)
        if not surprising:  # half of the smaller one's entries, two at least, in the same words: needs no counting
            stratum = Stratum("accounts", mask & equal, np.minimum(expected, share * at_least(score[mask & equal])))
        named, *_ = stratum.named(score, share)
        if named.any():
            found.take(stratum, score, share)
            found.wrong += min(surprise * questions, share)
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


def mutual(pairs: Pairs, score: FloatArray, some: BoolArray, owners: IntArray | None = None) -> BoolArray:
    """Return the pairs, among some, each of whose entries has no more alike partner among them (of the same owner)."""
    ends = _ends(pairs, owners)
    best = np.full(int(ends.max(initial=0)) + 1, -np.inf)
    for end in ends:
        np.maximum.at(best, end[some], score[some])
    return np.asarray(some & (score >= best[ends[0]]) & (score >= best[ends[1]]))


def _ends(pairs: Pairs, owners: IntArray | None) -> IntArray:
    """Return both entries of each pair, or numbers for (entry, owner of the other one)."""
    first, second = pairs.first, pairs.second
    if owners is None:
        return np.array([first, second])
    many = int(owners.max()) + 1
    return np.array([first * many + owners[second], second * many + owners[first]])


def against_rivals(
    pairs: Pairs, score: FloatArray, within: BoolArray, usable: BoolArray, owners: IntArray
) -> FloatArray:
    """Return scores that say how far a pair is ahead of other pairs of its entries.

    An item that two shops sell is nearer to its partner than to anything else there, and in its own shop; a different
    item that happens to be nearest has others as near. Inside shops and between them this is counted alike.
    """
    places = np.flatnonzero(usable)
    ends = _ends(pairs, owners)[:, places].ravel()
    values, of = np.tile(score[places], 2), np.tile(places, 2)
    order = np.lexsort((-values, ends))
    ends, values, of = ends[order], values[order], of[order]
    starts = np.flatnonzero(np.r_[True, ends[1:] != ends[:-1]])
    sizes = np.diff(np.r_[starts, len(ends)])
    second = np.where(sizes > 1, values[np.minimum(starts + 1, len(ends) - 1)], NO_RIVAL)
    rival = np.repeat(values[starts], sizes)
    rival[starts] = second
    ahead = np.full(len(pairs), np.inf)
    np.minimum.at(ahead, of, values - rival)
    best = np.full((2, len(owners)), NO_RIVAL)  # of each entry, inside its shop and between
    for end in (pairs.first, pairs.second):
        np.maximum.at(best, (np.where(within, 0, 1)[places], end[places]), score[places])
    side = within.astype(int)
    elsewhere = score - np.maximum(best[side, pairs.first], best[side, pairs.second])
    return np.asarray(score + AHEAD * (np.clip(ahead, -3, 3) + np.clip(elsewhere, -3, 3) - 1))


def straight_tail(counts: FloatArray) -> tuple[FloatArray, float]:
    """Continue the counts of the middle as a straight line of logarithms; also return its slope.

    Poisson regression on the cells, with a slope of -1 a unit, worth four pairs, a priori.
    """
    used = (GRID >= -4.5) & (GRID < -1.0)
    cells, at = (counts[:-1] - counts[1:])[used[:-1]], GRID[:-1][used[:-1]] + STEP / 2
    mean = float(at.mean())
    level, slope = math.log(max(float(cells.mean()), 0.02)), -1.0
    for _ in range(60):
        mu = np.exp(level + slope * (at - mean))
        first = float((cells - mu).sum()), float(((cells - mu) * (at - mean)).sum()) - 4 * (slope + 1)
        bend = mu.sum() + 0.3, (mu * (at - mean)).sum(), (mu * (at - mean) ** 2).sum() + 4
        size = bend[0] * bend[2] - bend[1] ** 2
        level += min(1.0, max(-1.0, float((bend[2] * first[0] - bend[1] * first[1]) / size)))  # few pairs: short steps
        slope = min(max(slope + float((bend[0] * first[1] - bend[1] * first[0]) / size), -1.5), -0.6)
    return np.exp(level + slope * (GRID - mean)) / STEP / -slope, slope


def poisson_tail(count: int, mean: float) -> float:
    """Chance that a Poisson number is at least `count`.

    >>> round(poisson_tail(2, 0.1), 6), poisson_tail(0, 0.1)
    (0.004679, 1.0)
    """
    from scipy.special import gammainc

    return float(gammainc(count, mean)) if count else 1.0


def _density(middle: BoolArray, some: BoolArray, many: float, entries: int) -> float:
    """How much denser the middle of a stratum is than that of all pairs."""
    return float((middle[some].sum() + 2) / (many * (middle.sum() + 2) / _all(entries) + 2))


def _all(entries: int) -> float:
    return max(1.0, entries * (entries - 1) / 2)
