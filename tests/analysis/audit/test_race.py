"""Successive elimination on paired samples."""

import pytest

import cloneproof as cp
from cloneproof.analysis.audit.search import race as sampled
from cloneproof.analysis.gain import sampled_gain

PAIR = [cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))]


@pytest.fixture
def sampling(monkeypatch):
    calls = []

    def counted(market, mechanism, agent, copies, options):
        calls.append((agent, copies[agent], options))
        return sampled_gain(market, mechanism, agent, copies, options)

    monkeypatch.setattr(sampled, "sampled_gain", counted)
    return calls


def test_a_sampled_weakness_is_found_with_confidence(sampling):
    found = cp.audit(cp.Market(PAIR, horizon=24), cp.mechanism("thompson"), agent="ana", runs=512)
    assert found.verdict == "exploitable"
    assert found.worst.gain.kind == "confidence"
    assert found.worst.gain.low > 0
    assert "confidence sequence" in found.scope
    confidences = {options.confidence for _, _, options in sampling}
    assert confidences == {1 - 0.01 / (2 * len({copies for _, copies, _ in sampling}))}


def test_nothing_is_claimed_of_what_samples_cannot_tell(sampling):
    found = cp.audit(cp.Market(PAIR, horizon=24), cp.mechanism("thompson"), agent="ana", runs=32)
    assert found.verdict == "undecided"


def test_candidates_that_cannot_win_are_dropped(sampling):
    thrice = [cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.9))]
    cp.audit(cp.Market(thrice, horizon=12), cp.mechanism("thompson"), agent="ana", max_copies=2, runs=128)
    passes = {}
    for _, copies, options in sampling:
        passes.setdefault(options.runs, set()).add(copies)
    sizes = [len(passes[runs]) for runs in sorted(passes)]
    assert sizes == sorted(sizes, reverse=True)


def test_an_argument_spares_the_samples(sampling):
    mechanism = cp.Mechanism(agent=cp.rule("uniform"), arm=cp.rule("thompson"))
    found = cp.audit(cp.Market(PAIR, horizon=24), mechanism, runs=4096)
    assert found.verdict == "clone-proof"
    assert sampling == []
    assert found.worst.gain.value == 0
    assert found.worst.gain.kind == "proven"


def test_a_budget_ends_it(sampling):
    market = cp.Market(PAIR, horizon=200)
    cp.gain(market, cp.mechanism("thompson"), "ana", (2,), runs=1)  # what has to be compiled is compiled
    found = cp.audit(market, cp.mechanism("thompson"), budget_seconds=0.4)
    assert len(found.tried) <= 16  # the ladder has nine rungs for each agent, and each is to be had at 2,048 pairs
    assert max(int(one.gain.method.split()[0]) for one in found.tried) < 2048
    assert found.verdict in ("undecided", "exploitable")


def test_a_good_guess_is_confirmed_by_samples(sampling):
    market = cp.Market([cp.Agent("ana", 2, cp.Uniform(0, 1))], horizon=40)
    found = cp.audit(market, cp.mechanism("etc", arm_rounds=1), max_copies=2, runs=64)
    assert {one.gain.kind for one in found.tried} == {"estimated", "confidence"}


def test_too_many_horizons_to_sample(sampling):
    with pytest.raises(cp.errors.EngineError, match="at most 50 horizons"):
        cp.audit(cp.Market(PAIR, horizon=24), cp.mechanism("thompson"), horizons="1:60")
