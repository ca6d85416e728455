"""What an operator sees and sets: the log, metrics by market, /version, keys from files, backups, the demo."""

import io
import json
import logging
import os
import re
import signal
import socket
import sqlite3
import stat
import subprocess
import threading

import httpx
import pytest
from prometheus_client.registry import Collector

from cloneproof.errors import ServeError
from cloneproof.serve import calls
from cloneproof.serve.client import Client
from cloneproof.serve.http.monitoring import LogLines, configure_log, text_line
from cloneproof.serve.http.service import by_id, install_keys, key_from_file, key_holder, new_key
from cloneproof.serve.market.replay import go_on
from cloneproof.serve.offline import back_up, replay_all
from cloneproof.serve.run import answered
from cloneproof.serve.storage import SqliteStorage, open_storage
from cloneproof.serve.writer.writer import Writer
from support.command import run
from support.disk import full_disk
from support.service import COMMAND, Clock, Desk, open_market, sqlite, start_market


def samples(desk):
    """The metrics by name and labels."""
    text = desk.get("/metrics").text
    return dict(line.rsplit(" ", 1) for line in text.splitlines() if line[0] != "#"), text


@pytest.fixture
def heard():
    """What the service logs, with the level and the form that a test chooses."""
    logger, stream = logging.getLogger("cloneproof"), io.StringIO()
    before = logger.handlers, logger.propagate, logger.level

    def listen(form, level):
        configure_log(form, level)
        handler = logging.StreamHandler(stream)
        handler.setFormatter(LogLines(json.dumps if form == "json" else text_line))
        logger.handlers = [handler]
        return lambda: [line for line in stream.getvalue().splitlines() if line]

    yield listen
    logger.handlers, logger.propagate = before[:2]
    logger.setLevel(before[2])
    logging.getLogger("uvicorn").handlers = []


def test_a_line_a_call(heard):
    lines = heard("json", "info")
    with Desk() as desk:
        open_market(desk, {"ana": 1})
        desk.post("decisions", {"request_id": "a-private-id"})
        desk.get("/v1/markets/nobody%0As/progress")
        desk.get("/health")
        desk.get("/v1/markets?x=1", key="cp_0123_" + "s" * 43)
    said = [json.loads(line) for line in lines()]
    assert [one["route"] for one in said] == [
        "create_market", "register_agent", "register_arm", "start", "decide", "show_progress", "list_markets",
    ]  # fmt: skip
    decided, unknown, refused = said[-3:]
    assert (decided["market"], decided["status"], decided["role"], decided["level"]) == (
        "feed",
        200,
        "platform",
        "info",
    )
    assert desk.key.split("_")[1] == decided["key"]
    assert (unknown["status"], unknown["error"], "market" in unknown) == (404, "unknown_market", False)
    assert (refused["status"], refused["error"], "key" in refused) == (401, "unauthorized", False)
    text = "\n".join(lines())
    assert not any(secret in text for secret in (desk.key.split("_", 2)[2], "s" * 43, "a-private-id"))


def test_levels(heard):
    lines = heard("text", "warning")
    with Desk() as desk:
        desk.get("/v1/markets")
        assert lines() == []
        configured = heard("text", "debug")
        desk.get("/health")
        assert re.fullmatch(r"\S+Z debug call route=health status=200 ms=[\d.]+", configured()[-1])


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_secret_in_an_error_is_not_logged_and_no_line_is_forged(heard, form):
    lines = heard(form, "info")
    key = new_key("platform", None, 0)[0]
    try:
        raise RuntimeError(f"no such key {key}\n at postgresql://market:hunter2@db/market \x1b[2J")
    except RuntimeError:
        logging.getLogger("cloneproof.serve").exception("a call failed\nfaked line")
    text = "\n".join(lines())
    assert key.split("_", 2)[2] not in text
    assert "hunter2" not in text
    assert "\x1b" not in text
    assert "[secret]" in text
    assert not any(line.startswith("faked") for line in lines())
    assert len(lines()) == 1 if form == "json" else all(line[:2] == "  " for line in lines()[1:])


def test_a_fault_is_an_error_with_its_place(heard):
    class Faulty(SqliteStorage):
        def lines(self, *asked):
            return 1 / 0

    lines = heard("json", "error")
    with Desk(Faulty(":memory:")) as desk:
        open_market(desk, {"ana": 1})
        assert desk.get("ledger").status_code == 500
    fault, call = (json.loads(line) for line in lines())
    assert "ZeroDivisionError" in fault["traceback"]
    assert (call["level"], call["status"]) == ("error", 500)


