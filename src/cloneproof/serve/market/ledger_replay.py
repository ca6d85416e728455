"""Replay: do everything in a ledger again, and compare line by line, bit for bit.

An entry says what was asked (a request, a reward, a registration) and what came of it (whom the mechanism served, what
was paid). Asked again, a market in the same state must answer with the same line. A restart goes the same way from its
last snapshot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby, zip_longest
from typing import NamedTuple, cast

import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.serve.ledger.chain import GENESIS
from cloneproof.serve.ledger.dice import MarketDice
from cloneproof.serve.ledger.entries import (
    AgentRegistered,
    ArmRegistered,
    Decided,
    Defaulted,
    Entry,
    Late,
    Opened,
    Rewarded,
    SeasonOpened,
    Settled,
    Started,
    decode,
    encode,
)
from cloneproof.serve.market.engine import MarketEngine


class Misfit(ServeError):  # noqa: N818 (it names an entry)
    """The first entry of a ledger that does not fit what came before it."""

    def __init__(self, n: int, message: str) -> None:
        super().__init__(message)
        self.n = n


class ReplayedLedger(NamedTuple):
    """A ledger that fits: the market as it left it, and from which entry on only the chain was checked, if so."""

    market: MarketEngine
    entries: int
    unchecked: int | None = None


def repeat_entry(market: MarketEngine, entry: Entry) -> Entry | None:
    """Ask the market again what this entry was the answer to; its answer now."""
    if market.settling and not isinstance(entry, Settled | Defaulted):
        return None
    answer: Entry | None
    if isinstance(entry, Decided):
        answer = market.decide(entry.request, entry.at)
    elif isinstance(entry, Rewarded):
        answer = market.reward(entry.event, entry.id, entry.value, entry.at, None)
    elif isinstance(entry, Defaulted):
        defaults = market.expire(entry.at) if entry.because == "window" else market.settle_some(entry.at, 1)
        answer = next(iter(defaults), None)
    elif isinstance(entry, Late):
        default = Defaulted(0, 0, entry.id, entry.agent, entry.arm, 0.0, 0, "window")  # of which only the arm counts
        answer = market.reward(entry.event, entry.id, entry.value, entry.at, default)
    elif isinstance(entry, AgentRegistered):
        answer = market.register_agent(entry.agent, entry.at)
    elif isinstance(entry, ArmRegistered):
        answer = market.register_arm(entry.agent, entry.arm, entry.at)
    elif isinstance(entry, Started):
        answer = market.start(entry.at)
    elif isinstance(entry, Settled):
        answer = market.settle(entry.at)
    elif isinstance(entry, SeasonOpened):
        answer = market.open_season(entry.season, entry.at)
    else:
        answer = None  # a second opening
    return answer


def repeat_entries(market: MarketEngine, entries: Sequence[Entry]) -> Iterator[Entry | None]:
    """The market's answers to all of these, as `repeat_entry` gives them, decisions and rewards in bulk."""
    for (kind, at), group in groupby(entries, lambda entry: (type(entry), entry.at)):
        run = list(group)
        if len(run) == 1 or market.settling or kind not in (Decided, Rewarded):
            yield from (repeat_entry(market, entry) for entry in run)
        elif kind is Decided:
            decided, refusal = market.decide_many([entry.request for entry in cast("list[Decided]", run)], at)
            yield from decided
            if refusal is not None:
                raise refusal
        else:
            rewards = [(entry.event, entry.id, entry.value) for entry in cast("list[Rewarded]", run)]
            yield from market.reward_many(rewards, at)


def advance(market: MarketEngine, entries: Sequence[Entry]) -> None:
    """Repeat stored entries, and stop where one comes out otherwise: what is appended then would not fit."""
    for entry, answer in zip_longest(entries, repeat_entries(market, entries)):
        if answer != entry:
            raise ServeError(
                f"market {market.spec.market!r}: entry {entry.n} comes out otherwise here; replay the ledger"
            )


