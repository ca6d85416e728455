"""What the stepping kernel skips cannot change a decision: bit for bit what it decides when it looks at everything."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job, reference_outcomes
from cloneproof.engines.monte_carlo.stepping.rounds import decisions_of_run, kernel_of, run_any, step_outcomes
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
    name = r.choice(["ucb1", "h-ucb", "rh-ucb", "s-ucb", "rand-ucb", "kl-ucb"])
    clocks = r.choice(["current", "completed"]), r.choice(["current", "completed"])
    options = {
        "ucb1": {"constant": r.choice([1.0, 2.0, 0.3]), "clock": clocks[0]},
        "h-ucb": {"constant": r.choice([1.0, 2.0]), "clock": clocks[0], "arm_clock": clocks[1]},
        "kl-ucb": {"constant": r.choice([0.5, 3.0]), "clock": clocks[0]},
        "rand-ucb": {"first_arms": r.choice([1, 3, 10]), "clock": clocks[0]},
    }.get(name, {"sample_factor": r.choice([0.5, 1.0, 3.0])})
    return Job(market, cp.mechanism(name, **options), full_copies(agents, copies), r.randrange(1000))


def same(ours, theirs):
    return all(np.array_equal(one, other) for one, other in zip(ours[:3], theirs[:3], strict=True))


def without_bounds(job):
    """The same job, whose rules look at all candidates in each round."""
    arm, agent = job.mechanism.arm, job.mechanism.agent
    plain = replace(job.mechanism, arm=replace(arm, bound=None), agent=agent and replace(agent, bound=None))
    return replace(job, mechanism=plain)


def test_bounds_change_no_decision_of_ucb():
    """Random jobs with and without them, by two loops; and the reference simulator on some of them."""
    for seed in range(600 if LONG else 100):
        job = some_job(seed)
        ours = step_outcomes(job, 3, 2)
        assert same(ours, step_outcomes(without_bounds(job), 3, 2, run_any)), seed
        assert same(ours, step_outcomes(job, 3, 2, run_any)), seed
        if seed % 10 == 0:
            expected = reference_outcomes(job, 3, 2)
            assert np.array_equal(ours.payoff, expected.payoff)
            assert ours.regret == pytest.approx(expected.regret, rel=1e-10, abs=1e-9)


@pytest.mark.parametrize("name", ["ucb1", "h-ucb", "rh-ucb", "s-ucb", "rand-ucb"])
def test_ucb_on_hundreds_of_copies_and_many_rounds(name):
    market = cp.Market([cp.Agent(f"{m}", 1, cp.Point(m)) for m in (0.9, 0.6, 0.5)], horizon=6000)
    job = Job(market, cp.mechanism(name), full_copies(market.agents, {"0.5": (800,), "0.9": (300,)}), 5)
    assert np.array_equal(decisions_of_run(job, 1), decisions_of_run(without_bounds(job), 1, run_any))
    assert np.array_equal(step_outcomes(job, 0, 2).payoff[1:], step_outcomes(job, 1, 1).payoff)  # runs leave no trace


def root_index(inputs, width):
    return inputs.mean + width * inputs.log_clock / inputs.pulls


def too_low(inputs, width):
    return inputs.mean


@pytest.mark.parametrize("above", [None, cp.rule("slow-ucb")])
def test_a_bound_of_ones_own_is_used_and_a_wrong_one_shows(above):
    """With `too_low` for a bound, a rival that should have overtaken the leader is not looked at."""
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 3, cp.Point(0.6))], horizon=400)
    plain = cp.parts.Rule("mine", root_index, (0.8,), explore=1)
    played = [
        decisions_of_run(
            Job(market, cp.Mechanism(replace(plain, bound=bound), above), full_copies(market.agents, None)),
            2,
            None if bound else run_any,
        )
        for bound in (None, too_low, *([root_index] if above or LONG else []))  # a flat loop takes seconds to compile
    ]
    assert not np.array_equal(played[0], played[1])
    assert all(np.array_equal(played[0], right) for right in played[2:])


def test_flat_jobs_on_coins_have_a_loop_of_their_own():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=9)
    for name, rewards in (("ucb1", "gaussian"), ("ucb1", "beta"), ("h-ucb", "bernoulli")):
        other = cp.Market(market.agents, horizon=9, rewards=rewards)
        assert kernel_of(Job(other, cp.mechanism(name), {"ana": (1, 1)})) is run_any
    kernels = [kernel_of(Job(market, cp.mechanism("ucb1", constant=c), {"ana": (1, 1)})) for c in (1.0, 2.0)]
    assert kernels[0] is kernels[1] is not run_any


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
def test_randomised_rules_decide_alike_in_both_loops(job, first):
    assert same(step_outcomes(job, first, 4), step_outcomes(job, first, 4, run_any))


@pytest.mark.parametrize(("name", "options"), RULES)
def test_randomised_rules_decide_as_the_reference(name, options):
    market = cp.Market([cp.Agent("ana", 3, cp.Uniform(0, 1)), cp.Agent("bo", 30, cp.Point(0.6))], horizon=400)
    job = Job(market, cp.mechanism(name, **options), {"ana": (1, 2, 1), "bo": (1,) * 30}, 7)
    ours, theirs = step_outcomes(job, 3, 2), reference_outcomes(job, 3, 2)
    assert np.array_equal(ours.payoff, theirs.payoff)
    assert np.allclose(ours.regret, theirs.regret, rtol=1e-12)  # added up in another order
