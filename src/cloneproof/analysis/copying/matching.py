"""Which titles of a catalogue name one item, with a score and a reason each.

The *score* of two titles is the cosine of their words' weights (`catalogue`): 0 for nothing in common, 1 for the same
words. A misspelt, shortened or lengthened word counts nine tenths. Two titles name one item if

1. their words are the same but for filler, order, spelling, and a numbering or a year that one of them has; or
2. they have different owners and a score of at least the threshold, each is the other's nearest among that owner's
   titles, no different item fits as well, no number contradicts, and what they share is rare: its bits, less those of
   contrasts and a quarter of those of other words that both lack of each other, are at least log2(n/2), where n is the
   number of titles, so that about one title would share as much by chance.

An owner words its items so that they can be told apart, so titles of one owner need the first. Titles that reach the
threshold and are not one item are *near*, and the reason says what speaks against it.

Candidates are the nearest titles by the rarest words of each (a product of sparse matrices): the work grows with the
number of titles, not with its square.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from scipy import sparse

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._clock import check_time
from cloneproof.analysis.copying.catalogue import CODE, Catalogue, has_digit, is_code, is_number, is_numbering
from cloneproof.errors import CloneproofError

THRESHOLD: Final = 0.4  # score from which on titles of two owners may be one item
WORTH_COMPARING: Final = 0.2  # cosine of exact words from which on two titles are compared
AMBIGUOUS: Final = 0.03  # share of the score by which a different item must fit less well
CLEAR: Final = 0.9  # score from which on that does not matter
SPELT: Final = 0.9  # what a misspelt or shortened word counts
SMALLEST: Final = 100  # titles of a catalogue of which words can be called rare
ROUNDS: Final = 3  # in which matches are accepted
PSEUDO: Final = 10.0  # titles by which two owners are like all others
UNSHARED: Final = 0.15  # share of the bits of words that both titles lack of each other, which counts against
LONG: Final = 6  # letters of a word that is a title by itself
SHORTEST: Final = 4  # letters of a word that may be misspelt
SUBSTITUTED: Final = 8  # letters of a word in which one may be wrong: shirts and skirts differ
MOST_SPELT: Final = 50  # words that are compared with each other by spelling, of those that may be one
NEAREST: Final = 8  # candidates of a title among its owner's, and among others'
MOST_COMPARED: Final = 3_000  # titles with one of the words by which a title's candidates are found
AT_ONCE: Final = 1_000  # titles whose candidates are found at once
TITLE_SECONDS, PAIR_SECONDS = 2e-4, 2e-5  # rough time for the candidates of a title, and to compare two
TEXTS: Final = "comparison of texts"
MOST_NAMED: Final = 4  # words that a reason names
Near = Mapping[int, Sequence[tuple[float, int]]]  # of each title the scores and numbers of those compared with it


class TitleLink(NamedTuple):
    """Two texts, by their numbers, the smaller first: their score, whether they name one item, and why or why not."""

    one: int
    other: int
    score: float
    same: bool
    reason: str


class ComparedTitles(NamedTuple):
    """What two titles share: the score, bits in common, words of the one and of the other, and words spelt in two ways.

    sure   whether words that are equal weigh more than those that are only spelt alike
    """

    score: float
    bits: float
    left: frozenset[str]
    right: frozenset[str]
    spelt: tuple[tuple[str, str], ...]
    sure: bool


class Matcher:
    """Titles to be compared with each other; `owners` are those of each."""

    def __init__(self, texts: Sequence[str], owners: Sequence[Collection[str]], threshold: float = THRESHOLD) -> None:
        _rapidfuzz()  # so that it is missed at once
        self.texts, self.threshold = texts, threshold
        self.owners = [frozenset(own) for own in owners]
        self.catalogue = Catalogue(texts, self.owners)
        self.masses = self.catalogue.masses
        self.words = [
            words - fillers if fillers else words
            for words, fillers in zip(self.catalogue.sets, self.catalogue.fillers, strict=True)
        ]
        self.spellings = spelt_alike(self.masses)
        self.sizes = np.array([math.fsum(self.masses[word] for word in words) for words in self.words])

    def links(self) -> list[TitleLink]:
        """Return the texts that are one item, and those that are near, in the order of the texts."""
        compared = {}
        for one, other in self._candidates():
            check_time(TEXTS, PAIR_SECONDS)
            if not (self.catalogue.is_code(one) or self.catalogue.is_code(other)):
                pair = self.compare(one, other)
                if pair.score >= (1 - AMBIGUOUS) * self.threshold or not (pair.left and pair.right):
                    compared[one, other] = pair  # others can neither be one item nor fit as well as one
        near: dict[int, list[tuple[float, int]]] = defaultdict(list)
        for (one, other), pair in compared.items():
            if not self._contradict(one, other, pair):
                near[one].append((pair.score, other))
                near[other].append((pair.score, one))
        links: list[TitleLink] = []
        matched: dict[tuple[int, int], ComparedTitles] = {}
        for (one, other), pair in compared.items():
            against, across = self._worded_otherwise(one, other, pair), self.owners[one].isdisjoint(self.owners[other])
            worded = not against
            if against and pair.score >= self.threshold and across:
                against = self._another_item(one, other, pair, near)
            if not against:
                reason = self._same_words(one, other, pair) if worded else self._shared_words(one, other, pair)
                links.append(TitleLink(one, other, round(pair.score, 3), True, reason))
                if across:
                    matched[one, other] = pair
            elif pair.score >= self.threshold:
                links.append(TitleLink(one, other, round(pair.score, 3), False, against))
        common = self._too_common(matched)
        return sorted(
            link._replace(same=False, reason="many titles share as much") if link[:2] in common else link
            for link in links
        )

    def _too_common(self, matched: Mapping[tuple[int, int], ComparedTitles]) -> set[tuple[int, int]]:
        """Return the matches of two owners that may be chance: what they share is not rare enough.

        It has to be the rarer the fewer of the smaller owner's titles match the other's: first as those of all pairs of
        owners do, then also by how many matches of these two were accepted so.
        """
        sizes = Counter(owner for owners in self.owners for owner in owners)
        ranked = sorted(sizes.values())
        most = max(sum(size * (len(ranked) - 1 - place) for place, size in enumerate(ranked)), 1)
        between = {
            pair: min((min(a, b), max(a, b)) for a in self.owners[pair[0]] for b in self.owners[pair[1]])
            for pair in matched
        }
        accepted: Counter[tuple[str, str]] = Counter()
        common: set[tuple[int, int]] = set()
        for _ in range(ROUNDS):
            overall, chance = (len(matched) - len(common)) / most, set()
            for pair, owners in between.items():
                titles = min(sizes[owner] for owner in owners)
                others = max(accepted[owners] - (pair not in common), 0)
                share = (others + PSEUDO * overall) / (titles - 1 + PSEUDO) if accepted else overall
                if not (self._share_a_code(*pair) or self._is_rare(matched[pair], min(max(share, 1 / most), 0.5))):
                    chance.add(pair)
            common = chance
            accepted = Counter(owners for pair, owners in between.items() if pair not in common)
        return common

    def _is_rare(self, pair: ComparedTitles, share: float) -> bool:
        """Return whether what titles share is rare, where this share of their owners' titles match, a half at most."""
        lacks = (pair.left, pair.right)
        if not all(lacks) and all(map(is_numbering, pair.left | pair.right)):
            return True
        few, many = sorted(math.fsum(map(self.catalogue.bits, filter(self._tells, words))) for words in lacks)
        less, more = sorted(math.fsum(map(self.catalogue.bits, words)) for words in lacks)
        alike = 1 - 2 * share  # titles of owners of whom few match should be worded alike
        bits = pair.bits - few - alike * (many - few) - (1 - alike) * UNSHARED * less - alike * more
        return bits >= math.log2(max(self.catalogue.titles, SMALLEST) / 2) + math.log2(0.5 / share)

    def compare(self, one: int, other: int) -> ComparedTitles:
        """Compare two titles word by word."""
        mine, theirs = self.words[one], self.words[other]
        common = mine & theirs
        left, right = mine - self.catalogue.sets[other], theirs - self.catalogue.sets[one]
        exact, bits = math.fsum(map(self.masses.__getitem__, common)), math.fsum(map(self._bits, common))
        soft, short, spelt = 0.0, 0.0, []
        if left and right:
            for word in sorted(left & self.spellings.keys()):
                like = min(self.spellings[word] & right, default=None)
                if like is not None:
                    mass = SPELT * min(self.masses[word], self.masses[like])
                    soft, short = soft + mass, short + (0.0 if _misspelt(word, like) else mass)
                    bits += SPELT * min(self.catalogue.bits(word), self.catalogue.bits(like))
                    spelt.append((word, like))
                    left, right = left - {word}, right - {like}
        size = math.sqrt(self.sizes[one] * self.sizes[other])
        score = min((exact + soft) / size, 1.0) if size else 0.0
        return ComparedTitles(score, bits, left, right, tuple(spelt), exact >= short)

    def _bits(self, word: str) -> float:
        """Return the bits that a word in common tells, twice as many of a code."""
        return self.catalogue.bits(word) * (2 if is_code(word) else 1)

    def _worded_otherwise(self, one: int, other: int, pair: ComparedTitles) -> str:
        """Return in which words two titles differ beyond filler, order, spelling and numbering; "" for in none."""
        codes = [words for words in pair.spelt if any(map(has_digit, words))]
        left, right = (words | {code[k] for code in codes} for k, words in enumerate((pair.left, pair.right)))
        more = left | right
        if left and right:
            return _differ(left, right)
        if len(more) > 1 or not all(has_digit(word) and is_numbering(word) for word in more):
            return f"only one has {_listed(more)}"
        if more and self.words[other if left else one] in self.catalogue.series:
            return f"one of a series: {_listed(more)}"
        common = self.words[one] & self.words[other]
        if not pair.sure or (len(common) + len(pair.spelt) < 2 and len(max(common, key=len, default="")) < LONG):
            return "too few words in common"
        return "numbers have changed places" if self._swapped(one, other) else ""

    def _swapped(self, one: int, other: int) -> bool:
        """Return whether titles are the same words in one order, but for numbers that have changed places."""
        orders = [[word for word in self.catalogue.words[k] if word in self.words[k]] for k in (one, other)]
        places = [[None if has_digit(word) else word for word in order] for order in orders]
        return orders[0] != orders[1] and places[0] == places[1] and sorted(orders[0]) == sorted(orders[1])

    def _another_item(self, one: int, other: int, pair: ComparedTitles, near: Near) -> str:
        """Return what speaks against one item of two owners; "" for nothing."""
        if self._swapped(one, other):
            return "numbers have changed places"
        sides = ((one, other), (other, one))
        for title, partner in sides:
            for score, rival in near[title]:
                if score > pair.score and not self.owners[rival].isdisjoint(self.owners[partner]):
                    return f"{_quoted(self.texts[rival])} is nearer"
        lacks = (pair.left, pair.right)
        rest = [word for word in pair.left | pair.right if not (is_code(word) or self._tells(word))]
        if self._contradict(one, other, pair) or (all(lacks) and not rest):
            return _differ(*(words - {*rest} for words in lacks))
        for title, partner in sides if pair.score < CLEAR else ():
            for score, rival in near[title]:
                others = rival != partner and self.owners[rival].isdisjoint(self.owners[title])
                if others and score >= (1 - AMBIGUOUS) * pair.score and self._different(rival, partner):
                    return f"{_quoted(self.texts[rival])} fits as well"
        return ""

    def _contradict(self, one: int, other: int, pair: ComparedTitles) -> bool:
        """Return whether each title has a number that the other lacks, and no code that only these two have."""
        if not all(any(map(is_number, words)) for words in (pair.left, pair.right)):
            return False
        return not self._share_a_code(one, other)

    def _share_a_code(self, one: int, other: int) -> bool:
        """Return whether titles have a code that no other title has."""
        return any(is_code(word) and self.catalogue.count[word] <= 2 for word in self.words[one] & self.words[other])

    def _tells(self, word: str) -> bool:
        """Return whether a word tells items apart: a number or a contrast."""
        return is_number(word) or word in self.catalogue.contrasts

    def _different(self, one: int, other: int) -> bool:
        """Return whether titles are two items for sure: of one owner, or with numbers or contrasts that differ."""
        if not self.owners[one].isdisjoint(self.owners[other]):
            return True
        mine, theirs = self.words[one], self.words[other]
        return all(any(map(self._tells, more)) for more in (mine - theirs, theirs - mine))

    def _candidates(self) -> list[tuple[int, int]]:
        """Return the pairs of texts that are worth comparing."""
        numbers = {word: number for number, word in enumerate(self.masses)}
        counts = np.array([self.catalogue.count[word] for word in numbers], dtype=np.int64)
        columns = np.array([numbers[word] for words in self.words for word in words], dtype=np.int64)
        lengths, texts = np.array([len(words) for words in self.words]), len(self.words)
        rows = np.repeat(np.arange(texts), lengths)
        weights = np.sqrt(np.array(list(self.masses.values()))[columns] / self.sizes[rows])
        table = sparse.csr_matrix((weights, (rows, columns)), (texts, len(numbers)))
        order = np.lexsort((counts[columns], rows))  # of each text, the rarest words first
        passed = np.cumsum(counts[columns[order]])
        before = np.concatenate([[0], passed])[np.cumsum(lengths) - lengths]
        rare = order[(passed - before[rows] <= MOST_COMPARED) | (np.diff(rows, prepend=-1) > 0)]
        blocks = sparse.csr_matrix((weights[rare], (rows[rare], columns[rare])), table.shape)
        owners = {own: number for number, own in enumerate(dict.fromkeys(self.owners))}
        owner = np.array([owners[own] for own in self.owners])
        transposed, codes = table.T.tocsr(), [np.zeros(0, np.int64)]
        for begin in range(0, texts, AT_ONCE):
            products = blocks[begin : begin + AT_ONCE] @ transposed
            for row in range(products.shape[0]):
                check_time(TEXTS, TITLE_SECONDS)
                place, text = slice(*products.indptr[row : row + 2]), begin + row
                like, score = products.indices[place].astype(np.int64), products.data[place]
                own = owner[like] == owner[text]
                for kept in (own & (like != text), ~own):
                    some = like[kept][_largest(score[kept])]
                    codes.append(np.minimum(some, text) * texts + np.maximum(some, text))
        pairs = np.unique(np.concatenate(codes))
        worth = [np.zeros(0, np.int64)]
        for begin in range(0, len(pairs), 10 * AT_ONCE):
            some = pairs[begin : begin + 10 * AT_ONCE]
            cosine = np.asarray(table[some // texts].multiply(table[some % texts]).sum(axis=1)).ravel()
            worth.append(some[cosine >= WORTH_COMPARING])
        chosen = np.concatenate(worth)
        return list(zip((chosen // texts).tolist(), (chosen % texts).tolist(), strict=True))

    def _same_words(self, one: int, other: int, pair: ComparedTitles) -> str:
        """Return a reason in words."""
        parts = [f"{' and '.join(words)} are spelt alike" for words in pair.spelt]
        if pair.left | pair.right:
            parts.append(f"{_listed(pair.left | pair.right)} may be a numbering")
        filler = self.catalogue.fillers[one] ^ self.catalogue.fillers[other]
        if filler:
            parts.append(f"filler: {_listed(filler)}")
        return "the same words" + (f"; {'; '.join(parts)}" if parts else "")

    def _shared_words(self, one: int, other: int, pair: ComparedTitles) -> str:
        """Return a reason in words, the rarest first."""
        common = sorted(self.words[one] & self.words[other], key=lambda word: (-self.masses[word], word))
        parts = [f"each other's nearest, with {_listed(common, keep=True)}"] if common else []
        return "; ".join([*parts, *(f"{' and '.join(words)} are spelt alike" for words in pair.spelt[:MOST_NAMED])])


def _largest(scores: FloatArray) -> IntArray:
    """Return the places of the NEAREST largest."""
    if len(scores) <= NEAREST:
        return np.arange(len(scores))
    return np.argpartition(-scores, NEAREST)[:NEAREST]


def _listed(words: Iterable[str], keep: bool = False) -> str:
    some = [word.rstrip("*") for word in (words if keep else sorted(words))]
    return ", ".join(some[:MOST_NAMED]) + (", .." if len(some) > MOST_NAMED else "")


def _differ(left: Iterable[str], right: Iterable[str]) -> str:
    return f"one has {_listed(left)}, the other {_listed(right)}"


def _quoted(text: str) -> str:
    return f"\u201c{text}\u201d"


def spelt_alike(vocabulary: Collection[str]) -> dict[str, set[str]]:
    """Return the words that may be one, misspelt, shortened, or a code with more at its end, of each that has such.

    Candidates are words that are equal but for a letter left out, that begin another or are its consonants, and codes
    that are in another or begin as it does.

    >>> found = spelt_alike(["ceramic", "cermic", "shirt", "skirt", "prof", "professional", "32av502", "32av502u"])
    >>> [sorted(found.get(word, [])) for word in ("ceramic", "shirt", "prof", "32av502")]
    [['cermic'], [], ['professional'], ['32av502u']]
    """
    words, blocks = set(vocabulary), defaultdict(list)
    codes = {word for word in words if is_code(word)}
    for word in vocabulary:
        if word in codes:
            for part in {word[:k] for k in range(max(5, len(word) - 2), len(word) + 1)}:
                blocks[part].append(word)
        elif word.isalpha():
            for key in {word, _consonants(word), *(word[:k] + word[k + 1 :] for k in range(len(word)))}:
                blocks[key].append(word)
    alike: dict[str, set[str]] = defaultdict(set)

    def join(one: str, other: str) -> None:
        if one != other and _one_word(one, other):
            alike[one].add(other)
            alike[other].add(one)

    for block in blocks.values():
        for one, other in combinations(block[:MOST_SPELT], 2):
            join(one, other)
    for word in codes:
        parts = {word[a:b] for a in range(len(word)) for b in range(a + CODE, len(word) + 1)} & codes
        starts = {word[:k] for k in range(CODE, len(word))} & blocks.keys()
        for other in parts.union(*(blocks[start][:MOST_SPELT] for start in starts)):
            join(word, other)
    for word in filter(str.isalpha, words):
        for other in {word[:k] for k in range(4, len(word) - 1)} & words:
            join(word, other)
    return alike


def _one_word(one: str, other: str) -> bool:
    if has_digit(one) or has_digit(other):
        return has_digit(one) and has_digit(other) and _one_code(one, other)
    return _misspelt(one, other) or _shortened(one, other)


def _consonants(word: str) -> str:
    return word[0] + re.sub("[aeiou]", "", word[1:])


def _misspelt(one: str, other: str) -> bool:
    """Return whether words differ by one slip: a letter too many or too few, or two swapped; in long ones, a wrong one.

    >>> _misspelt("shirts", "shirt"), _misspelt("shirt", "skirt"), _misspelt("dishwasher", "dishwahser")
    (True, False, True)
    """
    if min(len(one), len(other)) < SHORTEST or abs(len(one) - len(other)) > 1:
        return False
    if _rapidfuzz()(one, other, score_cutoff=1) > 1:
        return False
    return len(one) != len(other) or sorted(one) == sorted(other) or len(one) >= SUBSTITUTED


def _shortened(one: str, other: str) -> bool:
    """Return whether one word is short for the other: its first letters, or its consonants.

    >>> _shortened("prof", "professional"), _shortened("kitchen", "ktchn"), _shortened("car", "cartoon")
    (True, True, False)
    """
    short, long = sorted((one, other), key=len)
    if len(short) < 2 or len(long) < 5 or short[0] != long[0]:
        return False
    begins = long.startswith(short) and len(short) >= 4 and len(long) >= len(short) + 2
    return begins or short == _consonants(long)


def _one_code(one: str, other: str) -> bool:
    """Return whether a code is a part of the other, or begins as it does but for two letters, which are no digits.

    >>> _one_code("rxv863bk", "rxv863bl"), _one_code("ki8343", "ki8344")
    (True, False)
    """
    short, long = sorted((one, other), key=len)
    if not (is_code(short) and is_code(long)):
        return False
    begun = next((k for k, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if short in long:
        return True
    return begun >= max(CODE, len(short) - 2) and has_digit(short[:begun]) and not has_digit(short[begun:])


def _rapidfuzz() -> Callable[..., float]:
    """Return the distance of two words."""
    try:
        from rapidfuzz import distance
    except ImportError:
        raise CloneproofError(
            "expected the package rapidfuzz to compare texts, got none installed; pip install 'cloneproof[log]'"
        ) from None
    return distance.OSA.distance
