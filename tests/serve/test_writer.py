"""Nobody stalls the others, batches are their items one by one, snapshots are taken while other markets go on."""

import asyncio
import sqlite3
import threading
from collections import Counter, defaultdict
from contextlib import closing
from functools import partial
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from cloneproof.serve.market.entries import Decided, decode
from cloneproof.serve.messages import DecisionRequest, RewardItem
from cloneproof.serve.offline import replay_all
from cloneproof.serve.storage import SqliteStorage
from cloneproof.serve.writer.commands import DEFAULTS_AT_ONCE, Decide, DecideSlates, Do, Reward, Settle, Unfinished
from cloneproof.serve.writer.group import merge, split_reply
from cloneproof.serve.writer.markets import ServedMarkets
from cloneproof.serve.writer.queue import Capacity, QueuedCall, RoundRobin
from support.service import TERMS, Desk, deciding, open_market, spec, with_arms

FEED = "/v1/markets/feed"


class Reply:
    """A future without a loop."""

    def __init__(self):
        self.value = None

    def done(self):
        return self.value is not None

    def set_result(self, value):
        self.value = value

    set_exception = set_result


def batch(market, number, size=1000):
    return deciding(market, [f"{number}-{n}" for n in range(size)])


def queue_of(batches, **capacity):
    """A queue with these batches of `large`."""
    waiting = RoundRobin(Capacity(**capacity))
    for number in range(batches):
        waiting.put(batch("large", number), Reply())
    return waiting


def items_of(group):
    items = Counter()
    for call in group:
        items[call.command.market] += call.command.size
    return items


def test_a_call_of_another_market_is_in_the_next_group_whatever_waits():
    waiting = queue_of(150)
    waiting.next_group()
    waiting.put(deciding("small", ["a"]), Reply())
    group = waiting.next_group()
    assert group[0].command == deciding("small", ["a"])
    assert items_of(group) == {"small": 1, "large": 1000}


def test_markets_that_all_have_much_to_do_get_equal_shares():
    waiting = queue_of(60)
    for number in range(60):
        for name in ("b", "c", "d", "e", "f"):
            waiting.put(batch(name, number), Reply())
    items = Counter()
    for _ in range(30):
        items += items_of(waiting.next_group())
    assert len(items) == 6
    assert max(items.values()) - min(items.values()) <= 1000


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 20)), min_size=1, max_size=8), st.integers(0, 1 << 30))
@settings(max_examples=100, deadline=None)
def test_whatever_groups_leave_unfinished_each_item_has_one_reply_in_order(calls, seed):
    """Of each call in a group some items are done, all of them or none; a market that got no time may go first."""
    waiting, replies, rng = RoundRobin(Capacity(group_items=12, share_items=5, group_calls=4)), [], Random(seed)
    for number, (market, size) in enumerate(calls):
        replies.append(Reply())
        waiting.put(batch(market, number, size), replies[-1])
    first = set()
    while waiting:
        group = waiting.next_group()
        assert not first or group[0].command.market in first
        for call in group:
            asked = call.command
            items = rng.choice([0, rng.randint(0, asked.size), asked.size])
            rest = Unfinished(asked.items[:items], market_first=items == 0 and rng.random() < 0.5)
            call.reply = list(asked.items) if items == asked.size else rest
            call.send()
        cut = [call for call in group if type(call.reply) is Unfinished]
        first = {call.command.market for call in cut if call.reply.market_first}
        assert waiting.put_back(group) == {call.command.market for call in cut}
    assert waiting.calls == 0
    expected = [batch(market, number, size).items for number, (market, size) in enumerate(calls)]
    assert [reply.value for reply in replies] == expected


@given(sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5), done=st.integers(0, 25))
def test_a_batch_that_was_cut_is_cut_for_each_call_in_it(sizes, done):
    reply = list(range(min(done, sum(sizes))))
    parts = list(split_reply(reply if done >= sum(sizes) else Unfinished(reply), sizes))
    replies = [part.replies if isinstance(part, Unfinished) else part for part in parts]
    assert [one for part in replies for one in part] == reply
    for part, have, size in zip(parts, replies, sizes, strict=True):
        assert isinstance(part, Unfinished) == (len(have) < size)


