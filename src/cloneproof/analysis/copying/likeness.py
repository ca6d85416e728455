"""Which arms look alike by texts and vectors, without rewards.

Texts are alike if they are equal, name one item (`titles`), or are nearly equal: a RapidFuzz token-sort ratio of at
least NEAR_TEXT of their lower-case words. Only the last are variants. Codes are equal or not alike. Vectors are alike
if their cosine is at least NEAR_VECTOR. Candidate pairs are found by blocks: equal texts, texts that share a rare word,
what names them, or two MinHash values, and products of slices for vectors.

A text or a vector that few agents share is better evidence. A pair's *rarity* is 1 if nobody else has it, and falls as
1/(n m) with the numbers n and m of other agents that have something like the one and the other. What more than
MOST_SHARING agents share is not linked, so that the number of links grows with the arms.

Likeness never depends on rewards, so it may choose weights without harming the guarantee.
"""

from __future__ import annotations

import re
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.analysis.copying.judging import joined
from cloneproof.analysis.copying.records import ArmRecord, Duplicates
from cloneproof.analysis.copying.titles import Title, same_title, title_of, word_weights
from cloneproof.errors import CloneproofError

NEAR_TEXT: Final = 85.0  # similarity in percent from which on texts are nearly equal
WORTH_COMPARING: Final = 60.0  # token-set ratio of naming words from which on titles are compared
NEAR_VECTOR: Final = 0.98  # cosine from which on vectors are alike
MOST_SHARING: Final = 25  # agents beyond which a shared text or vector is no evidence
MOST_IN_BLOCK: Final = 200  # texts beyond which a shared word makes no candidates
_MOST_OWN, _MOST_OTHERS = 20, 100  # links of a vector to vectors of its own agent, and of others
_HASHES: Final = 24  # MinHash values of a text
_BAND: Final = 2  # MinHash values that candidates share
_SLICE: Final = 1000  # vectors compared with all others at once
_DICE: Final = np.random.default_rng(20)
_FACTORS: Final = _DICE.integers(1, 2**31, _HASHES, dtype=np.uint64) | np.uint64(1)
_SHIFTS: Final = _DICE.integers(0, 2**31, _HASHES, dtype=np.uint64)


class Likeness(NamedTuple):
    """Likeness of two arms, in words, and its rarity, from 0 (all share it) to 1.

    same   whether texts name one item; "mug size S" and "mug size M" are variants
    """

    words: str
    rarity: float
    same: bool = False


Links = dict[tuple[int, int], Likeness]


def alike(records: Sequence[ArmRecord], same: Sequence[str]) -> Links:
    """Return the pairs of arms that are alike in at least one feature, with the rarity of the rarest.

    Links enough pairs to join similar arms of one agent, and one to each for arms of two agents.
    """
    agents = [record.agent for record in records]
    ways_by_pair: dict[tuple[int, int], list[Likeness]] = defaultdict(list)
    for name in same:
        values = {number: record.features[name] for number, record in enumerate(records) if name in record.features}
        texts = {number: value for number, value in values.items() if isinstance(value, str)}
        vectors = {number: value for number, value in values.items() if not isinstance(value, str)}
        for pair, one in {**_texts_alike(texts, agents), **_vectors_alike(vectors, agents)}.items():
            ways_by_pair[pair].append(one._replace(words=f"{name} {one.words}"))
    return {
        pair: Likeness(
            "; ".join(one.words for one in ways), max(one.rarity for one in ways), any(one.same for one in ways)
        )
        for pair, ways in sorted(ways_by_pair.items())
    }


def _rarity(agents: tuple[str, str], sharing: tuple[int, int]) -> float:
    """Return the rarity, from the numbers of agents that share what each of two arms has, their own included.

    >>> _rarity(("ana", "bo"), (2, 2)), _rarity(("ana", "bo"), (5, 5)), _rarity(("ana", "ana"), (2, 1))
    (1.0, 0.0625, 0.5)
    """
    besides = int(agents[0] != agents[1])
    return 1.0 / ((sharing[0] - besides) * (sharing[1] - besides))


