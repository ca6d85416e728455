"""Weights: a list with copies and the same shares declared as weights have one law (docs/textbook/weights.md)."""

import random
from collections import Counter
from fractions import Fraction
from itertools import product
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof.mechanisms import neutral, streams
from cloneproof.mechanisms.bandits import levels
from cloneproof.mechanisms.registration import WeightedArms
from cloneproof.mechanisms.reservoir import rank
from support.late_by_hand import Script
from support.sizes import LONG

PRIOR = cp.Discrete([0.3, 0.7], [0.5, 0.5])
MARKET = cp.Market([cp.Agent(name, 2, PRIOR) for name in ("ana", "bo")], horizon=40)
MECHANISMS = {
    "first pass": cp.mechanism("reservoir", rounds=1, draws=2, threshold=1),
    "two pulls": cp.mechanism("reservoir", rounds=2, draws=2, threshold=2),
    "best of all": cp.mechanism("reservoir", rounds=1, draws=2, choose="best"),
    "sums": cp.mechanism("reservoir", rounds=1, draws=2, threshold=0.7, coins=False),
    "contest": cp.mechanism("reservoir-contest", rounds=1, draws=2, threshold=1, horizon=6),
    "best in a contest": cp.mechanism("reservoir-contest", rounds=1, draws=2, choose="best", contest="ucb", horizon=6),
    "index": cp.mechanism("reservoir-index", draws=2, constant=0.5),
    "bars": cp.mechanism("reservoir-bars", bars=0.5, stake=0.5, draws=2),
}
SMALL = [name for name in MECHANISMS if "unknown" not in name]
TERMS = {"prompt": (5, 0), "late": (6, 2)}  # rounds, of them late
REWARDS = {"ana": (1.0, 0.0, 0.5), "bo": (0.5,)}
MOST_LISTED = 5 if LONG else 4
LISTS = [own for own in product(range(4), repeat=3) if sum(own) == 2 or (2 < sum(own) <= MOST_LISTED and all(own))]
LISTS = LISTS if LONG else LISTS[1::2]


class Die:
    """A uniform number whose outcomes are branches of a script, as many as a draw or a coin needs."""

    def __init__(self, script):
        self.script = script

    def __mul__(self, sides):
        return self.script.choose([Fraction(1, sides)] * sides)

    def __lt__(self, value):
        chance = Fraction(value)
        return bool(self.script.choose([1 - chance, chance])) if 0 < chance < 1 else chance == 1


def law_of_pay(mechanism, copies, weighted, rounds, delay):
    """The law of what all agents earn, in fractions, through the real session: every draw, tie and coin is a branch.

    Ana registers `copies` of her items, or each once with `copies` as weights.
    """
    script, law = Script(), Counter()
    items = range(len(copies)) if weighted else [item for item, often in enumerate(copies) for _ in range(often)]
    rewards = REWARDS | {"ana": [REWARDS["ana"][item] for item in items]}
    terms = {"seed": 5, "weights": {"ana": copies} if weighted else None}
    die = Die(script)
    with (
        patch.object(levels, "uniform", lambda *_: die),
        patch.object(neutral, "uniform", lambda *_: die),
        patch.object(streams, "uniform", lambda *_: die),
    ):
        for _ in script.leaves():
            live, due = cp.session(mechanism, {name: len(own) for name, own in rewards.items()}, rounds, **terms), []
            for number in range(1, rounds + 1):
                decision = live.decide()
                due.append((number, rewards[decision.agent][decision.arm]))
                while due and (due[0][0] <= number - delay or number == rounds):
                    live.reward(*due.pop(0))
            law[tuple(live.payoff.values())] += script.weight
    return law


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("name", SMALL)
def test_a_list_with_copies_has_the_law_of_its_weights(name, terms):
    for copies in LISTS:
        listed, declared = (law_of_pay(MECHANISMS[name], copies, weighted, *TERMS[terms]) for weighted in (False, True))
        assert sum(listed.values()) == 1
        assert declared == listed, copies


def equal_in_neutral_rounds(self, registration, stream, withdrawals):
    """Neutral rounds that know nothing of weights."""
    original_neutral(self, registration, stream, withdrawals)
    self._pools = [list(range(count)) for count in registration.arms]


def more_draws(rule, stream, pool):
    """A draw more where weights are declared."""
    return original_slots(rule, stream, pool) + ([pool[levels.uniform(stream, 0) * len(pool)]] * weighted(pool))


def without_replacement(rule, stream, pool):
    """Draws by weights that avoid what was drawn before, as long as they can."""
    held = []
    for slot in range(rule.draws):
        left = [arm for arm in pool if not weighted(pool) or arm not in held] or list(pool)
        held.append(left[levels.uniform(stream, slot) * len(left)])
    return held


def weighted(pool):
    return isinstance(pool, WeightedArms)


