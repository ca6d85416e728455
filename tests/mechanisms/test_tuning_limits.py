"""Parameters for a market are found, or refused in a sentence, within limits on CPU time and memory, zeros and ones
included; and they are about the best."""

import itertools
import subprocess
import sys
import tracemalloc

import pytest

import cloneproof as cp
from cloneproof.laws.reservoir import ReservoirNumbers
from cloneproof.mechanisms.catalogue import _THEOREMS as TUNED
from cloneproof.mechanisms.catalogue import ON_PAGES_ONLY
from cloneproof.mechanisms.reservoir.parameters import reservoir_market
from cloneproof.mechanisms.reservoir.tuning import tune_reservoir
from support import tuning_fuzz
from support.sizes import LONG

MARKETS = 2000 if LONG else 3


@pytest.mark.parametrize("horizon", [2000, 10**9])
def test_a_hit_or_a_dud(horizon):
    """Where duds never pass, further draws cost nothing, and thousands were wanted."""
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 0.5], [0.6, 0.4]))], horizon)
    tracemalloc.start()
    made = cp.mechanism("reservoir", market=market)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000_000
    assert made.parameters["draws"] < 200
    assert made.parameters["threshold"] == 1
    assert cp.evaluate(market, made, engine="law").regret.value < 1


def test_every_market_within_limits():
    """In a process of its own, whose memory only grows."""
    command = [sys.executable, tuning_fuzz.__file__, str(MARKETS), *sorted(set(TUNED) - set(ON_PAGES_ONLY))]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


SMALL = [
    ([[(0, 0.6), (0.5, 0.4)]] * 2, 1, 60),
    ([[(0.2, 0.7), (0.9, 0.3)]] * 2, 3, 80),
    ([[(0.1, 0.5), (0.5, 0.3), (1, 0.2)]] * 3, 2, 150),
    ([[(0, 0.9), (1, 0.1)]] * 4, 2, 100),
]


@pytest.mark.parametrize(("originals", "agents", "horizon"), SMALL if LONG else SMALL[:2])
def test_tuned_numbers_are_about_the_best_of_all(originals, agents, horizon):
    """Against every number of pulls and threshold up to 12 and many numbers of draws."""
    market = reservoir_market([[cp.Discrete(*zip(*atoms, strict=True)) for atoms in originals]] * agents, horizon)
    numbers = [
        ReservoirNumbers(pulls, draws, threshold)
        for pulls, draws in itertools.product(range(1, 13), (1, 2, 3, 5, 8, 13))
        for threshold in range(1, pulls + 1)
    ]
    assert tune_reservoir(market).regret <= 1.03 * min(map(market.regret, numbers))
