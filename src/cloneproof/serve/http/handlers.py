"""Handlers of the routes: a few lines each between the messages and the markets.

An agent sees the ledger lines about itself and nothing that depends on the lines of others: no hash, from which the
lines in between could be found by trial, and no number of a line or a decision, which counts what others did. A
decision has a keyed hash instead, and a page ends at a sealed position that only the service can read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial, wraps
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgspec

from cloneproof._lib.ticks import TICK_BITS
from cloneproof._version import __version__
from cloneproof.errors import Refused
from cloneproof.mechanisms import Session
from cloneproof.serve import messages as m
from cloneproof.serve.http.service import Service, new_key
from cloneproof.serve.market import limits
from cloneproof.serve.market.dice import season_keys
from cloneproof.serve.market.entries import Ended, Entry, SlateDecided, decode
from cloneproof.serve.market.live import LiveMarket
from cloneproof.serve.market.registry import AgentRecord
from cloneproof.serve.market.terms import MOST_ITEMS, MarketSpec, invalid
from cloneproof.serve.storage.storage import KeyRecord, Line
from cloneproof.serve.writer.commands import Decide, DecideSlates, Do, Reward, Settle, slate_reply
from cloneproof.serve.writer.markets import ServedMarkets
from cloneproof.serve.writer.writer import milliseconds

_QUICK: Final = 500  # arms and slots of a session that is made in a few milliseconds
_MOST_OWN: Final = 100  # lines of an agent's page
_SEARCHED: Final = 1 << 17  # lines that are searched for them: 30 ms

HttpAnswer = tuple[int, Any]
Params = dict[str, str]

T = TypeVar("T")
_ON_SLOTS: Final = "when a slot that holds it is reached, the agent gets nothing more this season"
_PAYS_NOT: Final = "under this mechanism withdrawing does not pay (docs/textbook/reservoir.md, section 9)"
_NO_PROMISE: Final = "none: nothing is promised about withdrawals under this mechanism"


async def health(service: Service, caller: KeyRecord | None, params: Params, body: None) -> HttpAnswer:
    """Return whether the process is alive."""
    return 200, m.Health("alive")


async def ready(service: Service, caller: KeyRecord | None, params: Params, body: None) -> HttpAnswer:
    """Return whether calls are accepted: the markets are read and storage can be written to."""
    try:
        await service.check_ready()
    except Refused as refusal:
        return 503, m.Health(refusal.message)
    return 200, m.Health("ready")


async def version(service: Service, caller: KeyRecord | None, params: Params, body: None) -> HttpAnswer:
    """Return the version of cloneproof; needs no key."""
    return 200, m.Version(__version__, 1)


async def _on_market(service: Service, caller: KeyRecord, params: Params, work: Callable[[LiveMarket, int], T]) -> T:
    """Run work on the market of a call between two transactions; its result, once the effects are durable."""
    name, agent = params["market"], caller.agent
    reply: T = await service.writer.submit(Do(name, lambda markets, now: work(markets.market(name, agent), now)))
    return reply


def reads(view: Callable[[LiveMarket, Params], Any]) -> Callable[..., Awaitable[HttpAnswer]]:
    """Return the handler that shows a view of a market."""

    @wraps(view)
    async def handler(service: Service, caller: KeyRecord, params: Params, body: None) -> HttpAnswer:
        return 200, await _on_market(service, caller, params, lambda market, now: view(market, params))

    return handler


MarketChange = Callable[[LiveMarket, int, KeyRecord, Params, Any], HttpAnswer]


def changes(work: MarketChange) -> Callable[..., Awaitable[HttpAnswer]]:
    """Return the handler that changes a market, of what it does at a time for a caller."""

    @wraps(work)
    async def handler(service: Service, caller: KeyRecord, params: Params, body: object) -> HttpAnswer:
        return await _on_market(service, caller, params, lambda market, now: work(market, now, caller, params, body))

    return handler


def market_view(market: LiveMarket) -> m.MarketView:
    """Return what everybody may see: the terms, the state of the season, and the dice that are published."""
    assert market.dice.secret is not None
    keys, dice = season_keys(market.dice.secret, market.season), list[m.DiceView]()
    for season in range(1, market.season + 1):
        registered, beacon = market.starts[season - 1] if season <= len(market.starts) else (None, None)
        key = keys[season].hex() if season <= len(market.ends) else None
        dice.append(m.DiceView(season, keys[season - 1].hex(), registered, beacon, key, market.reasons.get(season)))
    return m.MarketView(market.spec.market, market.season, market.state, market.spec, market.mechanism.name, dice)


def _out(market: LiveMarket) -> frozenset[str]:
    """Return the agents that get nothing more this season."""
    return frozenset() if market.session is None else frozenset(market.session.out)


def agent_view(record: AgentRecord, out: frozenset[str]) -> m.AgentView:
    """Return an agent with its arms."""
    arms = [
        m.ArmView(
            arm.arm, arm.season, arm.weight, arm.until is not None, arm.decisions, arm.rewards,
            arm.total / (arm.rewards << TICK_BITS) if arm.rewards else None,
        )
        for arm in record.arms
    ]  # fmt: skip
    return m.AgentView(record.agent, record.season, record.balance, record.agent in out, arms)


async def create_market(service: Service, caller: KeyRecord, params: Params, body: MarketSpec) -> HttpAnswer:
    """Declare a market, whose mechanism and terms are public and fixed."""
    declared = await service.writer.threads.compute(lambda: limits.declared_market(body))

    def work(markets: ServedMarkets, now: int) -> tuple[m.MarketView, bool]:
        market, fresh = markets.create(body, now, declared)
        view = market_view(market)
        if body.wait_rounds is None:
            most = f"a reward counts as {market.least:g} if it comes after {market.spec.wait_rounds:,} further rounds"
            view.note = f"{most}; if yours come in batches, declare more wait_rounds than pass between two of them"
        return view, fresh

    view, fresh = await service.writer.submit(Do(body.market, work))
    return 201 if fresh else 200, view


async def list_markets(service: Service, caller: KeyRecord, params: Params, body: None) -> HttpAnswer:
    """Return the names of all markets; for an agent's key, of the markets in which the agent is registered."""

    def work(markets: ServedMarkets, now: int) -> m.Markets:
        agent = caller.agent
        return m.Markets(
            sorted(name for name, one in markets.by_name.items() if agent is None or agent in one.registry)
        )

    return 200, await service.writer.submit(Do("", work))


