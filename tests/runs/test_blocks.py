"""Block draws against the running mechanism, and against the exact engines."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof._lib.randomness import substream
from cloneproof.evaluation.reference import runs_of, session_run
from cloneproof.market import full_copies
from cloneproof.mechanisms.committing.kernel import blocks_of_run, committing_kernel
from cloneproof.runs.job import Job
from cloneproof.runs.tapes import SESSION_STREAM, means_of_runs
from support.market_strategies import committing_mechanisms
from support.reference_runs import played
from support.sizes import LONG
from support.strategies import copies_of, markets, small

ADDING_UP = ("bernoulli", "deterministic", "gaussian")
SEEDS = st.integers(0, 2**63 - 1)
ERROR_RATE = 1e-6
# whoever is chosen uniformly at random in blocks is so by other random numbers than a session's
DECIDING = committing_mechanisms().filter(lambda made: not made.uniform)


def realised(drawn, run):
    """The run's blocks, and a session that is fed rewards with the same sums: all of a block's in its first pulls."""
    mechanism, job = drawn.mechanism, drawn.job
    outcomes, blocks = blocks_of_run(mechanism, job, run)
    means = means_of_runs(job, run, 1)[0]
    arms, column = [], 0
    for agent in job.market.agents:
        for original, count in enumerate(job.copies[agent.name]):
            arms += [(agent.name, means[column + original])] * count
        column += agent.count
    rewards = [
        iter(_rewards(job.market.family.name, mean, blocks[blocks[:, 0] == a])) for a, (_, mean) in enumerate(arms)
    ]
    starts = {name: next(a for a, (agent, _) in enumerate(arms) if agent == name) for name in job.copies}
    live = cp.session(
        mechanism,
        {name: sum(vector) for name, vector in job.copies.items()},
        job.market.horizon,
        substream(0, job.seed, run, SESSION_STREAM) >> 1,
        job.market.share,
        job.market.family,
    )
    regret = 0.0
    for _ in range(job.market.horizon):
        decision = live.decide()
        a = starts[decision.agent] + decision.arm
        live.reward(decision.id, next(rewards[a]))  # raises where an arm is pulled more often than its blocks say
        regret += means.max() - arms[a][1]
    assert all(next(left, None) is None for left in rewards)
    return outcomes, live.payoff, regret


def _rewards(family, mean, blocks):
    for _, pulls, total in blocks.tolist():
        if family == "deterministic":
            yield from [mean] * pulls
        elif family == "bernoulli":
            yield from [1.0] * total + [0.0] * (pulls - total)
        else:
            yield from [total / 2**30] + [0.0] * (pulls - 1)


@given(markets(max_horizon=80, families=ADDING_UP), DECIDING, SEEDS, st.integers(0, 10**6), st.data())
@settings(max_examples=200 if LONG else 25)
def test_a_session_with_the_same_block_sums_decides_the_same(market, mechanism, seed, run, data):
    job = runs_of(market, mechanism, full_copies(market.agents, data.draw(copies_of(market))), seed)
    assert job.kernel.name == "blocks"
    outcomes, payoff, regret = realised(job, run)
    assert outcomes.payoff[0].tolist() == list(payoff.values())
    assert outcomes.regret[0] == pytest.approx(regret, rel=1e-12, abs=1e-12)


@given(markets(max_horizon=60, families=("deterministic",)), DECIDING, SEEDS, st.data())
def test_deterministic_rewards_are_the_reference_to_the_bit(market, mechanism, seed, data):
    job = runs_of(market, mechanism, full_copies(market.agents, data.draw(copies_of(market))), seed)
    expected = session_run(job.mechanism, job.job, 3)
    assert played(committing_kernel, job, 3, 1).payoff[0].tolist() == list(expected.payoff.values())


THREE = [cp.Agent("ana", 2, cp.Discrete([0.25, 0.75], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6)),
         cp.Agent("cy", 3, cp.Discrete([0.0, 0.5, 1.0], [0.25, 0.5, 0.25]))]  # fmt: skip
LAWS = [
    (name, rewards, horizon, options)
    for rewards, horizon in (("bernoulli", 10**6), ("bernoulli", 61), ("deterministic", 999))
    for name, options in [
        ("etc", {"arm_rounds": 7}),
        ("prior-independent-etc", {"power": 2.0}),
        ("uniform-etc", {"arm_rounds": 6, "order": "block"}),
        ("uniform-etc", {"arm_rounds": 6}),
        ("h-etc-r", {"agent_rounds": 17, "arm_rounds": 4, "agent_order": "block"}),
    ]
]


@pytest.mark.parametrize(("name", "rewards", "horizon", "options"), LAWS)
def test_means_are_those_of_the_exact_engines(name, rewards, horizon, options):
    """Maurer and Pontil's interval around each mean at an error rate of one in a million over all that is compared."""
    runs = 8_000
    market = cp.Market(THREE, horizon, 0.5, rewards)
    job = runs_of(
        market, cp.mechanism(name, **options), full_copies(market.agents, {"ana": (2, 1), "cy": (1, 0, 2)}), 17
    )
    outcomes = played(committing_kernel, job, 0, runs)
    exact = cp.evaluate(market, job.mechanism, job.job.copies, engine="law")
    log = math.log(4 * len(LAWS) * 4 / ERROR_RATE)
    columns = [(outcomes.payoff[:, i], 0.5 * horizon) for i in range(3)] + [(outcomes.regret, horizon)]
    for (values, width), estimate in zip(columns, [*exact.payoff.values(), exact.regret], strict=True):
        half = math.sqrt(2 * values.var(ddof=1) * log / runs) + 7 * width * log / (3 * (runs - 1))
        assert abs(values.mean() - estimate.value) <= half + estimate.error


def test_the_same_original_and_copy_share_their_blocks():
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 1, cp.Point(0.5))], horizon=10**7)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=5000, arm_rounds=1000)
    _, honest = blocks_of_run(mechanism, Job(market, {"ana": (1, 1), "bo": (1,)}, 3), 8)
    _, copied = blocks_of_run(mechanism, Job(market, {"ana": (2, 1), "bo": (1,)}, 3), 8)
    assert honest[:2, 1:].tolist() == copied[[0, 2], 1:].tolist()
    assert copied[0, 2] != copied[1, 2]


def test_the_longest_horizon_and_thousands_of_copies():
    market = cp.Market([cp.Agent("ana", 2, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.6))], horizon=10**15)
    for name in ("etc", "prior-independent-etc", "uniform-etc", "h-etc-r"):
        job = runs_of(market, small(name), {"ana": (5000, 4000), "bo": (1,)}, 0)
        outcomes = played(committing_kernel, job, 0, 2)
        total = outcomes.payoff.sum(axis=1)
        assert np.all(total > 0.49e15)
        assert np.all(total < 0.61e15)
    endless = runs_of(market, cp.mechanism("etc", arm_rounds=10**15), {"ana": (5000, 4000), "bo": (1,)}, 0)
    assert played(committing_kernel, endless, 0, 1).payoff[0, 1] / 10**15 == pytest.approx(0.6 / 9001, rel=1e-3)


def test_memory_is_that_of_a_chunk():
    market = cp.Market([cp.Agent(name, 2, cp.Uniform()) for name in "abcde"], horizon=10**6)
    job = runs_of(market, cp.mechanism("h-etc-r", agent_rounds=50, arm_rounds=10), full_copies(market.agents, None))
    played(committing_kernel, job, 0, 1)
    tracemalloc.start()
    played(committing_kernel, job, 0, 4_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000 * 500  # so a chunk of 100,000 runs takes 50 MB at most
