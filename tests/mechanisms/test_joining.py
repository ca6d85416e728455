"""Agents that join a session that runs: with a given list nobody gains by waiting (docs/textbook/seasons.md)."""

from fractions import Fraction
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof._lib.randomness import substream
from cloneproof.errors import NobodyLeftError, SessionError
from cloneproof.mechanisms.neutral import NeutralRounds
from cloneproof.mechanisms.registration import Withdrawals, open_registration, with_joiner
from cloneproof.mechanisms.reservoir.rank import drawn_order
from support.late_by_hand import Script
from support.sizes import LONG

HALF, ONE, ZERO = Fraction(1, 2), Fraction(1), Fraction(0)
FIRST_PASS = cp.mechanism("reservoir", rounds=1, draws=2, threshold=1)
BEST = cp.mechanism("reservoir", rounds=1, draws=2, choose="best")
INDEX = cp.mechanism("reservoir-index", draws=2, constant=0.5)
BARS = cp.mechanism("reservoir-bars", bars=0.3, draws=2)
ONE_SLOT = [
    cp.mechanism("reservoir-index", draws=1, constant=0.5),
    cp.mechanism("reservoir-bars", bars=0.5, stake=0.5, draws=1),
]
STATE = "cloneproof.mechanisms.reservoir.timetable"
START = -1  # there from the start, in a random place of the order; 0 joins before the first round


class Tapes:
    """What slots hold and what their pulls bring, by agent and draw: the same whenever the agent joins."""

    def __init__(self, script):
        self.script, self.known = script, {}

    def slots(self, names):
        order = iter(names)

        def drawn(rule, stream, pool):
            name = next(order)
            return [pool[self.take((name, draw), [Fraction(1, len(pool))] * len(pool))] for draw in range(rule.draws)]

        return patch("cloneproof.mechanisms.reservoir.rank.agent_slots", drawn)

    def take(self, key, chances):
        """The choice of this name, which is made once."""
        if key not in self.known:
            self.known[key] = self.script.choose(chances)
        return self.known[key]

    def reward(self, name, draw, pull, mean):
        return self.take((name, draw, pull), [1 - mean, mean]) if 0 < mean < 1 else int(mean)


def own_draw(live, allocation):
    """Which of its agent's draws a decision was about."""
    return live.state.place(allocation)[0] - 1


def pay(mechanism, means, others, horizon, when, tapes, seed):
    """What Ana is paid, in mean rewards, if she joins before round `when` + 1, with the rewards of these tapes."""
    names = [*(["ana"] if when == START else []), *others]
    with tapes.slots([*names, "ana"]):
        live = cp.session(mechanism, {name: len((others | {"ana": means})[name]) for name in names}, horizon, seed=seed)
        earned, pulls = ZERO, {}
        for number in range(horizon):
            if number == when and not live.decided:
                live.join("ana", len(means))
            decision = live.decide()
            allocation = live.pending[decision.id]
            mean = (others | {"ana": means})[decision.agent][decision.arm]
            reward = 0
            if allocation.arm_counts:
                draw = own_draw(live, allocation)
                pulls[decision.agent, draw] = pulls.get((decision.agent, draw), 0) + 1
                reward = tapes.reward(decision.agent, draw, pulls[decision.agent, draw], mean)
            live.reward(decision.id, float(reward))
            earned += mean * (decision.agent == "ana")
    return earned


def paths(mechanism, means, others, horizon, seeds=(0, 1, 2, 3) if LONG else (0, 1)):
    """On every path what Ana is paid, by when she joins, with the chance of the path."""
    for seed in seeds:
        script = Script()
        for _ in script.leaves():
            tapes = Tapes(script)
            paid = [pay(mechanism, means, others, horizon, when, tapes, seed) for when in range(START, horizon)]
            yield script.weight, paid


MARKETS = [
    (FIRST_PASS, (ZERO, ONE), {"bo": (HALF,)}, 7),
    (FIRST_PASS, (HALF,), {"bo": (HALF,), "cy": (HALF,)}, 8),
    (cp.mechanism("reservoir", rounds=2, draws=1, threshold=2), (HALF,), {"bo": (HALF,)}, 6),
    (BEST, (HALF, ONE), {"bo": (HALF,)}, 6),
]


