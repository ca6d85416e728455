"""Words of a catalogue: how its titles are split, spelt and written together, and how rare each word is in it.

A *word* is what one entry can share with another: a word of a title, a number with its unit, or a code. Words of two
columns are two words. Rarity is log(N / df) / log N: 1 for a word of one entry among N, 0 for a word of all.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from cloneproof._lib.arrays import FloatArray, IntArray

PLAIN, NUMBER, CODE = 0, 1, 2  # kinds of words
FILLED: Final = 0.25  # of its rarity
LONGEST_END: Final = 3  # words
FILLERS: Final = frozenset((  # a hint, no more: what comes and goes is learnt from the catalogue
    "bestseller", "copy", "deal", "delivery", "free", "hot", "limited", "neu", "new", "nuevo", "nuovo", "offer",
    "original", "outlet", "price", "promo", "sale", "shipping", "top",
))  # fmt: skip
_WORD: Final = re.compile(r"[^\W_]+")
_SPAN: Final = re.compile(r"[^\W_]+(?:[-./'\u2019,][^\W_]+)*")
_CUT: Final = re.compile(r"[-/'\u2019]|\.(?!\d)|(?<!\d)\.|,(?!\d{3}\b)|(?<!\d),")
_MARK: Final = re.compile(r"\((?:r|c|tm)\)|[\u00ae\u00a9\u2122]")
_COMMA: Final = re.compile(r"(?<=\d),(?=\d{1,2}(?!\d))")  # a decimal one, as most languages write it
_VERSION: Final = re.compile(r"\bv(?:\.? ?)(?=\d)")
_ZEROS: Final = re.compile(r"(?<=\d)\.0+(?!\d|\.\d)")
_NUMBER: Final = re.compile(r"\d{1,4}(?:\.\d+)?[^\W\d_]{0,4}|\d+x\d+")
_UNSPACED: Final = re.compile(r"[぀-ヿ㐀-鿿]{3,}")  # runs of Japanese and Chinese, which have no spaces
_SPELT: Final = 4  # letters from which on a spelling may be a slip
_VALUE: Final = re.compile(r": \S*e[+-]")  # of a column of numbers
_RARE: Final = 2  # entries of a word that may be another one misspelt


def read_words(text: str) -> list[str]:
    """Split a text into words, without case, accents and marks.

    >>> read_words("Café-Lamp 2.5 kg, NEW!"), read_words("Bose AM-53/BK")
    (['cafe', 'lamp', '2.5', 'kg', 'new'], ['bose', 'am', '53', 'bk'])
    >>> read_words("Print Shop(R) v. 22.0"), read_words("Krug 1,5 l")  # 22.0 is 22, and a comma a decimal point
    (['print', 'shop', '22'], ['krug', '1.5', 'l'])
    """
    folded = unicodedata.normalize("NFKD", _MARK.sub(" ", text.casefold().replace("&", " and ")))
    folded = _ZEROS.sub("", _VERSION.sub("", _COMMA.sub(".", folded)))
    plain = "".join(letter for letter in folded if not unicodedata.combining(letter))
    words: list[str] = []
    for span in _SPAN.findall(plain):
        for piece in _CUT.split(span.replace("'s", "s").replace("\u2019s", "s")):
            word = piece.replace(",", "")
            if _UNSPACED.fullmatch(word):
                words += [word[k : k + 2] for k in range(len(word) - 1)]
            elif word:
                words.append(word)
    return words


def kind_of(word: str) -> int:
    """Tell a plain word from a number (with its unit) and a code.

    >>> [kind_of(word) for word in ("lamp", "16gb", "2.5", "am53bk", "20000")]
    [0, 1, 1, 2, 2]
    """
    if not any(letter.isdigit() for letter in word):
        return PLAIN
    return NUMBER if _NUMBER.fullmatch(word) else CODE


def _written_together(lists: Sequence[list[str]]) -> list[list[str]]:
    """Join neighbours that the catalogue also writes as one word: "16 gb" where there is "16gb"."""
    entries = Counter(word for words in lists for word in set(words))

    def one_word(left: str, right: str) -> bool:
        both = left + right
        mixed = any(map(str.isdigit, both)) and any(map(str.isalpha, both))
        if mixed and entries.get(both, 0):
            return True
        if mixed and left.isalpha() and right.isdigit() and 2 <= len(left) <= 4 <= len(both) and len(right) >= 2:
            return entries[left] < 3  # a code's letters, which stand for nothing else here
        return len(both) >= 3 and not mixed and entries.get(both, 0) * 3 >= min(entries[left], entries[right])

    joined = []
    for words in lists:
        line, place = [], 0
        while place < len(words):
            if place + 1 < len(words) and one_word(words[place], words[place + 1]):
                line.append(words[place] + words[place + 1])
                place += 2
            else:
                line.append(words[place])
                place += 1
        joined.append(line)
    return joined


def _shortened(word: str) -> Iterator[str]:
    yield word
    for place in range(len(word)):
        yield word[:place] + word[place + 1 :]


def spellings(entries: Mapping[str, int]) -> dict[str, str]:
    """Map rare words to the most frequent word that is one slip away: a letter more, less, other, or two swapped.

    >>> spellings({"keyboard": 9, "keybaord": 1, "keys": 4, "key": 1})
    {'keybaord': 'keyboard'}
    """
    near: dict[str, list[str]] = defaultdict(list)
    for word in entries:
        if len(word) >= _SPELT and word.isalpha():
            for part in _shortened(word):
                near[part].append(word)
    best: dict[str, str] = {}
    for words in near.values():
        if len(words) > 1:
            top = max(words, key=lambda word: (entries[word], word))
            for word in words:
                if word != top and entries[word] <= _RARE and _one_slip(word, top):
                    best[word] = max(best.get(word, top), top, key=lambda other: (entries[other], other))
    return {word: other for word, other in best.items() if other not in best}


def _one_slip(one: str, other: str) -> bool:
    """Whether two different words are one slip apart; plurals and other last letters are no slips.

    >>> _one_slip("kettle", "kettel"), _one_slip("kettle", "kettles"), _one_slip("kettle", "kxttly")
    (True, False, False)
    """
    short, long = sorted((one, other), key=len)
    if long in (short + "s", short + "e", short + "n"):
        return False
    start = next((k for k, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    if len(long) > len(short):
        return len(long) == len(short) + 1 and short[start:] == long[start + 1 :]
    if start == len(short) - 1:  # another last letter makes another model
        return False
    swapped = short[start : start + 2] == long[start : start + 2][::-1] and short[start + 2 :] == long[start + 2 :]
    return swapped or short[start + 1 :] == long[start + 1 :]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """The words of each entry.

    entries   each entry's words in their order, as places in `words`, spellings corrected; no word twice
    written   the same with a place for each spelling
    plain     a number for each entry, the same for those of the same words in any order and case, FILLERS apart
    words     what the places stand for, with the mark of its column before all but the first column's
    fillers   words that come and go (`with_fillers`); they count FILLED of their rarity
    """

    entries: list[list[int]]
    written: list[list[int]]
    plain: IntArray
    words: list[str]
    fillers: frozenset[int] = frozenset()

    @classmethod
    def of(cls, columns: Mapping[str, tuple[str, Sequence[object]]]) -> Catalogue:
        """Read columns by name: each a kind, text or number, and its values, None where one is missing."""
        numbers: dict[str, int] = {}
        written: list[list[int]] | None = None
        sound: dict[int, int] = {}
        for place, (name, (kind, values)) in enumerate(columns.items()):
            mark = "" if place == 0 else f"{name}: "
            if kind == "number":
                lists = [[] if value is None else [f"{float(str(value)):.3g}"] for value in values]  # 19.99 is 20
            else:
                lists = _written_together([[] if value is None else read_words(str(value)) for value in values])
            rows = [[numbers.setdefault(mark + word, len(numbers)) for word in dict.fromkeys(words)] for words in lists]
            written = rows if written is None else [old + new for old, new in zip(written, rows, strict=True)]
            if kind != "number":
                counts = Counter(word for words in lists for word in set(words))
                sound |= {numbers[mark + slip]: numbers[mark + word] for slip, word in spellings(counts).items()}
        written = written or []
        seen: dict[object, int] = {}
        texts = zip(*(values for _, values in columns.values()), strict=True)
        plain_words = (
            [sorted(w for w in _WORD.findall(str(text).casefold()) if w not in FILLERS) for text in row]
            for row in texts
        )
        plain = [seen.setdefault(str(row), len(seen)) for row in plain_words]
        entries = [list(dict.fromkeys(sound.get(word, word) for word in row)) for row in written]
        return cls(entries, written, np.array(plain, int), list(numbers))

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def kinds(self) -> IntArray:
        """The kind of each word; values of number columns are numbers."""
        kinds = (NUMBER if _VALUE.search(word) else kind_of(word.rpartition(": ")[2]) for word in self.words)
        return np.fromiter(kinds, int, count=len(self.words))

    @cached_property
    def frequency(self) -> IntArray:
        """How many entries have each word."""
        return np.bincount([word for row in self.entries for word in row], minlength=len(self.words))

    @cached_property
    def rarity(self) -> FloatArray:
        number = len(self) + 1
        rarity = np.clip(np.log(number / (self.frequency + 0.5)) / math.log(number), 0, 1)
        rarity[list(self.fillers)] *= FILLED
        return np.asarray(rarity)

    @cached_property
    def hints(self) -> frozenset[int]:
        """The words that are fillers in many catalogues."""
        return frozenset(place for place, word in enumerate(self.words) if word in FILLERS)

    def with_fillers(self, owners: IntArray) -> Catalogue:
        """Learn the words that come and go at the ends of otherwise equal entries of one owner, as "outlet" may.

        Such a word has to do so with two different entries at least, in half of all entries that have it, and more
        often inside owners than between two. A word that is often one (FILLERS) needs one entry.
        """
        places = defaultdict(list)
        for entry, row in enumerate(self.entries):
            places[tuple(row)].append(entry)
        own: dict[int, set[int]] = defaultdict(set)
        strange: dict[int, set[int]] = defaultdict(set)
        for entry, row in enumerate(self.entries):
            for cut in range(1, min(LONGEST_END, len(row) - 2) + 1):
                for rest, ends in ((row[:-cut], row[-cut:]), (row[cut:], row[:cut])):
                    for base in places.get(tuple(rest), ()):
                        for word in ends:
                            (own if owners[base] == owners[entry] else strange)[word].add(base)
        hints = self.hints
        fillers = {
            word for word, bases in own.items()
            if self.kinds[word] == PLAIN
            and (word in hints or (len(bases) > max(1, len(strange[word])) and 2 * len(bases) >= self.frequency[word]))
        }  # fmt: skip
        return replace(self, fillers=frozenset(fillers))

    def matrix(self, rows: Sequence[Sequence[int]], values: FloatArray) -> Any:  # noqa: ANN401 (SciPy has no types)
        """A sparse matrix, a row an entry, with the value of each of its words."""
        from scipy import sparse

        ends = np.cumsum([0, *map(len, rows)])
        columns = np.fromiter((word for row in rows for word in row), np.int32, count=int(ends[-1]))
        return sparse.csr_matrix((values[columns], columns, ends), shape=(len(rows), len(self.words)))
