"""The UCB kernels skip what cannot change the leader, and decide as a session does, run by run on the same tapes."""

import random

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.stepping import step_outcomes
from cloneproof.engines.monte_carlo.ucb import ucb_applies, ucb_outcomes
from cloneproof.engines.reference import simulate_run
from cloneproof.market import full_copies

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


def test_random_jobs_are_those_of_the_session():
    """Two kernels of two authors, 600 jobs; and the reference simulator itself on some of them."""
    jobs = 0
    for seed in range(600):
        job = some_job(seed)
        if not ucb_applies(job):
            continue
        jobs += 1
        fast, stepped = ucb_outcomes(job, 3, 2), step_outcomes(job, 3, 2)
        assert np.allclose(fast.payoff, stepped.payoff, rtol=1e-12, atol=1e-12), seed
        assert np.allclose(fast.regret, stepped.regret, rtol=1e-10, atol=1e-9), seed
        if seed % 10 == 0:
            run = simulate_run(job.market, job.mechanism, job.copies, job.seed, 3)
            assert fast.payoff[0].tolist() == pytest.approx(list(run.payoff.values()), rel=1e-12, abs=1e-12)
            assert fast.regret[0] == pytest.approx(run.regret, rel=1e-10, abs=1e-9)
    assert jobs > 300


@pytest.mark.parametrize("name", ["ucb1", "h-ucb", "rh-ucb", "s-ucb", "rand-ucb"])
def test_thousands_of_copies_and_many_rounds(name):
    market = cp.Market([cp.Agent(f"{m}", 1, cp.Point(m)) for m in (0.9, 0.6, 0.5)], horizon=6000)
    job = Job(market, cp.mechanism(name), full_copies(market.agents, {"0.5": (800,), "0.9": (300,)}), 5)
    assert ucb_applies(job)
    fast, run = ucb_outcomes(job, 0, 2), simulate_run(market, job.mechanism, job.copies, 5, 1)
    assert fast.payoff[1].tolist() == pytest.approx(list(run.payoff.values()), rel=1e-12)


def test_chunks_leave_no_trace():
    job = some_job(4)
    assert ucb_applies(job)
    whole = ucb_outcomes(job, 0, 9)
    parts = [ucb_outcomes(job, first, count) for first, count in ((0, 1), (1, 5), (6, 3))]
    assert np.array_equal(whole.payoff, np.concatenate([part.payoff for part in parts]))
    assert np.array_equal(whole.regret, np.concatenate([part.regret for part in parts]))


def test_other_mechanisms_and_rewards_are_left_to_others():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform())], horizon=9)
    for name, rewards in (("thompson", "bernoulli"), ("ucb1", "gaussian"), ("ucb1", "beta")):
        other = cp.Market(market.agents, horizon=9, rewards=rewards)
        assert not ucb_applies(Job(other, cp.mechanism(name), {"ana": (1, 1)}))
    assert not ucb_applies(Job(market, cp.mechanism("ucb1", bonus=lambda t, n: 1 / n), {"ana": (1, 1)}))
