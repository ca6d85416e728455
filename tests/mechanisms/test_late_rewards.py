"""Late rewards: waiting is neutral and bounded, lateness gains no more than is stated, copies gain nothing by it."""

import heapq
import random
from collections import Counter
from contextlib import suppress

import pytest

import cloneproof as cp
from cloneproof._lib.randomness import substream, uniform

WINDOW = 100
H_ETC_R = cp.mechanism("h-etc-r", agent_rounds=70, arm_rounds=35)


def earnings(mechanism, means, horizon, delay, seed, window=None):
    """What each agent earns, one mean for all of its arms, and the phases; `delay(decision)` in rounds, None: never."""
    arms = {name: count for name, (_, count) in means.items()}
    live = cp.session(mechanism, arms, horizon, seed=seed, rewards="bernoulli", window=window)
    earned, served, due = Counter(), Counter(), []
    for number in range(1, horizon + 1):
        while due and due[0][0] <= number:
            _, late, value = heapq.heappop(due)
            if late in live.pending:
                live.reward(late, value)
        decision = live.decide()
        served[decision.phase, decision.agent] += 1
        value = float(uniform(substream(seed, ord(decision.agent[0])), number) < means[decision.agent][0])
        earned[decision.agent] += value
        wait = delay(decision)
        if wait is not None:
            heapq.heappush(due, (number + 1 + wait, decision.id, value))
    return earned, served


def one_never(agent):
    """The agent's first reward never comes."""
    kept = []

    def delay(decision):
        if decision.agent == agent and not kept:
            kept.append(decision)
            return None
        return 0

    return delay


def test_one_reward_withheld_no_longer_hands_over_all_traffic():
    """1,500 decisions, ana .6, bo .3, the first of bo's rewards never comes. It used to bring bo 420 instead of 22.

    Without a window all rounds after the first stage are shared. With one of 100 rounds bo has at most 50 more, each
    worth .3: sums of Bernoulli rewards of 3 runs are 60 off with probability below 1e-6.
    """
    means, runs = {"ana": (0.6, 1), "bo": (0.3, 1)}, range(3)
    prompt = sum((earnings(H_ETC_R, means, 1500, lambda decision: 0, seed)[0] for seed in runs), Counter())
    late, endless = Counter(), Counter()
    for seed in runs:
        late += earnings(H_ETC_R, means, 1500, one_never("bo"), seed, WINDOW)[0]
        served = earnings(H_ETC_R, means, 1500, one_never("bo"), seed)[1]
        endless += served
        assert abs(served["waiting", "ana"] - served["waiting", "bo"]) <= 1
    assert late["bo"] - prompt["bo"] < 3 * 0.3 * WINDOW / 2 + 60
    assert late["ana"] > prompt["ana"] - 3 * WINDOW - 60
    assert endless["waiting", "ana"] > 3 * 650  # it waits for ever where nothing says how long


@pytest.mark.parametrize("delay", [lambda decision: 200, lambda decision: -decision.id % 100])
def test_copies_of_the_only_item_gain_exactly_nothing_when_everybody_is_late(delay):
    """Three agents, the weakest registers its one item four times; that used to raise 82 to 133, and 73 to 85."""
    mechanism = cp.mechanism("h-etc-r", agent_rounds=140, arm_rounds=35)
    for seed in range(3):
        honest, copied = (
            earnings(mechanism, {"ana": (0.6, 1), "bo": (0.5, 1), "cy": (0.3, arms)}, 1500, delay, seed)
            for arms in (1, 4)
        )
        assert copied == honest


def test_a_window_enters_the_least_reward_and_a_later_one_is_late():
    live = cp.session(cp.mechanism("etc", arm_rounds=1), {"ana": 2}, 20, seed=0, window=3)
    first, second = live.decide(), live.decide()
    live.reward(second.id, 0.5)
    waiting = [live.decide() for _ in range(2)]
    assert {d.phase for d in waiting} == {"waiting"}
    again = cp.Session.from_json(live.to_json())
    for one in (live, again):
        committed = one.decide()
        assert (committed.arm, committed.phase) == (second.arm, "play")
        assert one.ledger[0] == (first.id, "ana", first.arm, 0.0, 0.0, None)
        before = one.to_json()
        assert [one.reward(first.id, value) for value in (1.0, 0.0, 1.0)] == ["late"] * 3
        with pytest.raises(cp.errors.SessionError, match="expected a reward in"):
            one.reward(first.id, 2.0)
        assert one.to_json() == before
        assert one.reward(second.id, 0.5) is None  # which was in time
        with pytest.raises(cp.errors.SessionError, match=r"already has reward 0\.5"):
            one.reward(second.id, 1.0)
        assert one.decide_run(10)[1] == 1  # the next window may end
    assert live.to_json() == again.to_json()


