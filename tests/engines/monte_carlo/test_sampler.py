"""The driver: the same bits however the work is cut, and nothing lost whatever ends it."""

import pickle
import threading
import time
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import cloneproof as cp
from cloneproof.engines.monte_carlo.driver import SamplingStatus, looks
from cloneproof.engines.monte_carlo.job import Job, Outcomes, reference_outcomes, run_streams, strata_of, words
from cloneproof.engines.monte_carlo.sampler import sample
from cloneproof.errors import EngineError
from cloneproof.market import full_copies
from support.market_strategies import cases

HORIZON = 10
MARKET = cp.Market([cp.Agent("ana", 1, cp.Uniform(0, 1)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=HORIZON)
JOB = Job(MARKET, cp.mechanism("ucb1"), full_copies(MARKET.agents, None), seed=3)


def coins(job, first, count):
    """A quick stand-in for a kernel: payoffs and regret are sums of fair coins, hashed from the run."""
    streams = run_streams(job.seed, first, count)
    tosses = np.stack([words(streams, toss) >> np.uint64(63) for toss in range(3 * HORIZON)], axis=1)
    sums = tosses.reshape(count, 3, HORIZON).sum(axis=2).astype(np.float64)
    return Outcomes(sums[:, :2], sums[:, 2] / 2, sums[:, :2])


@given(st.integers(1, 3), st.integers(1, 400), st.integers(1, 700), st.none() | st.floats(0.1, 2.0))
def test_threads_and_chunks_leave_no_trace(threads, chunk, runs, precision):
    plain = sample(JOB, runs, precision, outcomes=coins, threads=1, chunk=runs)
    assert sample(JOB, runs, precision, outcomes=coins, threads=threads, chunk=chunk) == plain
    assert sample(JOB, runs, precision, outcomes=coins, threads=threads) == plain


def test_chunks_that_finish_out_of_order_are_taken_in_order():
    def late_first(job, first, count):
        time.sleep(0.02 if first == 0 else 0.0)
        return coins(job, first, count)

    assert sample(JOB, 60, outcomes=late_first, threads=3, chunk=7) == sample(JOB, 60, outcomes=coins)


@given(st.integers(1, 12), st.integers(1, 2), st.none() | st.floats(0.3, 1.0))
@settings(max_examples=10)
def test_an_interrupted_run_goes_on_to_the_same_bits(after, threads, precision):
    """Ctrl-C from the progress callback, the state through text, and on with other chunks."""
    whole = sample(JOB, 900, precision, outcomes=coins)
    seen = []

    def stop(status):
        seen.append(status)
        if len(seen) == after:
            raise KeyboardInterrupt

    first = sample(JOB, 900, precision, outcomes=coins, threads=threads, chunk=37, progress=stop)
    if first.stopped != "interrupted":
        assert first == whole
        return
    assert first.partial
    assert first.runs == 37 * after
    assert f"interrupted: partial result of {first.runs} of 900 runs" in first.evaluation.notes
    saved = pickle.loads(pickle.dumps(first.totals))
    assert sample(JOB, 900, precision, outcomes=coins, resume=saved, chunk=50) == whole
    assert sample(JOB, 900, precision, outcomes=coins, resume=seen[0].totals) == whole


def test_an_interrupt_while_waiting_returns_what_there_is():
    """A real one, delivered to the main thread while it waits for a slow chunk."""
    import _thread

    def slow(job, first, count):
        if first == 40:
            threading.Timer(0.05, _thread.interrupt_main).start()
            time.sleep(0.4)
        return coins(job, first, count)

    result = sample(JOB, 1000, outcomes=slow, threads=1, chunk=20)
    assert (result.stopped, result.runs) == ("interrupted", 40)
    assert result.evaluation.payoff["ana"].kind == "confidence"


def test_a_precision_out_of_reach_is_undecided_and_not_lost():
    begun = time.monotonic()
    result = sample(JOB, precision=1e-9, budget_seconds=0.3, outcomes=coins)
    assert time.monotonic() - begun < 5
    assert result.stopped == "budget"
    assert result.partial
    assert result.runs > 0
    assert any("precision 1e-09 undecided: the widest half-width is" in note for note in result.evaluation.notes)
    capped = sample(JOB, runs=50, precision=1e-9, outcomes=coins)
    assert (capped.stopped, capped.runs, capped.partial) == ("runs", 50, False)
    assert "precision 1e-09 undecided" in capped.evaluation.notes[0]


def test_a_budget_too_short_for_one_chunk_still_answers():
    def slow(job, first, count):
        time.sleep(0.4)
        return coins(job, first, count)

    result = sample(JOB, 10, budget_seconds=0.05, outcomes=slow)
    assert (result.runs, result.stopped) == (1, "budget")
    payoff = result.evaluation.payoff["ana"]
    assert payoff.low <= 0.0 < HORIZON <= payoff.high  # one run says next to nothing, and claims no more
    assert result.partial


def test_it_stops_as_soon_as_it_is_precise_enough():
    result = sample(JOB, precision=0.2, outcomes=coins)
    assert result.stopped == "enough"
    errors = [estimate.error for estimate in (*result.evaluation.payoff.values(), result.evaluation.regret)]
    assert max(errors) <= 0.2
    before = max(look for look in islice(looks(1), 400) if look < result.runs)
    assert max(sample(JOB, before, outcomes=coins).totals.half_widths(0.01)) > 0.2
    assert result.evaluation.notes == ()


def test_intervals_cover_where_the_precision_stopped_them():
    """40 seeds, stopped by their widths, two payoffs and a regret each, whose means are 5, 5 and 2.5."""
    trials, alpha, missed = 40, 0.1, np.zeros(3)
    for seed in range(trials):
        result = sample(
            Job(JOB.market, JOB.mechanism, JOB.copies, seed), None, 0.5, 1 - alpha, outcomes=coins, threads=1, chunk=250
        )
        missed += np.abs(result.totals.means - [5, 5, 2.5]) > result.totals.half_widths(alpha)
    assert (missed <= binom.isf(1e-6 / 3, trials, alpha)).all()


@given(cases(names=["ucb1", "h-etc-r", "uniform-etc"]))
@settings(max_examples=8)
def test_agreement_with_the_exact_engines(case):
    """Confidence 1 - 1e-7, about three intervals a case: all cases together miss with a chance of one in a million."""
    full = full_copies(case.market.agents, case.copies)
    exact = cp.evaluate(case.market, case.mechanism, full)
    strata = strata_of(case.market)
    for means, weights in ((), ()), strata:
        job = Job(case.market, case.mechanism, full, 0, means)
        result = sample(job, 60, confidence=1 - 1e-8, outcomes=reference_outcomes, weights=weights).evaluation
        for name, payoff in result.payoff.items():
            assert abs(payoff.value - exact.payoff[name].value) <= payoff.error + exact.payoff[name].error
        assert abs(result.regret.value - exact.regret.value) <= result.regret.error + exact.regret.error


def test_gaussian_payoffs_have_intervals_that_cover():
    """The exact payoff of a lone arm: share * T * mean."""
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5))], 20, 0.5, rewards={"family": "gaussian", "sd": 0.3})
    job = Job(market, cp.mechanism("ucb1"), full_copies(market.agents, None))
    result = sample(job, 200, confidence=1 - 1e-6, outcomes=reference_outcomes).evaluation.payoff["ana"]
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


