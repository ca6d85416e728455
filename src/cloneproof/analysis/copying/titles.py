"""When two titles name one item, as a person would say.

What sellers add and take away does not count: advertising in several languages, marks, emoji, articles, numbering, the
order of words. A year counts only where both titles have one ("King Kong (1933)" and "(1976)" are two films, "Touch
Lamp 2025" is a "Touch Lamp"). Other numbers, sizes and colours make variants. "1.5" is one number, as "1/2", "v2.2" and
a date are; each counts as often as it is there, and two that change places say something else. Of the words that are
left, one title must have all of the other's, up to a misspelt or shortened one, and what it has besides must weigh
little, where a word weighs less the more titles have it. Short codes are no titles.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

ADVERTISING: Final = frozenset(re.findall(r"\w+", """
    new neu neuf neue nouveau nouvelle nuevo nueva nuovo nuova nieuw novo nova nowy sale soldes ausverkauf rebajas
    saldi hot top best bestseller seller offer angebot offre oferta offerta promo promotion aktion deal deals
    discount rabatt descuento sconto remise korting price preis prix precio prezzo cheap billig gunstig barato free
    gratis gratuit gratuite gratuita gratuito kostenlos kostenloser shipping versand livraison envio spedizione
    verzending frete delivery lieferung original authentic genuine echt orig official quality qualitat qualite
    calidad premium limited edition stock only nur heute today now jetzt buy kaufen fast schnell rapide rapido 24h
    off copy kopie copie copia again relist relisted restock exclusive exklusiv special must have wow look great
    super
"""))  # fmt: skip
LINKING: Final = frozenset(re.findall(r"\w+", """
    a an the of for and with by in on to at from w der die das den dem ein eine und fur mit von im am le la les un
    une et de du des pour avec el los las una y para con il lo gli i e per di da het een en voor met van
"""))  # fmt: skip
VARIANT: Final = frozenset(re.findall(r"\w+", """
    size xs s m l xl xxl xxxl small medium large mini grosse taille talla black white red blue green yellow grey
    gray pink purple orange brown beige gold silver navy schwarz weiss rot blau grun gelb grau noir blanc rouge bleu
    vert negro blanco rojo azul verde left right men women mens womens kids boys girls
