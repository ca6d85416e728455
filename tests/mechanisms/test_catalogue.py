import math
from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof._lib.schedules import doubling_epoch
from cloneproof.bounds import smallest
from cloneproof.mechanisms import CATALOGUE, outside_conditions
from cloneproof.mechanisms.catalogue import mechanism_from_dict
from cloneproof.mechanisms.committing.committing import Committing
from support.strategies import small

BERN = cp.Discrete([0, 1], [0.5, 0.5])


def fact_three(horizon):
    return cp.Market(
        [cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=horizon, rewards="deterministic"
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_mechanism_is_restored_from_its_data(name):
    made = small(name)
    assert mechanism_from_dict(made.to_dict()) == replace(made, claims=())


def test_the_theorems_numbers():
    assert cp.mechanism("h-etc-r", market=fact_three(4000)).parameters["arm_rounds"] == 36
    million = cp.mechanism("h-etc-r", market=fact_three(10**6)).parameters
    assert (million["arm_rounds"], million["agent_rounds"]) == (59, 3717)
    assert cp.mechanism("h-etc-r", market=fact_three(4000), factor=8.0).parameters["arm_rounds"] == 144
    etc = cp.mechanism("etc", market=fact_three(10_000)).parameters["arm_rounds"]
    assert etc == math.ceil(2 * 3 * math.log(20_000))
    given_m = cp.mechanism("h-etc-r", market=fact_three(4000), arm_rounds=500).parameters
    assert given_m["agent_rounds"] == 1000


def test_smallest():
    assert [smallest(lambda n, k=k: n >= k) for k in range(1, 20)] == list(range(1, 20))


def test_doubling_epochs():
    assert [doubling_epoch(t) for t in (1, 2, 3, 4, 5, 8, 9, 16, 17)] == [1, 1, 2, 2, 3, 3, 4, 4, 5]
    assert [Committing(power=4.0).rounds_of(i) for i in (1, 2, 3)] == [
        1,
        math.floor(math.log(4) ** 4),
        math.floor(math.log(8) ** 4),
    ]


def test_conditions_are_told():
    made = cp.mechanism("h-etc-r", agent_rounds=10, arm_rounds=5)
    assert outside_conditions(made, {"ana": 2, "bo": 1}, 100) == []
    assert any("shorter" in text for text in outside_conditions(made, {"ana": 2, "bo": 1}, 19))
    assert any("3 arms" in text for text in outside_conditions(made, {"ana": 3, "bo": 1}, 100))
    assert any("committed" in text for text in outside_conditions(cp.mechanism("etc", arm_rounds=5), {"ana": 3}, 14))
