"""Every regret bound holds against the exact engine over random markets, and a bound that is too small is caught."""

import math
import random

import pytest

import cloneproof as cp
from cloneproof import bounds


def instances(seed, count, most_agents=4, most_originals=3):
    """Random realised means in eighths, one list for each agent."""
    rng = random.Random(seed)
    for _ in range(count):
        means = [
            [rng.randrange(9) / 8 for _ in range(rng.randint(1, most_originals))]
            for _ in range(rng.randint(1, most_agents))
        ]
        yield rng, means


def exact_regret(means, mechanism, horizon, rewards="bernoulli"):
    agents = [cp.Agent(str(i), prior=[cp.Point(mean) for mean in own]) for i, own in enumerate(means)]
    return cp.evaluate(cp.Market(agents, horizon=horizon, rewards=rewards), mechanism).regret


def flat_gaps(means):
    arms = [mean for own in means for mean in own]
    return [max(arms) - mean for mean in arms]


def own_gap(means):
    """The smallest distance of different means inside one agent; infinite if there is none."""
    return min((abs(a - b) for own in means for a in own for b in own if a != b), default=math.inf)


def agent_gap(means):
    bests = [max(own) for own in means]
    return min((abs(a - b) for a in bests for b in bests if a != b), default=math.inf)


def etc_case(rng, means):
    m, horizon = rng.choice([1, 2, 5, 20]), rng.choice([10, 100, 1000, 10_000])
    regret = exact_regret(means, cp.mechanism("etc", arm_rounds=m), horizon)
    return regret, bounds.etc_regret(flat_gaps(means), m, horizon)


def etc_paper_case(rng, means):
    horizon, gaps = rng.choice([50, 1000, 10_000]), flat_gaps(means)
    gap = min((g for g in gaps if g), default=1.0)
    gap = max(gap, 0.25)
    gaps = [g if g >= gap else 0.0 for g in gaps]
    m = bounds.etc_rounds(len(gaps), gap, horizon)
    best = [[1 - g for g in gaps]]
    return exact_regret(best, cp.mechanism("etc", arm_rounds=m), horizon), bounds.etc_regret_paper(gaps, gap, horizon)


def prior_independent_case(rng, means):
    horizon, power = rng.choice([30, 1000, 20_000]), rng.choice([1.0, 2.0, 4.0])
    regret = exact_regret(means[:1], cp.mechanism("prior-independent-etc", power=power), horizon)
    return regret, bounds.prior_independent_etc_regret(flat_gaps(means[:1]), horizon, power)


def h_etc_r_numbers(rng, means):
    n, most = len(means), max(map(len, means))
    m = rng.choice([2, 8, 30])
    return n, most, m, max(m * most, rng.choice([60, 200])), rng.choice([300, 2000, 50_000])


def h_etc_r_case(rng, means):
    n, most, m, trial, horizon = h_etc_r_numbers(rng, means)
    regret = exact_regret(means, cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=m), horizon)
    return regret, bounds.h_etc_r_regret(n, most, m, trial, horizon, own_gap(means), agent_gap(means))


def h_etc_r_paper_case(rng, means):
    horizon, most = rng.choice([300, 5000]), max(map(len, means))
    gap = min(own_gap(means), agent_gap(means), 1.0)
    m = bounds.etc_rounds(most, max(gap, 0.25), horizon)
    trial = bounds.trial_rounds(m, most, horizon)
    regret = exact_regret(means, cp.mechanism("h-etc-r", agent_rounds=trial, arm_rounds=m), horizon)
    return regret, bounds.h_etc_r_regret_paper(len(means), most, trial, horizon, gap)


CASES = {
    "etc": (etc_case, 40, 4), "etc-paper": (etc_paper_case, 20, 4),
    "prior-independent": (prior_independent_case, 30, 4),
    "h-etc-r": (h_etc_r_case, 40, 4), "h-etc-r-paper": (h_etc_r_paper_case, 10, 40),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_bound_holds_and_a_smaller_constant_is_caught(name):
    case, count, factor = CASES[name]
    most = 3 if name == "etc-paper" else 4
    found = [case(rng, means) for rng, means in instances(name, count, most)]
    assert all(regret.low <= bound * (1 + 1e-12) for regret, bound in found)
    assert any(regret.low > bound / factor for regret, bound in found)


def test_a_uniform_choice_loses_at_least_the_linear_part():
    for rng, means in instances("uniform", 30):
        m, horizon = rng.choice([1, 5, 20]), rng.choice([20, 1000, 10_000])
        regret = exact_regret(means, cp.mechanism("uniform-etc", arm_rounds=m), horizon)
        assert bounds.uniform_etc_regret_at_least(means, horizon) <= regret.high


def test_ucb1_holds_by_the_state_tree():
    for clock in ("current", "completed"):
        for best, worst in ((1.0, 0.0), (0.75, 0.25)):
            market = cp.Market([cp.Agent("ana", prior=[cp.Point(best), cp.Point(worst)])], horizon=60)
            regret = cp.evaluate(market, cp.mechanism("ucb1", clock=clock), engine="tree").regret
            assert regret.high <= bounds.ucb1_regret([0.0, best - worst], 60)
            assert regret.low > bounds.ucb1_regret([0.0, best - worst], 60) / 40


def test_gaussian_rewards_widen_every_bound():
    """One agent with wide Gaussian rewards: the bound for [0, 1] fails where that for the spread holds."""
    means, horizon = [[0.0, 0.5]], 4000
    wide = {"family": "gaussian", "sd": 2.0}
    regret = exact_regret(means, cp.mechanism("etc", arm_rounds=20), horizon, rewards=wide)
    assert regret.high <= bounds.etc_regret([0.0, 0.5], 20, horizon, spread=2.0)
    assert regret.low > bounds.etc_regret([0.0, 0.5], 20, horizon)
