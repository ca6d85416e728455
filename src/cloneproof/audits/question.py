"""The checked question of an audit: a case for each agent, the tolerance, and further deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

from cloneproof._lib.checks import number_in, one_of
from cloneproof.audits.deviations import CopiesOf, CopyVector, OriginalKinds, kinds_of
from cloneproof.errors import EngineError, MarketError, MechanismError, brief
from cloneproof.market.market import Agent, FullCopies, Market, check_fixed_end, checked_market, full_copies
from cloneproof.market.segments import MeanLaw
from cloneproof.mechanisms.bandits.bandit import Bandit
from cloneproof.mechanisms.bandits.rule import Rule
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.own.black_box import BlackBox
from cloneproof.mechanisms.proof import Case, Proof
from cloneproof.runs.deadline import Deadline

MechanismOrFactory = Mechanism | Callable[[Market], Mechanism]
Auditable = MechanismOrFactory | BlackBox


@dataclass(frozen=True, eq=False)
class AuditCase:
    """One agent in a market."""

    agent: Agent
    market: Market
    mechanism: Mechanism
    kinds: OriginalKinds  # which of the agent's originals can be exchanged
    box: BlackBox | None = None  # for which `mechanism` is a placeholder
    others: Mapping[str, CopyVector] = field(default_factory=dict)  # who does not register honestly
    clock: Deadline | None = None  # of what takes long to prove

    @property
    def name(self) -> str:
        return self.agent.name

    def deviation(self, vector: CopyVector) -> CopiesOf:
        """Copies of this agent."""
        return CopiesOf(self.name, vector, self.others)

    @cached_property
    def proof(self) -> Proof:
        """What the mechanism proves of the agent's lists."""
        return self.mechanism.proof(Case(self.market, self.name, self.clock))

    @property
    def played(self) -> Mechanism | BlackBox:
        """Mechanism, or the black box behind it."""
        return self.box or self.mechanism

    @property
    def horizon(self) -> int:
        return self.market.horizon

    @property
    def agents(self) -> int:
        return len(self.market.agents)

    @property
    def place(self) -> int:
        """Position of the agent among all agents."""
        return [agent.name for agent in self.market.agents].index(self.name)

    @property
    def under(self) -> tuple[Market, Mechanism]:
        """Market and its mechanism, for exact engines."""
        return self.market, self.mechanism

    def copies(self, vector: CopyVector) -> FullCopies:
        """Everybody's copies if this agent registers these."""
        return full_copies(self.market.agents, {**self.others, self.name: vector})


def audit_cases(market: Market, mechanism: Auditable, names: Sequence[str]) -> dict[str, AuditCase]:
    """Return the case of each agent in a market."""
    box = mechanism if isinstance(mechanism, BlackBox) else None
    declared, agents = _declared(mechanism, market), {agent.name: agent for agent in market.agents}
    kinds = {name: kinds_of(agents[name], not declared.exchangeable) for name in names}
    return {name: AuditCase(agents[name], market, declared, kinds[name], box) for name in names}


def _unknown(*numbers: float) -> float:
    raise EngineError("expected an engine that plays the black box itself, got one that asks for its rule")


def _declared(mechanism: Auditable, market: Market) -> Mechanism:
    if isinstance(mechanism, BlackBox):  # a placeholder, which no engine runs and no argument covers
        return Bandit(Rule(mechanism.name, _unknown, order="index", randomised=True), name=mechanism.name)
    derived = mechanism if isinstance(mechanism, Mechanism) else mechanism(market)
    if not isinstance(derived, Mechanism):
        raise MechanismError(
            f"expected the function of the market to return a mechanism, got {brief(derived)}; "
            "return cp.mechanism(name, market=market)"
        )
    return derived


def audit_case(market: Market, mechanism: Mechanism, name: str) -> AuditCase:
    """Return the case of one agent at the market's horizon."""
    one_of(name, [agent.name for agent in market.agents], "agent", MarketError)
    return audit_cases(market, mechanism, [name])[name]


