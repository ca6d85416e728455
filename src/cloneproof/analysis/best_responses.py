"""Payoffs of vectors of copies against what the others register, and best responses until nobody gains.

Payoffs are exact, or from pairs of sampled runs. Agents with equal priors and equal registrations are paid the same, so
that twenty equal agents need one evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds
from cloneproof.analysis.evaluate import ExactEngine, evaluate, exact_evaluations
from cloneproof.analysis.gain import PairedSampling, draw_pairs
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.errors import EngineError
from cloneproof.market.market import Agent, FullCopies, Market
from cloneproof.mechanisms.mechanism import Mechanism

VectorGains = dict[CopyVector, Estimate]


@dataclass
class PayoffTable:
    """Cached payoffs of profiles, by an exact engine or from so many pairs of runs."""

    market: Market
    mechanism: Mechanism
    engine: ExactEngine | None  # None: sampled
    runs: int = 0
    seed: int = 0
    seconds: float | None = None  # the most for one vector, where it samples
    left_out: set[CopyVector] = field(default_factory=set)
    kinds: dict[str, int] = field(init=False)
    evaluations: dict[object, Evaluation] = field(default_factory=dict)
    namesakes: dict[object, dict[tuple[int, CopyVector], str]] = field(default_factory=dict)  # who is paid alike
    sampled_gains: dict[object, Estimate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds = agent_kinds(self.market, self.mechanism)

    @property
    def method(self) -> str:
        if self.engine is not None:
            return f"exact ({self.engine})"
        return f"sampled (up to {self.runs} pairs of runs for each vector of copies, 99 % confidence each)"

    def evaluation(self, profile: FullCopies) -> Evaluation:
        if self.engine is not None:
            return self._exact(profile, self.engine)
        key = tuple(sorted(profile.items()))
        if key not in self.evaluations:
            limits = Search(runs=self.runs, seed=self.seed, seconds=self.seconds)
            self.evaluations[key] = evaluate(self.market, self.mechanism, profile, engine="monte-carlo", search=limits)
        return self.evaluations[key]

    def gains(self, profile: FullCopies, agent: Agent, vectors: Sequence[CopyVector]) -> VectorGains:
        """What the agent gains by each vector instead of its own; vectors that no engine can evaluate are left out."""
        name = agent.name
        others = [vector for vector in vectors if vector != profile[name]]
        if self.engine is None:
            return {vector: self._sampled(profile, name, vector) for vector in others}
        own, gains = self.evaluation(profile).payoff[name], {}
        for vector in others:
            try:
                gains[vector] = self.evaluation({**profile, name: vector}).payoff[name] - own
            except EngineError:
                self.left_out.add(vector)
        return gains

    def _exact(self, profile: FullCopies, engine: ExactEngine) -> Evaluation:
        roles = [(self.kinds[agent.name], profile[agent.name]) for agent in self.market.agents]
        key, names = tuple(sorted(roles)), [agent.name for agent in self.market.agents]
        if key not in self.evaluations:
            found = exact_evaluations([(self.market, self.mechanism)], profile, engine)[0][self.market.horizon]
            self.evaluations[key], self.namesakes[key] = found, dict(zip(roles, names, strict=True))
        found, namesakes = self.evaluations[key], self.namesakes[key]
        payoff = {name: found.payoff[namesakes[role]] for role, name in zip(roles, names, strict=True)}
        return Evaluation(payoff, found.regret, found.engine, found.notes)

    def _sampled(self, profile: FullCopies, agent: str, vector: CopyVector) -> Estimate:
        others = tuple(sorted((self.kinds[name], own) for name, own in profile.items() if name != agent))
        key = (self.kinds[agent], others, profile[agent], vector)
        if key not in self.sampled_gains:
            sampling = PairedSampling(self.runs, seed=self.seed, stop_when_decided=False, budget_seconds=self.seconds)
            changed = {**profile, agent: vector}
            totals, *_ = draw_pairs(self.market, self.mechanism, agent, changed, sampling, profile[agent])
            method = f"{totals.runs} pairs of runs, seed {self.seed}"
            self.sampled_gains[key] = totals.estimates(sampling.confidence, method)[0]
        return self.sampled_gains[key]


def agent_kinds(market: Market, mechanism: Mechanism) -> dict[str, int]:
    """Equal numbers for exchangeable agents, which have equal priors and no order of play."""
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
    """The closed form if it applies; else samples if runs are given; else the state tree."""
    world = [(market, mechanism)]
    try:
        exact_evaluations(world, honest, "closed-form")
        return PayoffTable(market, mechanism, "closed-form")
    except EngineError as refusal:
        if runs is not None:
            return PayoffTable(market, mechanism, None, runs, seed, seconds)
        try:
            exact_evaluations(world, honest, "tree")
        except EngineError as second:
            raise EngineError(
                f"no exact engine can do this: {refusal.reason}; {second.reason}; give runs, e.g. runs=200, to sample"
            ) from None
        return PayoffTable(market, mechanism, "tree")


@dataclass(frozen=True)
class BestResponse:
    """An agent's best vector against a profile, and its gain over the current one."""

    copies: CopyVector
    gain: Estimate
    pays: bool