@pytest.mark.parametrize("history", [True, False])
@pytest.mark.parametrize("options", [{}, {"positions": 2}, {"segments": {"desk": 0.6, "phone": 0.4}}])
def test_no_click_however_late_raises_an_error(history, options):
    """Each reward is taken, or late, by when it comes: once all is in, a session that is asked again says the same."""
    live = cp.session(cp.mechanism("ucb1"), {"ana": 2, "bo": 1}, 200, seed=1, window=4, history=history, **options)
    dice, due, found = random.Random(3), list[tuple[int, int, float]](), dict[bool, set[str | None]]()
    for number in range(200):
        segment = dice.choice(list(live.segments)) if live.segments else None
        made = live.decide_slate(segment) if "positions" in options else [live.decide(segment)]
        due += [(number + dice.choice([0, 1, 3, 9]), one.id, float(dice.random() < 0.5)) for one in made]
        now, due = [one for one in due if one[0] <= number], [one for one in due if one[0] > number]
        for _, decision, value in now:
            waits = decision in live.pending
            found.setdefault(waits, set()).add(live.reward(decision, value))
            assert decision not in live.pending
    assert found == {True: {None}, False: {"late"}}


def test_a_session_that_forgets_still_refuses_a_second_reward_within_the_window():
    live = cp.session(cp.mechanism("ucb1"), {"ana": 2}, 20, window=3, history=False)
    first = live.decide()
    live.reward(first.id, 1.0)
    with pytest.raises(cp.errors.SessionError, match="already has its reward"):
        live.reward(first.id, 1.0)
    for _ in range(3):
        live.decide()
    assert live.reward(first.id, 1.0) == "late"  # or a repetition: it no longer knows
    assert live.payoff == {"ana": 1.0}


@pytest.mark.parametrize("ends", ["at-horizon", "at-random"])
@pytest.mark.parametrize("segments", [None, {"desk": 0.6, "phone": 0.4}])
def test_the_end_of_a_season_has_an_error_of_its_own(ends, segments):
    live = cp.session(cp.mechanism("ucb1"), {"ana": 2}, 12, seed=4, ends=ends, segments=segments)
    dice = random.Random(1)
    while live.round < live.last:
        with suppress(cp.errors.SegmentEndedError):
            live.decide(dice.choice(list(segments)) if segments else None)
    for segment in segments or [None]:
        with pytest.raises(cp.errors.SeasonEndedError, match=f"expected at most {live.last} decisions"):
            live.decide(segment)
    assert issubclass(cp.errors.SeasonEndedError, cp.errors.SessionError)


def test_runs_with_a_window_are_those_of_single_decisions():
    made = cp.mechanism("reservoir", rounds=7, draws=3, threshold=5)
    single, runs = (cp.session(made, {"ana": 2, "bo": 1}, 300, seed=2, window=9) for _ in range(2))
    while runs.round < 300:
        decision, count = runs.decide_run(20)
        assert [single.decide() for _ in range(count)][-1][1:] == decision[1:]
        for one in (single, runs):
            if decision.id in one.pending and decision.id % 3:
                one.reward(decision.id, float(decision.id % 2))
    assert single.to_json() == runs.to_json()


def test_the_reservoir_goes_on_and_the_first_test_that_is_known_wins():
    """The first test's last reward is kept back: the second is pulled meanwhile, passes, and is champion."""
    live = cp.session(cp.mechanism("reservoir", rounds=3, draws=2, threshold=2), {"ana": 1, "bo": 1}, 40, seed=0)
    first = [live.decide() for _ in range(3)]
    second = [live.decide() for _ in range(3)]
    assert {d.slot for d in first} == {0}
    assert {d.slot for d in second} == {1}
    for decision in (*first[:2], *second[:2]):
        live.reward(decision.id, 1.0)
    third = live.decide()  # two of three rewards are enough, and yet no test is known
    assert (third.slot, third.phase) == (2, "trial")
    live.reward(second[2].id, 0.0)
    award = live.decide()
    assert (award.slot, award.phase) == (1, "award")
    live.reward(first[2].id, 1.0)
    assert live.decide().slot == 1


def test_the_reservoir_waits_only_when_everything_is_pulled():
    live = cp.session(cp.mechanism("reservoir", rounds=2, draws=2, threshold=2), {"ana": 1, "bo": 2}, 90, seed=0)
    phases = [live.decide().phase for _ in range(40)]
    assert phases == ["trial"] * 8 + ["waiting"] * 32
    for number in range(1, 9):
        live.reward(number, 0.0)
    assert live.decide().phase == "award"


def test_a_contest_of_champions_waits_once_before_it_and_never_in_it():
    made = cp.mechanism("reservoir-contest", rounds=2, draws=2, threshold=2, horizon=200)
    live = cp.session(made, {"ana": 3, "bo": 1}, 200, seed=0)
    seen = [live.decide() for _ in range(20)]
    assert [d.phase for d in seen] == ["play"] * 8 + ["waiting"] * 12
    for decision in seen[:8]:
        live.reward(decision.id, 1.0)
    assert {live.decide().phase for _ in range(100)} == {"play"}


@pytest.mark.parametrize("name", ["ucb1", "h-ucb", "epsilon-greedy", "thompson", "kl-ucb"])
def test_what_decides_every_round_never_waits(name):
    live = cp.session(cp.mechanism(name), {"ana": 2, "bo": 1}, 60, seed=0)
    assert {live.decide().phase for _ in range(60)} == {"play"}
