"""The whole API against a model of a few dicts, on every storage, with restarts in between."""

import json
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from msgspec.structs import replace
from test_windows import overdue_line

from cloneproof._lib.ticks import ticks
from cloneproof.errors import NobodyLeftError
from cloneproof.mechanisms.session import session
from cloneproof.serve.market.dice import MarketDice, season_keys, session_key
from cloneproof.serve.market.entries import payment
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.registry import Registry
from cloneproof.serve.market.replay import Misfit, replay
from cloneproof.serve.market.terms import build_mechanism
from cloneproof.serve.storage import open_storage
from cloneproof.serve.writer.commands import Decide, Reward
from support.service import SECRET, Desk, spec, sqlite

FEED = "/v1/markets/feed"
WINDOW = 10_000
names = st.sampled_from(["ana", "bo", "cy"])
ids = st.integers(0, 5)
decisions = st.integers(1, 8)
values = st.sampled_from([0.25, 0.5, 1.0])


class Market(RuleBasedStateMachine):
    """Random calls; the model says what each must answer."""

    withdraws = True

    def __init__(self):
        super().__init__()
        self.desk = Desk(self.new_storage())
        self.arms: dict[str, list[list]] = {}  # by agent: arm, the season it plays from, and whether it is withdrawn
        self.weights: dict[tuple[str, str], int] = {}  # by agent and arm, where one is declared
        self.shown: dict[str, list[str]] = {}  # the arms of the season that runs
        self.state, self.season, self.before = "open", 1, 0
        self.plain = None
        self.requests: dict[str, dict] = {}
        self.decided: dict[int, dict] = {}  # by decision: how it stands
        self.events: dict[str, tuple[int, float, str]] = {}
        self.balances: dict[str, int] = {}

    def new_storage(self):
        return open_storage(":memory:")

    def post(self, path, body=None):
        return self.desk.post(f"{FEED}{path}", body)

    @initialize(started=st.sampled_from([True, True, False]), on_slots=st.booleans(), rounds=st.sampled_from([3, 20]))
    def create(self, started, on_slots, rounds):
        terms = {"wait_seconds": WINDOW / 1000, "default_reward": 0.25, "horizon": 20, "max_arms": 3}
        terms |= {"wait_rounds": rounds}
        terms |= {"rewards": {"family": "gaussian", "sd": 0.1}}  # have no least one: a default that pays
        if on_slots and self.withdraws:
            slots = {"rounds": 2, "draws": 2, "threshold": 1.0, "coins": False}
            terms |= {"mechanism": "reservoir", "parameters": slots}
        self.spec = spec(**terms)
        body = {key: getattr(self.spec, key) for key in {"market", "mechanism", "parameters", "share", "seed", *terms}}
        assert self.desk.post("/v1/markets", body).status_code == 201
        if started:
            for agent, arms in (("ana", "wx"), ("bo", "w")):
                self.register_agent(agent)
                for arm in arms:
                    self.register_arm(agent, arm)
            self.start()

    @rule(agent=names)
    def register_agent(self, agent):
        reply = self.post("/agents", {"agent": agent})
        assert reply.status_code == (200 if agent in self.arms else 201)
        self.arms.setdefault(agent, [])
        self.balances.setdefault(agent, 0)

    @rule(agent=names, arm=st.sampled_from("wxyz"))
    def register_arm(self, agent, arm):
        reply = self.post(f"/agents/{agent}/arms", {"arm": arm})
        if agent not in self.arms:
            assert reply.status_code == 404
            return
        mine = {name: season for name, season, withdrawn in self.arms[agent] if not withdrawn}
        if arm in mine:
            assert (reply.status_code, reply.json()["season"]) == (200, mine[arm])
        elif len(mine) == 3:
            assert (reply.status_code, reply.json()["error"]) == (409, "quota")
        else:
            season = self.season + (self.state != "open")
            assert (reply.status_code, reply.json()["season"]) == (201, season)
            self.weights.pop((agent, arm), None)
            if (known := self.known(agent, arm)) is None:
                self.arms[agent].append([arm, season, False])
            else:
                known[1:] = season, False

    @precondition(lambda self: self.withdraws)
    @rule(agent=names, arm=st.sampled_from("wx"), weight=st.integers(0, 3))
    def declare_weight(self, agent, arm, weight):
        known = self.known(agent, arm)
        if known is None or known[2]:
            return
        reply, before = self.post(f"/agents/{agent}/arms", {"arm": arm, "weight": weight}), (agent, arm)
        if self.spec.mechanism != "reservoir":
            assert (reply.status_code, reply.json()["error"]) == (422, "invalid")
        elif self.weights.get(before, 1) == weight:
            assert (reply.status_code, reply.json()["season"]) == (200, known[1])
        else:
            assert (reply.status_code, reply.json()["season"]) == (201, self.season + (self.state != "open"))
            self.weights[before] = weight

    def known(self, agent, arm):
        return next((each for each in self.arms.get(agent, []) if each[0] == arm), None)

    @precondition(lambda self: self.withdraws)
    @rule(agent=names, arm=st.sampled_from("wxyz"))
    def withdraw_arm(self, agent, arm):
        path, known = f"{FEED}/agents/{agent}/arms/{arm}", self.known(agent, arm)
        reply = self.desk.call("DELETE", path, {"reason": "sold out"})
        if known is None:
            assert reply.status_code == 404
            return
        assert (reply.status_code, reply.json()["duplicate"]) == (200, known[2])
        known[2] = True
        if self.state == "running" and arm in self.shown.get(agent, []):
            self.plain.withdraw(agent, self.shown[agent].index(arm))

    @precondition(lambda self: self.withdraws)
    @rule(agent=names, registers=st.sampled_from([True, True, False]))
    def join(self, agent, registers):
        if registers:
            self.register_agent(agent)
            self.register_arm(agent, "w")
        reply = self.post(f"/agents/{agent}/join", {})
        listed = [each for each in self.arms.get(agent, []) if not each[2]]
        if agent not in self.arms or self.state != "running" or agent in self.shown:
            expected = 404 if agent not in self.arms else 409 if self.state != "running" else 200
        else:
            on_slots, over = self.spec.mechanism == "reservoir", self.plain.round == self.plain.last
            expected = 201 if on_slots and listed and not over and not self.plain.decided else 409
        assert reply.status_code == expected
        if expected == 201:
            *_, before, line = self.desk.storage.lines(1, 0, 10**6)
            known = json.loads(line.line)["registered"] + before.hash.hex()
            mixed = session_key(season_keys(SECRET, self.season)[-1], "feed", self.season, known, None)
            self.plain.join(agent, len(listed), mixed=mixed)
            self.shown[agent] = [arm for arm, _, _ in listed]
            for each in listed:
                each[1] = self.season

    def playing(self):
        found = {
            agent: [arm for arm, since, withdrawn in arms if since <= self.season and not withdrawn]
            for agent, arms in self.arms.items()
        }
        return {agent: arms for agent, arms in found.items() if any(self.weights_of(agent, arms))}

    def weights_of(self, agent, arms):
        return [self.weights.get((agent, arm), 1) for arm in arms]

    @rule()
    def start(self):
        reply = self.post("/start")
        if self.state == "open" and self.playing():
            seed = self.desk.app._service.writer.markets.market("feed").session.seed
            self.shown, self.state = self.playing(), "running"
            counts = {agent: len(arms) for agent, arms in self.shown.items()}
            weights = {agent: self.weights_of(agent, arms) for agent, arms in self.shown.items()}
            self.plain = session(
                build_mechanism(self.spec), counts, 20, seed=seed, share=0.4, rewards=self.spec.rewards,
                weights=weights if self.weights else None,
            )  # fmt: skip
        assert reply.status_code == (200 if self.state == "running" else 409)

    @rule(number=ids)
    def decide(self, number):
        reply = self.post("/decisions", {"request_id": f"r{number}"})
        self.check_decision(f"r{number}", reply.status_code, reply.json())

    @rule(numbers=st.lists(ids, min_size=1, max_size=6))
    def decide_batch(self, numbers):
        reply = self.post("/decisions/batch", {"items": [{"request_id": f"b{number}"} for number in numbers]})
        for number, one in zip(numbers, reply.json()["results"], strict=True):
            self.check_decision(f"b{number}", one["status"], one)

    def check_decision(self, request, status, reply):
        if request in self.requests:
            assert reply == self.requests[request] | {"duplicate": True}
        elif self.state != "running" or self.plain.round == 20:
            assert status == 409
        else:
            try:
                wanted = self.plain.decide()
            except NobodyLeftError:
                assert (status, reply["error"]) == (409, "nobody_left")
                return
            arm = self.shown[wanted.agent][wanted.arm]
            assert (status, reply["agent"], reply["arm"], reply["phase"]) == (200, wanted.agent, arm, wanted.phase)
            assert reply["decision"] == self.before + wanted.id
            self.requests[request] = reply
            self.decided[reply["decision"]] = {"at": self.desk.clock.now, "agent": wanted.agent, "how": "waits"}
            self.end_windows(lambda known, number: reply["decision"] - number >= self.spec.wait_rounds)

    def end_windows(self, over):
        for number, known in self.decided.items():
            if known["how"] == "waits" and over(known, number):
                self.pay(number, 0.25, "default")

    @rule(event=ids, decision=decisions, value=values)
    def reward(self, event, decision, value):
        reply = self.post("/rewards", {"event_id": f"e{event}", "decision": decision, "value": value})
        self.check_reward(f"e{event}", decision, value, reply.status_code, reply.json())

    @rule(items=st.lists(st.tuples(ids, decisions, values), min_size=1, max_size=6))
    def reward_batch(self, items):
        sent = [{"event_id": f"f{event}", "decision": decision, "value": value} for event, decision, value in items]
        reply = self.post("/rewards/batch", {"items": sent})
        for one, result in zip(sent, reply.json()["results"], strict=True):
            self.check_reward(one["event_id"], one["decision"], one["value"], result["status"], result)

    def check_reward(self, event, decision, value, status, reply):
        known = self.decided.get(decision)
        if event in self.events:
            same = self.events[event][:2] == (decision, value)
            assert status == (200 if same else 409)
            assert reply.get("result", "conflict") == ("duplicate" if same else "conflict")
        elif known is None:
            assert status == 404
        elif known["how"] == "waits":
            assert (status, reply["result"]) == (200, "recorded")
            assert reply["paid"] == payment(ticks(value), 400_000)
            self.pay(decision, value, "rewarded")
            self.events[event] = (decision, value, "recorded")
        elif known["how"] == "default":
            assert (status, reply["result"], reply["paid"]) == (200, "late", 0)
            known["how"] = "late"
            self.events[event] = (decision, value, "late")
        else:
            assert status == 409

    def pay(self, decision, value, how):
        known = self.decided[decision]
        known["how"] = how
        self.balances[known["agent"]] += payment(ticks(value), 400_000)
        self.plain.reward(decision - self.before, value)

    @rule(pause=st.sampled_from([1000, 4000, 11_000]))
    def time_passes(self, pause):
        """Windows are kept in steps, so the clock moves by more than a step."""
        self.desk.clock.now += pause
        self.end_windows(lambda known, number: known["at"] + WINDOW + 10 <= self.desk.clock.now)

    @precondition(lambda self: self.state == "running" and self.plain.round >= 5)
    @rule()
    def settle(self):
        assert self.post("/settle", {"reason": "a test"}).status_code == 200
        self.end_windows(lambda known, number: True)
        self.before += self.plain.round
        self.state, self.plain = "settled", None

    @rule(season=st.integers(2, 4))
    def open_season(self, season):
        reply = self.post("/seasons", {"season": season})
        if self.state == "settled" and season == self.season + 1:
            assert reply.status_code == 201
            self.season, self.state = season, "open"
            self.arms = {agent: [arm for arm in arms if not arm[2]] for agent, arms in self.arms.items()}
        else:
            assert reply.status_code == (200 if season == self.season else 409)

    @rule()
    def look_at_the_balances(self):
        assert self.desk.get("balances").json() == {"balances": self.balances}

    def teardown(self):
        try:
            self.look_at_the_balances()
            lines = [(one.line, one.hash) for one in self.desk.storage.lines(1, 0, 10**6)]
            assert overdue_line([line for line, _ in lines], WINDOW / 1000, self.spec.wait_rounds) is None
            done = replay(lines, MarketDice(SECRET))
            assert {name: one.balance for name, one in done.market.registry.agents.items()} == self.balances
        finally:
            self.desk.close()


