"""Something to try: a market, a page of three places, a shop's log and a leaderboard; small, and the same every time.

`cloneproof example log clicks.csv` writes one as a file.

>>> import cloneproof as cp
>>> logged = cp.read_log(cp.examples.log(rounds=500), same="title")
>>> len(logged.of("lampking"))
12
"""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from cloneproof._lib.checks import count, known
from cloneproof._lib.files import check_place, write_whole
from cloneproof.market import Agent, Discrete, Market, Point, save_market

LAMPS: Final = (
    "Touch Lamp", "Touch Lamp - NEW", "Touch Lamp 2025", "Touch Lamp (free shipping)", "NEW Touch Lamp", "touch lamp",
    "TOUCH LAMP!", "Lamp, Touch", "Touch Lamp *best price*", "Touch Lamp #2", "Touch Lamp (sale)", "Touch Lamp 2026",
)  # fmt: skip
MUGS: Final = ("Speckled Stone Mug", "Speckled Stone Mug NEW", "Speckled Stone Mug 2025", "Stone Mug, Speckled")
SHOP: Final = (  # seller, titles under which an item is listed, click rate
    ("lampking", LAMPS, 0.048), ("mugshot", MUGS, 0.046), ("teahouse", ("Copper Whistling Kettle",), 0.042),
    ("brewcorner", ("Copper Whistling Kettle - sale",), 0.042), ("oakdesk", ("Walnut Side Table",), 0.036),
    ("papergoods", ("Linen Notebook",), 0.031), ("woolly", ("Merino Throw",), 0.027),
    ("greenroom", ("Hanging Fern Pot",), 0.041), ("bikebarn", ("Saddle Bag",), 0.022),
    ("playroom", ("Wooden Train Set",), 0.039), ("brightside", ("Reading Lamp with Clip",), 0.034),
)  # fmt: skip
MODELS: Final = {  # strength in Elo; a name's first word is its maker
    "aurora-2": 62, "aurora-2-mini": -30, "birch-70b": 55, "birch-70b-v2": 55, "birch-70b-0611": 55,
    "birch-70b-chat": 55, "cobalt-large": 48, "cobalt-small": -60, "dune-xl": 30, "dune-m": -10, "ember-1": 12,
    "ember-0": -85,
}  # fmt: skip
BLOCK: Final = 500  # views between two looks at the statistics


def market() -> Market:
    """Return a small video platform, which pays 40 % of each full view to its creator.

    Half of Ana's clips are hits (.8 of the viewers stay) and half are duds. Bo has one clip that does well enough,
    always. Cy is as unsure as Ana, and a little less gifted.
    """
    ana, cy = (Discrete(rates, [0.5, 0.5]) for rates in ([0.2, 0.8], [0.1, 0.7]))
    return Market([Agent("ana", 2, ana), Agent("bo", 1, Point(0.6)), Agent("cy", 2, cy)], horizon=4000, share=0.4)


def page() -> Market:
    """Return a shop's page of three places: six sellers with three listings each, half of them clicked by 2 %."""
    rates = Discrete([0.02, 0.05, 0.08], [0.5, 0.25, 0.25])
    sellers = [Agent(name, 3, rates) for name in ("ana", "bo", "cy", "di", "eve", "flo")]
    return Market(sellers, horizon=50_000, positions=(1, 0.6, 0.4))


def log(rounds: int = 100_000, seed: int = 0) -> dict[str, list[Any]]:
    """Return the log of a shop that runs Thompson sampling, as columns.

    One seller lists a lamp twelve times, another a mug four times, and a kettle is sold from two accounts.
    """
    listed = [(seller, title, rate) for seller, titles, rate in SHOP for title in titles]
    dice, rates = np.random.default_rng(seed), np.array([rate for *_, rate in listed])
    shown, clicked = np.zeros(len(listed)), np.zeros(len(listed))
    views: list[int] = []
    clicks: list[int] = []
    for begin in range(0, count(rounds, "rounds"), BLOCK):
        size = (min(BLOCK, rounds - begin), len(listed))
        served = dice.beta(1 + clicked, 1 + shown - clicked, size=size).argmax(axis=1)
        came = dice.random(len(served)) < rates[served]
        shown += np.bincount(served, minlength=len(listed))
        clicked += np.bincount(served[came], minlength=len(listed))
        views += served.tolist()
        clicks += came.astype(int).tolist()
    return {
        "seller": [listed[k][0] for k in views], "listing": [f"L{100 + k}" for k in views],
        "title": [listed[k][1] for k in views], "click": clicks,
    }  # fmt: skip


def board(battles: int = 4000, seed: int = 7) -> dict[str, list[Any]]:
    """Return battles between 12 models of five makers, one of whom lists four variants; one in ten is a tie."""
    dice, rows = random.Random(seed), []
    for _ in range(count(battles, "battles")):
        left, right = dice.sample(list(MODELS), 2)
        chance = 1 / (1 + 10 ** ((MODELS[right] - MODELS[left]) / 400))
        tie = dice.random() < 0.1
        rows.append((left, right, "tie" if tie else "model_a" if dice.random() < chance else "model_b"))
    return {
        name: list(cells) for name, cells in zip(("model_a", "model_b", "winner"), zip(*rows, strict=True), strict=True)
    }


EXAMPLES: Final[dict[str, Callable[[], Any]]] = {"log": log, "board": board, "market": market, "page": page}


def write(name: str, path: str | Path) -> None:
    """Write an example as a file, a table or a market.

    Parameters
    ----------
    name : {"log", "board", "market", "page"}
        Which one.
    path : str or Path
        Where to write it.
    """
    check_place(path)
    made = EXAMPLES[known(name, EXAMPLES, "example")]()
    if isinstance(made, Market):
        save_market(made, path)
        return
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([list(made), *zip(*made.values(), strict=True)])
    write_whole(path, text.getvalue())
