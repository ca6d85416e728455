"""What agents are served: rewards replaced by the means of the pulled arms."""

import numpy as np
import pytest
from scipy.stats import norm

import cloneproof as cp
from cloneproof.audits.deviations import CopiesOf
from cloneproof.audits.gain import PairedSampling, sampled_gain
from cloneproof.errors import EngineError
from cloneproof.evaluation.reference import runs_of
from cloneproof.runs.job import strata_of
from cloneproof.runs.statistics import reach_of, served_bounds

AGENTS = [cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5])), cp.Agent("bo", 1, cp.Point(0.6))]
COPIES = {"ana": (3, 1), "bo": (1,)}
MARKET = cp.Market(AGENTS, horizon=60, share=0.4)


def test_rewards_add_noise_and_nothing_else():
    job = runs_of(MARKET.with_horizon(400), cp.mechanism("thompson"), COPIES, seed=1, strata=strata_of(MARKET).means)
    found = job(0, 2000)
    noise = found.payoff - found.served
    error = noise.std(axis=0) / np.sqrt(len(noise))
    assert (np.abs(noise.mean(axis=0)) <= -norm.ppf(1e-6 / 4) * error).all()
    inside = [values.reshape(-1, 4, 2).var(axis=0).mean(axis=0) for values in (found.payoff, found.served)]
    assert (inside[1] < inside[0]).all()


class ForTwo:
    """Serves the agent with two arms, or else the other one, in every round."""

    def __init__(self, view):
        self.arm = 0 if len(view.arms) == 3 else len(view.arms) - 1

    def select(self):
        return self.arm

    def update(self, arm, reward):
        pass


def test_the_range_of_a_gain_is_reached_and_not_passed(monkeypatch):
    """Nothing or everything is served: the bounds of gain and payoff hold with equality, so none less would do."""
    market = cp.Market([cp.Agent("ana", 1, cp.Point(0.7)), cp.Agent("bo", 1, cp.Point(0.9))], horizon=50, share=0.4)
    assert served_bounds(market, "ana").high == pytest.approx(0.4 * 50 * 0.7)
    worlds = [runs_of(market, cp.BlackBox(ForTwo), {"ana": copies, "bo": (1,)}) for copies in ((1,), (2,))]
    honest, copied = (world(0, 1).served[0, 0] for world in worlds)
    assert (honest, copied) == (0.0, pytest.approx(served_bounds(market, "ana").high))
    sampling = PairedSampling(runs=4, threads=1)
    found = sampled_gain(market, cp.BlackBox(ForTwo), CopiesOf("ana", (2,)), sampling)
    assert (found.estimate.value, found.honest.value, found.copied.value) == pytest.approx((14.0, 0.0, 14.0))
    too_small = served_bounds(market.with_horizon(49), "ana")
    monkeypatch.setattr("cloneproof.audits.gain.served_bounds", lambda market, agent: too_small)
    with pytest.raises(EngineError, match="expected every run's outcome between"):
        sampled_gain(market, cp.BlackBox(ForTwo), CopiesOf("ana", (2,)), sampling)


def test_the_range_of_a_stratum_is_that_of_its_best_mean():
    strata = strata_of(MARKET)
    assert reach_of(strata.means, "ana") == (0.25, 1.0, 1.0, 1.0)
    assert reach_of(strata.means, "bo") == (1.0,) * 4
    assert reach_of((), "bo") == ()
    always = cp.Market([cp.Agent("ana", 2, cp.Discrete([0.2, 0.8], [0.5, 0.5]))], horizon=9)
    served = runs_of(always, cp.mechanism("etc", arm_rounds=1), {"ana": (1, 1)}, 0, strata_of(always).means)(0, 64)
    ceiling = served_bounds(always, "ana").high * np.array(reach_of(strata_of(always).means, "ana"))
    assert (served.served.reshape(-1, 4).max(axis=0) <= ceiling + 1e-12).all()
    assert served.served.reshape(-1, 4).max(axis=0)[[0, 3]] == pytest.approx(ceiling[[0, 3]])  # equal means: reached
