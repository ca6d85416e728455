"""Every mechanism passes; and for each check there is a broken mechanism that it catches."""

import math
import random
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.conformance import CHECKS, picks_have_the_declared_chances
from cloneproof.mechanisms import CATALOGUE
from cloneproof.mechanisms.bandits.levels import Level
from cloneproof.mechanisms.bandits.rule import Rule
from support.strategies import small


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
    ("h-etc-r", {"agent_order": "index"}),
]


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_every_option_conforms(name, options):
    assert cp.check_mechanism(small(name, **options)).failed == []


def flat(priority, **options):
    return cp.bandit(arm=Rule("broken", priority, **options))


def failed_checks(mechanism):
    return {result.name for result in cp.check_mechanism(mechanism).failed}


def test_a_rule_with_its_own_dice_or_memory_is_caught():
    dice, calls = random.Random(0), count()
    failed = failed_checks(flat(lambda *numbers: dice.random()))
    assert {"same seed same run", "restored run continues"} <= failed
    assert "same seed same run" in failed_checks(flat(lambda *numbers: next(calls) ** 2 % 11))


def by_softmax(inputs, temperature):
    return inputs.mean / temperature - math.log(-math.log(inputs.draw))


def shares(clock, pulls, means, outstanding, temperature):
    weights = np.exp(means / temperature)
    return weights / weights.sum(axis=0)


@pytest.mark.parametrize("explore", [0, 2])
def test_chances_that_are_not_those_of_the_picks_are_caught(explore):
    rule = Rule("lying", by_softmax, (0.1,), tries=explore, chance=shares)
    lying = replace(rule, chance=lambda clock, pulls, means, *_: 0 * means + 1 / len(means))
    for truth in (cp.bandit(arm=rule), cp.bandit(agent=rule, arm=cp.rule("ucb"))):
        assert list(picks_have_the_declared_chances(truth)) == []
    for lie in (cp.bandit(arm=lying), cp.bandit(agent=cp.rule("ucb"), arm=lying)):
        said = next(picks_have_the_declared_chances(lie), "")
        assert "its `chance` says 0.3333" in said


def test_the_check_of_chances_is_one_of_the_suite():
    lying = Rule("lying", by_softmax, (0.1,), chance=lambda clock, pulls, means, *_: 0 * means + 1 / len(means))
    assert failed_checks(cp.bandit(arm=lying)) == {"picks have the declared chances"}


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
        made = cp.bandit(arm=Rule("greedy", lambda inputs: inputs.mean, chance=chance))
        assert bool(next(picks_have_the_declared_chances(made), "")) == caught


@pytest.mark.parametrize("rule", [lambda *n: float("nan"), lambda *n: 1 / 0, lambda *n: None])
def test_a_rule_that_returns_no_number_is_caught(rule):
    assert "every round served" in failed_checks(flat(rule))


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


GREEDY = cp.mechanism("etc", arm_rounds=5, choice="greedy")


@pytest.mark.parametrize(
    ("place", "name", "fault", "mechanism", "check"),
    [
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
    if fault is counted_twice:
        assert failed == {check}
