"""The gain of copying, sampled: pairs, strata, and a sign that is right when it is decided."""

import math
import time
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import cloneproof as cp
from cloneproof.audits.deviations import CopiesOf
from cloneproof.audits.gain import PairedSampling, sampled_gain
from cloneproof.errors import EngineError
from cloneproof.evaluation.reference import simulate_run
from cloneproof.market.market import full_copies
from cloneproof.runs.job import strata_of
from cloneproof.runs.kernel import Outcomes
from cloneproof.runs.tapes import run_streams, words
from support.market_strategies import cases
from support.strategies import markets

BERNOULLI = cp.Discrete([0, 1], [0.5, 0.5])
PAPER = cp.Market([cp.Agent("ana", 2, BERNOULLI)], horizon=7)  # fact 1: one copy pays 0.25 under UCB1 at T = 7
UCB = cp.mechanism("ucb1")


def by_reference(runs, first, count):
    """Every run by the reference simulator."""
    found, job = [], runs.job
    for run in range(first, first + count):
        market = job.market.at(job.strata[run % len(job.strata)]) if job.strata else job.market
        found.append(simulate_run(market, runs.mechanism, job.copies, job.seed, run))
    payoff, served = (
        np.array([[getattr(one, field)[agent.name] for agent in job.market.agents] for one in found], np.float64)
        for field in ("payoff", "served")
    )
    return Outcomes(payoff, np.array([one.regret for one in found], np.float64), served)


def found_gain(market, mechanism, agent, copies, outcomes=by_reference, **options):
    full = full_copies(market.agents, copies if isinstance(copies, dict) else {agent: copies})
    return sampled_gain(
        market, mechanism, CopiesOf(agent, full[agent], full), PairedSampling(outcomes=outcomes, **options)
    )


def test_fact_1_is_decided_and_stops_early():
    found = found_gain(PAPER, UCB, "ana", (2, 1))
    assert (found.decided, found.stopped, found.partial) == ("pays", "decided", False)
    assert found.runs < 500
    assert found.estimate.low <= 0.25 <= found.estimate.high
    assert found.estimate.kind == "confidence"
    assert "4 strata" in found.estimate.method
    assert found.copied.value - found.honest.value == pytest.approx(found.estimate.value, abs=1e-12)
    assert found.copies == {"ana": (2, 1)}
    later = cp.Market([cp.Agent("ana", 2, BERNOULLI)], horizon=20)
    assert found_gain(later, UCB, "ana", (9, 1)).decided == "does not pay"


def test_it_goes_on_to_the_runs_where_the_sign_is_not_all():
    sure = found_gain(PAPER, UCB, "ana", (2, 1), runs=200, stop_when_decided=False)
    assert (sure.runs, sure.stopped) == (200, "runs")
    none = found_gain(PAPER, UCB, "ana", (1, 1), runs=40)
    assert (none.decided, none.estimate.value, none.stopped) == ("undecided", 0.0, "runs")


