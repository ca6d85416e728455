import json
from collections import Counter
from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cloneproof as cp
from cloneproof._lib.randomness import substream, uniform
from cloneproof.mechanisms import CATALOGUE
from support.sizes import LONG
from support.strategies import small


def tape(agent, arm, pull):
    return float(uniform(substream(3, ord(agent[0]), arm), pull) < 0.5)


def play(live, rounds, delay=lambda number: 0, rewards=tape):
    """Play some rounds; the reward of round t arrives `delay(t)` rounds later. A waiting round pays 1."""
    due, pulls, seen = [], Counter(), []
    for number in range(1, rounds + 1):
        for ready in [entry for entry in due if entry[0] <= number]:
            live.reward(*ready[1:])
            due.remove(ready)
        decision = live.decide()
        if decision.phase == "waiting":
            value = 1.0
        else:
            value = rewards(decision.agent, decision.arm, pulls[decision.agent, decision.arm])
            pulls[decision.agent, decision.arm] += 1
        if delay(number) == 0:
            live.reward(decision.id, value)
        else:
            due.append((number + delay(number), decision.id, value))
        seen.append(decision)
    return seen


def test_a_stage_waits_for_the_rewards_before_it_and_all_agents_share_the_rounds():
    live = cp.session(cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2), {"ana": 2, "bo": 2}, horizon=60, seed=1)
    owed, seen = [], []

    def go_on(rounds):
        for _ in range(rounds):
            decision = live.decide()
            seen.append(decision)
            if decision.agent == "ana":
                owed.append(decision)
            else:
                live.reward(decision.id, 0.5)

    def pay_ana():
        for decision in owed:  # arm 1 is better; the waiting rounds say the opposite and must not count
            live.reward(decision.id, float(decision.arm == (0 if decision.phase == "waiting" else 1)))
        owed.clear()

    go_on(14)
    trial = Counter(d.agent for d in seen if d.phase == "trial")
    assert trial["ana"] == 2  # her first stage, and bo is at most one turn ahead
    assert trial["bo"] in (2, 3)
    waiting = [d.agent for d in seen if d.phase == "waiting"]
    assert abs(waiting.count("ana") - waiting.count("bo")) <= 1
    for _ in range(3):
        pay_ana()
        go_on(8)
    assert Counter(d.agent for d in seen if d.phase == "trial") == {"ana": 6, "bo": 6}
    assert seen[-1].phase == "waiting"  # the rewards of her last stage are out, and her score with them
    pay_ana()
    award = live.decide()
    assert (award.agent, award.phase) == ("ana", "award")  # 4 of 6 from arm 1 against bo's 0.5


def test_waiting_rounds_go_to_all_agents_in_turn_and_to_uniform_draws_of_their_arms():
    """1,000 draws of each agent from two arms: 500 +- 84 of an arm with probability above 1 - 1e-6 (Hoeffding)."""
    live = cp.session(
        cp.mechanism("h-etc-r", agent_rounds=4, arm_rounds=2), {"a": 2, "b": 2, "c": 2}, horizon=4000, seed=2
    )
    seen = [live.decide() for _ in range(3006)]
    assert Counter(d.agent for d in seen if d.phase == "trial") == {"a": 2, "b": 2, "c": 2}
    waiting = [d for d in seen if d.phase == "waiting"]
    assert Counter(d.agent for d in waiting) == {"a": 1000, "b": 1000, "c": 1000}
    assert len({tuple(d.agent for d in waiting[k : k + 3]) for k in range(0, 3000, 3)}) == 1  # one order
    assert all(abs(count - 500) < 84 for count in Counter((d.agent, d.arm) for d in waiting).values())


COMMITTING = ("etc", "h-etc-r")
DELAYS = st.lists(st.integers(0, 9), min_size=1, max_size=7)


@pytest.mark.parametrize("name", COMMITTING)
@given(seed=st.integers(0, 10**6), delays=DELAYS, order=st.sampled_from(["round-robin", "block", "index"]))
@settings(max_examples=60 if LONG else 15)
def test_late_rewards_change_when_but_never_what(name, seed, delays, order):
    """Whatever is late: the same arms are explored, the same commitments made, the same agent wins.

    A committing rule judges an arm on its first m decisions, so the rounds that are not waiting rounds are, agent by
    agent, those of the run in which every reward comes at once.
    """
    shape = {"ana": 2, "bo": 1, "cy": 2}
    mechanism = small(name, order=order)
    prompt = play(cp.session(mechanism, shape, horizon=90, seed=seed), 90)
    late = play(cp.session(mechanism, shape, horizon=400, seed=seed), 400, lambda t: delays[t % len(delays)])
    for agent in shape:
        for phase in ("play", "trial", "award"):
            first = [d.arm for d in prompt if (d.agent, d.phase) == (agent, phase)]
            second = [d.arm for d in late if (d.agent, d.phase) == (agent, phase)]
            common = min(len(first), len(second))
            assert first[:common] == second[:common]
            assert (len(first) > 0) == (len(second) > 0)
            if phase == "trial":
                assert len(first) == len(second)