original_neutral, original_slots = neutral.NeutralRounds.__init__, rank.agent_slots
FAULTS = {
    "weights ignored in waiting rounds": (
        neutral.NeutralRounds, "__init__", equal_in_neutral_rounds, "best of all", "late",
    ),
    "weights that bring draws": (rank, "agent_slots", more_draws, "index", "prompt"),
    "weights without replacement": (rank, "agent_slots", without_replacement, "first pass", "prompt"),
    "weights ignored": (WeightedArms, "__getitem__", lambda self, place: self._arms[place % len(self._arms)],
                        "contest", "prompt"),
    "weights off by one": (WeightedArms, "__getitem__", lambda self, place: next(
        arm for arm, end in zip(self._arms, self._ends, strict=True) if place <= end), "two pulls", "prompt"),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_weights_have_another_law(fault, monkeypatch):
    *place, name, terms = FAULTS[fault]
    monkeypatch.setattr(*place)
    with pytest.raises(AssertionError):
        test_a_list_with_copies_has_the_law_of_its_weights(name, terms)


def play(mechanism, copies, as_weights, seed, window):
    """Decisions by item with their chances, for random rewards that come late, with withdrawals and a save."""
    dice = random.Random(seed)
    as_lists = {name: [item for item, often in enumerate(own) for _ in range(often)] for name, own in copies.items()}
    items = {name: list(range(len(copies[name]))) if name in as_weights else own for name, own in as_lists.items()}
    live = cp.session(
        mechanism, {name: len(own) for name, own in items.items()}, 60, seed=seed, window=window,
        weights={name: copies[name] for name in as_weights},
    )  # fmt: skip
    rates = {(name, item): dice.random() for name, own in copies.items() for item in range(len(own))}
    gone = dice.choice(list(copies))
    withdrawn = dice.randrange(20, 200), dice.choice(as_lists[gone])
    shown = []
    for number in range(60):
        if number == 30:
            live = cp.Session.from_json(live.to_json())
        if number == withdrawn[0]:
            for arm in [arm for arm, item in enumerate(items[gone]) if item == withdrawn[1]]:
                live.withdraw(gone, arm)
        try:
            decision = live.decide()
        except cp.errors.NobodyLeftError:
            return shown
        item = items[decision.agent][decision.arm]
        shown.append((decision.agent, item, decision.phase, live.probability))
        values = {due: dice.random() < rates[decision.agent, item] for due in live.pending}
        for due in [due for due in live.pending if dice.random() < 0.6]:
            live.reward(due, float(values[due]))
    return shown


@pytest.mark.parametrize("name", MECHANISMS)
def test_weights_draw_what_copies_draw(name):
    """One seed, one run: a copy and its item's weight are the same places of one list."""
    dice = random.Random(7)
    for seed in range(200 if LONG else 12):
        sizes = {agent: dice.randint(1, 4) for agent in ("ana", "bo", "cy")}
        copies = {agent: [dice.randint(0, 3) for _ in range(size)] for agent, size in sizes.items()}
        copies = {agent: tuple(own) if any(own) else (1,) * len(own) for agent, own in copies.items()}
        window = dice.choice([None, 4])
        listed = play(MECHANISMS[name], copies, (), seed, window)
        declared = play(MECHANISMS[name], copies, dice.sample(list(copies), dice.randint(1, 3)), seed, window)
        assert [one[:3] for one in declared] == [one[:3] for one in listed]
        for (agent, item, _, chance), (*_, of_copy) in zip(declared, listed, strict=True):
            assert chance == 1.0 or (chance is None) is (of_copy is None)  # of several copies any may be drawn
            own = [1, *(copies[agent][item] / part for part in range(1, 1 + copies[agent][item]))]
            assert None in (chance, of_copy) or any(chance == pytest.approx(of_copy * factor) for factor in own)


@pytest.mark.parametrize("weights", [(1, 1, 1), (7, 7, 7), (1000, 1000, 1000)])
def test_equal_weights_are_none(weights):
    def shown(declared):
        live = cp.session(MECHANISMS["first pass"], {"ana": 3, "bo": 2}, 30, seed=9, weights=declared)
        return [(live.decide(), live.probability, live.reward(number, 0.5)) for number in range(1, 31)]

    assert shown({"ana": weights}) == shown(None)


def test_an_item_of_weight_0_is_never_shown_and_the_chance_of_a_draw_is_its_share():
    live = cp.session(
        cp.mechanism("reservoir", rounds=1, draws=600, threshold=1), {"ana": 3}, 600, weights={"ana": (3, 0, 1)}
    )
    seen = Counter()
    for _ in range(600):
        decision = live.decide()
        assert live.probability == {0: 0.75, 2: 0.25}[decision.arm]
        live.reward(decision.id, 0.0)
        seen[decision.arm] += 1
    assert abs(seen[0] - 450) < 5 * (600 * 3 / 16) ** 0.5  # fails once in a million seeds
