"""The log of an invented advertising platform, to try `cloneproof log` on.

20 advertisers have 60 campaigns. Three of them run one campaign several times under slightly other titles, and a fourth
runs all of its campaigns again from a second account. The platform explores a little and otherwise serves what did well
so far; each row has the probability with which its campaign was served.

    python examples/log/generate.py clicks.csv                 # 1,000,000 impressions
    python examples/log/generate.py clicks.csv --seasonal      # click rates that rise and fall over the week
"""

import argparse
import csv
import datetime as dt

import numpy as np

ADVERTISERS = 20
CAMPAIGNS = 60
COPIERS = {"adv-03": 6, "adv-08": 5, "adv-14": 4}  # how often their first campaign is registered
SECOND_ACCOUNT = ("adv-06", "adv-19")  # the same owner: the second one runs the first one's campaigns again
ORIGINALS = {SECOND_ACCOUNT[0]: 4, SECOND_ACCOUNT[1]: 4}  # the others have what is left of the campaigns
RATES = (0.01, 0.2)  # click rates, in equal ratios
COPIED_RATE = 0.08  # at least: what is copied does well
BLOCK = 4000  # impressions between two looks at the statistics
EVEN = 0.6  # of the impressions are spread evenly
WEEK = 7 * 24 * 3600
WORDS = (
    ("trail", "alpine", "urban", "silent", "golden", "arctic", "coastal", "velvet", "rapid", "vintage", "nordic"),
    ("running shoes", "rain jackets", "headphones", "coffee beans", "desk lamps", "city bikes", "yoga mats", "tents"),
    ("on sale", "for spring", "made to last", "shipped free", "back in stock", "for beginners", "under 50"),
)
CHANGES = ("{}", "{}!", "{} ", "{} - now", "New: {}", "{} today")


def platform(seed=0):
    """The campaigns: advertiser, campaign, title and click rate of each, copies and second account included."""
    rng = np.random.default_rng(seed)
    titles = [f"{a} {b} {c}" for a in WORDS[0] for b in WORDS[1] for c in WORDS[2]]
    rng.shuffle(titles)
    names = [f"adv-{number:02d}" for number in range(ADVERTISERS)]
    wanted = dict.fromkeys(names, 1) | ORIGINALS  # originals
    others = [name for name in names if name not in ORIGINALS]
    left = CAMPAIGNS - sum(wanted.values()) - sum(copies - 1 for copies in COPIERS.values())
    for number in range(left):
        wanted[others[number % len(others)]] += 1
    rows, known = [], {}
    for name in names:
        for original in range(wanted[name]):
            rate, title = float(np.exp(rng.uniform(*np.log(RATES)))), titles.pop()
            if name == SECOND_ACCOUNT[1]:
                rate, title = known[SECOND_ACCOUNT[0], original]
                title = CHANGES[1 + original].format(title)
            elif original == 0 and name in COPIERS:
                rate = max(rate, COPIED_RATE)
            known[name, original] = (rate, title)
            copies = COPIERS.get(name, 1) if original == 0 else 1
            rows += [(name, CHANGES[copy].format(title), rate) for copy in range(copies)]
    return [(name, f"c{number:03d}", title, rate) for number, (name, title, rate) in enumerate(rows)]


def impressions(campaigns, rounds, seasonal=False, seed=0):
    """Blocks of (time, campaign number, click), as arrays."""
    rng = np.random.default_rng(seed + 1)
    rates = np.array([rate for *_, rate in campaigns])
    shown, clicked = np.zeros(len(rates)), np.zeros(len(rates))
    for begin in range(0, rounds, BLOCK):
        count = min(BLOCK, rounds - begin)
        draws = rng.beta(1 + clicked, 10 + shown - clicked, size=(200, len(rates)))
        best = np.bincount(draws.argmax(axis=1), minlength=len(rates)) / 200
        chance = EVEN / len(rates) + (1 - EVEN) * best
        served = rng.choice(len(rates), size=count, p=chance / chance.sum())
        seconds = np.arange(begin, begin + count) * (4 * WEEK / rounds)
        season = 1 + 0.3 * np.sin(2 * np.pi * seconds / WEEK) if seasonal else 1.0
        clicks = (rng.random(count) < rates[served] * season).astype(int)
        shown += np.bincount(served, minlength=len(rates))
        clicked += np.bincount(served, weights=clicks, minlength=len(rates))
        yield seconds, served, clicks


def write_log(path, rounds=1_000_000, seasonal=False, seed=0):
    """Write the log as CSV."""
    campaigns = platform(seed)
    start = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("time", "advertiser", "campaign", "title", "click"))
        for seconds, served, clicks in impressions(campaigns, rounds, seasonal, seed):
            for at, number, click in zip(seconds, served, clicks, strict=True):
                advertiser, campaign, title, _ = campaigns[number]
                moment = (start + dt.timedelta(seconds=float(at))).strftime("%Y-%m-%d %H:%M:%S")
                writer.writerow((moment, advertiser, campaign, title, click))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("path", nargs="?", default="clicks.csv")
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--seasonal", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    write_log(asked.path, asked.rounds, asked.seasonal, asked.seed)
    print(f"{asked.path}: {asked.rounds:,} impressions of {CAMPAIGNS} campaigns of {ADVERTISERS} advertisers")
