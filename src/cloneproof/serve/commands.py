"""What can be asked of the house, one class each: which old entries it needs to see, and what it does.

A command runs between two commits, so nothing happens at the same time. Its reply is sent after the commit. What came
in singly is done together: whoever has no reply yet cannot tell in which order calls were taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cloneproof.serve.entries import Decided, Defaulted, Entry, Late, Rewarded
from cloneproof.serve.house import House, Known
from cloneproof.serve.market_engine import MarketEngine
from cloneproof.serve.messages import DecisionReply, ItemError, RewardItem, RewardReply
from cloneproof.serve.protocol import Refused


class Command(Protocol):
    """Something to be done between two commits."""

    @property
    def size(self) -> int:
        """How many items it has."""

    def wanted(self, house: House) -> tuple[int, Sequence[str]] | None:
        """The market and the keys whose old entries must be known."""

    def run(self, house: House, known: Known, now: int) -> Any:  # noqa: ANN401
        """Do it; the reply."""


@dataclass(frozen=True, slots=True)
class Do:
    """Anything that needs no old entries."""

    work: Callable[[House, int], Any]
    size = 1

    def wanted(self, house: House) -> None:
        """None."""

    def run(self, house: House, known: Known, now: int) -> Any:  # noqa: ANN401
        return self.work(house, now)


@dataclass(frozen=True, slots=True)
class Decide:
    """Decisions for requests; a request that was answered before gets the same answer."""

    market: str
    requests: Sequence[str]

    @property
    def size(self) -> int:
        return len(self.requests)

    def joined(self, others: Sequence[Decide]) -> Decide:
        """One command for this and others on the same market; its replies follow on each other."""
        return Decide(self.market, [*self.requests, *(one for other in others for one in other.requests)])

    def wanted(self, house: House) -> tuple[int, list[str]] | None:
        number = house.numbers.get(self.market)
        return None if number is None else (number, [f"q:{request}" for request in self.requests])

    def run(self, house: House, known: Known, now: int) -> list[DecisionReply | ItemError]:
        market, seen = house.market(self.market), known[house.numbers[self.market]]
        fresh = [request for request in dict.fromkeys(self.requests) if f"q:{request}" not in seen]
        made, refusal = market.decide_many(fresh, now)
        if len(made) == len(self.requests):
            replies: list[DecisionReply | ItemError] = [_decided(entry, False) for entry in made]
        else:
            replies = list(_in_order(self.requests, seen, made, refusal))
        seen |= {f"q:{entry.request}": entry for entry in made}
        return replies


def _decided(entry: Decided, again: bool) -> DecisionReply:
    return DecisionReply(
        200, entry.id, entry.agent, entry.arm, entry.phase, entry.probability, entry.request, again
    )  # fmt: skip


def _in_order(
    requests: Sequence[str], seen: dict[str, Entry], made: Sequence[Decided], refusal: Refused | None
) -> Iterator[DecisionReply | ItemError]:
    """A reply for each request, where some were answered before, come twice or are refused."""
    new, told = {entry.request: entry for entry in made}, set[str]()
    for request in requests:
        entry = seen.get(f"q:{request}") or new.get(request)
        if entry is None:
            assert refusal is not None
            yield ItemError(refusal.status, refusal.code, refusal.message)
            continue
        assert type(entry) is Decided
        yield _decided(entry, request not in new or request in told)
        told.add(request)


@dataclass(frozen=True, slots=True)
class Reward:
    """Rewards of decisions; an event that was taken before is told apart by what it says."""

    market: str
    items: Sequence[RewardItem]

    @property
    def size(self) -> int:
        return len(self.items)

    def joined(self, others: Sequence[Reward]) -> Reward:
        """One command for this and others on the same market; its replies follow on each other."""
        return Reward(self.market, [*self.items, *(one for other in others for one in other.items)])

    def wanted(self, house: House) -> tuple[int, list[str]] | None:
        number = house.numbers.get(self.market)
        if number is None:
            return None
        market, names = house.markets[self.market], [f"e:{item.event_id}" for item in self.items]
        if not market.awaits_all({item.decision for item in self.items}):
            for item in self.items:
                if not market.awaits(item.decision):
                    names += f"d:{item.decision}", f"l:{item.decision}"
        return number, names

    def run(self, house: House, known: Known, now: int) -> list[RewardReply | ItemError]:
        market, seen, items = house.market(self.market), known[house.numbers[self.market]], self.items
        plain = _plain(market, items, seen)
        made = market.reward_many([(items[at].event_id, items[at].decision, items[at].value) for at in plain], now)
        seen |= {f"e:{entry.event}": entry for entry in made}
        recorded: list[RewardReply | ItemError] = [RewardReply(200, "recorded", one.id, one.paid) for one in made]
        if len(recorded) == len(items):
            return recorded
        replies = dict(zip(plain, recorded, strict=True))
        for at, item in enumerate(items):
            if at not in replies:
                try:
                    replies[at] = _rewarded(market, item, seen, now)
                except Refused as refusal:
                    replies[at] = ItemError(refusal.status, refusal.code, refusal.message)
        return [replies[at] for at in range(len(items))]


def _plain(market: MarketEngine, items: Sequence[RewardItem], seen: dict[str, Entry]) -> Sequence[int]:
    """The positions of items about which there is no question: they can be entered at once, before the others.

    An item that shares its event or its decision with one before it is for later, so that order decides between them.
    """
    fits = {value: market.family.allows(value) for value in {item.value for item in items}}
    events, decisions = {f"e:{item.event_id}" for item in items}, {item.decision for item in items}
    apart = len(events) == len(decisions) == len(items) and seen.keys().isdisjoint(events)
    if apart and all(fits.values()) and market.awaits_all(decisions):
        return range(len(items))
    events.clear()
    decisions.clear()
    plain = []
    for at, item in enumerate(items):
        event, decision = f"e:{item.event_id}", item.decision
        alone = event not in events and decision not in decisions
        if alone and fits[item.value] and market.awaits(decision) and event not in seen:
            plain.append(at)
        events.add(event)
        decisions.add(decision)
    return plain


def _rewarded(market: MarketEngine, item: RewardItem, seen: dict[str, Entry], now: int) -> RewardReply:
    key, decision, value = f"e:{item.event_id}", item.decision, item.value
    old = seen.get(key)
    if old is not None:
        assert isinstance(old, Rewarded | Late)
        if (old.id, old.value) != (decision, value):
            raise Refused(
                409,
                "event_conflict",
                f"event {item.event_id!r} was taken as reward {old.value!r} of decision {old.id}, "
                f"got {value!r} of {decision}; a reward is final",
            )
        return RewardReply(200, "duplicate", decision, old.paid if type(old) is Rewarded else 0)
    defaulted = None
    if not market.awaits(decision):
        found = seen.get(f"d:{decision}")
        if found is not None and f"l:{decision}" not in seen:
            assert isinstance(found, Defaulted)
            defaulted = found
    entry = market.reward(item.event_id, decision, value, now, defaulted)
    seen[key] = entry
    if type(entry) is Rewarded:
        return RewardReply(200, "recorded", decision, entry.paid)
    seen[f"l:{decision}"] = entry
    return RewardReply(200, "late", decision, 0)


def merged(commands: Sequence[Command]) -> Iterator[tuple[Command, list[int]]]:
    """The same commands with decisions and rewards of a market taken together, and whose they are, by position."""
    places: dict[tuple[type, str], list[int]] = {}
    for at, command in enumerate(commands):
        if isinstance(command, Decide | Reward):
            places.setdefault((type(command), command.market), []).append(at)
        else:
            yield from _joined(commands, places)
            places.clear()
            yield command, [at]
    yield from _joined(commands, places)


def _joined(commands: Sequence[Any], places: Mapping[Any, list[int]]) -> Iterator[tuple[Command, list[int]]]:
    for positions in places.values():
        first, *others = (commands[at] for at in positions)
        yield (first.joined(others) if others else first), positions
