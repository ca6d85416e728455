"""One market: what is asked of it goes in, ledger entries come out. Deterministic; it reads and writes no file.

Each method checks everything first, then changes the state and appends one entry; a refusal changes nothing. The
mechanism is `cloneproof.session` as it is. What was recorded long ago is not kept here: a caller who asks about it
hands in the old entry, which storage finds by its key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from typing import Final, Literal

from cloneproof.errors import Refused
from cloneproof.mechanisms import Session
from cloneproof.mechanisms.online.session import session
from cloneproof.serve.ledger.chain import EMPTY, Chain, payment
from cloneproof.serve.ledger.dice import MarketDice, old_season_seed
from cloneproof.serve.ledger.entries import (
    AgentRegistered,
    ArmRegistered,
    Decided,
    Defaulted,
    Late,
    Opened,
    Rewarded,
    SeasonOpened,
    Settled,
    Started,
)
from cloneproof.serve.ledger.terms import MarketSpec, SeasonState, as_recorded, build_mechanism, check_reward
from cloneproof.serve.market.registry import Registry
from cloneproof.serve.market.season_history import SeasonHistory
from cloneproof.serve.market.wait_windows import WaitWindows

MOST_PENDING: Final = 1_000_000  # decisions whose reward is awaited at the same time


class MarketEngine:
    """The state of one market and the moves that are possible in it."""

    def __init__(self, spec: MarketSpec, chain: Chain | None = None, dice: MarketDice | None = None) -> None:
        self.spec, self.mechanism, self.family = spec, build_mechanism(as_recorded(spec)), spec.family
        self.dice = dice or MarketDice(spec.market)
        self.chain = chain or Chain(EMPTY)
        self.registry = Registry(spec.max_agents, spec.max_arms)
        self.season, self.state, self.at = 1, "open", 0
        self.session: Session | None = None
        self.ends: list[int] = []  # the last decision of each settled season
        self.before = 0  # decisions of earlier seasons
        self.settling = False
        self.phase = ""  # of the last decision of the season
        self.late = self.defaulted = 0  # rewards, over all seasons
        self.history = SeasonHistory()
        self._share_micro = spec.share_micro
        self.windows = WaitWindows(spec.wait_seconds, spec.wait_rounds)
        self.ahead: int | None = None  # of the caller's clock; none while recorded entries are done again

    state: SeasonState

    @classmethod
    def open(cls, spec: MarketSpec, at: int, dice: MarketDice | None = None) -> MarketEngine:
        """A new market, with its first entry."""
        market = cls(spec, dice=dice)
        market.enter_opening(at)
        return market

    def enter_opening(self, at: int) -> None:
        """The first entry."""
        self.at = at
        self.chain.append(Opened(1, at, self.spec, self.dice.commitment(1)))

    def follow(self, steady: int, wall: int | None) -> None:
        """Set the ledger's time by two clocks of the caller: a steady one, and one that shows the time but may jump.

        While a reward is awaited, ledger time goes on with the steady clock, so that no jump ends a window or stops it.
        While none is, it is that of the wall clock, or stands still until that has caught up. After a restart it goes
        on with the wall clock, by at most one window. Without a wall clock the steady one is also that of others who
        write this ledger: time is what it shows, but never before what was recorded.
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
        """The ledger's time at a time of the caller's clock; it never runs backwards."""
        return max(self.at, at if self.ahead is None else at + self.ahead)

    def _now(self, at: int) -> int:
        self.at = self.time(at)
        return self.at

    @property
    def decisions(self) -> int:
        """How many decisions were made in all seasons."""
        return self.before + (self.session.round if self.session is not None else 0)

    @property
    def next_registration(self) -> int:
        """The season that a registration made now is for."""
        return self.season if self.state == "open" else self.season + 1

    def register_agent(self, agent: str, at: int) -> AgentRegistered | None:
        """Register an agent, or nothing if it is known already."""
        if agent in self.registry:
            return None
        self.registry.check_room_for_agent(agent)
        entry = AgentRegistered(self.chain.n + 1, self._now(at), agent, self.next_registration)
        self.registry.add_agent(agent, entry.season)
        self.chain.append(entry)
        return entry

    def register_arm(self, agent: str, arm: str, at: int) -> ArmRegistered | None:
        """Register an arm of a registered agent, or nothing if it is known already."""
        if not self.registry.check_room_for_arm(agent, arm):
            return None
        entry = ArmRegistered(self.chain.n + 1, self._now(at), agent, arm, self.next_registration)
        self.registry.add_arm(agent, arm, entry.season)
        self.chain.append(entry)
        return entry

    def open_session(self, registered: dict[str, int]) -> Session:
        """The session of this season for what is registered; it depends on nothing else, and changes nothing."""
        return session(
            self.mechanism,
            registered,
            self.spec.horizon,
            self.season_seed,
            self.spec.share,
            self.spec.rewards,
            history=False,
        )

    def start(self, at: int, prepared: tuple[int, dict[str, int], Session] | None = None) -> Started | None:
        """Close registration and let the mechanism run; nothing if it runs already.

        `prepared` is a season, what was registered for it, and the session of that; it is taken if it still fits.
        """
        if self.state == "running":
            return None
        if self.state == "settled":
            raise Refused(409, "settled", f"season {self.season} is settled; open the next one first")
        registered = self.registry.participants(self.season)
        if not registered:
            raise Refused(409, "no_arms", "expected at least one agent with an arm, got none; register arms first")
        entry = Started(self.chain.n + 1, self._now(at), self.season)
        fits = prepared is not None and prepared[:2] == (self.season, registered)
        self.session = prepared[2] if prepared is not None and fits else self.open_session(registered)
        self.state, self.phase = "running", "started"
        self.registry.start(registered)
        self.history.begin(self.at, self.registry)
        self.chain.append(entry)
        return entry

    @property
    def knows_dice(self) -> bool:
        """Whether the dice of the present season are known."""
        return self.spec.seed is not None or self.dice.season(self.season) is not None

    @property
    def season_seed(self) -> int:
        """The seed of the season's session."""
        if self.spec.seed is not None:
            return old_season_seed(self.spec.seed, self.season)
        dice = self.dice.season(self.season)
        if dice is None:
            raise Refused(409, "no_dice", f"the dice of season {self.season} are not known here; settle it first")
        return dice.seed

    def decide(self, request: str, at: int) -> Decided:
        """The next decision, for a request that has none yet."""
        decided, refusal = self.decide_many((request,), at)
        if refusal is not None:
            raise refusal
        return decided[0]

    def decide_many(
        self, requests: Sequence[str], at: int, out_of_time: Callable[[], bool] | None = None
    ) -> tuple[list[Decided], Refused | None]:
        """The next decisions, for different requests that have none yet; where it ends early, why.

        With `out_of_time` it may also end early, after at least one, because that says so: then there is no refusal.
        """
        decided: list[Decided] = []
        now, refusal = self.time(at), None
        try:
            while len(decided) < len(requests):
                decided += self._decide_run(requests, len(decided), now)
                if out_of_time is not None and out_of_time():
                    break
        except Refused as problem:
            refusal = problem
        if decided:
            self._enter_decisions(decided, now)
        return decided, refusal

    def decide_in_windows(
        self, requests: Sequence[str], at: int, out_of_time: Callable[[], bool] | None = None
    ) -> tuple[list[Decided], list[Defaulted], Refused | None]:
        """The same, with the defaults of windows of so many rounds that are over in between, each in its place."""
        decided, defaults = list[Decided](), list[Defaulted]()
        while True:
            left = None if self.session is None else self.windows.rounds_left(self.session.pending, self.session.round)
            done = len(decided)
            more, refusal = self.decide_many(
                requests if left is None else requests[done : done + left], at, out_of_time
            )
            decided += more
            if left is not None:
                defaults += self.expire(at)
            if left is None or len(more) < left or len(decided) == len(requests):
                return decided, defaults, refusal
            if out_of_time is not None and out_of_time():
                return decided, defaults, None

    def _decide_run(self, requests: Sequence[str], done: int, now: int) -> list[Decided]:
        """Decisions for the requests after the first `done`, as many as no reward can change any more."""
        live = self.session
        if live is None or self.state != "running":
            raise Refused(409, f"season_{self.state}", f"season {self.season} is {self.state}, so nothing is decided")
        if live.round >= live.horizon:
            raise Refused(409, "horizon_reached", f"all {live.horizon} rounds of season {self.season} are decided")
        room = MOST_PENDING - len(live.pending)
        if room <= 0:
            raise Refused(429, "too_many_pending", f"{MOST_PENDING} decisions await a reward; send rewards first")
        first, several = live.decide_run(min(room, len(requests) - done))
        allocation = live.pending[first.id]
        arm = self.registry.count_decisions(allocation.agent, allocation.arm, several)
        n, number, probability = self.chain.n + done + 1, self.before + first.id, live.probability
        return [
            Decided(n + k, now, number + k, first.agent, arm, first.phase, probability, requests[done + k])
            for k in range(several)
        ]

    def _enter_decisions(self, decided: list[Decided], now: int) -> None:
        """Chain decisions, and let their wait windows begin."""
        self.at, self.phase = now, decided[-1].phase
        self.history.note(now, decided[-1].id - self.before, self.registry)
        self.windows.begin(decided[-1].id - self.before, now)
        self.chain.extend(decided, [f"q:{entry.request}" for entry in decided])

    def awaits(self, decision: int) -> bool:
        """Whether a decision awaits its reward."""
        return self.session is not None and decision - self.before in self.session.pending

    def awaits_all(self, decisions: set[int]) -> bool:
        """Whether each of these decisions awaits its reward."""
        live, before = self.session, self.before
        return live is not None and {decision - before for decision in decisions} <= live.pending.keys()

    def reward(self, event: str, decision: int, value: float, at: int, defaulted: Defaulted | None) -> Rewarded | Late:
        """Enter the reward of a decision under a new event id; `defaulted` is the default in its place, if any."""
        if not self.awaits(decision):
            return self._enter_late(event, decision, value, at, defaulted)
        return self.reward_many(((event, decision, check_reward(value, self.family)),), at)[0]

    def reward_many(self, rewards: Sequence[tuple[str, int, float]], at: int) -> list[Rewarded]:
        """Enter rewards (event, decision, value) under new event ids: other decisions each, which await one."""
        if not rewards:
            return []
        counted = self._count([(decision - self.before, value) for _, decision, value in rewards])
        now, entries = self._now(at), []
        for n, (event, decision, value), (agent, arm, paid) in zip(
            count(self.chain.n + 1), rewards, counted, strict=False
        ):
            entries.append(Rewarded(n, now, decision, agent, arm, value, paid, event))
        self.chain.extend(entries, [f"e:{event}" for event, _, _ in rewards])
        return entries

    def _enter_late(self, event: str, decision: int, value: float, at: int, defaulted: Defaulted | None) -> Late:
        """A reward for a decision that does not await one."""
        if not 1 <= decision <= self.decisions:
            raise Refused(
                404,
                "unknown_decision",
                f"expected a decision of this market (1 to {self.decisions}), got {decision}; use the id it returned",
            )
        if defaulted is None:
            raise Refused(409, "already_rewarded", f"decision {decision} already has a reward by another event")
        value = check_reward(value, self.family)  # before the time is taken: a refusal changes nothing
        self.late += 1
        entry = Late(self.chain.n + 1, self._now(at), decision, value, event, defaulted.agent, defaulted.arm)
        self.chain.append(entry)
        return entry

    def _count(self, rewards: Sequence[tuple[int, float]]) -> list[tuple[str, str, int]]:
        """Let rewards count: in the mechanism, in the statistics, in the balances. Agent, arm and payment of each."""
        assert self.session is not None
        counted = self.session.reward_many(rewards)
        pay = {ticks: payment(ticks, self._share_micro) for ticks in {ticks for _, ticks in counted}}
        count_reward = self.registry.count_reward
        return [
            (*count_reward(allocation.agent, allocation.arm, ticks, pay[ticks]), pay[ticks])
            for allocation, ticks in counted
        ]

    def overdue(self, at: int) -> bool:
        """Whether a wait window is over."""
        return self.session is not None and self.windows.any_over(self.session.round, self.time(at))

    def expire(self, at: int) -> Iterator[Defaulted]:
        """Enter the default reward for decisions whose window is over, oldest first."""
        while (entry := self.expire_one(at)) is not None:
            yield entry

    def expire_one(self, at: int) -> Defaulted | None:
        """The next decision whose window is over, if any, gets the default reward."""
        if self.session is None:
            return None
        overdue = self.windows.first_overdue(self.session.pending, self.session.round, self.time(at))
        return None if overdue is None else self._enter_defaults([overdue], at, "window")[0]

    def settle_some(self, at: int, most: int) -> list[Defaulted]:
        """Before the settlement, the oldest decisions that still await a reward get the default, so many at most."""
        live = self.session
        if live is None:
            return []
        self.settling = True
        return self._enter_defaults(self.windows.oldest_pending(live.pending, live.round, most), at, "settlement")

    def _enter_defaults(self, rounds: list[int], at: int, because: Literal["window", "settlement"]) -> list[Defaulted]:
        if not rounds:
            return []
        value = self.spec.default_reward
        counted = self._count([(round_, value) for round_ in rounds])
        self.defaulted += len(rounds)
        n, now = self.chain.n + 1, self._now(at)
        entries = [
            Defaulted(n + k, now, self.before + round_, agent, arm, value, paid, because)
            for k, (round_, (agent, arm, paid)) in enumerate(zip(rounds, counted, strict=True))
        ]
        self.windows.oldest = rounds[-1] + 1
        self.chain.extend(entries, [f"d:{entry.id}" for entry in entries])
        return entries

    def settle(self, at: int) -> Settled | None:
        """End the season; nothing if it is settled already."""
        if self.state == "settled":
            return None
        if self.state == "open" or self.session is None:
            raise Refused(409, "season_open", f"season {self.season} has not started; start it first")
        while self.settle_some(at, 1000):
            pass
        dice = self.dice.season(self.season) or (None, None)
        entry = Settled(self.chain.n + 1, self._now(at), self.season, *dice)
        self.before += self.session.round
        self.ends.append(self.before)
        self.session, self.state, self.settling = None, "settled", False
        self.windows.clear()
        self.chain.append(entry)
        return entry

    def open_season(self, season: int, at: int) -> SeasonOpened | None:
        """Open season number `season` for registration; nothing if it is there already."""
        if season == self.season:
            return None
        if self.state != "settled" or season != self.season + 1:
            raise Refused(
                409, "season_order", f"season {self.season} is {self.state}; season {season} cannot be opened now"
            )
        entry = SeasonOpened(self.chain.n + 1, self._now(at), season, self.dice.commitment(season))
        self.season, self.state = season, "open"
        self.chain.append(entry)
        return entry
