"""Best responses again and again, each agent going part of the way, until nobody gains or a profile comes back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.equilibrium.payoff_table import PayoffTable
from cloneproof.engines.estimate import Estimate
from cloneproof.market.agents import Agent
from cloneproof.market.copies import FullCopies
from cloneproof.market.market import Market


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
