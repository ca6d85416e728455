"""A session with segments: one list of arms and one list of draws, and in each segment a mechanism of its own."""

import random
from collections import Counter
from contextlib import suppress
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof.errors import MechanismError, PausedError, SegmentEndedError, SessionError
from cloneproof.mechanisms import segment
from cloneproof.mechanisms.participants import Participants
from cloneproof.mechanisms.reservoir.timetable import SlotState
from cloneproof.mechanisms.segment import Segment
from support.strategies import small

TWO = {"code": 0.3, "writing": 0.7}
REGISTERED = {"ana": 3, "bo": 2}
NAMES = {
    "first pass": ("reservoir", {"rounds": 3, "draws": 3, "threshold": 2}),
    "contest": ("reservoir-contest", {"rounds": 2, "draws": 2, "horizon": 400}),
    "index": ("reservoir-index", {"draws": 3, "constant": 2.0}),
    "ucb": ("ucb1", {}),
    "two levels": ("h-etc-r", {"agent_rounds": 8, "arm_rounds": 2}),
}


def made(kind):
    name, parameters = NAMES[kind]
    return cp.mechanism(name, **parameters)


def opened(kind, segments=TWO, seed=0, **options):
    ends = "at-random" if kind == "index" else "at-horizon"
    return cp.session(made(kind), REGISTERED, 400, seed=seed, ends=ends, segments=segments, **options)


def value(dice):
    return float(dice.random() < 0.5)


def held(live, name):
    """What the slots of each agent hold in a segment, in the order of its draws."""
    state = live.begun[name].state
    if isinstance(state.candidates[0], tuple):
        if hasattr(state, "slots"):
            return state.slots
        return [[arm for agent, arm in state.candidates if agent == i] for i in range(len(REGISTERED))]
    return None


def play(live, arrivals, dice, late=0):
    """Play rounds in these segments, each rewarded some rounds later; what was decided and entered, by segment."""
    told = {name: [] for name in live.segments or (None,)}
    waiting = []
    for name in arrivals:
        try:
            one = live.decide(segment=name)
        except cp.errors.SegmentEndedError:
            continue
        waiting.append(one)
        told[name].append((one.agent, one.arm, one.phase, one.slot, live.probability))
        if len(waiting) > late:
            first = waiting.pop(0)
            worth = value(dice[first.segment])
            live.reward(first.id, worth)
            told[first.segment].append(worth)
    return told


@pytest.mark.parametrize("kind", NAMES)
def test_a_segment_does_not_notice_the_others(kind):
    """What happens in one segment is the same, whatever arrives and is rewarded in the other."""
    alone = play(opened(kind), ["code"] * 60, {"code": random.Random(1)})
    for seed in range(3):
        order = random.Random(seed)
        mixed = [*["code"] * 60, *["writing"] * 60]
        order.shuffle(mixed)
        dice = {"code": random.Random(1), "writing": random.Random(100 + seed)}
        assert play(opened(kind), mixed, dice)["code"] == alone["code"]


@pytest.mark.parametrize("kind", ["first pass", "contest", "index"])
def test_draws_are_shared_and_nothing_else_is(kind):
    orders, coins, last = set(), set(), set()
    for seed in range(20):
        live = opened(kind, seed=seed)
        for name in TWO:
            live.decide(segment=name)
        code, writing = (live.begun[name] for name in TWO)
        if kind == "contest":
            assert code.state.arms == writing.state.arms
        else:
            assert held(live, "code") == held(live, "writing")
        plain = cp.session(made(kind), REGISTERED, 400, seed=seed, ends=live.ends)
        assert (plain.state.arms if kind == "contest" else held(plain, None)) == (
            code.state.arms if kind == "contest" else held(live, "code")
        )
        orders.add(getattr(code.state, "order", 0) == getattr(writing.state, "order", 1))
        coins.add(None if code.coins is None else code.coins.stream == writing.coins.stream)
        last.add(code.last == writing.last)
    assert coins <= {False, None}
    if kind == "first pass":
        assert orders == {True, False}
    if kind == "index":
        assert len(last) == 2 or last == {False}


def test_a_segment_with_fewer_draws_has_the_first_of_the_same_list():
    by_segment = {
        name: cp.mechanism("reservoir", rounds=2, draws=draws, threshold=2)
        for name, draws in (("code", 2), ("writing", 5))
    }
    for seed in range(10):
        live = cp.session(by_segment, REGISTERED, 400, seed=seed, segments=TWO)
        for name in TWO:
            live.decide(segment=name)
        few, many = (live.begun[name].state.slots for name in TWO)
        assert all(
            short == full[: len(short)] and len(short) < len(full) for short, full in zip(few, many, strict=True)
        )


