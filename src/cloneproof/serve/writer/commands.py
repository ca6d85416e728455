"""Commands: what callers can ask of the markets, which old entries a command needs, and what it does.

A command runs between two transactions, so nothing runs concurrently. Its reply is sent when its effects are durable. A
command that cannot be done in one group returns an `Unfinished` instead, and the rest of it runs in the next group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Final, Generic, Self, TypeVar

from cloneproof.errors import Refused
from cloneproof.serve.market.entries import Decided, Known, Made, Rewarded, SlateDecided, by_key
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.registry import RefusedSegment
from cloneproof.serve.messages import DecisionReply, DecisionRequest, ItemError, RewardItem, RewardReply, SlateReply
from cloneproof.serve.writer.markets import KnownEntries, ServedMarkets

T = TypeVar("T")
Reply = DecisionReply | SlateReply | ItemError
DEFAULTS_AT_ONCE: Final = 200  # of a season that is settled, in one group


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Stands in for the reply of a command that waits for the next group, wholly or with the rest of its items.

    There it runs before all other calls of its market. `replies` are those to its first items, which are done;
    a command without any, such as a settlement, is not divided and makes all later calls of its market wait too.
    """

    replies: Sequence[Any] = ()
    market_first: bool = False  # whether its market is served first then, because the time of this group was over