def test_metrics_of_a_market(tmp_path):
    """Awaited, late and defaulted rewards, phase, season, payouts and the queue; the same after a restart."""
    clock = Clock()
    with Desk(sqlite(tmp_path / "a.db"), clock=clock) as desk:
        open_market(desk, {"ana": 1, "bo": 1}, wait_seconds=10)
        made = [desk.decide(f"{k}") for k in range(5)]
        desk.reward("e", made[0]["decision"], 1.0)
        found, _ = samples(desk)
        assert float(found['cloneproof_rewards_awaited{market="feed"}']) == 4
        assert float(found[f'cloneproof_phase{{market="feed",phase="{made[-1]["phase"]}"}}']) == 1
        clock.now += 60_000
        assert desk.reward("late", made[1]["decision"], 1.0) == "late"
        found, text = samples(desk)
        expected = {"rewards_awaited": 0, "rewards_defaulted_total": 4, "rewards_late_total": 1, "season": 1,
                    "season_rounds": 5, "season_horizon": 10_000, "paid_micro_units": 400_000}  # fmt: skip
        assert {name: float(found[f'cloneproof_{name}{{market="feed"}}']) for name in expected} == expected
        assert float(found['cloneproof_queue_depth{market="feed"}']) == 0
        assert float(found['cloneproof_queue_seconds_count{market="feed"}']) >= 7
        assert text.count("# TYPE") == text.count("# HELP") == len(set(re.findall(r"# TYPE (\S+)", text)))
    with Desk(sqlite(tmp_path / "a.db"), clock=clock) as desk:
        found, _ = samples(desk)
        assert {name: float(found[f'cloneproof_{name}{{market="feed"}}']) for name in expected} == expected
        assert float(found[f'cloneproof_phase{{market="feed",phase="{made[-1]["phase"]}"}}']) == 1
        progress = desk.get("progress").json()
        assert (progress["phase"], progress["late"], progress["defaulted"]) == (made[-1]["phase"], 1, 4)


def test_the_text_of_metrics_is_made_beside_the_event_loop():
    """With 1,000 markets it takes a fifth of a second, during which no call would be answered."""
    with Desk() as desk:
        threads = []

        class Witness(Collector):
            def collect(self):
                threads.append(threading.get_ident())
                return []

        desk.app._service.writer.waits.registry.register(Witness())
        threads.clear()
        assert desk.get("/metrics").status_code == 200
        assert len(threads) == 1
        assert threads[0] != threading.get_ident()


