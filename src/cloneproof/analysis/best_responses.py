"""What each copy vector is worth against what the others register, and best responses until nobody gains.

Payoffs are exact, or in pairs of sampled runs. Agents with the same priors that register the same are paid the same, so
a market of twenty equal agents asks one question where it has twenty.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds
from cloneproof.analysis.evaluate import ExactEngine, evaluate, exact_evaluations
from cloneproof.analysis.gain import PairedSampling, draw_pairs
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.errors import EngineError
from cloneproof.market.market import Agent, FullCopies, Market
from cloneproof.mechanisms.mechanism import Mechanism

PaidAlike = tuple[int, CopyVector]  # the kind of agent, and what it registers
VectorGains = dict[CopyVector, Estimate]


class PayoffTable(Protocol):
    """Payoffs of profiles, each computed once."""

    left_out: set[CopyVector]
    kinds: dict[str, int]

    @property
    def method(self) -> str:
        """How payoffs are computed, in words."""
        ...

    def evaluation(self, profile: FullCopies) -> Evaluation:
        """Everybody's payoff and the regret."""
        ...

    def gains(self, profile: FullCopies, agent: Agent, vectors: Sequence[CopyVector]) -> VectorGains:
        """What the agent gains by each vector in place of its own; those that no engine can do are left out."""
        ...