def test_a_mechanism_tuned_to_a_market_runs_in_its_segments():
    agents = [cp.Agent(name, 2, cp.Discrete([0.1, 0.3], [0.5, 0.5])) for name in ("ana", "bo")]
    market = cp.Market(agents, 20_000, segments={"code": 0.1, "writing": 0.9})
    tuned = cp.mechanism("reservoir", market=market)
    live = cp.session(tuned, {"ana": 2, "bo": 2}, 20_000, segments=market.segments)
    for name in market.segments:
        live.decide(segment=name)
        assert live.begun[name].mechanism == cp.mechanism("reservoir", market=market.segment(name))
    assert live.begun["code"].mechanism != live.begun["writing"].mechanism
    again = cp.Session.from_json(live.to_json())
    assert (again.mechanism.to_dict(), again.to_json()) == (tuned.to_dict(), live.to_json())


def test_ids_are_global_and_the_ledger_names_the_segment():
    live = opened("first pass", share=0.5)
    arrivals = ["code", "writing", "writing", "code", "writing"]
    decisions = [live.decide(segment=name) for name in arrivals]
    assert [one.id for one in decisions] == [1, 2, 3, 4, 5]
    assert [one.segment for one in decisions] == arrivals
    assert [live.begun[name].round for name in TWO] == [2, 3]
    for one in reversed(decisions):
        live.reward(one.id, 1.0)
    assert [(line.id, line.segment, line.paid) for line in live.ledger] == [
        (n, name, 0.5) for n, name in enumerate(arrivals, 1)
    ]
    assert sum(live.payoff.values()) == 2.5


def test_each_segment_draws_its_own_end():
    ends = Counter()
    for seed in range(400):
        live = opened("index", seed=seed)
        for name in TWO:
            live.decide(segment=name)
        lasts = [live.begun[name].last for name in TWO]
        assert live.last == sum(lasts)
        ends.update(zip(TWO, lasts, strict=True))
    # A mean of 400 geometric numbers is off by less than 6 standard errors, but for one time in a million.
    for name, mean in (("code", 120), ("writing", 280)):
        average = sum(last * times for (own, last), times in ends.items() if own == name) / 400
        assert abs(average - mean) < 6 * mean / 20


def test_a_segment_that_has_ended_refuses_and_the_others_go_on():
    live = opened("index", seed=3)
    for name, words in (("code", "decisions in segment 'code', where its end was drawn"), ("writing", "where its end")):
        live.decide(segment=name)
        while live.begun[name].round < live.begun[name].last:
            live.decide(segment=name)
        with pytest.raises(cp.errors.SessionError, match=words) as refusal:
            live.decide(segment=name)
        assert isinstance(refusal.value, cp.errors.SegmentEndedError) is (name == "code")
    assert live.round == live.last


def test_a_fixed_end_counts_all_rounds():
    live = cp.session(made("first pass"), REGISTERED, 10, segments=TWO)
    for _ in range(9):
        live.decide(segment="code")  # more than its fraction of the rounds
    live.decide(segment="writing")
    with pytest.raises(cp.errors.SessionError, match="at most 10 decisions, the horizon"):
        live.decide(segment="writing")


def test_who_withdraws_is_out_segment_by_segment():
    for seed in range(30):
        live = opened("first pass", seed=seed)
        for name in TWO:
            live.decide(segment=name)
        state = live.begun["code"].state
        agent, arm = state.candidates[1]
        if state.candidates[0] == (agent, arm) or state.order != [0, 1] or live.begun["writing"].state.order != [0, 1]:
            continue
        live.withdraw(list(REGISTERED)[agent], arm)
        for _ in range(8):
            live.reward(live.decide(segment="code").id, 0.0)
        assert live.begun["code"].withdrawals.out == {agent}
        assert live.begun["writing"].withdrawals.out == set()
        assert live.out == []
        break
    else:
        pytest.fail("no such seed")
    for name, arms in REGISTERED.items():
        for arm in range(arms):
            live.withdraw(name, arm)
    for name in TWO:
        assert not live.nobody_left
        for _ in range(2):
            with pytest.raises(cp.errors.NobodyLeftError):
                live.decide(segment=name)
    assert live.nobody_left
    assert (live.out, live.last) == (list(REGISTERED), live.round)


