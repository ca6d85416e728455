"""Late rewards: their law in pages, and runs that are told them late."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.delays import Delays, delays_of
from cloneproof.market.toml import market_from_toml, market_to_toml
from cloneproof.runs.arrivals import Arrivals

POINTS = [(0.5, 0.5), (0.95, 6)]


@pytest.mark.parametrize("traffic", [(1,), (1, 4, 0, 2)])
def test_delays_pass_through_their_points(traffic: tuple[float, ...]) -> None:
    """The pages that begin after a delay are those whose moment, read off the curve of traffic, is later."""
    pages = 30_240
    arrivals = Arrivals(Delays(POINTS, 720, traffic), pages)
    moments = np.interp(np.arange(pages), arrivals.begun, arrivals.clock)
    for part, hours in (*POINTS, (0.75, 0.5 + 5.5 * np.log(2) / np.log(10))):  # a hazard is constant between points
        for page in (0, 700, 20_000):
            after = int(np.searchsorted(moments, moments[page + 1] + hours))
            assert abs(arrivals.page(page, 1 - part) - after) <= 1
    assert arrivals.page(pages - 2, 1e-9) == arrivals.page(pages - 1, 0.9) == pages  # when the season is over


def test_a_law_is_read_off_the_times_of_a_log() -> None:
    """Four fifths of the clicks come within half an hour on average, the others within six."""
    dice = np.random.default_rng(0)
    shown = dice.uniform(0, 720, 40_000)
    hours = dice.exponential(1, len(shown)) * np.where(dice.random(len(shown)) < 0.8, 0.5, 6)
    law = delays_of(shown, shown + hours)
    assert law.hours == pytest.approx(720, rel=0.01)
    assert law.mean == pytest.approx(1.6, rel=0.1)
    assert [part for part, _ in law.law] == [0.5, 0.8, 0.95]


def test_runs_are_told_rewards_late() -> None:
    """Rewards that come beyond the season teach nothing: places go by lot, and everybody earns about as much."""
    agents = [cp.Agent("ana", 1, cp.Point(0.9)), cp.Agent("bo", 1, cp.Point(0.1))]
    never = cp.Market(agents, 400, positions=(1, 0.1), delays=Delays([(1e-9, 720)], 1))
    prompt = cp.Market(agents, 400, positions=(1, 0.1))
    assert market_from_toml(market_to_toml(never)) == never
    late, early = (runs_of(one, cp.mechanism("ucb1"), {"ana": (1,), "bo": (1,)}).kernel for one in (never, prompt))
    assert (late.name, early.name) == ("reference", "ranked pages")
    parts = [one.play(0, 20).payoff.mean(axis=0) for one in (late, early)]
    assert parts[0][0] < 0.75 * parts[1][0]
    assert parts[0].sum() < parts[1].sum()
