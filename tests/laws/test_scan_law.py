"""The law of a scan, in fractions, against every order of the agents, content of the slots and count of a test."""

import math
import random
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.boards.laws import champion_of_slots
from cloneproof.laws import scan
from cloneproof.laws.counts import binomial_floats as count_law
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers

ZERO = Fraction(0)


def random_law(rng, *shape):
    """Probabilities in fractions; the last share is that of a draw that passes."""
    shares = [rng.randint(0, 4) for _ in range(math.prod(shape))]
    return np.array([Fraction(share, sum(shares) + rng.randint(1, 4)) for share in shares], object).reshape(shape)


def enumerated(failing, draws):
    """The chance that all draws fail, and of each arm and count to be the first with the highest count."""
    best = np.full(failing.shape, ZERO)
    outcomes = list(np.ndindex(*failing.shape))
    for each in product(outcomes, repeat=draws):
        first = max(range(draws), key=lambda j: (each[j][1], -j))
        best[each[first]] += math.prod((failing[outcome] for outcome in each), start=Fraction(1))
    return best


@pytest.mark.parametrize("seed", range(4))
def test_a_scan_ends_with_the_first_highest_count(seed):
    rng = random.Random(seed)
    draws = rng.randint(1, 4)
    failing = random_law(rng, rng.randint(1, 3), rng.randint(1, 2))
    reached, best = scan.scan_law(draws, failing)
    assert reached.tolist() == [failing.sum() ** j for j in range(draws + 1)]
    assert (best == enumerated(failing, draws)).all()
    assert scan.scan_law(draws, failing.astype(float))[1] == pytest.approx(best.astype(float), rel=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_agents_in_a_random_order_share_the_highest_count(seed):
    """Two kinds of agents with two types of means each: what each earns, by enumeration of orders, types and counts."""
    rng = random.Random(seed)
    draws, levels, kinds = 2, 2, (0, 0, 1)  # the kind of each agent
    chances = [np.array([Fraction(1, 3), Fraction(2, 3)]), np.array([Fraction(3, 4), Fraction(1, 4)])]
    laws = [[random_law(rng, 1, levels)[0] for _ in range(2)] for _ in chances]  # of a draw's count, by kind and type
    tables = []
    for own, law in zip(chances, laws, strict=True):
        at = np.array(law)
        up_to = at.cumsum(axis=1)
        tables.append(scan.scan_moments(draws, own, up_to - at, up_to, (at, up_to - at, up_to)))
    own, first, last = (np.array(each) for each in zip(*tables, strict=True))
    nodes = np.array([ZERO, Fraction(1, 2), Fraction(1)])  # Simpson's rule, exact for two others
    weights = np.array([Fraction(1, 6), Fraction(4, 6), Fraction(1, 6)])
    found = scan.highest_count_pay([2, 1], own, first, last, nodes, weights)

    earned = [ZERO] * len(kinds)
    for types in product(range(2), repeat=len(kinds)):
        for counts in product(range(levels), repeat=draws * len(kinds)):
            chance = math.prod(chances[kind][t] for kind, t in zip(kinds, types, strict=True))
            for place, count in enumerate(counts):  # the count of draw j of agent i is at place j * agents + i
                agent = place % len(kinds)
                chance *= laws[kinds[agent]][types[agent]][count]
            for order in permutations(range(len(kinds))):
                slots = [(j, i) for j in range(draws) for i in order]
                best = max(slots, key=lambda slot: counts[slot[0] * len(kinds) + slot[1]])  # the first of the highest
                earned[best[1]] += chance / math.factorial(len(kinds))
    assert earned[0] == earned[1] == found[0]
    assert earned[2] == found[1]


@pytest.mark.parametrize("kinds", [[0], [1, 2], [3, 1, 1]])
def test_factors_are_averaged_over_who_comes_first(kinds):
    rng = random.Random(1)
    factors = [(Fraction(rng.randint(0, 5), 5), Fraction(rng.randint(0, 5), 5)) for _ in kinds]
    others = [pair for number, pair in zip(kinds, factors, strict=True) for _ in range(number)]
    asked = [
        (number, np.array([later], object), np.array([first], object))
        for number, (later, first) in zip(kinds, factors, strict=True)
    ]
    expected = [ZERO] * (len(others) + 1)
    for chosen in product((0, 1), repeat=len(others)):
        k = sum(chosen)
        expected[k] += math.prod(pair[c] for pair, c in zip(others, chosen, strict=True)) / Fraction(
            math.comb(len(others), k)
        )
    assert scan.order_averages(asked)[0].tolist() == expected


def test_one_function_knows_who_has_the_highest_count(monkeypatch):
    """Earlier draws may tie with the winner, planted in the law of a scan: regret, exact engines and boards follow."""
    prior = cp.Discrete([0.25, 0.75], [0.5, 0.5])
    market = cp.Market([cp.Agent("ana", 2, prior), cp.Agent("bo", 1, cp.Point(0.5))], horizon=40)
    best = {"draws": 2, "rounds": 2, "choose": "best"}
    numbers = ReservoirNumbers(2, 2, None)

    def results():
        atoms = [[(0.25, 0.5), (0.75, 0.5)]] * 2
        return [
            ReservoirMarket([atoms, [[(0.5, 1.0)]]], 40).regret(numbers),
            cp.evaluate(market, cp.mechanism("reservoir", **best), engine="law").payoff["ana"].value,
            champion_of_slots([count_law(2, 0.25), count_law(2, 0.75)], np.array([0.5, 0.5]), 3)[0].weights.sum(),
        ]

    before = results()
    weights = scan._place_weights
    monkeypatch.setattr(scan, "_place_weights", lambda draws, below, up_to: weights(draws, up_to, up_to))
    assert all(one != other for one, other in zip(before, results(), strict=True))