def test_lanes_of_names_that_are_no_market_are_dropped():
    waiting = RoundRobin()
    for number in range(25_000):
        waiting.put(Do(f"no-{number}", lambda markets, now: None), Reply())
        waiting.next_group()
    assert len(waiting._lanes) < 10_100


def test_a_market_of_a_slow_rule_leaves_the_others_their_turn():
    """Counted in groups: while the batches of one are decided in parts, each call of the other takes one group."""
    with Desk() as desk:
        open_market(desk, {"ana": 20}, mechanism="thompson", parameters={}, max_agents=2)
        assert desk.post("/v1/markets", TERMS | {"market": "small"}).status_code == 201
        writer = desk.app._service.writer
        ticks = iter(range(10**9))
        writer._stopwatch = lambda: next(ticks) * 0.001  # what is done takes a thousandth of a second, or one an item

        async def both():
            batches = [writer.submit(batch("feed", number, 200)) for number in range(5)]
            waits = []
            for _ in range(10):
                before = writer.groups
                await writer.submit(Do("small", lambda markets, now: markets.market("small").state))
                waits.append(writer.groups - before)
            assert not batches[-1].done()
            return waits, [len(await one) for one in batches]

        waits, sizes = desk.runner.run(both())
    assert max(waits) <= 2
    assert sizes == [200] * 5


def test_a_batch_that_takes_longer_than_was_known_is_cut(tmp_path):
    """As where a rule begins to compare all arms: the rest is done in the next groups, in order, each request once."""
    with Desk() as desk:
        open_market(desk, {"ana": 2, "bo": 1}, mechanism="ucb1", parameters={})
        writer = desk.app._service.writer
        now = iter(range(10**9))
        writer._stopwatch = lambda: next(now) * 0.007  # three looks at it, and the time is over
        requests = [f"r{n}" for n in range(40)]

        async def both():
            mixed = [
                writer.submit(deciding("feed", [*requests[:30], "r3"])),
                writer.submit(deciding("feed", requests[25:])),
            ]
            return await asyncio.gather(*mixed)

        before = writer.groups
        first, second = desk.runner.run(both())
        assert writer.groups - before > 10
    assert [one.request_id for one in first] == [*requests[:30], "r3"]
    assert [one.request_id for one in second] == requests[25:]
    assert [one.decision for one in first] == [*range(1, 31), 4]
    assert [one.decision for one in second] == list(range(26, 41))
    assert [one.duplicate for one in first] == [False] * 30 + [True]
    assert [one.duplicate for one in second] == [True] * 5 + [False] * 10


def test_a_season_with_many_rewards_missing_is_settled_in_steps(tmp_path):
    """Another market's calls are done between them; the season's own wait; a crash in between is made good."""
    path = tmp_path / "market.db"
    with Desk(SqliteStorage(str(path))) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        assert desk.post("/v1/markets", TERMS | {"market": "small"}).status_code == 201
        for number in range(3):
            assert len(desk.decide_batch(f"{number}-{n}" for n in range(1000))) == 1000
        writer = desk.app._service.writer
        before = writer.groups

        async def settled():
            ending = writer.submit(Settle("feed", lambda market: market.state, "a test"))
            late = writer.submit(deciding("feed", ["too late"]))
            between = 0
            while not ending.done():
                assert await writer.submit(Do("small", lambda markets, now: markets.market("small").state)) == "open"
                between += 1
            return between, await ending, (await late)[0]

        between, state, late = desk.runner.run(settled())
        assert writer.groups - before >= 3000 // DEFAULTS_AT_ONCE
        assert between >= 2  # how many more depends on how fast the writer's thread is
    assert state == "settled"
    assert late.error == "season_settled"
    (found, _) = replay_all(str(path))
    assert found.fits, found.statement


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_settlement_that_was_cut_short_is_finished_by_the_next_start(tmp_path, snapshot):
    path = tmp_path / "market.db"
    with Desk(SqliteStorage(str(path))) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        assert len(desk.decide_batch(f"{n}" for n in range(1000))) == 1000
        writer = desk.app._service.writer

        async def cut_short():
            ending, before = writer.submit(Settle("feed", lambda market: market.state, "a test")), writer.groups
            while writer.groups == before:
                await asyncio.sleep(0)
            writer._task.cancel()  # the first step is stored, and the next one under way
            await writer.threads.storage(lambda: None)
            if snapshot:
                await writer.checkpoint()
            return ending.done()

        assert desk.runner.run(cut_short()) is False
        desk.crash()
    with Desk(SqliteStorage(str(path))) as again:
        again.key = desk.key
        reply = again.post("decisions", {"request_id": "more"})
        assert reply.json()["error"] == "season_settled"
    (found,) = replay_all(str(path))
    assert found.fits, found.statement


