"""Wait windows end in time: the writer enters what is overdue before anything else, and a replay refuses what does not.

Windows are computed again here, from the lines of a ledger and its terms alone; `test_stateful.py` uses it too.
"""

import asyncio
import json

import pytest

from cloneproof.serve.market.replay import Misfit
from cloneproof.serve.writer.markets import ServedMarkets
from support.service import DICE, Desk, open_market, published, replayed, started

SECONDS, ROUNDS = 5.0, 9


def overdue_line(lines, seconds=SECONDS, rounds=ROUNDS):
    """The number of the first line that was written while a window was over, by any reading of a window's length."""
    pending, last = {}, 0  # the times of decisions that await a reward, oldest first
    for entry in map(json.loads, lines):
        oldest = next(iter(pending), None)
        if oldest is not None and not (entry["kind"] == "default" and entry["because"] == "window"):
            latest = pending[oldest] + seconds * 1000 + max(1, seconds)  # a step of a thousandth
            if last - oldest >= rounds or entry["at"] >= latest:
                return entry["n"]
        if entry["kind"] == "decision":
            last = entry["id"]
            pending[last] = entry["at"]
        elif entry["kind"] in ("reward", "default"):
            del pending[entry["id"]]
    return None


def all_lines(desk):
    with_lines, after = [], 0
    while page := desk.get(f"ledger?after={after}&limit=1000").json()["lines"]:
        with_lines += [json.dumps(line["entry"]).encode() for line in page]
        after = page[-1]["entry"]["n"]
    return with_lines


def test_a_writer_that_forgets_windows_is_found_out(monkeypatch):
    """The check above can fail: by a registration, where no other call ends the windows."""
    with Desk() as desk:
        open_market(desk, {"ana": 2, "bo": 1}, wait_seconds=SECONDS, wait_rounds=ROUNDS)
        desk.decide("first")
        desk.clock.now += 6000
        monkeypatch.setattr(ServedMarkets, "expire", lambda *arguments: set())
        desk.post("agents", {"agent": "cy"})
        lines = all_lines(desk)
        assert overdue_line(lines) == len(lines)


def test_nothing_overtakes_many_windows_that_end_at_once(tmp_path):
    """More defaults than a group takes, with a registration, a decision and the settlement behind them."""
    with Desk() as desk:
        open_market(desk, {"ana": 2, "bo": 1}, wait_seconds=SECONDS, wait_rounds=10_000)
        for part in range(2):
            desk.decide_batch(f"{part}.{number}" for number in range(1000))
        desk.clock.now += 6000
        path = "/v1/markets/feed"
        statuses = desk.together(
            ("POST", f"{path}/agents", {"agent": "cy"}), ("POST", f"{path}/decisions", {"request_id": "next"}),
            ("POST", f"{path}/settle", {"reason": "a test"}),
        )  # fmt: skip
        desk.runner.run(asyncio.sleep(0))
        lines = all_lines(desk)
    assert statuses == [201, 200, 200]
    assert overdue_line(lines, rounds=10_000) is None
    assert sum(json.loads(line).get("because") == "window" for line in lines) == 2000


def ignored(friend, rounds, seconds):
    """A settled season in which the windows of a friend's decisions never ended."""
    market = started({"ana": 2, "bo": 1}, wait_rounds=rounds, wait_seconds=seconds, horizon=200)
    for number in range(60):
        made = market.decide(f"r{number}", 2000 + number)
        if made.agent != friend:
            market.reward(f"e{number}", made.id, 0.0, 2000 + number, None)
    for number in sorted(market.session.pending):
        market.reward(f"late-{number}", number, 1.0, 3000, None)
    market.end(4000, "a test")
    market.settle(4000)
    return market.chain.take().lines


@pytest.mark.parametrize(("rounds", "seconds"), [(9, 3600.0), (10_000, 0.5)])
def test_a_ledger_whose_windows_do_not_end_is_refused(rounds, seconds):
    """A friend's rewards are taken whenever they come, and the season is settled: its keys are known."""
    lines = ignored("ana", rounds, seconds)
    named = overdue_line(lines, seconds, rounds)
    assert named is not None
    for dice in (DICE, published(lines)):
        with pytest.raises(Misfit, match=f"entry {named}: the window of decision .* is over") as found:
            replayed(lines, dice)
        assert found.value.n == named
    replayed(ignored("ana", 60, 3600.0), DICE)  # in time
