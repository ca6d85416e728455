"""What can be asked of the house, one class each: which old entries it needs to see, and what it does.

A command runs between two commits, so nothing happens at the same time. Its reply is sent after the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from cloneproof.serve.entries import Decided, Defaulted, Entry, Late, Rewarded
from cloneproof.serve.house import House, Known
from cloneproof.serve.market_engine import MarketEngine
from cloneproof.serve.messages import DecisionReply, ItemError, RewardItem, RewardReply
from cloneproof.serve.protocol import Refused


class Command(Protocol):
    """Something to be done between two commits."""

    def wanted(self, house: House) -> tuple[int, Sequence[str]] | None:
        """The market and the keys whose old entries must be known."""

    def run(self, house: House, known: Known, now: int) -> Any:  # noqa: ANN401
        """Do it; the reply."""


@dataclass(frozen=True, slots=True)
class Do:
    """Anything that needs no old entries."""

    work: Callable[[House, int], Any]

    def wanted(self, house: House) -> None:
        """None."""

    def run(self, house: House, known: Known, now: int) -> Any:  # noqa: ANN401
        return self.work(house, now)


@dataclass(frozen=True, slots=True)
class Decide:
    """Decisions for requests; a request that was answered before gets the same answer."""

    market: str
    requests: Sequence[str]

    def wanted(self, house: House) -> tuple[int, list[str]] | None:
        number = house.numbers.get(self.market)
        return None if number is None else (number, [f"q:{request}" for request in self.requests])

    def run(self, house: House, known: Known, now: int) -> list[DecisionReply | ItemError]:
        market = house.market(self.market)
        seen, decide = known[house.numbers[self.market]], market.decide
        replies: list[DecisionReply | ItemError] = []
        for request in self.requests:
            key = f"q:{request}"
            old = seen.get(key)
            try:
                entry = decide(request, now) if old is None else old
            except Refused as refusal:
                replies.append(ItemError(refusal.status, refusal.code, refusal.message))
                continue
            assert type(entry) is Decided
            seen[key] = entry
            replies.append(
                DecisionReply(
                    200, entry.id, entry.agent, entry.arm, entry.phase, entry.probability, request, old is not None
                )
            )
        return replies


@dataclass(frozen=True, slots=True)
class Reward:
    """Rewards of decisions; an event that was taken before is told apart by what it says."""

    market: str
    items: Sequence[RewardItem]

    def wanted(self, house: House) -> tuple[int, list[str]] | None:
        number = house.numbers.get(self.market)
        if number is None:
            return None
        market, names = house.markets[self.market], []
        for item in self.items:
            names.append(f"e:{item.event_id}")
            if not market.awaits(item.decision):
                names += f"d:{item.decision}", f"l:{item.decision}"
        return number, names

    def run(self, house: House, known: Known, now: int) -> list[RewardReply | ItemError]:
        market = house.market(self.market)
        seen = known[house.numbers[self.market]]
        replies: list[RewardReply | ItemError] = []
        for item in self.items:
            try:
                replies.append(_rewarded(market, item, seen, now))
            except Refused as refusal:
                replies.append(ItemError(refusal.status, refusal.code, refusal.message))
        return replies


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
