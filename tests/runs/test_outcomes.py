"""The choice of a kernel, and that the choice never shows in the contract of a chunk."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.mechanisms import CATALOGUE
from cloneproof.runs.tapes import drawn_means
from support.strategies import small

MARKET = cp.Market([cp.Agent("ana", 2, cp.Uniform()), cp.Agent("bo", 1, cp.Point(0.6))], horizon=50, share=0.5)
PAGES = cp.Market(MARKET.agents, horizon=50, share=0.5, positions=(1.0, 0.6))
THINGS = {"odd": object()}
NOT_COMPILED = cp.mechanism("ucb1", bonus=lambda t, n: 1 / n if THINGS["odd"] else 0.0)


def job(mechanism, market=MARKET, strata=()):
    return runs_of(market, mechanism, full_copies(market.agents, {"ana": (2, 0)}), 3, strata)


@pytest.mark.parametrize(
    ("mechanism", "names"),
    [
        (small("h-etc-r"), {"blocks"}),
        (small("h-etc-r", choice="greedy"), {"stepping"}),
        (small("thompson"), {"stepping"}),
        (small("h-ucb"), {"stepping"}),
        (NOT_COMPILED, {"reference"}),
    ],
)
def test_the_kernel_follows_the_structure(mechanism, names):
    assert job(mechanism).kernel.name in names


KEPT = [*((small(name), MARKET) for name in CATALOGUE), (NOT_COMPILED, MARKET)]
KEPT += [(own, PAGES) for own, _ in KEPT if getattr(own, "ranks_pages", False)]
KEPT += [(small("reservoir", threshold=None, choose="best"), PAGES), (small("reservoir-streams"), PAGES)]


@pytest.mark.parametrize(("mechanism", "market"), KEPT, ids=str)
def test_every_kernel_keeps_the_contract(mechanism, market):
    """Outcomes depend on the number of the run and not on the chunk; means of strata take the place of drawn ones."""
    whole = job(mechanism, market)(5, 6)
    assert whole.payoff.shape == (6, 2)
    assert whole.regret.shape == (6,)
    assert np.all(whole.payoff.sum(axis=1) <= 25 * max(1, len(market.places)))
    strata = tuple(drawn_means(market, 3, run) for run in (8, 9))
    pieces = job(mechanism, market)(8, 3), job(mechanism, market, strata)(8, 2)
    for later in pieces:
        same = slice(3, 3 + len(later.regret))
        assert np.array_equal(whole.payoff[same], later.payoff)
        assert np.array_equal(whole.regret[same], later.regret)


@pytest.mark.parametrize("name", ["h-etc-r", "h-ucb", "thompson"])
def test_threads_do_not_matter(name):
    """Kernels release the interpreter and share nothing."""
    whole = job(small(name))(0, 400)
    with ThreadPoolExecutor(2) as pool:
        pieces = list(pool.map(lambda first: job(small(name))(first, 100), range(0, 400, 100)))
    assert np.array_equal(whole.payoff, np.concatenate([piece.payoff for piece in pieces]))