@reads
def show_market(market: LiveMarket, params: Params) -> m.MarketView:
    """Show the terms and the state of a market."""
    return market_view(market)


@reads
def show_progress(market: LiveMarket, params: Params) -> m.Progress:
    """Show the progress of the season, with every agent's and arm's statistics."""
    out = _out(market)
    return m.Progress(
        market.spec.market,
        market.season,
        market.state,
        market.spec.horizon,
        market.played,
        len(market.requests),
        market.decisions,
        market.chain.n,
        market.chain.hash.hex(),
        [agent_view(record, out) for record in market.registry.agents.values()],
        market.phase if market.state == "running" else market.state,
        market.late,
        market.defaulted,
        segment_views(market),
        None if market.last_page is None else slate_reply(market.last_page, again=False),
    )


def segment_views(market: LiveMarket) -> list[m.SegmentView]:
    """Return the segments of the season, the largest first."""
    begun = {} if market.session is None else market.session.begun
    views = [
        m.SegmentView(name, fraction, part.round if part else 0, part is not None and part.round >= part.last)
        for name, fraction in market.spec.fractions.items()
        for part in (begun.get(name),)
    ]
    return sorted(views, key=lambda view: -view.fraction)


@reads
def list_seasons(market: LiveMarket, params: Params) -> m.Seasons:
    """List all seasons of a market, with the decisions that belong to each; the present season is the last."""
    ends = [0, *market.ends]
    views = [m.SeasonView(n, "settled", ends[n - 1] + 1, ends[n]) for n in range(1, len(ends))]
    if market.season == len(ends):
        views.append(m.SeasonView(market.season, market.state, ends[-1] + 1, market.decisions))
    return m.Seasons(views)


@reads
def show_agent(market: LiveMarket, params: Params) -> m.AgentView:
    """Show one agent with its arms, statistics and balance."""
    return agent_view(market.registry.agent(params["agent"]), _out(market))


