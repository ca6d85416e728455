"""How titles are matched: an honest catalogue of series, sizes, colours and decimals, and speed; real ones where given.

python studies/title_catalogues.py [LISTINGS.csv PAIRS.csv ..]   columns shop, listing, title; and listing, same_as
"""

from __future__ import annotations

import csv
import resource
import sys
import time

import numpy as np

import cloneproof as cp

MAKERS = ("Norvik", "Halden", "Ostra", "Pello", "Quarn", "Rillo", "Sabine", "Tovar", "Umbra", "Veldt", "Wexo", "Zanto")
THINGS = (
    "desk lamp", "water bottle", "folding chair", "mechanical keyboard", "hiking backpack", "wool blanket", "teapot",
    "wall mirror", "bookshelf speaker", "leather wallet", "notebook", "scented candle", "usb cable", "garden hose",
    "running shoe", "football boot", "phone case", "picture frame", "paint brush", "board game",
)  # fmt: skip
COLOURS = ("red", "blue", "green", "black", "white", "grey", "navy", "teal")
SIZES = (
    "size S",
    "size M",
    "size L",
    "size XL",
    "250 ml",
    "500 ml",
    "1 l",
    "1.5 m",
    "2 m",
    "5 m",
    "10 x 10",
    "10 x 15",
)


def honest_catalogue(dice: np.random.Generator, number: int) -> list[str]:
    """Draw different items: lines of a maker, each in several colours, sizes, versions, numbers or models."""
    found: dict[str, None] = {}
    while len(found) < number:
        line = "".join(dice.choice(list("bdfklmnprstv")) + dice.choice(list("aeiou")) for _ in range(3)).title()
        title = f"{dice.choice(MAKERS)} {line} {dice.choice(THINGS)}"
        several = int(dice.integers(3, 7))
        kinds = (
            [f"{title} {colour}" for colour in dice.permutation(COLOURS)[:several]],
            [f"{title} {size}" for size in dice.permutation(SIZES)[:several]],
            [f"{title} {k}" for k in range(1, several + 1)],
            [f"{title} vol. {k}" for k in range(1, several + 1)],
            [f"{title} {k}.2 FG" for k in range(1, several + 1)],
            [f"{title} - {line[:2].upper()}{int(dice.integers(100, 999))}{k}" for k in range(several)],
            [f"{colour} {title}, {size}" for colour in COLOURS[:2] for size in SIZES[:2]],
        )
        found.update(dict.fromkeys(kinds[int(dice.integers(len(kinds)))]))
    return list(found)[:number]


def large_catalogue(dice: np.random.Generator, number: int) -> list[str]:
    """Draw titles of six words of 20,000, some far more frequent than others, and a code each."""
    words = np.array(["".join(dice.choice(list("abcdefghijklmnoprstuvw"), 6)) for _ in range(20_000)])
    chances = 1 / np.arange(1, len(words) + 1)
    drawn = dice.choice(words, (number, 6), p=chances / chances.sum())
    return [f"{' '.join(row)} {row[0][:3].upper()}{k % (number // 2):05d}" for k, row in enumerate(drawn)]


def _matched(titles: list[str], shops: list[str]) -> tuple[cp.results.SameItems, float]:
    start = time.process_time()
    found = cp.same_items({"title": titles, "shop": shops}, owner="shop")
    return found, time.process_time() - start


def _real(listings: str, pairs: str) -> None:
    with open(listings, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with open(pairs, encoding="utf-8") as file:
        true = {frozenset((row["listing"], row["same_as"])) for row in csv.DictReader(file)}
    found, seconds = _matched([row["title"] for row in rows], [row["shop"] for row in rows])
    across = [link for link in found.links if rows[link.one]["shop"] != rows[link.other]["shop"]]
    hits = [frozenset((rows[link.one]["listing"], rows[link.other]["listing"])) in true for link in across]
    print(f"{listings}: precision {np.mean(hits):.3f}, recall {sum(hits) / len(true):.3f}, {seconds:.1f} s of CPU")
    for shop in dict.fromkeys(row["shop"] for row in rows):
        own = [row["title"] for row in rows if row["shop"] == shop]
        links = [link for link in _matched(own, [shop] * len(own))[0].links if own[link.one] != own[link.other]]
        print(f"  {shop} against itself: {len(links)} links of {len(own)} titles")
    for right in (True, False):
        for link in [link for link, hit in zip(across, hits, strict=True) if hit is right][
            :: max(1, len(across) // 60)
        ][:10]:
            print(f"  {'right' if right else 'wrong'}: {rows[link.one]['title']} | {rows[link.other]['title']}")
            print(f"         {link.share:.3f}, {link.why}")


if __name__ == "__main__":
    for shops in (1, 2, 50):
        titles = honest_catalogue(np.random.default_rng(54), 5_000)
        found, seconds = _matched(titles, [f"shop {k * shops // len(titles)}" for k in range(len(titles))])
        print(f"honest, 5,000 titles of {shops} shops: {len(found.links)} wrong links, {seconds:.1f} s of CPU")
    for number in (10_000, 100_000):
        titles = large_catalogue(np.random.default_rng(number), number)
        found, seconds = _matched(titles, [f"shop {k % 100}" for k in range(number)])
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{number:,} titles: {seconds:.1f} s of CPU, {memory:.2f} GiB at most, {len(found.links)} links")
    for listings, pairs in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
        _real(listings, pairs)
