"""Other people's policies in markets with segments: who is told what, and LiteLLM's adapter, which uses it."""

import math
import random
from collections import Counter
from importlib.util import find_spec
from typing import ClassVar

import pytest

import cloneproof as cp
from cloneproof import adapters
from cloneproof.evaluation.reference import runs_of
from cloneproof.market import full_copies
from cloneproof.mechanisms.own.black_box import BlackBox, BlackBoxError
from cloneproof.runs.tapes import drawn_rates
from support.black_box_policies import session_seed

SIX_SIGMA = 5.0  # standard errors that a sum exceeds with a probability below one in a million
FRACTIONS = {"code_generation": 0.3, "writing": 0.7}
LITELLM = pytest.mark.skipif(find_spec("litellm") is None, reason="needs LiteLLM: pip install 'cloneproof[litellm]'")


def market(prior, horizon=200, agents=("ana", "bo"), **options):
    options = {"segments": FRACTIONS} | options
    return cp.Market([cp.Agent(name, 1, prior) for name in agents], horizon=horizon, **options)


def outcomes(played, box, runs=1, copies=None):
    return runs_of(played, box, full_copies(played.agents, copies))(0, runs)


class Told:
    """Pulls the first arm, and writes down what it is told."""

    heard: ClassVar[list[str]] = []

    def __init__(self, view):
        self.heard.clear()
        self.view = view

    def select(self, segment):
        self.heard.append(segment)
        return 0

    def update(self, arm, reward, segment):
        assert segment == self.heard[-1]


def test_users_arrive_by_the_fractions_and_rewards_are_of_their_segment():
    """An item that always pleases in one segment, and never in the other, earns the number of its rounds."""
    played = market({"code_generation": cp.Point(1.0), "writing": cp.Point(0.0)}, horizon=5000)
    found = outcomes(played, BlackBox(Told))
    heard = Counter(Told.heard)
    assert set(heard) == set(FRACTIONS)
    assert abs(heard["writing"] - 3500) <= SIX_SIGMA * math.sqrt(5000 * 0.3 * 0.7)
    assert found.payoff[0, 0] == heard["code_generation"]
    assert found.served[0, 0] == heard["code_generation"]
    assert found.regret[0] == 0


def test_rates_of_a_joint_law_are_drawn_once_a_run_and_regret_is_by_segment():
    played = market(cp.LogOdds(0.3, spread=1.0, by_segment=1.0), rewards="deterministic")
    found, heard = outcomes(played, BlackBox(Told)), Counter(Told.heard)
    rates = drawn_rates(played, 0, 0)
    earned = {agent: sum(heard[name] * rates[name][agent][0] for name in rates) for agent in ("ana", "bo")}
    best = sum(heard[name] * max(rates[name]["ana"][0], rates[name]["bo"][0]) for name in rates)
    assert found.payoff[0] == pytest.approx([earned["ana"], 0.0])
    assert found.regret[0] == pytest.approx(best - earned["ana"])
    assert len({rate for each in rates.values() for own in each.values() for rate in own}) == 4


class Pooling:
    """Knows nothing of segments: the arm with the best mean so far, after one pull of each."""

    def __init__(self, view):
        self.sums, self.pulls = [0.0] * len(view.arms), [0] * len(view.arms)

    def select(self):
        return max(range(len(self.pulls)), key=lambda arm: self.sums[arm] / self.pulls[arm] if self.pulls[arm] else 9.0)

    def update(self, arm, reward):
        self.sums[arm] += reward
        self.pulls[arm] += 1


class Segmented:
    """The same, once in each segment."""

    def __init__(self, view):
        self.each = {name: Pooling(view) for name in view.segments or ("",)}

    def select(self, segment=""):
        return self.each[segment].select()

    def update(self, arm, reward, segment=""):
        self.each[segment].update(arm, reward)