@dataclass(frozen=True, slots=True)
class Command:
    """Something to do between two transactions; `market` is empty if it concerns no existing market."""

    market: str

    @property
    def size(self) -> int:
        return 1

    def rest(self, done: int) -> Self:
        """Return the command for its items after the first `done`; itself if it has no items."""
        return self

    def wanted(self, markets: ServedMarkets) -> list[str]:
        """Return the keys whose old entries must be known."""
        return []

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        """Run the command; return the reply, or what is `Unfinished`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Do(Command):
    """Anything that needs no old entries."""

    work: Callable[[ServedMarkets, int], Any]

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        return self.work(markets, now)


@dataclass(frozen=True, slots=True)
class Settle(Command):
    """Settle a market's season; the reply is a view of the market then.

    A season with many missing rewards is settled over several groups, so that other markets continue meanwhile. Calls
    of this market wait. After a crash in between, the next start continues the settlement.
    """

    view: Callable[[LiveMarket], Any]
    reason: str | None = None  # of an end before the last round, which needs one

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> Any:  # noqa: ANN401
        market = markets.market(self.market)
        if market.session is not None and not market.over and not market.settling:
            if self.reason is None:
                raise Refused(
                    409, "not_over", f"season {market.season} is not over; give a reason, which agents will read"
                )
            market.end(now, self.reason)
        entries = market.settle_some(now, DEFAULTS_AT_ONCE)
        known[markets.numbers[self.market]] |= by_key(entries)  # for rewards in the same group
        if len(entries) == DEFAULTS_AT_ONCE:
            return Unfinished()
        market.settle(now)
        return self.view(market)


@dataclass(frozen=True, slots=True)
class Batch(Command, Generic[T]):
    """Items handled one after the other, with a reply for each."""

    items: Sequence[T]

    @property
    def size(self) -> int:
        return len(self.items)

    def rest(self, done: int) -> Self:
        return type(self)(self.market, self.items[done:]) if done else self

    def join(self, others: Sequence[Self]) -> Self:
        """Join this and others on the same market into one command; replies keep the order."""
        return type(self)(self.market, [*self.items, *(item for other in others for item in other.items)])


class Decide(Batch[DecisionRequest]):
    """Decisions for requests; a known request gets the same answer.

    If its time is over after some of the requests, and always after at least one, the rest is unfinished.
    """

    __slots__ = ()
    pages: ClassVar[bool] = False  # of several places

    def wanted(self, markets: ServedMarkets) -> list[str]:
        return [f"q:{item.request_id}" for item in self.items]

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> list[Reply] | Unfinished:
        market, seen = markets.market(self.market), known[markets.numbers[self.market]]
        several = market.spec.positions is not None
        if self.pages != several:
            wanted, got = ("slates", "decisions") if several else ("decisions", "slates")
            words = f"expected a call of {wanted}, as the terms have {'' if several else 'no '}positions, got {got}"
            return [ItemError(409, "positions", f"{words}; use that path") for _ in self.items]
        rest, decided, refused = dict[str, str | None](), list[Made](), dict[str, Refused]()
        for item in self.items:
            if f"q:{item.request_id}" not in seen:
                rest.setdefault(item.request_id, item.segment)
        while rest:
            made, defaults, refusal = market.decide_in_windows(list(rest.items()), now, markets.out_of_time)
            seen |= by_key(defaults)
            decided += made
            if refusal is None:
                break
            rest = dict(islice(rest.items(), len(made), None))
            _, segment = next(iter(rest.items()))
            of_segment = isinstance(refusal, RefusedSegment)  # those in other segments go on
            refused |= {request: refusal for request, own in rest.items() if own == segment or not of_segment}
            rest = {request: own for request, own in rest.items() if request not in refused}
        if len(decided) == len(self.items):
            replies: list[Reply] = [_reply(entry, False) for entry in decided]
        else:
            replies = list(_replies_in_order(self.items, seen, decided, refused))
        seen |= by_key(decided)
        return replies if len(replies) == len(self.items) else Unfinished(replies)


class DecideSlates(Decide):
    """Pages of several places for requests, likewise."""

    __slots__ = ()
    pages: ClassVar[bool] = True


def _reply(entry: Made, again: bool) -> DecisionReply | SlateReply:
    if not isinstance(entry, Decided):
        return slate_reply(entry, again)
    return DecisionReply(
        200, entry.id, entry.agent, entry.arm, entry.phase, entry.probability, entry.request, again, entry.segment
    )


def slate_reply(entry: SlateDecided, again: bool) -> SlateReply:
    """Return the reply to the request of a page."""
    request, segment = entry.request, entry.segment
    made = [
        DecisionReply(200, number, one.agent, one.arm, one.phase, one.probability, request, again, segment, one.place)
        for number, one in zip(entry.rounds, entry.shown, strict=True)
    ]
    empty = sorted({*range(1, entry.places + 1)} - {one.place for one in entry.shown})
    return SlateReply(200, request, again, made, empty, segment)


def _replies_in_order(
    items: Sequence[DecisionRequest], seen: Known, decided: Sequence[Made], refused: Mapping[str, Refused]
) -> Iterator[Reply]:
    """Reply to each request, if some were answered before, occur twice or are refused."""
    new, answered = {entry.request: entry for entry in decided}, set[str]()
    for request in (item.request_id for item in items):
        entry = seen.get(f"q:{request}") or new.get(request)
        if entry is None:
            if (refusal := refused.get(request)) is None:
                return  # out of time
            yield ItemError(refusal.status, refusal.code, refusal.message)
            continue
        yield _reply(entry, request not in new or request in answered)
        answered.add(request)


class Reward(Batch[RewardItem]):
    """Rewards of decisions; a known event is a duplicate, or a conflict if its content differs.

    Those entered in a group are known to the rest of it, as r:decision with the request that they named.
    """

    __slots__ = ()

    def wanted(self, markets: ServedMarkets) -> list[str]:
        market = markets.by_name[self.market]
        late = [item for item in self.items if not market.awaits(item.decision)]
        of_late = (key for one in late for key in (f"d:{one.decision}", f"l:{one.decision}", f"q:{one.request_id}"))
        return [*(f"e:{item.event_id}" for item in self.items), *of_late]

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> list[RewardReply | ItemError]:
        market, seen, items = markets.market(self.market), known[markets.numbers[self.market]], self.items
        simple = _simple_positions(market, items, seen)
        entries = market.reward_many([(items[at].event_id, items[at].decision, items[at].value) for at in simple], now)
        seen |= by_key(entries)
        replies: dict[int, RewardReply | ItemError] = {
            at: _rewarded(entry) for at, entry in zip(simple, entries, strict=True)
        }
        seen |= {f"r:{items[at].decision}": items[at].request_id for at in simple}
        for at, item in enumerate(items):
            if at not in replies:
                try:
                    replies[at] = _enter_item(market, item, seen, now)
                except Refused as refusal:
                    replies[at] = ItemError(refusal.status, refusal.code, refusal.message)
        return [replies[at] for at in range(len(items))]


def _simple_positions(market: LiveMarket, items: Sequence[RewardItem], seen: Known) -> Sequence[int]:
    """Return the positions of items that can be entered at once, before the others.

    An item that shares its event or decision with an earlier one is left for later, so that their order decides.
    """
    allowed = {value: market.allows(value) for value in {item.value for item in items}}
    events, decisions, simple = set[str](), set[int](), []
    for at, item in enumerate(items):
        event, decision = item.event_id, item.decision
        first = event not in events and decision not in decisions
        if first and allowed[item.value] and market.asked(decision, item.request_id) and f"e:{event}" not in seen:
            simple.append(at)
        events.add(event)
        decisions.add(decision)
    return simple


def _fits(market: LiveMarket, item: RewardItem, seen: Known) -> bool:
    """Return whether a decision was made for the request that its reward names."""
    decision, request = item.decision, item.request_id
    if market.awaits(decision):
        return market.asked(decision, request)
    if (default := seen.get(f"d:{decision}")) is not None:
        return bool(default.request == request)
    if (rewarded := seen.get(f"r:{decision}")) is not None:  # in this group
        return bool(rewarded == request)
    if (made := seen.get(f"q:{request}")) is not None:
        return decision in (made.rounds if isinstance(made, SlateDecided) else (made.id,))
    return any(type(entry) is Rewarded and entry.id == decision for entry in seen.values())  # by others, just now


def _enter_item(market: LiveMarket, item: RewardItem, seen: Known, now: int) -> RewardReply:
    decision, value = item.decision, item.value
    old = seen.get(f"e:{item.event_id}")
    if old is not None:
        if (old.id, old.value) != (decision, value):
            raise Refused(
                409,
                "event_conflict",
                f"event {item.event_id!r} was taken as reward {old.value!r} of decision {old.id}, "
                f"got {value!r} of {decision}; a reward is final",
            )
        return RewardReply(200, "duplicate", decision, old.paid if type(old) is Rewarded else 0)
    awaits, default = market.awaits(decision), seen.get(f"d:{decision}")
    if 1 <= decision <= market.decisions and not _fits(market, item, seen):
        raise Refused(
            409,
            "other_request",
            f"decision {decision} was made for another request than {item.request_id!r}; if the service was restored "
            "from a backup, yours is lost",
        )
    default = None if awaits or f"l:{decision}" in seen else default
    entry = market.reward(item.event_id, decision, value, now, default)
    seen |= by_key([entry])
    if type(entry) is Rewarded:
        seen[f"r:{decision}"] = item.request_id
        return _rewarded(entry)
    return RewardReply(200, "late", decision, 0)


def _rewarded(entry: Rewarded) -> RewardReply:
    return RewardReply(200, "late" if entry.late else "recorded", entry.id, entry.paid)
