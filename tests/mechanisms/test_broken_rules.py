"""A rule that raises, or that returns what is not a number, gets one sentence that names it."""

import math

import pytest

import cloneproof as cp
from cloneproof.errors import MechanismError
from cloneproof.mechanisms import Rule


def _raises(*numbers):
    return 1 / 0


@pytest.mark.parametrize("engine", ["session", "tree", "monte-carlo"])
@pytest.mark.parametrize(
    ("priority", "outcome"),
    [
        (_raises, "but it raised ZeroDivisionError: division by zero"),
        (lambda *numbers: "best", "got 'best'"),
        (lambda *numbers: None, "got None"),
        (lambda *numbers: [1.0], r"got \[1.0\]"),
        (lambda *numbers: math.nan, "got NaN"),
    ],
)
def test_a_rule_that_returns_no_number_gets_one_sentence(priority, outcome, engine):
    mechanism = cp.Mechanism(arm=Rule("mine", priority, explore=1))
    market = cp.Market([cp.Agent("ana", 2, cp.Point(0.5))], horizon=4)
    run = list if engine == "session" else cp.evaluate
    what = (cp.simulate(market, mechanism),) if engine == "session" else (market, mechanism, None, engine)
    with pytest.raises(MechanismError, match=rf"^expected rule 'mine' to return a number, {outcome} at clock 3 with 1"):
        run(*what)


def test_chances_that_cannot_be_had_get_one_sentence():
    live = cp.session(cp.Mechanism(arm=Rule("mine", lambda *n: 1.0, randomised=True, chance=_raises)), {"ana": 2}, 4)
    with pytest.raises(MechanismError, match="expected the chances of rule 'mine' at clock 1, but it raised"):
        live.decide()
