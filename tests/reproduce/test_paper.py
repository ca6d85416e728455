"""Facts 1 to 6 of docs/reading.md, by the exact engines."""

import math
from itertools import pairwise

import pytest

import cloneproof as cp
from cloneproof.bounds import etc_rounds
from support.sizes import LONG

BERN = cp.Discrete([0, 1], [0.5, 0.5])
LASTS = [("deterministic", 2000 if LONG else 100), ("bernoulli", 500 if LONG else 40)]  # one law, twice


def gains(market, mechanism, copies, horizons):
    """The gain of ana at every horizon, honest others; as estimates."""
    honest = cp.paper.evaluate_horizons(market, mechanism, horizons, engine="tree")
    copied = cp.paper.evaluate_horizons(market, mechanism, horizons, {"ana": copies}, engine="tree")
    return {h: copied[h].payoff["ana"] - honest[h].payoff["ana"] for h in honest}


def payoff(market, mechanism, copies, **options):
    return cp.evaluate(market, mechanism, {"ana": copies}, **options).payoff["ana"]


@pytest.mark.parametrize(
    ("options", "paying"),
    [
        ({"constant": 2.0}, {7: 0.25}),
        ({"constant": 1.0}, {}),
        ({"constant": 1.0, "clock": "completed"}, {11: 0.25}),
    ],
)
@pytest.mark.parametrize(("rewards", "last"), LASTS)
def test_fact_1_every_horizon(options, paying, rewards, last):
    market = cp.Market([cp.Agent("ana", 2, BERN)], horizon=last, rewards=rewards)
    found = gains(market, cp.mechanism("ucb1", **options), (2, 1), range(1, last + 1))
    assert {h: pytest.approx(gain.value, abs=1e-9) for h, gain in found.items() if gain.low > 0} == paying
    assert all(gain.error < 1e-6 for gain in found.values())
    for horizon in set(found) - set(paying):
        assert found[horizon].value < 1e-6


def test_fact_1_the_papers_own_horizon_does_not_pay():
    """T = s_1 + s_2 + 2 with s_1 = 1 and s_2 the first s with 1 + sqrt(c ln(s+2)/s) < sqrt(c ln(s+2)/2)."""
    for constant in (1.0, 2.0):
        s2 = next(
            s for s in range(1, 10**4)
            if 1 + math.sqrt(constant * math.log(s + 2) / s) < math.sqrt(constant * math.log(s + 2) / 2)
        )  # fmt: skip
        market = cp.Market([cp.Agent("ana", 2, BERN)], horizon=s2 + 3, rewards="deterministic")
        found = gains(market, cp.mechanism("ucb1", constant=constant), (2, 1), [s2 + 3])
        assert found[s2 + 3].high <= 1e-9


def test_fact_2_for_every_opponent_some_horizon_pays():
    largest, relative = 0.0, 0.0
    for step in range(0, 26, 1 if LONG else 12):
        market = cp.Market(
            [cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(step * 0.04))], horizon=60, rewards="deterministic"
        )
        mechanism = cp.mechanism("h-ucb")
        honest = cp.paper.evaluate_horizons(market, mechanism, range(1, 61), engine="tree")
        found = gains(market, mechanism, (2, 1), range(1, 61))
        best = max(found, key=lambda h: found[h].value)
        assert found[best].low > 0.05, f"no paying horizon against {step * 0.04}"
        if found[best].value > largest:
            largest, relative = found[best].value, found[best].value / honest[best].payoff["ana"].value
    if LONG:
        assert largest == pytest.approx(0.75, abs=1e-9)
        assert relative == pytest.approx(0.15, abs=0.01)


@pytest.mark.parametrize(
    ("rewards", "honest", "copied"), [("deterministic", 1000, 1955), ("bernoulli", 1083.6, 1835.5)]
)
def test_fact_3_at_4000(rewards, honest, copied):
    """Proven, in balls: one copy of one arm nearly doubles the payoff. Bo's rewards may be noisy too."""
    market = cp.Market([cp.Agent("ana", 2, BERN), cp.Agent("bo", 1, cp.Point(0.6))], horizon=4000, rewards=rewards)
    mechanism = cp.mechanism("h-etc-r", agent_rounds=72, arm_rounds=36)
    first, second = (payoff(market, mechanism, copies, arithmetic="ball") for copies in ((1, 1), (2, 1)))
    assert (second - first).low > 700
    assert (second - first).kind == "proven"
    assert first.value == pytest.approx(honest, abs=0.5)
    assert second.value == pytest.approx(copied, abs=0.5)
    for copies, proven in (((1, 1), first), ((2, 1), second)):
        assert payoff(market, mechanism, copies, engine="tree").value == pytest.approx(proven.value, rel=1e-11)