class MarketOnSqlite(Market):
    """The same on a file, with a checkpoint every few entries and restarts, orderly or not."""

    def new_storage(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "market.db"
        return sqlite(self.path, interval=7)

    @rule(orderly=st.booleans())
    def restart(self, orderly):
        clock, key = self.desk.clock, self.desk.key
        if orderly:
            self.desk.close()
        else:
            self.desk.crash()  # no last words, no snapshot
        self.desk = Desk(sqlite(self.path, interval=7), clock=clock)
        self.desk.key = key

    def teardown(self):
        try:
            super().teardown()
        finally:
            self.folder.cleanup()


@pytest.mark.parametrize("machine", [Market, MarketOnSqlite])
def test_the_api_is_the_model(machine):
    examples = int(os.environ.get("CLONEPROOF_STATEFUL_EXAMPLES", "6"))
    run_state_machine_as_test(machine, settings=settings(max_examples=examples, stateful_step_count=40, deadline=None))


def events_only_inside_a_decision(self, markets, known, now, run=Reward.run):
    items = [replace(item, event_id=f"{item.event_id} {item.decision}") for item in self.items]
    return run(Reward(self.market, items), markets, known, now)


def late_rewards_pay(self, event, decision, value, at, defaulted, enter=LiveMarket._enter_late):
    entry = enter(self, event, decision, value, at, defaulted)
    self.registry.agents[entry.agent].balance += 1
    return entry


def snapshots_without_balances(self, state, restore=Registry.restore):
    restore(self, state)
    for record in self.agents.values():
        record.balance = 0


FAULTS = {
    "no old entries": (Decide, "wanted", lambda self, markets: None),
    "events only inside a decision": (Reward, "run", events_only_inside_a_decision),
    "late rewards pay": (LiveMarket, "_enter_late", late_rewards_pay),
    "windows that never end": (LiveMarket, "expire", lambda self, at, most=None: []),
    "late arms play at once": (LiveMarket, "next_registration", property(lambda self: self.season)),
    "snapshots without balances": (Registry, "restore", snapshots_without_balances),
}


def run_in_short_rounds(machine):
    """A tenth of a round is of short examples, which catch little: they are few in a short one."""
    quick = settings(
        max_examples=25, stateful_step_count=40, deadline=None, phases=[Phase.generate], report_multiple_bugs=False
    )
    for number in range(8):
        run_state_machine_as_test(seed(number)(machine), settings=quick)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault, monkeypatch):
    monkeypatch.setattr(*FAULTS[fault])
    monkeypatch.setattr(Market, "withdraws", False)  # where other faults are rarer

    class Faulty(MarketOnSqlite if "snapshots" in fault else Market):
        """A class of its own, as a seed stays with its machine."""

    with pytest.raises((AssertionError, Misfit)):
        run_in_short_rounds(Faulty)
