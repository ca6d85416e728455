"""The checked question of an audit: a case for each agent, with the argument that is known before a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, get_args

from cloneproof._lib.checks import number_in, one_of
from cloneproof.audits.deviations import CopiesOf, CopyVector, OriginalKinds, kinds_of
from cloneproof.errors import EngineError, MarketError
from cloneproof.evaluation.reference import runs_of
from cloneproof.market.market import Agent, FullCopies, Market, check_fixed_end, checked_market, full_copies
from cloneproof.market.segments import MeanLaw
from cloneproof.mechanisms.facts import Setting
from cloneproof.mechanisms.mechanism import Mechanism, mechanism_for
from cloneproof.mechanisms.proof import Case, Proof
from cloneproof.mechanisms.terms import Terms, check_takes
from cloneproof.runs.estimate import Estimate

Auditable = Mechanism | Callable[[Market], Mechanism]


@dataclass(frozen=True)
class Argument:
    """Why no copies can pay in a case, or how much they may gain."""

    words: str
    settles: bool = True  # whether it rules out gains above the tolerance
    most: float = 0.0  # the gain in rewards that it leaves open
    proof: Proof | None = None  # without one it rests on a search

    @property
    def on_slots(self) -> bool:
        """Whether it speaks about withholding, too, and against any opponents."""
        return self.proof is not None and self.proof.on_slots


@dataclass(frozen=True, eq=False)
class AuditCase:
    """One agent in a market."""

    agent: Agent
    market: Market
    mechanism: Mechanism
    kinds: OriginalKinds  # which of the agent's originals can be exchanged
    others: Mapping[str, CopyVector] = field(default_factory=dict)  # who does not register honestly
    proving: bool = False  # whether to prove what takes some seconds
    within: float = 0.0  # the tolerance of an argument; against any opponents, who may leave an agent nothing, it is 0

    @property
    def name(self) -> str:
        return self.agent.name

    def deviation(self, vector: CopyVector) -> CopiesOf:
        """Copies of this agent."""
        return CopiesOf(self.name, vector, self.others)

    @cached_property
    def proof(self) -> Proof:
        """What the mechanism proves of the agent's lists."""
        return self.mechanism.proof(Case(self.market, self.name, self.proving))

    @cached_property
    def argument(self) -> Argument | None:
        """What is known before a search, whatever anybody is and registers."""
        return None if self.others else from_proof(self, self.within)

    @property
    def elementary(self) -> Argument | None:
        """The argument, if it makes a search unnecessary."""
        argument = self.argument
        return argument if argument is not None and argument.proof is not None and argument.proof.same else None

    @cached_property
    def slow(self) -> bool:
        """Whether somebody's own code plays it, in processes of its own."""
        return runs_of(self.market, self.mechanism, self.copies(self.kinds.honest)).kernel.opens is not None

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
    made, agents = mechanism_for(mechanism, market), {agent.name: agent for agent in market.agents}
    kinds = {name: kinds_of(agents[name], not made.exchangeable) for name in names}
    return {name: AuditCase(agents[name], market, made, kinds[name]) for name in names}


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


def from_proof(case: AuditCase, tolerance: float, honest: Estimate | None = None) -> Argument | None:
    """Return what the mechanism's proof comes to in a case; None if it says nothing about copies, or not yet.

    If they may gain something, that is compared with a lower bound of the honest payoff: agents that are alike earn at
    least the average mean in their part of the rounds; for others there must be an honest payoff that a search
    evaluated. A bound that is not proven is within no tolerance.
    """
    proof = case.proof
    if not proof.settles:
        return None
    most, words = proof.most, proof.words
    if most is None or (not most.heuristic and most.high == 0):
        return Argument(words if most is None else f"{words}; {most.method}", proof=proof)
    alike = _earned_by_alike(case)
    if alike is None and honest is None:
        return None
    low = 0.0 if honest is None else max(0.0, honest.low)
    least, words = max(alike or 0.0, low), f"{words}; {gains_at_most(most)}"
    if most.heuristic:
        return Argument(words, False, most_earned(case.market, case.name) - low, proof)
    if most.high <= tolerance * least:
        words = f"{words}, of an honest payoff of at least {least:.4g}" if tolerance else words
        return Argument(words, True, most.high, proof)
    return Argument(f"{words}; set a tolerance above 0 to allow this", False, most.high, proof)


def gains_at_most(most: Estimate) -> str:
    """Return a sentence such as "copies and withholding gain at most 0.002 rewards in all"."""
    sure = f" ({most.method})" if most.heuristic else ""
    return f"copies and withholding gain at most {most.high:.3g} rewards in all{sure}"


def _earned_by_alike(case: AuditCase) -> float | None:
    """Return what an agent earns at least that is like all others; None if they differ."""
    earned = 0.0
    for market in case.market.by_segment.values():
        own = market.agents[case.place]
        if any(other.priors != own.priors for other in market.agents):
            return None
        earned += market.share * market.horizon * own.priors[0].mean / len(market.agents)
    return earned


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
    def slow(self) -> bool:
        """Whether somebody's own code plays it."""
        return next(iter(self.cases.values())).slow

    @property
    def agents(self) -> list[str]:
        return list(self.cases)

    def proving(self) -> Question:
        """Return the question of an audit, which proves what takes some seconds."""
        within = self.tolerance if self.opponents == "market" else 0.0
        return replace(
            self, cases={name: replace(case, proving=True, within=within) for name, case in self.cases.items()}
        )

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
    names = [other.name for other in market.agents]
    agents = names if agent is None else [one_of(agent, names, "agent", MarketError)]
    one_of(opponents, get_args(OpponentsName), "opponents", EngineError)
    others: list[AlsoName] = [also] if isinstance(also, str) else list(also)  # type: ignore[list-item]
    for other in others:
        one_of(other, get_args(AlsoName), "what else is asked for", EngineError)
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
    question = Question(market, cases, representatives(cases), slack, opponents, frozenset(others))
    for case in cases.values():
        check_takes(case.mechanism, Terms.of(market))
        if not case.mechanism.facts(Setting(len(names), market.horizon)).at_random_only:
            check_fixed_end(market, "an audit of any mechanism but 'reservoir-index' and 'reservoir-bars'")
    if (opponents == "any" or others) and question.slow:
        raise EngineError(
            "expected a mechanism made of rules for opponents='any', withholding, splitting and informed agents, got a "
            "black box; leave them out"
        )
    return question
