"""Replay and snapshots: rebuild a market from its ledger, from the beginning or from a snapshot.

An entry records a call (a request, a reward, a registration) and its result (whom the mechanism served, what was paid).
Given the same call, a market in the same state must answer with the same line, bit for bit. A snapshot is the whole
state at one entry, so that a start need not read the whole ledger. It is derived, can be dropped, and carries the head
of the ledger at that entry with a digest; if the digest is wrong, a start reads the ledger instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby, islice, zip_longest
from typing import Any, Final, NamedTuple, cast

import msgspec

from cloneproof.errors import Refused, ServeError
from cloneproof.mechanisms import Session
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.dice import MarketDice
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.terms import MarketSpec, public_terms

_AT_ONCE: Final = 1000  # entries
_PLAIN: Final = ("season", "state", "at", "before", "ends", "phase", "late", "defaulted")  # of a market in a snapshot


class Misfit(ServeError):  # noqa: N818 (it names an entry)
    """Raised for the first entry of a ledger that does not fit what came before it."""

    def __init__(self, n: int, message: str) -> None:
        super().__init__(message)
        self.n = n


class SnapshotError(ServeError):
    """Raised for a snapshot that cannot be read: the ledger has everything."""


class SettledSeason(NamedTuple):
    """Length of a settled season, its longest possible length, and why it was ended before, if that is recorded."""

    season: int
    rounds: int
    last: int
    reason: str | None


class ReplayedLedger(NamedTuple):
    """A ledger that fits: its market, where it ends, its settled seasons, and what was withdrawn and paused.

    The dice of a season that runs are published when it is settled. Who does not know them has its market as it was
    before the start, which is entry `unchecked_from`.
    """

    market: LiveMarket
    head: ledger.Head
    seasons: list[SettledSeason]
    acts: list[ledger.ArmWithdrawn | ledger.ArmPaused]
    unchecked_from: int | None = None


def _decide(market: LiveMarket, entry: ledger.Made) -> ledger.Entry:
    return market.decide(entry.request, entry.at, entry.segment)


def _find_nobody(market: LiveMarket, entry: ledger.NobodyLeft) -> ledger.Entry | None:
    decided, refusal = market.decide_many((("", entry.segment),), entry.at)
    if refusal is not None and refusal.code != "nobody_left":
        raise refusal
    return None if decided else ledger.NobodyLeft(market.chain.n, market.at, market.season, entry.segment)


def _default(market: LiveMarket, entry: ledger.Defaulted) -> ledger.Entry | None:
    defaults = market.expire(entry.at, 1) if entry.because == "window" else market.settle_some(entry.at, 1)
    return defaults[0] if defaults else None


def _reward(market: LiveMarket, entry: ledger.Rewarded | ledger.Late) -> ledger.Entry:
    default = None  # of which only the arm counts
    if isinstance(entry, ledger.Late):
        default = ledger.Defaulted(0, 0, entry.id, entry.agent, entry.arm, 0.0, 0, "window", "")
    return market.reward(entry.event, entry.id, entry.value, entry.at, default)


_AGAIN: Final[dict[type, Callable[[LiveMarket, Any], ledger.Entry | None]]] = {
    ledger.Opened: lambda market, entry: None,  # a second opening
    ledger.AgentRegistered: lambda market, entry: market.register_agent(entry.agent, entry.at),
    ledger.ArmRegistered: lambda market, entry: market.register_arm(
        entry.agent, entry.arm, entry.at, entry.weight, entry.title
    ),
    ledger.ArmWithdrawn: lambda market, entry: market.withdraw_arm(
        entry.agent, entry.arm, entry.at, entry.by, entry.reason
    ),
    ledger.ArmPaused: lambda market, entry: market.pause(entry.agent, entry.arm, entry.resumed, entry.reason, entry.at),
    ledger.Started: lambda market, entry: market.start(entry.at, entry.beacon),
    ledger.AgentJoined: lambda market, entry: market.join(entry.agent, entry.at, entry.beacon),
    ledger.Decided: _decide,
    ledger.SlateDecided: _decide,
    ledger.Rewarded: _reward,
    ledger.Late: _reward,
    ledger.Defaulted: _default,
    ledger.NobodyLeft: _find_nobody,
    ledger.Ended: lambda market, entry: market.end(entry.at, entry.reason),
    ledger.Settled: lambda market, entry: market.settle(entry.at),
    ledger.SeasonOpened: lambda market, entry: market.open_season(entry.season, entry.at, entry.segments),
}


def repeat_entry(market: LiveMarket, entry: ledger.Entry) -> ledger.Entry | None:
    """Repeat the call that this entry was the answer to; the market's answer now."""
    if market.settling and not isinstance(entry, ledger.Settled | ledger.Defaulted):
        return None
    return _AGAIN[type(entry)](market, entry)


