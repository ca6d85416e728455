"""A catalogue's titles as words, and what each word tells, learnt from the catalogue itself.

A word tells more the fewer titles have it (inverse document frequency). A code with a digit tells twice as much; a word
of one title, which can match nothing, half. What is written in several ways is one word where the catalogue also has it
whole: "IPH3GC-BCF" and IPH3GCBCF, "tea pot" and teapot, "8 GB" and 8GB. Numbers are whole: 1.5 is not 5.

Three kinds of words are learnt. A shop's *phrase* is in most of its titles, beside different items, and in few of
others': it says nothing about the item. *Contrasts* are words that alone tell titles apart ("mug red", "mug blue")
where nobody lists the title without them. A *series* is a title with three different numbers. What sellers of all
catalogues say ("free shipping", "the") cannot be learnt from a small one: PRIOR lists it, and contrasts override it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

PRIOR: Final = frozenset(re.findall(r"\w+", """
    a an the of for and with by in on to at from w der die das den dem ein eine und fur mit von im am le la les un
    une et de du des pour avec el los las una y para con il lo gli i e per di da het een en voor met van
    new neu neuf neue nouveau nouvelle nuevo nueva nuovo nuova nieuw novo nova nowy sale soldes ausverkauf rebajas
    saldi hot top best bestseller seller offer angebot offre oferta offerta promo promotion aktion deal deals
    discount rabatt descuento sconto remise korting price preis prix precio prezzo cheap billig gunstig barato free
    gratis gratuit gratuite gratuita gratuito kostenlos kostenloser shipping versand livraison envio spedizione
    verzending frete delivery lieferung original authentic genuine echt orig official quality qualitat qualite
    calidad premium limited edition stock only nur heute today now jetzt buy kaufen fast schnell rapide rapido 24h
    off copy kopie copie copia again relist relisted restock exclusive exklusiv special must have wow look great
    super
