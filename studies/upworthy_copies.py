"""Whether real copies share one rate: packages of one headline test that are equal in all fields, and others.

python studies/upworthy_copies.py UPWORTHY.parquet     (Upworthy Research Archive, Matias et al. 2021, CC BY 4.0)

Tests between 25 June 2013 and 10 January 2014 are left out, as its publishers advise. A group is tested for one item by
the chi-square of its log-odds, whose variances are those of sampling and the square of the spread.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from datetime import date

import duckdb
import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

from cloneproof.logs.originals import ONE_ITEM_SPREAD

FIELDS = "headline, lede, excerpt, eyecatcher_id"
WARNED = (201326, 201402)  # weeks
LEVEL = 0.05


def misfit(group: list[tuple[int, int]], spread: float) -> tuple[float, int]:
    """Chi-square of (views, clicks) as one item, and its degrees of freedom."""
    views, clicks = np.array(group, dtype=float).T
    odds = np.log((clicks + 0.5) / (views - clicks + 0.5))
    weights = 1 / (1 / (clicks + 0.5) + 1 / (views - clicks + 0.5) + spread**2)
    centre = np.average(odds, weights=weights)
    return float((weights * (odds - centre) ** 2).sum()), len(group) - 1


def fitted_spread(groups: list[list[tuple[int, int]]]) -> float:
    """Spread at which the chi-squares add up to their degrees of freedom (Paule and Mandel)."""
    return float(brentq(lambda tau: sum(np.subtract(*misfit(group, tau)) for group in groups), 0.0, 2.0))


def rejected(groups: list[list[tuple[int, int]]], spread: float, level: float = LEVEL) -> float:
    """Share of the groups that are rejected as one item."""
    return float(np.mean([chi2.sf(*misfit(group, spread)) < level for group in groups]))


def month(week: int) -> str:
    """Month in which a week begins."""
    return date.fromisocalendar(week // 100, min(max(week % 100, 1), 52), 1).strftime("%Y-%m")


def read(path: str) -> tuple[dict[str, list], dict[str, list]]:
    """Groups of one test that are equal in all fields, and of those that differ in the headline alone, by month."""
    rows = duckdb.sql(
        f"SELECT clickability_test_id, test_week, {FIELDS}, impressions, clicks FROM '{path}' ORDER BY index"
    ).fetchall()
    tests = defaultdict(lambda: defaultdict(list))
    for test, week, headline, lede, excerpt, image, views, clicks in rows:
        if not WARNED[0] <= week <= WARNED[1]:
            tests[test, week][headline, lede, excerpt, image].append((views, clicks))
    equal, other = defaultdict(list), defaultdict(list)
    for (_, week), packages in tests.items():
        equal[month(week)] += [group for group in packages.values() if len(group) > 1]
        images = defaultdict(dict)
        for (headline, *_, image), group in packages.items():
            images[image].setdefault(headline, group[0])
        other[month(week)] += [list(one.values()) for image, one in images.items() if image and len(one) > 1]
    return equal, other


if __name__ == "__main__":
    equal, other = read(sys.argv[1])
    every = [[group for groups in kind.values() for group in groups] for kind in (equal, other)]
    for name, groups in zip(("equal in all fields", "other headlines on one image"), every, strict=True):
        spread = fitted_spread(groups)
        again = [
            fitted_spread([groups[k] for k in np.random.default_rng(seed).integers(0, len(groups), len(groups))])
            for seed in range(40)
        ]
        print(f"{name}: {len(groups)} groups, spread {spread:.3f} (bootstrap error {np.std(again):.3f})")
        for tau in (0.0, ONE_ITEM_SPREAD):
            often, sure = rejected(groups, tau), rejected(groups, tau, 0.001)
            print(f"  spread {tau}: rejected at .05 {often:.3f}, at .001 {sure:.3f}")
    print("month | equal | rejected, 0 | rejected, .14 | other | rejected, 0 | rejected, .14")
    for name in sorted(equal):
        if equal[name] and other[name]:
            cells = [
                (len(kind[name]), *(rejected(kind[name], tau) for tau in (0.0, ONE_ITEM_SPREAD)))
                for kind in (equal, other)
            ]
            print(name, *(f"| {n} | {a:.2f} | {b:.2f}" for n, a, b in cells))
