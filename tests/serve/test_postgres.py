"""PostgreSQL: several processes on one market, exactly once over all of them, one chain, restarts of the database."""

import os
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule, run_state_machine_as_test
from test_stateful import Market

from cloneproof.errors import ServeError
from cloneproof.mechanisms.session import session
from cloneproof.serve.http.service import Intervals
from cloneproof.serve.market.entries import GENESIS, Appended
from cloneproof.serve.market.replay import Misfit
from cloneproof.serve.market.terms import build_mechanism
from cloneproof.serve.offline import replay_all
from cloneproof.serve.storage import display_place, open_storage, postgres
from cloneproof.serve.storage.postgres import Patience, PostgresStorage, StorageLost, without_password
from cloneproof.serve.writer.markets import ServedMarkets
from support.postgres import emptied, hang_in_its_turn
from support.service import PROCESSES, Desk, open_market, session_seed, spec

FEED = "/v1/markets/feed"


@pytest.fixture(scope="module")
def database(server):
    return server.new_database()


@pytest.fixture
def address(database):
    return emptied(database)


def machine_on(address):
    """The API against the model, each call through one of two services on the same database, with restarts."""

    class MarketOnPostgres(Market):
        def new_storage(self):
            return PostgresStorage(emptied(address), interval=7)

        def __init__(self):
            super().__init__()
            self.other = self.desk
            self.desk = self.another()

        def another(self):
            made = Desk(PostgresStorage(address, interval=7), clock=self.other.clock)
            made.key = self.other.key
            return made

        @rule()
        def go_to_the_other_service(self):
            self.desk, self.other = self.other, self.desk

        @rule(orderly=st.booleans())
        def restart(self, orderly):
            if orderly:
                self.desk.close()
            else:
                self.desk.crash()
            self.desk = self.another()

        def teardown(self):
            try:
                super().teardown()
            finally:
                self.other.close()

    return MarketOnPostgres


