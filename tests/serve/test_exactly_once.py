"""Each event delivered 1 to 5 times, shuffled, by four client processes: ledger and balances equal a plain model."""

import json
import os
import random
import subprocess
import sys
from collections import Counter

from cloneproof.serve import calls
from cloneproof.serve.entries import Rewarded, decode
from cloneproof.serve.reading import open_for_reading, replay_all, stored_lines
from serve_support import Process, spec

EVENTS = int(os.environ.get("CLONEPROOF_EVENTS", "20000"))
CLIENTS = 4

SENDER = """
import http.client, json, sys
port, key, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
connection = http.client.HTTPConnection("127.0.0.1", port)
headers = {"Authorization": "Bearer " + key}
results = {}
for line in open(path):
    items = json.loads(line)
    single = len(items) == 1
    connection.request("POST", "/v1/markets/feed/rewards" + ("" if single else "/batch"),
                       json.dumps(items[0] if single else {"items": items}), headers)
    reply = connection.getresponse()
    answer = json.loads(reply.read())
    for one in [answer] if single else answer["results"]:
        word = one.get("result") or one.get("error")
        results[word] = results.get(word, 0) + 1
print(json.dumps(results))
"""


def test_every_event_counts_once(tmp_path):
    dice = random.Random(11)
    service = Process(tmp_path / "market.db")
    service.start()
    agents = {}
    with service.client() as api:
        api.send(calls.create_market(spec(horizon=10**9)))
        for agent in ("ana", "bo", "cy"):
            api.send(calls.register_agent("feed", agent))
            api.send(calls.register_arm("feed", agent, "x"))
        api.send(calls.start("feed"))
        for first in range(0, EVENTS, 1000):
            made = api.send(calls.decide_batch("feed", [f"r{n}" for n in range(first, min(EVENTS, first + 1000))]))
            agents |= {one.decision: one.agent for one in made.results}
    micro = {number: dice.randrange(0, 1_000_001) for number in range(1, EVENTS + 1)}  # the model: whole micro-units
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
                items = [{"event_id": events[n], "decision": n, "value": micro[n] / 1_000_000} for n in part]
                file.write(json.dumps(items) + "\n")
        command = [sys.executable, "-c", SENDER, str(service.port), service.key, str(path)]
        senders.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    results = Counter()
    for sender in senders:
        results.update(json.loads(sender.communicate()[0]))
    service.kill()
    assert results == {"recorded": EVENTS, "duplicate": len(deliveries) - EVENTS}
    (found,) = replay_all(str(tmp_path / "market.db"))
    assert found.fits, found.statement
    connection = open_for_reading(str(tmp_path / "market.db"))
    entries = [decode(line) for line, _ in stored_lines(connection, 1)]
    connection.close()
    rewards = {one.id: (one.event, one.agent, one.value) for one in entries if isinstance(one, Rewarded)}
    assert rewards == {n: (events[n], agents[n], micro[n] / 1_000_000) for n in micro}
    model = Counter()
    for number, value in micro.items():
        model[agents[number]] += (value * 400_000 + 500_000) // 1_000_000  # 40 %, halves upwards
    assert found.balances == model
