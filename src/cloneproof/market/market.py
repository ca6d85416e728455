"""Agents, their originals and copies, and the market that they form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from itertools import product
from os import PathLike
from reprlib import Repr
from typing import Any, Literal, get_args

from cloneproof._lib.checks import HORIZON_LIMIT, NumberRange, WholeRange, count, is_one_line, known, listed, one_of
from cloneproof.errors import CloneproofError, MarketError, brief
from cloneproof.market.alike import check_size, law_of_items
from cloneproof.market.delays import Delays, DelaysName, checked_delays
from cloneproof.market.positions import Positions, places_by_segment
from cloneproof.market.priors import Point, Prior, smallest_gap
from cloneproof.market.rewards import RewardFamily, reward_family
from cloneproof.market.segments import MANY, MeanLaw, SegmentPriors, checked_segments, marginal, pooled, segment_horizon

HORIZON, ORIGINALS = WholeRange(1, HORIZON_LIMIT), WholeRange(1, 10**6)
SHARE = GAP = NumberRange(0, 1, low_open=True)
MOST_ARMS = 10**7

Copies = Mapping[str, Sequence[int]]  # as somebody gives them, of some agents: (1, 1) is honest, (0, 2) withholds one
FullCopies = dict[str, tuple[int, ...]]  # of every agent, checked: what everything below the public functions takes
Means = dict[str, tuple[float, ...]]
Ends = Literal["at-horizon", "at-random"]
SHORT = Repr()  # of a market's parts: a few entries of each, and of an agent no more than a line and a half
SHORT.maxtuple, SHORT.maxother = 4, 120
LONGEST = 37  # a market that ends at random lasts at most this multiple of its mean: 2**-53 is the least uniform number


@dataclass(frozen=True)
class Agent:
    """A provider with some originals; one prior for all of them, or one for each (the paper's asymmetric setting).

    Parameters
    ----------
    name : str
        A unique name, on one line.
    originals : int, optional
        How many distinct items it has, from 1 to 10^6; by default the number of priors.
    prior : Point, Discrete, Uniform, Beta, Empirical, LogOdds, SegmentVectors, mapping, or a sequence of them
        What it knows of the mean reward of its items: one prior for all originals, drawn independently, or one for
        each. In a market with segments a prior may be a mapping of segments to priors, independent of each other, or a
        joint law (`SegmentVectors`, `LogOdds`); any other prior is that of an item whose mean is the same everywhere.

    References
    ----------
    The paper, section 2: agent i has originals whose means are drawn from F_i.

    Examples
    --------
    >>> from cloneproof import Agent, Point
    >>> Agent("ana", originals=2, prior=Point(0.5)).originals
    2
    >>> Agent("bo", prior=[Point(0.9), Point(0.2)]).originals
    2
    """

    name: str
    originals: int | None = None
    prior: MeanLaw | Mapping[str, Prior] | Sequence[MeanLaw | Mapping[str, Prior]] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        laws = tuple(self.prior) if isinstance(self.prior, Sequence) else (self.prior,)
        whose = f"agent {self.name!r}"
        given = tuple(SegmentPriors.of(prior, whose) if isinstance(prior, Mapping) else prior for prior in laws)
        object.__setattr__(self, "prior", given if isinstance(self.prior, Sequence) else given[0])
        for prior in given:
            if not hasattr(prior, "quantile") and not hasattr(prior, "marginal"):
                raise MarketError(
                    f"expected a prior such as Point(0.5) for agent {self.name!r}, got {brief(prior)}; "
                    "use Point, Discrete, Uniform, Beta or Empirical"
                )
        if self.originals is None:
            object.__setattr__(self, "originals", len(given))
        what = f"originals of agent {self.name!r}"
        object.__setattr__(self, "originals", ORIGINALS.checked(self.originals, what, MarketError))
        if isinstance(self.prior, tuple) and len(self.prior) != self.originals:
            raise MarketError(
                f"expected one prior or {self.originals} of them for the originals of agent {self.name!r}, "
                f"got {len(self.prior)}; give one for each original"
            )

    @property
    def laws(self) -> tuple[MeanLaw, ...]:
        """Priors or joint laws over segments, one for each original."""
        return self.prior if isinstance(self.prior, tuple) else (self.prior,) * self.count  # type: ignore[return-value]

    @property
    def priors(self) -> tuple[Prior, ...]:
        """Priors, one for each original; an error where means differ between segments."""
        if any(not hasattr(law, "quantile") for law in self.different):
            raise MarketError(
                f"expected one prior for the means of agent {self.name!r}, got one for each segment; ask about "
                "market.segment(name), or market.pooled()"
            )
        return self.laws  # type: ignore[return-value]

    @property
    def count(self) -> int:
        """Number of originals."""
        assert self.originals is not None
        return self.originals

    @cached_property
    def support(self) -> tuple[float, ...] | None:
        """Possible means of its originals in increasing order, or None where a prior is continuous."""
        atoms = [law.atoms for law in self.different]
        if any(a is None for a in atoms):
            return None
        return tuple(sorted({value for a in atoms if a is not None for value, _ in a}))

    @property
    def gap(self) -> float | None:
        """Smallest gap in the union of its supports; infinite for one point, None for a continuous prior."""
        return None if self.support is None else smallest_gap(self.support)

    @cached_property
    def least_best(self) -> float:
        """A lower bound of its best mean: the largest of the lowest possible means of its originals."""
        lows = [-math.inf if law.atoms is None else law.atoms[0][0] for law in self.different]
        return max(lows)

    @property
    def different(self) -> tuple[MeanLaw, ...]:
        """Laws as given: a single one if all originals share it."""
        return self.laws if isinstance(self.prior, tuple) else self.laws[:1]

    def with_laws(self, law_of: Callable[[MeanLaw], Prior]) -> Agent:
        """Return the agent with every law replaced: one for all originals, or one for each, as given."""
        kept = tuple(law_of(law) for law in self.different)
        return replace(self, prior=kept if isinstance(self.prior, tuple) else kept[0])


def check_name(name: object, error: type[CloneproofError] = MarketError) -> None:
    """Raise `MarketError` unless the name is non-empty text on one line.

    >>> check_name("ana maria")
    """
    if not isinstance(name, str) or not name.strip():
        raise error(f"expected an agent's name to be some text, got {brief(name)}; name every agent")
    if not is_one_line(name):
        raise error(
            f"expected an agent's name on one line of printable text, got {brief(name)}; leave out line breaks and "
            "control characters"
        )


def full_copies(agents: Sequence[Agent], copies: Copies | None) -> FullCopies:
    """Return the copies of every agent; agents that are not named register each original once.

    >>> from cloneproof.market.priors import Point
    >>> full_copies([Agent("ana", 2, Point(0.5)), Agent("bo", 1, Point(0.6))], {"ana": (2, 1)})
    {'ana': (2, 1), 'bo': (1,)}
    """
    originals = {agent.name: agent.count for agent in agents}
    full = {name: (1,) * number for name, number in originals.items()}
    if copies is not None and not isinstance(copies, Mapping):
        raise MarketError(f"expected copies as agent to numbers, got {brief(copies)}; give e.g. {{'ana': (2, 1)}}")
    for name, numbers in (copies or {}).items():
        full[name] = _copies_of(known(name, originals, "agent", MarketError), numbers, originals[name])
    return full


def _copies_of(name: str, numbers: object, originals: int) -> tuple[int, ...]:
    given = listed(numbers, f"copies of {name!r}", MarketError)
    if len(given) != originals:
        raise MarketError(
            f"expected {originals} numbers of copies for {name!r}, one for each original, "
            f"got {len(given)}: {given}; 1 means registered once"
        )
    counts = tuple(count(number, f"copies of {name!r}", 0, error=MarketError) for number in given)
    count(sum(counts), f"arms of {name!r}", 1, MOST_ARMS, MarketError)
    return counts


def arms_of(copies: Sequence[int]) -> list[tuple[int, int]]:
    """Return the (original, copy) behind each registered arm, in the order of registration.

    >>> arms_of((2, 1))
    [(0, 0), (0, 1), (1, 0)]
    """
    return [(original, copy) for original, number in enumerate(copies) for copy in range(number)]


def sort_within_kinds(numbers: Sequence[int], kinds: Sequence[object]) -> tuple[int, ...]:
    """Sort numbers, largest first, among originals of one kind, which are exchangeable.

    >>> sort_within_kinds((1, 2, 3), ("x", "y", "x"))
    (3, 2, 1)
    """
    groups: dict[object, list[int]] = {}
    for kind, number in zip(kinds, numbers, strict=True):
        groups.setdefault(kind, []).append(number)
    for of_kind in groups.values():
        of_kind.sort()
    return tuple(groups[kind].pop() for kind in kinds)


@dataclass(frozen=True)
class Market:
    """A whole problem: agents, reward family, share and horizon, and what the principal declares about them.

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
    delays : {"none", "independent"} or Delays, default "none"
        How late rewards come: not at all; by any law that depends neither on what is registered nor on rewards, which
        an audit's verdict then covers, while runs have prompt rewards; or by a law that runs have too, such as
        `{"points": "50%=30m,95%=6h", "lasts": "30d"}`: half of them are in after half an hour.
    ends : {"at-horizon", "at-random"}, default "at-horizon"
        Whether it lasts `horizon` rounds, or each round is the last with probability 1 / horizon.
    segments : mapping of str to float, optional
        The segments that users fall into, by a fixed rule, and the fraction of the rounds in each. Agents register once
        for all of them, and a mechanism runs once in each.
    positions : sequence of float, or mapping of str to such, optional
        The attention of each place of a page, from the first on, falling and at most 1: an arm of mean v in place p has
        rewards of mean positions[p] v. A round is then a page, and regret is against the best slate of different
        agents. A mapping has the places of each segment. Left out, a round shows one arm.

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
    >>> routed = Market(market.agents, horizon=100, segments={"code": 0.3, "writing": 0.7})
    >>> routed.segment("writing").horizon
    70
    """

    agents: Sequence[Agent]
    horizon: int
    share: float = 1.0
    rewards: RewardFamily | str | Mapping[str, object] = "bernoulli"
    gap: float | None = None
    agent_gap: float | None = None
    max_originals: int | None = None
    delays: DelaysName | Delays | Mapping[str, object] = "none"
    ends: Ends = "at-horizon"
    segments: Mapping[str, float] = field(default_factory=dict)
    positions: Positions | None = None
    declared: Mapping[str, Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        agents = tuple(self.agents) if isinstance(self.agents, Sequence) else ()
        if not agents or not all(isinstance(agent, Agent) for agent in agents):
            raise MarketError(
                f"expected a market with a list of at least one agent, got {brief(self.agents)}; add an Agent"
            )
        count(sum(agent.count for agent in agents), "originals in a market", 1, MOST_ARMS, MarketError)
        names = [agent.name for agent in agents]
        if len(set(names)) < len(names):
            name = next(name for name in names if names.count(name) > 1)
            raise MarketError(f"expected distinct names of agents, got {name!r} {names.count(name)} times; rename one")
        one_of(self.ends, get_args(Ends), "ends", MarketError)
        segments = {} if self.segments in (None, {}) else checked_segments(self.segments)
        for agent in agents:
            for law in agent.different:
                if hasattr(law, "check"):
                    law.check(segments, f"agent {agent.name!r}")
        declared: dict[str, Any] = {
            key: GAP.checked(getattr(self, key), key, MarketError)
            for key in ("gap", "agent_gap")
            if getattr(self, key) is not None
        }
        most = max(agent.count for agent in agents)
        if self.max_originals is not None:
            declared["max_originals"] = count(self.max_originals, "max_originals", most, error=MarketError)
        for key, value in (
            ("agents", agents),
            ("horizon", HORIZON.checked(self.horizon, "horizon", MarketError)),
            ("share", SHARE.checked(self.share, "share", MarketError)),
            ("rewards", reward_family(self.rewards)),
            ("gap", declared.get("gap", _gap(agents))),
            ("agent_gap", declared.get("agent_gap", _agent_gap(agents))),
            ("max_originals", declared.get("max_originals", most)),
            ("delays", checked_delays(self.delays)),
            ("segments", segments),
            ("positions", None if self.positions is None else places_by_segment(self.positions, segments)),
            ("declared", declared),
        ):
            object.__setattr__(self, key, value)

    def __repr__(self) -> str:
        """What is not the default, as much of it as fits a screen."""
        names = {one.name: one.default for one in fields(self) if one.init and one.name not in self.declared}
        told = {name: getattr(self, name) for name in names if name not in ("gap", "agent_gap", "max_originals")}
        told |= {"rewards": self.family.name, **self.declared}
        shown = [f"{name}={SHORT.repr(value)}" for name, value in told.items() if value not in (names.get(name), {})]
        return f"Market({', '.join(shown)})"

    @classmethod
    def alike(
        cls,
        agents: int,
        originals: int,
        horizon: int,
        *,
        rates: Sequence[float] | MeanLaw | None = None,
        values: Sequence[float] | None = None,
        segments: Mapping[str, float] | None = None,
        delays: DelaysName | Delays | Mapping[str, object] = "none",
    ) -> Market:
        """Return a market of equal agents, whose items have click rates of one law.

        The law is given as `rates`, such as `cp.Beta(2, 60)` or by segment `cp.LogOdds(.03, .5, .35)`; or as two rates
        between which nine of ten items lie, and one of twenty on either side. Or all `values` are equally likely.

        >>> from cloneproof import Beta, Market
        >>> market = Market.alike(agents=8, originals=3, rates=Beta(2, 60), horizon=10**6)
        >>> market.originals, market.agents[0].prior
        (24, Beta(a=2.0, b=60.0))
        """
        many, items = count(agents, "agents", error=MarketError), count(originals, "originals", error=MarketError)
        check_size(many * items)
        rounds = count(horizon, "rounds", many, error=MarketError)
        law, width = law_of_items(rates, values), len(str(many))
        equals = [Agent(f"agent {k + 1:0{width}}", items, law) for k in range(many)]
        return cls(equals, rounds, segments=segments or {}, delays=delays)

    @property
    def family(self) -> RewardFamily:
        """Reward family, as a `RewardFamily`."""
        assert isinstance(self.rewards, RewardFamily)
        return self.rewards

    @property
    def most_rounds(self) -> int:
        """Most rounds that it can last: the horizon, or what the largest drawn end can be."""
        return self.horizon if self.ends == "at-horizon" else LONGEST * self.horizon

    @property
    def late(self) -> Delays | None:
        """Law of the delays of rewards; None where they are prompt in runs."""
        return self.delays if isinstance(self.delays, Delays) else None

    @property
    def places(self) -> tuple[float, ...]:
        """Attention of each place of a page; empty without positions, and where segments have places of their own."""
        return self.positions if isinstance(self.positions, tuple) else ()

    @property
    def page_attention(self) -> float:
        """Attention of a whole page: the most rewards of a round, in units of the largest mean."""
        return math.fsum(self.places) if self.places else 1.0

    @property
    def originals(self) -> int:
        """Number of originals in the whole market."""
        return sum(agent.count for agent in self.agents)

    @property
    def most_originals(self) -> int:
        """Declared or actual largest number of originals of an agent (the paper's L)."""
        assert self.max_originals is not None
        return self.max_originals

    @cached_property
    def by_segment(self) -> dict[str, Market]:
        """Market of each segment: its fraction of the rounds, rounded, and the marginal priors; itself without any.

        Where ends are random, every segment has one of its own, with that mean. Under one common end and segments that
        arrive at random with fractions q, the rounds of a segment are none with probability 1 - q T / (1 + q (T - 1)),
        and else random with mean 1 + q (T - 1): the same mean q T, and what holds for a random end holds.
        """
        distinct: dict[Any, Market] = {}  # segments that are alike share one
        markets = {}
        for name, fraction in self.segments.items():
            agents = tuple(agent.with_laws(partial(marginal, segment=name)) for agent in self.agents)
            rounds = segment_horizon(fraction, self.horizon)
            places = self.positions[name] if isinstance(self.positions, dict) else self.positions
            alone = self._remade(horizon=rounds, agents=agents, segments={}, positions=places)
            markets[name] = distinct.setdefault((rounds, agents, places), alone)
        return markets or {"": self}

    def segment(self, name: str) -> Market:
        """Return the market of one segment, an ordinary one.

        >>> from cloneproof import Agent, Beta, Market
        >>> prior = {"code": Beta(2, 60), "writing": Beta(1, 1)}
        >>> market = Market([Agent("ana", 2, prior)], horizon=1000, segments={"code": 0.3, "writing": 0.7})
        >>> market.segment("code").horizon, market.segment("code").agents[0].prior
        (300, Beta(a=2.0, b=60.0))
        """
        return self.by_segment[known(name, self.segments, "segment", MarketError)]

    def pooled(self, draws: int = MANY) -> Market:
        """Return the market that a mechanism meets which ignores segments: all rounds, and means averaged over them.

        This is so if users of all rounds are drawn at random. Laws of infinitely many vectors are those of as many
        `draws` (`SegmentAverage`).
        """
        if isinstance(self.positions, dict):
            raise MarketError(
                "expected one list of positions for all segments that are pooled, got one for each; give positions once"
            )
        agents = [agent.with_laws(partial(pooled, segments=self.segments, draws=draws)) for agent in self.agents]
        return self._remade(agents=agents, segments={})

    def _remade(self, **changes: Any) -> Market:  # noqa: ANN401
        """Return the market with these changes; what was not declared is read off the priors again."""
        fresh: dict[str, Any] = {"gap": None, "agent_gap": None, "max_originals": None}
        return replace(self, **(fresh | dict(self.declared) | changes))

    def with_horizon(self, horizon: int, ends: Ends | None = None) -> Market:
        """Return the same market over another horizon, with the same kind of end or another one.

        >>> from cloneproof import Agent, Market, Point
        >>> Market([Agent("ana", 1, Point(0.5))], horizon=100).with_horizon(7).horizon
        7
        """
        return self._remade(horizon=horizon, ends=ends or self.ends)

    def with_agents(self, agents: Sequence[Agent]) -> Market:
        """Return the same market with other agents; a declared `max_originals` grows with them.

        >>> from cloneproof import Agent, Market, Point
        >>> market = Market([Agent("ana", 1, Point(0.5))], horizon=100, gap=0.1, delays="independent")
        >>> other = market.with_agents([Agent("bo", 2, Point(0.6))])
        >>> other.gap, other.delays, other.max_originals
        (0.1, 'independent', 2)
        """
        other = self._remade(agents=agents, max_originals=None)
        most = self.declared.get("max_originals", 0)
        return other if most <= other.most_originals else other._remade(max_originals=most)

    def with_delays(self, delays: DelaysName | Delays) -> Market:
        """Return the same market with rewards that come so late."""
        return self._remade(delays=delays)

    def at(self, means: Mapping[str, Sequence[float]]) -> Market:
        """Return the market of fully informed agents with exactly these means.

        `gap`, `agent_gap` and `max_originals` stay as declared. Where this market has none (continuous priors), they
        are computed from the given means.

        >>> from cloneproof import Agent, Discrete, Market
        >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7)
        >>> market.at({"ana": (1.0, 0.0)}).agents[0].priors
        (Point(value=1.0), Point(value=0.0))
        """
        if not isinstance(means, Mapping):
            raise MarketError(f"expected means as agent to numbers, got {brief(means)}; give e.g. {{'ana': (1, 0)}}")
        for name, numbers in means.items():
            known(name, [agent.name for agent in self.agents], "agent", MarketError)
            listed(numbers, f"the means of {name!r}", MarketError)
        agents = [
            replace(agent, prior=[Point(mean) for mean in means[agent.name]]) if agent.name in means else agent
            for agent in self.agents
        ]
        gaps: dict[str, Any] = {
            key: value if value is not None and value <= 1 else None
            for key, value in (("gap", self.gap), ("agent_gap", self.agent_gap))
        }
        return replace(self, agents=agents, max_originals=self.max_originals, **gaps)

    def realisations(self) -> Iterator[tuple[float, Means]]:
        """Yield every possible vector of means with its probability, for discrete priors."""
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


def check_no_positions(market: Market, who: str) -> None:
    """Refuse a market with several places; the caller plays one arm a round."""
    if market.positions is not None:
        raise MarketError(
            f"{who} expects a market without positions, got {brief(market.positions)}; leave positions out"
        )


def checked_market(value: object) -> Market:
    """Return the value if it is a market; otherwise raise an error that says how to make one."""
    if isinstance(value, Market):
        return value
    advice = "read the file first" if isinstance(value, str | PathLike) else "make one with cp.Market, or read a file"
    raise MarketError(f"expected a market, got {brief(value)}; {advice}: cp.load_market(path)")


def _gap(agents: Sequence[Agent]) -> float | None:
    """Return the smallest gap inside one agent's support; unknown if any prior is continuous."""
    gaps = [agent.gap for agent in agents]
    return None if any(gap is None for gap in gaps) else min(gap for gap in gaps if gap is not None)


def _agent_gap(agents: Sequence[Agent]) -> float | None:
    """Return the smallest distance between different possible best means of two agents; None for continuous priors."""
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


def check_fixed_end(market: Market, who: str) -> None:
    """Refuse a market that ends at random; the caller needs a fixed horizon."""
    if market.ends != "at-horizon":
        raise MarketError(
            f"{who} expects a market that ends at its horizon, got ends={market.ends!r}; sample it with cp.evaluate, "
            "or leave `ends` out"
        )


def check_unsegmented(market: Market, who: str) -> None:
    """Refuse a market with segments; the caller plays ordinary ones."""
    if market.segments:
        raise MarketError(
            f"{who} expects a market without segments, got {len(market.segments)} of them; ask about "
            "market.segment(name), or market.pooled()"
        )
