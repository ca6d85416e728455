"""Which arms look alike by texts and vectors, without rewards.

Texts are alike if they are equal, or name one item, or are nearly so (`matching`): a score of at least NEAR_TEXT. Only
the last are variants. Codes are equal or not alike. Vectors are alike if their cosine is at least NEAR_VECTOR.

A text or a vector that few agents share is better evidence. A pair's *rarity* is 1 if nobody else has it, and falls as
1/(n m) with the numbers n and m of other agents that have something like the one and the other. What more than
MOST_SHARING agents share is not linked, so that the number of links grows with the arms.

Likeness never depends on rewards, so it may choose weights without harming the guarantee.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Final, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof._clock import remembered
from cloneproof._groups import joined
from cloneproof.analysis.copying.catalogue import read_words
from cloneproof.analysis.copying.matching import TEXTS, THRESHOLD, Matcher, TitleLink
from cloneproof.analysis.copying.records import ArmRecord, Duplicates

NEAR_TEXT: Final = 0.8  # score from which on texts are nearly equal
NEAR_VECTOR: Final = 0.98  # cosine from which on vectors are alike
MOST_SHARING: Final = 25  # agents beyond which a shared text or vector is no evidence
_MOST_OWN, _MOST_OTHERS = 20, 100  # links of a vector to vectors of its own agent, and of others
_SLICE: Final = 1000  # vectors compared with all others at once


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


class Texts(NamedTuple):
    """Different texts, up to case and marks: which arms of each agent have each, and how they are written."""

    written: tuple[str, ...]
    owned: list[dict[str, list[int]]]
    threshold: float = THRESHOLD

    def links(self) -> tuple[TitleLink, ...]:
        """Return which of them name one item or are near."""
        return _linked(self.written, tuple(tuple(own) for own in self.owned), self.threshold)

    def pairs(self, texts: Mapping[int, str]) -> Iterator[tuple[int, int, TitleLink]]:
        """Yield the arms whose texts are equal, and then those linked: chains of one agent's, one to one of two."""
        for text, own in enumerate(self.owned):
            chains = [pair for arms in own.values() for pair in pairwise(arms)]
            both = combinations(own.values(), 2) if len(own) <= MOST_SHARING else pairwise(own.values())
            across = [pair for a, b in both for pair in zip(a, b, strict=False)]
            for first, second in chains + across:
                exact = texts[first] == texts[second]
                yield (
                    first,
                    second,
                    TitleLink(text, text, 1.0, True, "equal" if exact else "equal but for case and marks"),
                )
        for link in self.links():
            for agent, arms in self.owned[link.one].items():
                for its, others in self.owned[link.other].items():
                    for first, second in [(arms[0], others[0])] if agent == its else zip(arms, others, strict=False):
                        yield first, second, link


def different_texts(texts: Mapping[int, str], agents: Sequence[str], threshold: float = THRESHOLD) -> Texts:
    """Collect the texts of arms, by their numbers.

    >>> found = different_texts({0: "Oak tray", 1: "OAK TRAY!", 2: "Oak bench"}, ["ana", "bo", "bo"])
    >>> found.written, found.owned[0]
    (('Oak tray', 'Oak bench'), {'ana': [0], 'bo': [1]})
    """
    owned: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    written: dict[str, str] = {}
    for number, text in texts.items():
        plain = " ".join(read_words(text))
        if plain:
            owned[plain][agents[number]].append(number)
            written.setdefault(plain, text)
    return Texts(tuple(written.values()), [dict(owned[plain]) for plain in written], threshold)


@remembered(4, TEXTS)  # the texts of a feature are listed first and compared again where rewards are judged
def _linked(texts: tuple[str, ...], owners: tuple[tuple[str, ...], ...], threshold: float) -> tuple[TitleLink, ...]:
    return tuple(Matcher(texts, owners, threshold).links()) if len(texts) > 1 else ()


def _texts_alike(texts: Mapping[int, str], agents: Sequence[str]) -> Links:
    links: Links = {}
    different = different_texts(texts, agents)
    sharers = [set(own) for own in different.owned]
    for link in different.links():
        if link.same or link.score >= NEAR_TEXT:
            sharers[link.one].update(different.owned[link.other])
            sharers[link.other].update(different.owned[link.one])
    for first, second, (one, other, score, same, reason) in different.pairs(texts):
        shared = len(sharers[one]), len(sharers[other])
        if max(shared) <= MOST_SHARING and (same or score >= NEAR_TEXT):
            words = reason if one == other else f"the same ({reason})" if same else f"near ({score:.2f}: {reason})"
            pair = min(first, second), max(first, second)
            links[pair] = Likeness(words, _rarity((agents[first], agents[second]), shared), same)
    return links


def duplicates(records: Sequence[ArmRecord], same: Sequence[str], near: bool = True) -> tuple[Duplicates, ...]:
    """Return the arms whose texts are equal, or (near) name one item, under each name, also across agents.

    Names of arms count if they are equal up to case, marks and the word "copy".

    >>> titles = ["Organic mug, size L", "Organic mug, size L", "NEW: organic mug size L", "Organic mug, size M"]
    >>> mugs = [ArmRecord("ana", f"ad {k}", 1, 0.0, 0.0, {"title": title}) for k, title in enumerate(titles)]
    >>> [(found.equal, len(found.arms)) for found in duplicates(mugs, ["title"])]
    [(True, 2), (False, 3)]
    """
    agents, listed = [record.agent for record in records], []
    for name in [*same, "arm"]:
        values = {k: record.features.get(name) if name != "arm" else record.arm for k, record in enumerate(records)}
        texts = {k: text for k, text in values.items() if isinstance(text, str)}
        if name == "arm":
            texts = {k: " ".join(word for word in read_words(text) if word != "copy") for k, text in texts.items()}
        different = different_texts(texts, agents)
        arms = [sorted(arm for own in owned.values() for arm in own) for owned in different.owned]
        groups = [(True, own) for own in arms if len(own) > 1]
        if near and name != "arm":
            pairs = [(link.one, link.other) for link in different.links() if link.same]
            groups += [
                (False, [arm for one in joint for arm in arms[one]])
                for joint in joined(len(arms), pairs)
                if len(joint) > 1
            ]
        for equal, own in groups:
            text = str(values[own[0]])
            listed.append(Duplicates(name, equal, text, tuple((records[arm].agent, records[arm].arm) for arm in own)))
    return tuple(sorted(listed, key=lambda one: (not one.equal, len(one.agents) > MOST_SHARING, -len(one.arms))))


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
