"""The closed form of the reservoir on slates, against enumeration in fractions and against sampling by hand."""

from fractions import Fraction
from random import Random

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from cloneproof.engines.closed_form.slates import slate_rewards
from cloneproof.laws.arithmetic import BALLS, FLOATS
from cloneproof.laws.means import CopiedOriginal
from cloneproof.mechanisms.rules.best_of_draws import best_of_draws
from support.slates_by_hand import laboratory_payoffs

EIGHTHS = [Fraction(k, 8) for k in range(9)]
SHAPES = [(1, 2, 2), (2, 1, 2), (2, 2, 1), (3, 1, 1)]  # agents, pulls of a test, draws


@pytest.mark.parametrize("case", range(12))
def test_payoffs_are_those_of_enumeration(case: int) -> None:
    """At every horizon, with copies, for one to four places, more and fewer than agents; floats and balls."""
    random = Random(case)
    agents, pulls, draws = SHAPES[case % len(SHAPES)]
    attention = [Fraction(1), *sorted(random.choices(EIGHTHS, k=case % 4), reverse=True)]
    means = [random.choices(EIGHTHS, k=random.choice([1, 2])) for _ in range(agents)]
    copies = [[random.choice([1, 1, 2]) for _ in own] for own in means]
    listed = [[v for v, n in zip(*pair, strict=True) for _ in range(n)] for pair in zip(means, copies, strict=True)]
    horizons = range(1, agents * pulls * draws + 3)
    exact = laboratory_payoffs(listed, attention, pulls, draws, horizons)
    originals = [
        [CopiedOriginal(((float(v), Fraction(1)),), n) for v, n in zip(*pair, strict=True)]
        for pair in zip(means, copies, strict=True)
    ]
    rule, floats = best_of_draws(draws=draws, rounds=pulls), [float(each) for each in attention]
    for horizon in horizons:
        for arithmetic in (FLOATS, BALLS):
            found, _ = slate_rewards(originals, rule, horizon, arithmetic, floats)
            assert [float(each) for each in found] == pytest.approx([float(e) for e in exact[horizon]], abs=1e-12)


def market(horizon: int = 2000) -> cp.Market:
    hits = cp.Discrete([0.1, 0.3], [0.5, 0.5])
    agents = [cp.Agent("ana", 2, hits), cp.Agent("bo", 1, cp.Point(0.2)), cp.Agent("cy", 3, hits)]
    return cp.Market(agents, horizon=horizon, positions=(1, 0.6, 0.4), share=0.5)


def test_neither_copies_nor_withholding_pay_and_regret_is_what_is_left_of_the_best_slate() -> None:
    ours = cp.mechanism("reservoir", rounds=20, draws=3, choose="best")
    honest = closed_form(market(), ours, {"ana": (1, 1), "bo": (1,), "cy": (1, 1, 1)}, "ball")
    paid = sum(each.value for each in honest.payoff.values()) / 0.5
    best = np.mean(  # ana's best, cy's best
        [
            np.sort([a, 0.2, c])[::-1] @ (1, 0.6, 0.4)
            for a in (0.1, 0.3, 0.3, 0.3)
            for c in (0.1, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3)
        ]
    )
    assert honest.regret.value == pytest.approx(2000 * best - paid, abs=1e-9)
    for copies in ((2, 1), (5, 1), (1, 0), (0, 2)):
        other = closed_form(market(), ours, {"ana": copies, "bo": (1,), "cy": (1, 1, 1)}, "ball").payoff["ana"]
        assert other.high < honest.payoff["ana"].low
    same = closed_form(market(), ours, {"ana": (3, 3), "bo": (1,), "cy": (1, 1, 1)}, "ball").payoff["ana"]
    assert abs(same.value - honest.payoff["ana"].value) <= same.error + honest.payoff["ana"].error


def test_continuous_priors_and_floats_have_their_errors() -> None:
    agents = [cp.Agent(name, 2, cp.Beta(3, 17)) for name in ("ana", "bo", "cy")]
    places = cp.Market(agents, horizon=300, positions=(1, 0.5))
    ours, honest = (
        cp.mechanism("reservoir", rounds=5, draws=2, choose="best"),
        dict.fromkeys(("ana", "bo", "cy"), (1, 1)),
    )
    found = closed_form(places, ours, honest)
    fine = cp.Market(
        [cp.Agent(name, 2, cp.Beta(3, 17).discretised(60)) for name in ("ana", "bo", "cy")], 300, positions=(1, 0.5)
    )
    near = closed_form(fine, ours, honest)
    assert found.payoff["ana"].value == pytest.approx(near.payoff["ana"].value, rel=1e-3)
    assert found.regret.value == pytest.approx(near.regret.value, rel=0.02)
    assert found.regret.error < 1e-3 * found.regret.value
