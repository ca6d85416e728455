"""Which arms look alike by their texts, without rewards.

Texts are alike if they are equal, or name one item (`matching`). Codes are equal or not alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Final, NamedTuple

from cloneproof._clock import remembered
from cloneproof._groups import joined
from cloneproof.analysis.copying.catalogue import read_words
from cloneproof.analysis.copying.matching import TEXTS, THRESHOLD, Matcher, TitleLink
from cloneproof.analysis.copying.records import ArmRecord, Duplicates

MOST_SHARING: Final = 25  # agents beyond which a shared text is no evidence


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


@remembered(4, TEXTS)  # the texts of a feature are listed first and compared again for second accounts
def _linked(texts: tuple[str, ...], owners: tuple[tuple[str, ...], ...], threshold: float) -> tuple[TitleLink, ...]:
    return tuple(Matcher(texts, owners, threshold).links()) if len(texts) > 1 else ()


def duplicates(records: Sequence[ArmRecord], same: Sequence[str], near: bool = True) -> tuple[Duplicates, ...]:
    """Return the arms whose texts are equal, or (near) name one item, under each name, also across agents.

    Names of arms count if they are equal up to case, marks and the word "copy".

    >>> titles = ["Organic mug, size L", "Organic mug, size L", "NEW: organic mug size L", "Organic mug, size M"]
    >>> mugs = [ArmRecord("ana", f"ad {k}", {"title": title}) for k, title in enumerate(titles)]
    >>> [(found.equal, len(found.arms)) for found in duplicates(mugs, ["title"])]
    [(True, 2), (False, 3)]
    """
    agents, listed = [record.agent for record in records], []
    for name in [*same, "arm"]:
        values = {k: record.features.get(name) if name != "arm" else record.arm for k, record in enumerate(records)}
        texts = {k: text for k, text in values.items() if text is not None}
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