def test_two_services_are_the_model(address):
    examples = int(os.environ.get("CLONEPROOF_STATEFUL_EXAMPLES", "6"))
    few = settings(max_examples=examples, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(machine_on(address), settings=few)


@contextmanager
def pair(address, first=PostgresStorage, **options):
    """Two services on one database, the first by a storage of that class."""
    with Desk(first(address)) as one, Desk(PostgresStorage(address), clock=one.clock, **options) as other:
        yield one, other


@pytest.mark.parametrize(("mechanism", "rounds"), [("h-etc-r", 1200), ("ucb1", 100)])
def test_two_services_decide_as_one_session(address, mechanism, rounds):
    """At the same time, through the trial, its commitments and the award: in each round what one session decides."""
    sizes = [1, 7, 30, 64, 200] if mechanism == "h-etc-r" else [1, 1, 2, 1, 3]
    changes = {"horizon": 5000} if mechanism == "h-etc-r" else {"mechanism": mechanism, "parameters": {}}
    with pair(address) as (first, second), ThreadPoolExecutor(2) as both:
        open_market(first, {"ana": 2, "bo": 1}, **changes)
        seen, number = {}, 0
        while len(seen) < rounds:
            number += 1
            bodies = [{"items": [{"request_id": f"{number}-{who}-{n}"} for n in range(sizes[(number + who) % 5])]}
                      for who in range(2)]  # fmt: skip
            made = both.map(lambda desk, b: desk.post("decisions/batch", b), (first, second), bodies)
            new = {one["decision"]: one for reply in made for one in reply.json()["results"]}
            items = [{"event_id": f"e{n}", "decision": n, "value": float(n % 3 == 1)} for n in new]
            for desk, part in ((second, items[::2]), (first, items[1::2])):
                desk.post("rewards/batch", {"items": part})
            seen |= {n: (new, one) for n, one in new.items()}
        terms, arms = spec(**changes), {"ana": 2, "bo": 1}
        plain = session(build_mechanism(terms), arms, terms.horizon, seed=session_seed(arms), share=0.4)
        for n in range(1, len(seen) + 1):
            group, one = seen[n]
            wanted = plain.decide()
            assert (one["agent"], one["arm"], one["phase"]) == (
                wanted.agent, f"{wanted.agent}-{wanted.arm}", wanted.phase,
            )  # fmt: skip
            if n == max(group):
                for of_group in group:
                    plain.reward(of_group, float(of_group % 3 == 1))


class Meanwhile(PostgresStorage):
    """Another process opens a market after the first rows that this one reads."""

    opened = False

    def _rows(self, statement, *values):
        rows = super()._rows(statement, *values)
        if not self.opened:
            self.opened = True
            other = PostgresStorage(self._writer._address)
            markets = ServedMarkets.recover(other)
            other.begin()
            markets.create(spec(), 0)
            other.commit(markets.take())
            other.close()
        return rows


def test_a_market_that_is_opened_while_a_process_starts_is_there(address):
    storage = Meanwhile(address)
    markets = ServedMarkets.recover(storage)
    for block in storage.begin():
        markets.apply(block)
    storage.close()
    assert list(markets.by_name) == ["feed"]


def test_the_same_call_at_two_services_at_once_counts_once(address):
    with pair(address) as (first, second):
        open_market(first, {"ana": 1, "bo": 1})
        with ThreadPoolExecutor(2) as both:
            for turn in range(8):
                requests = {"items": [{"request_id": f"r{turn}-{n}"} for n in range(20)]}
                made = both.map(lambda desk, r=requests: desk.post("decisions/batch", r), (first, second))
                one, other = (reply.json()["results"] for reply in made)
                assert [item["decision"] for item in one] == [item["decision"] for item in other]
                assert all(a["duplicate"] is not b["duplicate"] for a, b in zip(one, other, strict=True))
                rewards = {
                    "items": [
                        {"event_id": f"e{turn}-{n}", "decision": d["decision"], "value": 1.0} for n, d in enumerate(one)
                    ]
                }
                paid = both.map(lambda desk, r=rewards: desk.post("rewards/batch", r), (first, second))
                results = [{item["result"] for item in reply.json()["results"]} for reply in paid]
                assert sorted(results, key=str) == [{"duplicate"}, {"recorded"}]
        shown = [desk.get("balances").json() for desk in (first, second)]
        assert shown[0] == shown[1]
        assert sum(shown[0]["balances"].values()) == 8 * 20 * 400_000


def test_what_others_write_to_a_market_that_is_held_is_followed_when_it_is_released(address):
    with pair(address) as (first, second):
        open_market(first, {"ana": 1})
        assert second.get("").status_code == 200
        writer = second.app._service.writer
        writer._hold("feed")  # as for a snapshot
        made = first.decide("r")
        assert second.get("/v1/markets").status_code == 200
        assert [block.market for block in writer._missed] == [1]
        second.runner.run(writer._release("feed"))
        assert writer._missed == []
        assert second.decide("r") == made | {"duplicate": True}


def test_keys_made_and_revoked_at_one_service_count_at_the_other(address):
    with pair(address, intervals=Intervals(keys=1e9, pause=0.0)) as (first, second):
        open_market(first, {"ana": 1})
        key = first.make_key("auditor")
        assert second.get("balances", key=key).status_code == 200  # an unknown key is looked for at once
        assert first.call("DELETE", f"/v1/keys/{key.split('_')[1]}").status_code == 200
    with pair(address, intervals=Intervals(keys=0.0)) as (_, second):
        assert second.get("balances", key=key).status_code == 401


def test_a_database_that_is_away_is_503_on_every_path_and_comes_back(server, address):
    with Desk(PostgresStorage(address)) as desk:
        open_market(desk, {"ana": 1})
        body = {"request_id": "r"}
        before = desk.post("decisions", body).json()
        server.stop("interrupt")
        try:
            for method, path, sent in (
                ("POST", f"{FEED}/decisions", body),
                ("GET", f"{FEED}/ledger", None),
                ("POST", "/v1/keys", {"role": "auditor"}),
                ("GET", f"{FEED}/balances", None),
            ):
                reply = desk.call(method, path, sent)
                assert (reply.status_code, reply.headers["retry-after"]) == (503, "1"), path
        finally:
            server.start()
        again = desk.patiently("POST", f"{FEED}/decisions", body)
        assert again.json() == before | {"duplicate": True}


def test_a_database_that_stands_still_is_503_and_does_not_keep_a_service_from_ending(server, address):
    """Planted: SIGSTOP for the whole server. The kernel goes on taking what is sent, so nothing breaks by itself."""
    patience, intervals = Patience(connect=1, answer=0.3), Intervals(probe=0.0, reply=0.2)
    go_on = threading.Timer(40, server.freeze, [signal.SIGCONT])  # so that a service that waits for ever fails the test
    with (
        Desk(PostgresStorage(address, patience=patience), intervals=intervals) as desk,
        Desk(PostgresStorage(address, patience=patience), clock=desk.clock, intervals=intervals) as other,
    ):
        open_market(desk, {"ana": 1})
        other.key = desk.key
        assert other.patiently("GET", FEED).status_code == 200
        assert desk.get("/ready").status_code == 200
        server.freeze()
        go_on.start()
        try:
            for one in (desk, other):
                assert one.post("decisions", {"request_id": "r"}).status_code == 503
                assert one.get("ledger").status_code == 503
                assert one.get("/ready").status_code == 503
            desk.close()
            assert go_on.is_alive()  # it ended while the server stood still
        finally:
            go_on.cancel()
            server.freeze(signal.SIGCONT)
        made = other.patiently("POST", f"{FEED}/decisions", {"request_id": "r"})
        assert (made.status_code, made.json()["decision"]) == (200, 1)
        assert other.patiently("GET", "/ready").status_code == 200


def test_a_turn_that_was_lost_commits_nothing(address):
    """The connection breaks between the work and its commit: nothing of it is stored, and a new one does not help."""
    storage = PostgresStorage(address)
    writer = ServedMarkets.recover(storage)
    assert storage.begin() == []
    writer.create(spec(), 0)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid()"
        )
    with pytest.raises(StorageLost):
        storage.commit(writer.take())
    with pytest.raises(StorageLost):
        storage.commit(writer.take() or [(1, "feed", Appended(1, GENESIS, [b"{}"], [GENESIS], []))])
    assert storage.markets() == []
    storage.close()