"""))  # fmt: skip
WORD: Final = re.compile(
    r"(?<![\w.,])\d{1,3}\s*%|(?<!\w)\.\d[^\W_]*|[^\W_]+(?:(?<=\d)[.,:/\u2044\u2013-](?=\d)[^\W_]+)*%?"
)
LISTED: Final = re.compile(r"^\s*\d{1,2}\s*[.):](?!\d)|\bn[or]\.?\s*(?=\d{1,2}\b(?![.,]\d))")  # "2) lamp", "lamp No. 2"
MARKS: Final = str.maketrans({",": ".", "\u2044": "/", "\u2013": "-", " ": ""})
ROMAN: Final = {"ii": "2", "iii": "3", "iv": "4"}
VERSION: Final = re.compile(r"v?(\d+(?:\.\d+)?)")
DECIMAL: Final = re.compile(r"\d+\.\d+[^\W\d_]{0,3}%?")
YEAR: Final = re.compile(r"(19|20)\d\d")
APOSTROPHES: Final = re.compile("['\u2019]")
MOST_READ: Final = 1 << 16  # texts whose words are kept: each is asked for several times
LONGEST_JOIN: Final = 4  # words that may be one
CODE: Final = 5  # letters and digits of a code, at least
DOUBLED: Final = 2.0  # factor of the square of a code's weight
ONCE: Final = 0.25  # and of a word that one title has
MOST_NUMBERED: Final = 20  # a number up to which it may be a numbering
SERIES: Final = 3  # numbers beside one title that make a series
TOLD_APART, TOLD_SHARE = 2, 0.05  # titles that a contrast alone tells from others, at least, and their share
OWN_TITLES, OWN_SHARE = 3, 0.6  # titles of a shop with a phrase, at least, and their share


@lru_cache(maxsize=MOST_READ)
def read_words(text: str) -> tuple[str, ...]:
    """Return the words of a text as all would write them: without case, accents and marks, II as 2, "1,5" as 1.5.

    >>> read_words("NEW! Caf\u00e9 Lamp II, v2.0, 1,5 m, .5 kg, 1/2")
    ('new', 'cafe', 'lamp', '2', '2', '1.5', 'm', '0.5', 'kg', '1/2')
    """
    plain = unicodedata.normalize("NFKD", APOSTROPHES.sub("", text.casefold()))
    if not plain.isascii():
        plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    words = tuple(_written(word) for word in WORD.findall(LISTED.sub(" ", plain)))
    return (*words[:-1], "1") if words[1:] and words[-1] == "i" else words


def _written(word: str) -> str:
    word = ROMAN.get(word, word).translate(MARKS)
    word = f"0{word}" if word[0] == "." else word
    version = VERSION.fullmatch(word)
    return version[1].removesuffix(".0") if version else word


def has_digit(word: str) -> bool:
    """Return whether a word has a digit."""
    return not word.isalpha() and any(map(str.isdigit, word))


def is_code(word: str) -> bool:
    """Return whether a word is a code, such as a model's: five letters or more, one of them a digit.

    >>> [is_code(word) for word in ("mdrex32lp", "12.5mm", "2025", "lamp")]
    [True, False, False, False]
    """
    return len(word) >= CODE and has_digit(word) and not DECIMAL.fullmatch(word)


def is_number(word: str) -> bool:
    """Return whether a word is a number, perhaps with its unit: 42, 1.5, 500ml, a year, but no code."""
    return word[0].isdigit() and not is_code(word)


def is_numbering(word: str) -> bool:
    """Return whether a number may be a numbering, a year or a discount, where the other title has none."""
    return (word.isdecimal() and int(word) <= MOST_NUMBERED) or YEAR.fullmatch(word) is not None or word[-1] == "%"


def is_code_text(text: str) -> bool:
    """Return whether no word of a text has three letters: a code, which is equal to another or not."""
    return _is_code_text(read_words(text))


def _is_code_text(words: Iterable[str]) -> bool:
    return not any(len(word) >= 3 and word.isalpha() for word in words)


class Catalogue:
    """Different texts as words.

    words     of each text, in its order; a number that is there twice is two ("10", "10*")
    count     in how many of the different titles a word is
    """

    def __init__(self, texts: Sequence[str], owners: Sequence[Collection[str]]) -> None:
        written = [read_words(text) for text in texts]
        known = Counter(word for words in written for word in set(words))
        self.words = [_counted(_joined(words, known)) for words in written]
        self.sets = [frozenset(words) for words in self.words]
        different = set(self.sets)
        counts = Counter(word for words in different for word in words)
        self.count = {word: counts[word] for word in sorted(counts)}
        self.titles = max(len(different), 1)
        self.contrasts = _contrasts(different)
        self._owners = owners

    def is_code(self, number: int) -> bool:
        """Return whether a text is a code."""
        return _is_code_text(self.words[number])

    @cached_property
    def fillers(self) -> list[frozenset[str]]:
        """Words of each text that say nothing about its item: of the prior, and phrases of all of its owners."""
        owned: dict[str, list[int]] = defaultdict(list)
        for number, owners in enumerate(self._owners):
            for owner in owners:
                owned[owner].append(number)
        prior = PRIOR - self.contrasts
        phrases = {owner: self._phrases(numbers, prior) for owner, numbers in owned.items()}
        fillers, none = [], frozenset[str]()
        for words, owners in zip(self.sets, self._owners, strict=True):
            filler = prior.union(frozenset.intersection(*(phrases[owner] for owner in owners)) if owners else ())
            kept = words & filler
            fillers.append(kept if 0 < len(kept) < len(words) else none)
        return fillers

    def _phrases(self, numbers: Sequence[int], prior: frozenset[str]) -> frozenset[str]:
        """Return the words that most of a shop's titles share, if these are different items without them."""
        if len(numbers) < OWN_TITLES:
            return frozenset()
        counts = Counter(word for number in numbers for word in self.sets[number])
        least = max(OWN_TITLES, OWN_SHARE * len(numbers))
        often = [word for word, count in counts.items() if count >= least and 2 * count >= self.count[word]]
        shared = frozenset(word for word in often if not has_digit(word)) - prior
        rest = [self.sets[number] - prior - shared for number in numbers if self.sets[number] & shared]
        told = {words for words in rest if sum(map(str.isalpha, words)) >= 2}
        return shared if rest and len(told) >= 0.8 * len(rest) else frozenset()

    @cached_property
    def series(self) -> frozenset[frozenset[str]]:
        """Titles without their number, that the catalogue has with several, or with the number 1."""
        prior = PRIOR - self.contrasts
        numbers: dict[tuple[frozenset[str], bool], set[str]] = defaultdict(set)  # years are numbers of another kind
        for words in set(self.sets):
            for word in words:
                if has_digit(word) and is_numbering(word):
                    numbers[words - {word} - prior, YEAR.fullmatch(word) is not None].add(word)
        return frozenset(title for (title, _), found in numbers.items() if len(found) >= SERIES or "1" in found)

    def bits(self, word: str) -> float:
        """Return how much a word tells: -log2 of the share of the titles that have it; of a single one, half."""
        return math.log2(self.titles / self.count[word]) * (0.5 if self.count[word] == 1 else 1.0)

    @cached_property
    def masses(self) -> dict[str, float]:
        """Return the square of each word's weight."""
        masses = {}
        for word, count in self.count.items():
            factor = (DOUBLED if is_code(word) else 1.0) * (ONCE if count == 1 else 1.0)
            masses[word] = factor * math.log2(1 + self.titles / count) ** 2
        return masses


