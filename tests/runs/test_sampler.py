"""The driver: the same bits however the work is cut, and nothing lost whatever ends it."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof.errors import EngineError
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.runs.kernel import Outcomes
from cloneproof.runs.sampler import SamplingStatus, sample
from cloneproof.runs.tapes import run_streams, words
from support.reference_runs import reference_outcomes

HORIZON = 10
MARKET = cp.Market([cp.Agent("ana", 1, cp.Uniform(0, 1)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=HORIZON)
JOB = runs_of(MARKET, cp.mechanism("ucb1"), full_copies(MARKET.agents, None), seed=3)


def coins(job, first, count):
    """A quick stand-in for a kernel: payoffs and regret are sums of fair coins, hashed from the run."""
    streams = run_streams(job.job.seed, first, count)
    tosses = np.stack([words(streams, toss) >> np.uint64(63) for toss in range(3 * HORIZON)], axis=1)
    sums = tosses.reshape(count, 3, HORIZON).sum(axis=2).astype(np.float64)
    return Outcomes(sums[:, :2], sums[:, 2] / 2, sums[:, :2])


@given(st.integers(1, 3), st.integers(1, 400), st.integers(1, 700))
def test_threads_and_chunks_leave_no_trace(threads, chunk, runs):
    plain = sample(JOB, runs, outcomes=coins, threads=1, chunk=runs)
    assert sample(JOB, runs, outcomes=coins, threads=threads, chunk=chunk) == plain
    assert sample(JOB, runs, outcomes=coins, threads=threads) == plain


def test_chunks_that_finish_out_of_order_are_taken_in_order():
    def late_first(job, first, count):
        time.sleep(0.02 if first == 0 else 0.0)
        return coins(job, first, count)

    assert sample(JOB, 60, outcomes=late_first, threads=3, chunk=7) == sample(JOB, 60, outcomes=coins)


def test_an_interrupt_while_waiting_returns_what_there_is():
    """A real one, delivered to the main thread while it waits for a slow chunk."""
    import _thread

    def slow(job, first, count):
        if first == 40:
            _thread.interrupt_main()
            time.sleep(0.4)
        return coins(job, first, count)

    result = sample(JOB, 1000, outcomes=slow, threads=1, chunk=20)
    assert result.partial
    assert "interrupted: partial result of 40 of 1000 runs" in result.notes
    assert result.payoff["ana"].kind == "confidence"


def test_a_budget_too_short_for_one_chunk_still_answers():
    def slow(job, first, count):
        time.sleep(0.4)
        return coins(job, first, count)

    result = sample(JOB, 10, seconds=0.05, outcomes=slow)
    assert "the budget is spent: partial result of 1 of 10 runs" in result.notes
    payoff = result.payoff["ana"]
    assert payoff.low <= 0.0 < HORIZON <= payoff.high  # one run says next to nothing, and claims no more
    assert result.partial


def test_gaussian_payoffs_have_intervals_that_cover():
    """The exact payoff of a lone arm: share * T * mean."""
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 20, 0.5, rewards={"family": "gaussian", "sd": 0.3})
    job = runs_of(market, cp.mechanism("ucb1"), full_copies(market.agents, None))
    free = "distribution-free"
    result = sample(job, 200, confidence=1 - 1e-6, outcomes=reference_outcomes, bounds=free).payoff["ana"]
    assert result.kind == "confidence"
    assert result.low <= 5.0 <= result.high
    assert result.error < 4.0


def test_a_hundred_thousand_runs_hold_few_bytes():
    import tracemalloc

    tracemalloc.start()
    try:
        sample(
            JOB,
            100_000,
            outcomes=lambda job, first, count: Outcomes(np.ones((count, 2)), np.ones(count), np.ones((count, 2))),
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6


def test_progress_is_reported():
    seen = []
    sample(JOB, 500, outcomes=coins, progress=seen.append, chunk=100)
    assert all(isinstance(status, SamplingStatus) for status in seen)
    assert [(status.totals.runs, status.most) for status in seen] == [(100 * k, 500) for k in range(1, 6)]


def test_an_error_in_a_chunk_comes_through():
    def broken(job, first, count):
        raise EngineError("expected arm 0 to 2, got 7; fix the policy")

    with pytest.raises(EngineError, match="got 7"):
        sample(JOB, 10, outcomes=broken)
