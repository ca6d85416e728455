"""Kernels of flat randomised rules against the stepping kernel and the reference simulator, bit for bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.outcomes import kernel_for
from cloneproof.engines.monte_carlo.randomised import randomised_applies, randomised_outcomes
from cloneproof.engines.monte_carlo.reference_runs import reference_outcomes
from cloneproof.engines.monte_carlo.stepping import step_outcomes

RULES = (("thompson", {}), ("epsilon-greedy", {}), ("epsilon-greedy", {"c": 0.3}), ("epsilon-greedy", {"c": 7.0}))


@st.composite
def jobs(draw):
    agents = [
        cp.Agent(f"agent{i}", draw(st.integers(1, 3)), cp.Discrete([0.0, 0.5, 1.0], [0.25, 0.5, 0.25]))
        for i in range(draw(st.integers(1, 4)))
    ]
    copies = {agent.name: tuple(draw(st.integers(0, 3)) for _ in range(agent.count)) for agent in agents}
    copies[agents[0].name] = (1,) * agents[0].count
    name, options = draw(st.sampled_from(RULES))
    market = cp.Market(agents, horizon=draw(st.integers(1, 200)), share=draw(st.sampled_from([1.0, 0.4])))
    return Job(market, cp.mechanism(name, **options), copies, draw(st.integers(0, 99)))


@given(jobs(), st.integers(0, 50))
def test_the_same_bits_as_the_stepping_kernel(job, first):
    ours, theirs = randomised_outcomes(job, first, 4), step_outcomes(job, first, 4)
    assert np.array_equal(ours.payoff, theirs.payoff)
    assert np.array_equal(ours.regret, theirs.regret)


@pytest.mark.parametrize(("name", "options"), RULES)
def test_the_same_bits_as_the_reference(name, options):
    market = cp.Market([cp.Agent("ana", 3, cp.Uniform(0, 1)), cp.Agent("bo", 30, cp.Point(0.6))], horizon=400)
    job = Job(market, cp.mechanism(name, **options), {"ana": (1, 2, 1), "bo": (1,) * 30}, 7)
    assert kernel_for(job)[0] == "randomised"
    ours, theirs = randomised_outcomes(job, 3, 2), reference_outcomes(job, 3, 2)
    assert np.array_equal(ours.payoff, theirs.payoff)
    assert np.allclose(ours.regret, theirs.regret, rtol=1e-12)  # added up in another order


@pytest.mark.parametrize(
    ("market", "mechanism"),
    [
        (cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], horizon=9, rewards="deterministic"), cp.mechanism("thompson")),
        (cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], horizon=9), cp.mechanism("thompson", draw="quantile")),
        (cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], horizon=9), cp.Mechanism(cp.rule("thompson"), cp.rule("ucb"))),
    ],
)  # fmt: skip
def test_other_jobs_are_left_to_other_kernels(market, mechanism):
    assert not randomised_applies(Job(market, mechanism, {"ana": (1,)}))
