"""Whole floats such as 1e6 are whole numbers; anything else gets one sentence."""

import math

import pytest

import cloneproof as cp
from cloneproof.errors import MechanismError


@pytest.mark.parametrize(("rounds", "advice"), [("abc", "use e.g. 40"), (2.5, "round it up"), (0, "use e.g. 40")])
def test_rounds_that_are_no_whole_number(rounds, advice):
    with pytest.raises(MechanismError, match=rf"whole number from 1 to 10\^15, got {rounds!r}; {advice}"):
        cp.mechanism("etc", arm_rounds=rounds)
    assert cp.mechanism("etc", arm_rounds=2.0).to_dict() == cp.mechanism("etc", arm_rounds=2).to_dict()


def test_whole_floats_are_whole_numbers():
    agents = [cp.Agent("ana", 2.0, cp.Point(0.5))]
    assert repr(cp.Market(agents, horizon=1e6)) == repr(cp.Market([cp.Agent("ana", 2, cp.Point(0.5))], horizon=10**6))
    assert cp.session(cp.mechanism("ucb1"), {"ana": 2.0}, 1e6, seed=1.0).to_json() == (
        cp.session(cp.mechanism("ucb1"), {"ana": 2}, 10**6, seed=1).to_json()
    )
    assert cp.parts.HoldOut(3.0, 2.0) == cp.parts.HoldOut(3, 2)
    assert repr(cp.parts.HoldOut(3.0, 2.0)) == "HoldOut(rounds=3, max_arms=2)"
    for horizon in (1.5, True, "10", math.inf, math.nan):
        with pytest.raises(cp.errors.MarketError, match="expected a horizon that is a whole number"):
            cp.Market(agents, horizon=horizon)
