"""The links of a catalogue: which entries are one item, with the reason of each, its share of errors, and groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final, Literal

import numpy as np

from cloneproof._lib.arrays import IntArray
from cloneproof._lib.data import Data
from cloneproof.same.chance import Chances, chances
from cloneproof.same.judging import (
    CONTRADICTS,
    ClicksAndViews,
    by_identifier,
    grouped,
    kept_by_rewards,
    odds_of_different,
    rewards_differ,
)
from cloneproof.same.likeness import EVIDENCE, Pairs, left_over, pairs_of, shops
from cloneproof.same.words import PLAIN, Catalogue

FALSE_SHARE: Final = 0.05
MOST_ALIKE: Final = 1_000  # pairs told that are alike and not named, the most alike first
LEAST_ALIKE: Final = -1.5  # score of such a pair
MOST_WORDS: Final = 6  # told of a pair
ColumnKind = Literal["text", "number", "identifier"]
Columns = Mapping[str, tuple[str, Sequence[object]]]


@dataclass(frozen=True)
class Why(Data):
    """What speaks for a pair and against it.

    words      common words, the rarest first
    numbers    common numbers and codes
    only_one, only_other    what one entry has and the other has not
    speaks_for, speaks_against    in words, what else counted
    """

    words: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    only_one: tuple[str, ...] = ()
    only_other: tuple[str, ...] = ()
    speaks_for: tuple[str, ...] = ()
    speaks_against: tuple[str, ...] = ()

    def __str__(self) -> str:
        both = ", ".join((*self.words, *self.numbers))
        said = [f"both: {both}"] if both else []
        left = [" ".join(words) for words in (self.only_one, self.only_other) if words]
        said += [f"only one: {' / '.join(left)}"] if left else []
        said += self.speaks_for
        said += [f"against: {reason}" for reason in self.speaks_against]
        return "; ".join(said)


@dataclass(frozen=True)
class SameLink(Data):
    """Two entries, by their places.

    score    how alike their columns are; only its order counts
    share    the expected share of errors among the pairs of their kind that are at least as alike
    vetoed   what forbids that they are one item: "rewards", "identifier" or nothing
    why      what decided
    """

    keys_of_data: ClassVar[tuple[str, ...]] = ("one", "other", "score", "share", "vetoed", "why")

    one: int
    other: int
    score: float
    share: float
    vetoed: str
    why: Why


@dataclass(frozen=True)
class Links:
    """What `links_of` finds.

    named, alike     pairs that are one item, and pairs that are alike and not named, the most alike first
    groups           entries joined by named pairs, the largest first
    accounts         pairs of owners whose entries match one to one, with the matching entries
    expected_wrong   how many named pairs are expected to be wrong
    rests_on         sentences: what that number rests on
    """

    named: tuple[SameLink, ...] = ()
    alike: tuple[SameLink, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()
    accounts: tuple[tuple[str, str, tuple[tuple[int, int], ...]], ...] = ()
    expected_wrong: float = 0.0
    rests_on: tuple[str, ...] = ()


def links_of(
    columns: Columns, owners: Sequence[str], new: int | None = None, rewards: ClicksAndViews | None = None,
    false_share: float = FALSE_SHARE, told: Callable[[float], None] = lambda _: None,
) -> Links:  # fmt: skip
    """Find the entries that are one item.

    Parameters
    ----------
    columns : mapping
        By name, the kind of each column (text, number or identifier) and its values.
    owners : sequence of str
        Whose each entry is; where all are one's, the list says less about chance.
    new : int, optional
        Only pairs with one of so many first entries; without it, all.
    rewards : ClicksAndViews, optional
        Clicks and views, which may contradict.
    false_share : float
        Share of wrong pairs among the named ones that is aimed at.
    told : function
        Told the share of the work that is done.
    """
    names = sorted(set(owners))
    number = {name: place for place, name in enumerate(names)}
    owned = np.array([number[name] for name in owners], int)
    size = len(owned) if new is None else new
    if len(owned) < 2 or not columns:
        return Links()
    texts = {name: column for name, column in columns.items() if column[0] != "identifier"}
    catalogue = Catalogue.of(texts or {"": ("text", [None] * len(owned))})
    told(0.1)
    catalogue = catalogue.with_fillers(owned)
    pairs = pairs_of(catalogue, owned, size, lambda share: told(0.1 + 0.7 * share))
    found = chances(pairs, owned, false_share)
    judged = _Judged(catalogue, pairs, found, owned, names)
    for kind, values in columns.values():
        if kind == "identifier":
            judged.identify(values, size)
    if rewards is not None:
        judged.reward(rewards, false_share)
    told(0.9)
    return judged.links()


class _Judged:
    """Pairs on their way to links: what is named, and what is forbidden."""

    def __init__(
        self, catalogue: Catalogue, pairs: Pairs, found: Chances, owners: IntArray, names: Sequence[str]
    ) -> None:
        self.catalogue, self.pairs, self.found, self.owners, self.names = catalogue, pairs, found, owners, names
        self.score = pairs.score
        self.named = found.named.copy()
        self.vetoed = np.full(len(pairs), "", dtype="U10")
        self.wrong = found.wrong
        self.notes = list(found.notes)
        self.identified: list[tuple[int, int]] = []
        self.forbid: list[Callable[[int, int], bool]] = []
        if found.brands:
            self.notes.append(
                "sellers keep to brands here, so that different items of one seller look alike: look at the rewards too"
            )
        place = {(int(a), int(b)): k for k, (a, b) in enumerate(zip(pairs.first, pairs.second, strict=True))}
        self.place = place
        differ = (pairs.column("numbers differ") > 0) | (pairs.column("codes differ") > 0)
        self.differing = {pair for pair, k in place.items() if differ[k]}

    def identify(self, values: Sequence[object], new: int) -> None:
        """An identifier that is equal and rare names a pair; unequal ones forbid it."""
        same, differ = by_identifier(values)
        self.forbid.append(differ)
        self.identified += [pair for pair in same if pair[0] < new]
        for (one, other), k in self.place.items():
            if differ(one, other):
                self.vetoed[k] = "identifier"
                self.named[k] = False

    def reward(self, rewards: ClicksAndViews, share: float) -> None:
        """Rewards that contradict forbid a pair; where too many are different, only pairs whose rewards agree stay."""
        first, second = self.pairs.first, self.pairs.second
        odds = odds_of_different(rewards, first, second)
        equal = self.pairs.column("the same words") > 0
        matched = np.zeros(len(self.pairs), bool)
        for *_, pairs in self.found.accounts:
            matched[pairs] = True
        before = int(self.named.sum())
        for kind in (equal & ~matched, ~equal & ~matched, matched):
            some = np.flatnonzero(self.named & kind)
            refused = some[~kept_by_rewards(odds[some], share)]
            self.named[refused] = False
            self.vetoed[refused] = "rewards"
        against = self.named & (rewards_differ(rewards, first, second) > CONTRADICTS)
        self.vetoed[against] = "rewards"
        self.named &= ~against
        gone = before - int(self.named.sum())
        if gone:
            self.notes.append(f"{gone:,} pairs that look like one item were clicked differently, and are not named")
            self.wrong *= int(self.named.sum()) / before

    def links(self) -> Links:
        """Groups of what is named, and all links with their reasons."""
        places = np.flatnonzero(self.named)
        ends = [(int(self.pairs.first[k]), int(self.pairs.second[k])) for k in places]
        joining = [(one, other, float(self.score[k])) for (one, other), k in zip(ends, places, strict=True)]
        joining += [(one, other, np.inf) for one, other in self.identified]
        groups = grouped(len(self.owners), joining, self._contradict)
        groups.sort(key=lambda group: (-len(group), group))
        group_of = {entry: number for number, group in enumerate(groups) for entry in group}
        share = {pair: float(self.found.share[k]) for pair, k in zip(ends, places, strict=True)}
        share |= dict.fromkeys(self.identified, 0.0)
        if not shops(self.owners):  # what one seller lists twice and again is one item thrice
            worst_of: dict[int, float] = defaultdict(float)
            for (one, _), value in share.items():
                worst_of[group_of.get(one, -1)] = max(worst_of[group_of.get(one, -1)], value)
            for number, group in enumerate(groups):
                worst = worst_of[number]
                for pair in combinations(group, 2):
                    if self.owners[pair[0]] == self.owners[pair[1]] and self._vetoed(pair) == "":
                        share.setdefault(pair, worst)
        split = {pair for pair in share if group_of.get(pair[0], -1) != group_of.get(pair[1], -2)}
        named = tuple(self._link(pair, share[pair]) for pair in sorted(share) if pair not in split)
        alike = [
            (-float(self.score[k]), pair)
            for pair, k in self.place.items()
            if self.score[k] >= LEAST_ALIKE and pair not in share
        ]
        alike += [(-float(self.score[self.place[pair]]), pair) for pair in split if pair in self.place]
        return Links(
            named,
            tuple(self._link(pair, self._share(pair)) for _, pair in sorted(alike)[:MOST_ALIKE]),
            tuple(map(tuple, groups)),
            tuple(
                (self.names[one], self.names[other], self._ends(some))
                for one, other, some in self.found.accounts if self.named[some].any()
            ),
            self.wrong,
            tuple(self.notes),
        )  # fmt: skip

    def _ends(self, some: IntArray) -> tuple[tuple[int, int], ...]:
        return tuple((int(self.pairs.first[k]), int(self.pairs.second[k])) for k in some if self.named[k])

    def _share(self, pair: tuple[int, int]) -> float:
        return float(self.found.share[self.place[pair]])

    def _vetoed(self, pair: tuple[int, int]) -> str:
        k = self.place.get(pair)
        return "" if k is None else str(self.vetoed[k])

    def _contradict(self, one: int, other: int) -> bool:
        """Whether two entries may not be in one group."""
        if self._vetoed((one, other)) or any(differ(one, other) for differ in self.forbid):
            return True
        k = self.place.get((one, other))
        return (one, other) in self.differing and not (k is not None and self.named[k])

    def _link(self, pair: tuple[int, int], share: float) -> SameLink:
        k = self.place.get(pair)
        score = 0.0 if k is None else float(self.score[k])
        return SameLink(*pair, score, share, self._vetoed(pair), self._why(pair, k))

    def _why(self, pair: tuple[int, int], k: int | None) -> Why:
        """Tell the words that decided, and the evidence that counted most."""
        catalogue = self.catalogue
        one, other = pair
        theirs = set(catalogue.entries[other])
        common = sorted(
            (word for word in catalogue.entries[one] if word in theirs), key=lambda word: -catalogue.rarity[word]
        )
        spelt = [
            {word: catalogue.words[own] for word, own in zip(catalogue.entries[k], catalogue.written[k], strict=False)}
            for k in pair
        ]
        plain = [spelt[0][word] for word in common if catalogue.kinds[word] == PLAIN]
        numbers = [spelt[0][word] for word in common if catalogue.kinds[word] != PLAIN]
        over = left_over(catalogue, one, other)
        left = [tuple(own[word] for word in words)[:MOST_WORDS] for own, words in zip(spelt, over, strict=True)]
        for_, against = [], []
        if pair in self.identified:
            for_.append("the same identifier")
        evidence = (
            dict.fromkeys(EVIDENCE, 0.0) if k is None else dict(zip(EVIDENCE, self.pairs.evidence[k], strict=False))
        )
        if not any(left):
            for_.append("the same words")
        elif evidence["within at one place"]:
            for_.append("one stands in the other as it is")
        fillers = [catalogue.words[word] for word in (*over[0], *over[1]) if word in catalogue.fillers]
        if fillers:
            for_.append(f"comes and goes here: {', '.join(fillers)}")
        if evidence["slips"] > 0:
            for_.append("spelt almost alike")
        if evidence["numbers differ"] > 0:
            against.append("numbers differ")
        if evidence["codes differ"] > 0:
            against.append("codes differ")
        if evidence["words that replace one another"] > 0:
            against.append("differ in words that tell items apart here")
        if self._vetoed(pair) == "rewards":
            against.append("clicked differently")
        if self._vetoed(pair) == "identifier":
            against.append("identifiers differ")
        return Why(
            tuple(plain[:MOST_WORDS]), tuple(numbers[:MOST_WORDS]), left[0], left[1], tuple(for_), tuple(against)
        )