def test_progress_is_reported_with_an_aim():
    seen = []
    sample(JOB, 500, outcomes=coins, progress=seen.append, chunk=100)
    assert all(isinstance(status, SamplingStatus) for status in seen)
    assert [(status.totals.runs, status.aim) for status in seen] == [(100 * k, 500) for k in range(1, 6)]
    seen.clear()
    result = sample(JOB, precision=0.3, outcomes=coins, progress=seen.append, chunk=200)
    assert 0.5 < seen[-1].aim / result.runs < 2


def test_an_error_in_a_chunk_comes_through():
    def broken(job, first, count):
        raise EngineError("expected arm 0 to 2, got 7; fix the policy")

    with pytest.raises(EngineError, match="got 7"):
        sample(JOB, 10, outcomes=broken)


@pytest.mark.parametrize(
    "options", [{"runs": 0}, {"runs": True}, {"runs": 2.5}, {"threads": 0}, {"precision": 0},
                {"precision": float("nan")}, {"precision": "fine"}, {"budget_seconds": -1}, {"confidence": 1},
                {"confidence": None}],
)  # fmt: skip
def test_bad_input(options):
    with pytest.raises(EngineError, match=rf"^expected .*{next(iter(options))}.* got"):
        sample(JOB, outcomes=coins, **options)


def test_progress_of_another_job_is_refused():
    other = Job(MARKET, cp.mechanism("ucb1"), JOB.copies, seed=4)
    state = sample(other, 5, outcomes=coins).totals
    with pytest.raises(EngineError, match="resume with the same market, mechanism, copies and seed"):
        sample(JOB, 10, outcomes=coins, resume=state)


def test_strata_need_their_weights():
    market = cp.Market([cp.Agent("ana", 1, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=4)
    job = Job(market, cp.mechanism("ucb1"), full_copies(market.agents, None), 0, strata_of(market).means)
    with pytest.raises(EngineError, match="expected 2 weights, one for each stratum, got 0"):
        sample(job, 10, outcomes=reference_outcomes)
    assert sample(job, 9, outcomes=reference_outcomes, weights=(0.5, 0.5)).runs == 10
