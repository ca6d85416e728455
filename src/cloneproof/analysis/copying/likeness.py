"""Which arms look alike by what is known of them besides rewards: texts and vectors.

Texts are alike where they are equal, or nearly: RapidFuzz's token-sort ratio of at least NEAR_TEXT of their lower-case
words. Vectors are alike where their cosine is at least NEAR_VECTOR. Candidates are found by blocks, not by trying all
pairs: equal texts, and texts that share two of their MinHash values or a rare word; vectors, by products of slices. A
text that more than MOST_IN_BLOCK arms share says nothing of any two of them.

Nothing here looks at a reward. That is what lets likeness choose weights without harming the guarantee.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import numpy as np

from cloneproof.analysis.copying.records import ArmRecord
from cloneproof.errors import CloneproofError

NEAR_TEXT: Final = 85.0  # of 100
NEAR_VECTOR: Final = 0.98
MOST_IN_BLOCK: Final = 200  # arms that share a word: more, and it says nothing
_HASHES: Final = 24
_BAND: Final = 2
_SLICE: Final = 1000

Links = dict[tuple[int, int], str]


def alike(records: Sequence[ArmRecord], same: Sequence[str]) -> Links:
    """The pairs of arms that are alike in one of the features or more, each with the reason in words.

    >>> shoes = {"title": "Red shoes, 50 % off!"}, {"title": "red shoes 50% off"}, {"title": "Blue hats"}
    >>> alike([ArmRecord("ana", f"{k}", 1, 0.0, 0.0, one) for k, one in enumerate(shoes)], ["title"])
    {(0, 1): 'title nearly equal (100 of 100)'}
    """
    reasons: dict[tuple[int, int], list[str]] = defaultdict(list)
    for name in same:
        values = {number: record.features[name] for number, record in enumerate(records) if name in record.features}
        texts = {number: value for number, value in values.items() if isinstance(value, str)}
        vectors = {number: value for number, value in values.items() if not isinstance(value, str)}
        for pair, words in {**_texts_alike(texts), **_vectors_alike(vectors)}.items():
            reasons[pair].append(f"{name} {words}")
    return {pair: "; ".join(words) for pair, words in sorted(reasons.items())}


def _texts_alike(texts: Mapping[int, str]) -> Links:
    links: Links = {}
    plain = {number: " ".join(_words(text)) for number, text in texts.items()}
    kept = {number: text for number, text in plain.items() if text}
    if len(kept) < 2:
        return links
    fuzz = _rapidfuzz()
    by_text: dict[str, list[int]] = defaultdict(list)
    for number, text in kept.items():
        by_text[text].append(number)
    near = {  # over different texts, so that a text that a thousand arms share costs one comparison
        pair: fuzz.token_sort_ratio(*pair, score_cutoff=NEAR_TEXT) for pair in _candidates(list(by_text))
    }
    for numbers in by_text.values():
        for first, second in combinations(numbers if len(numbers) <= MOST_IN_BLOCK else (), 2):
            exact = texts[first] == texts[second]
            links[first, second] = "equal" if exact else "nearly equal (100 of 100)"
    for (one, other), ratio in near.items():
        if ratio >= NEAR_TEXT and len(by_text[one]) * len(by_text[other]) <= MOST_IN_BLOCK**2 // 2:
            for first in by_text[one]:
                for second in by_text[other]:
                    links[min(first, second), max(first, second)] = f"nearly equal ({ratio:.0f} of 100)"
    return links


def _candidates(texts: Sequence[str]) -> set[tuple[str, str]]:
    """Pairs of texts that share a word that is not common, or a band of MinHash values of their letter triples."""
    blocks: dict[object, list[str]] = defaultdict(list)
    for text in texts:
        for word in set(text.split()):
            blocks[word].append(text)
        triples = np.array([zlib.crc32(f" {text} "[k : k + 3].encode()) for k in range(len(text))], dtype=np.uint64)
        hashed = (triples[:, None] * _FACTORS + _SHIFTS) & np.uint64(0xFFFFFFFF)
        least = hashed.min(axis=0)
        for band in range(0, _HASHES, _BAND):
            blocks[band, tuple(least[band : band + _BAND].tolist())].append(text)
    return {
        pair for block in blocks.values() if len(block) <= MOST_IN_BLOCK for pair in combinations(sorted(set(block)), 2)
    }


_DICE = np.random.default_rng(20)
_FACTORS = _DICE.integers(1, 2**31, _HASHES, dtype=np.uint64) | np.uint64(1)
_SHIFTS = _DICE.integers(0, 2**31, _HASHES, dtype=np.uint64)


def _vectors_alike(vectors: Mapping[int, Iterable[float]]) -> Links:
    links: Links = {}
    by_length: dict[int, list[int]] = defaultdict(list)
    arrays = {number: np.asarray(tuple(value), dtype=float) for number, value in vectors.items()}
    for number, array in arrays.items():
        if np.isfinite(array).all() and np.linalg.norm(array) > 0:
            by_length[len(array)].append(number)
    for numbers in by_length.values():
        table = np.stack([arrays[number] / np.linalg.norm(arrays[number]) for number in numbers])
        for start in range(0, len(table), _SLICE):
            cosines = table[start : start + _SLICE] @ table.T
            for row, column in zip(*np.nonzero(cosines >= NEAR_VECTOR), strict=True):
                first, second = numbers[start + row], numbers[column]
                if first < second:
                    links[first, second] = f"vectors alike (cosine {cosines[row, column]:.3f})"
    return links


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def _rapidfuzz() -> Any:  # noqa: ANN401 (a module)
    try:
        from rapidfuzz import fuzz
    except ImportError:
        raise CloneproofError(
            "expected the package rapidfuzz to compare texts, got none installed; pip install 'cloneproof[log]'"
        ) from None
    return fuzz
