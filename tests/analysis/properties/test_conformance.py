"""Every mechanism passes; and for each check there is a broken mechanism that it catches."""

import math
import random
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest

import cloneproof as cp
from cloneproof._randomness import uniform
from cloneproof.analysis.properties.conformance import (
    CHECKS,
    TIE_SEEDS,
    bounds_hold,
    picks_have_the_declared_chances,
    reservoir,
    unlikely_counts,
)
from cloneproof.mechanisms import CATALOGUE
from cloneproof.mechanisms.online import segment
from cloneproof.mechanisms.online.levels import Level
from cloneproof.mechanisms.online.slots import first_pass
from cloneproof.mechanisms.online.state import SlotState, TwoLevelState
from cloneproof.mechanisms.rule import Rule
from support.sizes import LONG
from support.strategies import small


@pytest.fixture(autouse=not LONG)
def quick(request):
    """Ties are judged from fewer seeds, except where the test is about a small bias."""
    if "ucb1" not in request.node.name and "one_in_five" not in request.node.name:
        request.getfixturevalue("fewer_seeds")


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_mechanism_conforms(name):
    report = cp.check_mechanism(small(name))
    assert {result.name for result in report.results} == set(CHECKS)
    assert report.failed == []
    assert "3 agents" in report.scope


OPTIONS = [
    ("etc", {"order": "index"}),
    ("etc", {"order": "block", "choice": "greedy"}),
    ("uniform-etc", {"order": "block"}),
    ("h-etc-r", {"order": "block", "agent_order": "block"}),
    ("h-etc-r", {"order": "index", "choice": "greedy"}),
    ("holdout-h-etc", {"agent_order": "index"}),
]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_every_option_conforms(name, options):
    assert cp.check_mechanism(small(name, **options)).failed == []


def test_the_index_order_declares_that_it_is_not_invariant():
    assert not small("etc", order="index").permutation_invariant
    assert not small("h-etc-r", agent_order="index").permutation_invariant
    assert small("h-etc-r", order="block").permutation_invariant


def flat(priority, **options):
    return cp.Mechanism(arm=Rule("broken", priority, **options))


def failed_checks(mechanism):
    return {result.name for result in cp.check_mechanism(mechanism).failed}


def test_a_rule_with_its_own_dice_or_memory_is_caught():
    dice, calls = random.Random(0), count()
    failed = failed_checks(flat(lambda *numbers: dice.random()))
    assert {"same seed same run", "restored run continues"} <= failed
    assert "same seed same run" in failed_checks(flat(lambda *numbers: next(calls) ** 2 % 11))


def test_a_rule_that_looks_at_the_order_of_its_calls_is_caught():
    """It favours whoever is asked first in a round: the lowest label."""
    last = [None]

    def first_come(inputs):
        new, last[0] = last[0] != inputs.clock, inputs.clock
        return float(new)

    failed = failed_checks(flat(first_come))
    assert {"relabelled run", "ties are uniform"} <= failed


def test_a_rule_that_falsely_claims_invariance_is_caught():
    class Sly(Rule):
        permutation_invariant = True

    sly = Sly("sly", cp.rule("etc", rounds=2).priority, explore=2, order="index", commits=True)
    assert {"relabelled run", "ties are uniform"} <= failed_checks(cp.Mechanism(arm=sly))


def by_softmax(inputs, temperature):
    return inputs.mean / temperature - math.log(-math.log(inputs.draw))


def shares(clock, pulls, means, outstanding, temperature):
    weights = np.exp(means / temperature)
    return weights / weights.sum(axis=0)


