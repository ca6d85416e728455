"""One suite by mechanism and feature: a served season, a session, and whatever is saved, restored or replayed agree.

Every mechanism of the catalogue plays a season with every feature, or refuses it. In each season a plain session, and a
market that is restored from its snapshot again and again, are given the same events. In the ledger of each feature no
line can be changed, left out or told twice. A new feature is a line.
"""

import json
import random
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import cloneproof as cp
from cloneproof._lib.ticks import ticks
from cloneproof.errors import CloneproofError, Refused, ServeError, SessionError
from cloneproof.mechanisms import CATALOGUE
from cloneproof.serve.market.dice import MarketDice
from cloneproof.serve.market.entries import Defaulted, payment
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.replay import recover, replay, restore, snapshot_difference, take_snapshot
from cloneproof.serve.market.terms import complete
from support.service import DICE, SECRET, changed, published, replayed, spec, with_arms
from support.sizes import LONG
from support.strategies import SMALL

ARMS = {"ana": 3, "bo": 2, "cy": 1}
ROUNDS = 120 if LONG else 22
ON_SLOTS = {"reservoir", "reservoir-contest", "reservoir-index", "reservoir-bars", "reservoir-streams"}
TAKE_JOINERS = {"reservoir", "reservoir-index", "reservoir-bars"}
AT_RANDOM = {"reservoir-index", "reservoir-bars"}  # what they promise, they promise of a season that ends at random
ON_TWO_LEVELS = {"h-ucb", "h-thompson"}
RANKING = {"reservoir", "reservoir-streams", "ucb1", "kl-ucb", "epsilon-greedy", "thompson"} | ON_TWO_LEVELS
EVERY = frozenset(CATALOGUE)


class Feature(NamedTuple):
    """Terms of a market, what happens in its season, and the mechanisms that take it."""

    terms: Mapping[str, Any] = MappingProxyType({})
    weights: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    parameters: Mapping[str, Any] | None = None  # None: small ones
    rounds: int = ROUNDS
    late: int = 0
    joins: bool = False
    withdraws: bool = False
    leaves: bool = False  # withdraws all that there is
    pauses: bool = False
    fractions: bool = False  # rewards between 0 and 1
    taken_by: frozenset[str] = EVERY


TWO = {"segments": {"phone": 0.7, "desk": 0.3}}
FEATURES = {
    "late rewards": Feature(late=6, rounds=100),
    "windows": Feature({"wait_rounds": 3}, late=6),
    "rewards between 0 and 1": Feature(fractions=True, late=4, rounds=60),
    "a fresh draw": Feature(
        parameters={"rounds": 3, "draws": 2, "threshold": 3}, fractions=True, late=3, rounds=60,
        taken_by=frozenset({"reservoir"}),
    ),
    "a random end": Feature({"ends": "at-random", "horizon": 15}),
    "random ends of segments": Feature(TWO | {"ends": "at-random", "horizon": 15}, late=2),
    "nobody left": Feature(leaves=True, late=2, rounds=60),
    "nobody left in segments": Feature(TWO, leaves=True, late=2, rounds=60),
    "nobody left on pages": Feature({"positions": [1.0, 0.6]}, leaves=True, rounds=60, taken_by=frozenset(RANKING)),
    "withdrawals": Feature(withdraws=True, late=2),
    "pauses": Feature(pauses=True, late=3, taken_by=EVERY - {"reservoir-streams"}),
    "pauses in segments": Feature(
        TWO, pauses=True, withdraws=True, late=3, taken_by=EVERY - {"reservoir-streams"}
    ),
    "pauses on pages": Feature(
        {"positions": [1.0, 0.6]}, pauses=True, late=3, taken_by=frozenset(RANKING - {"reservoir"})
    ),
    "weights": Feature(weights={"ana": (2, 0, 5), "bo": (1, 3)}, taken_by=frozenset(ON_SLOTS)),
    "joiners": Feature({"ends": "at-random"}, joins=True, late=2, taken_by=frozenset(TAKE_JOINERS)),
    "segments": Feature(TWO, late=3, withdraws=True),
    "pages": Feature({"positions": [1.0, 0.6]}, late=3, withdraws=True, taken_by=frozenset(RANKING)),
    "windows on pages that end at random": Feature(
        {"positions": 3, "wait_rounds": 2, "ends": "at-random"}, late=5, taken_by=frozenset(RANKING)
    ),
    "pages and weights": Feature(
        {"positions": 4}, weights={"cy": (3,), "ana": (1, 2, 0)}, late=3,
        taken_by=frozenset({"reservoir", "reservoir-streams"}),
    ),
    "joiners on pages": Feature(
        TWO | {"positions": [1.0, 0.6], "horizon": 200}, joins=True, late=2,
        taken_by=frozenset({"reservoir", "reservoir-streams"}),
    ),
    "batches": Feature(TWO | {"batch": 5}, late=4, taken_by=EVERY - AT_RANDOM - {"reservoir-streams"}),
    "batches of pages": Feature(
        {"positions": [1.0, 0.6], "batch": 2}, late=4, withdraws=True, taken_by=frozenset(RANKING)
    ),
    "pages in segments": Feature(
        TWO | {"positions": {"phone": 2, "desk": [1.0, 0.6, 0.4]}}, late=2, taken_by=frozenset(RANKING)
    ),
}  # fmt: skip


