"""The search beyond grid and ladders, and what is said of all that was tried: that none gains more than so much."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import cloneproof as cp
from cloneproof.audits.deviations import OriginalKinds, neighbours
from cloneproof.audits.question import audit_case
from cloneproof.audits.race import race
from cloneproof.audits.race_state import HALF, LOOKS, NONE, Race, RaceEntry
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.kernel import Outcomes
from cloneproof.runs.tapes import run_streams, words

TWO = cp.Market([cp.Agent("ana", 2, cp.Point(1.0)), cp.Agent("bo", 1, cp.Point(1.0))], horizon=1)


def planted(chance):
    """Runs in which ana earns a coin of 1/2 when honest, and of that chance with copies, with tosses of its own."""

    def play(runs, first, count):
        job = runs.job
        copies = job.copies["ana"]
        key = 7 + sum(number * 1000**k for k, number in enumerate(copies))
        tosses = words(run_streams(job.seed, first, count), key) / 2.0**64
        payoff = np.full((count, 2), 0.5)
        if sum(copies) > len(copies):
            payoff[:, 0] = tosses < chance(copies)
        return Outcomes(payoff, np.zeros(count), payoff)

    return play


def raced(play, vectors, tolerance, seed=0, runs=4096, alpha=0.01, market=TWO):
    case = audit_case(market, cp.mechanism("ucb1"), "ana")
    search = cp.Search(runs=runs, seed=seed, bounds="distribution-free")
    (found,) = race([RaceEntry(case, v) for v in vectors], tolerance, search, Deadline(), alpha, play)
    return found


def peak(copies):
    """Highest at (9, 2), on a scale of doublings; the planned vectors below gain less than the tolerance."""
    away = math.log2(copies[0] / 9) ** 2 + math.log2(copies[1] / 2) ** 2
    return 0.52 + 0.4 * math.exp(-away / 4)


def test_a_mix_that_no_grid_has_is_found():
    planned = [(2, 1), (4, 1), (2, 2), (4, 4), (16, 1), (64, 1), (16, 16)]
    found = raced(planted(peak), planned, tolerance=0.7)
    paying = [v for v, one in found.evaluated.items() if one.gain.low > 0.7 * one.honest.high]
    assert all(peak(vector) < 0.81 for vector in planned)
    assert paying
    assert set(paying) <= set(found.added)
    assert all(peak(vector) > 0.85 for vector in paying)
    assert {found.samples[v].seed for v in paying}.isdisjoint(found.samples[v].seed for v in planned)


def test_nothing_is_added_where_no_gain_rises():
    found = raced(planted(lambda copies: 0.5), [(2, 1), (4, 1), (2, 2)], tolerance=0.1, runs=512)
    assert found.added == ()


def test_what_is_said_of_the_tried_covers_with_those_that_were_added():
    """All candidates gain a fifth: the largest bound of planned and added ones falls below as seldom as it says."""
    alpha, many = 0.5, 8
    found = [raced(planted(lambda copies: 0.6), [(2, 1), (4, 1)], 1.0, seed, 64, alpha) for seed in range(many)]
    assert any(one.added for one in found)
    assert sum(max(one.at_most.values()) < 0.2 for one in found) <= binom.isf(1e-6, many, 0.4 * alpha)


def test_the_scope_names_what_was_added():
    """Under Thompson sampling the gain still rises at the last rung of the ladder, 64 copies for 90 rounds."""
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.5)), cp.Agent("bo", 1, cp.Point(0.5))], horizon=90)
    found = cp.audit(market, cp.mechanism("thompson"), agent="ana", search=cp.Search(copies=2, runs=32), tolerance=1.5)
    assert found.verdict == "undecided"
    assert "among them beyond these, where the gain rose: (" in str(found.scope)
    assert len(found.tried) > 7  # the ladder up to 64 copies, and 3 of the grid


@pytest.mark.parametrize("factor", [2.0, 1.5, 1.0])
def test_neighbours_are_canonical_and_no_original_is_left_out(factor):
    for vector in neighbours(OriginalKinds((0, 0)), (3, 1), factor):
        assert vector[0] >= vector[1] >= 1
        assert vector not in ((3, 1), (1, 1))


def bounds_of(seed, numbers, alpha):
    """Of candidates that each gain a tenth, of one original."""
    one = cp.Market([cp.Agent(name, 1, cp.Point(1.0)) for name in ("ana", "bo")], horizon=1)
    vectors = [(number,) for number in numbers]
    return list(raced(planted(lambda copies: 0.55), vectors, 10.0, seed, 32, alpha, one).at_most.values())


def test_the_largest_of_the_bounds_covers_without_a_union():
    """Five equal candidates: the largest bound covers as often as it says, though single ones may miss."""
    alpha = 0.5
    found = [bounds_of(seed, range(2, 7), alpha) for seed in range(12)]
    assert sum(max(bounds) < 0.1 for bounds in found) <= binom.isf(1e-6, 12, NONE * alpha)
    shared = [max(bounds_of(seed, range(2, 7), alpha / 5)) for seed in range(3)]
    assert np.mean([max(bounds) for bounds in found[:3]]) < np.mean(shared)
    assert pytest.approx(1.0) == HALF + NONE + LOOKS


def test_a_race_that_left_some_out_shares_the_level(monkeypatch):
    whole = bounds_of(3, range(2, 6), 0.01)
    evaluate = Race.evaluate
    monkeypatch.setattr(
        Race, "evaluate", lambda state, draw: None if draw.entry.copies == (5,) else evaluate(state, draw)
    )
    part = bounds_of(3, range(2, 6), 0.01)
    assert len(part) == 3
    assert all(few > every for few, every in zip(part, whole, strict=False))