@dataclass
class ExactPayoffs:
    """By the closed form or the state tree."""

    market: Market
    mechanism: Mechanism
    engine: ExactEngine
    left_out: set[CopyVector] = field(default_factory=set)
    kinds: dict[str, int] = field(init=False)
    known: dict[object, tuple[dict[PaidAlike, Estimate], Evaluation]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds = agent_kinds(self.market, self.mechanism)

    @property
    def method(self) -> str:
        """How payoffs are computed, in words."""
        return f"exact ({self.engine})"

    def evaluation(self, profile: FullCopies) -> Evaluation:
        return self._solve(profile)[1]

    def gains(self, profile: FullCopies, agent: Agent, vectors: Sequence[CopyVector]) -> VectorGains:
        own = self._solve(profile)[0][self._role(profile, agent)]
        gains = {}
        for vector in vectors:
            if vector == profile[agent.name]:
                continue
            changed = {**profile, agent.name: vector}
            try:
                gains[vector] = self._solve(changed)[0][self._role(changed, agent)] - own
            except EngineError:
                self.left_out.add(vector)
        return gains

    def _solve(self, profile: FullCopies) -> tuple[dict[PaidAlike, Estimate], Evaluation]:
        roles = [self._role(profile, agent) for agent in self.market.agents]
        key = tuple(sorted(roles))
        if key not in self.known:
            world = [(self.market, self.mechanism)]
            found = exact_evaluations(world, profile, self.engine)[0][self.market.horizon]
            paid = {role: found.payoff[agent.name] for role, agent in zip(roles, self.market.agents, strict=True)}
            self.known[key] = paid, found
        paid, found = self.known[key]
        payoff = {agent.name: paid[role] for role, agent in zip(roles, self.market.agents, strict=True)}
        return paid, Evaluation(payoff, found.regret, found.engine, found.notes)

    def _role(self, profile: FullCopies, agent: Agent) -> PaidAlike:
        return self.kinds[agent.name], profile[agent.name]


@dataclass
class SampledPayoffs:
    """In so many pairs of runs with common random numbers for each vector, or in as many as there is time for."""

    market: Market
    mechanism: Mechanism
    runs: int
    seed: int = 0
    seconds: float | None = None  # the most for one vector
    left_out: set[CopyVector] = field(default_factory=set)
    kinds: dict[str, int] = field(init=False)
    known: dict[object, Estimate] = field(default_factory=dict)
    evaluated: dict[object, Evaluation] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds = agent_kinds(self.market, self.mechanism)

    @property
    def method(self) -> str:
        """How payoffs are computed, in words."""
        return f"sampled (up to {self.runs} pairs of runs for each vector of copies, 99 % confidence each)"

    def evaluation(self, profile: FullCopies) -> Evaluation:
        key = tuple(sorted(profile.items()))
        if key not in self.evaluated:
            self.evaluated[key] = evaluate(
                self.market,
                self.mechanism,
                profile,
                engine="monte-carlo",
                search=Search(runs=self.runs, seed=self.seed, seconds=self.seconds),
            )
        return self.evaluated[key]

    def gains(self, profile: FullCopies, agent: Agent, vectors: Sequence[CopyVector]) -> VectorGains:
        others = tuple(sorted((self.kinds[name], own) for name, own in profile.items() if name != agent.name))
        own = profile[agent.name]
        gains = {}
        for vector in vectors:
            if vector == own:
                continue
            key = (self.kinds[agent.name], others, own, vector)
            if key not in self.known:
                self.known[key] = self._sample(profile, agent.name, vector)
            gains[vector] = self.known[key]
        return gains

    def _sample(self, profile: FullCopies, agent: str, vector: CopyVector) -> Estimate:
        sampling = PairedSampling(runs=self.runs, seed=self.seed, stop_when_decided=False, budget_seconds=self.seconds)
        changed = {**profile, agent: vector}
        totals, *_ = draw_pairs(self.market, self.mechanism, agent, changed, sampling, profile[agent])
        return totals.estimates(sampling.confidence, f"{totals.runs} pairs of runs, seed {self.seed}")[0]


def agent_kinds(market: Market, mechanism: Mechanism) -> dict[str, int]:
    """Equal numbers for agents of equal priors, who can be exchanged; none can where agents are played in an order."""
    if not mechanism.permutation_invariant:
        return {agent.name: number for number, agent in enumerate(market.agents)}
    priors = [agent.priors for agent in market.agents]
    return {agent.name: priors.index(agent.priors) for agent in market.agents}


def payoff_table(
    market: Market,
    mechanism: Mechanism,
    honest: FullCopies,
    runs: int | None,
    seed: int,
    seconds: float | None = None,
) -> PayoffTable:
    """The closed form where there is one; else samples if runs are given; else the state tree."""
    world = [(market, mechanism)]
    try:
        exact_evaluations(world, honest, "closed-form")
        return ExactPayoffs(market, mechanism, "closed-form")
    except EngineError as refusal:
        if runs is not None:
            return SampledPayoffs(market, mechanism, runs, seed, seconds)
        try:
            exact_evaluations(world, honest, "tree")
        except EngineError as second:
            raise EngineError(
                f"no exact engine can do this: {refusal.reason}; {second.reason}; give runs, e.g. runs=200, to sample"
            ) from None
        return ExactPayoffs(market, mechanism, "tree")


@dataclass(frozen=True)
class BestResponse:
    """An agent's best vector against a profile, and what it gains by it in place of its own (nothing by itself)."""

    copies: CopyVector
    gain: Estimate
    pays: bool


@dataclass(frozen=True)
class Strategies:
    """What each agent may register, which gains count as none, and how far an agent goes towards its best response."""

    vectors: Mapping[str, Sequence[CopyVector]]
    kinds: Mapping[str, OriginalKinds]
    tolerance: float
    damping: float

    def best_response(self, table: PayoffTable, profile: FullCopies, agent: Agent) -> BestResponse:
        """The best vector; of those that are as good up to the tolerance, the one of the fewest arms."""
        gains = table.gains(profile, agent, self.vectors[agent.name])
        own = profile[agent.name]
        if not gains:
            return BestResponse(own, Estimate(0.0, 0.0, "proven", "there is nothing else to register"), False)
        slack = self.tolerance * abs(table.evaluation(profile).payoff[agent.name].value)
        most = max(gain.value for gain in gains.values())
        best = min((vector for vector, gain in gains.items() if gain.value >= most - slack), key=lambda v: (sum(v), v))
        return BestResponse(best, gains[best], gains[best].low > 0 and gains[best].value > slack)

    def all_responses(self, market: Market, table: PayoffTable, profile: FullCopies) -> dict[str, BestResponse]:
        """Everybody's; agents of one kind that register the same have the same."""
        known: dict[tuple[int, CopyVector], BestResponse] = {}
        for agent in market.agents:
            role = (table.kinds[agent.name], profile[agent.name])
            if role not in known:
                known[role] = self.best_response(table, profile, agent)
        return {agent.name: known[table.kinds[agent.name], profile[agent.name]] for agent in market.agents}

    def step(self, agent: str, own: CopyVector, best: CopyVector) -> CopyVector:
        """Part of the way, and at least one copy of each original that differs.

        >>> strategies = Strategies({}, {"ana": OriginalKinds((0, 0))}, 0.0, damping=0.5)
        >>> strategies.step("ana", (1, 1), (8, 2))
        (5, 2)
        """
        moved = [
            number + int(math.copysign(math.ceil(self.damping * abs(aim - number)), aim - number))
            for number, aim in zip(own, best, strict=True)
        ]
        labels = self.kinds[agent].labels
        for label in set(labels):  # originals of one kind: the largest number first
            places = [k for k, other in enumerate(labels) if other == label]
            for place, number in zip(places, sorted((moved[k] for k in places), reverse=True), strict=True):
                moved[place] = number
        return tuple(moved)


@dataclass(frozen=True)
class Path:
    """The profiles passed; those of a cycle, the first of them once; the last profile's best responses, if known."""

    profiles: tuple[FullCopies, ...]
    cycle: tuple[FullCopies, ...] = ()
    responses: Mapping[str, BestResponse] | None = None


def together(
    market: Market, table: PayoffTable, strategies: Strategies, start: FullCopies, steps: int, clock: Deadline
) -> Path:
    """All agents move at once."""
    profiles = [start]
    while True:
        profile = profiles[-1]
        responses = strategies.all_responses(market, table, profile)
        if not any(response.pays for response in responses.values()):
            return Path(tuple(profiles), (), responses)
        following = {
            name: strategies.step(name, profile[name], response.copies) if response.pays else profile[name]
            for name, response in responses.items()
        }
        if following in profiles:
            return Path(tuple(profiles), tuple(profiles[profiles.index(following) :]))
        if len(profiles) > steps or clock.spent:
            return Path(tuple(profiles), (), responses)
        profiles.append(following)
        clock.tell(len(profiles) - 1, steps, "best responses, all at once")


def in_turn(
    market: Market, table: PayoffTable, strategies: Strategies, start: FullCopies, steps: int, clock: Deadline
) -> Path:
    """One agent after the other, each all the way; a profile is compared with those at the same turn."""
    profiles = [start]
    rounds = [start]  # after everybody had a turn
    while True:
        for agent in market.agents:
            response = strategies.best_response(table, profiles[-1], agent)
            if response.pays:
                profiles.append({**profiles[-1], agent.name: response.copies})
        profile = profiles[-1]
        responses = strategies.all_responses(market, table, profile)
        if not any(response.pays for response in responses.values()):
            return Path(tuple(profiles), (), responses)
        if profile in rounds:
            first = profiles.index(profile)
            return Path(tuple(profiles), tuple(profiles[first:-1]))
        if len(profiles) > steps or clock.spent:
            return Path(tuple(profiles), (), responses)
        rounds.append(profile)
        clock.tell(len(profiles) - 1, steps, "best responses, in turn")
