"""How alike two entries are: candidates, evidence of a pair, and its score.

1. Candidates share words: the cosine of their words, weighted by rarity, is at least LEAST.
2. Evidence is what they share by kind of word, what is left over on both sides, and where the left-over words stand.
3. The score is a weighted sum of the evidence. It need not be a probability: how often different entries reach it is
   counted in the catalogue itself (`chance`). The weights were fitted once to known pairs, signs forced.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof.same.words import CODE, NUMBER, PLAIN, Catalogue

LEAST: Final = 0.3  # cosine of candidates
COMMON: Final = 300, 0.003  # entries, or a share of all, up to which a word makes candidates
MOST: Final = (25_000, 40, 10)  # up to so many entries so many candidates an entry and side; beyond, fewer
_BLOCK: Final = 1000
_PAIRS: Final = 200_000  # pairs whose evidence is counted at once
_ALIKE: Final = 0.5  # agreement of pairs that say which words stand for one another
_CLOSE: Final = 0.3  # share of agreement from which left-over words are looked at one by one
FEW_OWNERS: Final = 10  # up to so many owners one of whom has LARGE of all entries: shops with the same products
LARGE: Final = 0.1

# What speaks for and against a pair, and its weight (fitted once, signs forced).
EVIDENCE: Final = {
    "agreement": 2.757, "shared": 0.325, "rare code": 2.741,
    "words of both left": -0.173, "words of one left": -0.115,
    "numbers of both left": -1.48, "numbers of one left": 0.0,
    "codes of both left": -1.425, "codes of one left": -0.127, "numbers differ": -0.543, "codes differ": -1.443,
    "slips": -0.455, "covers the shorter": 3.899, "one within the other": 0.495, "the same words": 2.418,
    "codes begin alike": 1.371, "words that replace one another": -1.5, "a word that others replace": -0.515,
    "within at one place": 1.342, "constant": -7.833,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of entries, first < second, with the evidence of each (a column a name of EVIDENCE but the constant).

    equal    which have the same words as they are written, as often; `same_words` are so once they are read
    """

    first: IntArray
    second: IntArray
    evidence: FloatArray
    equal: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def score(self) -> FloatArray:
        *weights, constant = EVIDENCE.values()
        return np.asarray(self.evidence @ np.array(weights) + constant)

    @cached_property
    def same_words(self) -> NDArray[np.bool_]:
        return np.asarray((self.column("the same words") > 0) & (self.column("slips") == 0))

    def column(self, name: str) -> FloatArray:
        return self.evidence[:, list(EVIDENCE).index(name)]

    def of(self, some: NDArray[np.bool_]) -> Pairs:
        """Return some of them."""
        return Pairs(self.first[some], self.second[some], self.evidence[some], self.equal[some])


def pairs_of(catalogue: Catalogue, owners: IntArray, new: int, told: Callable[[float], None] = lambda _: None) -> Pairs:
    """Return the candidates with their evidence; only pairs with one of the first `new` entries."""
    first, second = candidates(catalogue, owners, new, lambda share: told(0.6 * share))
    evidence = np.empty((len(first), len(EVIDENCE) - 1))
    counted = _Counted(catalogue)
    for start in range(0, len(first), _PAIRS):
        part = slice(start, start + _PAIRS)
        evidence[part] = counted.evidence(first[part], second[part])
        told(0.6 + 0.3 * min(1.0, (start + _PAIRS) / len(first)))
    _attributes(catalogue, first, second, 0.25 if shops(owners) else 1.0, evidence)
    return Pairs(first, second, evidence, catalogue.plain[first] == catalogue.plain[second])