def repeat_entries(market: LiveMarket, entries: Sequence[ledger.Entry]) -> Iterator[ledger.Entry | None]:
    """Repeat each of these as `repeat_entry`, with decisions and rewards in bulk."""
    for (kind, at), group in groupby(entries, lambda entry: (type(entry), entry.at)):
        run = list(group)
        if len(run) == 1 or market.settling or kind not in (ledger.Decided, ledger.Rewarded):
            yield from (repeat_entry(market, entry) for entry in run)
        elif kind is ledger.Decided:
            made = cast("list[ledger.Decided]", run)
            decided, refusal = market.decide_many([(entry.request, entry.segment) for entry in made], at)
            yield from decided
            if refusal is not None:
                raise refusal
        else:
            rewards = [(entry.event, entry.id, entry.value) for entry in cast("list[ledger.Rewarded]", run)]
            yield from market.reward_many(rewards, at)


def advance(market: LiveMarket, entries: Sequence[ledger.Entry]) -> None:
    """Repeat stored entries; raises an error at the first whose answer differs."""
    try:
        for entry, answer in zip_longest(entries, repeat_entries(market, entries)):
            if answer != entry:
                raise ServeError(
                    f"market {market.spec.market!r}: entry {entry.n} is answered differently here; replay the ledger"
                )
    except Refused as refusal:
        raise ServeError(
            f"market {market.spec.market!r}: entry {market.chain.n + 1} is refused now: {refusal.message}"
        ) from None


def _other_secret(market: str) -> ServeError:
    return ServeError(
        f"market {market!r}: expected the secret that the ledger's first line commits to, got another or none; "
        "restore the database from a copy"
    )


def go_on(market: LiveMarket | None, entries: Sequence[ledger.Entry], secret: bytes | None) -> LiveMarket:
    """Return the market after the next stored entries; None stands for no market yet."""
    if market is None:
        opening, *entries = entries
        if not isinstance(opening, ledger.Opened):
            raise ServeError(f"expected a ledger that begins with the opening of a market, got {opening!r}; replay it")
        dice = MarketDice(secret)
        commitment = dice.key(0)
        if commitment is None or commitment.hex() != opening.commitment:
            raise _other_secret(opening.spec.market)
        market = LiveMarket.open(opening.spec, opening.at, dice)
    advance(market, entries)
    market.chain.take()
    return market


def replay(
    lines: Iterable[tuple[bytes, bytes | None]],
    dice: MarketDice | None = None,
    check: Callable[[LiveMarket], None] | None = None,
) -> ReplayedLedger:
    """Replay a whole ledger, given as lines with the hash stored after each (None if none is stored there).

    If the dice of a season that runs are unknown, nothing of it can be repeated: then its entries are numbered, chained
    by their hashes and told apart, no more. Nothing may be entered while a window is over, except for defaults. A
    season is settled after its last round, or after an entry that says why it ends before; a withdrawal by the platform
    says why, too, and so do pauses. `check` is called after every entry that is repeated.

    Also checks that each event, request and late reward occurs once, and that late rewards follow a default. Only this
    needs memory that grows with the number of entries.
    """
    market: LiveMarket | None = None
    head, unchecked_from = ledger.EMPTY, None
    seen: set[bytes] = set()
    seasons: list[SettledSeason] = []
    acts: list[ledger.ArmWithdrawn | ledger.ArmPaused] = []
    for number, (line, entry) in enumerate(checked_entries(lines), 1):
        if entry.n != number:
            raise Misfit(number, f"entry {number}: expected the number {number}, got {entry.n}")
        if market is None:
            market = _open(entry, line, dice)
        elif unchecked_from is not None:
            if isinstance(entry, ledger.Opened | ledger.Started | ledger.Settled | ledger.SeasonOpened):
                raise Misfit(number, f"entry {number}: expected season {market.season} to be settled before")
        elif isinstance(entry, ledger.Started) and market.dice.key(market.season) is None:
            unchecked_from = number
        else:
            if isinstance(entry, ledger.Settled):
                seasons.append(_checked_end(market, number))
            _check_answer(market, entry, line, number)
        if isinstance(entry, ledger.ArmWithdrawn) or (isinstance(entry, ledger.ArmPaused) and not entry.resumed):
            acts.append(entry)
        _check_keys(entry, seen, number)
        market.chain.take()
        head = ledger.Head(number, *ledger.chain_hashes(head.hash, [line]))
        if check is not None and unchecked_from is None:
            check(market)
    if market is None:
        raise ServeError("expected a ledger with at least its opening entry, got an empty one; name another market")
    return ReplayedLedger(market, head, seasons, acts, unchecked_from)


