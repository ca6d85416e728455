"""The log of an invented shop whose listings are chosen by Thompson sampling, to try `cloneproof log` on.

30 listings of 12 sellers over eight weeks. One seller lists a lamp twelve times, another a mug five times, and a third
sells its kettle from a second account as well. Clicks differ by device, and rates move from week to week, a few items
more than the others.

    python examples/log/listings.py shop.csv                 # 2,000,000 impressions, half a minute
    cloneproof log shop.csv --same title --policy thompson
"""

import argparse
import csv
import datetime as dt

import numpy as np

LAMPS = (
    "Touch Lamp", "Touch Lamp - NEW", "Touch Lamp 2025", "Touch Lamp (free shipping)", "NEW Touch Lamp", "touch lamp",
    "TOUCH LAMP!", "Lamp, Touch", "Touch Lamp *best price*", "Touch Lamp #2", "Touch Lamp (sale)", "Touch Lamp 2026",
)  # fmt: skip
MUGS = ("Speckled Stone Mug", "Speckled Stone Mug NEW", "Speckled Stone Mug 2025", "Stone Mug, Speckled",
        "Speckled Stone Mug (free shipping)")  # fmt: skip
KETTLES = {"teahouse": ("Copper Whistling Kettle",), "brewcorner": ("Copper Whistling Kettle - sale",)}
OTHERS = {
    "oakdesk": ("Walnut Side Table", "Oak Bookend"), "papergoods": ("Linen Notebook",), "woolly": ("Merino Throw",),
    "greenroom": ("Hanging Fern Pot", "Brass Watering Can"), "bikebarn": ("Saddle Bag",), "lampking": ("Desk Fan",),
    "playroom": ("Wooden Train Set",), "brightside": ("Reading Lamp with Clip",), "nightowl": ("Blackout Curtain",),
}  # fmt: skip
RATES, COPIED = (0.02, 0.045), (0.048, 0.046, 0.042)  # click rates: of items, and of lamp, mug and kettle
DEVICES = {"mobile": (0.6, 0.9), "desktop": (0.3, 1.2), "tablet": (0.1, 1.0)}  # share of the views, and of the rate
WEEKS, WEEK, DRIFT, OWN_DRIFT = 8, 7 * 24 * 3600, 0.15, 0.1  # drift of all rates, and of an item's own
BLOCK = 500  # views between two looks at the statistics


def shop(seed=0):
    """Seller, listing, title and number of the item of each listing, and the rate of each item in each week."""
    listed = [("lampking", title, 0) for title in LAMPS] + [("mugshot", title, 1) for title in MUGS]
    listed += [(seller, title, 2) for seller, titles in KETTLES.items() for title in titles]
    others = [(seller, title) for seller, titles in OTHERS.items() for title in titles]
    listed += [(seller, title, 3 + number) for number, (seller, title) in enumerate(others)]
    rng = np.random.default_rng(seed)
    rates = np.exp(rng.uniform(*np.log(RATES), 3 + len(others)))
    rates[:3] = COPIED
    common = np.cumsum(rng.normal(0, DRIFT, WEEKS))
    own = np.cumsum(rng.normal(0, OWN_DRIFT, (len(rates), WEEKS)), axis=1)
    rows = [(seller, f"L{number:03d}", title, item) for number, (seller, title, item) in enumerate(listed, 100)]
    return rows, np.minimum(rates[:, None] * np.exp(common - common.mean() + own - own.mean(axis=1)[:, None]), 0.5)


def impressions(rows, rates, rounds, seed=0):
    """Blocks of (seconds, number of the listing, device, click), as arrays."""
    rng = np.random.default_rng(seed + 1)
    items = np.array([item for *_, item in rows])
    shares, factors = np.array(list(DEVICES.values())).T
    shown, clicked = np.zeros(len(rows)), np.zeros(len(rows))
    for begin in range(0, rounds, BLOCK):
        count = min(BLOCK, rounds - begin)
        served = rng.beta(1 + clicked, 1 + shown - clicked, size=(count, len(rows))).argmax(axis=1)
        device = rng.choice(len(shares), size=count, p=shares)
        seconds = np.arange(begin, begin + count) * (WEEKS * WEEK / rounds)
        chance = rates[items[served], (seconds // WEEK).astype(int)] * factors[device]
        clicks = (rng.random(count) < chance).astype(int)
        shown += np.bincount(served, minlength=len(rows))
        clicked += np.bincount(served, weights=clicks, minlength=len(rows))
        yield seconds, served, device, clicks


def write_log(path, rounds=2_000_000, seed=0):
    """Write the log as CSV."""
    rows, rates = shop(seed)
    start, devices = dt.datetime(2026, 1, 5), list(DEVICES)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("time", "seller", "listing", "title", "device", "click"))
        for seconds, served, device, clicks in impressions(rows, rates, rounds, seed):
            for at, number, where, click in zip(seconds, served, device, clicks, strict=True):
                moment = start + dt.timedelta(seconds=int(at))
                writer.writerow((moment, *rows[number][:3], devices[where], click))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", nargs="?", default="shop.csv")
    parser.add_argument("--rounds", type=int, default=2_000_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    write_log(asked.path, asked.rounds, asked.seed)
    print(f"{asked.path}: {asked.rounds:,} impressions of {len(shop(asked.seed)[0])} listings")
