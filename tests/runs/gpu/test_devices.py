"""device= from end to end, with the C++ build of the kernels in the card's place."""

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.errors import EngineError
from cloneproof.evaluation.reference import runs_of
from cloneproof.runs import sampler
from cloneproof.runs.gpu import launch, records
from cloneproof.runs.kernel import CardPlan
from support.host_kernels import HostKernels, needs_compiler

MARKET = cp.Market(
    [cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))], horizon=60, share=0.4
)


def test_without_a_card_device_gpu_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)  # as where it is not installed
    launch.why_no_card.cache_clear()
    for ask in (
        lambda: cp.evaluate(MARKET, cp.mechanism("thompson"), engine="runs", search=cp.Search(device="gpu")),
        lambda: cp.gain(MARKET, cp.mechanism("thompson"), "ana", (2, 1), search=cp.Search(device="gpu")),
        lambda: cp.audit(MARKET, cp.mechanism("thompson"), search=cp.Search(device="gpu")),
    ):
        with pytest.raises(EngineError, match=r"expected a GPU .* got none: CuPy"):
            ask()
    launch.why_no_card.cache_clear()


def test_an_unknown_device_is_refused():
    with pytest.raises(EngineError, match="unknown device 'gpus'; did you mean 'gpu'"):
        cp.evaluate(MARKET, cp.mechanism("ucb1"), search=cp.Search(device="gpus"))


@needs_compiler
def test_results_differ_in_nothing_but_the_note(as_card):
    asked = cp.Search(runs=300, seed=5)
    for name in ("ucb1", "thompson", "h-ucb"):
        theirs = cp.evaluate(MARKET, cp.mechanism(name), engine="runs", search=replace(asked, device="cpu"))
        mine = cp.evaluate(MARKET, cp.mechanism(name), engine="runs", search=replace(asked, device="gpu"))
        assert mine.payoff == theirs.payoff
        assert mine.regret == theirs.regret
        assert mine.notes == (*theirs.notes, "drawn on the GPU (C++)")
    pairs = [
        cp.gain(MARKET, cp.mechanism("thompson"), "ana", (2, 1), search=cp.Search(runs=64, device=each))
        for each in ("cpu", "gpu")
    ]
    assert pairs[0].progress == pairs[1].progress
    assert pairs[1].estimate.method.startswith("64 pairs of runs")
    assert "drawn on the GPU (C++)" in pairs[1].estimate.method


@needs_compiler
def test_what_the_card_does_not_play_is_drawn_on_the_cpu_and_says_so(as_card):
    found = cp.evaluate(
        MARKET, cp.mechanism("etc", arm_rounds=2), engine="runs", search=cp.Search(runs=2, device="gpu")
    )
    assert any("drawn on the CPU, not on the GPU: its rewards" in note for note in found.notes)
    greedy = cp.evaluate(MARKET, cp.mechanism("epsilon-greedy"), engine="runs", search=cp.Search(runs=2, device="gpu"))
    assert (
        "drawn on the CPU, not on the GPU: no kernel on the GPU plays this mechanism with these rewards" in greedy.notes
    )
    assert as_card.launches == 0


@needs_compiler
def test_an_audit_on_the_card_has_the_sums_of_one_on_a_cpu(as_card):
    asked = cp.Search(copies=2, runs=32, seed=3)
    theirs, mine = (
        cp.audit(MARKET.with_horizon(12), cp.mechanism("thompson"), agent="ana", search=replace(asked, device=device))
        for device in ("cpu", "gpu")
    )
    assert "drawn on the GPU (C++)" in mine.notes
    assert as_card.launches > 0
    assert [each.progress for each in mine.samples] == [each.progress for each in theirs.samples]


@needs_compiler
def test_runs_of_a_race_are_drawn_ahead_in_one_launch(as_card):
    jobs = [
        runs_of(MARKET, cp.mechanism("thompson"), {"ana": copies, "bo": (1,)}, 7) for copies in ((1, 1), (2, 1), (3, 3))
    ]
    ahead = launch.ReadAheadRuns()
    ahead.expect(jobs)
    assert as_card.launches == 1
    for job in jobs:
        for first, count in ((0, 5), (200, 100)):
            assert np.array_equal(ahead(job, first, count).rows, job(first, count).rows)


@needs_compiler
def test_a_wrong_bonus_would_be_noticed(monkeypatch):
    """The comparison can fail: a root that is off by one part in a thousand changes decisions."""
    job = runs_of(MARKET.with_horizon(400), cp.mechanism("ucb1"), {"ana": (3, 2), "bo": (2,)}, 1)
    runs = records.RunRange(job, 0, 64)
    right = launch.play_ranges(HostKernels(), [runs])[0]
    assert np.array_equal(right.payoff, job(0, 64).payoff)
    table = records.whole_bonus(job.kernel.card.arm, 400)
    wrong = table._replace(roots=(table.roots * (1 + 1e-3)).astype(np.uint32))
    monkeypatch.setattr(records, "whole_bonus", lambda rule, horizon: wrong)
    assert not np.array_equal(launch.play_ranges(HostKernels(), [runs])[0].payoff, right.payoff)


def test_auto_stays_on_the_cpu_where_nothing_is_installed():
    job = runs_of(MARKET, cp.mechanism("ucb1"), {"ana": (1, 1), "bo": (1,)})
    assert isinstance(job.kernel.card, CardPlan)
    with sampler.run_source([job]) as source:
        assert source.notes == ()


def auto_on_card(monkeypatch, name, horizon, runs, copies=1, **options):
    """Whether `auto` takes a card that is there, on a machine of two cores."""
    installed = ModuleType("cupy")
    installed.__spec__ = ModuleSpec("cupy", None)
    monkeypatch.setitem(sys.modules, "cupy", installed)
    monkeypatch.setattr(sampler, "available_threads", lambda: 2)
    job = runs_of(MARKET.with_horizon(horizon), cp.mechanism(name, **options), {"ana": (copies, copies), "bo": (1,)})
    with sampler.run_source([job], runs, "auto") as source:
        return source.notes != ()


@needs_compiler
def test_auto_takes_the_card_for_long_samplings_only(as_card, monkeypatch):
    for name, long in (("ucb1", 10**5), ("thompson", 10**4), ("h-ucb", 10**5), ("kl-ucb", 10**3)):
        assert not auto_on_card(monkeypatch, name, 1000, 10)
        assert auto_on_card(monkeypatch, name, 10_000, long)


@needs_compiler
def test_auto_leaves_many_arms_and_what_the_card_does_not_play_to_the_cores(as_card, monkeypatch):
    assert not auto_on_card(monkeypatch, "h-ucb", 10_000, 10**6, copies=1000)
    assert not auto_on_card(monkeypatch, "etc", 10_000, 10**6, arm_rounds=2)
    assert not auto_on_card(monkeypatch, "epsilon-greedy", 10_000, 10**6)
