"""Any terms, any calls, in any order: none is ever a 500, and none that is accepted makes a later one fail.

Terms are drawn (mechanism, places, batch, segments, windows, ends), then agents, joins, pauses, withdrawals, pages,
rewards, settlements and restarts. Whatever happens: no answer is a fault, what is refused leaves the ledger
as it is (but for windows that have ended), a start finds every market, what is held in memory is what the ledger gives,
and a replay finds nothing.
"""

import random
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from cloneproof.serve.market.entries import decode
from cloneproof.serve.market.replay import replay, snapshot_difference, take_snapshot
from cloneproof.serve.offline import replay_all
from support.service import Desk, sqlite
from support.sizes import LONG

STEPS = 50
EXAMPLES = 200 if LONG else 6
NAMES = ("ana", "bo", "cy", "di", "eve", "flo")
ARMS = ("a", "b", "c")
SEEDS = st.integers(0, 10**9)


MECHANISMS = {
    "ucb1": lambda dice: {},
    "thompson": lambda dice: {},
    "h-ucb": lambda dice: {},
    "h-thompson": lambda dice: {},
    "reservoir": lambda dice: slots(dice) | dice.choice([{"choose": "best"}, {"threshold": 1}]),
    "reservoir-contest": lambda dice: slots(dice) | {"threshold": 1, "horizon": 1000},
    "reservoir-index": lambda dice: {"draws": dice.randint(1, 3)},
    "reservoir-bars": lambda dice: {"bars": 0.3, "draws": dice.randint(1, 3)},
    "reservoir-streams": lambda dice: {"rotations": dice.randint(1, 4), "blocks": dice.randint(1, 4)},
}
PLACES = [1, 2, 4, [1.0, 0.6], [1.0, 0.6, 0.3], [1.0, 0.5, 0.0], [1.0] * 5]
SEGMENTS = [{"desk": 1.0}, {"desk": 0.9, "phone": 0.1}, {"desk": 0.5, "phone": 0.3, "tv": 0.2}]


KINDS = {
    "decide": 9, "reward": 7, "join": 3, "withdraw": 1, "pause": 3, "register": 1, "start": 1, "settle": 1,
    "time_passes": 1, "restart": 3,
}  # fmt: skip


def slots(dice):
    return {"rounds": dice.randint(1, 3), "draws": dice.randint(1, 3)}


def drawn_terms(dice):
    """Terms of a market, of which many can be declared and some not."""
    mechanism = dice.choice([*MECHANISMS, "reservoir", "reservoir-streams", "reservoir-streams"])
    terms = {
        "market": "feed", "mechanism": mechanism, "parameters": MECHANISMS[mechanism](dice), "share": 0.5,
        "horizon": dice.choice([10, 40, 100, 300, 1000, 10**6]), "wait_seconds": 10.0, "max_arms": 3,
        "max_agents": dice.choice([1, 4, 6, 6, 6]), "ends": dice.choice(["at-horizon", "at-horizon", "at-random"]),
    }  # fmt: skip
    if mechanism in ("reservoir-index", "reservoir-bars"):
        terms["ends"] = "at-random"
    if dice.random() < 0.5:
        terms["segments"] = dice.choice(SEGMENTS)
    if dice.random() < (0.9 if mechanism == "reservoir-streams" else 0.3):
        each = "segments" in terms and dice.random() < 0.5
        terms["positions"] = {name: dice.choice(PLACES) for name in terms["segments"]} if each else dice.choice(PLACES)
    if dice.random() < 0.5 and mechanism not in ("reservoir-index", "reservoir-bars"):
        terms["batch"] = dice.randint(2, 6)
    if dice.random() < 0.5:
        terms["wait_rounds"] = dice.choice([1, 3, 20])
    return terms


