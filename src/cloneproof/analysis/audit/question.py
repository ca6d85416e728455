"""What is asked of an audit, checked: which agents, which horizons, which machine runs at each of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from cloneproof._checks import real, whole
from cloneproof.analysis.audit.copy_vectors import OriginalKinds, kinds_of
from cloneproof.errors import EngineError, MarketError, MechanismError, brief, did_you_mean
from cloneproof.market.agents import Agent
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism

MechanismOrFactory = Mechanism | Callable[[Market], Mechanism]
ProgressCallback = Callable[[int, int, str], None]
MOST_HORIZONS = 100_000
MOST_CAP = 10**6


@dataclass
class Deadline:
    """The time that an audit may take, and where it reports how far it is."""

    budget: float | None = None
    report: ProgressCallback | None = None
    start: float = field(default_factory=time.perf_counter)
    until: float | None = None  # seconds since the start at which a share of the budget is spent

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.start

    @property
    def left(self) -> float | None:
        """Until the budget is spent."""
        end = self.budget if self.until is None else self.until
        return None if end is None else max(0.0, end - self.seconds)

    def share(self, parts: int) -> Deadline:
        """The same clock for one of so many who have yet to come: it stops when its part of what is left is spent."""
        return self if self.left is None else replace(self, until=self.seconds + self.left / parts)

    @property
    def spent(self) -> bool:
        """Whether nothing is left."""
        return self.left == 0.0

    def tell(self, done: int, total: int, what: str) -> None:
        """Report progress, where somebody listens."""
        if self.report is not None:
            self.report(done, total, what)


@dataclass(frozen=True)
class Question:
    """A market, the mechanism at each horizon, the agents under suspicion, the cap and the tolerance."""

    market: Market
    markets: dict[int, Market]
    mechanisms: dict[int, Mechanism]
    agents: tuple[str, ...]
    max_copies: int
    tolerance: float

    @property
    def horizons(self) -> list[int]:
        """The horizons asked for, rising."""
        return list(self.markets)

    def agent(self, name: str) -> Agent:
        """The agent of that name."""
        return next(agent for agent in self.market.agents if agent.name == name)

    @property
    def representatives(self) -> dict[str, str]:
        """For each agent, the first one asked about that has the same priors, where agents can be exchanged as well."""
        rules = [chosen.agent or chosen.arm for chosen in self.mechanisms.values()]
        exchangeable = all(rule.order != "index" for rule in rules)
        found: dict[str, str] = {}
        for name in self.agents:
            like = [other for other in found if self.agent(other).priors == self.agent(name).priors]
            found[name] = found[like[0]] if like and exchangeable else name
        return found

    def kinds(self, name: str) -> OriginalKinds:
        """Which originals of an agent can be exchanged under the mechanisms of all horizons."""
        running = [chosen.at_horizon(len(self.market.agents), horizon) for horizon, chosen in self.mechanisms.items()]
        return kinds_of(self.agent(name), any(one.arm.order == "index" for one in running))


def checked_question(
    market: Market,
    mechanism: MechanismOrFactory,
    agent: str | None,
    max_copies: int,
    tolerance: float,
    horizons: str | Sequence[int] | None,
) -> Question:
    """The question, or one clear sentence about what is wrong with it."""
    if not isinstance(market, Market):
        raise MarketError(f"expected a market to audit, got {brief(market)}; make one with cp.Market or cp.load_market")
    if not isinstance(mechanism, Mechanism) and not callable(mechanism):
        raise MechanismError(
            f"expected a mechanism or a function of the market, got {brief(mechanism)}; make one with cp.mechanism"
        )
    names = [each.name for each in market.agents]
    if agent is not None and agent not in names:
        raise MarketError(
            f"unknown agent {brief(agent)}; {did_you_mean(str(agent), names)}the market has {', '.join(names)}"
        )
    cap, slack = whole(max_copies), real(tolerance)
    if cap is None or not 1 <= cap <= MOST_CAP:
        raise EngineError(
            f"expected max_copies to be a whole number from 1 to {MOST_CAP}, got {brief(max_copies)}; "
            "4 tries up to four registrations of each original"
        )
    if slack is None or slack < 0:
        raise EngineError(
            f"expected a tolerance of at least 0, got {brief(tolerance)}; 0.005 lets gains of half a percent pass"
        )
    asked = [market.horizon] if horizons is None else checked_horizons(horizons)
    markets = {h: market if h == market.horizon else market.with_horizon(h) for h in asked}
    chosen = {h: mechanism if isinstance(mechanism, Mechanism) else mechanism(own) for h, own in markets.items()}
    return Question(market, markets, chosen, (agent,) if agent is not None else tuple(names), cap, slack)


def checked_horizons(horizons: object) -> list[int]:
    """The horizons of "1:500" (both included) or of a list of whole numbers, rising and each once.

    >>> checked_horizons("3:5"), checked_horizons([7, 2, 7])
    ([3, 4, 5], [2, 7])
    """
    found: list[int | None]
    if isinstance(horizons, str):
        ends = horizons.split(":")
        low, high = (int(end) if end.isascii() and end.isdigit() and len(end) < 16 else 0 for end in (ends * 2)[:2])
        good = len(ends) == 2 and 1 <= low <= high
        found = list(islice(range(low, high + 1), MOST_HORIZONS + 1)) if good else []
    elif isinstance(horizons, Sequence | range):
        found = [whole(horizon) for horizon in islice(horizons, MOST_HORIZONS + 1)]
    else:
        found = []
    rising = sorted({horizon for horizon in found if horizon is not None and horizon >= 1})
    if not rising or None in found or len(found) > MOST_HORIZONS or (found and min(h or 0 for h in found) < 1):
        raise EngineError(
            f"expected horizons as 'FIRST:LAST' or up to {MOST_HORIZONS} whole numbers from 1, got {brief(horizons)}; "
            "write e.g. '1:500'"
        )
    return rising


def checked_budget(budget_seconds: float | None) -> float | None:
    """A time in seconds, or none."""
    if budget_seconds is None:
        return None
    seconds = real(budget_seconds)
    if seconds is None or seconds <= 0:
        raise EngineError(
            f"expected a budget above 0 seconds, got {brief(budget_seconds)}; give e.g. 30, or leave it out"
        )
    return seconds
