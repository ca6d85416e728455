"""What `cloneproof log` says that its advice costs, against seasons of a program of its own (`seasons.py`).

Like with like: the cost with these items, in the market from which the log came; that of a fresh market, in markets
whose rates are drawn anew from the true law (`laws.py`). Where nothing can be lost, as with equal rates, a cost counts
as right that is below half a per cent of what there is to earn.
"""

import csv
import json
import os
from typing import NamedTuple

import numpy as np

from ends import seasons
from ends.laws import LAWS
from support.command import run

LONG = bool(os.environ.get("CLONEPROOF_LONG"))
NOTHING = 0.005


class Told(NamedTuple):
    """A stated cost with its interval, and the true one with the error of its simulation; parts of the best."""

    stated: float
    low: float
    high: float
    true: float
    error: float

    @property
    def nothing(self):
        return max(self.stated, self.true) < NOTHING

    @property
    def holds(self):
        return self.low - 2 * self.error <= self.true <= self.high + 2 * self.error or self.nothing

    @property
    def ratio(self):
        return max(self.stated, NOTHING) / max(self.true, NOTHING)


def told(law, seed, views, path):
    """Return the cost in the market of a log, and in fresh ones: sizes and horizon by seed."""
    dice, draw = np.random.default_rng([seed, list(LAWS).index(law), views]), LAWS[law]
    shape = int(dice.choice([5, 10, 16])), int(dice.choice([5, 10, 20]))
    rates = draw(dice, shape)
    horizon = rates.size * views
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("seller", "item", "views", "clicks"), *seasons.log(rates, views, dice)])
    said = json.loads(run("log", path, "--count", "views", "--total", "clicks", "--json").stdout)
    advised = said["recommendation"]["ranked"][0]
    found = []
    for name, markets in (
        ("cost", np.broadcast_to(rates, (400, *shape))),
        ("fresh_cost", draw(dice, (800, *shape))),
    ):
        lost = seasons.lost(markets, advised["mechanism"], advised["parameters"], horizon, dice)
        best = horizon * markets.max(axis=(1, 2)).mean()
        parts = [said[name]["lost"][key] / best for key in ("value", "low", "high")]
        found.append(Told(*parts, lost.mean() / best, lost.std() / len(lost) ** 0.5 / best))
    return found


def test_stated_costs_are_true(tmp_path):
    """One log: the interval holds or the cost is within 30 %; of 40 long ones as many as are stated below."""
    laws, seeds = (list(LAWS), range(4)) if LONG else (["two Betas"], range(1))
    costs = np.array([told(law, seed, 2000, tmp_path / "log.csv") for law in laws for seed in seeds], dtype=object)
    here, fresh = ([Told(*row) for row in costs[:, k]] for k in (0, 1))
    ratios = np.array([own.ratio for own in here])
    near = np.abs(ratios - 1) <= 0.3
    if not LONG:
        assert all(own.holds or close for own, close in zip(here, near, strict=True)), here
        return
    assert sum(own.holds for own in here) >= 34, here
    assert near.sum() >= 34, ratios
    assert np.median(np.abs(ratios - 1)) <= 0.12, ratios
    assert abs(np.mean([own.ratio for own in here if own.true > NOTHING]) - 1) <= 0.12, ratios
    assert sum(own.holds for own in fresh) >= 31, fresh
    few = [told(law, seed, 200, tmp_path / "log.csv")[0] for law in laws for seed in seeds]
    assert sum(own.holds for own in few) >= 31, few
