"""Means and random words in bulk are those of the reference, bit for bit."""

from hypothesis import given
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof._lib import randomness
from cloneproof.runs.job import Job
from cloneproof.runs.tapes import drawn_means, means_of_runs, run_streams
from support.strategies import markets


@given(markets(), st.integers(0, 2**63 - 1), st.integers(0, 1000))
def test_means_are_those_of_the_reference(market, seed, first):
    job = Job(market, {}, seed)
    means = means_of_runs(job, first, 3)
    for row, run in zip(means, range(first, first + 3), strict=True):
        assert row.tolist() == [mean for drawn in drawn_means(market, seed, run).values() for mean in drawn]
    assert [int(s) for s in run_streams(seed, first, 3)] == [
        randomness.substream(0, seed, r) for r in range(first, first + 3)
    ]


def test_strata_take_turns():
    market = cp.Market([cp.Agent("ana", 2, cp.Discrete([0, 1], [0.5, 0.5]))], horizon=4)
    strata = tuple(means for _, means in market.realisations())
    means = means_of_runs(Job(market, {}, 0, strata), 2, 4)
    assert means.tolist() == [[1, 0], [1, 1], [0, 0], [0, 1]]