def candidates(
    catalogue: Catalogue, owners: IntArray, new: int, told: Callable[[float], None] = lambda _: None
) -> tuple[IntArray, IntArray]:
    """Return pairs whose words have a cosine of at least LEAST, each entry's best few inside its owner and outside."""
    from scipy import sparse

    number = len(catalogue)
    weighted = catalogue.matrix(catalogue.entries, catalogue.rarity)
    length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    unit = sparse.diags_array(1 / np.maximum(length, 1e-9)) @ weighted
    keys = unit[:, catalogue.frequency <= max(COMMON[0], COMMON[1] * number)].tocsr()
    turned, most = keys.T.tocsr(), MOST[1] if number <= MOST[0] else MOST[2]
    found: list[IntArray] = []
    for start in range(0, new, _BLOCK):
        products = (keys[start : min(new, start + _BLOCK)] @ turned).tocoo()
        keep = (products.data >= 0.8 * LEAST) & (products.row + start != products.col)
        one, other, near = products.row[keep] + start, products.col[keep], products.data[keep]
        inside = owners[one] == owners[other]
        order = np.lexsort((other, -near, inside, one))
        one, other, inside = one[order], other[order], inside[order]
        starts = np.r_[True, (one[1:] != one[:-1]) | (inside[1:] != inside[:-1])][: len(one)]
        places = np.arange(len(one))
        rank = places - np.maximum.accumulate(np.where(starts, places, 0))
        few = rank < most
        found.append(np.minimum(one, other)[few].astype(np.int64) * number + np.maximum(one, other)[few])
        told(min(1.0, (start + _BLOCK) / new))
    codes = np.unique(np.concatenate(found)) if found else np.empty(0, np.int64)
    return codes // number, codes % number