def _joined(words: Sequence[str], known: Counter[str]) -> list[str]:
    """Return the words with those joined that the catalogue also has as one.

    >>> known = Counter(["iph3gcbcf", "teapot", "8gb"])
    >>> _joined(["iph3gc", "bcf", "tea", "pot", "8", "gb", "for", "10"], known)
    ['iph3gcbcf', 'teapot', '8gb', 'for', '10']
    """
    found, place = [], 0
    bare = [_bare(word, known) for word in words]
    while place < len(bare):
        for size in range(min(LONGEST_JOIN, len(bare) - place), 1, -1):
            parts = bare[place : place + size]
            whole = "".join(parts)
            if known[whole] and _is_whole(whole, parts):
                found.append(whole)
                place += size
                break
        else:
            found.append(bare[place])
            place += 1
    return found


def _is_whole(whole: str, parts: Sequence[str]) -> bool:
    if whole.isdecimal():
        return len(whole) >= 7
    if whole.isalpha():
        return len(whole) >= 6
    return len(whole) >= 4 or (len(parts) == 2 and parts[0].isdecimal() and parts[1].isalpha())


def _bare(word: str, known: Counter[str]) -> str:
    """Return a code without its marks, where the catalogue has it so: 010-10823 is 01010823."""
    if word.isalnum() or DECIMAL.fullmatch(word):
        return word
    bare = re.sub(r"\W", "", word)
    return bare if len(bare) >= CODE and known[bare] else word


def _counted(words: Iterable[str]) -> tuple[str, ...]:
    """Return different words; a number as often as it is there."""
    different: dict[str, None] = {}
    for word in words:
        times = sum(other.rstrip("*") == word for other in different) if word[0].isdigit() else 0
        different[word + "*" * times] = None
    return tuple(different)


def _contrasts(titles: Collection[frozenset[str]]) -> frozenset[str]:
    """Return the words that alone tell titles apart which nobody lists without them; codes do not count.

    A set of words is the sum of their random numbers, so that a hundred thousand titles take little memory.

    >>> mugs = [{"oak", "mug", "red"}, {"oak", "mug", "blue"}, {"tin", "cup", "red"}, {"tin", "cup", "blue"}]
    >>> sorted(_contrasts([frozenset(words) for words in mugs]))
    ['blue', 'red']
    """
    named = [words for words in {frozenset(word for word in words if not is_code(word)) for words in titles} if words]
    if not named:
        return frozenset()
    numbers = {word: number for number, word in enumerate(sorted(frozenset.union(*named)))}
    chances = np.random.default_rng(54).integers(0, 2**63, len(numbers), dtype=np.uint64)
    flat = np.array([numbers[word] for words in named for word in words])
    sizes = np.array([len(words) for words in named])
    sums = np.add.reduceat(chances[flat], np.cumsum(sizes) - sizes)
    rests = np.repeat(sums, sizes) - chances[flat]  # of each word, the sum of the others
    _, where, shared = np.unique(rests, return_inverse=True, return_counts=True)
    told = (shared[where] > 1) & (np.repeat(sizes, sizes) > 1) & ~np.isin(rests, sums)
    counts = np.bincount(flat[told], minlength=len(numbers))
    least = np.maximum(TOLD_APART, TOLD_SHARE * np.bincount(flat))
    return frozenset(word for word, number in numbers.items() if counts[number] >= least[number])
