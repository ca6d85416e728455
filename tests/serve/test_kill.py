"""`kill -9` under load, at random moments: nothing acknowledged is lost, nothing counts twice, the chain holds."""

import os
import random
import threading
import time
from contextlib import ExitStack

from cloneproof.mechanisms.online.level import ticks
from cloneproof.serve.api import calls
from cloneproof.serve.ledger.chain import payment
from cloneproof.serve.ledger.entries import Decided, Rewarded, decode
from cloneproof.serve.offline.reading import ledgers, replay_all
from support.service import TERMS, Process, spec

KILLS = int(os.environ.get("CLONEPROOF_KILLS", "10"))
WORKERS = 3


class Worker(threading.Thread):
    """A platform that decides and rewards, and writes down what was acknowledged."""

    def __init__(self, name: str, services: list[Process], stop: threading.Event, pause: float) -> None:
        super().__init__()
        self.label, self.services, self.stop, self.pause = name, services, stop, pause
        self.decisions: dict[str, int] = {}
        self.rewards: dict[str, tuple[int, float]] = {}
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            self.work()
        except Exception as problem:
            self.failure = problem

    def work(self) -> None:
        dice, turn = random.Random(self.label), 0
        with ExitStack() as stack:
            clients = [stack.enter_context(service.client(patience=120.0)) for service in self.services]
            while not self.stop.is_set():
                turn += 1
                time.sleep(self.pause)
                api = dice.choice(clients)
                requests = [f"{self.label}-{turn}-{n}" for n in range(20)]
                made = api.send(calls.decide_batch("feed", requests)).results
                self.decisions |= {one.request_id: one.decision for one in made}
                items = [(f"event-{one.request_id}", one.decision, dice.choice([0.0, 0.3, 1.0])) for one in made]
                api = dice.choice(clients)
                for event, decision, value in items[:4]:
                    assert api.send(calls.reward("feed", event, decision, value)).decision == decision
                    self.rewards[event] = (decision, value)
                results = api.send(calls.reward_batch("feed", items)).results
                assert all(one.status == 200 for one in results)
                self.rewards |= {event: (decision, value) for event, decision, value in items}


def test_nothing_acknowledged_is_lost(tmp_path):
    place = str(tmp_path / "market.db")
    killed_under_load(place, [Process(place)])


def test_nothing_acknowledged_is_lost_with_two_services_on_postgres(server):
    place = server.new_database()
    first = Process(place)
    killed_under_load(place, [first, Process(place, first.key)], pause=0.05)  # each follows all that the other does


def killed_under_load(place, services, pause=0.0):
    for service in services:
        service.start()
    with services[0].client() as api:
        api.send(calls.create_market(spec(horizon=10**9)))
        for agent in ("ana", "bo"):
            api.send(calls.register_agent("feed", agent))
            api.send(calls.register_arm("feed", agent, "x"))
        api.send(calls.start("feed"))
    stop, dice, back = threading.Event(), random.Random(5), []
    workers = [Worker(f"w{n}", services, stop, pause) for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(KILLS):
            time.sleep(dice.uniform(0.05, 0.6))
            service = dice.choice(services)
            service.kill()
            back.append(service.start())
        time.sleep(0.2)
    finally:
        stop.set()
        for worker in workers:
            worker.join()
    for service in services:
        service.kill()
    print(f"back after at most {max(back):.2f} s")
    assert [worker.failure for worker in workers] == [None] * WORKERS
    check(place, workers)
    service.start()
    with service.client() as api:  # a retry still gets the same answer, whatever happened in between
        for worker in workers:
            for request, decision in dice.sample(sorted(worker.decisions.items()), 20):
                again = api.send(calls.decide("feed", request))
                assert (again.decision, again.duplicate) == (decision, True)
    service.stop()


def check(place, workers):
    (found,) = replay_all(place)
    assert found.fits, found.statement
    with ledgers(place) as books:
        entries = [decode(line) for line, _ in books["feed"]]
    rewarded = [one for one in entries if isinstance(one, Rewarded)]
    stored = {one.event: (one.id, one.value) for one in rewarded}
    assert len(stored) == len(rewarded) == len({one.id for one in rewarded})
    decided = {one.request: one.id for one in entries if isinstance(one, Decided)}
    for worker in workers:
        assert worker.rewards
        assert worker.rewards.items() <= stored.items()
        assert worker.decisions.items() <= decided.items()
    share = round(TERMS["share"] * 1_000_000)
    for agent, balance in found.balances.items():
        assert balance == sum(payment(ticks(one.value), share) for one in rewarded if one.agent == agent)
