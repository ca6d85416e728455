"""Wait windows under clocks that jump: a window is as long as was declared, whatever the time of day is set to."""

import pytest

from cloneproof.serve.market.dice import MarketDice
from cloneproof.serve.market.entries import decode
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.offline import replay_all
from cloneproof.serve.storage.postgres import PostgresStorage
from cloneproof.serve.writer.writer import Writer
from support.service import SECRET, Clock, Desk, open_market, spec, sqlite, with_arms

FEED = "/v1/markets/feed"
DAY = 86_400_000


class TwoClocks(Desk):
    """A service whose steady clock and time of day are turned by the test."""

    def __init__(self, storage, steady=None, wall=None):
        self.steady, self.wall = steady or Clock(), wall or Clock()
        super().__init__(storage)

    def open(self):
        super().open()
        writer = self.app._service.writer
        writer._clock, writer._wall = self.steady, self.wall

    def pass_time(self, milliseconds):
        self.steady.now += milliseconds
        self.wall.now += milliseconds

    def times(self):
        return [decode(line.line).at for line in self.storage.lines(1, 0, 1000)]


@pytest.fixture
def desk(tmp_path):
    with TwoClocks(sqlite(tmp_path / "a.db")) as made:
        open_market(made, {"ana": 1, "bo": 1}, wait_seconds=60.0)
        made.place = str(tmp_path / "a.db")
        yield made
    assert replay_all(made.place)[0].fits


@pytest.mark.parametrize("jump", [30 * DAY, -30 * DAY])
def test_a_jump_ends_no_window_and_stops_none(desk, jump):
    first = desk.decide("a")["decision"]
    desk.wall.now += jump
    desk.pass_time(10_000)
    assert desk.reward("first", first) == "recorded"  # after 10 of 60 seconds
    second, third = (desk.decide(name)["decision"] for name in "bc")
    desk.wall.now -= jump
    desk.pass_time(50_000)
    assert desk.reward("second", second) == "recorded"
    desk.pass_time(11_000)
    assert desk.reward("third", third) == "late"
    assert desk.times() == sorted(desk.times())


def test_ledger_times_recover_when_nothing_is_awaited(desk):
    """A time of day that was a day ahead: times go on from there, stand still, and are right again a day later."""
    desk.play(["a"])
    desk.wall.now += DAY
    desk.play(["b"])
    desk.wall.now -= DAY
    wrong = desk.times()[-1]
    assert wrong > desk.wall.now + DAY // 2
    for number in range(5):
        desk.pass_time(20_000)
        desk.play([f"c{number}"])
    assert desk.times()[-1] == wrong
    desk.pass_time(DAY)
    desk.play(["d"])
    assert desk.times()[-1] == desk.wall.now


@pytest.mark.parametrize(
    ("away", "result"), [(-30 * DAY, "recorded"), (0, "recorded"), (30_000, "recorded"), (DAY, "late")]
)
def test_over_a_restart_the_recorded_time_counts(tmp_path, away, result):
    """The steady clock begins anew; the time of day says how long the service was away, but never less than nothing."""
    wall = Clock()
    with TwoClocks(sqlite(tmp_path / "a.db"), wall=wall) as desk:
        open_market(desk, {"ana": 1, "bo": 1}, wait_seconds=60.0)
        made, key, last = desk.decide("a")["decision"], desk.key, desk.times()[-1]
    wall.now += away
    steady = Clock()
    steady.now = 5
    with TwoClocks(sqlite(tmp_path / "a.db"), steady, wall) as desk:
        desk.key = key
        desk.pass_time(10_000)
        assert desk.reward("made", made) == result
        assert last <= desk.times()[-1] <= max(wall.now, last + 10_000)
        if result == "late":
            defaulted = next(at for at, line in zip(desk.times(), desk.storage.lines(1, 0, 99), strict=True)
                             if b'"kind":"default"' in line.line)  # fmt: skip
            assert defaulted <= last + 61_000  # a window further, and no more
        else:
            second = desk.decide("b")["decision"]
            desk.pass_time(61_000)
            assert desk.reward("second", second) == "late"
    assert replay_all(str(tmp_path / "a.db"))[0].fits


def test_a_ledger_whose_times_are_ahead_goes_on(tmp_path):
    """As the clock left it before: 30 days ahead, with a reward awaited. Its window ends as declared."""
    market = LiveMarket.open(spec(wait_seconds=60.0), 30 * DAY, MarketDice(SECRET))
    with_arms(market, {"ana": 1}, 30 * DAY).start(30 * DAY)
    market.follow(0, 1000)
    made = market.decide("r", 0)
    assert made.at == 30 * DAY
    for now, over in ((30_000, False), (59_000, False), (61_000, True)):
        market.follow(now, 1000 + now)
        assert (market.first_overdue(now) == made.id) is over


def test_a_shared_clock_counts_the_same_for_a_process_that_was_away():
    """Two processes with the same ledger, one of which has just started: they tell the same time."""
    running, started = (LiveMarket.open(spec(wait_seconds=60.0), 1000, MarketDice(SECRET)) for _ in range(2))
    for market in (running, started):
        with_arms(market, {"ana": 1}).start(1000)
        market.decide("r", 1000)
    for now in (1000, 10_000, 10 * DAY, 10 * DAY + 5, 9 * DAY):  # set back at the end: nothing was recorded meanwhile
        running.follow(now, None)
    started.follow(9 * DAY, None)
    assert running.time(9 * DAY) == started.time(9 * DAY) == 9 * DAY


def test_processes_that_share_a_database_go_by_its_clock(server, monkeypatch):
    """Planted: one process has a time of day, and a steady clock, that are 30 days ahead."""
    address, later = server.new_database(), Clock()
    later.now = 30 * DAY
    with Shared(PostgresStorage(address), later) as first, Shared(PostgresStorage(address), later) as second:
        second.key = first.key
        open_market(first, {"ana": 1, "bo": 1}, wait_seconds=60.0)
        made = first.decide("a")["decision"]
        monkeypatch.setattr("time.time_ns", lambda: 10**6 * 400 * 365 * DAY)
        second.post("decisions", {"request_id": "b"})
        assert first.reward("e", made, 1.0) == "recorded"
        times = [decode(line.line).at for line in first.storage.lines(1, 0, 100)]
        assert max(times) - min(times) < 60_000


class Shared(Desk):
    """A service on a database with its own steady clock, and a time of day that the test turns."""

    def __init__(self, storage, wall):
        self.wall = wall
        super().__init__(storage)

    def writer(self):
        return Writer(self.storage, wall=self.wall)
