"""A season of pages with late clicks, a newcomer, a withdrawal, a pause and `kill -9`, against a session told the same.

The service shows what `cp.session` shows on every page, so all clicks are the same to the last one; what came too late
is told so by both. The ledger fits its replay, and under other rules it does not.
"""

import random
import threading
from unittest.mock import patch

import pytest

import cloneproof as cp
from cloneproof._lib.randomness import substream, uniform
from cloneproof.market.delays import Delays
from cloneproof.mechanisms.reservoir.page_streams import StreamsState
from cloneproof.runs.arrivals import Arrivals
from cloneproof.serve import calls
from cloneproof.serve.market.dice import MarketDice
from cloneproof.serve.market.replay import Misfit, replay
from cloneproof.serve.offline import replay_all, stored_ledgers
from support.service import SECRET, Process, declared, replayed, start_market, with_arms
from support.sizes import LONG

PLACES = [1.0, 0.7, 0.5, 0.4, 0.3] if LONG else [1.0, 0.6]
SHOPS = {f"shop{number}": 3 if LONG else 2 for number in range(16 if LONG else 4)}
PAGES, STEP, KILLS = (30_240, 42, 8) if LONG else (800, 20, 2)
NUMBERS = {"rotations": 7, "blocks": 30, "turns": 90} if LONG else {"rotations": 4, "blocks": 12, "turns": 14}
LATE = Delays([(0.5, 0.5), (0.9, 4), (0.99, 24)], 720) if LONG else Delays([(0.5, 4), (0.9, 40)], 720)
TERMS = {
    "mechanism": "reservoir-streams", "parameters": NUMBERS, "positions": PLACES, "horizon": PAGES,
    "wait_rounds": PAGES, "share": 0.4,
}  # fmt: skip
ACTS = {
    PAGES // STEP * percent // 100: act
    for percent, act in ((15, "join"), (40, "withdraw"), (60, "pause"), (70, "resume"))
}


def rate_of(agent, arm):
    return cp.Beta(3, 97 if LONG else 12).quantile(uniform(substream(11, int(agent[4:])), arm))