def test_commitment_judges_decisions_and_not_arrivals():
    live = cp.session(cp.mechanism("etc", arm_rounds=2), {"ana": 2}, horizon=20, seed=0)
    explored = [live.decide() for _ in range(4)]
    extra = [live.decide() for _ in range(4)]
    assert {d.phase for d in extra} == {"waiting"}
    for decision in extra:  # these arrive first and praise arm 0
        live.reward(decision.id, float(decision.arm == 0))
    for decision in explored:
        live.reward(decision.id, 0.5 * (decision.arm == 1))
    assert [live.decide().arm for _ in range(3)] == [1, 1, 1]


def test_ucb_uses_what_has_arrived_and_spreads_over_the_outstanding():
    live = cp.session(cp.mechanism("ucb1"), {"ana": 2, "bo": 2}, horizon=40, seed=4)
    counts = Counter((d.agent, d.arm) for d in (live.decide() for _ in range(40)))
    assert set(counts.values()) == {10}


@pytest.mark.parametrize("delay", [1, None])
def test_the_uniform_choice_is_uniform_whatever_is_late_or_lost(delay):
    """A provider must not gain or lose traffic by the delay of its rewards: no tie goes to the fewest pending here."""
    live = cp.session(cp.mechanism("uniform-etc", arm_rounds=2), {"ana": 1, "bo": 1}, 2000, seed=1)
    counts, last = Counter(), None
    for _ in range(2000):
        decision = live.decide()
        counts[decision.agent] += 1
        if delay is None:
            if decision.agent != "ana" or counts["ana"] > 1:  # ana's first reward is lost for ever
                live.reward(decision.id, 1.0)
        elif last is not None:
            live.reward(last, 1.0)
        last = decision.id
    assert abs(counts["ana"] - 1000) < 120


def test_rewards_are_counted_once():
    live = cp.session(cp.mechanism("ucb1"), {"ana": 1}, 10, share=0.5)
    decision = live.decide()
    live.reward(decision.id, 0.5)
    live.reward(decision.id, 0.5)
    assert live.payoff == {"ana": 0.25}
    with pytest.raises(cp.errors.SessionError, match=r"already has reward 0\.5, got 0\.75"):
        live.reward(decision.id, 0.75)
    assert live.payoff == {"ana": 0.25}
    assert live.ledger == [(1, "ana", 0, 0.5, 0.25, None)]


@pytest.mark.parametrize("bad", [1.0, "1", None, [1], 10**400])
def test_a_reward_that_cannot_be_entered_loses_nothing(bad):
    for name in ("ucb1", "thompson"):
        live = cp.session(cp.mechanism(name), {"ana": 1}, 5)
        decision = live.decide()
        with pytest.raises(cp.errors.SessionError):
            live.reward(bad, 1.0)
        with pytest.raises(cp.errors.SessionError):
            live.reward(decision.id, "1")
        assert live.payoff == {"ana": 0.0}
        live.reward(decision.id, 1.0)
        assert live.payoff == {"ana": 1.0}


def test_numpy_numbers_are_numbers():
    live = cp.session(cp.mechanism("ucb1"), {"ana": np.int64(2)}, np.int64(5), np.int64(3), np.float64(0.5))
    live.reward(np.int64(live.decide().id), np.float32(0.5))
    assert live.payoff == {"ana": 0.25}
    market = cp.Market([cp.Agent("ana", np.int64(2), cp.Discrete(np.array([0, 1]), np.array([0.5, 0.5])))], np.int64(5))
    assert (
        len(list(cp.simulate(market, cp.mechanism("etc", arm_rounds=np.int64(1)), {"ana": np.array([2, 1]).tolist()})))
        == 5
    )
    assert cp.Session.from_json(live.to_json()).payoff == live.payoff


def test_rewards_must_lie_in_the_support_of_the_family():
    live = cp.session(cp.mechanism("ucb1"), {"ana": 2}, 5, rewards="bernoulli")
    with pytest.raises(cp.errors.SessionError, match="bernoulli"):
        live.reward(live.decide().id, 0.5)
    for reward in (-3.5, 2.0**31):
        wide = cp.session(cp.mechanism("ucb1"), {"ana": 2}, 5, rewards={"family": "gaussian", "sd": 1.0})
        wide.reward(wide.decide().id, reward)
        assert wide.payoff == {"ana": reward}
        with pytest.raises(cp.errors.SessionError, match=r"at most 2\^31 in size, got 1e\+300; scale it"):
            wide.reward(wide.decide().id, 1e300)