def _texts_alike(texts: Mapping[int, str], agents: Sequence[str]) -> Links:
    links: Links = {}
    owned: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))  # text, agent, arms
    written: dict[str, str] = {}
    for number, text in texts.items():
        plain = " ".join(_words(text))
        if plain:
            owned[plain][agents[number]].append(number)
            written.setdefault(plain, text)
    if not owned or sum(len(arms) for one in owned.values() for arms in one.values()) < 2:
        return links
    names = tuple(written)  # different texts, so that one that a thousand arms share is compared once
    compared = _near_texts(tuple(written.values()))
    near = {(names[one], names[other]): likeness for (one, other), likeness in compared.items()}
    sharers = {text: set(own) for text, own in owned.items()}
    for one, other in near:
        sharers[one].update(owned[other])
        sharers[other].update(owned[one])

    def link(first: int, second: int, one: str, other: str, words: str, same: bool = True) -> None:
        rarity = _rarity((agents[first], agents[second]), (len(sharers[one]), len(sharers[other])))
        links[min(first, second), max(first, second)] = Likeness(words, rarity, same)

    for text, own in owned.items():
        if len(sharers[text]) <= MOST_SHARING:
            chains = [pair for arms in own.values() for pair in pairwise(arms)]
            across = [pair for a, b in combinations(own.values(), 2) for pair in zip(a, b, strict=False)]
            for first, second in chains + across:
                exact = texts[first] == texts[second]
                link(first, second, text, text, "equal" if exact else "equal but for case and marks")
    for (one, other), (ratio, same) in near.items():
        if max(len(sharers[one]), len(sharers[other])) <= MOST_SHARING:
            for agent, arms in owned[one].items():
                for its, others in owned[other].items():
                    pairs = [(arms[0], others[0])] if agent == its else list(zip(arms, others, strict=False))
                    for first, second in pairs:
                        words = "the same but for filler, order or spelling" if same else f"near ({ratio:.0f} of 100)"
                        link(first, second, one, other, words, same)
    return links


def duplicates(records: Sequence[ArmRecord], same: Sequence[str]) -> tuple[Duplicates, ...]:
    """Return the arms whose texts are equal, or name one item, under each name, also across agents.

    Names of arms count if they are equal up to case, marks and the word "copy".

    >>> titles = ["Organic mug, size L", "Organic mug, size L", "NEW: organic mug size L", "Organic mug, size M"]
    >>> mugs = [ArmRecord("ana", f"ad {k}", 1, 0.0, 0.0, {"title": title}) for k, title in enumerate(titles)]
    >>> [(found.equal, len(found.arms)) for found in duplicates(mugs, ["title"])]
    [(True, 2), (False, 3)]
    """
    listed = []
    for name in [*same, "arm"]:
        owned: dict[str, list[int]] = defaultdict(list)
        for number, record in enumerate(records):
            text = record.features.get(name) if name != "arm" else record.arm
            plain = _words(text) if isinstance(text, str) else []
            if name == "arm":
                plain = [word for word in plain if word != "copy"]
            if plain:
                owned[" ".join(plain)].append(number)
        groups = [(True, text, arms) for text, arms in owned.items() if len(arms) > 1]
        if name != "arm" and len(owned) > 1:
            texts = list(owned)
            written = tuple(str(records[arms[0]].features[name]) for arms in owned.values())
            for joint in joined(len(texts), [pair for pair, near in _near_texts(written).items() if near.same]):
                if len(joint) > 1:
                    groups.append((False, texts[joint[0]], [arm for one in joint for arm in owned[texts[one]]]))
        for equal, text, arms in groups:
            original = records[arms[0]].features.get(name, records[arms[0]].arm)
            places = tuple((records[arm].agent, records[arm].arm) for arm in arms)
            listed.append(Duplicates(name, equal, original if isinstance(original, str) else text, places))
    return tuple(sorted(listed, key=lambda one: (not one.equal, len(one.agents) > MOST_SHARING, -len(one.arms))))


class NearText(NamedTuple):
    """Likeness of two texts that are not equal: their similarity in percent, and whether they name one item."""

    ratio: float
    same: bool


@lru_cache(maxsize=4)  # the texts of a feature are listed first and compared again where rewards are judged
def _near_texts(texts: tuple[str, ...]) -> dict[tuple[int, int], NearText]:
    """Return the pairs of texts, by their numbers, that name one item, or are nearly equal and no codes."""
    titles = [title_of(text) for text in texts]
    weights = word_weights(titles)
    plain = [" ".join(_words(text)) for text in texts]
    first, second = _candidates(plain, titles, weights)
    naming, ordered = [" ".join(title.words) for title in titles], [" ".join(sorted(text.split())) for text in plain]
    compared, subsets = _rapidfuzz()
    ratios = compared([ordered[k] for k in first], [ordered[k] for k in second], score_cutoff=NEAR_TEXT)
    shared = compared(
        [naming[k] for k in first], [naming[k] for k in second], scorer=subsets, score_cutoff=WORTH_COMPARING
    )
    near = {}
    for k in np.flatnonzero((ratios > 0) | (shared > 0)):
        one, other = titles[first[k]], titles[second[k]]
        same = bool(shared[k] > 0) and same_title(one, other, weights)
        if same or (ratios[k] > 0 and not (one.is_code or other.is_code)):
            near[int(first[k]), int(second[k])] = NearText(float(ratios[k]), same)
    return near


