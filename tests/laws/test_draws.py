"""Moments of draws with replacement, against all realisations of the means one by one."""

import itertools
import math

import numpy as np
import pytest

from cloneproof.laws.draws import UniformDraws, weights_of
from support.sizes import LONG

VALUES = np.array([0.0, 0.2, 0.5, 1.0])
ONE, OTHER = ((0.0, 0.5), (0.2, 0.3), (1.0, 0.2)), ((0.2, 0.6), (0.5, 0.4))
AGENTS = [(ONE, ONE, ONE), (ONE, OTHER, ONE), (OTHER,), (OTHER, OTHER, ONE)]
BASE, GAIN = (
    np.array([[1.0, 0.9, 0.4, 0.0], [0.7, 0.6, 0.5, 0.4]]),
    np.array([[0.0, 0.1, 0.6, 1.0], [0.3, 0.3, 0.2, 0.1]]),
)


COPIES = [(1, 1, 1), (3, 1, 1), (2,), (1, 4, 4)]


def realised(agent):
    """The chance of each list of means, and the places of the means among the values."""
    laws = [weights_of(atoms, VALUES) for atoms in agent]
    for places in itertools.product(range(len(VALUES)), repeat=len(agent)):
        yield math.prod(law[k] for law, k in zip(laws, places, strict=True)), list(places)


@pytest.mark.parametrize("draws", [1, 2, 7, 60, *([3000] if LONG else [])])
@pytest.mark.parametrize("copies", [None, COPIES])
def test_powers_of_averages(draws, copies):
    """Copies are weights of the draws."""
    drawn = UniformDraws(AGENTS, VALUES, copies)
    moments, last = drawn.powers(draws, BASE, GAIN), drawn.last_powers(draws, BASE, GAIN)
    for k, agent in enumerate(AGENTS):
        found, power = np.zeros((5, len(BASE))), draws - 1
        for chance, at in realised(agent):
            tables = (BASE[:, at], (GAIN * VALUES)[:, at], VALUES[at], GAIN[:, at])
            f, *factors = (np.average(table, axis=-1, weights=copies and copies[k]) for table in tables)
            found += np.array([chance * f**power * factor for factor in (f, factors[1], factors[0], factors[2], 1.0)])
        for moment, at, expected in zip(moments, (draws, power, power), found[:3], strict=True):
            assert moment[k][:, at] == pytest.approx(expected, rel=1e-9, abs=1e-200)
        for moment, expected in zip(last, (found[0], found[3], found[2]), strict=True):
            assert moment[k] == pytest.approx(expected, rel=1e-9, abs=1e-13)
        assert moments[0][k][:, power] == pytest.approx(found[4], rel=1e-9, abs=1e-200)


def test_champions_are_the_first_that_passes_or_the_best_score():
    """By all realisations, draws and outcomes of two tests with three results: a low score, a high one, a pass."""
    low, high = np.array([0.9, 0.6, 0.3, 0.0]), np.array([0.1, 0.3, 0.4, 0.2])
    passes, draws = 1 - low - high, 2
    nodes, weights = np.polynomial.legendre.leggauss(2)
    scores = [
        (before + (node + 1) / 2 * at, at, np.array([weight / 2]))
        for before, at in ((np.zeros((1, 4)), low[None, :]), (low[None, :], high[None, :]))
        for node, weight in zip(nodes, weights, strict=True)
    ]
    laws = UniformDraws(AGENTS, VALUES).champions(draws, passes, scores)
    for agent, law in zip(AGENTS, laws, strict=True):
        expected = np.zeros(4)
        for chance, at in realised(agent):
            for first, second in itertools.product(at, repeat=2):
                share = chance / len(at) ** 2
                expected[first] += share * (passes[first] + high[first] * low[second])
                expected[second] += share * ((1 - passes[first]) * passes[second] + low[first] * high[second])
                for tied in (first, second):
                    expected[tied] += share * (low[first] * low[second] + high[first] * high[second]) / 2
        assert law == pytest.approx(expected, rel=1e-9)
        assert law.sum() == pytest.approx(1)