class _Counted:
    """Evidence of many pairs at once, from sums over the words that they share."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        rarity, kinds, rows = catalogue.rarity, catalogue.kinds, catalogue.entries
        self.by_kind = [catalogue.matrix(rows, np.where(kinds == kind, rarity, 0.0)) for kind in (PLAIN, NUMBER, CODE)]
        self.whole = [np.asarray(matrix.sum(axis=1)).ravel() for matrix in self.by_kind]
        self.sets = [frozenset(row) for row in rows]
        self.spelt = [frozenset(row) for row in catalogue.written]
        self.comparable = [len(word) >= 4 and kind != NUMBER for word, kind in zip(catalogue.words, kinds, strict=True)]

    def evidence(self, first: IntArray, second: IntArray) -> FloatArray:
        shared = np.array([_dots(matrix, first, second) for matrix in self.by_kind])
        left = np.array([[whole[side] for whole in self.whole] for side in (first, second)]) - shared
        left = np.maximum(left, 0.0)
        common = shared.sum(axis=0)
        rare = np.zeros(len(first))
        has_code = np.flatnonzero(shared[CODE] > 0)
        if len(has_code):
            both = self.by_kind[CODE][first[has_code]].multiply(self.by_kind[CODE][second[has_code]])
            rare[has_code] = np.sqrt(np.asarray(both.max(axis=1).todense()).ravel())
        slips, alike = np.zeros(len(first)), np.zeros(len(first))
        inside = np.zeros(len(first))
        same = np.zeros(len(first))
        close = 2 * common / np.maximum(2 * common + left.sum(axis=(0, 1)), 1e-9) >= _CLOSE
        for pair in np.flatnonzero(close).tolist():
            self._by_words(pair, int(first[pair]), int(second[pair]), shared, left, slips, alike, inside, same)
        common = shared.sum(axis=0)
        total = left.sum(axis=1)
        low, high = left.min(axis=0), left.max(axis=0)
        less, more = total.min(axis=0), total.max(axis=0)
        columns = (
            2 * common / np.maximum(2 * common + less + more, 1e-9), np.minimum(common, 4), rare,
            np.minimum(low[PLAIN], 2), np.minimum(high[PLAIN] - low[PLAIN], 2), low[NUMBER], high[NUMBER] - low[NUMBER],
            low[CODE], high[CODE] - low[CODE], low[NUMBER] > 0, low[CODE] > 0,
            np.minimum(slips, 3), common / np.maximum(common + less, 1e-9), less <= 1e-12, same,
            alike, np.zeros(len(first)), np.zeros(len(first)), inside,
        )  # fmt: skip
        return np.column_stack([np.asarray(column, float) for column in columns])

    def _by_words(
        self, pair: int, one: int, other: int, shared: FloatArray, left: FloatArray, slips: FloatArray,
        alike: FloatArray, inside: FloatArray, same: FloatArray,
    ) -> None:  # fmt: skip
        """Look at the words left over: slips, codes that begin alike, and whether one entry stands in the other."""
        mine, theirs = self.sets[one] - self.sets[other], self.sets[other] - self.sets[one]
        if not mine and not theirs:
            slips[pair], same[pair] = len(self.spelt[one] - self.spelt[other]), 1
            return
        same[pair] = (mine | theirs) <= self.catalogue.fillers & self.catalogue.hints
        if not mine or not theirs:
            short, long = (one, other) if theirs else (other, one)
            inside[pair] = _at_one_place(self.catalogue.entries[short], self.catalogue.entries[long])
        slips[pair] = min(len(self.spelt[one] - self.spelt[other]), len(self.spelt[other] - self.spelt[one])) - min(
            len(mine), len(theirs)
        )
        kinds, words, rarity = self.catalogue.kinds, self.catalogue.words, self.catalogue.rarity
        free = sorted(word for word in theirs if self.comparable[word])
        for word in sorted((word for word in mine if self.comparable[word]), key=lambda place: (-rarity[place], place)):
            for match in free:
                a, b = words[word], words[match]
                kind, match_kind = int(kinds[word]), int(kinds[match])
                begins = a.startswith(b) or b.startswith(a)
                if kind == match_kind == PLAIN and begins:
                    slips[pair] += 1
                elif _codes_alike(a, b) if kind == match_kind else a in b or b in a:
                    alike[pair] += 0.5
                else:
                    continue
                gain = 0.8 * min(rarity[word], rarity[match])
                shared[max(kind, match_kind), pair] += gain
                left[0, kind, pair] = max(0.0, left[0, kind, pair] - rarity[word])
                left[1, match_kind, pair] = max(0.0, left[1, match_kind, pair] - rarity[match])
                free.remove(match)
                break


def _dots(matrix: Any, first: IntArray, second: IntArray) -> FloatArray:  # noqa: ANN401 (SciPy has no types)
    """Sum, for each pair, the weights of the words that both have."""
    both = matrix[first].multiply(matrix[second])
    return np.asarray(both.sqrt().sum(axis=1)).ravel()  # a word's weight is the same in both


def _codes_alike(one: str, other: str) -> bool:
    """Whether a code is the other one's beginning or end; "am53" and "am530" are two codes.

    >>> _codes_alike("am53bk", "am53"), _codes_alike("am53", "am530"), _codes_alike("lamp", "lamps")
    (True, False, False)
    """
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if not (long.startswith(short) or long.endswith(short)):
        return False
    counts_on = long.startswith(short) and short[-1].isdigit() and long[len(short)].isdigit()
    return any(map(str.isdigit, short)) and not counts_on


def _at_one_place(short: list[int], long: list[int]) -> bool:
    """Whether the shorter list stands in the longer one as it is."""
    return bool(short) and any(long[k : k + len(short)] == short for k in range(len(long) - len(short) + 1))


def left_over(catalogue: Catalogue, one: int, other: int) -> tuple[list[int], list[int]]:
    """Return the words of each entry that the other has not."""
    mine, theirs = set(catalogue.entries[one]), set(catalogue.entries[other])
    return (
        [word for word in catalogue.entries[one] if word not in theirs],
        [word for word in catalogue.entries[other] if word not in mine],
    )


def shops(owners: IntArray) -> bool:
    """Whether the owners are few and large, as shops that sell the same products, between which copies are looked for.

    Else they are many sellers, and copies are looked for inside each.
    """
    sizes = np.bincount(owners)
    return 1 < len(sizes) <= FEW_OWNERS and sizes.max() >= LARGE * len(owners) and len(owners) >= 10 * len(sizes)


def _attributes(catalogue: Catalogue, first: IntArray, second: IntArray, weight: float, evidence: FloatArray) -> None:
    """Learn which words stand for one another in entries that else agree (colours, sizes, editions), and count them.

    A word that many words replace is an attribute, by which different items differ; less so between shops, which may
    call one thing by two words.
    """
    close = np.flatnonzero((evidence[:, 0] >= _ALIKE) & (evidence[:, 0] < 1 - 1e-12)).tolist()
    left = {pair: left_over(catalogue, int(first[pair]), int(second[pair])) for pair in close}
    partners: dict[int, set[int]] = defaultdict(set)
    for mine, theirs in left.values():
        if len(mine) == len(theirs) == 1 and catalogue.kinds[mine[0]] == catalogue.kinds[theirs[0]] == PLAIN:
            partners[mine[0]].add(theirs[0])
            partners[theirs[0]].add(mine[0])
    many = {word: weight * math.log(len(others)) for word, others in partners.items() if word not in catalogue.fillers}
    swapped = list(EVIDENCE).index("words that replace one another")
    for pair, (mine, theirs) in left.items():
        most = [max((many.get(word, 0.0) for word in words), default=0.0) for words in (mine, theirs)]
        evidence[pair, swapped : swapped + 2] = min(most), 0.0 if mine and theirs else max(most)