@pytest.mark.parametrize("explore", [0, 2])
@pytest.mark.parametrize("commits", [False, True])
def test_chances_that_are_not_those_of_the_picks_are_caught(explore, commits):
    """A rule that commits without exploration knows nothing, so that uniform is the truth."""
    rule = Rule("lying", by_softmax, (0.1,), explore=explore, commits=commits, chance=shares)
    lying = replace(rule, chance=lambda clock, pulls, means, *_: 0 * means + 1 / len(means))
    for truth in (cp.Mechanism(arm=rule), cp.Mechanism(agent=rule, arm=cp.rule("ucb"))):
        assert list(picks_have_the_declared_chances(truth)) == []
    for lie in (cp.Mechanism(arm=lying), cp.Mechanism(agent=cp.rule("ucb"), arm=lying)):
        said = next(picks_have_the_declared_chances(lie), "")
        assert ("its `chance` says 0.3333" in said) == (explore > 0 or not commits)


def test_bounds_that_the_priority_passes_are_caught():
    """All built-in rules with a bound keep it; one that forgets the clock, and a test that says too much, do not."""
    rules = [cp.rule(name) for name in ("ucb", "slow-ucb", "kl-ucb", "steady-ucb", "steady-kl-ucb")]
    assert all(rule.bound is not None and list(bounds_hold(cp.Mechanism(arm=rule))) == [] for rule in rules)
    ucb = rules[0]
    for lie in (
        replace(ucb, bound=lambda inputs, constant: inputs.mean + 1e-3),
        replace(ucb, bound=lambda inputs, constant: ucb.priority(inputs, constant) * (1 - 1e-9)),
        replace(ucb, exceeds=lambda inputs, level, constant: inputs.mean + 3 > level),
    ):
        assert "bounds hold" in failed_checks(cp.Mechanism(arm=lie))


def test_the_check_of_chances_is_one_of_the_suite():
    lying = Rule("lying", by_softmax, (0.1,), chance=lambda clock, pulls, means, *_: 0 * means + 1 / len(means))
    assert failed_checks(cp.Mechanism(arm=lying)) == {"picks have the declared chances"}


def test_chances_that_forget_outstanding_rewards_are_caught():
    """Ties go to the fewest outstanding: a uniform choice among the best means is not what is picked."""

    def forgetful(clock, pulls, means, outstanding):
        best = means == means.max(axis=0)
        return best / best.sum(axis=0)

    def true(clock, pulls, means, outstanding):
        best = means == means.max(axis=0)
        best &= outstanding == np.where(best, outstanding, np.inf).min(axis=0)
        return best / best.sum(axis=0)

    for chance, caught in ((true, False), (forgetful, True)):
        made = cp.Mechanism(arm=Rule("greedy", lambda inputs: inputs.mean, chance=chance))
        assert bool(next(picks_have_the_declared_chances(made), "")) == caught


SECRET = cp.Point(0.9)


def by_global(inputs):
    return SECRET.mean


def by_default(inputs, *, prior=SECRET):
    return prior.mean


def by_nested(inputs):
    def inside():
        return SECRET.mean

    return inside()


def by_closure(market):
    return lambda inputs: market.agents[0].priors[0].mean


class Known:
    """A callable whose class knows a prior."""

    prior = SECRET

    def __call__(self, *numbers):
        return self.prior.mean


@pytest.mark.parametrize("rule", [
    by_global, by_default, by_nested, by_closure(cp.Market([cp.Agent("ana", 2, SECRET)], horizon=5)), Known(),
    partial(lambda prior, *numbers: prior.mean, SECRET),
])  # fmt: skip
def test_a_rule_that_knows_a_prior_is_caught_however_deep_it_is_hidden(rule):
    assert failed_checks(flat(rule)) == {"nothing private is reachable"}


@pytest.mark.parametrize("rule", [lambda *n: float("nan"), lambda *n: 1 / 0, lambda *n: None])
def test_a_rule_that_returns_no_number_is_caught(rule):
    assert "every round served" in failed_checks(flat(rule))


def one_in_five_to_the_lowest_key(level, ties, purpose, index, one_of=Level._one_of):
    """Shares of 0.40 and 0.20 instead of 1/4, just beyond what the check promises to find."""
    lowest = min(ties, key=level.keys.__getitem__)
    return lowest if uniform(level._streams[purpose], 10**6 + index) < 0.2 else one_of(level, ties, purpose, index)