"""))  # fmt: skip
NUMBERED: Final = re.compile(
    r"(#\s*|\bn[or]\.?\s*)\d{1,2}\b(?![.,]\d)|[\[(]\s*\d{1,2}\s*[\])]|^\s*\d{1,2}\s*[.):](?!\d)|(?<![\d.,])\d{1,3}\s*%"
)
WORD: Final = re.compile(r"(?<!\w)\.\d[^\W_]*|[^\W_]+(?:(?<=\d)[.,:/\u2044\u2013-](?=\d)[^\W_]+)*")  # a number is whole
APOSTROPHES: Final = "'\u2019"
MARKS: Final = str.maketrans({",": ".", "\u2044": "/", "\u2013": "-"})
ROMAN: Final = {"ii": "2", "iii": "3", "iv": "4"}
YEAR: Final = re.compile(r"(19|20)\d\d")
MOST_NUMBERED: Final = 20  # a number up to which it may be a numbering, where the other title has none
SHARED: Final = 0.8  # of the weight of the longer title's words, that the shorter one must have
LONG: Final = 6  # letters of a word that is a title by itself
SHORTEST: Final = 4  # letters of a word that may be misspelt
SUBSTITUTED: Final = 8  # letters of a word in which one may be wrong: shirts and skirts differ


class Title(NamedTuple):
    """A title taken apart: years, other numbers, words of variants, and the words that name it.

    places  of the numbers, in the order of the title: how many of the words stand before each
    """

    years: frozenset[str]
    numbers: tuple[str, ...]
    places: tuple[int, ...]
    variants: frozenset[str]
    words: tuple[str, ...]

    @property
    def compound(self) -> str:
        """Words in one: a tea pot is a teapot."""
        return "".join(self.words)

    @property
    def is_code(self) -> bool:
        """Whether no word has three letters: a code, which is equal to another or not."""
        return not any(len(word) >= 3 and word.isalpha() for word in (*self.words, *self.variants))


def title_of(text: str) -> Title:
    """Take a title apart.

    >>> title = title_of("NEW! Touch Lamp, large (2025), 1,5 m - Free Shipping")
    >>> title.words, title.numbers, sorted(title.years), sorted(title.variants)
    (('touch', 'lamp'), ('1.5',), ['2025'], ['large', 'm'])
    """
    plain = unicodedata.normalize("NFKD", text.casefold())
    plain = (
        "".join(letter for letter in plain if not unicodedata.combining(letter)).replace("'", "").replace("\u2019", "")
    )
    written = [_written(word) for word in WORD.findall(NUMBERED.sub(" ", plain))]
    years = {word for word in written if YEAR.fullmatch(word)}
    numbers = {word for word in written if any(letter.isdigit() for letter in word)} - years - ADVERTISING
    words = [word for word in written if word not in years | numbers]
    variants = {word for word in words if word in VARIANT}
    naming = [word for word in words if word not in ADVERTISING | LINKING | variants]
    naming = naming or [word for word in words if word not in variants]
    placed = [(word, sum(one in naming for one in written[:k])) for k, word in enumerate(written) if word in numbers]
    return Title(
        frozenset(years), tuple(word for word, _ in placed), tuple(place for _, place in placed), frozenset(variants),
        tuple(naming),
    )  # fmt: skip


def _written(word: str) -> str:
    """Return a word as all would write it: II is 2, "1,5" is 1.5, ".5" is 0.5."""
    word = ROMAN.get(word, word).translate(MARKS)
    return f"0{word}" if word[0] == "." else word


def word_weights(titles: Iterable[Title]) -> dict[str, float]:
    """Return ln(1 + n/k) of each word that k of n different titles have."""
    different = {frozenset(title.words) for title in titles}
    counts = Counter(word for words in different for word in words)
    return {word: math.log1p(len(different) / count) for word, count in counts.items()}


def same_title(one: Title, other: Title, weights: Mapping[str, float]) -> bool:
    """Return whether two titles that are not equal name one item.

    >>> names = ["Touch Lamp", "Touch Lamp 2025 NEW", "Touch Lamp size S", "lamp", "Desk lamp", "Tuoch lamp"]
    >>> titles = [title_of(name) for name in names]
    >>> [same_title(titles[0], title, word_weights(titles)) for title in titles[1:]]
    [True, False, False, False, True]
    """
    if one.is_code or other.is_code or one.variants != other.variants:
        return False
    if (one.years and other.years and one.years != other.years) or not _numbers_fit(one, other):
        return False
    if one.compound == other.compound and len(one.compound) >= LONG:
        return True
    common = Counter(one.words) & Counter(other.words)
    left, right = (list((Counter(title.words) - common).elements()) for title in (one, other))
    alike, short = 0.0, 0.0  # weights of words that are misspelt or shortened in one of the titles
    for word in list(left):
        near = next((like for like in right if _misspelt(word, like) or _shortened(word, like)), None)
        if near is not None:
            weight = min(weights[word], weights[near])
            alike, short = alike + weight, short + (0.0 if _misspelt(word, near) else weight)
            left.remove(word)
            right.remove(near)
    shared = max(len(one.words) - len(left), len(other.words) - len(right))
    if (left and right) or shared < 2:
        return not left + right and shared == 1 and len(one.words[0]) >= LONG
    if left + right and len({tuple(word for word in title.words if word in common) for title in (one, other)}) > 1:
        return False  # other words in another order: "Dead Man Walking", "The Walking Dead"
    exact, besides = _weight(common.elements(), weights), _weight(left + right, weights)
    return exact >= short and exact + alike >= SHARED * (exact + alike + besides)


def _weight(words: Iterable[str], weights: Mapping[str, float]) -> float:
    return sum(weights[word] for word in words)


def _numbers_fit(one: Title, other: Title) -> bool:
    """Return whether numbers are equal and none changed places, or one title has a small one more ("Touch Lamp 2")."""
    ours, theirs = Counter(one.numbers), Counter(other.numbers)
    more = [*(ours - theirs).elements(), *(theirs - ours).elements()]
    if more:
        return len(more) == 1 and more[0].isdecimal() and int(more[0]) <= MOST_NUMBERED
    return one.numbers == other.numbers or one.places != other.places


def _misspelt(one: str, other: str) -> bool:
    """Return whether words differ by one slip: a letter too many or too few, or two swapped; in long ones, a wrong one.

    >>> _misspelt("ceramic", "cermic"), _misspelt("shirt", "skirt"), _misspelt("dishwasher", "dishwahser")
    (True, False, True)
    """
    from rapidfuzz.distance import OSA

    if min(len(one), len(other)) < SHORTEST or OSA.distance(one, other, score_cutoff=1) > 1:
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
    return begins or short == short[0] + re.sub("[aeiou]", "", long[1:])
