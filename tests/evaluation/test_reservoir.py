"""The reservoir in closed form against plain enumeration in fractions, the exact regret formula and the simulator."""

import random
from fractions import Fraction

import pytest

import cloneproof as cp
from cloneproof.laws.means import CopiedOriginal
from cloneproof.mechanisms.reservoir.law import reservoir_rewards
from support.reservoir_by_hand import averaged


def cases(number):
    """Random small reservoirs: one to three agents, copies and withholdings, every kind of horizon."""
    draw = random.Random(16)
    for _ in range(number):
        agents = draw.choice([1, 1, 2, 2, 3])
        originals = [draw.choice([1, 2]) if agents < 3 else 1 for _ in range(agents)]
        copies = [tuple(draw.choice([0, 1, 1, 2, 3]) for _ in range(count)) for count in originals]
        copies = [own if any(own) else (1,) * len(own) for own in copies]
        draws, pulls = draw.randint(1, 2), draw.randint(1, 2 if agents > 1 else 3)
        kind = draw.choice(["first-pass", "best"])
        if kind == "best":
            reservoir = cp.mechanism("reservoir", draws=draws, rounds=pulls, choose="best")
        else:
            reservoir = cp.mechanism("reservoir", draws=draws, rounds=pulls, threshold=draw.randint(1, pulls))
        values = sorted(draw.sample([0.0, 0.25, 0.5, 0.75, 1.0], 2))
        weights = draw.choice([(Fraction(1, 2), Fraction(1, 2)), (Fraction(1, 4), Fraction(3, 4))])
        tests = draws * pulls * agents
        yield originals, copies, reservoir, values, weights, draw.randint(1, tests + 4)


@pytest.mark.parametrize("case", list(cases(60)))
def test_the_closed_form_is_the_enumeration(case):
    originals, copies, reservoir, values, weights, horizon = case
    atoms = tuple(zip(values, weights, strict=True))
    agents = [[CopiedOriginal(atoms, count) for count in own if count] for own in copies]
    exact = averaged([Fraction(v) for v in values], weights, originals, copies, reservoir, horizon)
    for ours, theirs in zip(reservoir_rewards(agents, reservoir.arm, horizon), exact, strict=True):
        assert ours == pytest.approx(float(theirs), rel=1e-13, abs=1e-13)
