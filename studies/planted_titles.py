"""Titles of an invented shop platform, and the same items under titles changed in ten ways: how many are recognised.

python studies/planted_titles.py [SEED]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import combinations

import numpy as np

from cloneproof.analysis.copying.alike import duplicates
from cloneproof.analysis.copying.records import ArmRecord

LOOKS = (
    "touch", "solar", "folding", "wooden", "ceramic", "bamboo", "vintage", "electric", "portable", "magnetic",
    "cotton", "leather", "wireless", "outdoor",
)  # fmt: skip
THINGS = (
    "lamp", "bottle", "chair", "keyboard", "backpack", "blanket", "umbrella", "teapot", "mirror", "speaker",
    "wallet", "notebook", "candle", "cushion", "kettle", "charger", "bracelet", "hammock", "projector", "planter",
)  # fmt: skip
USES = (
    "bedroom", "kitchen", "garden", "office", "travel", "camping", "reading", "children", "studio", "balcony",
    "bathroom", "cycling",
)  # fmt: skip
SIZES = ("size S", "size M", "500 ml", "red", "blue", "42")
SUFFIXES = (" - NEW", " (free shipping)", " *best price*", " - Sale!", " | 24h delivery", " ORIGINAL", " limited offer")
PREFIXES = ("NEW! ", "Sale: ", "Hot deal - ", "[TOP] ", "Free delivery: ", "Original ", "Premium ")
FOREIGN = (
    " - NEU",
    " (livraison gratuite)",
    " - envío gratis",
    " OFERTA",
    " kostenloser Versand",
    " nuovo",
    " gratis verzending",
)
EMOJI = ("\U0001f525", "\u2b50", "\U0001f381", "\u2764\ufe0f", "\u2705")
Change = Callable[[np.random.Generator, str], str]


def _misspelt(dice: np.random.Generator, title: str) -> str:
    """Swap two letters of a word, leave one out, or double one."""
    words = title.split()
    place = int(np.argmax([len(word) for word in words]))
    word, at = words[place], int(dice.integers(1, len(words[place]) - 2))
    slips = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        word[:at] + word[at + 1 :],
        word[: at + 1] + word[at:],
    )
    words[place] = str(dice.choice(slips))
    return " ".join(words)


def _shortened(dice: np.random.Generator, title: str) -> str:
    """Cut the longest word to its first four letters, or take its vowels away."""
    words = title.split()
    place = int(np.argmax([len(word) for word in words]))
    word = words[place]
    bare = word[0] + "".join(letter for letter in word[1:] if letter not in "aeiou")
    words[place] = str(dice.choice([f"{word[:4]}.", bare]))
    return " ".join(words)


def _shuffled(dice: np.random.Generator, title: str) -> str:
    words = title.split()
    return " ".join([*words[1:], words[0]] if dice.random() < 0.5 else words[::-1])


CHANGES: dict[str, Change] = {
    "suffix": lambda dice, title: title + str(dice.choice(SUFFIXES)),
    "prefix": lambda dice, title: str(dice.choice(PREFIXES)) + title,
    "year": lambda dice, title: f"{title} {dice.choice([2023, 2024, 2025])}",
    "emoji": lambda dice, title: f"{dice.choice(EMOJI)} {title} {dice.choice(EMOJI)}",
    "reordered": _shuffled,
    "typo": _misspelt,
    "translated filler": lambda dice, title: title + str(dice.choice(FOREIGN)),
    "numbering": lambda dice, title: f"{title} {dice.choice(['#2', '(3)', '2', 'No. 4', 'II'])}",
    "abbreviation": _shortened,
    "other case": lambda dice, title: title.upper() if dice.random() < 0.5 else title.title(),
}


def honest_titles(dice: np.random.Generator, number: int) -> list[str]:
    """Draw different items: two to four words, a quarter of them variants of another that differ in size or colour."""
    found: dict[str, None] = {}
    while len(found) < number:
        words = [dice.choice(LOOKS), dice.choice(THINGS)]
        if dice.random() < 0.7:
            words += ["for", dice.choice(USES)]
        if dice.random() < 0.5:
            words.insert(0, dice.choice(LOOKS))
        title = " ".join(dict.fromkeys(map(str, words)))
        sizes = [f" {size}" for size in dice.permutation(SIZES)[:2]] if dice.random() < 0.25 else [""]
        found.update(dict.fromkeys(f"{title}{size}" for size in sizes))
    return list(found)[:number]


def recognised(kind: str, seed: int, items: int = 200, copied: int = 40) -> tuple[int, int, int]:
    """Return how many of the planted copies are grouped with their originals, wrong pairs in groups, and right ones."""
    dice = np.random.default_rng([seed, list(CHANGES).index(kind)])
    titles = honest_titles(dice, items)
    listed = [(k, title) for k, title in enumerate(titles)]
    listed += [(k, CHANGES[kind](dice, titles[k])) for k in range(copied)]
    records = [
        ArmRecord(f"seller {(item if number < items else dice.integers(50)) % 50}", f"{number}", {"title": title})
        for number, (item, title) in enumerate(listed)
    ]
    pairs = {
        tuple(sorted((int(one), int(other))))
        for group in duplicates(records, ["title"]) if group.feature == "title"
        for (_, one), (_, other) in combinations(group.arms, 2)
    }  # fmt: skip
    right = {pair for pair in pairs if listed[pair[0]][0] == listed[pair[1]][0]}
    return sum((k, items + k) in pairs for k in range(copied)), len(pairs - right), len(right)


if __name__ == "__main__":
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    for name in CHANGES:
        tries = [recognised(name, first + seed) for seed in range(5)]
        hit, wrong, right = (sum(column) for column in zip(*tries, strict=True))
        print(f"{name:18} recall {hit / 200:.3f}  precision {right / (right + wrong):.3f}  wrong pairs {wrong}")
