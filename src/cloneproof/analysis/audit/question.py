"""What is asked of an audit, checked: the cases, the cap on copies and the tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from cloneproof._checks import real, whole
from cloneproof.analysis.audit.cases import AgentCases, Auditable, audit_cases, representatives
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.errors import EngineError, MarketError, MechanismError, brief, did_you_mean
from cloneproof.market.market import Market, checked_market
from cloneproof.mechanisms.mechanism import Mechanism

MOST_HORIZONS = 100_000
MOST_CAP = 10**6


@dataclass(frozen=True)
class Question:
    """The cases of an audit, with what holds for all of them.

    market          as given, at its own horizon
    cases           of each agent under suspicion: one for each horizon asked for, rising
    representatives for each agent the first one that it can be exchanged with; only that one is searched
    """

    market: Market
    cases: dict[str, AgentCases]
    representatives: dict[str, str]
    max_copies: int
    tolerance: float

    @property
    def box(self) -> BlackBox | None:
        """The black box, where it is one that is audited."""
        return next(iter(self.cases.values()))[0].box

    @property
    def agents(self) -> list[str]:
        """The names of the agents under suspicion."""
        return list(self.cases)

    @property
    def horizons(self) -> list[int]:
        """The horizons asked for, rising."""
        return [case.horizon for case in next(iter(self.cases.values()))]

    @property
    def searched(self) -> list[AgentCases]:
        """The cases of one agent of each kind."""
        return [self.cases[name] for name in dict.fromkeys(self.representatives.values())]


def checked_question(
    market: Market,
    mechanism: Auditable,
    agent: str | None,
    max_copies: int,
    tolerance: float,
    horizons: str | Sequence[int] | None,
) -> Question:
    """The question, or one clear sentence about what is wrong with it."""
    checked_market(market)
    if not isinstance(mechanism, Mechanism | BlackBox) and not callable(mechanism):
        raise MechanismError(
            f"expected a mechanism, a black box or a function of the market, got {brief(mechanism)}; "
            "make one with cp.mechanism"
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
    cases = audit_cases(market, mechanism, names if agent is None else [agent], asked)
    return Question(market, cases, representatives(cases), cap, slack)


def checked_horizons(horizons: object) -> list[int]:
    """The horizons of "1:500" (both included) or of a list of whole numbers, rising and each once.

    >>> checked_horizons("3:5"), checked_horizons([7, 2, 7])
    ([3, 4, 5], [2, 7])
    """
    listed: list[int | None]
    if isinstance(horizons, str):
        ends = horizons.split(":")
        low, high = (int(end) if end.isascii() and end.isdigit() and len(end) < 16 else 0 for end in (ends * 2)[:2])
        good = len(ends) == 2 and 1 <= low <= high
        listed = list(islice(range(low, high + 1), MOST_HORIZONS + 1)) if good else []
    elif isinstance(horizons, Sequence | range):
        listed = [whole(horizon) for horizon in islice(horizons, MOST_HORIZONS + 1)]
    else:
        listed = []
    rising = sorted({horizon for horizon in listed if horizon is not None and horizon >= 1})
    if not rising or None in listed or len(listed) > MOST_HORIZONS or (listed and min(h or 0 for h in listed) < 1):
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