def _candidates(
    texts: Sequence[str], titles: Sequence[Title], weights: Mapping[str, float]
) -> tuple[IntArray, IntArray]:
    """Return pairs of texts that share a word, their two rarest words, all that name them, or a band of MinHash values.

    MinHash values are those of letter triples. Each text is in a bounded number of blocks of bounded size.
    """
    blocks: dict[object, list[int]] = defaultdict(list)
    for number, (text, title) in enumerate(zip(texts, titles, strict=True)):
        named = sorted(set(title.words), key=lambda word: (-weights[word], word))
        for word in set(text.split()):
            blocks[word].append(number)
        blocks[frozenset(named)].append(number)
        blocks["rarest", *named[:2]].append(number)
        blocks["compound", title.compound].append(number)
        triples = np.array([zlib.crc32(f" {text} "[k : k + 3].encode()) for k in range(len(text))], dtype=np.uint64)
        hashed = (triples[:, None] * _FACTORS + _SHIFTS) & np.uint64(0xFFFFFFFF)
        least = hashed.min(axis=0).tolist() if text else []
        for band in range(0, len(least), _BAND):
            blocks[band, *least[band : band + _BAND]].append(number)
    pairs = [np.zeros(0, np.int64)]
    for block in blocks.values():
        if 2 <= len(block) <= MOST_IN_BLOCK:
            one, other = np.triu_indices(len(block), 1)
            members = np.array(block)
            pairs.append(members[one] * len(texts) + members[other])
    codes = np.sort(np.concatenate(pairs))
    codes = codes[np.diff(codes, prepend=-1) > 0]
    return codes // len(texts), codes % len(texts)


def _vectors_alike(vectors: Mapping[int, Iterable[float]], agents: Sequence[str]) -> Links:
    links: Links = {}
    by_length: dict[int, list[int]] = defaultdict(list)
    arrays = {number: np.asarray(tuple(value), dtype=float) for number, value in vectors.items()}
    for number, array in arrays.items():
        if np.isfinite(array).all() and np.linalg.norm(array) > 0:
            by_length[len(array)].append(number)
    for numbers in by_length.values():
        table = np.stack([arrays[number] / np.linalg.norm(arrays[number]) for number in numbers])
        owners = np.unique([agents[number] for number in numbers], return_inverse=True)[1]
        sharing = np.concatenate(
            [[len(set(owners[row])) for row in _near_rows(table, start)] for start in range(0, len(table), _SLICE)]
        )
        for start in range(0, len(table), _SLICE):
            for row, columns in enumerate(_near_rows(table, start), start):
                later = columns[columns > row]
                own = later[owners[later] == owners[row]][:_MOST_OWN]
                others = later[(owners[later] != owners[row]) & (sharing[later] <= MOST_SHARING)][:_MOST_OTHERS]
                for column in [*own, *others] if sharing[row] <= MOST_SHARING else ():
                    pair = numbers[row], numbers[column]
                    rarity = _rarity((agents[pair[0]], agents[pair[1]]), (int(sharing[row]), int(sharing[column])))
                    words = f"vectors alike (cosine {float(table[row] @ table[column]):.3f})"
                    links[pair] = Likeness(words, rarity)
    return links


def _near_rows(table: FloatArray, start: int) -> list[IntArray]:
    """Return, for each row of a slice of unit vectors, the rows near it, itself included."""
    return [np.nonzero(near)[0] for near in table[start : start + _SLICE] @ table.T >= NEAR_VECTOR]


def _words(text: str) -> list[str]:
    """Return the words of a text without case and marks; those of decimals stay, as .5 is not 5."""
    return re.findall(r"(?<!\w)\.\d\w*|\w+(?:(?<=\d)[.,](?=\d)\w+)*", text.casefold())


def _rapidfuzz() -> tuple[Callable[..., FloatArray], Callable[..., float]]:
    """Return the function that computes the ratios of pairs of texts, and the token-set ratio."""
    try:
        from rapidfuzz import fuzz, process
    except ImportError:
        raise CloneproofError(
            "expected the package rapidfuzz to compare texts, got none installed; pip install 'cloneproof[log]'"
        ) from None
    return process.cpdist, fuzz.token_set_ratio
