"""That none of the candidates gains more than x: a level that is not shared, and what it must not be used for."""

import numpy as np
import pytest
from scipy.stats import binom

import cloneproof as cp
from cloneproof.analysis.audit import race as pilot
from cloneproof.analysis.audit import race_state as levels
from cloneproof.analysis.audit.question import audit_case
from cloneproof.analysis.audit.race import look, race
from cloneproof.analysis.audit.race_state import RaceEntry
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.monte_carlo.job import Outcomes, run_streams, words

MARKET = cp.Market([cp.Agent("ana", 1, cp.Point(1.0)), cp.Agent("bo", 1, cp.Point(1.0))], horizon=1)
TRUTH = 0.1


def coins(job, first, count):
    """Half a coin without copies; a coin of 0.55 with any: each candidate gains a tenth, with tosses of its own."""
    copies = job.copies["ana"][0]
    tosses = words(run_streams(job.seed, first, count), 7 + copies) / 2.0**64
    payoff = np.full((count, 2), 0.5)
    if copies > 1:
        payoff[:, 0] = tosses < 0.5 * (1 + TRUTH)
    return Outcomes(payoff, np.zeros(count), payoff)


def bounds_of(seed, numbers, alpha):
    case = audit_case(MARKET, cp.mechanism("ucb1"), "ana")
    entries = [RaceEntry(case, (number,)) for number in numbers]
    (found,) = race(entries, 10.0, cp.Search(runs=32, seed=seed), Deadline(), None, alpha, coins)
    return list(found.at_most.values())


def test_the_largest_of_the_bounds_covers_without_a_union():
    """Five equal candidates: the largest bound covers as often as it says, though single ones may miss."""
    alpha = 0.5
    found = [bounds_of(seed, range(2, 7), alpha) for seed in range(12)]
    assert sum(max(bounds) < TRUTH for bounds in found) <= binom.isf(1e-6, 12, levels.NONE * alpha)
    shared = [max(bounds_of(seed, range(2, 7), alpha / 5)) for seed in range(3)]
    assert np.mean([max(bounds) for bounds in found[:3]]) < np.mean(shared)


def test_a_race_that_left_some_out_shares_the_level(monkeypatch):
    whole = bounds_of(3, range(2, 6), 0.01)
    monkeypatch.setattr(pilot, "look", _without_the_last(look))
    part = bounds_of(3, range(2, 6), 0.01)
    assert len(part) == 3
    assert all(few > every for few, every in zip(part, whole, strict=False))


def _without_the_last(look):
    def some(state, entry):
        return entry.copies != (5,) and look(state, entry)

    return some


def test_the_levels_add_up():
    assert pytest.approx(1.0) == levels.HALF + levels.NONE + levels.LOOKS
