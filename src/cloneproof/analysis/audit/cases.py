"""The cases of an audit: one agent at one horizon each, with the market and the mechanism that runs there.

An audit asks about some agents at some horizons, under a mechanism that may be derived anew for each horizon and may
have a fallback for short ones. All of this is resolved here, once; what follows takes a case, or the cases of one
agent, and looks nothing up again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, kinds_of
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError, MarketError, MechanismError, brief, did_you_mean
from cloneproof.market.agents import Agent
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market
from cloneproof.mechanisms.epochs import running_epochs
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Rule

MechanismOrFactory = Mechanism | Callable[[Market], Mechanism]
Auditable = MechanismOrFactory | BlackBox


@dataclass(frozen=True, eq=False)
class AuditCase:
    """One agent at one horizon.

    market     at that horizon
    mechanism  as declared, for whoever runs it among more agents (two accounts) or as a whole (engines)
    running    the mechanism that runs among these agents at this horizon: the declared one, or its fallback
    kinds      which of the agent's originals can be exchanged at every horizon of the audit
    box        a black box, for which `mechanism` stands in: a rule of which nothing is known
    """

    agent: Agent
    market: Market
    mechanism: Mechanism
    running: Mechanism
    kinds: OriginalKinds
    box: BlackBox | None = None

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.agent.name

    @property
    def played(self) -> Mechanism | BlackBox:
        """What plays: the mechanism, or the black box in whose place it stands."""
        return self.box or self.mechanism

    @property
    def horizon(self) -> int:
        """The rounds of its market."""
        return self.market.horizon

    @property
    def agents(self) -> int:
        """How many agents there are, this one included."""
        return len(self.market.agents)

    def copies(self, vector: CopyVector) -> FullCopies:
        """What everybody registers where this agent registers so many of each original and the others are honest."""
        return {each.name: vector if each.name == self.name else (1,) * each.count for each in self.market.agents}

    def witness(self, vector: CopyVector, honest: Estimate, copied: Estimate) -> Witness:
        """A deviation against honest others, from the two payoffs."""
        return Witness(self.name, vector, honest, copied, copied - honest, self.market, self.copies(vector))


AgentCases = tuple[AuditCase, ...]  # of one agent: a case for each horizon, rising


def audit_cases(
    market: Market, mechanism: Auditable, names: Sequence[str], horizons: Iterable[int]
) -> dict[str, AgentCases]:
    """The cases of each agent.

    >>> from cloneproof import Point, mechanism
    >>> market = Market([Agent("ana", 2, Point(0.5)), Agent("bo", 1, Point(0.6))], horizon=100)
    >>> cases = audit_cases(market, mechanism("ucb1"), ["ana"], [10, 100])
    >>> [(case.name, case.horizon) for case in cases["ana"]], cases["ana"][0].copies((2, 1))
    ([('ana', 10), ('ana', 100)], {'ana': (2, 1), 'bo': (1,)})
    """
    markets = [market if rounds == market.horizon else market.with_horizon(rounds) for rounds in horizons]
    box = mechanism if isinstance(mechanism, BlackBox) else None
    declared = [_declared(mechanism, each) for each in markets]
    pairs = zip(declared, markets, strict=True)
    running = [chosen.at_horizon(len(each.agents), each.horizon) for chosen, each in pairs]
    in_order = any(each.arm.order == "index" for each in running)
    agents = {agent.name: agent for agent in market.agents}
    cases = {}
    for name in names:
        kinds = kinds_of(agents[name], in_order)
        at_each = zip(markets, declared, running, strict=True)
        cases[name] = tuple(AuditCase(agents[name], *resolved, kinds, box) for resolved in at_each)
    return cases


def stand_in(box: BlackBox) -> Mechanism:
    """A mechanism in the place of a black box: one rule of which nothing is known, its regard to order included.

    No engine runs it and no argument applies to it; it carries the name.
    """
    return Mechanism(arm=Rule(box.name, _unknown, order="index", randomised=True), name=box.name)


def _unknown(*numbers: float) -> float:
    raise EngineError("expected an engine that plays the black box itself, got one that asks for its rule")


def _declared(mechanism: Auditable, market: Market) -> Mechanism:
    if isinstance(mechanism, Mechanism):
        return mechanism
    return stand_in(mechanism) if isinstance(mechanism, BlackBox) else _derived(mechanism, market)


def _derived(mechanism: Callable[[Market], Mechanism], market: Market) -> Mechanism:
    derived = mechanism(market)
    if not isinstance(derived, Mechanism):
        raise MechanismError(
            f"expected the function of the market to return a mechanism, got {brief(derived)}; "
            "return cp.mechanism(name, market=market)"
        )
    return derived


def audit_case(market: Market, mechanism: Mechanism, name: str) -> AuditCase:
    """The case of one agent at the market's horizon."""
    names = [agent.name for agent in market.agents]
    if name not in names:
        raise MarketError(
            f"unknown agent {brief(name)}; {did_you_mean(str(name), names)}the market has {', '.join(names)}"
        )
    return audit_cases(market, mechanism, [name], [market.horizon])[name][0]


def representatives(cases: Mapping[str, AgentCases]) -> dict[str, str]:
    """For each agent the first one with the same priors, where the mechanism cannot tell agents apart."""
    rules = [case.mechanism.agent or case.mechanism.arm for of_agent in cases.values() for case in of_agent]
    exchangeable = all(rule.order != "index" for rule in rules)
    chosen: dict[str, str] = {}
    for name, (case, *_) in cases.items():
        alike = [other for other in chosen if exchangeable and cases[other][0].agent.priors == case.agent.priors]
        chosen[name] = chosen[alike[0]] if alike else name
    return chosen


def epoch_cases(case: AuditCase) -> list[AuditCase]:
    """A case for each epoch of a mechanism that starts afresh in epochs; the case itself for any other."""
    epochs = running_epochs(case.running, case.agents, case.horizon)
    return [
        replace(
            case,
            market=case.market.with_horizon(epoch.rounds),
            mechanism=epoch.mechanism,
            running=epoch.mechanism,
        )
        for epoch in epochs
    ]