def test_a_policy_without_the_parameter_pools_and_one_with_it_tells_segments_apart():
    """One item is better here, the other there: no policy that pools can do better than the best for all."""
    here, there = ({"code_generation": cp.Point(a), "writing": cp.Point(b)} for a, b in ((1.0, 0.0), (0.0, 1.0)))
    played = cp.Market([cp.Agent("ana", 1, here), cp.Agent("bo", 1, there)], 100, segments=FRACTIONS)
    apart, pooled = (outcomes(played, BlackBox(each)) for each in (Segmented, Pooling))
    assert apart.regret[0] <= 2  # the first pull of each arm in each segment
    assert pooled.regret[0] >= 20
    assert outcomes(market(cp.Point(0.5), segments={}), BlackBox(Segmented)).regret[0] == 0
    assert outcomes(market(cp.Point(0.5), segments={"writing": 1.0}), BlackBox(Told)).regret[0] == 0
    assert set(Told.heard) == {"writing"}


class Uniform:
    def __init__(self, view):
        self.arms, self.dice = len(view.arms), random.Random(view.seed)

    def select(self, segment):
        return self.dice.randrange(self.arms)

    def update(self, arm, reward):
        pass


def test_gain_and_evaluate_play_segments():
    """Under a policy that picks arms alike, four arms of five earn 4/5 of the rounds, in every segment."""
    played = market({"code_generation": cp.Discrete([0.2, 0.6], [0.5, 0.5]), "writing": cp.Point(0.5)}, 100)
    search = cp.Search(runs=120, bounds="asymptotic")
    found = cp.gain(played, BlackBox(Uniform), "ana", (4,), search=search, stop_when_decided=False, confidence=1 - 1e-6)
    mean = 0.3 * 0.4 + 0.7 * 0.5
    assert found.decided == "pays"
    assert found.estimate.low <= 100 * mean * (4 / 5 - 1 / 2) <= found.estimate.high
    assert found.honest.low <= 100 * mean / 2 <= found.honest.high
    evaluated = cp.evaluate(played, BlackBox(Uniform), search=cp.Search(runs=2))
    assert evaluated.payoff["ana"].value > 0


class Broken(Told):
    def select(self, segment):
        raise RuntimeError(segment)


def test_a_failure_names_the_call_with_its_segment():
    with pytest.raises(BlackBoxError, match=r"select\(segment\) in round 1 .* RuntimeError: (writing|code_generation)"):
        outcomes(market(cp.Point(0.5)), BlackBox(Broken))
    with pytest.raises(BlackBoxError, match=r"select\(\) in round 1 .*segment"):
        outcomes(market(cp.Point(0.5), segments={}), BlackBox(Told))


@LITELLM
def test_litellm_routes_as_in_a_loop_of_its_own():
    box = adapters.litellm_router(costs={"ana": 2.0, "bo": 1.0}, quality_weight=0.9)
    from litellm.router_strategy.adaptive_router.bandit import apply_delta, initial_cell, pick_best
    from litellm.types.router import AdaptiveRouterPreferences, RequestType

    played = market({"code_generation": cp.Point(1.0), "writing": cp.Point(0.0)}, horizon=150)
    found = outcomes(played, box, copies={"ana": (2,)})
    outcomes(played, BlackBox(Told))
    dice, earned = random.Random(session_seed(0, 0)), [0.0, 0.0]
    prefs = AdaptiveRouterPreferences(quality_tier=2)
    cells = {name: {arm: initial_cell(prefs, RequestType(name)) for arm in range(3)} for name in FRACTIONS}
    for segment in list(Told.heard):
        arm = pick_best(cells[segment], {0: 2.0, 1: 2.0, 2: 1.0}, 0.9, 0.1, dice)
        reward = float(segment == "code_generation")
        cells[segment][arm] = apply_delta(cells[segment][arm], reward, 1.0 - reward)
        earned[arm // 2] += reward
    assert found.payoff[0] == pytest.approx(earned)
    with pytest.raises(BlackBoxError, match=r"type of request .*did you mean 'writing'"):
        outcomes(market(cp.Point(0.5), segments={"writings": 1.0}), box)
