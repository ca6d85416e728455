"""Each event delivered 1 to 5 times, shuffled, by four client processes: ledger and balances equal a plain model."""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from itertools import cycle

import httpx

from cloneproof.serve import calls
from cloneproof.serve.market.entries import Rewarded, decode
from cloneproof.serve.offline import replay_all, stored_ledgers
from support.service import Process, start_all, start_market

EVENTS = int(os.environ.get("CLONEPROOF_EVENTS", "100"))
CLIENTS = 4
RESTARTS = int(os.environ.get("CLONEPROOF_RESTARTS", "2"))

SENDER = """
import http.client, json, sys, time
port, key, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
connection = http.client.HTTPConnection("127.0.0.1", port)
refused = 0
headers = {"Authorization": "Bearer " + key}
results = {}
for line in open(path):
    items = json.loads(line)
    single = len(items) == 1
    while True:
        connection.request("POST", "/v1/markets/feed/rewards" + ("" if single else "/batch"),
                           json.dumps(items[0] if single else {"items": items}), headers)
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        if reply.status != 503:
            break
        refused += 1
        open(path + ".refused", "w").close()
        time.sleep(0.05 * float(reply.headers["Retry-After"]))
    for one in [answer] if single else answer["results"]:
        word = one.get("result") or one.get("error")
        results[word] = results.get(word, 0) + 1
print(json.dumps([results, refused]))
"""


def test_every_event_counts_once(tmp_path):
    place = str(tmp_path / "market.db")
    assert delivered(tmp_path, place, [Process(place)], EVENTS) == 0


def test_every_event_counts_once_while_postgres_is_restarted(tmp_path, server):
    """Clients see 503 with Retry-After meanwhile, and nothing else."""
    place, ways = server.new_database(), cycle(["interrupt", "kill"])
    first = Process(place)
    services = [first, Process(place, first.key)]

    def restarted(senders):
        """Away until somebody was refused, so that a slow machine does not miss it."""
        refused = [tmp_path / f"{client}.jsonl.refused" for client in range(CLIENTS)]
        for path in refused:
            path.unlink(missing_ok=True)
        server.stop(next(ways))
        while not any(path.exists() for path in refused) and any(sender.poll() is None for sender in senders):
            time.sleep(0.02)
        server.start()
        for service in services:
            while httpx.get(f"{service.address}/ready").status_code != 200:
                time.sleep(0.05)

    assert delivered(tmp_path, place, services, EVENTS, restarted) > 0


def delivered(tmp_path, place, services, count, meanwhile=None):
    """How often a client had to ask again, where everything counted once."""
    dice = random.Random(11)
    start_all(services)
    agents = {}
    with services[0].client() as api:
        start_market(api, {"ana": 1, "bo": 1, "cy": 1}, horizon=10**9, wait_rounds=10**9)
        for first in range(0, count, 1000):
            made = api.send(calls.decide_batch("feed", [f"r{n}" for n in range(first, min(count, first + 1000))]))
            agents |= {one.decision: one.agent for one in made.results}
    micro = {number: dice.randrange(0, 1_000_001) for number in range(1, count + 1)}  # the model: whole micro-units
    events = {number: f"event {dice.getrandbits(64):x}" for number in micro}
    deliveries = [number for number in micro for _ in range(dice.randint(1, 5))]
    dice.shuffle(deliveries)
    senders = []
    for client in range(CLIENTS):
        mine, path = deliveries[client::CLIENTS], tmp_path / f"{client}.jsonl"
        with path.open("w") as file:
            while mine:
                size = dice.choice([1, 1, 10, 500, 1000])
                part, mine = mine[:size], mine[size:]
                items = [
                    {"event_id": events[n], "decision": n, "request_id": f"r{n - 1}", "value": micro[n] / 1e6}
                    for n in part
                ]
                file.write(json.dumps(items) + "\n")
        command = [sys.executable, "-c", SENDER, str(services[client % len(services)].port), services[0].key, str(path)]
        senders.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    for _ in range(RESTARTS):
        if meanwhile is not None and any(sender.poll() is None for sender in senders):
            meanwhile(senders)
    results, refused = Counter(), 0
    for sender in senders:
        answers, again = json.loads(sender.communicate()[0])
        results.update(answers)
        refused += again
    for service in services:
        service.kill()
    assert set(results) <= {"recorded", "duplicate"}
    assert results.total() == len(deliveries)
    if not refused:  # a reply that is lost with its connection is one "recorded" that nobody saw
        assert results["recorded"] == count
    (found,) = replay_all(place)
    assert found.fits, found.statement
    with stored_ledgers(place) as books:
        entries = [decode(line) for line, _ in books["feed"].lines()]
    rewards = {one.id: (one.event, one.agent, one.value) for one in entries if isinstance(one, Rewarded)}
    assert rewards == {n: (events[n], agents[n], micro[n] / 1_000_000) for n in micro}
    model = Counter()
    for number, value in micro.items():
        model[agents[number]] += (value * 400_000 + 500_000) // 1_000_000  # 40 %, halves upwards
    assert found.balances == model
    return refused