@pytest.mark.parametrize("late", [False, True])
def test_calls_wait_until_all_windows_that_are_over_have_ended(late):
    """As if they were ended at once: with more of them than fit in a group, no reward slips in before its default."""
    with Desk() as desk:
        open_market(desk, {"ana": 1}, wait_seconds=1)
        for number in range(3):
            desk.decide_batch(f"{number}-{n}" for n in range(1000))
        desk.clock.now += 5000 if late else 0
        assert desk.reward("e", 2999) == ("late" if late else "recorded")


def fail_once(desk, monkeypatch, name):
    """Plant a fault after the state has changed: a decision of this request is lost half-way."""
    market = desk.app._service.writer.markets.by_name[name]
    real = market._enter_decisions

    def faulty(decided: list[Decided], now: int) -> None:
        if any(entry.request == "poison" for entry in decided):
            raise ZeroDivisionError
        real(decided, now)

    monkeypatch.setattr(market, "_enter_decisions", faulty)


def test_a_fault_is_answered_500_and_concerns_no_other_market(tmp_path, monkeypatch):
    path = tmp_path / "market.db"
    with Desk(SqliteStorage(str(path))) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        assert desk.post("/v1/markets", TERMS | {"market": "small"}).status_code == 201
        writer = desk.app._service.writer
        small = writer.markets.by_name["small"]
        fail_once(desk, monkeypatch, "feed")

        statuses = desk.together(
            ("POST", f"{FEED}/decisions", {"request_id": "first"}),
            ("GET", "/v1/markets/small", None),
            ("GET", FEED, None),
            ("POST", f"{FEED}/decisions", {"request_id": "poison"}),
            ("POST", f"{FEED}/agents", {"agent": "cy"}),
        )
        assert statuses == [200, 200, 200, 500, 201]
        assert writer.markets.by_name["small"] is small  # not read back
        again = desk.decide("poison")
        assert (again["decision"], again["duplicate"]) == (2, False)
    (found, _) = replay_all(str(path))
    assert found.fits, found.statement


REQUESTS = st.lists(st.sampled_from([f"r{n}" for n in range(60)]), min_size=1, max_size=20)
ITEMS = st.lists(
    st.builds(
        RewardItem,
        event_id=st.sampled_from([f"e{n}" for n in range(40)]),
        decision=st.integers(1, 45),
        request_id=st.sampled_from(["", "", "", "another"]),
        value=st.sampled_from([0.0, 1.0, 0.3, 0.25, 7.0]),
    ),
    min_size=1,
    max_size=20,
)
COMMANDS = st.lists(
    st.one_of(st.builds(deciding, st.just("m"), REQUESTS), st.builds(Reward, st.just("m"), ITEMS)), max_size=12
)


def opened(**terms):
    markets = ServedMarkets()
    market, _ = markets.create(spec(**({"market": "m", "wait_seconds": 1.0} | terms)), 1000)
    with_arms(market, {"ana": 2, "bo": 2, "cy": 1}).start(1000)
    return markets, market


