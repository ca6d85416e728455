"""The loops of the stepping kernel that skip what cannot change a decision: bit for bit what the plain loop decides."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job, reference_outcomes
from cloneproof.engines.monte_carlo.stepping.rounds import decisions_of_run, loop_of, step_outcomes
from cloneproof.market import full_copies
from support.sizes import LONG

PRIORS = (cp.Uniform(), cp.Discrete([0, 1], [0.5, 0.5]), cp.Discrete([0.25, 0.75], [0.5, 0.5]), cp.Point(0.5))


def some_job(seed):
    r = random.Random(seed)
    agents, copies = [], {}
    for name in ("ana", "bo", "cy")[: r.choice([1, 2, 3])]:
        agents.append(cp.Agent(name, r.choice([1, 2, 3]), r.choice(PRIORS)))
        vector = tuple(r.choice([0, 1, 1, 2, 5, 30]) for _ in range(agents[-1].count))
        if any(vector):
            copies[name] = vector
    rewards = r.choice(["bernoulli", "bernoulli", "deterministic"])
    horizon = r.choice([1, 2, 5, 30, 200, 700])
    market = cp.Market(agents, horizon=horizon, rewards=rewards, share=r.choice([1.0, 0.4]))
    name = r.choice(["ucb1", "h-ucb", "rh-ucb", "s-ucb", "rand-ucb"])
    clocks = r.choice(["current", "completed"]), r.choice(["current", "completed"])
    options = {
        "ucb1": {"constant": r.choice([1.0, 2.0, 0.3]), "clock": clocks[0]},
        "h-ucb": {"constant": r.choice([1.0, 2.0]), "clock": clocks[0], "arm_clock": clocks[1]},
        "rand-ucb": {"first_arms": r.choice([1, 3, 10]), "clock": clocks[0]},
    }.get(name, {"sample_factor": r.choice([0.5, 1.0, 3.0])})
    return Job(market, cp.mechanism(name, **options), full_copies(agents, copies), r.randrange(1000))


def same(ours, theirs):
    return all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))


def test_ucb_decides_as_the_plain_loop_and_the_session():
    """Random jobs by two loops; and the reference simulator on some of them."""
    jobs = 0
    for seed in range(600 if LONG else 200):
        job = some_job(seed)
        if loop_of(job) != "leader":
            continue
        jobs += 1
        assert same(step_outcomes(job, 3, 2), step_outcomes(job, 3, 2, "any")), seed
        if seed % 10 == 0:
            expected = reference_outcomes(job, 3, 1)
            assert np.array_equal(step_outcomes(job, 3, 1).payoff, expected.payoff)
            assert step_outcomes(job, 3, 1).regret[0] == pytest.approx(expected.regret[0], rel=1e-10, abs=1e-9)
    assert jobs > 100


@pytest.mark.parametrize("name", ["ucb1", "h-ucb", "rh-ucb", "s-ucb", "rand-ucb"])
def test_ucb_on_hundreds_of_copies_and_many_rounds(name):
    market = cp.Market([cp.Agent(f"{m}", 1, cp.Point(m)) for m in (0.9, 0.6, 0.5)], horizon=6000)
    job = Job(market, cp.mechanism(name), full_copies(market.agents, {"0.5": (800,), "0.9": (300,)}), 5)
    assert loop_of(job) == "leader"
    assert np.array_equal(decisions_of_run(job, 1), decisions_of_run(job, 1, "any"))
    assert np.array_equal(step_outcomes(job, 0, 2).payoff[1:], step_outcomes(job, 1, 1).payoff)  # runs leave no trace


def test_ucb_with_other_rules_and_rewards_takes_the_plain_loop():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=9)
    for name, rewards in (("kl-ucb", "bernoulli"), ("ucb1", "gaussian"), ("ucb1", "beta")):
        other = cp.Market(market.agents, horizon=9, rewards=rewards)
        assert loop_of(Job(other, cp.mechanism(name), {"ana": (1, 1)})) == "any"
    assert loop_of(Job(market, cp.mechanism("ucb1", bonus=lambda t, n: 1 / n), {"ana": (1, 1)})) == "any"


RULES = (("thompson", {}), ("epsilon-greedy", {}), ("epsilon-greedy", {"c": 0.3}), ("epsilon-greedy", {"c": 7.0}))


@st.composite
def randomised_jobs(draw):
    agents = [
        cp.Agent(f"agent{i}", draw(st.integers(1, 3)), cp.Discrete([0.0, 0.5, 1.0], [0.25, 0.5, 0.25]))
        for i in range(draw(st.integers(1, 4)))
    ]
    copies = {agent.name: tuple(draw(st.integers(0, 3)) for _ in range(agent.count)) for agent in agents}
    copies[agents[0].name] = (1,) * agents[0].count
    name, options = draw(st.sampled_from(RULES))
    market = cp.Market(agents, horizon=draw(st.integers(1, 200)), share=draw(st.sampled_from([1.0, 0.4])))
    return Job(market, cp.mechanism(name, **options), copies, draw(st.integers(0, 99)))


@given(randomised_jobs(), st.integers(0, 50))
def test_randomised_rules_decide_as_the_plain_loop(job, first):
    assert loop_of(job) in ("thompson", "greedy")
    assert same(step_outcomes(job, first, 4), step_outcomes(job, first, 4, "any"))


@pytest.mark.parametrize(("name", "options"), RULES)
def test_randomised_rules_decide_as_the_reference(name, options):
    market = cp.Market([cp.Agent("ana", 3, cp.Uniform(0, 1)), cp.Agent("bo", 30, cp.Point(0.6))], horizon=400)
    job = Job(market, cp.mechanism(name, **options), {"ana": (1, 2, 1), "bo": (1,) * 30}, 7)
    ours, theirs = step_outcomes(job, 3, 2), reference_outcomes(job, 3, 2)
    assert np.array_equal(ours.payoff, theirs.payoff)
    assert np.allclose(ours.regret, theirs.regret, rtol=1e-12)  # added up in another order


@pytest.mark.parametrize(
    ("market", "mechanism"),
    [
        (cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], horizon=9, rewards="deterministic"), cp.mechanism("thompson")),
        (cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], horizon=9), cp.Mechanism(cp.rule("thompson"), cp.rule("ucb"))),
    ],
)  # fmt: skip
def test_other_randomised_jobs_take_the_plain_loop(market, mechanism):
    assert loop_of(Job(market, mechanism, {"ana": (1,)})) == "any"