def test_a_process_that_comes_to_other_lines_stops(address, monkeypatch):
    """Planted: one process pays differently. It must notice at the next turn, before it writes anything."""
    with pair(address) as (first, second):
        open_market(first, {"ana": 1})
        made = first.decide("r")["decision"]
        assert second.get("").status_code == 200
        second.app._service.writer.markets.market("feed")._share_micro += 1
        first.reward("e", made, 1.0)
        assert second.post("decisions", {"request_id": "s"}).status_code == 503
        again = second.patiently("GET", f"{FEED}/balances")  # read back from storage, and right
        assert again.json() == {"balances": {"ana": 400_000}}


FAULTS = {
    "without the news": ("cloneproof.serve.writer.markets.ServedMarkets.apply", lambda markets, block: None),
    "ids that are not stored": ("cloneproof.serve.storage.storage.id_rows", lambda *of_it: []),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(address, fault, monkeypatch):
    monkeypatch.setattr(*FAULTS[fault])
    quick = settings(
        max_examples=60, stateful_step_count=40, deadline=None, phases=[Phase.generate], report_multiple_bugs=False
    )
    with pytest.raises((AssertionError, KeyError, Misfit)):
        run_state_machine_as_test(machine_on(address), settings=quick)


class Held(PostgresStorage):
    """Keeps its turn until the event `answered`, if there is one; `begun` says that it has it."""

    answered = None

    def begin(self):
        news = super().begin()
        if self.answered is not None:
            self.begun.set()
            assert self.answered.wait(60)
        return news


def test_without_the_lock_the_same_call_counts_twice(address, monkeypatch):
    """Planted: both have the turn, the first of them until the second has answered."""
    monkeypatch.setattr(postgres, "TURN_LOCK", "NULL")  # a lock on null is none
    with pair(address, Held) as (first, second), ThreadPoolExecutor(1) as thread:
        open_market(first, {"ana": 1, "bo": 1})
        begun, answered = threading.Event(), threading.Event()
        first.storage.begun, first.storage.answered = begun, answered
        held = thread.submit(first.decide, "r")
        assert begun.wait(60)
        other = second.decide("r")
        answered.set()
        assert (other["decision"], other["duplicate"]) == (1, False)
        assert held.result().get("duplicate") is not True


def test_addresses(address):
    made = open_storage(address)
    made.close()
    assert isinstance(made, PostgresStorage)
    assert "secret" not in without_password("postgresql://ana:secret@host:5433/market?application_name=x")
    for wrong in ("postgresql://nobody:secret@127.0.0.1:1/market", "postgresql://a b?x=secret"):
        with pytest.raises(ServeError, match="cannot open") as caught:
            open_storage(wrong)
        assert "secret" not in str(caught.value)


def test_without_the_driver_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for call in (open_storage, replay_all, display_place):
        with pytest.raises(ServeError, match=r"install cloneproof\[postgres\]"):
            call("postgresql://host/market")


def test_a_database_of_a_later_version_or_of_somebody_else_is_refused(address):
    open_storage(address).close()
    with psycopg.connect(address) as connection:
        connection.execute("UPDATE cloneproof.schema SET version = 99")
    for refused in (open_storage, replay_all):
        with pytest.raises(ServeError, match="99"):
            refused(address)
    with psycopg.connect(address) as connection:
        connection.execute("DROP TABLE cloneproof.schema")
    for refused in (open_storage, replay_all):
        with pytest.raises(ServeError, match="foreign schema"):
            refused(address)


@pytest.mark.parametrize("where", ["turn", "commit"])
def test_a_process_that_is_stopped_in_its_turn_loses_it(address, where):
    """Planted: SIGSTOP. The others wait for it once, for a limited time, and what it had begun never counts."""
    with Desk(PostgresStorage(address, patience=Patience(turn=0.5))) as desk:
        open_market(desk, {"ana": 1})
        heard, told = PROCESSES.Pipe(duplex=False)
        stopped = PROCESSES.Process(target=hang_in_its_turn, args=(address, where, told), daemon=True)
        stopped.start()
        try:
            assert heard.recv() == "in its turn"
            os.kill(stopped.pid, signal.SIGSTOP)
            for number in range(3):
                reply = desk.post("decisions", {"request_id": f"r{number}"})
                assert (reply.status_code, reply.json()["decision"]) == (200, number + 1)
        finally:
            stopped.kill()
    (found,) = replay_all(address)
    assert found.fits, found.statement


def test_a_process_that_works_in_its_turn_keeps_it(address):
    """Only one that waits for its own process has the turn taken away; others are told to try again."""
    until_told = "DO 'BEGIN WHILE NOT pg_try_advisory_lock(77) LOOP PERFORM pg_sleep(0.01); END LOOP; END'"
    first, second = (PostgresStorage(address, patience=Patience(turn=0.2)) for _ in range(2))
    first.begin()
    with psycopg.connect(address, autocommit=True) as third, ThreadPoolExecutor(1) as thread:
        third.execute("SELECT pg_advisory_lock(77)")
        working = thread.submit(first._writer._connection.execute, until_told)
        while not third.execute("SELECT FROM pg_stat_activity WHERE query LIKE 'DO%' AND state = 'active'").fetchall():
            time.sleep(0.01)
        with pytest.raises(StorageLost):
            second.begin()
        third.execute("SELECT pg_advisory_unlock(77)")
        working.result()
    assert first.has_turn
    first.release()
    second.begin()
    assert second.has_turn
    first.close()
    second.close()


def test_a_broken_chain_is_noticed_by_the_next_process(address):
    """Planted: a stored hash is changed. The other process refuses what follows, and so does a replay."""
    with pair(address) as (first, second):
        open_market(first, {"ana": 1})
        assert second.get("").status_code == 200
        first.post("decisions", {"request_id": "r"})
        with psycopg.connect(address) as connection:
            connection.execute("UPDATE cloneproof.ledger SET hash_after = hash_before WHERE place % 1024 = 5")
        assert second.get("").status_code == 503
    (found,) = replay_all(address)
    assert not found.fits
    assert found.statement.startswith("entry 5: the hash chain is broken here")