def test_equal_averages_tie_whatever_the_pulls():
    """Sums are exact: three rewards of 0.6 and one of 0.6 are the same average, which plain floats deny."""
    live = cp.session(cp.mechanism("etc", arm_rounds=1, choice="greedy"), {"ana": 1, "bo": 1}, 400, seed=1)
    counts = Counter()
    for _ in range(400):
        decision = live.decide()
        live.reward(decision.id, 0.6)
        counts[decision.agent] += 1
    assert min(counts.values()) > 130  # fair coins: below with probability under 1e-11


@pytest.mark.parametrize("name", CATALOGUE)
@given(
    seed=st.integers(0, 1000),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    kept=st.sampled_from([1, 2, 7, 50, 1000]),
    alike=st.booleans(),
)
@settings(max_examples=10 if LONG else 3)
def test_runs_and_rewards_in_bulk_are_single_ones(name, seed, sizes, kept, alike):
    """Every `kept`-th reward comes late, so that commitments wait or not; alike, they end in ties."""

    def rewarded(number):
        return 1.0 if alike else float(uniform(seed, number) < 0.5)

    arms, horizon = {"ana": 3, "bo": 1, "cy": 2}, 240
    options = {"power": 1.0} if name == "prior-independent-etc" else {}  # so that it commits in each epoch
    made = small(name, **options)
    terms = {"seed": seed, "rewards": "bernoulli"}
    one, many = (cp.session(made, arms, horizon, **terms) for _ in range(2))
    held = []
    for step, size in enumerate(cycle(sizes)):
        if many.round == horizon:
            break
        first, count = many.decide_run(size)
        assert 1 <= count <= min(size, horizon - one.round)
        for number in range(first.id, first.id + count):
            assert one.decide() == first._replace(id=number)
            assert one.probability == many.probability
        rewards = [(number, rewarded(number)) for number in range(first.id, first.id + count)]
        held += [reward for reward in rewards if reward[0] % kept == 0]
        ready = [reward for reward in rewards if reward[0] % kept]
        if step % 10 == 9:
            ready, held = ready + held, []
        many.reward_many(ready)
        # Slots side by side take rewards in the order in which they arrive, so they are asked for the same order.
        for reward in ready if getattr(made.arm, "ranked", False) else reversed(ready):
            one.reward(*reward)
    text = many.to_json()
    assert sorted_pending(one.to_json()) == sorted_pending(text)
    assert cp.Session.from_json(text).to_json() == text


def sorted_pending(text):
    return [sorted(value) if key == "pending" else value for key, value in json.loads(json.loads(text)["body"]).items()]


def test_a_run_is_one_decision_until_the_last_commitment_and_then_as_long_as_asked():
    live = cp.session(cp.mechanism("h-etc-r", agent_rounds=6, arm_rounds=2), {"ana": 2, "bo": 2}, 1000, seed=1)
    lengths = []
    while live.round < 1000:
        first, count = live.decide_run(300)
        live.reward_many([(number, float(first.agent == "ana")) for number in range(first.id, first.id + count)])
        lengths.append(count)
    assert lengths[:12] == [1] * 12  # the trial
    assert sum(length == 300 for length in lengths) == 3  # and the rest of the 1,000 rounds
    assert len(live.ledger) == 1000


def test_rewards_in_bulk_are_all_entered_or_none():
    live = cp.session(cp.mechanism("ucb1"), {"ana": 1}, 10)
    first, second = live.decide(), live.decide()
    for bad in ([(first.id, 0.5), (second.id, 1.5)], [(first.id, 0.5), (first.id, 0.5)], [(first.id, 0.5), (3, 0.5)]):
        with pytest.raises(cp.errors.SessionError):
            live.reward_many(bad)
        assert live.ledger == []


@pytest.mark.parametrize("seed", range(2))
def test_probabilities_are_those_of_who_can_be_next_also_after_a_restoration(seed):
    """In a turn of the trial: whoever has had the fewest, each alike. In a waiting round: the draw of an arm."""
    made = cp.mechanism("h-etc-r", agent_rounds=12, arm_rounds=2)
    arms = {"ana": 2, "bo": 1, "cy": 3, "di": 1, "ed": 2}
    live = cp.session(made, arms, 200, seed=seed, rewards="bernoulli")
    restored, phases = live, Counter()
    for number in range(1, 121):
        restored = cp.Session.from_json(restored.to_json())
        agents = live.state.agents
        owed = [turns for turns in agents.decided if turns < agents.explore]
        decision = live.decide()
        assert decision == restored.decide()
        assert live.probability == restored.probability
        phases[decision.phase] += 1
        if decision.phase == "waiting":
            assert live.probability == 1 / arms[decision.agent]
        if decision.phase == "trial":
            assert agents.chance == 1 / owed.count(min(owed))
        for late in [late for late in live.pending if uniform(seed, 100 * number + late) < 0.2]:
            for one in (live, restored):
                one.reward(late, float(late % 2))
    assert phases["waiting"] > 10
    assert phases["trial"] > 40