def test_a_mapping_fixes_the_others_in_both_worlds():
    market = cp.Market([cp.Agent("ana", 1, cp.Uniform(0, 1)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=9)
    seen = []

    def watched(drawn, first, count):
        seen.append(drawn.job.copies)
        return by_reference(drawn, first, count)

    found_gain(market, UCB, "ana", {"ana": (2,), "bo": (3,)}, runs=4, outcomes=watched, threads=1)
    assert {"ana": (1,), "bo": (3,)} in seen
    assert {"ana": (2,), "bo": (3,)} in seen
    assert all(copies["bo"] == (3,) for copies in seen)


@given(cases(names=["ucb1", "h-ucb", "h-etc-r", "epsilon-greedy"]))
@settings(max_examples=5)
def test_the_exact_gain_lies_in_the_interval(case):
    """Confidence 1 - 1e-8 over thirty intervals: one in a million."""
    agent = case.market.agents[0].name
    others = {name: own for name, own in case.copies.items() if name != agent}
    exact = [cp.evaluate(case.market, case.mechanism, world).payoff[agent] for world in (others, case.copies)]
    for stratify in (True, False):
        found = found_gain(
            case.market, case.mechanism, agent, case.copies, runs=40, stratify=stratify, confidence=1 - 1e-8
        )
        for truth, estimate in (
            (exact[0], found.honest),
            (exact[1], found.copied),
            (exact[1] - exact[0], found.estimate),
        ):
            assert abs(truth.value - estimate.value) <= truth.error + estimate.error


def test_decisions_at_their_stopping_times_are_right():
    """20 seeds at confidence 0.9 on a coin whose bias the copies shift: wrong signs stay within the allowance."""

    def shifted(runs, first, count):
        job = runs.job
        coins = words(run_streams(job.seed, first, count), 5 if job.copies["ana"] == (2,) else 6) / 2.0**64
        payoff = (coins[:, None] < (0.6 if job.copies["ana"] == (2,) else 0.5)) * 1.0
        return Outcomes(payoff, np.zeros(count), payoff)

    market = cp.Market([cp.Agent("ana", 1, cp.Point(1.0))], horizon=1)
    options = {"runs": 2000, "confidence": 0.9, "outcomes": shifted, "chunk": 500, "threads": 1}
    found = [found_gain(market, UCB, "ana", (2,), seed=seed, **options) for seed in range(20)]
    missed = sum(not one.estimate.low <= 0.1 <= one.estimate.high for one in found)
    words_said = [one.decided for one in found]
    assert max(missed, words_said.count("does not pay")) <= binom.isf(1e-6, 20, 0.1)
    assert words_said.count("pays") > 10


def test_strata_narrow_the_interval():
    market = cp.Market([cp.Agent("ana", 2, BERNOULLI), cp.Agent("bo", 1, cp.Point(0.6))], horizon=30)
    errors = [
        found_gain(
            market, cp.mechanism("h-ucb"), "ana", (2, 1), runs=160, stop_when_decided=False, stratify=passes
        ).estimate.error
        for passes in (True, False)
    ]
    assert errors[0] < errors[1]


@given(st.integers(1, 2), st.integers(1, 30))
@settings(max_examples=2)
def test_threads_chunks_and_interruptions_leave_no_trace(threads, chunk):
    market = cp.Market([cp.Agent("ana", 2, BERNOULLI), cp.Agent("bo", 1, cp.Point(0.6))], horizon=6)
    whole = found_gain(market, UCB, "ana", (3, 1), runs=60)
    assert found_gain(market, UCB, "ana", (3, 1), runs=60, threads=threads, chunk=chunk) == whole

    def stop(status):
        if status.totals.runs >= 20:
            raise KeyboardInterrupt

    part = found_gain(market, UCB, "ana", (3, 1), runs=60, threads=threads, chunk=chunk, progress=stop)
    assert part.stopped == "interrupted"
    assert part.partial
    assert found_gain(market, UCB, "ana", (3, 1), runs=60, resume=part.progress) == whole
    with pytest.raises(EngineError, match="resume with the same market, mechanism, copies and seed"):
        found_gain(market, UCB, "ana", (2, 1), runs=60, resume=part.progress)


@given(markets())
@settings(max_examples=8)
def test_strata_are_the_prior(market):
    """The weights add up to 1, stratum by stratum to each realisation's probability, and a pass is short."""
    strata = strata_of(market)
    assert math.fsum(strata.weights) == pytest.approx(1, abs=1e-9)
    if not strata.means:
        assert strata.weights == (1.0,)
        return
    assert len(strata.means) == len(strata.weights) <= 512
    own = defaultdict(list)
    for weight, means in zip(strata.weights, strata.means, strict=True):
        own[tuple(means.items())].append(weight)
    realised = list(market.realisations())
    for weight, means in realised:
        assert math.fsum(own[tuple(means.items())]) == pytest.approx(weight, abs=1e-9)
    assert max(strata.weights) <= 2.1 * max(min(weight for weight, _ in realised), 1 / 256)


def test_a_budget_ends_it_undecided():
    market = cp.Market([cp.Agent("ana", 1, cp.Uniform(0, 1))], horizon=20)
    found = found_gain(market, UCB, "ana", (2,), stop_when_decided=False, seconds=0.3)
    assert (found.stopped, found.partial, found.decided) == ("budget", True, "undecided")


class Sleeper:
    def __init__(self, view):
        self.arms = view.arms

    def select(self):
        time.sleep(0.05)
        return self.arms[0]

    def update(self, arm, reward):
        pass


def test_a_gain_of_which_nothing_was_sampled_is_no_number():
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=100)
    with pytest.raises(cp.errors.EngineError, match=r"one pair of runs of 100 rounds, got 0\.01 s"):
        cp.gain(market, cp.BlackBox(Sleeper), "ana", (2,), search=cp.Search(seconds=0.01))
