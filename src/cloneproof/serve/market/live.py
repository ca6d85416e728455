"""One market: calls go in, ledger entries come out. Deterministic, and without files.

Each method checks everything first, then changes the state and appends an entry; a refusal changes nothing. The
mechanism is a `cloneproof.session`. Old entries are not kept in memory; the caller finds them in storage by their ids
and passes them in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count, islice, takewhile
from typing import Any, Final, Literal, TypeVar

from cloneproof.errors import MechanismError, NobodyLeftError, PausedError, Refused
from cloneproof.mechanisms import Session
from cloneproof.mechanisms.facts import Facts, Setting
from cloneproof.mechanisms.session import session
from cloneproof.mechanisms.terms import Feature, refusal
from cloneproof.serve.market import entries as ledger
from cloneproof.serve.market.dice import MarketDice, registration_digest, session_key
from cloneproof.serve.market.registry import (
    RefusedSegment,
    Registry,
    WaitWindows,
    check_segment,
    nobody_left,
    same_until,
)
from cloneproof.serve.market.terms import (
    MOST_SEASONS,
    MarketSpec,
    SeasonState,
    Segments,
    build_mechanism,
    invalid,
    session_terms,
    with_segments,
)

MOST_PENDING: Final = 1_000_000  # decisions whose reward is awaited at the same time
E = TypeVar("E", bound=ledger.Entry)
OutOfTime = Callable[[], bool] | None
Asked = tuple[str, str | None]  # a request and its segment, if there are some


class LiveMarket:
    """State of one market and the moves that are possible in it."""

    def __init__(self, spec: MarketSpec, chain: ledger.Chain | None = None, dice: MarketDice | None = None) -> None:
        self.spec, self.mechanism, self.terms = spec, build_mechanism(spec), session_terms(spec)
        self.dice = dice or MarketDice()
        self.chain = chain or ledger.Chain()
        self.registry = Registry(spec.max_agents, spec.max_arms)
        self.season, self.state, self.at = 1, "open", 0
        self.session: Session | None = None
        self.ends: list[int] = []  # the last decision of each settled season
        self.reasons: dict[int, str] = {}  # of the seasons that the platform ended before their last round
        self.starts: list[tuple[str, str | None]] = []  # of each season: what was registered, the beacon's value
        self.requests = OrderedDict[int, str]()  # of the rounds that await a reward, oldest first
        self.before = 0  # decisions of earlier seasons
        self.settling = False
        self.phase = ""  # of the last decision of the season
        self.last_page: ledger.SlateDecided | None = None  # of several places
        self.late = self.defaulted = 0  # rewards, over all seasons
        self._share_micro, self._family = spec.share_micro, spec.family
        self.least = self._family.low if spec.default_reward is None else spec.default_reward
        rounds = None if spec.wait_rounds is None else spec.wait_rounds * spec.most_places
        self.windows = WaitWindows(spec.wait_seconds, rounds)
        self.ahead: int | None = None  # of the caller's clock; None while recorded entries are repeated

    state: SeasonState

    @classmethod
    def open(cls, spec: MarketSpec, at: int, dice: MarketDice | None = None) -> LiveMarket:
        market = cls(spec, None, dice)
        market.enter_opening(at)
        return market

    def enter_opening(self, at: int) -> None:
        commitment = self.dice.key(0)
        assert commitment is not None
        self.chain.append(ledger.Opened(1, self._now(at), self.spec, commitment.hex(), ledger.FORMAT))

    def follow(self, steady: int, wall: int | None) -> None:
        """Set the ledger's time by two clocks of the caller: a steady one, and a wall clock that may jump.

        While a reward is awaited, ledger time follows the steady clock, so that a jump neither ends nor extends a
        window. Otherwise it is the wall clock's time, or stands still until the wall clock has caught up. After a
        restart it follows the wall clock, by at most one window. Without a wall clock, several processes share the
        steady one, and ledger time is what it shows but never before the last entry.
        """
        awaits = self.session is not None and bool(self.session.pending)
        if wall is None:
            self.ahead = max(self.at - steady, (self.ahead or 0) if awaits else 0)
        elif not awaits:
            self.ahead = max(self.at, wall) - steady
        elif self.ahead is None:
            self.ahead = min(max(self.at, wall), self.at + self.windows.longest) - steady
        else:
            self.ahead = max(self.ahead, self.at - steady)

    def time(self, at: int) -> int:
        """Return the ledger's time for a time of the caller's clock; never decreases."""
        return max(self.at, at if self.ahead is None else at + self.ahead)

    def _now(self, at: int) -> int:
        self.at = self.time(at)
        return self.at

    def _append(self, kind: Callable[..., E], at: int, *fields: Any) -> E:  # noqa: ANN401 (each kind has its own)
        entry = kind(self.chain.n + 1, self._now(at), *fields)
        self.chain.append(entry)
        return entry

    @property
    def facts(self) -> Facts:
        """What the mechanism does with the agents that the season started with, or that are registered."""
        spec, live = self.spec, self.session
        agents = len(self.registry.agents) if live is None else live.registration.first
        return self.mechanism.facts(Setting(agents, spec.horizon, spec.positions is not None))

    @property
    def decisions(self) -> int:
        """Number of decisions in all seasons."""
        return self.before + self.round

    @property
    def round(self) -> int:
        """Number of decisions in the season that runs."""
        return 0 if self.session is None else self.session.round

    @property
    def played(self) -> int:
        """Number of rounds in the season that runs: decisions, or pages of several places."""
        return 0 if self.session is None else self.session.played

    @property
    def next_registration(self) -> int:
        """Season that a registration made now is for."""
        return self.season if self.state == "open" else self.season + 1

    def register_agent(self, agent: str, at: int) -> ledger.AgentRegistered | None:
        """Register an agent, or nothing if it is known already."""
        if agent in self.registry:
            return None
        self.registry.add_agent(agent, self.next_registration)
        return self._append(ledger.AgentRegistered, at, agent, self.next_registration)

    def register_arm(
        self, agent: str, arm: str, at: int, weight: int | None = None, title: str | None = None
    ) -> ledger.ArmRegistered | None:
        """Register an arm of a registered agent, or another weight or title of one; nothing if all is known already."""
        new = self.registry.check_room_for_arm(agent, arm)
        if weight is not None and (why := self.mechanism.takes(Feature.WEIGHTS, self.terms)) is not None:
            raise invalid(why)
        if not new:
            known = self.registry.arm(agent, arm)
            if weight in (None, known.weight) and title in (None, known.title):
                return None
            weight = known.weight if weight is None and known.weight != 1 else weight
        self.registry.add_arm(agent, arm, self.next_registration, 1 if weight is None else weight, title or "")
        return self._append(ledger.ArmRegistered, at, agent, arm, self.next_registration, weight, title)

    def withdraw_arm(
        self, agent: str, arm: str, at: int, by: ledger.Withdrawer = "agent", reason: str | None = None
    ) -> ledger.ArmWithdrawn | None:
        """Show an arm no more, from the next decision on and in later seasons; None if it is withdrawn already."""
        record = self.registry.arm(agent, arm)
        if record.until is not None:
            return None
        if by == "platform" and reason is None:  # it could withdraw whoever leads
            raise Refused(422, "no_reason", f"expected a reason, which {agent!r} can read, got none; say why")
        number = self.registry.number(agent, record)
        if self.session is not None and number is not None:
            self.session.withdraw(agent, number)
        record.until = self.next_registration - 1
        return self._append(ledger.ArmWithdrawn, at, agent, arm, self.season, by, reason)

    def pause(self, agent: str, arm: str | None, resume: bool, reason: str, at: int) -> ledger.ArmPaused | None:
        """Pause an arm of the season that runs, or all of an agent's, or resume them; None if nothing changes."""
        live, number = self.session, None
        plays = self.registry.plays(self.registry.agent(agent).agent)
        if arm is not None and plays:
            named = next((each for each in self.registry.agent(agent).arms if each.arm == arm), None)
            number = None if named is None else self.registry.number(agent, named)
            plays = number is not None
        if live is None or not plays:
            raise Refused(
                409, "not_playing", f"expected an arm of {agent!r} in a season that runs, got {arm!r}; see it"
            )
        try:
            changed = (live.resume if resume else live.pause)(agent, number)
        except MechanismError as problem:
            raise Refused(409, "no_pauses", str(problem)) from None
        return self._append(ledger.ArmPaused, at, agent, self.season, reason, arm, resume) if changed else None

    def _season_key(self) -> bytes:
        key = self.dice.key(self.season)
        assert key is not None  # who does not know it repeats no season
        return key

    def _digest(self, registered: dict[str, int]) -> str:
        """Return the hash of what is registered that the season's start makes public and mixes into the dice."""
        return registration_digest(self._season_key(), self.registry.declared(registered))

    def open_session(self, registered: dict[str, int], beacon: str | None = None) -> Session:
        """Return the session of this season for what is registered, or a refusal; changes nothing."""
        why = refusal(self.mechanism, replace(self.terms, agents=len(registered)))
        if why is not None:
            raise Refused(409, "agents", f"{why}; season {self.season} stays open")
        spec, seed = self.spec, self._seed(registered, beacon)
        return session(
            self.mechanism, registered, spec.horizon, seed, spec.share, spec.rewards,
            history=False, ends=spec.ends,
            weights=self.registry.weights(registered), segments=spec.fractions or None,
            positions=spec.positions, batch=spec.batch,
        )  # fmt: skip

    def _seed(self, registered: dict[str, int], beacon: str | None) -> bytes:
        return session_key(self._season_key(), self.spec.market, self.season, self._digest(registered), beacon)

    def start(self, at: int, beacon: str | None = None, prepared: Session | None = None) -> ledger.Started | None:
        """Close registration and start the mechanism; None if it runs already, with the same beacon.

        `prepared` is a session that is used if its seed, which follows from all that is registered, still fits.
        """
        if self.state == "running":
            if beacon != self.starts[-1][1]:
                raise Refused(409, "running", f"season {self.season} was started with another beacon than {beacon!r}")
            return None
        if self.state == "settled":
            raise Refused(409, "settled", f"season {self.season} is settled; open the next one first")
        registered = self.registry.participants(self.season)
        if not registered:
            raise Refused(409, "no_arms", "expected at least one agent with an arm, got none; register arms first")
        self._check_beacon(beacon)
        digest = self._digest(registered)
        if prepared is None or prepared.seed != self._seed(registered, beacon):
            prepared = self.open_session(registered, beacon)
        self.session = prepared
        self.starts.append((digest, beacon))
        self.state, self.phase = "running", "started"
        self.registry.start(registered)
        return self._append(ledger.Started, at, self.season, digest, beacon)

    def _check_beacon(self, beacon: str | None) -> None:
        if (beacon is None) != (self.spec.beacon is None):
            named = "no beacon, as the terms name none" if beacon else f"the value of {self.spec.beacon!r}"
            raise Refused(422, "beacon", f"expected {named}, got {beacon!r}; dice must not be anybody's choice")

    def join(self, agent: str, at: int, beacon: str | None = None) -> ledger.AgentJoined | None:
        """Let a registered agent join the season that runs, with the arms that it has now; None if it takes part.

        Its draws mix in the beacon's value; the hash of the whole ledger only if the terms name none, as the platform
        chooses it by the order of rewards.
        """
        arms, live = len(self.registry.arms(agent)), self.session
        if live is None or self.state != "running":
            raise Refused(409, f"season_{self.state}", f"season {self.season} is {self.state}; join one that runs")
        if self.registry.plays(agent):
            return None
        why = live.no_joiners()
        if why is not None:
            raise Refused(409, "no_joiners", why)
        if live.decided or self.over:
            raise Refused(409, "decided", f"season {self.season} is decided; {agent!r} takes part in the next one")
        if not any(arm.weight for arm in self.registry.arms(agent)):
            raise Refused(409, "no_arms", f"expected an arm of {agent!r}, got none; register arms first")
        self._check_beacon(beacon)
        if beacon is not None and beacon == self.starts[-1][1]:
            raise Refused(422, "beacon", f"expected a value newer than the start's, got {beacon!r}; send a later one")
        digest = self._digest({agent: arms})
        before = self.chain.hash.hex() if beacon is None else ""
        mixed = session_key(self._season_key(), self.spec.market, self.season, digest + before, beacon)
        live.join(agent, arms, self.registry.weights({agent: arms}).get(agent), mixed)
        self.registry.join(agent, self.season)
        return self._append(ledger.AgentJoined, at, agent, self.season, digest, beacon)

    def decide(self, request: str, at: int, segment: str | None = None) -> ledger.Made:
        """Make the next decision, or fill the next page, for a request that has none yet."""
        decided, refusal = self.decide_many(((request, segment),), at)
        if refusal is not None:
            raise refusal
        return decided[0]

    def decide_many(
        self, asked: Sequence[Asked], at: int, out_of_time: OutOfTime = None
    ) -> tuple[list[ledger.Made], Refused | None]:
        """Make the next decisions, for different requests that have none yet.

        Returns the refusal if they ended early. If `out_of_time` returns True they do after at least one, without one.
        """
        decided: list[ledger.Made] = []
        now, refusal, nobody = self.time(at), None, None
        decide = self._decide_run if self.spec.positions is None else self._decide_page
        try:
            while len(decided) < len(asked):
                decided += decide(asked, len(decided), now)
                if out_of_time is not None and out_of_time():
                    break
        except Refused as problem:
            refusal = problem
        except PausedError as problem:
            _, segment = asked[len(decided)]
            refusal = (Refused if segment is None else RefusedSegment)(409, "paused", str(problem))
        except NobodyLeftError:
            nobody = self.season, asked[len(decided)][1]
            refusal = nobody_left(*nobody)
        if decided:
            self._enter_decisions(decided, now)
        if nobody:  # for good, which is therefore recorded
            self._append(ledger.NobodyLeft, at, *nobody)
        return decided, refusal

    def decide_in_windows(
        self, asked: Sequence[Asked], at: int, out_of_time: OutOfTime = None
    ) -> tuple[list[ledger.Made], list[ledger.Defaulted], Refused | None]:
        """Decide as `decide_many`, with defaults of wait windows that end after a number of rounds, in their order."""
        decided, defaults = list[ledger.Made](), list[ledger.Defaulted]()
        while True:
            left = None if self.session is None else self.windows.rounds_left(self._oldest, self.round)
            if left is not None and self.spec.positions is not None:
                left = min(left, max(1, left // self.spec.most_places))  # a window may end within a page
            part = slice(len(decided), None if left is None else len(decided) + left)
            more, refusal = self.decide_many(asked[part], at, out_of_time)
            decided += more
            if left is not None:
                defaults += self.expire(at)
            if left is None or len(more) < left or len(decided) == len(asked):
                return decided, defaults, refusal
            if out_of_time is not None and out_of_time():
                return decided, defaults, None

    def _decide_run(self, asked: Sequence[Asked], done: int, now: int) -> list[ledger.Made]:
        """Decide for the requests after the first `done`, as many as no further reward can change."""
        _, segment = asked[done]
        live, room = self._checked_session(segment, 1)
        end = len(asked) if segment is None else same_until(asked, done)
        first, several = live.decide_run(min(room, end - done), segment)
        arm = self.registry.count_decisions(first.agent, first.arm, several)
        n, number, chance = self.chain.n + done + 1, self.before + first.id, live.probability
        return [
            ledger.Decided(n + k, now, number + k, first.agent, arm, first.phase, chance, asked[done + k][0], segment)
            for k in range(several)
        ]

    def _decide_page(self, asked: Sequence[Asked], done: int, now: int) -> list[ledger.Made]:
        """Fill the page of the request after the first `done`."""
        request, segment = asked[done]
        live, _ = self._checked_session(segment, self.spec.most_places)
        number, slate, shown = self.before + live.round + 1, live.decide_slate(segment), []
        for decision, chance in zip(slate, live.probabilities, strict=True):
            arm = self.registry.count_decisions(decision.agent, decision.arm, 1)
            shown.append(ledger.ShownPlace(decision.place, decision.agent, arm, decision.phase, chance))
        places = live.begun[segment].places
        return [ledger.SlateDecided(self.chain.n + done + 1, now, number, places, shown, request, segment)]

    def _checked_session(self, segment: str | None, decisions: int) -> tuple[Session, int]:
        """Return the session, if a round of so many decisions is possible, and how many may still await a reward."""
        live = self.session
        if live is None or self.state != "running":
            raise Refused(409, f"season_{self.state}", f"season {self.season} is {self.state}, so nothing is decided")
        if segment is not None or live.segments:
            check_segment(live, segment, self.season)
        if live.played >= live.last:
            over = Refused(409, "horizon_reached", f"all {live.last} rounds of season {self.season} are decided")
            raise nobody_left(self.season, None) if live.nobody_left else over
        room = MOST_PENDING - len(live.pending)
        if room < decisions:
            raise Refused(429, "too_many_pending", f"{MOST_PENDING} decisions await a reward; send rewards first")
        return live, room

    def _enter_decisions(self, decided: list[ledger.Made], now: int) -> None:
        """Append decisions to the chain and begin their wait windows."""
        self.at = now
        for entry in decided:
            if type(entry) is ledger.Decided:
                self.requests[entry.id - self.before] = entry.request
            elif type(entry) is ledger.SlateDecided:
                self.requests.update((number - self.before, entry.request) for number in entry.rounds)
        last = decided[-1]
        if isinstance(last, ledger.Decided):
            self.phase = last.phase
        else:
            self.last_page, self.phase = last, last.shown[-1].phase if last.shown else "empty"
        self.windows.begin(self.round, now)
        self.chain.append(*decided)

    def awaits(self, decision: int) -> bool:
        """Return whether a decision awaits its reward."""
        return decision - self.before in self.requests

    def asked(self, decision: int, request: str) -> bool:
        """Return whether a decision awaits its reward and was made for this request."""
        return self.requests.get(decision - self.before) == request

    def allows(self, value: float) -> bool:
        """Return whether a reward is possible in this market."""
        return self._family.allows(value) and value >= self.least

    def _checked(self, value: float) -> float:
        if not self.allows(value):
            least = f" of at least {self.least:g}"
            raise Refused(
                422, "invalid_reward", f"expected a reward in {self._family.support}{least}, got {value!r}; scale it"
            )
        return value

    def reward(
        self, event: str, decision: int, value: float, at: int, defaulted: ledger.Defaulted | None
    ) -> ledger.Rewarded | ledger.Late:
        """Enter the reward of a decision under a new event id; `defaulted` is the default in its place, if any."""
        if not self.awaits(decision):
            return self._enter_late(event, decision, value, at, defaulted)
        return self.reward_many(((event, decision, self._checked(value)),), at)[0]

    def reward_many(self, rewards: Sequence[tuple[str, int, float]], at: int) -> list[ledger.Rewarded]:
        """Enter rewards (event, decision, value) under new event ids, of different decisions that await one."""
        if not rewards:
            return []
        counted = self._count([(decision - self.before, value) for _, decision, value in rewards])
        now, entries = self._now(at), []
        for n, (event, decision, value), (agent, arm, paid, late) in zip(
            count(self.chain.n + 1), rewards, counted, strict=False
        ):
            entries.append(ledger.Rewarded(n, now, decision, agent, arm, value, paid, event, late))
            self.late += late
        self.chain.append(*entries)
        return entries

    def _enter_late(
        self, event: str, decision: int, value: float, at: int, defaulted: ledger.Defaulted | None
    ) -> ledger.Late:
        """Enter a reward for a decision that does not await one."""
        if not 1 <= decision <= self.decisions:
            raise Refused(
                404,
                "unknown_decision",
                f"expected a decision of this market (1 to {self.decisions}), got {decision}; use the id it returned",
            )
        if defaulted is None:
            raise Refused(409, "already_rewarded", f"decision {decision} already has a reward by another event")
        value = self._checked(value)  # before the time is taken: a refusal changes nothing
        self.late += 1
        return self._append(ledger.Late, at, decision, value, event, defaulted.agent, defaulted.arm)

    def _count(self, rewards: Sequence[tuple[int, float]]) -> list[tuple[str, str, int, bool]]:
        """Enter rewards into the mechanism, the statistics and the balances.

        Returns agent, arm and payment of each, and whether it comes too late to count.
        """
        assert self.session is not None
        counted = self.session.reward_many(rewards)
        for round_, _ in rewards:
            del self.requests[round_]
        pay = {ticks: ledger.payment(ticks, self._share_micro) for ticks in {ticks for *_, ticks in counted}}
        names, count_reward = self.session.registration.names, self.registry.count_reward
        return [
            (name := names[shown.agent], count_reward(name, shown.arm, ticks, pay[ticks]), pay[ticks], late)
            for late, shown, ticks in counted
        ]

    @property
    def _oldest(self) -> int:
        """The oldest round that awaits a reward; the next one if none does."""
        return next(iter(self.requests), self.round + 1)

    def _overdue(self, at: int, most: int | None) -> list[int]:
        """Return the oldest rounds that await a reward after the end of their window, at most so many."""
        over = self.windows.last_over(self._oldest, self.round, self.time(at))
        return list(takewhile(lambda round_: round_ <= over, islice(self.requests, most)))

    def first_overdue(self, at: int) -> int | None:
        """Return the oldest decision that awaits a reward after the end of its window."""
        overdue = self._overdue(at, 1)
        return self.before + overdue[0] if overdue else None

    def expire(self, at: int, most: int | None = None) -> list[ledger.Defaulted]:
        """Enter the default reward for decisions whose window is over, oldest first, at most so many."""
        return self._enter_defaults(self._overdue(at, most), at, "window")

    def settle_some(self, at: int, most: int) -> list[ledger.Defaulted]:
        """Before a settlement, enter the default for at most `most` of the oldest decisions that await a reward."""
        if self.session is None:
            return []
        self.settling = True
        return self._enter_defaults(list(islice(self.requests, most)), at, "settlement")

    def _enter_defaults(
        self, rounds: list[int], at: int, because: Literal["window", "settlement"]
    ) -> list[ledger.Defaulted]:
        if not rounds:
            return []
        value = self.least
        requests = [self.requests[round_] for round_ in rounds]
        counted = self._count([(round_, value) for round_ in rounds])
        self.defaulted += len(rounds)
        n, now = self.chain.n + 1, self._now(at)
        entries = [
            ledger.Defaulted(n + k, now, self.before + round_, agent, arm, value, paid, because, requests[k])
            for k, (round_, (agent, arm, paid, _)) in enumerate(zip(rounds, counted, strict=True))
        ]
        self.chain.append(*entries)
        return entries

    @property
    def over(self) -> bool:
        """Whether no round of the season that runs is left."""
        return self.session is not None and self.session.played >= self.session.last

    def end(self, at: int, reason: str) -> ledger.Ended | None:
        """Record why the season that runs ends before its last round; it must be settled next. None if it is over."""
        if self.session is None or self.over:
            return None
        self.settling, self.reasons[self.season] = True, reason
        return self._append(ledger.Ended, at, self.season, reason)

    def settle(self, at: int) -> ledger.Settled | None:
        """End the season; None if it is settled already."""
        if self.state == "settled":
            return None
        if self.state == "open" or self.session is None:
            raise Refused(409, "season_open", f"season {self.season} has not started; start it first")
        while self.settle_some(at, 1000):
            pass
        key = self._season_key()
        self.before += self.session.round
        self.ends.append(self.before)
        self.session, self.state, self.settling = None, "settled", False
        self.windows.starts.clear()
        return self._append(ledger.Settled, at, self.season, key.hex())

    def open_season(self, season: int, at: int, segments: Segments | None = None) -> ledger.SeasonOpened | None:
        """Open season number `season` for registration, with further segments if given; None if it is open already."""
        spec = self.spec if segments is None else with_segments(self.spec, segments)
        if season == self.season:
            if spec != self.spec:
                raise Refused(409, "running", f"season {season} is {self.state} with other segments, which are fixed")
            return None
        if self.state != "settled" or season != self.season + 1:
            raise Refused(
                409, "season_order", f"season {self.season} is {self.state}; season {season} cannot be opened now"
            )
        if season > MOST_SEASONS:
            raise Refused(409, "season_order", f"a market has {MOST_SEASONS} seasons at most; declare another one")
        self.season, self.state = season, "open"
        self.registry.forget_withdrawn()
        self.spec, self.mechanism, self.terms = spec, build_mechanism(spec), session_terms(spec)
        return self._append(ledger.SeasonOpened, at, season, None if segments is None else spec.segments)
