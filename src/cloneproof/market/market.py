"""The market: the whole problem that a platform faces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from os import PathLike
from typing import Any, Literal, get_args

from cloneproof._checks import real, whole
from cloneproof.errors import MarketError, brief, did_you_mean
from cloneproof.market.agents import Agent
from cloneproof.market.copies import MOST_ARMS
from cloneproof.market.family import RewardFamily, reward_family
from cloneproof.market.priors import Point

HORIZON_LIMIT = 10**15  # rounds stay exact in floating point

Means = dict[str, tuple[float, ...]]
Delays = Literal["none", "independent"]


@dataclass(frozen=True)
class Market:
    """The whole problem: agents, reward family, share and horizon, and what the principal declares about them.

    Parameters
    ----------
    agents : sequence of Agent
        The providers; names differ.
    horizon : int
        The number of rounds, from 1 to 10^15. A whole float such as 1e6 will do.
    share : float, default 1.0
        The part of each reward that is paid to the owner of the arm, above 0 and at most 1.
    rewards : str, dict or RewardFamily, default "bernoulli"
        The law of a reward given the arm's mean: "bernoulli", "deterministic", "beta", "gaussian", or a table such as
        `{"family": "gaussian", "sd": 0.1}`.
    gap : float, optional
        The smallest distance between two possible means of one agent (the paper's Delta).
    agent_gap : float, optional
        The smallest distance between different best means of two agents.
    max_originals : int, optional
        The largest number of originals of an agent (the paper's L).
    delays : {"none", "independent"}, default "none"
        Under which delays of rewards an audit's verdict is to hold: every reward arrives before the next decision, or
        rewards may be late by times that depend neither on what is registered nor on rewards.

    Raises
    ------
    MarketError
        Where one of these makes no sense.

    Notes
    -----
    `gap`, `agent_gap` and `max_originals` are the principal's design parameters: declared, or read off the priors, and
    never inferred from what was registered, which an agent could manipulate.

    References
    ----------
    The paper, section 2.

    Examples
    --------
    >>> from cloneproof import Agent, Market, Point
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
    delays: Delays = "none"
    declared: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        agents = tuple(self.agents) if isinstance(self.agents, Sequence) else ()
        if not agents or not all(isinstance(agent, Agent) for agent in agents):
            raise MarketError(
                f"expected a market with a list of at least one agent, got {brief(self.agents)}; add an Agent"
            )
        if sum(agent.count for agent in agents) > MOST_ARMS:
            raise MarketError(
                f"expected at most {MOST_ARMS} originals in a market, got {sum(agent.count for agent in agents)}; "
                "leave some out"
            )
        names = [agent.name for agent in agents]
        if len(set(names)) < len(names):
            name = next(name for name in names if names.count(name) > 1)
            raise MarketError(f"expected distinct names of agents, got {name!r} {names.count(name)} times; rename one")
        horizon, share = whole(self.horizon), real(self.share)
        if horizon is None or not 1 <= horizon <= HORIZON_LIMIT:
            raise MarketError(
                f"expected a horizon that is a whole number from 1 to 10^15, got {brief(self.horizon)}; count rounds"
            )
        if share is None or not 0 < share <= 1:
            raise MarketError(
                f"expected a share above 0 and at most 1, got {brief(self.share)}; 0.4 pays 40 % of each reward"
            )
        _check_delays(self.delays)
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
        """The same market over another horizon.

        Parameters
        ----------
        horizon : int
            The number of rounds.

        Returns
        -------
        Market
            With the gaps that were declared, and the others read off the priors again.

        Examples
        --------
        >>> from cloneproof import Agent, Market, Point
        >>> Market([Agent("ana", 1, Point(0.5))], horizon=100).with_horizon(7).horizon
        7
        """
        fresh: dict[str, Any] = {"gap": None, "agent_gap": None, "max_originals": None}
        return replace(self, horizon=horizon, **(fresh | dict(self.declared)))

    def at(self, means: Mapping[str, Sequence[float]]) -> Market:
        """The market of fully informed agents with exactly these means.

        What the principal knows does not change with the draw: `gap`, `agent_gap` and `max_originals` stay where this
        market has them; where it has none (continuous priors), the new one's are those of the given means.

        Parameters
        ----------
        means : mapping of str to sequence of float
            The means of an agent's originals; agents that are left out keep their priors.

        Returns
        -------
        Market
            The same with points as priors.

        Examples
        --------
        >>> from cloneproof import Agent, Discrete, Market
        >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7)
        >>> market.at({"ana": (1.0, 0.0)}).agents[0].priors
        (Point(value=1.0), Point(value=0.0))
        """
        if not isinstance(means, Mapping):
            raise MarketError(f"expected means as agent to numbers, got {brief(means)}; give e.g. {{'ana': (1, 0)}}")
        for name, numbers in means.items():
            if isinstance(numbers, str) or not isinstance(numbers, Sequence):
                raise MarketError(
                    f"expected the means of {name!r} as a list of numbers, got {brief(numbers)}; "
                    "give one for each original"
                )
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
        """Every possible vector of means with its probability, for discrete priors.

        Yields
        ------
        (float, dict of str to tuple of float)
            The probability, and the means of each agent's originals.

        Raises
        ------
        MarketError
            Where a prior is continuous: `prior.discretised(n)` makes a discrete one.
        """
        atoms = []
        for agent in self.agents:
            for prior in agent.priors:
                if prior.atoms is None:
                    raise MarketError(
                        f"expected discrete priors to enumerate, got a continuous one of {agent.name!r}; "
                        "sample instead, or use prior.discretised(5)"
                    )
                atoms.append(prior.atoms)
        for combination in product(*atoms):
            values = iter(value for value, _ in combination)
            means = {agent.name: tuple(next(values) for _ in range(agent.count)) for agent in self.agents}
            yield math.prod(weight for _, weight in combination), means


def checked_market(value: object) -> Market:
    """The value if it is a market, or the sentence that says how to get one."""
    if isinstance(value, Market):
        return value
    advice = "read the file first" if isinstance(value, str | PathLike) else "make one with cp.Market, or read a file"
    raise MarketError(f"expected a market, got {brief(value)}; {advice}: cp.load_market(path)")


def _check_delays(delays: object) -> None:
    if delays not in get_args(Delays):
        raise MarketError(
            f"expected delays to be 'none' or 'independent', got {brief(delays)}; "
            "say 'independent' where rewards come late, whatever is registered and whatever they are"
        )


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