def waiting_pays(paid):
    """Whether a later entry is more than an earlier one; the first is of who was there from the start."""
    return list(paid) != sorted(paid, reverse=True)


@pytest.mark.parametrize(("mechanism", "means", "others", "horizon"), MARKETS)
def test_whoever_joins_earlier_is_paid_at_least_as_much_on_every_path(mechanism, means, others, horizon):
    totals = [ZERO] * (horizon + 1)
    for weight, paid in paths(mechanism, means, others, horizon):
        assert not waiting_pays(paid)
        totals = [total + weight * one for total, one in zip(totals, paid, strict=True)]
    assert len(set(totals)) >= 3


def newcomers_first(draws, order, joined):
    """A planted fault: in a pass the slots of who joins come before those of the others."""
    seats = [*enumerate(joined, len(order)), *((agent, 0) for agent in order)]
    passes = range(draws + max(joined, default=0))
    return [(agent, turn - start) for turn in passes for agent, start in seats if 0 <= turn - start < draws]


def all_slots_at_once(draws, order, joined):
    """A planted fault: all slots of who joins come before the next pass."""
    places = [(agent, draw) for draw in range(draws) for agent in order]
    for agent, start in enumerate(joined, len(order)):
        at = min(start + 1, draws) * len(order)
        places[at:at] = [(agent, draw) for draw in range(draws)]
    return places


@pytest.mark.parametrize("fault", [newcomers_first, all_slots_at_once])
def test_slots_that_come_before_those_of_others_would_be_worth_waiting_for(fault):
    with patch(f"{STATE}.timetable", fault):
        found = list(paths(FIRST_PASS, (HALF,), {"bo": (HALF,), "cy": (HALF,)}, 8))
    assert any(waiting_pays(paid) for _, paid in found)


def test_whenever_she_joins_each_original_once_is_best():
    """Items of 0 and 1 in unknown order, and every time of joining."""
    totals = {}
    for listed in ((0, 1), (0, 0, 1), (0,), (0, 1, 1)):
        for items in ((ZERO, ONE), (ONE, ZERO)):
            for weight, paid in paths(FIRST_PASS, [items[item] for item in listed], {"bo": (HALF,)}, 4):
                before = totals.get(listed, [ZERO] * 5)
                totals[listed] = [total + weight * one for total, one in zip(before, paid, strict=True)]
    honest = totals.pop((0, 1))
    for deviation in totals.values():
        assert all(one <= best for one, best in zip(deviation, honest, strict=True))


LAST_PULL = 3  # of a slot: then its ring is certain


def winner(mechanism, when, tapes, seed):
    """Whose slot rings first if Ana joins after `when` rounds: a season that ends at random ends with a ring."""
    names = ["ana", "bo", "cy"] if when == START else ["bo", "cy"]
    with tapes.slots(["ana", "bo", "cy"] if when == START else ["bo", "cy", "ana"]):
        live = cp.session(mechanism, dict.fromkeys(names, 1), 10, seed=seed, ends="at-random")
        live.last, pulls = 100, dict.fromkeys(("ana", "bo", "cy"), 0)
        while True:
            if live.round == when:
                live.join("ana", 1)
            decision = live.decide()
            pulls[decision.agent] += 1
            pull = (decision.agent, pulls[decision.agent])
            if pull[1] == LAST_PULL or tapes.take(("ring", *pull), [Fraction(9, 10), Fraction(1, 10)]):
                return decision.agent
            live.reward(decision.id, float(tapes.take(pull, [HALF, HALF])))


def wins(mechanism):
    """On every path, whether Ana wins, by when she joins; with the chance of the path."""
    for seed in range(6 if LONG else 2):
        script = Script()
        for _ in script.leaves():
            tapes = Tapes(script)
            won = [winner(mechanism, when, tapes, seed) == "ana" for when in range(START, 2 * LAST_PULL)]
            yield script.weight, won


@pytest.mark.parametrize("mechanism", ONE_SLOT, ids=["index", "bars"])
def test_under_an_index_that_falls_whoever_joins_earlier_wins_wherever_she_would_later(mechanism):
    """The season pays T times the value of the slot that rings first, so this is her pay, in fractions."""
    totals = [ZERO] * (2 * LAST_PULL + 1)
    for weight, won in wins(mechanism):
        assert not waiting_pays(won)
        totals = [total + weight * one for total, one in zip(totals, won, strict=True)]
    assert totals[0] >= totals[1] >= totals[2] > totals[4] > totals[-1]