def test_a_key_that_goes_to_a_file_is_for_its_owner_alone(tmp_path, heard):
    before, terminal, file = os.umask(0o022), os.dup(1), tmp_path / "key"
    try:
        with file.open("w") as out:
            os.dup2(out.fileno(), 1)
            out.write(run("serve", ":memory:", "--create-key", "platform").stdout)
    finally:
        os.dup2(terminal, 1)
        os.close(terminal)
        os.umask(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = heard("text", "warning")
    key_from_file(str(file), "platform", 0)
    assert lines() == []
    file.chmod(0o644)
    key_from_file(str(file), "platform", 0)
    assert "may read the key" in lines()[0]


def test_a_key_from_a_file_is_made_once_and_stays_revoked(tmp_path):
    key, record = new_key("platform", None, 0)
    file = tmp_path / "key"
    file.write_text(f"{key}\n")
    storage = open_storage(":memory:")
    for _ in range(2):
        install_keys(storage, [key_from_file(str(file), "platform", 5)])
        assert key_holder(by_id(storage.keys()), f"Bearer {key}".encode()).role == "platform"
    storage.put_key(record.__class__(record.id, "platform", None, record.hash, 0, True))
    install_keys(storage, [key_from_file(str(file), "platform", 9)])
    (kept,) = storage.keys()
    assert kept.revoked
    with pytest.raises(ServeError, match="another secret or role"):
        install_keys(storage, [key_from_file(str(file), "auditor", 9)])
    for text in ("", "hunter2", f"{key} {key}", key[:-1], "cp_\xe9"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(ServeError, match=r"expected a (key|file)") as refusal:
            key_from_file(str(file), "platform", 0)
        assert not text or text not in str(refusal.value)


def test_a_service_set_up_by_a_file_is_backed_up_while_it_runs(tmp_path):
    """The file names database, key and log; the copy is whole, private, and a part of the ledger that goes on."""
    key = new_key("platform", None, 0)[0]
    (tmp_path / "key").write_text(key)
    (tmp_path / "key").chmod(0o600)
    (tmp_path / "c.toml").write_text(
        f'[serve]\ndatabase = "{tmp_path}/a.db"\nport = 1\nlog = "json"\nlog_level = "warning"\n'
        f'platform_key_file = "{tmp_path}/key"\n'
    )
    environment = os.environ | {
        "CLONEPROOF_SERVE_CONFIG": str(tmp_path / "c.toml"), "CLONEPROOF_SERVE_LOG_LEVEL": "info",
    }  # fmt: skip
    service = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0"], env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        with Client(service.stdout.readline().split()[-1], key) as api:
            start_market(api, {"ana": 1})
            api.send(calls.decide_batch("feed", [f"{k}" for k in range(500)]))
            entries = back_up(str(tmp_path / "a.db"), str(tmp_path / "copy.db"))
            service.send_signal(signal.SIGHUP)  # as a tool does that rotates logs
            api.send(calls.decide_batch("feed", [f"more-{k}" for k in range(500)]))
    finally:
        service.terminate()
        _, log = service.communicate(timeout=30)
    lines = [json.loads(line) for line in log.splitlines()]
    routes = [line["route"] for line in lines if line["message"] == "call"]
    assert ["SIGHUP is ignored" in line["message"] for line in lines if "route" not in line] == [True]
    assert routes == ["create_market", "register_agent", "register_arm", "start", "decide_batch", "decide_batch"]
    assert key.split("_", 2)[2] not in log
    assert entries == {"feed": 504}
    assert sorted(path.name for path in tmp_path.glob("*.db*")) == ["a.db", "copy.db"]
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    copy, original = (replay_all(str(tmp_path / name))[0] for name in ("copy.db", "a.db"))
    assert (copy.fits, copy.entries, original.entries) == (True, 504, 1004)
    restored = open_storage(str(tmp_path / "copy.db"))
    assert len(restored.keys()) == 1
    restored.close()


def test_a_backup_that_finds_no_room_leaves_nothing(tmp_path):
    place = tmp_path / "a.db"
    with Desk(sqlite(place)) as desk:
        open_market(desk, {"ana": 1})
        desk.decide_batch(str(number) for number in range(1000))
    assert place.stat().st_size > 50_000  # more than SQLite needs beside a file that it reads
    with full_disk(50_000), pytest.raises(ServeError, match="make room"):
        back_up(str(place), str(tmp_path / "b.db"))
    left = {path.name for path in tmp_path.iterdir()} - {"a.db-wal", "a.db-shm"}  # SQLite's, where a file is only read
    assert left == {"a.db"}


def test_a_start_that_takes_long_says_how_far_it_is(tmp_path, monkeypatch, heard):
    """From the ledger alone, which is read slowly: whoever calls meanwhile is answered, and the log says it too."""
    lines, path, asked, answers = heard("text", "warning"), tmp_path / "market.db", threading.Event(), {}
    with Desk(sqlite(path)) as desk:
        open_market(desk, {"ana": 2})
        desk.play(f"view {number}" for number in range(150))
    with sqlite3.connect(path) as database:
        database.execute("DELETE FROM snapshots")

    def go_on_slowly(*entries):
        assert asked.wait(60)
        return go_on(*entries)

    def ask(address):
        for path in ("/ready", "/health", "/v1/markets"):
            answers[path] = httpx.get(f"http://127.0.0.1:{address[1]}{path}", timeout=60.0)
        asked.set()

    monkeypatch.setattr("cloneproof.serve.storage.storage.TELL", 0.0)
    monkeypatch.setattr("cloneproof.serve.market.replay.go_on", go_on_slowly)
    storage = sqlite(path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        asking = threading.Thread(target=ask, args=(listening.getsockname(),))
        with answered(listening, storage):
            asking.start()
            writer = Writer(storage)
        asking.join()
    end = writer.markets.by_name["feed"].chain.n
    storage.close()
    assert {path: answer.status_code for path, answer in answers.items()} == {
        "/ready": 503, "/health": 200, "/v1/markets": 503,
    }  # fmt: skip
    said = f"reading market 1: entry {end:,} of {end:,}"  # read, and not yet repeated
    assert answers["/ready"].json() == {"status": f"the service is starting ({said}); try again"}
    assert answers["/v1/markets"].json()["error"] == "unavailable"
    assert answers["/v1/markets"].headers["retry-after"] == "1"
    assert any(line.endswith(said) for line in lines())
