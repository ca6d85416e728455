"""The stepping kernel against the reference simulator, run by run on the same tapes."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of, simulate_run
from cloneproof.market import full_copies
from cloneproof.market.rewards import RewardFamily
from cloneproof.mechanisms import CATALOGUE, Rule
from cloneproof.mechanisms.terms import Terms, refusal
from support import market_strategies
from support.reference_runs import played, reference_outcomes, stepped
from support.sizes import LONG
from support.strategies import copies_of, markets, small

SEEDS = st.integers(0, 2**63 - 1)
rules = st.sampled_from(
    [
        cp.rule("ucb"), cp.rule("ucb", constant=0.5, clock="completed"), cp.rule("uniform"),
        cp.rule("epsilon-greedy", c=0.3), cp.rule("epsilon-greedy", c=7.0),
        cp.rule("thompson"), cp.rule("kl-ucb", constant=0.7), cp.rule("kl-ucb", clock="completed"),
        cp.rule("steady-ucb", horizon=80, rounds=3),
    ]
)  # fmt: skip


@st.composite
def mechanisms(draw):
    """Bandits of any rules, and all that explores and then commits, or is greedy from then on."""
    if draw(st.booleans()):
        return draw(market_strategies.committing_mechanisms(greedy=True))
    return cp.bandit(arm=draw(rules), agent=draw(st.none() | rules))


def agree(market, mechanism, copies, seed, run):
    """The same payoffs to the last bit, and as much of each arm; regret and means are added in another order.

    Tapes are an arm's own, so that another decision mostly pays something else, and leads to others.
    """
    job = runs_of(market, mechanism, full_copies(market.agents, copies), seed)
    first, count = max(0, run - 1), 2
    found = played(stepped, job, first, count)
    expected = reference_outcomes(job, first, count)
    assert found.payoff.tolist() == expected.payoff.tolist()
    assert found.regret == pytest.approx(expected.regret, rel=1e-12, abs=1e-12)
    assert found.served == pytest.approx(expected.served, rel=1e-12, abs=1e-12)


def takes(mechanism, market):
    return refusal(mechanism, Terms.of(market)) is None


@given(markets(max_horizon=80), mechanisms(), SEEDS, st.integers(0, 10**6), st.data())
@settings(max_examples=150 if LONG else 40)
def test_every_mechanism_on_every_family(market, mechanism, seed, run, data):
    if takes(mechanism, market):
        agree(market, mechanism, data.draw(copies_of(market)), seed, run)


@given(market_strategies.markets(max_horizon=60), mechanisms(), SEEDS, st.data())
def test_ties_are_common_where_means_are_eighths(market, mechanism, seed, data):
    if takes(mechanism, market):
        agree(market, mechanism, data.draw(market_strategies.copies_for(market)), seed, 5)


@pytest.mark.parametrize("name", [name for name in CATALOGUE if "reservoir" not in name])
def test_the_catalogue_over_a_longer_horizon(name):
    market = cp.Market(
        [cp.Agent("ana", 3, cp.Uniform()), cp.Agent("bo", 2, cp.Beta(2, 2)), cp.Agent("cy", 1, cp.Point(0.6))],
        horizon=700 if LONG else 300, share=0.4, rewards="beta" if name in ("thompson", "h-ucb") else "bernoulli",
    )  # fmt: skip
    agree(market, small(name), {"ana": (0, 3, 1), "bo": (2, 5)}, 11, 3)


@pytest.mark.parametrize("name", ["ucb1", "h-ucb"])
def test_thousands_of_copies(name):
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 1, cp.Point(0.6))], horizon=120)
    agree(market, cp.mechanism(name), {"ana": (2000, 1000)}, 1, 0)


def helper(t):
    return 1.0 / (1.0 + t)


def my_priority(inputs, weight, power):
    if inputs.pulls == 0:
        return math.inf
    return (
        inputs.mean
        + weight * helper(inputs.pulls) ** power
        + 0.001 * inputs.draw * inputs.log_clock / inputs.candidates
    )


MY_RULE = Rule("mine", my_priority, (0.5, 2.0), tries=2, randomised=True)
TRIANGLE = RewardFamily("triangle", lambda mean, u, width: min(1.0, max(0.0, mean + width * (u - 0.5))), (0.25,))
THREE = RewardFamily(
    "stars", lambda mean, u: 0.5 if u < 0.5 else 1.0 if u < (1 + mean) / 2 else 0.0, values=(0.0, 0.5, 1.0)
)
OWN = {
    "a bonus as a lambda": cp.mechanism("ucb1", bonus=lambda t, n: t**0.25 / n),
    "my rule above": cp.bandit(agent=MY_RULE, arm=cp.rule("ucb")),
    "my rule below": cp.bandit(agent=cp.rule("steady-ucb", rounds=6), arm=MY_RULE),
    "both levels": cp.mechanism("h-ucb", bonus=lambda t, n: math.sqrt(math.log(1 + t) / n)),
}


@pytest.mark.parametrize(
    ("name", "rewards"), [*((name, "bernoulli") for name in OWN), ("my rule below", TRIANGLE), ("both levels", THREE)]
)
def test_rules_and_families_of_ones_own(name, rewards):
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 1, cp.Point(0.6))], 150, rewards=rewards)
    agree(market, OWN[name], {"ana": (3, 1)}, 4, 2)


def test_what_does_not_compile_is_refused_and_what_fails_fails_as_in_the_reference():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=20)
    book = {"x": [1.0, object()]}
    odd = runs_of(market, cp.mechanism("ucb1", bonus=lambda t, n: book["x"][0] / n), {"ana": (1, 1)})
    assert odd.kernel.name == "reference"
    bad = runs_of(market, cp.mechanism("ucb1", bonus=lambda t, n: math.nan), {"ana": (1, 1)})
    with pytest.raises(cp.errors.MechanismError, match="NaN"):
        played(stepped, bad, 0, 1)
    beyond = cp.Market(
        [cp.Agent("ana", 1, cp.Uniform())], horizon=9, rewards=RewardFamily("odd", lambda mean, u: 2 * u)
    )
    with pytest.raises(cp.errors.SessionError, match="expected a reward in"):
        played(stepped, runs_of(beyond, cp.mechanism("ucb1"), {"ana": (1,)}), 0, 3)
    wild = cp.Market([cp.Agent("ana", 1, cp.Uniform())], horizon=9, rewards={"family": "gaussian", "sd": 1e6})
    found = played(
        stepped, runs_of(wild, cp.mechanism("ucb1"), {"ana": (1,)}), 0, 3
    )  # too large: left to the reference
    assert found.payoff[1, 0] == simulate_run(wild, cp.mechanism("ucb1"), None, 0, 1).payoff["ana"]