def representatives(cases: Mapping[str, AuditCase]) -> dict[str, str]:
    """For each agent the first one with the same priors, if the mechanism treats agents alike."""
    alike = all(case.mechanism.exchangeable for case in cases.values())
    first: dict[tuple[MeanLaw, ...], str] = {}
    return {name: first.setdefault(case.agent.laws, name) if alike else name for name, case in cases.items()}


def most_earned(market: Market, name: str) -> float:
    """Return the most that an agent can earn: the share of all rounds, or pages, at its best mean."""
    if market.segments:
        return sum(most_earned(own, name) for own in market.by_segment.values())
    support = next((agent.support for agent in market.agents if agent.name == name), None)
    return market.share * market.horizon * market.page_attention * (1.0 if support is None else max(support))


OpponentsName = Literal["market", "any"]
AlsoName = Literal["withholding", "splitting", "informed"]


@dataclass(frozen=True)
class Question:
    """The cases of each audited agent, with what holds for all of them."""

    market: Market
    cases: dict[str, AuditCase]
    representatives: dict[str, str]  # the first agent that each can be exchanged with; only that one is searched
    tolerance: float
    opponents: OpponentsName = "market"
    also: frozenset[AlsoName] = frozenset()

    @property
    def box(self) -> BlackBox | None:
        return next(iter(self.cases.values())).box

    @property
    def agents(self) -> list[str]:
        return list(self.cases)

    def timed(self, clock: Deadline) -> Question:
        """Return the question with this long to prove what takes long."""
        return replace(self, cases={name: replace(case, clock=clock) for name, case in self.cases.items()})

    @property
    def searched(self) -> list[AuditCase]:
        """Cases of one agent of each kind."""
        return [self.cases[name] for name in dict.fromkeys(self.representatives.values())]


def checked_question(
    market: Market,
    mechanism: Auditable,
    agent: str | None = None,
    opponents: OpponentsName = "market",
    tolerance: float = 0.0,
    also: Iterable[AlsoName] = (),
) -> Question:
    """Check the arguments and return the question."""
    checked_market(market)
    if isinstance(mechanism, type) or not (isinstance(mechanism, Mechanism | BlackBox) or callable(mechanism)):
        raise MechanismError(
            f"expected a mechanism, a black box or a function of the market, got {brief(mechanism)}; "
            "make one with cp.mechanism(name, ..), or wrap a policy of your own: cp.BlackBox(MyPolicy)"
        )
    names = [other.name for other in market.agents]
    agents = names if agent is None else [one_of(agent, names, "agent", MarketError)]
    one_of(opponents, get_args(OpponentsName), "opponents", EngineError)
    others: list[AlsoName] = [also] if isinstance(also, str) else list(also)  # type: ignore[list-item]
    for other in others:
        one_of(other, get_args(AlsoName), "what else is asked for", EngineError)
    if isinstance(mechanism, BlackBox) and (opponents == "any" or others):
        raise EngineError(
            "expected a mechanism made of rules for opponents='any', withholding, splitting and informed agents, got a "
            "black box; leave them out"
        )
    if market.places and set(others) - {"withholding"}:
        raise EngineError(
            "expected no splitting or informed agents where a page has positions, got "
            f"{', '.join(sorted(others))}; leave them out"
        )
    if market.segments and (opponents == "any" or "informed" in others):
        raise EngineError(
            "expected no opponents='any' or informed agents in a market with segments, got one of them; leave them "
            "out, or ask about market.segment(name)"
        )
    if opponents == "any" and set(others) - {"withholding"}:
        raise EngineError(
            f"expected nothing but withholding to be asked for with opponents='any', got {', '.join(sorted(others))}; "
            "ask for it against the market"
        )
    slack = number_in(tolerance, "tolerance", 0, error=EngineError)
    cases = audit_cases(market, mechanism, agents)
    first_alike = representatives(cases)
    if not all(case.mechanism.ranks_slots for case in cases.values()):
        check_fixed_end(market, "an audit of any mechanism but 'reservoir-index' and 'reservoir-bars'")
    return Question(market, cases, first_alike, slack, opponents, frozenset(others))