class World:
    """Visitors: which clicks a page has, and when they come; a season of them, for a service or a session."""

    def __init__(self, decide, reward, act):
        self.decide, self.reward, self.act = decide, reward, act
        self.arrivals = Arrivals(LATE, PAGES)

    def season(self):
        """Who was shown where on each page, the clicks, and the decisions whose clicks came too late to count."""
        shown, clicks, late, coming = [], 0, [], []
        for step in range(PAGES // STEP):
            if step in ACTS:
                self.act(ACTS[step])
            for page, made in enumerate(self.decide(STEP), STEP * step):
                shown.append([each[1:] for each in made])
                for each, place, agent, arm in made:
                    clicked = uniform(substream(12, page), place) < PLACES[place - 1] * rate_of(agent, arm)
                    clicks += clicked
                    due = self.arrivals.page(page, uniform(substream(13, page), place))
                    coming.append((due, each, float(clicked)))
            sent = [one for one in coming if one[0] <= STEP * (step + 1)]
            coming = [one for one in coming if one[0] > STEP * (step + 1)]
            late += self.reward([one[1:] for one in sent])
        late += self.reward([one[1:] for one in coming])
        return shown, clicks, late


def served(place, service):
    """The season in a process that is killed at random moments."""
    service.start()
    dice, over = random.Random(5), threading.Event()

    def kill():
        for _ in range(KILLS):
            if over.wait(dice.uniform(0.1, 20 if LONG else 0.5)):
                return
            service.kill()
            service.start()

    with service.client(patience=120.0) as api:
        start_market(api, SHOPS, **TERMS)
        number, by_id = [0], {}

        def decide(pages):
            requests = [f"page {number[0] + k}" for k in range(pages)]
            number[0] += pages
            slates = api.send(calls.slate_batch("feed", requests)).results
            by_id.update({each.decision: each for slate in slates for each in slate.decisions})
            return [
                [(each.decision, each.place, each.agent, int(each.arm.split("-")[1])) for each in slate.decisions]
                for slate in slates
            ]

        def reward(rewards):
            late = []
            for first in range(0, len(rewards), 1000):
                items = [(f"of {each}", by_id[each], value) for each, value in rewards[first : first + 1000]]
                results = api.send(calls.reward_batch("feed", items)).results
                late += [each.decision for each in results if each.result == "late"]
                assert all(each.result != "late" or each.paid == 400_000 for each in results)
            return late

        def act(what):
            if what == "join":
                api.send(calls.register_agent("feed", f"shop{len(SHOPS)}"))
                for arm in range(2):
                    api.send(calls.register_arm("feed", f"shop{len(SHOPS)}", f"shop{len(SHOPS)}-{arm}"))
                api.send(calls.join("feed", f"shop{len(SHOPS)}"))
            elif what == "withdraw":
                api.send(calls.withdraw_arm("feed", "shop1", "shop1-0", "sold out"))
            else:
                api.send(calls.pause("feed", "shop2", "down", resume=what == "resume"))

        killer = threading.Thread(target=kill)
        killer.start()
        try:
            return World(decide, reward, act).season()
        finally:
            over.set()
            killer.join()
            service.kill()


def foretold(seed, mixed):
    """The season in `cp.session`, with the seed and what the newcomer's draws mix in."""
    live = cp.session(cp.mechanism("reservoir-streams", **NUMBERS), SHOPS, PAGES, seed, share=0.4, positions=PLACES)

    def act(what):
        if what == "join":
            live.join(f"shop{len(SHOPS)}", 2, None, mixed)
        elif what == "withdraw":
            live.withdraw("shop1", 0)
        else:
            getattr(live, what)("shop2")

    def decide(pages):
        slates = [live.decide_slate() for _ in range(pages)]
        return [[(each.id, each.place, each.agent, each.arm) for each in slate] for slate in slates]

    def reward(rewards):
        return [each for each, value in rewards if live.reward(each, value) == "late"]

    return World(decide, reward, act).season()


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """What was shown and clicked, the seed, and what the newcomer's draws mix in."""
    place = str(tmp_path_factory.mktemp("month") / "market.db")
    found = served(place, Process(place))
    assert all(one.fits for one in replay_all(place))
    with stored_ledgers(place) as books:
        lines, dice, seeds, mixed = [*books["feed"].lines()], MarketDice(books["feed"].secret), [], []
    honest = cp.Session.join

    def join(self, agent, arms, weights=None, mixed_in=b""):
        mixed.append(mixed_in)
        return honest(self, agent, arms, weights, mixed_in)

    with patch.object(cp.Session, "join", join):
        replay(lines, dice, lambda market: seeds.append(market.session.seed) if market.session and not seeds else None)
    return found, seeds[0], mixed[0]


def test_the_service_shows_and_pays_what_the_session_does_to_the_last_click(month):
    (shown, clicks, late), seed, mixed = month
    expected, expected_clicks, expected_late = foretold(seed, mixed)
    assert shown == expected
    assert (clicks, sorted(late)) == (expected_clicks, sorted(expected_late))
    assert clicks > 100
    newcomer = [page for page, made in enumerate(shown) if any(agent == f"shop{len(SHOPS)}" for _, agent, _ in made)]
    assert len(newcomer) > PAGES / 50
    absent = slice(PAGES * 61 // 100, PAGES * 69 // 100)
    assert not any(agent == "shop2" for made in shown[absent] for _, agent, _ in made)


@pytest.fixture(scope="module")
def ledger_of_known_dice():
    """The lines of a season in a market whose dice follow from a fixed secret."""
    market = declared(SECRET, **TERMS)
    with_arms(market, SHOPS)
    market.start(1000)
    number = [0]

    def decide(pages):
        asked = [(f"page {number[0] + k}", None) for k in range(pages)]
        number[0] += pages
        made, refusal = market.decide_many(asked, 2000)
        assert refusal is None
        return [
            [(entry.id + k, each.place, each.agent, int(each.arm.split("-")[1])) for k, each in enumerate(entry.shown)]
            for entry in made
        ]

    def reward(rewards):
        return [
            entry.id
            for entry in market.reward_many([(f"of {each}", each, value) for each, value in rewards], 2000)
            if entry.late
        ]

    def act(what):
        newcomer = f"shop{len(SHOPS)}"
        if what == "join":
            with_arms(market, {newcomer: 2}, 2000)
            market.join(newcomer, 2000)
        elif what == "withdraw":
            market.withdraw_arm("shop1", "shop1-0", 2000)
        else:
            market.pause("shop2", None, what == "resume", "down", 2000)

    _, _, late = World(decide, reward, act).season()
    assert late
    return market.chain.take().lines


def credited_for_ever(self, allocation):
    return self.draw[allocation.agent] != allocation.slot


def guests_without_laboratory(self, clock):
    for i in self.joiners:
        self._seat_joiner(i)
    self.joiners, self.ranking = [], []


def verdicts_a_page_late(self, clock):
    honest_judge(self, clock - 1)


honest_judge = StreamsState._judge
FAULTS = {
    "clicks count for ever": ("is_late", credited_for_ever),
    "guests without a laboratory": ("_judge_guests", guests_without_laboratory),
    "who is paused is seen": ("_miss", lambda self: None),
    "verdicts a page late": ("_judge", verdicts_a_page_late),
    "nobody is designated": ("_take_turn", lambda self, counts: None),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_replay_notices_other_rules(ledger_of_known_dice, name):
    dice = MarketDice(SECRET)
    replayed(ledger_of_known_dice, dice)
    with patch.object(StreamsState, *FAULTS[name]), pytest.raises(Misfit):
        replayed(ledger_of_known_dice, dice)
