"""The brute force against results by hand and the reference simulator.

It is what the exact engines are checked against, so nothing here goes through an engine.
"""

from fractions import Fraction
from functools import cache

import pytest

from cloneproof.market import Agent, Discrete, Market, Point
from cloneproof.mechanisms.catalogue import mechanism
from support.brute_force import brute_force
from support.reference_runs import simulate_runs, summarise
from support.sizes import LONG

F = Fraction
COIN = Discrete([0, 1], [0.5, 0.5])


def points(*agents, rewards="deterministic", share=1.0):
    """A market of fully informed agents ana, bo, ..; its own horizon is of no account."""
    named = zip(("ana", "bo", "cy"), agents, strict=False)
    return Market([Agent(name, prior=[Point(m) for m in own]) for name, own in named], 1, share, rewards)


# ---- by hand


def test_etc_commits_to_the_better_arm_with_the_chance_of_two_coins():
    # the better arm wins with 9/16 + half of the ties, 6/16; the third round is worth 3/4 * 3/4 + 1/4 * 1/4 = 5/8
    payoff, regret = brute_force(
        points([0.75, 0.25], rewards="bernoulli", share=0.5), mechanism("etc", arm_rounds=1), None, 3
    )
    assert payoff == {"ana": F(13, 16)}
    assert regret == F(9, 4) - F(13, 8)


def test_a_commitment_is_kept_where_a_running_argmax_changes_its_mind():
    # arms 1/2 and 0: after a first coin of 1 both stay with arm 0; after a 0 the tie is broken once, or every round
    market = points([0.5, 0.0], rewards="bernoulli")
    commit = brute_force(market, mechanism("etc", arm_rounds=1), None, 5)[0]["ana"]
    greedy = brute_force(market, mechanism("etc", arm_rounds=1, choice="greedy"), None, 5)[0]["ana"]
    assert commit == F(1, 2) + 3 * (F(1, 2) * F(1, 2) + F(1, 2) * F(1, 4))
    # greedy after a first 0: each round of a tie (chance x) is worth x/4 and ends it with x/4; rounds 3, 4, 5
    tie = [F(1), F(3, 4), F(9, 16)]
    assert greedy == F(1, 2) + F(1, 2) * F(3, 2) + F(1, 2) * sum(x / 4 + (1 - x) / 2 for x in tie)


# ---- the reference simulator

TWO = Discrete([0.25, 0.75], [0.5, 0.5])
SKEW = Discrete([0.125, 0.5, 1.0], [0.5, 0.25, 0.25])
ANA_BO = [Agent("ana", 2, TWO), Agent("bo", 1, Point(0.625))]
EACH = [Agent("ana", prior=[TWO, SKEW]), Agent("bo", 1, TWO)]
THREE = [Agent("ana", 2, TWO), Agent("bo", 1, Point(0.5)), Agent("cy", 1, Point(0.5))]
ALONE = [Agent("ana", 3, TWO)]

AGAINST_SIMULATOR = [
    (ANA_BO, "bernoulli", 6, {"ana": (2, 1)}, "ucb1", {}),
    (EACH, "deterministic", 8, {"ana": (2, 2)}, "ucb1", {"constant": 0.5, "clock": "completed"}),
    (ANA_BO, "bernoulli", 6, {"ana": (2, 1)}, "h-ucb", {}),
    (EACH, "deterministic", 8, {"bo": (2,)}, "h-ucb", {"constant": 1.0, "arm_clock": "current"}),
    (THREE, "bernoulli", 6, {"ana": (0, 2)}, "h-ucb", {"clock": "completed"}),
    (ALONE, "bernoulli", 7, {"ana": (2, 1, 1)}, "etc", {"arm_rounds": 1}),
    (ANA_BO, "bernoulli", 9, {"ana": (2, 1)}, "etc", {"arm_rounds": 2, "order": "block"}),
    (ANA_BO, "bernoulli", 8, {"ana": (1, 0)}, "etc", {"arm_rounds": 2, "order": "index", "choice": "greedy"}),
    (EACH, "deterministic", 10, {"ana": (1, 2)}, "prior-independent-etc", {"power": 0.5, "order": "block"}),
    (ANA_BO, "bernoulli", 10, None, "prior-independent-etc", {"power": 1.0, "choice": "greedy"}),
    (ANA_BO, "bernoulli", 4, {"ana": (2, 1)}, "uniform-etc", {"arm_rounds": 1}),
    (THREE, "bernoulli", 4, {"bo": (2,)}, "uniform-etc", {"arm_rounds": 1, "order": "index", "choice": "greedy"}),
    (ANA_BO, "bernoulli", 8, {"ana": (2, 1)}, "h-etc-r", {"agent_rounds": 2, "arm_rounds": 1}),
    (EACH, "bernoulli", 8, {"ana": (1, 1)}, "h-etc-r", {"agent_rounds": 3, "arm_rounds": 2, "order": "block"}),
    (ANA_BO, "bernoulli", 7, {"ana": (2, 1)}, "h-etc-r", {"agent_rounds": 2, "arm_rounds": 1, "choice": "greedy"}),
    (EACH, "deterministic", 10, {"ana": (2, 1)}, "h-etc-r",
     {"agent_rounds": 3, "arm_rounds": 2, "order": "index", "agent_order": "block", "choice": "greedy"}),
    (THREE, "bernoulli", 7, None, "h-etc-r", {"agent_rounds": 3, "arm_rounds": 1, "agent_order": "index"}),
    (ANA_BO, "bernoulli", 5, {"ana": (1, 1)}, "epsilon-greedy", {"c": 0.5}),
    (EACH, "deterministic", 7, {"ana": (0, 2)}, "epsilon-greedy", {}),
]  # fmt: skip
RUNS = 1500 if LONG else 100
PLANTED = [(3, {"constant": 4.0}), (8, {"order": "index"}), (16, {"agent_rounds": 4})]
STANDARD_ERRORS = 6.5  # under 100 comparisons, each a false alarm with chance 8e-11


@cache
def simulated(number):
    agents, rewards, horizon, copies, name, options = AGAINST_SIMULATOR[number]
    market = Market(agents, horizon, 0.5, rewards)
    made = mechanism(name, **options)
    return summarise(simulate_runs(market, made, copies, RUNS, 2024))


def distances(number, **changed):
    """How many standard errors lie between simulator and brute force, for each payoff and the regret."""
    agents, rewards, horizon, copies, name, options = AGAINST_SIMULATOR[number]
    market = Market(agents, horizon, 0.5, rewards)
    payoff, regret = brute_force(market, mechanism(name, **(options | changed)), copies, horizon)
    summary = simulated(number)
    pairs = [(payoff[agent], summary.payoff[agent]) for agent in payoff] + [(regret, summary.regret)]
    return [abs(float(exact) - sample.mean) / (sample.standard_error + 1e-9) for exact, sample in pairs]


@pytest.mark.parametrize("number", range(len(AGAINST_SIMULATOR)))
def test_the_reference_simulator_agrees(number):
    assert max(distances(number)) <= STANDARD_ERRORS


@pytest.mark.parametrize(("number", "changed"), PLANTED)
def test_the_comparison_would_notice_another_mechanism(number, changed):
    assert max(distances(number, **changed)) > STANDARD_ERRORS