class AnyTerms(RuleBasedStateMachine):
    """Random calls of a service on a file, with a checkpoint every few entries."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "market.db"
        self.desk = Desk(sqlite(self.path, interval=7))
        self.requests, self.season = 0, 1
        self.waits: dict[int, str] = {}  # requests of decisions that have no reward yet, by decision

    def lines(self):
        return [one.line for one in self.desk.storage.lines(1, 0, 10**6)]

    def call(self, method, path, body=None):
        """An answer that is none of a fault; what is refused leaves the ledger as it was."""
        before = len(self.lines())
        reply = self.desk.call(method, f"/v1/markets{path}", body)
        assert reply.status_code not in (500, 503), (path, body, reply.text)
        if reply.status_code >= 400:
            assert {decode(line).__struct_config__.tag for line in self.lines()[before:]} <= {"default", "nobody"}
        results = reply.json().get("results", [reply.json()])
        assert not {one.get("status") for one in results} & {500, 503}, (path, body, reply.text)
        return reply

    def post(self, path, body=None):
        return self.call("POST", f"/feed/{path}", body)

    @initialize(seed=SEEDS)
    def declare(self, seed):
        """Terms until some are taken; mostly those that so many agents can start with."""
        dice = random.Random(seed)
        while self.call("POST", "", drawn_terms(dice)).status_code != 201:
            pass
        found = self.desk.get("").json()["terms"]
        self.paged, self.segments = "positions" in found, list(found.get("segments", {})) or [None]
        self.names = NAMES[: found["max_agents"]]
        for name in self.names[: dice.randint(1, 6)]:
            self.register(dice.random(), name)
        self.start()

    @rule(seed=SEEDS)
    def step(self, seed):
        """What happens next: mostly decisions and rewards."""
        (name,) = random.Random(f"step {seed}").choices(list(KINDS), list(KINDS.values()))
        getattr(self, name)(seed)

    def register(self, seed, name=None):
        """An agent, new or not, with further arms."""
        dice = random.Random(seed)
        name = name or dice.choice(NAMES)
        self.post("agents", {"agent": name})
        for arm in dice.sample(ARMS, dice.randint(1, 3)):
            weight = dice.choice([None, None, None, 0, 2])
            self.post(f"agents/{name}/arms", {"arm": arm} | ({} if weight is None else {"weight": weight}))

    def start(self, seed=None):
        self.post("start")

    def join(self, seed):
        dice = random.Random(seed)
        name = dice.choice(self.names)
        self.register(seed, name)
        self.post(f"agents/{name}/join", {})

    def withdraw(self, seed):
        dice = random.Random(seed)
        name = dice.choice(self.names)
        for arm in dice.sample(ARMS, dice.choice([1, 1, 1, 3])):
            self.call("DELETE", f"/feed/agents/{name}/arms/{arm}", {"reason": "sold out"})

    def pause(self, seed):
        dice = random.Random(seed)
        for name in dice.sample(self.names, dice.randint(1, len(self.names))):
            body = {"reason": "down", "resume": dice.random() < 0.4}
            self.post(f"agents/{name}/pause", body | dice.choice([{}, {"arm": dice.choice(ARMS)}]))

    def request(self, segment):
        self.requests += 1
        return {"request_id": f"r{self.requests}"} | ({} if segment is None else {"segment": segment})

    def decide(self, seed):
        """One decision or page, or several, some in segments that do not exist."""
        dice, path = random.Random(seed), "slates" if self.paged else "decisions"
        segments = [*self.segments * 10, "nowhere", None]
        items = [self.request(dice.choice(segments)) for _ in range(dice.choice([1, 1, 3, 12]))]
        if len(items) == 1:
            results = [self.post(path, items[0]).json()]
        else:
            results = self.post(f"{path}/batch", {"items": items}).json()["results"]
        for one in results:
            for made in one.get("decisions", [one]):
                if "decision" in made:
                    self.waits[made["decision"]] = made["request_id"]

    def reward(self, seed):
        """Some of those that wait, singly or in a batch; some come after their window."""
        dice = random.Random(seed)
        chosen = dice.sample(sorted(self.waits), min(len(self.waits), dice.choice([1, 5, 30])))
        rate = dice.choice([0.0, 0.3, 1.0])
        items = [
            {"event_id": f"e{one}", "decision": one, "request_id": self.waits.pop(one),
             "value": dice.choice([0.25, float(dice.random() < rate)])}
            for one in chosen
        ]  # fmt: skip
        if dice.random() < 0.5:
            for item in items:
                self.post("rewards", item)
        elif items:
            self.post("rewards/batch", {"items": items})

    def time_passes(self, seed):
        self.desk.clock.now += random.Random(seed).choice([1000, 11_000])

    def settle(self, seed):
        """A season that has been played a little; and the next."""
        if self.requests > 40 * self.season and self.post("settle", {"reason": "a test"}).status_code == 200:
            self.season += 1
            self.waits.clear()
            assert self.post("seasons", {"season": self.season}).status_code == 201

    def restart(self, seed):
        """The memory before, the snapshot and the ledger agree."""
        self.compare_with_the_ledger()
        clock, key = self.desk.clock, self.desk.key
        if random.Random(seed).random() < 0.5:
            self.desk.close()
        else:
            self.desk.crash()
        self.desk = Desk(sqlite(self.path, interval=7), clock=clock)
        self.desk.key = key
        self.look()

    def look(self):
        assert self.desk.get("").status_code == 200
        assert self.desk.get("progress").status_code == 200

    def compare_with_the_ledger(self):
        market = self.desk.app._service.writer.markets.market("feed")
        found = replay([(line, None) for line in self.lines()], market.dice)
        assert snapshot_difference(take_snapshot(market), found.market) is None

    def teardown(self):
        try:
            self.compare_with_the_ledger()
            self.desk.close()
            for one in replay_all(str(self.path)):
                assert one.fits, one.statement
        finally:
            self.desk.close()
            self.folder.cleanup()


def test_no_accepted_call_breaks_a_season():
    run_state_machine_as_test(
        AnyTerms,
        settings=settings(
            max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )
