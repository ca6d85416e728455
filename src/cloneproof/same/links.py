"""The links of a catalogue: which entries are one item, with the reason of each, its share of errors, and groups.

1. Titles name pairs at a share of errors (`chance`). An equal, rare identifier names a pair too; unequal ones forbid.
2. Rewards forbid a pair whose items earn differently, beyond what one item at two places does (`rewards_differ`), and
   tell how many of the named pairs are different items (`different_share`): if that is more than was asked for, a pair
   is named only where its own rewards agree.
3. Groups are joined by named pairs, unless two members contradict each other; then the weakest link goes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, Final, Literal, NamedTuple

import numpy as np

from cloneproof._lib.arrays import FloatArray, IntArray
from cloneproof._lib.data import Data
from cloneproof.same import FALSE_SHARE
from cloneproof.same.chance import BoolArray, Chances, chances
from cloneproof.same.likeness import EVIDENCE, Pairs, left_over, pairs_of, shops
from cloneproof.same.words import PLAIN, Catalogue

SPREAD: Final = 0.14  # standard deviation of one item's log-odds between two entries of it
CONTRADICTS: Final = 3.3  # |z| from which on rewards speak against one item (p < .001)


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


def different_share(odds: FloatArray) -> float:
    """Return the likeliest share of different items among pairs.

    >>> different_share(np.full(40, 0.5)), different_share(np.array([8.0] * 20 + [0.4] * 5)) > 0.5
    (0.0, True)
    """
    shares = np.linspace(0, 1, 201)
    likelihood = np.log1p(shares[:, None] * (np.minimum(odds, 1e6) - 1)[None, :]).sum(axis=1)
    return float(shares[int(likelihood.argmax())])


def kept_by_rewards(odds: FloatArray, share: float) -> BoolArray:
    """Return which of the pairs that titles name stay named: all, unless rewards say that too many are different."""
    likely = different_share(odds)
    if likely <= share:
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

    Columns are by name: the kind of each (text, number or identifier) and its values. Only pairs with one of the first
    `new` entries are looked for; `false_share` of those named may be wrong, on average; `told` is told the progress.
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
    if rewards is not None:  # of the pairs whose rewards agree fewer are alike by chance, here and in their null
        agree = odds_of_different(rewards, pairs.first, pairs.second) < 1
        found.join(agree, chances(pairs.of(agree), owned, false_share))
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
        self.place = {pair: k for k, pair in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True))}
        differ = (pairs.column("numbers differ") > 0) | (pairs.column("codes differ") > 0)
        self.differing = {pair for pair, k in self.place.items() if differ[k]}

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
        before = int(self.named.sum())
        for kind in (equal, ~equal):
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
        named = {pair: k for pair, k in self.place.items() if self.named[k]}
        joining = [(*pair, float(self.score[k])) for pair, k in named.items()]
        joining += [(*pair, np.inf) for pair in self.identified]
        groups = grouped(len(self.owners), joining, self._contradict)
        groups.sort(key=lambda group: (-len(group), group))
        group_of = {entry: number for number, group in enumerate(groups) for entry in group}
        share = {pair: float(self.found.share[k]) for pair, k in named.items()} | dict.fromkeys(self.identified, 0.0)
        if not shops(self.owners):  # what one seller lists twice and again is one item thrice
            for group in groups:
                worst = max(share.get(pair, 0.0) for pair in combinations(group, 2))
                for pair in combinations(group, 2):
                    if self.owners[pair[0]] == self.owners[pair[1]] and not self._vetoed(pair):
                        share.setdefault(pair, worst)
        split = {pair for pair in share if group_of.get(pair[0], -1) != group_of.get(pair[1], -2)}
        alike = sorted(
            (-float(self.score[k]), pair) for pair, k in self.place.items()
            if pair in split or (self.score[k] >= LEAST_ALIKE and pair not in share)
        )  # fmt: skip
        ends = np.column_stack([self.pairs.first, self.pairs.second])
        accounts = [(one, other, ends[some[self.named[some]]].tolist()) for one, other, some in self.found.accounts]
        return Links(
            tuple(self._link(pair, share[pair]) for pair in sorted(share) if pair not in split),
            tuple(self._link(pair, float(self.found.share[self.place[pair]])) for _, pair in alike[:MOST_ALIKE]),
            tuple(map(tuple, groups)),
            tuple((self.names[a], self.names[b], tuple(map(tuple, some))) for a, b, some in accounts if some),
            self.wrong,
            tuple(self.notes),
        )  # fmt: skip

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
        told = dict.fromkeys(EVIDENCE, 0.0) | dict(
            zip(EVIDENCE, () if k is None else self.pairs.evidence[k], strict=False)
        )
        fillers = [catalogue.words[word] for word in (*over[0], *over[1]) if word in catalogue.fillers]
        for_ = {
            "the same identifier": pair in self.identified,
            "the same words": not any(left),
            "one stands in the other as it is": any(left) and told["within at one place"],
            f"comes and goes here: {', '.join(fillers)}": fillers,
            "spelt almost alike": told["slips"] > 0,
        }
        against = {
            "numbers differ": told["numbers differ"],
            "codes differ": told["codes differ"],
            "differ in words that tell items apart here": told["words that replace one another"],
            "clicked differently": self._vetoed(pair) == "rewards",
            "identifiers differ": self._vetoed(pair) == "identifier",
        }
        said = (tuple(reason for reason, holds in reasons.items() if holds) for reasons in (for_, against))
        return Why(tuple(plain[:MOST_WORDS]), tuple(numbers[:MOST_WORDS]), *left, *said)
