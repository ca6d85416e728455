"""Rewards of decisions: each event counts once; sent again, it is a duplicate or a conflict by what it says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cloneproof.errors import Refused
from cloneproof.serve.api.messages import ItemError, RewardItem, RewardReply
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.ledger.entries import Defaulted, Entry, Late, Rewarded
from cloneproof.serve.market.engine import MarketEngine


@dataclass(frozen=True, slots=True)
class Reward:
    """Rewards of decisions; an event that was taken before is a duplicate, or a conflict if it says something else."""

    market: str
    items: Sequence[RewardItem]

    @property
    def size(self) -> int:
        return len(self.items)

    def part(self, start: int, most: int) -> Reward:
        return Reward(self.market, self.items[start : start + most])

    def join(self, others: Sequence[Reward]) -> Reward:
        """One command for this and others on the same market; its replies follow on each other."""
        return Reward(self.market, [*self.items, *(item for other in others for item in other.items)])

    def wanted_keys(self, markets: ServedMarkets) -> tuple[int, list[str]] | None:
        number = markets.numbers.get(self.market)
        if number is None:
            return None
        market, names = markets.by_name[self.market], [f"e:{item.event_id}" for item in self.items]
        if not market.awaits_all({item.decision for item in self.items}):
            for item in self.items:
                if not market.awaits(item.decision):
                    names += f"d:{item.decision}", f"l:{item.decision}"
        return number, names

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> list[RewardReply | ItemError]:
        market, seen, items = markets.market(self.market), known[markets.numbers[self.market]], self.items
        simple = _simple_positions(market, items, seen)
        entries = market.reward_many([(items[at].event_id, items[at].decision, items[at].value) for at in simple], now)
        seen |= {f"e:{entry.event}": entry for entry in entries}
        recorded: list[RewardReply | ItemError] = [
            RewardReply(200, "recorded", entry.id, entry.paid) for entry in entries
        ]
        if len(recorded) == len(items):
            return recorded
        replies = dict(zip(simple, recorded, strict=True))
        for at, item in enumerate(items):
            if at not in replies:
                try:
                    replies[at] = _enter_item(market, item, seen, now)
                except Refused as refusal:
                    replies[at] = ItemError(refusal.status, refusal.code, refusal.message)
        return [replies[at] for at in range(len(items))]


def _simple_positions(market: MarketEngine, items: Sequence[RewardItem], seen: dict[str, Entry]) -> Sequence[int]:
    """The positions of items about which there is no question: they can be entered at once, before the others.

    An item that shares its event or its decision with one before it is for later, so that order decides between them.
    """
    allowed = {value: market.family.allows(value) for value in {item.value for item in items}}
    events, decisions = {f"e:{item.event_id}" for item in items}, {item.decision for item in items}
    distinct = len(events) == len(decisions) == len(items) and seen.keys().isdisjoint(events)
    if distinct and all(allowed.values()) and market.awaits_all(decisions):
        return range(len(items))
    events.clear()
    decisions.clear()
    simple = []
    for at, item in enumerate(items):
        event, decision = f"e:{item.event_id}", item.decision
        first = event not in events and decision not in decisions
        if first and allowed[item.value] and market.awaits(decision) and event not in seen:
            simple.append(at)
        events.add(event)
        decisions.add(decision)
    return simple


def _enter_item(market: MarketEngine, item: RewardItem, seen: dict[str, Entry], now: int) -> RewardReply:
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
    if not market.awaits(decision) and f"l:{decision}" not in seen:
        default = seen.get(f"d:{decision}")
        assert default is None or isinstance(default, Defaulted)
        defaulted = default
    entry = market.reward(item.event_id, decision, value, now, defaulted)
    seen[key] = entry
    if type(entry) is Rewarded:
        return RewardReply(200, "recorded", decision, entry.paid)
    seen[f"l:{decision}"] = entry
    return RewardReply(200, "late", decision, 0)
