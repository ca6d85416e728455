"""What reservoirs on pages lose by drawn worlds, against the kernel; what tuning finds, and what is refused."""

import math

import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.laws.pages import PageNumbers
from cloneproof.mechanisms.reservoir.parameters import page_market

FIVE = (1.0, 0.7, 0.5, 0.4, 0.3)
RUNS, SURE = 600, 4.5


def shop(providers: int, horizon: int, attention: tuple[float, ...] = FIVE) -> cp.Market:
    agents = [cp.Agent(f"p{k}", 3, cp.Beta(3, 97)) for k in range(providers)]
    return cp.Market(agents, horizon, positions=attention)


def lost(market: cp.Market, made: cp.Mechanism) -> tuple[float, float]:
    """Which part of the best page's clicks is lost, by the kernel, and its standard error."""
    found = runs_of(market, made, {agent.name: (1,) * agent.count for agent in market.agents}, 5)(0, RUNS)
    best = (found.regret + found.served.sum(axis=1)).mean()
    return float(found.regret.mean() / best), float(found.regret.std() / best / math.sqrt(RUNS))


@pytest.mark.parametrize(
    ("providers", "numbers"),
    [
        (8, PageNumbers("tests", 30, 10)),
        (8, PageNumbers("streams", 8, 50)),
        (4, PageNumbers("tests", 60, 8)),
        (4, PageNumbers("streams", 14, 50)),
    ],
)
def test_drawn_worlds_lose_what_the_kernel_says(providers: int, numbers: PageNumbers) -> None:
    market = shop(providers, 30_000)
    kind, length, size = numbers
    if kind == "tests":
        made = cp.mechanism("reservoir", rounds=length, draws=size)
    else:
        made = cp.mechanism("reservoir-streams", rotations=length, blocks=size)
    (found, interval), (value, error) = page_market(market).lost(numbers, 1e6), lost(market, made)
    assert abs(found - value) < SURE * (error + interval / 2.58)


def test_tuned_numbers_lose_little_and_given_ones_are_kept() -> None:
    """Eight providers of three items, a page of five, 30,000 pages; a laboratory in the last place only lost 18.3 %."""
    market = shop(8, 30_000)
    tests, streams = (cp.mechanism(name, market=market) for name in ("reservoir", "reservoir-streams"))
    assert lost(market, tests)[0] < 0.118
    assert lost(market, streams)[0] < 0.097
    assert "clicks" in str(streams.claims[-1])
    small = shop(3, 600, (1.0, 0.5))
    assert cp.mechanism("reservoir", market=small, draws=5).arm.draws == 5
    assert cp.mechanism("reservoir-streams", market=small, rotations=6).parameters["rotations"] == 6