def terms_of(name: str, feature: Feature) -> dict[str, Any]:
    parameters = dict(SMALL.get(name, {}) if feature.parameters is None else feature.parameters)
    if "positions" in feature.terms:
        parameters.pop("threshold", None)
    ends = {"ends": "at-random"} if name in AT_RANDOM else {}
    return {"mechanism": name, "parameters": parameters, "horizon": 4 * feature.rounds, **ends, **feature.terms}


def opened(name: str, feature: Feature) -> LiveMarket:
    market = LiveMarket.open(complete(spec(seed=None, **terms_of(name, feature))), 0, MarketDice(SECRET))
    for agent, count in ARMS.items():
        market.register_agent(agent, 1000)
        for arm, weight in enumerate(feature.weights.get(agent, (1,) * count)):
            market.register_arm(agent, f"{agent}-{arm}", 1000, None if weight == 1 else weight)
    market.start(1000)
    return market


def plain_session(market: LiveMarket, name: str, feature: Feature) -> cp.Session:
    """One like that of the service."""
    terms = terms_of(name, feature)
    options = {key: terms[key] for key in ("ends", "segments", "positions", "batch") if key in terms}
    return cp.session(
        cp.mechanism(name, **terms["parameters"]), ARMS, terms["horizon"], market.session.seed, share=0.4,
        weights=feature.weights or None, **options,
    )  # fmt: skip


def decided(live: cp.Session, segment: str | None, pages: bool) -> list[tuple[Any, ...]]:
    try:
        made = live.decide_slate(segment) if pages else [live.decide(segment)]
    except SessionError:
        return []
    return [(one.id, one.agent, f"{one.agent}-{one.arm}", one.phase) for one in made]


def served(market: LiveMarket, number: int, segment: str | None) -> list[tuple[Any, ...]]:
    try:
        made = market.decide(f"r{number}", 2000 + number, segment)
    except Refused as refusal:
        if refusal.code not in ("paused", "nobody_left", "segment_ended", "horizon_reached"):
            raise
        return []
    shown = zip(made.rounds, made.shown, strict=True) if market.spec.positions else [(made.id, made)]
    return [(decision, one.agent, one.arm, one.phase) for decision, one in shown]


PAUSES = {
    3: ("ana", "ana-0", False), 5: ("bo", None, False), 9: ("ana", "ana-0", True), 10: ("cy", "cy-0", False),
    16: ("bo", None, True),
}  # fmt: skip