def published_dice(lines: Iterable[tuple[bytes, bytes | None]]) -> MarketDice:
    """Return the dice that a ledger has published."""
    keys: list[bytes] = []
    for number, (_, entry) in enumerate(checked_entries(lines), 1):
        if isinstance(entry, ledger.Opened):
            keys = [bytes.fromhex(entry.commitment)]
        elif isinstance(entry, ledger.Settled):
            keys.append(bytes.fromhex(entry.key))
            if len(keys) < 2 or sha256(keys[-1]).digest() != keys[-2]:
                raise Misfit(
                    number, f"entry {number}: the key of season {entry.season} is not the one that was committed to"
                )
    return MarketDice(None, keys)


def checked_entries(lines: Iterable[tuple[bytes, bytes | None]]) -> Iterator[tuple[bytes, ledger.Entry]]:
    """Yield the lines of a ledger with their entries; raise `Misfit` where the hash chain breaks."""
    hash_now = ledger.GENESIS
    for number, (line, stored) in enumerate(lines, 1):
        hash_now = sha256(hash_now + line).digest()
        if stored is not None and stored != hash_now:
            raise Misfit(
                number, f"entry {number}: the hash chain is broken here; a line was changed, dropped or inserted"
            )
        try:
            entry: ledger.Entry = ledger.decode(line)
        except msgspec.MsgspecError as problem:
            raise Misfit(number, f"entry {number}: not an entry of a ledger ({problem})") from None
        yield line, entry


def _open(entry: ledger.Entry, line: bytes, dice: MarketDice | None) -> LiveMarket:
    if not isinstance(entry, ledger.Opened):
        raise Misfit(1, f"entry 1: expected the opening of the market, got {line.decode()[:80]}")
    try:
        terms = public_terms(entry.spec)
    except Refused as refusal:
        raise Misfit(1, f"entry 1: no service takes these terms: {refusal.message}") from None
    if terms != entry.spec:
        raise Misfit(1, "entry 1: the terms are not complete, as a service would have entered them")
    dice = dice or MarketDice(None, [bytes.fromhex(entry.commitment)])
    market = LiveMarket.open(entry.spec, entry.at, dice)
    again = market.chain.take()
    assert again is not None
    if again.lines != [line]:
        raise Misfit(1, f"entry 1: the ledger has {line.decode()}, the replay gives {again.lines[0].decode()}")
    return market


def _checked_end(market: LiveMarket, number: int) -> SettledSeason:
    """Return the season settled now; its last round, or a reason, must be in the ledger."""
    season, rounds = market.season, market.played
    end = SettledSeason(season, rounds, market.session.last if market.session else rounds, market.reasons.get(season))
    if end.rounds < end.last and end.reason is None:
        raise Misfit(
            number,
            f"entry {number}: season {season} is settled after {rounds:,} of {end.last:,} rounds, and no entry says "
            "why",
        )
    return end


def _check_answer(market: LiveMarket, entry: ledger.Entry, line: bytes, number: int) -> None:
    if not (isinstance(entry, ledger.Defaulted) and entry.because == "window"):
        overdue = market.first_overdue(entry.at)
        if overdue is not None:
            raise Misfit(
                number, f"entry {number}: the window of decision {overdue} is over, and its default is missing"
            )
    try:
        answer = repeat_entry(market, entry)
    except Refused as refusal:
        raise Misfit(number, f"entry {number}: the market refuses it now: {refusal.message}") from None
    again = b"nothing" if answer is None else ledger.encode(answer)
    if again != line:
        raise Misfit(number, f"entry {number}: the ledger has {line.decode()}, the replay gives {again.decode()}")


def _check_keys(entry: ledger.Entry, seen: set[bytes], number: int) -> None:
    for key, seen_before in _key_conditions(entry):
        digest = sha256(key.encode()).digest()[:12]
        if (digest in seen) is not seen_before:
            what = "has no default before it" if seen_before else "occurs for the second time"
            raise Misfit(number, f"entry {number}: {key!r} {what}")
        seen.add(digest)