def singles(command):
    if isinstance(command, Decide):
        return [Decide(command.market, [one]) for one in command.items]
    return [Reward(command.market, [one]) for one in command.items]


def sent(command, market):
    """The command with the request of each decision that awaits its reward, unless an item names another one."""
    if isinstance(command, Decide):
        return command
    asked = [item.request_id or market.requests.get(item.decision, "") for item in command.items]
    items = [replace(item, request_id=request) for item, request in zip(command.items, asked, strict=True)]
    return Reward(command.market, items)


def told(markets):
    """What the ledger says, whatever the order inside a batch."""
    lines = [decode(line) for _, _, new in markets.take() for line in new.lines]
    return sorted((type(one).__name__, *(v for k, v in _fields(one) if k != "n")) for one in lines[1:])


def _fields(entry):
    return [(name, repr(getattr(entry, name))) for name in entry.__struct_fields__]


@given(commands=COMMANDS, horizon=st.sampled_from([10, 50]), late=st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_batch_is_its_items_one_by_one(commands, horizon, late):
    (one, market), (many, other) = opened(horizon=horizon), opened(horizon=horizon)
    known_one, known_many = defaultdict(dict), defaultdict(dict)
    for step, made in enumerate(commands):
        now = 2000 + (600 * step if late else 0)
        for markets, known in ((one, known_one), (many, known_many)):
            markets.expire(now, known, markets.by_name)
        command = sent(made, market)
        singly = [single.run(one, known_one, now)[0] for single in singles(command)]
        assert command.run(many, known_many, now) == singly
        assert market.registry.to_dict() == other.registry.to_dict()
        assert market.session.to_json() == other.session.to_json()
    assert told(one) == told(many)


TWO = {"mechanism": "reservoir", "segments": {"code": 0.3, "writing": 0.7}}
ENDING = {
    "mechanism": "reservoir-index",
    "parameters": {"draws": 2, "constant": 2.0},
    "ends": "at-random",
    "horizon": 30,
}
PAGES = {
    "parameters": {"rounds": 2, "draws": 3},
    "positions": {"code": 2, "writing": [1.0, 0.6, 0.4]},
    "wait_rounds": 3,
}


@pytest.mark.parametrize(("kind", "terms"), [(Decide, TWO | ENDING), (DecideSlates, TWO | PAGES)])
def test_a_batch_with_segments_is_its_items_one_by_one(kind, terms):
    for seed in range(10):
        dice = Random(seed)
        (one, market), (many, other) = opened(**terms), opened(**terms)
        known_one, known_many = defaultdict(dict), defaultdict(dict)
        for _ in range(6):
            items = [
                DecisionRequest(f"r{name}", ("code", "writing", "writing", "other", None)[name % 5])
                for name in dice.choices(range(90), k=dice.randrange(1, 25))
            ]
            singly = [kind("m", [item]).run(one, known_one, 2000)[0] for item in items]
            assert kind("m", items).run(many, known_many, 2000) == singly
        assert market.session.to_json() == other.session.to_json()
        assert market.chain.head == other.chain.head


@given(commands=COMMANDS)
@settings(max_examples=15, deadline=None)
def test_calls_that_are_taken_together_get_the_replies_of_some_order(commands):
    """Decisions first or rewards first, as they came: in that order, one by one, each gets what it was told."""
    (one, market), (many, _) = opened(horizon=50), opened(horizon=50)
    known_one, known_many = defaultdict(dict), defaultdict(dict)
    before = deciding("m", [f"before {number}" for number in range(20)])
    assert before.run(one, known_one, 2000) == before.run(many, known_many, 2000)
    commands = [sent(command, market) for command in commands]
    waiting = [QueuedCall(command, Reply()) for command in commands]
    together = list(merge(waiting))
    assert Counter(map(id, waiting)) == Counter(id(call) for _, calls in together for call in calls)
    assert len(together) <= 2
    for command, calls in together:
        replies = command.run(many, known_many, 2000)
        singly = [reply for call in calls for reply in call.command.run(one, known_one, 2000)]
        assert replies == singly
    assert told(one) == told(many)


def test_what_is_no_decision_and_no_reward_keeps_its_place():
    act, first, second = Do("m", lambda markets, now: None), deciding("m", ["a"]), deciding("m", ["b"])
    elsewhere = deciding("k", ["c"])

    def merged(*commands):
        return [command for command, _ in merge(QueuedCall(command, Reply()) for command in commands)]

    assert merged(first, act, second, elsewhere) == [first, act, second, elsewhere]
    assert merged(first, elsewhere, second, act) == [deciding("m", ["a", "b"]), elsewhere, act]


def test_a_reward_that_comes_with_the_settlement_is_late():
    """Looked up when its decision still waited: it must meet the default all the same, and be told what a retry is."""
    markets, market = opened(horizon=10)
    known = defaultdict(dict)
    made = deciding("m", ["r"]).run(markets, known, 2000)[0].decision
    assert Settle("m", lambda one: one.state, "a test").run(markets, known, 2000) == "settled"
    first, again = (Reward("m", [RewardItem("e", made, "r", 1.0)]).run(markets, known, 2000)[0] for _ in range(2))
    assert (first.result, again.result) == ("late", "duplicate")
    assert sum(one.balance for one in market.registry.agents.values()) == 0


@pytest.mark.parametrize("end", ["crash", "close"])
def test_while_a_snapshot_is_taken_the_other_markets_go_on(tmp_path, end):
    path, gate = str(tmp_path / "market.db"), threading.Event()
    with Desk(SqliteStorage(path, interval=50)) as desk:
        open_market(desk, {"ana": 2, "bo": 1})
        assert desk.post("/v1/markets", TERMS | {"market": "small"}).status_code == 201
        writer = desk.app._service.writer

        async def meanwhile():
            occupied = asyncio.ensure_future(writer.threads.market(partial(gate.wait, 60)))  # a snapshot waits for it
            await writer.submit(deciding("feed", [f"r{n}" for n in range(60)]))
            while "feed" not in writer.markets.held:
                await asyncio.sleep(0)
            own = writer.submit(deciding("feed", ["own"]))
            for _ in range(5):
                assert await writer.submit(Do("small", lambda markets, now: markets.market("small").state)) == "open"
            waited = not own.done()
            gate.set()
            assert await occupied
            return waited, (await own)[0].decision

        assert desk.runner.run(meanwhile()) == (True, 61)

        def stored():
            return desk.storage._writer.execute("SELECT count(*) FROM snapshots").fetchone()[0], desk.storage._since

        while not (found := desk.runner.run(writer.threads.storage(stored)))[0]:
            desk.post("decisions", {"request_id": "more"})
        assert found[1] < 50  # what came in meanwhile counts for the next one
        getattr(desk, end)()
    with Desk(SqliteStorage(path, interval=50)) as again:
        again.key = desk.key
        for request, decision in (("r0", 1), ("r59", 60), ("own", 61)):
            reply = again.decide(request)
            assert (reply["decision"], reply["duplicate"]) == (decision, True)
    assert all(found.fits for found in replay_all(path))


def test_a_market_that_cannot_be_read_does_not_hinder_others(tmp_path):
    """Planted: the stored lines of one market are damaged, and calls that need them come together with another's."""
    path = tmp_path / "market.db"
    with Desk(SqliteStorage(str(path))) as desk:
        open_market(desk, {"ana": 1})
        desk.decide("old")
        open_market(desk, {"ana": 1}, market="small")
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE ledger SET lines = 'damaged' WHERE place < 2 << 40")
        other.close()
        for number in range(2):
            asked = (("feed", "old"), ("small", f"r{number}"), ("feed", f"new-{number}"))
            calls = [("POST", f"/v1/markets/{market}/decisions", {"request_id": request}) for market, request in asked]
            assert desk.together(*calls)[:2] == [503, 200]
        assert desk.post("decisions", {"request_id": "new"}).status_code == 200