def events(feature: Feature, number: int, market: LiveMarket) -> None:
    """Who joins, withdraws, is paused or resumed after this round."""
    if feature.pauses and number in PAUSES:
        agent, arm, resume = PAUSES[number]
        market.pause(agent, arm, resume, "down", 2000 + number)
    if feature.joins and number in (2, 6):
        market.register_agent(f"eve{number}", 2000 + number)
        market.register_arm(f"eve{number}", f"eve{number}-0", 2000 + number)
        market.join(f"eve{number}", 2000 + number)
    if feature.leaves and number == 6:
        for agent, count in ARMS.items():
            for arm in range(count):
                market.withdraw_arm(agent, f"{agent}-{arm}", 2000 + number)
    if feature.withdraws and number in (8, 12):
        market.withdraw_arm("ana" if number == 8 else "bo", "ana-1" if number == 8 else "bo-0", 2000 + number)


def season(name: str, feature: Feature) -> LiveMarket:
    """A market that has played a season, beside one that is restored from snapshots all the time, and a session."""
    market, restored = opened(name, feature), opened(name, feature)
    plain = plain_session(market, name, feature)
    alike = "wait_rounds" not in feature.terms and not feature.joins  # sessions know no windows, and no season's key
    segments, dice, due, refused = list(market.spec.segments) or [None], random.Random(1), [], 0
    defaults: dict[int, Defaulted] = {}
    for number in range(feature.rounds):
        if LONG or number % (feature.rounds // 4) == 0:
            restored = restore(take_snapshot(restored), SECRET)
        segment = dice.choice(segments)
        made = served(market, number, segment)
        assert market.session.probability is None or 0 < market.session.probability <= 1
        assert served(restored, number, segment) == made
        assert not alike or decided(plain, segment, "positions" in feature.terms) == made
        assert not any(market.registry.arm(agent, arm).until for _, agent, arm, _ in made)  # the season of a withdrawal
        refused += not made
        for decision, *_ in made:
            worth = dice.random() if feature.fractions else float(dice.random() < 0.4)
            due.append((number + dice.randint(0, feature.late), decision, worth))
        for one in (market, restored):
            defaults |= {entry.id: entry for entry in one.expire(2000 + number)}
            for _, decision, worth in sorted(each for each in due if each[0] <= number):
                one.reward(f"e{decision}", decision, worth, 2000 + number, defaults.get(decision))
            events(feature, number, one)
        if alike:
            for _, decision, worth in sorted(each for each in due if each[0] <= number):
                plain.reward(decision, worth)
            for agent, arms in market.session.withdrawn.items():
                for arm in arms:
                    plain.withdraw(agent, arm)
            if feature.pauses and number in PAUSES:
                agent, arm, resume = PAUSES[number]
                (plain.resume if resume else plain.pause)(agent, None if arm is None else int(arm[-1]))
        due = [each for each in due if each[0] > number]
    assert restored.chain.head == market.chain.head
    assert bool(refused) <= (feature.pauses or feature.leaves or market.spec.ends == "at-random")
    assert market.session.nobody_left or not feature.leaves
    if alike:
        paid = dict.fromkeys(ARMS, 0)
        for entry in plain.ledger:
            paid[entry.agent] += payment(ticks(entry.reward), 400_000)
        assert {name: market.registry.agents[name].balance for name in ARMS} == paid
    return market


CASES = [(name, kind) for kind, feature in FEATURES.items() for name in sorted(feature.taken_by)]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_service_session_snapshot_and_replay_agree(name, kind):
    market = season(name, FEATURES[kind])
    lines, now = market.chain.take().lines, market.session.to_json()
    ledger = [(line, None) for line in lines]
    repeated = replay(ledger, MarketDice(SECRET))
    assert repeated.unchecked_from is None
    assert repeated.market.session.to_json() == now
    assert snapshot_difference(take_snapshot(market), repeated.market) is None
    assert recover(None, lines, SECRET).session.to_json() == now
    by_others = replay(ledger)  # who do not know its dice
    assert by_others.unchecked_from is not None
    assert by_others.head == market.chain.head


@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for kind, feature in FEATURES.items() for name in sorted(EVERY - feature.taken_by)]
)
def test_what_a_mechanism_does_not_take_it_refuses(name, kind):
    with pytest.raises(
        CloneproofError, match=r"takes? no|no pauses|agents|draws from arms|ends at random|unknown parameter|got|needs"
    ):
        season(name, FEATURES[kind])


