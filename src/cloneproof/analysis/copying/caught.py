"""Which share of copies is recognised by titles: planted, and looked for as all others are.

A copy is an item of a catalogue, listed once more by its owner under a title that is changed in one of seven ways,
which need no knowledge of its language. A word that is added is one of another title, so that the copy is as hard to
tell from a variant as that catalogue's variants are. Of a large catalogue the first MOST_TEXTS are taken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

import numpy as np

from cloneproof.analysis.copying.alike import different_texts

TITLES: Final = 140  # copies at most that are planted under changed titles
MOST_TEXTS: Final = 3_000  # of a catalogue among which they are looked for
SEED: Final = 54
Change = Callable[[np.random.Generator, list[str], list[str]], list[str]]


@dataclass(frozen=True)
class CaughtShare:
    """Share of planted copies that are recognised as the item they copy, with a 95 % interval (Clopper and Pearson)."""

    share: float
    low: float
    high: float
    planted: int

    @property
    def words(self) -> str:
        """A sentence."""
        return (
            f"Of {self.planted} copies planted under changed titles the matcher catches {self.share:.0%} "
            f"({self.low:.0%} to {self.high:.0%})."
        )


def _without_a_letter(dice: np.random.Generator, words: list[str], _: list[str]) -> list[str]:
    place = max(range(len(words)), key=lambda k: len(words[k]))
    at = int(dice.integers(1, max(2, len(words[place]) - 1)))
    return [*words[:place], words[place][:at] + words[place][at + 1 :], *words[place + 1 :]]


CHANGES: Final[tuple[Change, ...]] = (
    lambda dice, words, others: [words[k] for k in dice.permutation(len(words))],
    lambda dice, words, others: [word.upper() for word in words],
    lambda dice, words, others: [*words, f"#{dice.integers(2, 9)}"],
    lambda dice, words, others: [*words, str(dice.integers(2020, 2027))],
    lambda dice, words, others: [*words, str(dice.choice(others))],
    lambda dice, words, others: [str(dice.choice(others)), *words],
    _without_a_letter,
)


def caught_share(texts: Mapping[int, str], owners: Sequence[str]) -> CaughtShare | None:
    """Plant copies of texts, by their numbers, each by its own owner; None where there are fewer than two texts.

    >>> titles = {k: f"{one} {two} lamp" for k, (one, two) in enumerate(zip("abcdefgh", "stuvwxyz"))}
    >>> found = caught_share({k: title.replace(" ", "stone ") for k, title in titles.items()}, ["ana"] * 8)
    >>> found.planted, found.low < found.share < found.high
    (14, True)
    """
    from scipy.stats import binomtest  # slow to import

    texts = dict(islice(texts.items(), MOST_TEXTS))
    numbers = [number for number, text in texts.items() if len(text.split()) > 1]
    if len(numbers) < 2:
        return None
    dice = np.random.default_rng(SEED)
    count = min(TITLES, max(len(CHANGES), 2 * len(numbers) // len(CHANGES) * len(CHANGES)))
    planted = dict(texts)
    first, agents = len(owners), list(owners)
    copied = [numbers[k] for k in dice.integers(0, len(numbers), count)]
    for k, number in enumerate(copied):
        other = texts[numbers[int(dice.integers(len(numbers)))]]
        words = CHANGES[k % len(CHANGES)](dice, texts[number].split(), other.split())
        planted[first + k] = " ".join(words)
        agents.append(owners[number])
    pairs = {
        (min(one, other), max(one, other))
        for one, other, link in different_texts(planted, agents).pairs(planted)
        if link.same
    }
    caught = sum((number, first + k) in pairs for k, number in enumerate(copied))
    low, high = binomtest(caught, count).proportion_ci()
    return CaughtShare(caught / count, float(low), float(high), count)
