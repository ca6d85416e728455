"""`kill -9` with pages, batches, segments, joins, pauses, withdrawals in flight: nothing lost, doubled or made up."""

import os
import random
import threading
import time
from contextlib import ExitStack

from cloneproof._lib.ticks import ticks
from cloneproof.serve import calls
from cloneproof.serve.market.entries import AgentJoined, ArmPaused, ArmWithdrawn, decode, payment
from cloneproof.serve.messages import SlateReply
from cloneproof.serve.offline import replay_all, stored_ledgers
from support.service import Process, start_all, start_market

KILLS = int(os.environ.get("CLONEPROOF_KILLS", "1"))
SEED = int(os.environ.get("CLONEPROOF_KILL_SEED", "7"))
SHARE = 400_000  # of a million
TURNS = 6  # of each worker at least
SEGMENTS = {"desk": 0.7, "phone": 0.3}
COMMON = {"horizon": 10**8, "segments": SEGMENTS, "wait_rounds": 80, "max_agents": 100, "max_arms": 10}
MARKETS = {
    "streams": COMMON | {
        "mechanism": "reservoir-streams", "parameters": {"rotations": 3, "blocks": 2000}, "batch": 3,
        "positions": {"desk": [1.0, 0.6, 0.4], "phone": [1.0, 0.5]},
    },
    "tests": COMMON | {
        "mechanism": "reservoir", "parameters": {"rounds": 4, "draws": 60, "choose": "best"}, "batch": 2,
        "positions": [1.0, 0.7],
    },
    "rounds": COMMON | {
        "mechanism": "reservoir", "parameters": {"rounds": 30, "draws": 60, "threshold": 30}, "batch": 4,
    },
}  # fmt: skip


class Worker(threading.Thread):
    """A platform that asks for batches in segments and rewards, some late; what was sent, and what was acknowledged."""

    def __init__(self, name, services):
        super().__init__()
        self.label, self.services = name, services
        self.stop = threading.Event()
        self.asked, self.events = set(), {}  # all that was sent
        self.decided, self.rewarded = {}, {}  # what was acknowledged: decisions by request, and rewards by event
        self.failure = None

    def run(self):
        try:
            self.work()
        except Exception as problem:
            self.failure = problem

    def work(self):
        dice, turn, held = random.Random(f"{self.label} {SEED}"), 0, []
        with ExitStack() as stack:
            clients = [stack.enter_context(service.client(patience=120.0)) for service in self.services]
            while turn < TURNS or not self.stop.is_set():
                turn += 1
                api, market = dice.choice(clients), dice.choice(sorted(MARKETS))
                requests = [f"{self.label}-{turn}-{number}" for number in range(10)]
                self.asked |= {(market, request) for request in requests}
                ask = calls.slate_batch if "positions" in MARKETS[market] else calls.decide_batch
                segments = [dice.choice(sorted(SEGMENTS)) for _ in requests]
                for one in api.send(ask(market, requests, segments)).results:
                    if one.status != 200:
                        assert one.error == "paused", one
                        continue
                    made = one.decisions if isinstance(one, SlateReply) else [one]
                    self.decided[market, one.request_id] = [each.decision for each in made]
                    held += [(turn + dice.choice([0, 0, 1, 3, 40]), market, each) for each in made]
                due, held = [one for one in held if one[0] <= turn], [one for one in held if one[0] > turn]
                self.reward(dice, dice.choice(clients), due)
            self.reward(dice, dice.choice(clients), held)

    def reward(self, dice, api, due):
        for market in sorted({market for _, market, _ in due}):
            items = [
                (f"click-{self.label}-{made.decision}", made, dice.choice([0.0, 0.3, 1.0]))
                for _, name, made in due
                if name == market
            ]
            sent = {(market, event): (made.decision, value) for event, made, value in items}
            self.events |= sent
            for start in range(0, len(items), 1000):
                results = api.send(calls.reward_batch(market, items[start : start + 1000])).results
                assert all(one.status == 200 for one in results), results
            self.rewarded |= sent


