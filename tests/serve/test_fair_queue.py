"""Nobody stalls the others: shares of work by market, batches in parts, long work in steps, faults by themselves."""

import asyncio
from collections import Counter, defaultdict

import pytest

from cloneproof.errors import Refused
from cloneproof.serve.commit import fair_queue
from cloneproof.serve.commit.commands import Do
from cloneproof.serve.commit.decide import Decide
from cloneproof.serve.commit.fair_queue import FairQueue
from cloneproof.serve.commit.markets import ServedMarkets
from cloneproof.serve.commit.settle import DEFAULTS_AT_ONCE, Settle
from cloneproof.serve.ledger.entries import Decided
from cloneproof.serve.offline.reading import replay_all
from cloneproof.serve.storage import SqliteStorage
from support.service import TERMS, Desk, open_market, spec

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
    return Decide(market, [f"{number}-{n}" for n in range(size)])


def queue_of(batches, pace=1e-5):
    """A queue in which an item of `large` is known to take so long, with these batches of it."""
    queue = FairQueue()
    queue.put(Do("large", lambda markets, now: None), Reply())
    queue.next_group()
    queue.note(Decide("large", ["r"]), pace, 1)
    for number in range(batches):
        queue.put(batch("large", number), Reply())
    return queue


def test_a_call_of_another_market_is_in_the_next_group_whatever_waits():
    queue = queue_of(150)
    queue.next_group()
    queue.put(Decide("small", ["a"]), Reply())
    group = queue.next_group()
    assert group[0][1] == Decide("small", ["a"])
    items = Counter()
    for _, part in group:
        items[part.market] += part.size
    assert items["small"] == 1
    assert 0 < items["large"] <= 401  # 4 ms of 10 µs each


def test_markets_that_all_have_much_to_do_get_equal_shares_of_the_work():
    """In seconds, as far as they are known: items of `large` take ten times as long."""
    queue = queue_of(0)
    for name, pace in (("large", 1e-4), ("other", 1e-5), ("third", 1e-5)):
        queue.put(Do(name, lambda markets, now: None), Reply())
        queue.next_group()
        for _ in range(40):
            queue.note(Decide(name, ["r"]), pace, 1)
        for number in range(60):
            queue.put(batch(name, number), Reply())
    items = Counter()
    for _ in range(40):
        for _, part in queue.next_group():
            items[part.market] += part.size
    assert items["other"] == pytest.approx(items["third"], rel=0.05)
    assert items["other"] == pytest.approx(10 * items["large"], rel=0.05)


def test_a_batch_in_parts_has_all_its_replies_in_order():
    queue, reply = queue_of(0, pace=1e-4), Reply()
    queue.put(batch("large", 0), reply)
    sizes = []
    while queue:
        for call, part in queue.next_group():
            assert reply.value is None
            sizes.append(part.size)
            call.enter_reply(list(part.requests))
    assert sizes == [150] * 6 + [100]  # 15 ms of 0.1 ms each: nobody else waits
    assert reply.value == [f"0-{n}" for n in range(1000)]


def test_what_is_put_back_comes_first_and_once():
    queue = queue_of(3)
    first = queue.next_group()
    queue.put_back([(call, part.size) for call, part in first])
    assert queue.calls == 3
    again = queue.next_group()
    assert [part for _, part in again] == [part for _, part in first]
    done = sum(part.size for _, part in again)
    while queue:
        done += sum(part.size for _, part in queue.next_group())
    assert done == 3000
    assert queue.calls == 0


def test_a_market_is_refused_by_its_own_items_and_not_by_those_of_others(monkeypatch):
    monkeypatch.setattr(fair_queue, "MOST_ITEMS_WAITING", 5000)
    queue = queue_of(5)
    with pytest.raises(Refused, match="too much is waiting for this market"):
        queue.put(Decide("large", ["one more"]), Reply())
    queue.put(batch("small", 0), Reply())


def test_lanes_of_names_that_are_no_market_are_dropped():
    queue = FairQueue()
    for number in range(25_000):
        queue.put(Do(f"no-{number}", lambda markets, now: None), Reply())
        queue.next_group()
    assert len(queue._lanes) < 10_100