def test_who_joins_has_slots_wherever_it_is_not_decided():
    live = opened("first pass")
    while not live.begun or not live.begun["code"].state.decided:
        live.reward(live.decide(segment="code").id, 1.0)
    champion = live.decide(segment="code")
    live.join("cy", 1)
    for _ in range(20):
        one = live.decide(segment="code")
        live.reward(one.id, 0.0)
        assert (one.agent, one.arm) == (champion.agent, champion.arm)
    shown = []
    for _ in range(3 * 3 * 3):
        one = live.decide(segment="writing")
        live.reward(one.id, 0.0)
        shown.append(one.agent)
    assert (shown[6:9], shown.count("cy")) == (["cy"] * 3, 9)
    again = cp.Session.from_json(live.to_json())
    assert again.to_json() == live.to_json()
    live.withdraw(champion.agent, champion.arm)
    for _ in range(20):
        one = live.decide(segment="code")
        live.reward(one.id, 0.0)
        assert one.agent not in ("cy", champion.agent)
    for name in TWO:
        while not live.begun[name].state.decided:
            live.reward(live.decide(segment=name).id, 1.0)
    with pytest.raises(cp.errors.SessionError, match="not decided"):
        live.join("di", 1)


def segments_with_draws_of_their_own(self, terms, registration, stream, withdrawn, pauses):
    own = segment.segment_stream(stream, terms.number)
    original_init(self, terms._replace(number=None), registration, own, withdrawn, pauses)
    self.number = terms.number


original_init = Segment.__init__


def leaking(self, terms, registration, stream, withdrawn, pauses):
    """A segment whose counts are those of all segments of its session."""
    original_init(self, terms, registration, stream, withdrawn, pauses)
    self.state = LEAKS.setdefault(id(withdrawn), (withdrawn, self.state))[1]


LEAKS: dict = {}


def test_planted_faults_are_noticed():
    with patch.object(Segment, "__init__", leaking), pytest.raises(AssertionError):
        test_a_segment_does_not_notice_the_others("first pass")
    with patch.object(Segment, "__init__", segments_with_draws_of_their_own), pytest.raises(AssertionError):
        test_draws_are_shared_and_nothing_else_is("first pass")
    for kind in ("first pass", "index"):  # one order, the same coins, one end for all segments
        with patch.object(segment, "segment_stream", lambda stream, number: stream), pytest.raises(AssertionError):
            test_draws_are_shared_and_nothing_else_is(kind)


def bursts(name, seed):
    """Play a session that tells its segments of each change at once and one that does not; the decisions of both."""
    dice, waiting, made = random.Random(f"{name} {seed}"), [], ([], [])
    segments = {"code": 0.6, "writing": 0.4}
    both = [cp.session(small(name), {"ana": 3, "bo": 2, "cy": 1}, 200, seed=seed, segments=segments) for _ in range(2)]
    for number in range(60):
        for change in range(dice.choice([0, 0, 0, 1, 2, 5])):
            kind, agent = dice.choice(["pause", "pause", "resume", "resume", "join"]), dice.choice(["ana", "bo", "cy"])
            arm = dice.choice([None, 0])
            for one in both:
                with suppress(MechanismError, SessionError):
                    one.join(f"late {number} {change}", 1) if kind == "join" else getattr(one, kind)(agent, arm)
            both[1].to_json()
        segment, due = dice.choice(["code", "code", "code", "writing"]), dice.random() < 0.7 and waiting
        if due:
            decision, value = waiting.pop(dice.randrange(len(waiting))), float(dice.random() < 0.5)
            for one in both:
                one.reward(decision, value)
        for one, own in zip(both, made, strict=True):
            with suppress(PausedError, SegmentEndedError):
                own.append((one.decide(segment), one.probability))
        waiting += [own[0].id for own in made[0][-1:] if own[0].id not in waiting and own[0].id in both[0].pending]
    return made


@pytest.mark.parametrize("name", ["reservoir", "reservoir-index", "reservoir-contest", "thompson", "etc", "h-ucb"])
def test_a_segment_hears_of_each_pause_in_turn_when_it_is_needed_next(name):
    """However many there were meanwhile, as if it had heard of each at once."""
    for seed in range(12):
        first, second = bursts(name, seed)
        assert first == second


def test_pauses_that_are_over_and_were_not_heard_of_would_be_noticed():
    def heard_later(self, switched):
        self._pauses.arms ^= switched
        self._pauses.changes += bool(switched)
        self._missed.append(frozenset())
        return bool(switched)

    with patch.object(Participants, "_set_paused", heard_later):
        assert any(first != second for first, second in (bursts("reservoir", seed) for seed in range(40)))


def test_a_pause_tells_nobody_before_a_decision_and_then_only_the_segment_that_is_asked():
    """Telling thousands of segments would hold all other calls meanwhile."""
    fractions = {f"{number}": 1 / 300 for number in range(300)}
    live = cp.session(small("reservoir"), {"ana": 40, "bo": 2}, 10**6, segments=fractions)
    for name in fractions:
        live.decide(name)
    with patch.object(SlotState, "leave_out", autospec=True, side_effect=SlotState.leave_out) as told:
        live.pause("ana")
        assert told.call_count == 0
        live.decide("7")
        assert told.call_count == 1
