"""`kill -9` under load, at random moments: nothing acknowledged is lost, nothing counts twice, the chain holds.

Rewards come late, and some after their window: commitments wait for them, and defaults are entered in their place.
"""

import os
import random
import threading
import time
from contextlib import ExitStack

from cloneproof._lib.ticks import ticks
from cloneproof.serve import calls
from cloneproof.serve.market.entries import ArmWithdrawn, Decided, Defaulted, Late, Rewarded, decode, payment
from cloneproof.serve.messages import DecisionReply
from cloneproof.serve.offline import replay_all, stored_ledgers
from cloneproof.serve.storage import open_storage
from support.service import TERMS, Desk, Process, start_all, start_market

KILLS = int(os.environ.get("CLONEPROOF_KILLS", "1"))
SEED = int(os.environ.get("CLONEPROOF_KILL_SEED", "5"))
KILLS_A_MARKET = 2  # then another one begins, whose commitments wait again
LONG = {"horizon": 10**9, "parameters": {"agent_rounds": 40, "arm_rounds": 20}, "wait_rounds": 60}
TURNS = 8  # of each worker at least, however slow the machine is: enough for windows to end
WORKERS = 2


class Worker(threading.Thread):
    """A platform that decides and rewards, some of it late, and writes down what was acknowledged."""

    def __init__(self, name: str, services: list[Process], markets: list[str], pause: float) -> None:
        super().__init__()
        self.label, self.services, self.markets, self.pause = name, services, markets, pause
        self.stop = threading.Event()
        self.decisions: dict[str, tuple[str, int]] = {}
        self.rewards: dict[str, tuple[str, int, float]] = {}
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self.work()
        except Exception as problem:
            self.failure = problem

    def work(self) -> None:
        dice, turn = random.Random(f"{self.label}-{SEED}"), 0
        held: list[tuple[int, str, tuple[str, DecisionReply, float]]] = []  # until which turn
        with ExitStack() as stack:
            clients = [stack.enter_context(service.client(patience=120.0)) for service in self.services]
            while turn < TURNS or not self.stop.is_set():
                turn += 1
                time.sleep(self.pause)
                api, market = dice.choice(clients), self.markets[-1]
                requests = [f"{self.label}-{turn}-{n}" for n in range(20)]
                made = api.send(calls.decide_batch(market, requests)).results
                self.decisions |= {one.request_id: (market, one.decision) for one in made}
                for one in made:
                    item = (f"event-{one.request_id}", one, dice.choice([0.0, 0.3, 1.0]))
                    held.append((turn + dice.choice([0, 0, 0, 1, 2, 4, 60]), market, item))
                due, held = [one for one in held if one[0] <= turn], [one for one in held if one[0] > turn]
                self.reward(dice.choice(clients), due)
            self.reward(dice.choice(clients), held)

    def reward(self, api, due: list[tuple[int, str, tuple[str, DecisionReply, float]]]) -> None:
        for market in dict.fromkeys(market for _, market, _ in due):
            self.reward_in(api, market, [item for _, name, item in due if name == market])

    def reward_in(self, api, market: str, items: list[tuple[str, DecisionReply, float]]) -> None:
        for event, made, value in items[:4]:
            assert api.send(calls.reward(market, event, made, value)).decision == made.decision
            self.rewards[event] = (market, made.decision, value)
        for start in range(0, len(items), 1000):
            results = api.send(calls.reward_batch(market, items[start : start + 1000])).results
            assert all(one.status == 200 for one in results)
        self.rewards |= {event: (market, made.decision, value) for event, made, value in items}


def test_nothing_acknowledged_is_lost(tmp_path):
    place = str(tmp_path / "market.db")
    killed_under_load(place, [Process(place)])


def test_nothing_acknowledged_is_lost_with_two_services_on_postgres(server):
    place = server.new_database()
    first = Process(place)
    killed_under_load(place, [first, Process(place, first.key)], pause=0.05)  # each follows all that the other does


def killed_under_load(place, services, pause=0.0):
    start_all(services)
    dice, back, markets = random.Random(SEED), list[float](), list[str]()
    workers = [Worker(f"w{n}", services, markets, pause) for n in range(WORKERS)]
    try:
        for number in range(KILLS):
            if number % KILLS_A_MARKET == 0:
                with services[0].client(patience=120.0) as api:
                    markets.append(start_market(api, {"ana": 2, "bo": 2}, market=f"feed{number}", **LONG))
            if number == 0:
                for worker in workers:
                    worker.start()
            time.sleep(dice.uniform(0.05, 0.6))
            service = dice.choice(services)
            service.kill()
            back.append(service.start())
            with service.client(patience=120.0) as api:  # while the workers go on
                api.send(calls.withdraw_arm(markets[-1], "ana", "ana-1", "sold out"))
    finally:
        for worker in workers:
            worker.stop.set()
        for worker in workers:
            worker.join()
    for service in services:
        service.kill()
    assert [worker.failure for worker in workers] == [None] * WORKERS
    print(f"{KILLS} kills, back after at most {max(back):.2f} s; {check(place, workers)}")
    with Desk(open_storage(place)) as desk:  # a retry still gets the same answer, whatever happened in between
        for worker in workers:
            for request, (market, decision) in dice.sample(sorted(worker.decisions.items()), 20):
                again = desk.post(f"/v1/markets/{market}/decisions", {"request_id": request}).json()
                assert (again["decision"], again["duplicate"]) == (decision, True)


def check(place, workers):
    """What was acknowledged is stored, once, and pays what it should; rounds were waited in and windows ended."""
    found = replay_all(place)
    assert all(one.fits for one in found), [one.statement for one in found]
    count = {Decided: 0, Rewarded: 0, Defaulted: 0, Late: 0}
    waited, stored, decided = 0, dict[str, tuple[str, int, float]](), dict[str, tuple[str, int]]()
    share = round(TERMS["share"] * 1_000_000)
    with stored_ledgers(place) as books:
        for one in found:
            entries = [decode(line) for line, _ in books[one.market].lines()]
            rewarded = [entry for entry in entries if isinstance(entry, Rewarded)]
            sent = [entry for entry in entries if isinstance(entry, Rewarded | Late)]
            assert len(sent) == len({entry.event for entry in sent}) == len({entry.id for entry in sent})
            assert len(rewarded) == len({entry.id for entry in rewarded})
            stored |= {entry.event: (one.market, entry.id, entry.value) for entry in sent}
            decided |= {entry.request: (one.market, entry.id) for entry in entries if isinstance(entry, Decided)}
            waited += sum(isinstance(entry, Decided) and entry.phase == "waiting" for entry in entries)
            for kind in count:
                count[kind] += sum(isinstance(entry, kind) for entry in entries)
            gone = next(entry.n for entry in entries if isinstance(entry, ArmWithdrawn))
            assert not any(entry.arm == "ana-1" for entry in entries[gone:] if isinstance(entry, Decided))
            for agent, balance in one.balances.items():  # a default is 0 and pays nothing
                assert balance == sum(payment(ticks(entry.value), share) for entry in rewarded if entry.agent == agent)
    for worker in workers:
        assert worker.rewards
        assert worker.rewards.items() <= stored.items()
        assert worker.decisions.items() <= decided.items()
    assert waited > 0
    assert count[Defaulted] > 0
    assert count[Late] > 0
    said = ", ".join(f"{number} {kind.__name__.lower()}" for kind, number in count.items())
    return f"{len(found)} markets, {said}, {waited} waited in"
