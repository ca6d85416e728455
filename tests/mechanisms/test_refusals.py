"""A call that a session refuses changes nothing: not even what it would have entered before it found out.

Where withdrawals leave nobody, a decision ends the segment, which is no refusal.
"""

import random

import pytest

import cloneproof as cp
from cloneproof.errors import CloneproofError, NobodyLeftError, PausedError
from support.strategies import SMALL

TWO = {"desk": 0.7, "phone": 0.3}
TERMS = {
    "in batches": {"batch": 3},
    "in windows": {"window": 2},
    "in batches and windows": {"batch": 4, "window": 3},
    "in segments": {"batch": 2, "segments": TWO},
    "in segments and windows": {"window": 4, "segments": TWO},
    "to a random end": {"window": 3, "ends": "at-random"},
}
NAMES = ["reservoir", "reservoir-contest", "reservoir-index", "ucb1", "h-thompson"]
ROUNDS = 80


def calls(live, dice, waiting):
    """The next call of a season in which few are left who are not paused, and those have withdrawn something."""
    agent = dice.choice(live.registration.names)
    arm = dice.randrange(2)
    other = dice.choice([None, *live.segments, "nowhere"])
    kinds = {
        "decide": lambda: live.decide(dice.choice(list(live.segments)) if live.segments else None),
        "decide elsewhere": lambda: live.decide(other),
        "reward": lambda: live.reward(waiting.pop(dice.randrange(len(waiting))) if waiting else 10**6, 1.0),
        "a reward too large": lambda: live.reward(waiting[0] if waiting else 1, 1.5),
        "withdraw": lambda: live.withdraw(agent, arm),
        "pause": lambda: live.pause(agent, dice.choice([arm, None, None])),
        "resume": lambda: live.resume(agent),
        "join": lambda: live.join("eve" if dice.random() < 0.5 else agent, 1),
    }
    return kinds[dice.choices(list(kinds), [12, 1, 5, 0.5, 0.7, 3, 1.2, 0.5])[0]]


def refusals(name, kind, seed):
    """Play a season; which errors were raised."""
    dice, found = random.Random(f"{name} {kind} {seed}"), []
    live = cp.session(
        cp.mechanism(name, **SMALL.get(name, {})), {"ana": 2, "bo": 2, "cy": 2}, 400, seed=seed, **TERMS[kind]
    )
    waiting = []
    for _ in range(ROUNDS):
        before, call, rounds, refused = live.to_json(), calls(live, dice, waiting), live.round, None
        try:
            call()
        except CloneproofError as problem:
            refused = problem
            found.append(type(problem))
        assert refused is None or isinstance(refused, NobodyLeftError) or live.to_json() == before, refused
        waiting += range(rounds + 1, live.round + 1)
    return found


@pytest.mark.parametrize("kind", TERMS)
@pytest.mark.parametrize("name", NAMES)
def test_what_is_refused_changes_nothing(name, kind):
    if name == "reservoir-index" and "batch" in TERMS[kind]:
        pytest.skip("takes no batches")
    assert PausedError in {error for seed in range(12) for error in refusals(name, kind, seed)}


def test_an_arm_of_no_weight_is_not_left_while_all_others_are_paused():
    live = cp.session(
        cp.mechanism("reservoir-contest", **SMALL["reservoir-contest"]), {"ana": 2}, 60, weights={"ana": (0, 1)}
    )
    live.decide()
    live.pause("ana", 1)
    before = live.to_json()
    with pytest.raises(PausedError):
        live.decide()
    assert live.to_json() == before
    live.resume("ana")
    assert live.decide().arm == 1