def test_everything_in_flight(tmp_path):
    place = str(tmp_path / "market.db")
    killed_in_flight(place, [Process(place)])


def test_everything_in_flight_with_two_services_on_postgres(server):
    place = server.new_database()
    first = Process(place)
    killed_in_flight(place, [first, Process(place, first.key)])


def killed_in_flight(place, services):
    start_all(services)
    dice, acts = random.Random(SEED), set()
    with services[0].client(patience=120.0) as api:
        for market, terms in MARKETS.items():
            start_market(api, {"ana": 3, "bo": 2, "cy": 2, "di": 2}, market=market, **terms)
    workers = [Worker(f"w{number}", services) for number in range(2)]
    for worker in workers:
        worker.start()
    try:
        for number in range(KILLS):
            acting = threading.Thread(target=act, args=(dice, services, number, acts))
            acting.start()
            time.sleep(dice.uniform(0.05, 0.6))
            service = dice.choice(services)
            service.kill()
            service.start()
            acting.join()
    finally:
        for worker in workers:
            worker.stop.set()
        for worker in workers:
            worker.join()
    for service in services:
        service.kill()
    assert [worker.failure for worker in workers] == [None] * len(workers)
    print(f"{KILLS} kills; {check(place, workers, acts)}")


def act(dice, services, number, acts):
    """Somebody joins, withdraws, is paused or resumed in each market; `acts` has what was acknowledged."""
    with dice.choice(services).client(patience=120.0) as api:
        for market in MARKETS:
            new = f"joiner{number}"
            api.send(calls.register_agent(market, new))
            for arm in ("x", "y"):
                api.send(calls.register_arm(market, new, arm))
            api.send(calls.join(market, new))
            api.send(calls.withdraw_arm(market, new, "y", "sold out"))
            acts |= {(market, AgentJoined, new), (market, ArmWithdrawn, new)}
            if market != "tests":
                agent = dice.choice(["ana", "bo", new])
                api.send(calls.pause(market, agent, "down"))
                time.sleep(0.05)
                api.send(calls.pause(market, agent, "up", resume=True))
                acts.add((market, ArmPaused, agent))


def check(place, workers, acts):
    """What was acknowledged is there, once; nothing is there that nobody sent; each agent has what its rewards pay."""
    found = replay_all(place)
    assert all(one.fits for one in found), [one.statement for one in found]
    decided, rewarded, done, lines = {}, {}, set(), 0
    with stored_ledgers(place) as books:
        for one in found:
            paid = dict.fromkeys(one.balances, 0)
            for entry in (decode(line) for line, _ in books[one.market].lines()):
                lines += 1
                kind = entry.__struct_config__.tag
                if kind in ("decision", "slate"):
                    assert (one.market, entry.request) not in decided
                    decided[one.market, entry.request] = [*entry.rounds] if kind == "slate" else [entry.id]
                elif kind in ("reward", "late"):
                    assert (one.market, entry.event) not in rewarded
                    rewarded[one.market, entry.event] = entry.id, entry.value
                    if kind == "reward":
                        paid[entry.agent] += payment(ticks(entry.value), SHARE)
                elif kind in ("joined", "withdrawn", "pause"):
                    done.add((one.market, type(entry), entry.agent))
            assert one.balances == paid
    asked = set().union(*(worker.asked for worker in workers))
    events = {event: sent for worker in workers for event, sent in worker.events.items()}
    said = {request: made for worker in workers for request, made in worker.decided.items()}
    clicks = {event: sent for worker in workers for event, sent in worker.rewarded.items()}
    assert {request: decided.get(request) for request in said} == said  # none is lost
    assert {event: rewarded.get(event) for event in clicks} == clicks
    assert acts <= done
    assert decided.keys() <= asked  # none is made up
    assert rewarded.items() <= events.items()
    assert len(clicks) > 20
    return f"{lines:,} entries, {len(said):,} requests and {len(clicks):,} rewards acknowledged, {len(acts)} acts"
