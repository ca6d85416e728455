"""Sums by week and by part of the week, against sums by hand."""

from collections import defaultdict
from datetime import datetime, timedelta

import numpy as np
import pytest

import cloneproof as cp

BEGIN = datetime(2025, 3, 5, 17, 30)  # a Wednesday


def table(days, rows=400, seed=1):
    dice = np.random.default_rng(seed)
    moments = [BEGIN + timedelta(seconds=float(s)) for s in dice.uniform(0, 86400 * days, rows - 2)]
    return {
        "agent": [f"a{k}" for k in dice.integers(0, 3, rows)], "arm": ["x"] * rows,
        "click": dice.integers(0, 2, rows), "ts": [BEGIN, *moments, BEGIN + timedelta(days=days)],
    }  # fmt: skip


def expected(rows, cell):
    sums = defaultdict(lambda: [0, 0])
    for agent, moment, click in zip(rows["agent"], rows["ts"], rows["click"], strict=True):
        sums[agent, cell(moment)][0] += 1
        sums[agent, cell(moment)][1] += int(click)
    return {key: tuple(each) for key, each in sums.items()}


def seen(log, cells):
    return {
        (arm.agent, name): (int(n), int(total))
        for arm, rounds, totals in zip(log.arms, cells.rounds, cells.totals, strict=True)
        for name, n, total in zip(cells.names, rounds, totals, strict=True) if n
    }  # fmt: skip


@pytest.mark.parametrize(("days", "what", "width"), [(70, "weeks", 7), (25, "days", 1), (400, "weeks", 14)])
def test_sums_by_week_and_hour_are_those_by_hand(days, what, width):
    rows = table(days)
    log = cp.read_log(rows, local_arms=True)
    midnight = datetime(2025, 3, 5)
    by_week = expected(rows, lambda at: str(midnight + timedelta(days=(at - midnight).days // width * width))[:10])
    assert log.weeks.what == what
    assert seen(log, log.weeks) == by_week
    by_part = expected(
        rows, lambda at: f"{'weekend' if at.weekday() > 4 else 'weekday'} {at.hour // 4 * 4}-{at.hour // 4 * 4 + 4} h"
    )
    assert seen(log, log.hours) == by_part


def test_numbers_are_dates_in_any_unit_or_spans():
    rows = table(30)
    dated = cp.read_log(rows, local_arms=True)
    since = [(at - datetime(1970, 1, 1)).total_seconds() for at in rows["ts"]]
    for unit in (1, 1e3, 1e6):
        log = cp.read_log(rows | {"ts": [unit * each for each in since]}, local_arms=True)
        for one, other in ((log.weeks, dated.weeks), (log.hours, dated.hours)):
            assert one.names == other.names
            assert np.array_equal(one.totals, other.totals)
    steps = cp.read_log(rows | {"ts": list(range(400))}, local_arms=True)
    assert steps.hours is None
    assert steps.weeks.what == "spans"
    by_hand = np.bincount([min(12 * step // 399, 11) for step in range(400)])
    assert steps.weeks.rounds.sum(axis=0).tolist() == by_hand.tolist()


def test_owners_scaled_rewards_counts_and_places_are_those_of_the_arms():
    rows = table(20)
    stars = rows | {"click": [1 + 4 * int(each) for each in rows["click"]]}
    log, scaled = cp.read_log(rows, local_arms=True), cp.read_log(stars, local_arms=True, reward_range=(1, 5))
    assert np.array_equal(log.weeks.totals, scaled.weeks.totals)
    owned = cp.read_log({**rows, "agent": ["n/a"] * 400, "arm": rows["agent"]}, agent=None, arm="arm", owners={
        f"a{k}": f"o{k}" for k in range(3)
    })  # fmt: skip
    assert np.array_equal(log.weeks.rounds, owned.weeks.rounds)
    counted = cp.read_log({"agent": ["a", "a"], "arm": ["x", "x"], "views": [7, 5], "clicks": [3, 1], "ts": [0, 90]})
    assert (counted.weeks.rounds.sum(), counted.weeks.totals[0, -1]) == (12, 1)
    placed = cp.read_log(rows | {"place": [1, 2] * 200}, position="place", local_arms=True)
    for arm, rounds in zip(placed.arms, placed.weeks.rounds.sum(axis=1), strict=True):
        assert arm.rounds == pytest.approx(rounds, abs=1)


def test_without_times_there_are_none():
    rows = table(20)
    assert cp.read_log({name: rows[name] for name in ("agent", "arm", "click")}, local_arms=True).weeks is None
    assert cp.read_log(rows | {"ts": [5] * 400}, local_arms=True).weeks is None
