"""Statements of the paper, computed: facts 1 to 3 of docs/reading.md through the reference simulator.

The prior is enumerated, rewards are deterministic, and what is left to chance is the breaking of ties; where that
matters, the runs are averaged.
"""

import pytest

import cloneproof as cp
from cloneproof.engines import simulate_run

BERN = cp.Discrete([0, 1], [0.5, 0.5])


def ex_ante(market, mechanism, copies=None, agent="ana", seeds=1):
    """The expected payoff over the prior, averaged over the seeds of ties."""
    total = 0.0
    for probability, means in market.realisations():
        world = market.at(means)
        total += probability * sum(simulate_run(world, mechanism, copies, seed).payoff[agent] for seed in range(seeds))
    return total / seeds


def regret_at_every_horizon(means, copies, mechanism, horizon, seed=0):
    """Cumulated regret up to each round: UCB does not look at the horizon, so one run tells them all."""
    market = cp.Market([cp.Agent("ana", prior=[cp.Point(m) for m in means])], horizon=horizon, rewards="deterministic")
    total, curve = 0.0, []
    for record in cp.simulate(market, mechanism, {"ana": copies}, seed):
        total += record.regret
        curve.append(total)
    return curve


@pytest.mark.parametrize(
    ("options", "paying"),
    [
        ({}, {7: 0.25}),
        ({"constant": 1.0}, {}),
        ({"constant": 1.0, "clock": "completed"}, {11: 0.25}),
    ],
)
def test_fact_1_ucb1_copying_pays_at_a_single_horizon(options, paying):
    """Theorem 1, one agent: (1, 0) honest, (1, 1, 0) or (1, 0, 0) copied, each with probability 1/2."""
    horizon, seeds = 20_000, 2
    mechanism = cp.mechanism("ucb1", **options)
    gains = []
    for seed in range(seeds):
        honest = regret_at_every_horizon((1, 0), (1, 1), mechanism, horizon, seed)
        lucky = regret_at_every_horizon((1, 0), (2, 1), mechanism, horizon, seed)
        unlucky = regret_at_every_horizon((1, 0), (1, 2), mechanism, horizon, seed)
        # the prior gives one hit and one dud with probability 1/2, else copies change nothing; from T = 2 on, since in
        # round 1 the tie decides
        gains.append([0.5 * (a - (b + c) / 2) for a, b, c in zip(honest, lucky, unlucky, strict=True)])
    settled = {t: g[0] for t, g in enumerate(zip(*gains, strict=True), start=1) if t >= 5 and g[0] == g[1]}
    assert {t: gain for t, gain in settled.items() if gain > 0} == paying


def test_fact_1_through_the_prior():
    market = cp.Market([cp.Agent("ana", 2, BERN)], horizon=7, rewards="deterministic")
    mechanism = cp.mechanism("ucb1")
    for seeds in (1, 20):  # ties do not matter at T = 7
        assert ex_ante(market, mechanism, seeds=seeds) == 4.25
        assert ex_ante(market, mechanism, {"ana": (2, 1)}, seeds=seeds) == 4.5


@pytest.mark.parametrize("mu", [0.0, 0.2, 0.48, 0.8, 1.0])
def test_fact_2_h_ucb_copying_pays_at_some_horizon(mu):
    """Theorem 1, two agents: for each opponent some T up to 60 pays; the mean over ties is far from zero there."""
    horizon, seeds = 60, 24

    def curve(copies):
        total = [0.0] * horizon
        market = cp.Market(
            [cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(mu))], horizon=horizon, rewards="deterministic"
        )
        for probability, means in market.realisations():
            for seed in range(seeds):
                sum_ = 0.0
                for record in cp.simulate(market.at(means), cp.mechanism("h-ucb"), copies, seed):
                    sum_ += record.reward * (record.agent == "ana")
                    total[record.round - 1] += probability * sum_ / seeds
        return total

    gains = [b - a for a, b in zip(curve(None), curve({"ana": (2, 1)}), strict=True)]
    assert max(gains) > 0.15


def test_fact_3_h_etc_r_is_not_clone_proof():
    """Theorem 4 is false as stated: M = mL, and one copy of one arm nearly doubles the payoff."""
    market = cp.Market(
        [cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=4000, rewards="deterministic"
    )
    m = cp.mechanism("h-etc-r", market=market).parameters["arm_rounds"]
    assert m == 36
    mechanism = cp.mechanism("h-etc-r", agent_rounds=m * 2, arm_rounds=m)
    assert ex_ante(market, mechanism) == pytest.approx(1000, abs=1e-9)
    assert ex_ante(market, mechanism, {"ana": (2, 1)}) == pytest.approx(1955, abs=1e-9)


def test_the_repair_is_not_moved_by_the_same_copy():
    market = cp.Market(
        [cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=4000, rewards="deterministic"
    )
    mechanism = cp.mechanism("holdout-h-etc", market=market)
    assert mechanism.at_horizon(2, 4000) is mechanism
    assert ex_ante(market, mechanism, {"ana": (2, 1)}) < ex_ante(market, mechanism)