@reads
def show_balances(market: LiveMarket, params: Params) -> m.Balances:
    """Show every agent's balance in micro-units."""
    return m.Balances({name: record.balance for name, record in market.registry.agents.items()})


@changes
def register_agent(market: LiveMarket, now: int, caller: KeyRecord, params: Params, body: m.AgentRequest) -> HttpAnswer:
    """Register an agent: for this season while it is open, else for the next."""
    if body.agent not in market.registry:
        limits.check_room_for_agent(market)
    entry = market.register_agent(body.agent, now)
    season = market.registry.agent(body.agent).season
    return 201 if entry else 200, _registered(market, body.agent, None, season, entry is None)


@changes
def register_arm(market: LiveMarket, now: int, caller: KeyRecord, params: Params, body: m.ArmRequest) -> HttpAnswer:
    """Register an arm of an agent, or another weight of one: for this season while it is open, else for the next."""
    agent = params["agent"]
    if market.registry.check_room_for_arm(agent, body.arm):
        limits.check_room(market, agent)
    entry = market.register_arm(agent, body.arm, now, body.weight, body.title)
    season = market.registry.arm(agent, body.arm).season if entry is None else entry.season
    return 200 if entry is None else 201, _registered(market, agent, body.arm, season, entry is None)


def _registered(market: LiveMarket, agent: str, arm: str | None, season: int, duplicate: bool) -> m.Registered:
    if season > market.season:
        effect = f"when season {season} starts: season {market.season} is {market.state} and closed for registration"
    elif market.state == "open":
        effect = f"when season {market.season} starts"
    else:
        effect = f"it takes part in season {market.season}, which is {market.state}"
    return m.Registered(agent, arm, season, duplicate, effect)


@changes
def join(market: LiveMarket, now: int, caller: KeyRecord, params: Params, body: m.JoinRequest) -> HttpAnswer:
    """Let an agent that is registered but takes no part join the season that runs, with the arms that it has now."""
    agent = params["agent"]
    if market.join(agent, now, body.beacon) is None:
        return 200, _registered(market, agent, None, market.season, duplicate=True)
    return 201, m.Registered(agent, None, market.season, False, market.facts.newcomer)


@changes
def withdraw_arm(
    market: LiveMarket, now: int, caller: KeyRecord, params: Params, body: m.WithdrawalRequest
) -> HttpAnswer:
    """Show an arm no more; decisions that await a reward still get it. The arm is in no later season."""
    agent, arm, drawn = params["agent"], params["arm"], market.facts.slots > 0
    entry = market.withdraw_arm(agent, arm, now, "agent" if caller.role == "agent" else "platform", body.reason)
    effect = f"season {market.next_registration} starts without it"
    if market.state == "running":
        where = " in that segment" if drawn and market.spec.segments else ""
        effect = f"at once; {_ON_SLOTS if drawn else 'the mechanism skips it'}{where}"
    promise = _PAYS_NOT if drawn else _NO_PROMISE
    return 200, m.WithdrawalReply(agent, arm, market.season, entry is None, effect, promise)


@changes
def pause(market: LiveMarket, now: int, caller: KeyRecord, params: Params, body: m.PauseRequest) -> HttpAnswer:
    """Pause arms of an agent in the season that runs, or resume them; decisions that await a reward still get it."""
    market.pause(params["agent"], body.arm, body.resume, body.reason, now)
    return 200, agent_view(market.registry.agent(params["agent"]), _out(market))


async def start(service: Service, caller: KeyRecord, params: Params, body: m.StartRequest) -> HttpAnswer:
    """Close registration and start the mechanism."""

    def large_season(market: LiveMarket, now: int) -> Callable[[], Session] | None:
        slots = len(market.registry.agents) * market.facts.slots
        if market.state != "open" or market.registry.arm_count + slots <= _QUICK:
            return None
        return partial(market.open_session, market.registry.participants(market.season), body.beacon)

    prepare = await _on_market(service, caller, params, large_season)
    prepared = None if prepare is None else await service.writer.threads.compute(prepare)

    def work(market: LiveMarket, now: int) -> m.MarketView:
        market.start(now, body.beacon, prepared)
        return market_view(market)

    return 200, await _on_market(service, caller, params, work)