def test_a_market_of_a_slow_rule_leaves_the_others_their_turn():
    """Counted in groups: while the batches of one are decided in parts, each call of the other takes one group."""
    with Desk() as desk:
        open_market(desk, {"ana": 100}, mechanism="thompson", parameters={})
        assert desk.call("POST", "/v1/markets", TERMS | {"market": "small"}).status_code == 201
        writer = desk.app._service.writer
        ticks = iter(range(10**9))
        writer._stopwatch = lambda: next(ticks) * 0.001  # what is done takes a thousandth of a second, or one an item

        async def both():
            queue = [writer.submit(batch("feed", number, 200)) for number in range(5)]
            waits = []
            for _ in range(10):
                before = writer.groups
                await writer.submit(Do("small", lambda markets, now: markets.market("small").state))
                waits.append(writer.groups - before)
            assert not queue[-1].done()
            return waits, [len(await one) for one in queue]

        writer._queue._lanes["feed"].pace[Decide] = 0.001
        writer._queue.note = lambda command, seconds, items: None
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
                writer.submit(Decide("feed", [*requests[:30], "r3"])),
                writer.submit(Decide("feed", requests[25:])),
            ]
            return await asyncio.gather(*mixed)

        writer._queue.note = lambda command, seconds, items: None
        writer._queue.put(Do("feed", lambda markets, now: None), Reply())
        writer._queue._lanes["feed"].pace[Decide] = 1e-6  # taken for quick
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
        assert desk.call("POST", "/v1/markets", TERMS | {"market": "small"}).status_code == 201
        for number in range(3):
            items = [{"request_id": f"{number}-{n}"} for n in range(1000)]
            assert desk.call("POST", f"{FEED}/decisions/batch", {"items": items}).status_code == 200
        writer = desk.app._service.writer
        before = writer.groups

        async def settled():
            ending = writer.submit(Settle("feed", lambda market: market.state))
            late = writer.submit(Decide("feed", ["too late"]))
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
        items = [{"request_id": f"{n}"} for n in range(1000)]
        assert desk.call("POST", f"{FEED}/decisions/batch", {"items": items}).status_code == 200
        writer = desk.app._service.writer

        async def cut_short():
            ending, before = writer.submit(Settle("feed", lambda market: market.state)), writer.groups
            while writer.groups == before:
                await asyncio.sleep(0)
            writer._task.cancel()  # the first step is stored, and the next one under way
            await writer.in_writing_thread(lambda: None)
            if snapshot:
                await writer.checkpoint()
            return ending.done()

        assert desk.runner.run(cut_short()) is False
        desk.crash()
    with Desk(SqliteStorage(str(path))) as again:
        again.key = desk.key
        reply = again.call("POST", f"{FEED}/decisions", {"request_id": "more"})
        assert reply.json()["error"] == "season_settled"
    (found,) = replay_all(str(path))
    assert found.fits, found.statement


def test_windows_that_end_together_are_ended_in_steps():
    markets = ServedMarkets()
    for name in ("first", "second"):
        markets.create(spec(market=name, wait_seconds=1), 0)
        market = markets.market(name)
        market.register_agent("ana", 0)
        market.register_arm("ana", "a", 0)
        market.start(0)
        market.decide_many([f"{n}" for n in range(700)], 0)
    known = defaultdict(dict)
    assert markets.expire(5000, known, most=1000) == {"first", "second"}
    assert [len(known[number]) for number in (1, 2)] == [500, 500]
    assert markets.expire(5000, known, most=1000) == set()
    assert [len(known[number]) for number in (1, 2)] == [700, 700]


@pytest.mark.parametrize("late", [False, True])
def test_calls_wait_until_all_windows_that_are_over_have_ended(late):
    """As if they were ended at once: with more of them than fit in a group, no reward slips in before its default."""
    with Desk() as desk:
        open_market(desk, {"ana": 1}, wait_seconds=1)
        for number in range(3):
            items = [{"request_id": f"{number}-{n}"} for n in range(1000)]
            desk.call("POST", f"{FEED}/decisions/batch", {"items": items})
        desk.clock.now += 5000 if late else 0
        reply = desk.call("POST", f"{FEED}/rewards", {"event_id": "e", "decision": 2999, "value": 1.0})
        assert reply.json()["result"] == ("late" if late else "recorded")


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
        assert desk.call("POST", "/v1/markets", TERMS | {"market": "small"}).status_code == 201
        writer = desk.app._service.writer
        small = writer.markets.by_name["small"]
        fail_once(desk, monkeypatch, "feed")

        async def together():
            calls = [
                desk.http.post(f"{FEED}/decisions", json={"request_id": "first"}, headers=headers),
                desk.http.get("/v1/markets/small", headers=headers),
                desk.http.get("/v1/markets/feed", headers=headers),
                desk.http.post(f"{FEED}/decisions", json={"request_id": "poison"}, headers=headers),
                desk.http.post(f"{FEED}/agents", json={"agent": "cy"}, headers=headers),
            ]
            return [reply.status_code for reply in await asyncio.gather(*calls)]

        headers = {"Authorization": f"Bearer {desk.key}"}
        assert desk.runner.run(together()) == [200, 200, 200, 500, 201]
        assert writer.markets.by_name["small"] is small  # not read back
        again = desk.call("POST", f"{FEED}/decisions", {"request_id": "poison"}).json()
        assert (again["decision"], again["duplicate"]) == (2, False)
    (found, _) = replay_all(str(path))
    assert found.fits, found.statement