def single(values, weights, originals, horizon):
    return cp.Market([cp.Agent("ana", originals, cp.Discrete(values, weights))], horizon=horizon)


@pytest.mark.parametrize("values", [(0.25, 0.75), (0.1, 0.4, 0.9), (0.0, 0.5)])
@pytest.mark.parametrize("originals", [2, 3])
def test_fact_4_less_exploration_is_enough(values, originals):
    """Above the threshold no copy pays at any horizon up to T; the threshold is well below Theorem 3's m."""
    gap = min(b - a for a, b in pairwise(values))
    horizon = 2000
    m = next(m for m in range(1, 10**5) if (originals - 1) * math.exp(-m * gap**2) <= m / (originals * horizon))
    assert m < etc_rounds(originals, gap, horizon) / originals
    weights = [1 / len(values)] * len(values)
    mechanism = cp.mechanism("etc", arm_rounds=m)
    strategies = [
        (2, *[1] * (originals - 1)),
        (2,) * originals,
        (3, *[1] * (originals - 1)),
        (10, *[1] * (originals - 1)),
    ]
    for h in [1, m, 2 * m, 3 * m, 4 * m + 1, 700, 1999, 2000]:
        market = single(values, weights, originals, h)
        honest = payoff(market, mechanism, (1,) * originals)
        for copies in strategies:
            assert (payoff(market, mechanism, copies) - honest).low <= 0


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
        return payoff(market, mechanism, (2, 2), arithmetic="ball") - payoff(
            market, mechanism, (1, 1), arithmetic="ball"
        )

    assert gain(1480).high < 0
    assert gain(58_205).high < 0
    assert gain(58_215).low > 0


def test_fact_5_uniform_agents_need_the_same_exploration_inside():
    prior = cp.Discrete([0, 0.5], [0.5, 0.5])
    market = cp.Market([cp.Agent("ana", 2, prior), cp.Agent("bo", 1, cp.Point(0.5))], horizon=100)
    small = cp.mechanism("uniform-etc", arm_rounds=1)
    assert payoff(market, small, (1, 1)).value == pytest.approx(15.5, abs=0.005)
    assert payoff(market, small, (2, 2)).value == pytest.approx(16.81, abs=0.005)
    enough = cp.mechanism("uniform-etc", arm_rounds=next(m for m in range(1, 999) if math.exp(-m / 4) <= m / 200))
    for copies in ((2, 1), (2, 2), (5, 1), (20, 20)):
        assert (payoff(market, enough, copies) - payoff(market, enough, (1, 1))).low <= 0


def test_fact_6_withholding_pays_at_a_short_horizon():
    market = single([0, 1], [0.5, 0.5], 3, 96)
    mechanism = cp.mechanism("etc", market=market)
    assert mechanism.parameters["arm_rounds"] == 32
    assert payoff(market, mechanism, (1, 1, 1)).value == pytest.approx(48, abs=1e-9)
    assert payoff(market, mechanism, (1, 1, 0)).value == pytest.approx(56, abs=1e-9)


def test_what_the_hold_out_theorem_does_not_claim():
    """Withholding can pay, and so can copies where the originals have different priors."""
    nine = single([0, 1], [0.1, 0.9], 4, 85)
    seven = cp.mechanism("holdout-h-etc", arm_rounds=7, score_rounds=1, max_arms=4)
    assert payoff(nine, seven, (1, 1, 1, 1)).value == pytest.approx(79.4, abs=0.05)
    assert payoff(nine, seven, (1, 1, 0, 0)).value == pytest.approx(81.6, abs=0.05)
    apart = [cp.Discrete([0, 1], [0.1, 0.9]), cp.Discrete([0, 1], [0.9, 0.1])]
    market = cp.Market([cp.Agent("ana", prior=apart)], horizon=85)
    six = cp.mechanism("holdout-h-etc", arm_rounds=6, score_rounds=1, max_arms=2)
    assert payoff(market, six, (1, 1)).value == pytest.approx(67.5, abs=0.05)
    assert payoff(market, six, (3, 1)).value == pytest.approx(69.6, abs=0.05)