async def settle(service: Service, caller: KeyRecord, params: Params, body: m.SettleRequest) -> HttpAnswer:
    """End the season: missing rewards get the default, and balances are final."""
    return 200, await service.writer.submit(Settle(params["market"], market_view, body.reason))


@changes
def open_season(market: LiveMarket, now: int, caller: KeyRecord, params: Params, body: m.SeasonRequest) -> HttpAnswer:
    """Open the next season for registration."""
    entry = market.open_season(body.season, now, body.segments)
    return 201 if entry else 200, market_view(market)


async def decide(service: Service, caller: KeyRecord, params: Params, body: m.DecisionRequest) -> HttpAnswer:
    """Decide whom to serve now; the same `request_id` again gets the same decision."""
    (reply,) = await service.writer.submit(Decide(params["market"], (body,)))
    return reply.status, reply


async def decide_batch(service: Service, caller: KeyRecord, params: Params, body: m.DecisionBatch) -> HttpAnswer:
    """Make up to 1,000 decisions, a result for each."""
    return 200, m.Decisions(await service.writer.submit(Decide(params["market"], body.items)))


async def decide_slate(service: Service, caller: KeyRecord, params: Params, body: m.DecisionRequest) -> HttpAnswer:
    """Fill a page of several places; the same `request_id` again gets the same page."""
    (reply,) = await service.writer.submit(DecideSlates(params["market"], (body,)))
    return reply.status, reply


async def slate_batch(service: Service, caller: KeyRecord, params: Params, body: m.SlateBatch) -> HttpAnswer:
    """Fill up to 100 pages, a result for each."""
    return 200, m.Slates(await service.writer.submit(DecideSlates(params["market"], body.items)))


async def reward(service: Service, caller: KeyRecord, params: Params, body: m.RewardItem) -> HttpAnswer:
    """Enter a reward, which is final, and durable before the reply."""
    (reply,) = await service.writer.submit(Reward(params["market"], (body,)))
    return reply.status, reply


async def reward_batch(service: Service, caller: KeyRecord, params: Params, body: m.RewardBatch) -> HttpAnswer:
    """Enter up to 1,000 rewards, a result for each."""
    return 200, m.Rewards(await service.writer.submit(Reward(params["market"], body.items)))


async def show_ledger(service: Service, caller: KeyRecord, params: Params, body: None) -> HttpAnswer:
    """Show the ledger's lines after a number; an agent gets its own lines, without what counts others' lines."""
    limit, name, agent = max(1, _number(params, "limit", 100, MOST_ITEMS)), params["market"], caller.agent
    if agent is not None:
        return 200, await _agent_page(service, name, agent, params.get("after", "0"), limit)
    after = _number(params, "after", 0, 1 << 40)
    number = await service.writer.submit(Do(name, lambda markets, now: markets.number(name)))
    lines = await service.writer.threads.read(lambda: service.writer.storage.lines(number, after, limit))
    shown = [m.LedgerLine(line.hash.hex(), msgspec.Raw(line.line)) for line in lines]
    return 200, m.LedgerPage(shown, lines[-1].n if lines else None)


async def _agent_page(service: Service, name: str, agent: str, after: str, limit: int) -> m.LedgerPage:
    """Return at most `limit` lines about an agent. Fewer only at the end, or after many lines without any.

    A page with fewer lines says how many others' lines there are, so only a ledger of more than `_SEARCHED` has any.
    """

    def number_and_secret(markets: ServedMarkets, now: int) -> tuple[int, bytes, int]:
        market = markets.market(name, agent)
        assert market.dice.secret is not None
        return markets.number(name), market.dice.secret, market.chain.n

    number, secret, last = await service.writer.submit(Do(name, number_and_secret))
    key = agent_key(secret, agent)
    position = open_position(key, after)
    limit = min(limit, _MOST_OWN)

    def read() -> m.LedgerPage:
        own, at, end = list[Line](), position, position + _SEARCHED
        texts = (f'"agent":{msgspec.json.encode(agent).decode()}', f'"kind":"{Ended.__struct_config__.tag}"')
        while len(own) < limit and at < end:
            lines = service.writer.storage.lines(number, at, MOST_ITEMS, end - at, texts)
            own += [line for line in lines if line.n <= end and _is_shown(decode(line.line), agent)]
            at = min(lines[-1].n, end) if len(lines) == MOST_ITEMS else end
        del own[limit:]
        shown = [m.LedgerLine(None, _without_numbers(line.line, key, agent)) for line in own]
        # The page ends at the agent's last line: whether others' lines follow must not show.
        rest = own[-1].n if own and (last <= end or len(own) == limit) else at if last > end else None
        return m.LedgerPage(shown, None if rest is None else seal_position(key, rest))

    page: m.LedgerPage = await service.writer.threads.read(read)
    return page


