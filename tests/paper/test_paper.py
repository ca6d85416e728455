"""Facts of docs/reading.md that no row of the reproduction has, by the exact engines."""

import math

import pytest

import cloneproof as cp

BERN = cp.Discrete([0, 1], [0.5, 0.5])


def payoff(market, mechanism, copies, **options):
    return cp.evaluate(market, mechanism, {"ana": copies}, **options).payoff["ana"]


@pytest.mark.parametrize(
    ("rewards", "honest", "copied"), [("deterministic", 1000, 1955), ("bernoulli", 1083.6, 1835.5)]
)
def test_fact_3_at_4000(rewards, honest, copied):
    """One copy of one arm nearly doubles the payoff. Bo's rewards may be noisy too."""
    market = cp.Market([cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=4000, rewards=rewards)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36)
    first, second = (payoff(market, mechanism, copies) for copies in ((1, 1), (2, 1)))
    assert (second - first).low > 700
    assert (second - first).kind == "exact"
    assert first.value == pytest.approx(honest, abs=0.5)
    assert second.value == pytest.approx(copied, abs=0.5)


def single(values, weights, originals, horizon):
    return cp.Market([cp.Agent("ana", originals, cp.Discrete(values, weights))], horizon=horizon)


def test_fact_4_its_limits():
    """Means (1/4, 3/4), m = 20: covered up to T = 1,480; copies (2, 2) pay from about T = 58,210 on."""

    def covered(horizon):
        return math.exp(-20 * 0.25) <= 20 / (2 * horizon)

    assert covered(1480)
    assert not covered(1490)
    mechanism = cp.mechanism("etc", arm_rounds=20)
    fixed = [cp.Agent("ana", prior=[cp.Point(0.25), cp.Point(0.75)])]

    def gain(horizon):
        market = cp.Market(fixed, horizon=horizon)
        return payoff(market, mechanism, (2, 2)) - payoff(market, mechanism, (1, 1))

    assert gain(1480).high < 0
    assert gain(58_205).high < 0
    assert gain(58_215).low > 0


def test_fact_6_withholding_pays_at_a_short_horizon():
    market = single([0, 1], [0.5, 0.5], 3, 96)
    mechanism = cp.mechanism("etc", market=market)
    assert mechanism.parameters["arm_rounds"] == 32
    assert payoff(market, mechanism, (1, 1, 1)).value == pytest.approx(48, abs=1e-9)
    assert payoff(market, mechanism, (1, 1, 0)).value == pytest.approx(56, abs=1e-9)