@dataclass(frozen=True)
class Strategies:
    """What each agent may register, the tolerance, and the step towards a best response."""

    vectors: Mapping[str, Sequence[CopyVector]]
    kinds: Mapping[str, OriginalKinds]
    tolerance: float
    damping: float

    def best_response(self, table: PayoffTable, profile: FullCopies, agent: Agent) -> BestResponse:
        """The best vector; among equals up to the tolerance, the one with the fewest arms."""
        gains = table.gains(profile, agent, self.vectors[agent.name])
        own = profile[agent.name]
        if not gains:
            return BestResponse(own, Estimate(0.0, 0.0, "proven", "there is nothing else to register"), False)
        slack = self.tolerance * abs(table.evaluation(profile).payoff[agent.name].value)
        most = max(gain.value for gain in gains.values())
        best = min((vector for vector, gain in gains.items() if gain.value >= most - slack), key=lambda v: (sum(v), v))
        return BestResponse(best, gains[best], gains[best].low > 0 and gains[best].value > slack)

    def all_responses(self, table: PayoffTable, profile: FullCopies) -> dict[str, BestResponse]:
        """Everybody's best responses; equal agents with equal registrations share one."""
        known: dict[tuple[int, CopyVector], BestResponse] = {}
        for agent in table.market.agents:
            role = (table.kinds[agent.name], profile[agent.name])
            if role not in known:
                known[role] = self.best_response(table, profile, agent)
        return {agent.name: known[table.kinds[agent.name], profile[agent.name]] for agent in table.market.agents}

    def step(self, agent: str, own: CopyVector, best: CopyVector) -> CopyVector:
        """Part of the way to the best response, at least one copy for each original that differs.

        >>> strategies = Strategies({}, {"ana": OriginalKinds((0, 0))}, 0.0, damping=0.5)
        >>> strategies.step("ana", (1, 1), (8, 2))
        (5, 2)
        """
        moved = [
            number + int(math.copysign(math.ceil(self.damping * abs(aim - number)), aim - number))
            for number, aim in zip(own, best, strict=True)
        ]
        return self.kinds[agent].sorted(tuple(moved))


@dataclass(frozen=True)
class Path:
    """The profiles visited; the profiles of a cycle; the last profile's best responses, if known."""

    profiles: tuple[FullCopies, ...]
    cycle: tuple[FullCopies, ...] = ()
    responses: Mapping[str, BestResponse] | None = None


def together(table: PayoffTable, strategies: Strategies, start: FullCopies, steps: int, clock: Deadline) -> Path:
    """All agents move at once."""
    profiles = [start]
    while True:
        profile = profiles[-1]
        responses = strategies.all_responses(table, profile)
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


def in_turn(table: PayoffTable, strategies: Strategies, start: FullCopies, steps: int, clock: Deadline) -> Path:
    """Agents move one after the other, each all the way; a cycle is a repeated profile at the same turn."""
    profiles = [start]
    rounds = [start]  # after everybody had a turn
    while True:
        for agent in table.market.agents:
            response = strategies.best_response(table, profiles[-1], agent)
            if response.pays:
                profiles.append({**profiles[-1], agent.name: response.copies})
        profile = profiles[-1]
        responses = strategies.all_responses(table, profile)
        if not any(response.pays for response in responses.values()):
            return Path(tuple(profiles), (), responses)
        if profile in rounds:
            first = profiles.index(profile)
            return Path(tuple(profiles), tuple(profiles[first:-1]))
        if len(profiles) > steps or clock.spent:
            return Path(tuple(profiles), (), responses)
        rounds.append(profile)
        clock.tell(len(profiles) - 1, steps, "best responses, in turn")
