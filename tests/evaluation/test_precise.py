"""How often intervals hold where drawing stops: repetitions draw from a large pool of runs, whose mean is the truth."""

import os

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.precise import (
    LEVEL,
    MOST_RUNS,
    OF_BEST,
    OF_BEST_ABANDONING,
    TENTH,
    THIRD,
    Drawing,
    abandons,
    cost,
    draw_cost,
    draw_gain,
    gain,
    stakes,
)
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import full_copies
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.sampler import kernel_outcomes
from cloneproof.runs.statistics import Bounds, likely_part
from support.clocks import ticking

LONG = bool(os.environ.get("CLONEPROOF_LONG"))
ROUNDS = 10**5 if LONG else 10**4
POOLS = dict.fromkeys(("reservoir", "reservoir-contest"), 100_000) | {"reservoir-index": 50_000}
POOLS |= {"kl-ucb": 1000, "thompson": 1000}
FEW = {"reservoir": 20_000, "ucb1": 500}
REPEATED, HELD = 200, 190
MARKET = cp.Market([cp.Agent(name, 3, cp.Beta(2, 60)) for name in ("ana", "bo", "cy", "di", "eve")], horizon=ROUNDS)


@pytest.fixture(scope="module", params=POOLS if LONG else FEW)
def pool(request):
    """A mechanism, and of many runs the regret, honest pay and that of five copies of each item."""
    made = cp.mechanism(request.param, market=MARKET)
    size = (POOLS if LONG else FEW)[request.param]
    honest, copied = (
        kernel_outcomes(runs_of(MARKET, made, full_copies(MARKET.agents, copies), seed=2025), 0, size)
        for copies in (None, {"ana": (5, 5, 5)})
    )
    return made, np.column_stack([honest.regret, honest.served[:, 0], copied.served[:, 0]])


def resampled(pool, columns, seed):
    """What plays runs: rows of the pool, drawn with replacement, the same for the same numbers of runs."""
    order = np.random.default_rng(seed).integers(len(pool), size=MOST_RUNS)
    return lambda first, count: pool[order[first : first + count]][:, columns]


def test_costs_hold_where_drawing_stops(pool):
    made, rows = pool
    there, gone = stakes(MARKET), abandons(MARKET, made)
    found = [
        draw_cost(resampled(rows, [0], seed), there, gone, Bounds(0.0, ROUNDS), Drawing(seed))
        for seed in range(REPEATED)
    ]
    assert sum(one.low <= rows[:, 0].mean() <= one.high for one in found) >= HELD
    part = OF_BEST_ABANDONING if gone else OF_BEST
    small = [one.error <= max(TENTH * one.value, part * there.best) for one in found]
    drawn = [int(one.method.split()[0].replace(",", "")) for one in found]
    assert all(precise or runs == MOST_RUNS for precise, runs in zip(small, drawn, strict=True))
    assert gone == made.name.startswith("reservoir")


def test_gains_hold_where_drawing_stops(pool):
    _, rows = pool
    truth, likely = rows[:, 2].mean() - rows[:, 1].mean(), likely_part(MARKET, "ana")
    found = [
        draw_gain(resampled(rows, [1, 2], seed), Bounds(0.0, ROUNDS), likely, Drawing(seed)) for seed in range(REPEATED)
    ]
    assert sum(one.gain.low <= truth <= one.gain.high for one in found) >= HELD
    for one in found:
        precise = one.gain.error <= max(TENTH * one.honest.value, THIRD * abs(one.gain.value))
        assert precise or one.gain.method.startswith("1,024 pairs")


def test_an_interval_without_the_rare_losses_would_not_hold():
    """Student's interval of a mechanism that loses a hundred times as much in one run of 300: it misses that often."""
    rare = np.where(np.arange(3000) % 300 == 0, 5000.0, 50.0)[:, None] + np.arange(3000)[:, None] % 7
    there, held = stakes(MARKET)._replace(best=20_000.0, random=15_000.0), []
    for most_lost in (True, False):
        without = there if most_lost else there._replace(random=there.best)
        drawn = [
            draw_cost(resampled(rare, [0], seed), without, True, Bounds(0.0, ROUNDS), Drawing(seed))
            for seed in range(REPEATED)
        ]
        held.append(sum(one.low <= rare.mean() <= one.high for one in drawn))
    assert held[0] >= HELD > 150 > held[1]


def test_one_seed_is_one_answer_on_any_clock_and_few_runs_have_no_interval():
    made, short, found = cp.mechanism("ucb1"), MARKET.with_horizon(1000), []
    for turn in (0.0, 100.0):
        with ticking(turn):
            found.append((cost(short, made), gain(short, made, "ana", (5, 1, 1))))
    assert found[0] == found[1]
    assert (found[0][0].level, found[0][1].gain.kind) == (LEVEL, "confidence")
    few = cost(short, made, drawing=Drawing(most=15))
    assert (few.low, few.high) == (-np.inf, np.inf)
    late = gain(short, made, "ana", (5, 1, 1), Drawing(clock=Deadline(0.0)))
    assert not np.isfinite(late.gain.error)


def test_segments_add_up_and_a_policy_of_ones_own_is_taken_to_abandon():
    segments = cp.Market(MARKET.agents, horizon=ROUNDS, segments={"new": 0.25, "old": 0.75})
    assert stakes(segments).best == pytest.approx(stakes(MARKET).best)
    assert stakes(segments).random == pytest.approx(stakes(MARKET).random)
    assert cost(segments, cp.mechanism("ucb1")).value > cost(MARKET, cp.mechanism("ucb1")).value
    assert abandons(MARKET, cp.BlackBox(object))
    assert abandons(MARKET, cp.mechanism("etc", arm_rounds=5))
    assert not abandons(MARKET, cp.mechanism("h-ucb"))


def test_an_evaluation_allows_for_losses_that_it_may_have_missed():
    made, search = cp.mechanism("reservoir", market=MARKET), cp.Search(runs=256, seed=4)
    found = cp.evaluate(MARKET, made, engine="runs", search=search).regret
    above, below = found.high - found.value, found.value - found.low
    assert above - below == pytest.approx(np.log(100) * stakes(MARKET).most_lost / 256)
    usual = cp.evaluate(MARKET.with_horizon(1000), cp.mechanism("ucb1"), engine="runs", search=search).regret
    assert usual.high - usual.value == pytest.approx(usual.value - usual.low)