def _is_shown(entry: Entry, agent: str) -> bool:
    """Return whether a line is about an agent: itself, or a season's end before its last round."""
    if isinstance(entry, SlateDecided):
        return any(each.agent == agent for each in entry.shown)
    return isinstance(entry, Ended) or getattr(entry, "agent", None) == agent


def agent_key(secret: bytes, agent: str) -> bytes:
    """Return the key of an agent's view of a market, from the market's secret."""
    return blake2b(agent.encode(), key=secret, digest_size=32, person=b"cloneproof agent").digest()


def _without_numbers(line: bytes, key: bytes, agent: str) -> msgspec.Raw:
    """Return a line without the numbers that count what others did, and a page without what others showed."""
    entry: dict[str, Any] = msgspec.json.decode(line)
    if "shown" in entry:
        first = entry.pop("id")
        entry["shown"] = [
            each | {"id": _keyed(key, b"decision", first + number).hex()}
            for number, each in enumerate(entry["shown"])
            if each["agent"] == agent
        ]
    del entry["n"]
    if "id" in entry:
        entry["id"] = _keyed(key, b"decision", entry["id"]).hex()
    return msgspec.Raw(msgspec.json.encode(entry))


def seal_position(key: bytes, n: int) -> str:
    """Return a position in the ledger that only the holder of the key can read."""
    tag = _keyed(key, b"tag", n)
    return f"{tag.hex()}{n ^ int.from_bytes(_keyed(key, tag), 'big'):016x}"


def open_position(key: bytes, text: str) -> int:
    """Return the position that was sealed; 0 for a text of 0."""
    if text == "0":
        return 0
    try:
        tag, hidden = bytes.fromhex(text[:16]), bytes.fromhex(text[16:])
    except ValueError:
        tag, hidden = b"", b""
    n = int.from_bytes(hidden, "big") ^ int.from_bytes(_keyed(key, tag), "big")
    if len(hidden) == 8 and _keyed(key, b"tag", n) == tag:
        return n
    raise invalid(f"expected after as 0 or the next of an earlier page, got {text[:40]!r}; begin at 0")


def _keyed(key: bytes, what: bytes, number: int | None = None) -> bytes:
    return blake2b(what + (b"" if number is None else number.to_bytes(8, "big")), key=key, digest_size=8).digest()


async def create_key(service: Service, caller: KeyRecord, params: Params, body: m.KeyRequest) -> HttpAnswer:
    """Make an API key; it is shown this once."""
    key, record = new_key(body.role, body.agent, milliseconds())
    await service.writer.threads.storage(lambda: service.writer.storage.put_key(record))
    service.keys[record.id] = record
    return 201, m.NewKey(key, record.id, record.role, record.agent)


async def list_keys(service: Service, caller: KeyRecord, params: Params, body: None) -> HttpAnswer:
    """List all keys, without their secrets."""
    return 200, m.Keys([_key(record) for record in service.keys.values()])


async def revoke_key(service: Service, caller: KeyRecord, params: Params, body: None) -> HttpAnswer:
    """Revoke a key."""
    record = service.keys.get(params["key"])
    if record is None:
        raise Refused(404, "unknown_key", "expected the id of a key; list the keys first")
    revoked = msgspec.structs.replace(record, revoked=True)
    await service.writer.threads.storage(lambda: service.writer.storage.put_key(revoked))
    service.keys[record.id] = revoked
    return 200, _key(revoked)


def _key(record: KeyRecord) -> m.KeyView:
    return m.KeyView(record.id, record.role, record.agent, record.created, record.revoked)


def _number(params: Params, name: str, default: int, most: int) -> int:
    text = params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > 15 or int(text) > most:
        raise invalid(f"expected {name} as a whole number from 0 to {most}, got {text[:20]!r}")
    return int(text)
