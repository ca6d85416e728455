"""Sampled contests of champions against plain enumeration in fractions."""

import random
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.mechanisms.reservoir.kernel import slots
from support.contest_by_hand import contest_rewards
from support.reference_runs import played

NAMES = "abc"


def cases(number):
    draw = random.Random(5)
    for _ in range(number):
        count = draw.randint(2, 3)
        quarters = [[Fraction(draw.randint(0, 4), 4) for _ in range(draw.randint(1, 2))] for _ in range(count)]
        copies = [tuple(draw.randint(1, 2) for _ in own) for own in quarters]
        rounds, draws = draw.randint(1, 2), draw.randint(1, 2)
        horizon = draw.randint(1, count * rounds * draws + 7)
        options = draw.choice([{"choose": "best"}, {"threshold": draw.randint(1, rounds)}])
        contest = draw.choice(["kl-ucb", "ucb"])
        mechanism = cp.mechanism(
            "reservoir-contest", rounds=rounds, draws=draws, horizon=max(2, horizon), contest=contest, **options
        )
        yield [tuple(own) for own in quarters], copies, mechanism, horizon


RUNS = 3000


def sampled(market, mechanism, copies, seed):
    """Each agent's sampled payoff, and a slack that is exceeded once in a hundred million (Maurer and Pontil 2009)."""
    job = runs_of(market, mechanism, full_copies(market.agents, copies), seed)
    paid = played(partial(slots, blocks=True), job, 0, RUNS).payoff
    log = np.log(4 * 10**8)
    slack = np.sqrt(2 * paid.var(axis=0, ddof=1) * log / RUNS) + 7 * market.horizon * log / (3 * (RUNS - 1))
    return paid.mean(axis=0), slack


@pytest.mark.parametrize("case", list(cases(40)))
def test_the_kernel_is_the_enumeration(case):
    means, copies, mechanism, horizon = case
    agents = [cp.Agent(NAMES[i], prior=[cp.Point(float(mean)) for mean in own]) for i, own in enumerate(means)]
    exact = np.array([float(reward) for reward in contest_rewards(means, copies, mechanism, horizon)])
    market = cp.Market(agents, horizon=horizon)
    found, slack = sampled(market, mechanism, dict(zip(NAMES, copies, strict=False)), 3)
    assert (abs(found - exact) <= slack).all()


def test_priors_are_averaged_over():
    """A prior of two values is the average of the four markets of its values."""
    mechanism = cp.mechanism("reservoir-contest", rounds=2, draws=2, horizon=20, threshold=2)
    half = cp.Discrete([0.25, 0.75], [0.5, 0.5])
    agents = [cp.Agent("a", 2, half), cp.Agent("b", 1, cp.Point(0.5))]
    values = [Fraction(1, 4), Fraction(3, 4)]
    exact = sum(
        contest_rewards([(x, y), (Fraction(1, 2),)], [(1, 2), (1,)], mechanism, 14)[0] for x in values for y in values
    )
    found, slack = sampled(cp.Market(agents, horizon=14), mechanism, {"a": (1, 2)}, 5)
    assert abs(found[0] - float(exact) / 4) <= slack[0]
