"""Rules are pure functions of numbers: a compiler can take them as they are."""

import math
from dataclasses import replace

import numba
import pytest

import cloneproof as cp
from cloneproof.market.rewards import BOUNDED, family_names, reward_family
from cloneproof.mechanisms import CATALOGUE
from cloneproof.mechanisms.bandits.rule import PriorityInputs
from cloneproof.mechanisms.bandits.rules import RULES, rule_to_dict
from support.rule_checks import rules_of
from support.sizes import LONG
from support.strategies import small

IN_CATALOGUE = {rule.name for name in CATALOGUE for rule in rules_of(small(name))}  # and checked with it


def test_a_users_own_bonus_compiles_with_the_rule():
    own = numba.njit(lambda t, n: t / n)
    rule = cp.rule("ucb", bonus=own)
    assert numba.njit(rule.priority)(PriorityInputs(6.0, 0.0, 2.0, 0.5, 0.0, 0.0, 3.0)) == 3.5


@pytest.mark.parametrize("name", RULES)
def test_a_rule_is_restored_from_its_data(name):
    rule = cp.rule(name)
    data = rule_to_dict(rule)
    assert cp.rule(data.pop("rule"), **data) == rule


@pytest.mark.parametrize("name", [name for name in RULES if LONG or name not in IN_CATALOGUE])
def test_every_rule_makes_conforming_mechanisms(name):
    """A new rule is covered from its first day, on both levels."""
    assert cp.check_mechanism(cp.bandit(agent=cp.rule(name), arm=cp.rule(name))).failed == []


INDICES = {"uniform": "none", "thompson": "posterior"} | {
    name: name for name in ("epsilon-greedy", "kl-ucb", "steady-kl-ucb", "steady-ucb", "ucb")
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_declares_what_it_is(name):
    """Its function declares an index that engines know, or none; one in its place is the user's, whatever the name."""
    rule = cp.rule(name)
    assert rule.index == INDICES.get(name, "own")
    assert rule.uniform == (name == "uniform")
    assert rule.steady == (name in ("steady-ucb", "steady-kl-ucb"))
    other = replace(rule, priority=lambda *numbers: 0.0)
    assert (other.index, other.uniform, other.steady) == ("own", False, False)
    assert not replace(rule, tries=1).uniform


def test_a_reward_family_declares_its_law():
    laws = {"bernoulli": "coin", "beta": "beta", "deterministic": "point", "gaussian": "normal"}
    for name in family_names():
        assert reward_family(name).law == laws.get(name, "own")
    assert BOUNDED.law == "own"


def test_whole_floats_are_whole_numbers():
    assert cp.mechanism("etc", arm_rounds=2.0).to_dict() == cp.mechanism("etc", arm_rounds=2).to_dict()
    agents = [cp.Agent("ana", 2.0, cp.Point(0.5))]
    assert repr(cp.Market(agents, horizon=1e6)) == repr(cp.Market([cp.Agent("ana", 2, cp.Point(0.5))], horizon=10**6))
    assert cp.session(cp.mechanism("ucb1"), {"ana": 2.0}, 1e6, seed=1.0).to_json() == (
        cp.session(cp.mechanism("ucb1"), {"ana": 2}, 10**6, seed=1).to_json()
    )
    for horizon in (1.5, True, "10", math.inf, math.nan):
        with pytest.raises(cp.errors.MarketError, match="horizon to be a whole number"):
            cp.Market(agents, horizon=horizon)


def test_the_docstring_names_every_rule():
    assert [name for name in RULES if f'"{name}"' not in cp.rule.__doc__] == []


AT_16 = PriorityInputs(16, math.log(16), 4, 0.5, 0, 0, 3)


def test_the_bonuses():
    assert cp.rule("ucb").priority(AT_16, 2.0) == 0.5 + math.sqrt(2 * math.log(16) / 4)


def test_the_clocks():
    assert (cp.mechanism("h-ucb").agent.clock, cp.mechanism("h-ucb").arm.clock) == ("current", "completed")
    assert cp.mechanism("ucb1").arm.clock == "current"
