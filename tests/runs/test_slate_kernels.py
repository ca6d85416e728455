"""Kernels for pages of several places have the bits of a session."""

import numpy as np
import pytest

import cloneproof as cp
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.delays import Delays
from support.reference_runs import reference_outcomes

HITS = cp.Discrete([0.1, 0.6], [0.5, 0.5])
AGENTS = [cp.Agent("ana", 2, HITS), cp.Agent("bo", 1, cp.Point(0.4)), cp.Agent("cy", 3, HITS)]
COPIES = {"ana": (2, 1), "bo": (1,), "cy": (1, 1, 1)}
BANDITS = [
    *(cp.mechanism(name, one_place_each=one_each) for name in ("ucb1", "kl-ucb") for one_each in (False, True)),
    cp.mechanism("thompson"),
    cp.mechanism("thompson", one_place_each=True, alpha=2, beta=7.5),
    cp.mechanism("h-thompson"),
    cp.mechanism("h-thompson", alpha=1.5, beta=4),
    cp.bandit(agent=cp.rule("steady-kl-ucb", horizon=12), arm=cp.rule("kl-ucb", clock="completed")),
    cp.mechanism("h-ucb"),
    cp.bandit(agent=cp.rule("epsilon-greedy"), arm=cp.rule("uniform")),
    cp.bandit(arm=cp.rule("steady-ucb")),
]


RESERVOIRS = [
    (cp.mechanism("reservoir", rounds=2, draws=3), (0.9, 0.8, 0.7, 0.7, 0.1), 60),
    (cp.mechanism("reservoir", rounds=3, draws=2), (1,), 40),
    (cp.mechanism("reservoir", rounds=5, draws=2), (1, 0.6), 22),
    (cp.mechanism("reservoir", rounds=2, draws=2), (1, 0.6), 150),
    (cp.mechanism("reservoir-streams", rotations=2, blocks=3), (1, 0.6), 150),
    (cp.mechanism("reservoir-streams", rotations=1, blocks=4), (1, 0.8, 0.5), 60),
    (cp.mechanism("reservoir-streams", rotations=2, blocks=4), (1, 0.8, 0.5, 0), 42),
]
FROZEN = [RESERVOIRS[1][0]]  # the pages after the laboratory are one step
CASES = [(made, np.linspace(1, 0.3, places).tolist(), 12) for made in BANDITS for places in (1, 2, 9)]


@pytest.mark.parametrize(("mechanism", "places", "horizon"), CASES + RESERVOIRS, ids=str)
def test_pages_have_the_bits_of_a_session(mechanism: cp.Mechanism, places: tuple[float, ...], horizon: int) -> None:
    """Also two levels, where a view counts as the attention of its place; many places, and tests cut short."""
    job = runs_of(cp.Market(AGENTS, horizon, positions=places, share=0.5), mechanism, COPIES, seed=7)
    assert job.kernel.name == ("ranked pages" if mechanism in BANDITS else "laboratory")
    runs = 4 if mechanism in BANDITS else 30
    found, expected = job(3, runs), reference_outcomes(job, 3, runs)
    if job.mechanism not in FROZEN:
        np.testing.assert_array_equal(found.payoff, expected.payoff)
    np.testing.assert_allclose(found.served, expected.served, rtol=1e-12)
    np.testing.assert_allclose(found.regret, expected.regret, rtol=1e-9, atol=1e-12)


LATE = [Delays([(0.5, 0.5), (0.95, 6)], 24), Delays([(0.5, 3), (0.95, 6)], 24, [1, 0, 5, 2])]
STREAMS = [
    *((made, places, horizon) for made, places, horizon in RESERVOIRS if made.name == "reservoir-streams"),
    (cp.mechanism("reservoir-streams", rotations=1, blocks=2, turns=3), (1, 0.6), 200),
    (cp.mechanism("reservoir-streams", rotations=2, blocks=3), (1,), 80),
    (cp.mechanism("reservoir-streams", rotations=3, blocks=2, turns=70), (1, 0.5, 0.2, 0.1), 600),
]


@pytest.mark.parametrize("delays", LATE, ids=["steady", "by hour"])
@pytest.mark.parametrize(("mechanism", "places", "horizon"), STREAMS, ids=str)
def test_streams_with_late_clicks_have_the_bits_of_a_session(
    mechanism: cp.Mechanism, places: tuple[float, ...], horizon: int, delays: Delays
) -> None:
    """Clicks that miss a verdict, their draw's life or the season; nights without a visitor; verdicts by turns."""
    market = cp.Market(AGENTS, horizon, positions=places, delays=delays)
    job, prompt = (runs_of(own, mechanism, COPIES, seed=3) for own in (market, market.with_delays("none")))
    assert job.kernel.late
    found, expected = job(0, 20), reference_outcomes(job, 0, 20)
    np.testing.assert_array_equal(found.payoff, expected.payoff)
    np.testing.assert_allclose(found.regret, expected.regret, rtol=1e-9, atol=1e-12)
    assert (found.payoff != prompt(0, 20).payoff).any()


@pytest.mark.parametrize(("mechanism", "places", "horizon"), RESERVOIRS[1:2], ids=str)
def test_frozen_ranks_have_the_law_of_a_session(
    mechanism: cp.Mechanism, places: tuple[float, ...], horizon: int
) -> None:
    """The laboratory has a session's bits, and clicks after it the mean and the variance of coins, to 5.1 errors."""
    market = cp.Market(AGENTS, horizon, positions=places)
    before = runs_of(market.with_horizon(mechanism.laboratory_pages(len(AGENTS))), mechanism, COPIES, seed=7)
    np.testing.assert_array_equal(before(0, 30).payoff, reference_outcomes(before, 0, 30).payoff)
    certain = [cp.Agent(agent.name, agent.count, cp.Point(0.3)) for agent in AGENTS]
    job, runs = runs_of(market.with_agents(certain), mechanism, COPIES, seed=7), 20_000
    outcomes = job(0, runs)
    clicks, expected = outcomes.payoff.sum(axis=1), outcomes.served.sum(axis=1)
    chances = [0.3 * attention for attention in places[: len(AGENTS)]]
    variance = horizon * sum(chance * (1 - chance) for chance in chances)
    assert abs((clicks - expected).mean()) < 5.1 * (variance / runs) ** 0.5
    assert abs(((clicks - expected) ** 2).mean() / variance - 1) < 5.1 * (2 / runs) ** 0.5 * 1.05


@pytest.mark.parametrize(
    ("name", "numbers"),
    [("reservoir", {"rounds": 4, "draws": 3}), ("reservoir-streams", {"rotations": 2, "blocks": 5})],
)
def test_evaluate_gain_and_audit_on_pages(name: str, numbers: dict[str, int]) -> None:
    market = cp.Market(AGENTS, 200, positions=(1, 0.6))
    ours = cp.mechanism(name, **numbers)
    assert cp.evaluate(market, ours, search=cp.Search(runs=200)).engine == "runs"
    audit = cp.audit(market, ours, agent="ana", search=cp.Search(runs=2000))
    assert audit.verdict == "clone-proof"
    assert "docs/textbook/slates.md" in str(audit)
    found = cp.gain(market, ours, "ana", (4, 1), search=cp.Search(runs=4000), stop_when_decided=False)
    assert found.estimate.high < 0
    theirs = cp.audit(market, cp.mechanism("ucb1"), agent="bo", search=cp.Search(runs=400, copies=3))
    assert theirs.verdict == "exploitable"
