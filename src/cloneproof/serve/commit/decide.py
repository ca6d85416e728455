"""Decisions for requests: one each, and the same again for a request that comes again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cloneproof.errors import Refused
from cloneproof.serve.api.messages import DecisionReply, ItemError
from cloneproof.serve.commit.markets import KnownEntries, ServedMarkets
from cloneproof.serve.ledger.entries import Decided, Entry, keys


@dataclass(frozen=True, slots=True)
class Decide:
    """Decisions for requests; a request that was answered before gets the same answer.

    Where the time of its group is over, there are replies to the first requests only.
    """

    market: str
    requests: Sequence[str]

    @property
    def size(self) -> int:
        return len(self.requests)

    def part(self, start: int, most: int) -> Decide:
        return Decide(self.market, self.requests[start : start + most])

    def join(self, others: Sequence[Decide]) -> Decide:
        """One command for this and others on the same market; its replies follow on each other."""
        return Decide(self.market, [*self.requests, *(request for other in others for request in other.requests)])

    def wanted_keys(self, markets: ServedMarkets) -> tuple[int, list[str]] | None:
        number = markets.numbers.get(self.market)
        return None if number is None else (number, [f"q:{request}" for request in self.requests])

    def run(self, markets: ServedMarkets, known: KnownEntries, now: int) -> list[DecisionReply | ItemError]:
        market, seen = markets.market(self.market), known[markets.numbers[self.market]]
        fresh = [request for request in dict.fromkeys(self.requests) if f"q:{request}" not in seen]
        decided, defaults, refusal = market.decide_in_windows(fresh, now, markets.out_of_time)
        seen |= {key: entry for entry in defaults for key in keys(entry)}
        if len(decided) == len(self.requests):
            replies: list[DecisionReply | ItemError] = [_reply(entry, False) for entry in decided]
        else:
            replies = list(_replies_in_order(self.requests, seen, decided, refusal))
        seen |= {f"q:{entry.request}": entry for entry in decided}
        return replies


def _reply(entry: Decided, again: bool) -> DecisionReply:
    return DecisionReply(200, entry.id, entry.agent, entry.arm, entry.phase, entry.probability, entry.request, again)


def _replies_in_order(
    requests: Sequence[str], seen: dict[str, Entry], decided: Sequence[Decided], refusal: Refused | None
) -> Iterator[DecisionReply | ItemError]:
    """A reply for each request, where some were answered before, come twice or are refused."""
    new, answered = {entry.request: entry for entry in decided}, set[str]()
    for request in requests:
        entry = seen.get(f"q:{request}") or new.get(request)
        if entry is None:
            if refusal is None:
                return  # out of time
            yield ItemError(refusal.status, refusal.code, refusal.message)
            continue
        assert type(entry) is Decided
        yield _reply(entry, request not in new or request in answered)
        answered.add(request)
