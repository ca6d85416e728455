"""Kernels for pages of several places: the bits of a session, or its law."""

import math
from typing import Any

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.engines.monte_carlo.job import Job, reference_outcomes
from cloneproof.engines.monte_carlo.outcomes import kernel_for

HITS = cp.Discrete([0.1, 0.6], [0.5, 0.5])
AGENTS = [cp.Agent("ana", 2, HITS), cp.Agent("bo", 1, cp.Point(0.4)), cp.Agent("cy", 3, HITS)]
COPIES = {"ana": (2, 1), "bo": (1,), "cy": (1, 1, 1)}
RUNS = 20_000
ONE_IN_A_MILLION = 5.7  # standard errors, for ten comparisons


BANDITS = [
    *(cp.mechanism(name, one_place_each=one_each) for name in ("ucb1", "kl-ucb") for one_each in (False, True)),
    cp.mechanism("thompson"),
    cp.mechanism("thompson", one_place_each=True, alpha=2, beta=7.5),
    cp.mechanism("h-thompson"),
    cp.mechanism("h-thompson", alpha=1.5, beta=4),
    cp.mechanism("h-kl-ucb", horizon=12),
    cp.mechanism("h-kl-ucb", horizon=12, width="horizon", within="kl-ucb"),
    cp.mechanism("h-ucb"),
    cp.Mechanism(agent=cp.rule("epsilon-greedy"), arm=cp.rule("uniform")),
    cp.Mechanism(arm=cp.rule("steady-ucb")),
]


@pytest.mark.parametrize("mechanism", BANDITS, ids=str)
@pytest.mark.parametrize("places", [1, 2, 9])
def test_bandits_have_the_bits_of_a_session(mechanism: cp.Mechanism, places: int) -> None:
    """Also two levels; a view counts as the attention of its place."""
    market = cp.Market(AGENTS, 12, positions=np.linspace(1, 0.3, places).tolist(), share=0.5)
    job = Job(market, mechanism, COPIES, seed=7)
    kernel, play = kernel_for(job)
    assert kernel == "ranked pages"
    found, expected = play(job, 3, 4), reference_outcomes(job, 3, 4)
    np.testing.assert_array_equal(found.payoff, expected.payoff)
    np.testing.assert_allclose(found.served, expected.served, rtol=1e-12)
    np.testing.assert_allclose(found.regret, expected.regret, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "numbers", "places", "horizon"),
    [
        ("reservoir", {"rounds": 2, "draws": 2, "rank_rounds": 1}, (1, 0.6), 40),
        ("reservoir", {"rounds": 2, "draws": 3}, (0.9, 0.8, 0.7, 0.7, 0.1), 40),
        ("reservoir", {"rounds": 2, "draws": 3, "scores": "tests"}, (1, 0.6), 40),
        ("reservoir", {"rounds": 3, "draws": 2}, (1,), 40),
        ("reservoir", {"rounds": 5, "draws": 2}, (1, 0.6), 22),
        ("reservoir-streams", {"rotations": 2, "blocks": 3}, (1, 0.6), 40),
        ("reservoir-streams", {"rotations": 1, "blocks": 4}, (1, 0.8, 0.5), 40),
        ("reservoir-streams", {"pages": 4}, (1, 0.8, 0.5, 0), 42),
    ],
)
def test_reservoirs_have_the_law_of_a_session(
    name: str, numbers: dict[str, Any], places: tuple[float, ...], horizon: int
) -> None:
    """Means and spreads of what agents are served and paid, against plain Python; many places, and tests cut short."""
    market = cp.Market(AGENTS, horizon, positions=places)
    job = Job(market, cp.mechanism(name, **numbers), COPIES, seed=3)
    kernel, play = kernel_for(job)
    assert kernel == "laboratory"
    fast, slow = play(job, 0, RUNS), reference_outcomes(job, 0, 300)
    for one, other in ((fast.payoff, slow.payoff), (fast.served, slow.served)):
        assert (abs(one.mean(axis=0) - other.mean(axis=0)) < ONE_IN_A_MILLION * one.std(axis=0) / math.sqrt(300)).all()
        squares = [((each - one.mean(axis=0)) ** 2) for each in (one, other)]
        error = ONE_IN_A_MILLION * squares[0].std(axis=0) / math.sqrt(300)
        assert (abs(squares[0].mean(axis=0) - squares[1].mean(axis=0)) < error).all()
    assert abs(fast.regret.mean() - slow.regret.mean()) < ONE_IN_A_MILLION * fast.regret.std() / math.sqrt(300)
    assert fast.rounds is not None
    assert (fast.rounds.sum(axis=1) == horizon * min(sum(each > 0 for each in places), 3)).all()
    np.testing.assert_array_equal(play(job, 5, 2).payoff, fast.payoff[5:7])


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("reservoir", {"rounds": 4, "draws": 3}), ("reservoir-streams", {"rotations": 2, "blocks": 5})],
)
def test_evaluate_gain_and_audit_on_pages(name: str, numbers: dict[str, int]) -> None:
    market = cp.Market(AGENTS, 200, positions=(1, 0.6))
    ours = cp.mechanism(name, **numbers)
    assert cp.evaluate(market, ours, search=cp.Search(runs=200)).engine == "monte-carlo"
    audit = cp.audit(market, ours, agent="ana", search=cp.Search(runs=2000))
    assert audit.verdict == "clone-proof"
    assert "docs/textbook/slates.md" in str(audit)
    found = cp.gain(market, ours, "ana", (4, 1), search=cp.Search(runs=4000), stop_when_decided=False)
    assert found.estimate.high < 0
    theirs = cp.audit(market, cp.mechanism("ucb1"), agent="bo", search=cp.Search(runs=400, copies=3))
    assert theirs.verdict == "exploitable"


def test_worlds_made_of_a_market_keep_its_places() -> None:
    """Five variants of each listing earn about what honesty does; on a page of one place they would earn far less."""
    market = cp.Market(AGENTS[::2], 200, positions=(1, 1))
    rows = cp.compare(market, ["reservoir"], search=cp.Search(runs=300))
    assert rows[0].variants is not None
    assert abs(rows[0].variants.relative_gain) < 0.3