def forged(lines, number, kind):
    """Each change of a line that somebody must notice, with its name."""
    entry = json.loads(lines[number])
    told = {("reward", "event"), ("late", "event"), ("late", "value"), ("decision", "request"), ("slate", "request")}
    for name, value in entry.items():
        if name in ("kind", "at", "spec", "segments", "reason") or (kind, name) in told:
            continue
        other = value
        if isinstance(value, bool | int):
            other = value + 1
        elif isinstance(value, float | None):
            other = 0.75 - (value or 0.0) / 2
        elif isinstance(value, list):
            other = value[:-1]
        else:
            other = value[:-1] + ("0" if value[-1] != "0" else "1")
        yield name, [*lines[:number], changed(lines[number], **{name: other}), *lines[number + 1 :]]
    if kind in ("started", "joined"):
        yield "beacon", [*lines[:number], changed(lines[number], beacon="of my choice"), *lines[number + 1 :]]
    twice, left_out = lines[: number + 1] + lines[number:], lines[:number] + lines[number + 1 :]
    for name, part in (("twice", twice), ("left out", left_out)):
        if (kind, name) not in UNNOTICED:
            yield name, [changed(line, n=n) for n, line in enumerate(part, 1)]


UNNOTICED = {("late", "left out"), ("withdrawn", "left out"), ("joined", "left out")}  # where it changes nothing


@pytest.mark.parametrize("kind", FEATURES)
def test_a_settled_season_is_checked_by_everybody_and_no_line_can_be_forged(kind):
    market = season(min(FEATURES[kind].taken_by), FEATURES[kind])
    market.end(3000, "enough")
    market.settle(3000)
    market.open_season(2, 3000)
    with_arms(market, {"zoe": 2}, 3000).start(3000)
    for number in range(1000, 1003):
        served(market, number, next(iter(market.spec.segments), None))
    lines = market.chain.take().lines
    found, by_others = replayed(lines, DICE), replayed(lines, published(lines))
    assert found.market.registry.to_dict() == market.registry.to_dict()
    assert (found.market.decisions, found.market.ends) == (market.decisions, market.ends)
    assert (by_others.head, by_others.market.ends) == (market.chain.head, market.ends)  # the second season runs
    kinds = [json.loads(line)["kind"] for line in lines]
    first = {each: kinds.index(each) for each in kinds[: kinds.index("settled") + 1]}
    forgeries = [(each, name, other) for each, at in first.items() for name, other in forged(lines, at, each)]
    for each, name, other in forgeries if LONG or kind in ("weights", "windows") else forgeries[len(kind) % 3 :: 3]:
        with pytest.raises(ServeError) as found:
            replayed(other, published(other))
        assert each not in ("decision", "slate", "reward", "default") or found.value.n >= first[each] + 1
        assert name in ("twice", "left out") or each not in ("decision", "reward") or found.value.n == first[each] + 1


FAULTS = {
    "pauses that are not told": ("cloneproof.serve.market.live.LiveMarket.pause", "pauses"),
    "withdrawals that are not told": ("cloneproof.Session.withdraw", "withdrawals"),
    "windows that never end": ("cloneproof.serve.market.live.LiveMarket.expire", "windows"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault, monkeypatch):
    place, kind = FAULTS[fault]
    monkeypatch.setattr(place, lambda self, *arguments: [])
    with pytest.raises((AssertionError, CloneproofError)):
        test_service_session_snapshot_and_replay_agree("ucb1", kind)