def counted_twice(session, decision, value, repeated=cp.Session._repeated):
    repeated(session, decision, value)
    session.sums[0] += round(value * 2**30)


def the_latest_counts_most(level, k, ticks, place):
    level.arrived[k] += 1
    level.total[k] = level.total[k] // 2 + ticks
    level.means[k] = level.total[k] / (level.arrived[k] << 30)
    level.missing -= 1


def paid_to_the_first(session, decision, value, reward=cp.Session.reward):
    reward(session, decision, value)
    session.sums[0] += 1 << 28


def forgotten_outstanding(level, to_dict=Level.to_dict):
    return to_dict(level) | {"missing": 0}


GREEDY = cp.Mechanism(arm=cp.rule("etc", rounds=5, choice="greedy"))


@pytest.mark.parametrize(
    ("place", "name", "fault", "mechanism", "check"),
    [
        (Level, "_one_of", one_in_five_to_the_lowest_key, small("ucb1"), "ties are uniform"),
        (cp.Session, "_repeated", counted_twice, small("ucb1"), "order of arrival is irrelevant"),
        (Level, "add", the_latest_counts_most, GREEDY, "order of arrival is irrelevant"),
        (cp.Session, "reward", paid_to_the_first, small("ucb1"), "ledger pays the share"),
        (Level, "to_dict", forgotten_outstanding, small("etc"), "restored run continues"),
    ],
)
def test_a_planted_fault_is_caught(place, name, fault, mechanism, check, monkeypatch):
    monkeypatch.setattr(place, name, fault)
    failed = failed_checks(mechanism)
    assert check in failed
    if fault in (one_in_five_to_the_lowest_key, counted_twice):
        assert failed == {check}


@pytest.mark.parametrize(("off", "called"), [(0.0, 0.0), (0.14, 1.0), (-0.14, 1.0)])
def test_equal_shares_are_never_called_biased_and_a_bias_of_the_promised_size_is(off, called):
    """Of 16 events that happen in 1150 trials, judged as `ties are uniform` does: both errors once in a million."""
    counts = np.random.default_rng(1).binomial(TIE_SEEDS, 0.25 + off, size=(200, 16))
    assert np.mean([len(unlikely_counts(row, TIE_SEEDS, 0.25, 16)) / 16 for row in counts]) == called


FLAT = cp.mechanism("reservoir", rounds=3, draws=2, threshold=3)
CONTEST = cp.mechanism("reservoir-contest", rounds=3, draws=2, threshold=3, horizon=100)
ON_SLOTS = replace(cp.rule("ucb"), slots=cp.parts.Slots(3), name="ucb on slots")


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


def lengthen(level, more):
    """Let the tests of slots be longer."""
    level.judge = first_pass(level.explore + more, level.rule.slots.threshold)
    level.seat(level.order, level.openings)


class LongerTests(SlotState):
    """Tests are longer where many arms are registered."""

    def __init__(self, setup):
        super().__init__(setup)
        lengthen(self.level, max(setup.registration.arms) > 2)


class LargeAgentsFirst(SlotState):
    """The timetable begins with the agents of the most arms."""

    def __init__(self, setup):
        super().__init__(setup)
        self.candidates = sorted(self.candidates, key=lambda slot: -setup.registration.arms[slot[0]])


class LaterChampion(TwoLevelState):
    """The tests of an agent with many arms are longer."""

    def __init__(self, setup):
        super().__init__(setup)
        lengthen(self.inner[0], setup.registration.arms[0] > 5)


@pytest.mark.parametrize(
    ("name", "peeking", "mechanism"),
    [
        ("SlotState", LongerTests, FLAT),
        ("SlotState", LargeAgentsFirst, FLAT),
        ("TwoLevelState", LaterChampion, CONTEST),
    ],
)
def test_a_state_that_peeks_is_caught(monkeypatch, name, peeking, mechanism):
    monkeypatch.setattr(segment, name, peeking)
    assert "though every slot has the same rewards" in next(reservoir(mechanism))
    assert [result.name for result in cp.check_mechanism(mechanism).failed] == ["reservoir"]