def _key_conditions(entry: ledger.Entry) -> Iterator[tuple[str, bool]]:
    """Yield the keys of this entry that must be new (False) or must have occurred (True)."""
    if isinstance(entry, ledger.Made):
        yield f"request {entry.request}", False
    elif isinstance(entry, ledger.Rewarded | ledger.Late):
        yield f"event {entry.event}", False
    if isinstance(entry, ledger.Defaulted | ledger.Late):
        yield f"default of {entry.id} for {entry.agent} {entry.arm}", isinstance(entry, ledger.Late)
    if isinstance(entry, ledger.Late):
        yield f"late reward of {entry.id}", False


def take_snapshot(market: LiveMarket) -> bytes:
    """Return the state of a market as text."""
    body: dict[str, Any] = {
        "version": ledger.SNAPSHOT,
        "secret": _secret_digest(market.dice.secret),
        "spec": msgspec.to_builtins(market.spec),
        **{name: getattr(market, name) for name in _PLAIN},
        "reasons": list(market.reasons.items()),
        "starts": market.starts,
        "requests": list(market.requests.values()),
        "waits": [list(start) for start in market.windows.starts],
        "registry": market.registry.to_dict(),
        "session": None if market.session is None else market.session.to_json(),
        **({} if market.last_page is None else {"page": msgspec.to_builtins(market.last_page)}),
    }
    return ledger.seal(market.chain.head, json.dumps(body, separators=(",", ":")).encode())


def _secret_digest(secret: bytes | None) -> str | None:
    """Return what a start compares instead of the commitment, which takes milliseconds to compute."""
    return None if secret is None else sha256(b"cloneproof secret" + secret).hexdigest()


def restore(text: bytes, secret: bytes | None = None) -> LiveMarket:
    """Return the market as it was when the snapshot was taken."""
    try:
        found = ledger.unseal(text)
        if found is None:
            raise ValueError("its digest does not fit")
        return _rebuild(json.loads(found.text), found.head, secret)
    except ServeError:  # another secret, which the ledger has no better
        raise
    except Exception as problem:
        raise SnapshotError(
            f"expected a snapshot of version {ledger.SNAPSHOT}, got one that cannot be read ({problem!r}); "
            "the next start rebuilds the market from its ledger"
        ) from None


def _rebuild(body: dict[str, Any], head: ledger.Head, secret: bytes | None) -> LiveMarket:
    spec = msgspec.convert(body["spec"], MarketSpec)
    if secret is not None and body["secret"] != _secret_digest(secret):
        raise _other_secret(spec.market)
    market = LiveMarket(spec, ledger.Chain(head), MarketDice(secret))
    for name in _PLAIN:
        setattr(market, name, body[name])
    market.starts, market.reasons = [(*one,) for one in body["starts"]], dict(body["reasons"])
    market.windows.starts.extend(list(start) for start in body["waits"])
    market.registry.restore(body["registry"])
    if "page" in body:
        market.last_page = msgspec.convert(body["page"], ledger.SlateDecided)
    if body["session"] is not None:
        market.session = Session.from_json(body["session"], market.mechanism)
        market.requests.update(zip(sorted(market.session.pending), body["requests"], strict=True))
    return market


def snapshot_difference(text: bytes, market: LiveMarket) -> str | None:
    """Describe how a snapshot differs from the market of the ledger up to the same entry; None if it does not.

    One of another version is not used, so it is not compared either.
    """
    found = ledger.unseal(text)
    if found is not None and found.version != ledger.SNAPSHOT:
        return None
    try:
        stored = restore(text, market.dice.secret)
    except ServeError as problem:
        return str(problem)
    if stored.chain.head != market.chain.head:
        return "it belongs to another ledger"
    ours, theirs = _parts(stored), _parts(market)
    return next((f"{what} are not those of the ledger" for what in theirs if theirs[what] != ours[what]), None)


def _parts(market: LiveMarket) -> dict[str, Any]:
    """Return the parts of a market's state that a replay can check."""
    return {
        "the terms": market.spec,
        "the season": (market.season, market.state, market.ends, market.starts, market.reasons),
        "balances and statistics": market.registry.to_dict(),
        "the requests": market.requests,
        "the mechanism's state": market.session and market.session.to_json(),
    }


def recover(snapshot: bytes | None, lines: Iterable[bytes], secret: bytes | None = None) -> LiveMarket:
    """Return the market after its last stored entry, from the snapshot (if any) and the lines after it."""
    rest, market = iter(lines), None if snapshot is None else restore(snapshot, secret)
    if market is not None and secret is None:
        raise _other_secret(market.spec.market)
    while entries := [ledger.decode(line) for line in islice(rest, _AT_ONCE)]:
        market = go_on(market, entries, secret)
    if market is None:
        raise ServeError("expected a ledger with at least its opening entry, got an empty one; restore a copy")
    return market
