"""The property of reservoirs: ours keep it, and what looks at the number of arms is caught."""

from dataclasses import replace

import pytest

import cloneproof as cp
from cloneproof.analysis.properties.reservoir_check import reservoir
from cloneproof.mechanisms.online import epoch_state
from cloneproof.mechanisms.online.slot_state import SlotState
from cloneproof.mechanisms.online.two_level_state import TwoLevelState

FLAT = cp.mechanism("reservoir", rounds=3, draws=2, threshold=3)
CONTEST = cp.mechanism("reservoir-contest", rounds=3, draws=2, threshold=3, horizon=100)
ON_SLOTS = replace(cp.rule("ucb"), draws=3, name="ucb on slots")


@pytest.mark.parametrize(
    "mechanism",
    [
        FLAT,
        CONTEST,
        cp.mechanism("reservoir", rounds=2, draws=3, choose="best"),
        cp.mechanism("reservoir", rounds=3, draws=2, threshold=3, fallback="draw"),
        cp.mechanism("reservoir-contest", rounds=2, draws=2, horizon=100, contest="ucb"),
        cp.Mechanism(arm=ON_SLOTS),
        cp.Mechanism(arm=ON_SLOTS, agent=cp.rule("ucb")),
        cp.mechanism("etc", arm_rounds=2),  # draws nothing, so that nothing is asked
    ],
)
def test_it_is_kept(mechanism):
    assert list(reservoir(mechanism)) == []


def test_it_is_one_of_the_checks():
    assert "reservoir" in {result.name for result in cp.check_mechanism(FLAT).results}


class LongerTests(SlotState):
    """Tests are longer where many arms are registered."""

    def __init__(self, mechanism, registration, horizon, stream, first=0):
        super().__init__(mechanism, registration, horizon, stream, first)
        self.level.explore += max(registration.arms) > 2


class LargeAgentsFirst(SlotState):
    """The timetable begins with the agents of the most arms."""

    def __init__(self, mechanism, registration, horizon, stream, first=0):
        super().__init__(mechanism, registration, horizon, stream, first)
        self.level.arms = self.slots = sorted(self.slots, key=lambda slot: -registration.arms[slot[0]])


class LaterChampion(TwoLevelState):
    """The tests of an agent with many arms are longer."""

    def __init__(self, mechanism, registration, horizon, stream, first=0):
        super().__init__(mechanism, registration, horizon, stream, first)
        self.inner[0].explore += registration.arms[0] > 5


@pytest.mark.parametrize(
    ("name", "state", "mechanism"),
    [
        ("SlotState", LongerTests, FLAT),
        ("SlotState", LargeAgentsFirst, FLAT),
        ("TwoLevelState", LaterChampion, CONTEST),
    ],
)
def test_a_state_that_peeks_is_caught(monkeypatch, name, state, mechanism):
    monkeypatch.setattr(epoch_state, name, state)
    assert "though every slot has the same rewards" in next(reservoir(mechanism))
    with pytest.raises(cp.errors.ConformanceError, match="reservoir: with"):
        cp.check_mechanism(mechanism)