@pytest.mark.parametrize("mechanism", ONE_SLOT, ids=["index", "bars"])
def test_ties_to_newcomers_would_be_worth_waiting_for(mechanism):
    def newcomers_first(stream, keys, first):
        places = drawn_order(stream, keys, first)
        return places[:first] + [-place for place in places[first:]]

    with patch(f"{STATE}.drawn_order", newcomers_first):
        assert any(waiting_pays(won) for _, won in wins(mechanism))


def test_all_slots_of_others_keep_what_they_hold_and_what_is_mixed_in_counts():
    for mechanism in (FIRST_PASS, INDEX, BARS):
        held = set()
        for mixed in (b"", b"one", b"another"):
            live = opened(mechanism)
            before = list(live.state.candidates)
            live.join("eve", 50, mixed=mixed)
            assert [slot for slot in live.state.candidates if slot[0] != 3] == before
            held.add(tuple(arm for agent, arm in live.state.candidates if agent == 3))
        assert len(held) == 3


ARMS = {"ana": 3, "bo": 2, "cy": 1}


def opened(mechanism, seed=0, window=None):
    ends = "at-random" if mechanism.arm.ranked else "at-horizon"
    live = cp.session(mechanism, ARMS, 60, seed, window=window, ends=ends)
    live.last = live.begun[None].last = 60
    return live


def turns(joins, seed, rounds=24):
    """Who has each waiting round; `joins` has the agents before each round."""
    public, served = open_registration(ARMS), []
    waiting = NeutralRounds(public, substream(0, seed), Withdrawals(set(), slots=True))
    for number in range(rounds):
        for name in joins.get(number, ()):
            public = with_joiner(public, open_registration({name: 1}), b"")
            waiting.join(public)
        served.append(public.names[waiting.turn()[0]])
    return served


def test_in_shared_rounds_who_joins_is_last_in_the_queue_and_nobody_gains_by_waiting():
    for seed, other in ((0, 0), (1, 4), (2, 7)):
        before = None
        for when in range(12):
            joins = {other: ["fay"]}
            joins[when] = [*joins.get(when, []), "eve"]
            served = turns(joins, seed)
            there = 3 + (other <= when)
            assert "eve" not in served[: when + there]
            assert served[when + there] == "eve"
            assert sorted(set(served[when : when + there])) == sorted(served[when : when + there]) or other > when
            count = [served[:number].count("eve") for number in range(25)]
            assert before is None or all(now <= was for now, was in zip(count, before, strict=True))
            before = count


def test_once_a_draw_has_passed_the_session_is_decided():
    live = opened(FIRST_PASS)
    live.join("eve", 1)
    first = live.decide()
    assert not live.decided
    live.reward(first.id, 1.0)
    assert live.decided
    with pytest.raises(SessionError, match="not decided, got one more agent"):
        live.join("fay", 1)
    assert live.registration.names == ("ana", "bo", "cy", "eve")


def test_her_first_slot_ends_the_pass_that_runs():
    live, served = opened(FIRST_PASS), []
    for number in range(10):
        if number == 1:
            live.join("eve", 4)
        if number == 4:
            live.join("fay", 5)
        decision = live.decide()
        live.reward(decision.id, 0.0)
        served.append((decision.agent, live.probability))
    names = [name for name, _ in served]
    assert names[3] == "eve"
    assert names[7:9] == ["eve", "fay"]
    assert names[9] == "fay"
    assert sorted(names[:3]) == sorted(names[4:7]) == ["ana", "bo", "cy"]
    assert [served[place][1] for place in (3, 8)] == [1 / 4, 1 / 5]


def test_a_segment_where_nobody_was_left_stays_so_for_who_joins():
    live = cp.session(FIRST_PASS, {"ana": 1}, 100, segments={"code": 0.5, "writing": 0.5})
    live.decide("code")
    live.withdraw("ana", 0)
    for _ in range(2):
        with pytest.raises(NobodyLeftError):
            live.decide("code")
    live.join("eve", 1)
    for session in (live, cp.Session.from_json(live.to_json())):
        with pytest.raises(NobodyLeftError):
            session.decide("code")
        assert session.decide("writing").agent == "eve"
