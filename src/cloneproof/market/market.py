"""The market: the whole problem that a platform faces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from cloneproof._checks import real, whole
from cloneproof.errors import MarketError, brief, did_you_mean
from cloneproof.market.agents import Agent
from cloneproof.market.family import RewardFamily, reward_family
from cloneproof.market.priors import Point

HORIZON_LIMIT = 10**15  # rounds stay exact in floating point

Means = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Market:
    """Agents, reward family, share and horizon, and what the principal declares about them.

    `gap` is the smallest distance between two possible means of one agent, `agent_gap` the smallest distance between
    different best means of two agents, `max_originals` the largest number of originals of an agent. They are the
    principal's design parameters: given, or read off the priors, and never inferred from what was registered, which
    an agent could manipulate.

    >>> market = Market([Agent("ana", 2, Point(0.5)), Agent("bo", 1, Point(0.6))], horizon=100)
    >>> market.max_originals, market.rewards.name
    (2, 'bernoulli')
    """

    agents: Sequence[Agent]
    horizon: int
    share: float = 1.0
    rewards: RewardFamily | str | Mapping[str, object] = "bernoulli"
    gap: float | None = None
    agent_gap: float | None = None
    max_originals: int | None = None
    declared: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        agents = tuple(self.agents) if isinstance(self.agents, Sequence) else ()
        if not agents or not all(isinstance(agent, Agent) for agent in agents):
            raise MarketError(f"expected a market with at least one agent, got {self.agents!r}; add an Agent")
        names = [agent.name for agent in agents]
        for name in names:
            if names.count(name) > 1:
                raise MarketError(
                    f"expected distinct names of agents, got {name!r} {names.count(name)} times; rename one"
                )
        horizon, share = whole(self.horizon), real(self.share)
        if horizon is None or not 1 <= horizon <= HORIZON_LIMIT:
            raise MarketError(
                f"expected a horizon that is a whole number from 1 to 10^15, got {brief(self.horizon)}; count rounds"
            )
        if share is None or not 0 < share <= 1:
            raise MarketError(
                f"expected a share above 0 and at most 1, got {brief(self.share)}; 0.4 pays 40 % of each reward"
            )
        declared: dict[str, Any] = {}
        for key in ("gap", "agent_gap"):
            value = getattr(self, key)
            if value is not None:
                number = real(value)
                if number is None or not 0 < number <= 1:
                    raise MarketError(
                        f"expected {key} above 0 and at most 1, got {brief(value)}; it is a distance of two means"
                    )
                declared[key] = number
        most = max(agent.count for agent in agents)
        if self.max_originals is not None:
            number = whole(self.max_originals)
            if number is None or number < most:
                raise MarketError(
                    f"expected max_originals to be a whole number from {most}, which an agent has, "
                    f"got {brief(self.max_originals)}; declare at least that many"
                )
            declared["max_originals"] = number
        for key, value in (
            ("agents", agents),
            ("horizon", horizon),
            ("share", share),
            ("rewards", reward_family(self.rewards)),
            ("gap", declared.get("gap", _gap(agents))),
            ("agent_gap", declared.get("agent_gap", _agent_gap(agents))),
            ("max_originals", declared.get("max_originals", most)),
            ("declared", declared),
        ):
            object.__setattr__(self, key, value)

    @property
    def family(self) -> RewardFamily:
        """The reward family, as a `RewardFamily`."""
        assert isinstance(self.rewards, RewardFamily)
        return self.rewards

    @property
    def originals(self) -> int:
        """The number of originals in the whole market."""
        return sum(agent.count for agent in self.agents)

    @property
    def most_originals(self) -> int:
        """The declared or actual largest number of originals of an agent (the paper's L)."""
        assert self.max_originals is not None
        return self.max_originals

    def with_horizon(self, horizon: int) -> Market:
        """The same market over another horizon."""
        fresh: dict[str, Any] = {"gap": None, "agent_gap": None, "max_originals": None}
        return replace(self, horizon=horizon, **(fresh | dict(self.declared)))

    def at(self, means: Mapping[str, Sequence[float]]) -> Market:
        """The market of fully informed agents with exactly these means (agents left out keep their priors).

        What the principal knows does not change with the draw: `gap`, `agent_gap` and `max_originals` stay where this
        market has them; where it has none (continuous priors), the new one's are those of the given means.
        """
        names = [agent.name for agent in self.agents]
        for name in means:
            if name not in names:
                raise MarketError(
                    f"means of an unknown agent {name!r}; {did_you_mean(str(name), names)}name one of the market"
                )
        agents = [
            replace(agent, prior=[Point(mean) for mean in means[agent.name]]) if agent.name in means else agent
            for agent in self.agents
        ]
        known: dict[str, Any] = {
            key: value if value is not None and value <= 1 else None
            for key, value in (("gap", self.gap), ("agent_gap", self.agent_gap))
        }
        return replace(self, agents=agents, max_originals=self.max_originals, **known)

    def realisations(self) -> Iterator[tuple[float, Means]]:
        """Every possible vector of means with its probability, for discrete priors."""
        atoms = []
        for agent in self.agents:
            for prior in agent.priors:
                if prior.atoms is None:
                    raise MarketError(
                        f"expected discrete priors to enumerate, got a continuous one of {agent.name!r}; sample instead"
                    )
                atoms.append(prior.atoms)
        for combination in product(*atoms):
            values = iter(value for value, _ in combination)
            means = {agent.name: tuple(next(values) for _ in range(agent.count)) for agent in self.agents}
            yield math.prod(weight for _, weight in combination), means


def _gap(agents: Sequence[Agent]) -> float | None:
    """The smallest gap inside one agent's support; unknown if any prior is continuous."""
    gaps = [agent.gap for agent in agents]
    return None if any(gap is None for gap in gaps) else min(gap for gap in gaps if gap is not None)


def _agent_gap(agents: Sequence[Agent]) -> float | None:
    """The smallest distance between different possible best means of two agents; unknown for continuous priors."""
    owners: dict[float, set[int]] = {}
    for number, agent in enumerate(agents):
        if agent.support is None:
            return None
        for value in agent.support:
            if value >= agent.least_best:
                owners.setdefault(value, set()).add(number)
    smallest = math.inf
    nearest: dict[int, float] = {}  # each agent's largest possible best so far
    for value in sorted(owners):
        for other, below in nearest.items():
            if owners[value] != {other}:
                smallest = min(smallest, value - below)
        nearest |= dict.fromkeys(owners[value], value)
    return smallest