def replay(
    lines: Iterable[tuple[bytes, bytes | None]],
    dice: MarketDice | None = None,
    check: Callable[[MarketEngine], None] | None = None,
) -> ReplayedLedger:
    """Replay a whole ledger, given as lines with the hash stored after each (None where none is stored there).

    Where the dice of a season are not known (it runs, and the secret is not at hand), decisions from its start on
    cannot be done again; only the chain of what follows is checked then. `check` is asked after every entry.

    Besides every decision and payment, it checks that each event, each request and each late reward occurs once, and
    that late rewards follow a default. Memory grows with the number of entries for that check alone.
    """
    market: MarketEngine | None = None
    number = 0
    unchecked: int | None = None
    seen: set[bytes] = set()
    for number, (line, entry) in enumerate(checked_entries(lines), 1):
        if entry.n != number:
            raise Misfit(number, f"entry {number}: expected the number {number}, got {entry.n}")
        if unchecked is not None:
            continue
        if market is None:
            market = _open(entry, line, number, dice)
        elif isinstance(entry, Started) and not market.knows_dice:
            unchecked = number
            continue
        else:
            _check_answer(market, entry, line, number)
        _check_keys(entry, seen, number)
        market.chain.take()
        if check is not None:
            check(market)
    if market is None:
        raise ServeError("expected a ledger with at least its opening entry, got an empty one; name another market")
    return ReplayedLedger(market, number, unchecked)


def checked_entries(lines: Iterable[tuple[bytes, bytes | None]]) -> Iterator[tuple[bytes, Entry]]:
    """The lines of a ledger with their entries, as long as the hash chain holds."""
    hash_now = GENESIS
    for number, (line, stored) in enumerate(lines, 1):
        hash_now = sha256(hash_now + line).digest()
        if stored is not None and stored != hash_now:
            raise Misfit(
                number, f"entry {number}: the hash chain is broken here; a line was changed, dropped or inserted"
            )
        try:
            entry: Entry = decode(line)
        except msgspec.MsgspecError as problem:
            raise Misfit(number, f"entry {number}: not an entry of a ledger ({problem})") from None
        yield line, entry


def _open(entry: Entry, line: bytes, number: int, dice: MarketDice | None) -> MarketEngine:
    if not isinstance(entry, Opened):
        raise Misfit(number, f"entry {number}: expected the opening of the market, got {encode(entry).decode()[:80]}")
    market = MarketEngine.open(entry.spec, entry.at, dice)
    again = encode(Opened(1, entry.at, entry.spec, market.dice.commitment(1)))
    if again != line:
        raise Misfit(number, f"entry {number}: the ledger has {line.decode()}, the replay gives {again.decode()}")
    return market


def _check_answer(market: MarketEngine, entry: Entry, line: bytes, number: int) -> None:
    try:
        answer = repeat_entry(market, entry)
    except Refused as refusal:
        raise Misfit(number, f"entry {number}: the market refuses it now: {refusal.message}") from None
    again = b"nothing" if answer is None else encode(answer)
    if again != line:
        raise Misfit(number, f"entry {number}: the ledger has {line.decode()}, the replay gives {again.decode()}")


def _check_keys(entry: Entry, seen: set[bytes], number: int) -> None:
    for key, seen_before in _key_conditions(entry):
        digest = sha256(key.encode()).digest()[:12]
        if (digest in seen) is not seen_before:
            what = "has no default before it" if seen_before else "occurs for the second time"
            raise Misfit(number, f"entry {number}: {key!r} {what}")
        seen.add(digest)


def _key_conditions(entry: Entry) -> Iterator[tuple[str, bool]]:
    """What must be new at this entry (False) and what must have been there (True)."""
    if isinstance(entry, Decided):
        yield f"request {entry.request}", False
    elif isinstance(entry, Rewarded | Late):
        yield f"event {entry.event}", False
    if isinstance(entry, Defaulted):
        yield f"default of {entry.id} for {entry.agent} {entry.arm}", False
    if isinstance(entry, Late):
        yield f"default of {entry.id} for {entry.agent} {entry.arm}", True
        yield f"late reward of {entry.id}", False
