"""`cp.equilibrium`: iterated best responses in copies, up to a fixed point or a cycle.

Payoffs of vectors of copies against what the others register are exact, or from pairs of sampled runs. Agents with
equal priors and equal registrations are paid the same, so that twenty equal agents need one evaluation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cloneproof._checks import count, number_in, whole
from cloneproof._tables import Tabular
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, grid, kinds_of
from cloneproof.analysis.deviations import CopiesOf
from cloneproof.analysis.evaluate import ExactEngine, evaluate, exact_evaluations
from cloneproof.analysis.gain import PairedSampling, compared, payoff_of, sampled_gain
from cloneproof.analysis.search import Answers, Search, run_search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import BoundsName, Estimate, Evaluation
from cloneproof.engines.monte_carlo.sampler import check_sampling
from cloneproof.errors import EngineError
from cloneproof.market.market import Agent, Copies, FullCopies, Market, checked_market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.online.streams import checked_seed

VectorGains = dict[CopyVector, Estimate]
MOST_VECTORS = 2000  # An agent may choose among at most this many vectors.
STEPS_AT_LEAST = 4  # A budget leaves time for this many steps, where payoffs are sampled.
DAMPING = 0.5  # Where all move at once, an agent goes this part of the way to its best response.
TOLERANCE = 1e-9  # A gain up to this part of the payoff counts as none.


@dataclass
class PayoffTable:
    """Cached payoffs of profiles, by an exact engine or from a fixed number of pairs of runs."""

    market: Market
    mechanism: Mechanism
    engine: ExactEngine | None  # None: sampled
    runs: int = 0
    seed: int = 0
    seconds: float | None = None  # the most for one vector, where it samples
    left_out: set[CopyVector] = field(default_factory=set)
    bounds: BoundsName = "distribution-free"  # of sampled gains
    kinds: dict[str, int] = field(init=False)
    evaluations: dict[object, Evaluation] = field(default_factory=dict)
    namesakes: dict[object, dict[tuple[int, CopyVector], str]] = field(default_factory=dict)  # who is paid alike
    sampled_gains: dict[object, Estimate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.kinds = agent_kinds(self.market, self.mechanism)

    @property
    def exact(self) -> bool:
        """Whether payoffs are computed, and not sampled."""
        return self.engine is not None

    @property
    def method(self) -> str:
        if self.exact:
            return f"exact ({self.engine})"
        return f"sampled (up to {self.runs} pairs of runs for each vector of copies, 99 % confidence each)"

    def evaluation(self, profile: FullCopies) -> Evaluation:
        if self.engine is not None:
            return self._exact(profile, self.engine)
        key = tuple(sorted(profile.items()))
        if key not in self.evaluations:
            search = Search(runs=self.runs, seed=self.seed, seconds=self.seconds)
            self.evaluations[key] = evaluate(self.market, self.mechanism, profile, engine="monte-carlo", search=search)
        return self.evaluations[key]

    def gains(self, profile: FullCopies, agent: Agent, vectors: Sequence[CopyVector]) -> VectorGains:
        """Return the agent's gain by each vector instead of its own, but for vectors that no engine can evaluate."""
        name = agent.name
        others = [vector for vector in vectors if vector != profile[name]]

        def gain(vector: CopyVector) -> Estimate:
            if self.engine is None:
                return self._sampled(profile, name, vector)
            paid = [payoff_of(self.evaluation(own), name) for own in (profile, {**profile, name: vector})]
            return compared(*paid).gain

        answers = Answers[CopyVector, Estimate](gain)
        run_search(answers, others)
        if others and not answers.evaluated:
            why = answers.left_out.get(others[0], "time was over")
            raise EngineError(f"no other copies of {name} could be evaluated: {why}")
        self.left_out |= answers.left_out.keys()
        return answers.evaluated

    def _exact(self, profile: FullCopies, engine: ExactEngine) -> Evaluation:
        roles = [(self.kinds[agent.name], profile[agent.name]) for agent in self.market.agents]
        key, names = tuple(sorted(roles)), [agent.name for agent in self.market.agents]
        if key not in self.evaluations:
            evaluation = exact_evaluations([(self.market, self.mechanism)], profile, engine)[0][self.market.horizon]
            self.evaluations[key], self.namesakes[key] = evaluation, dict(zip(roles, names, strict=True))
        evaluation, namesakes = self.evaluations[key], self.namesakes[key]
        alike = {name: namesakes[role] for role, name in zip(roles, names, strict=True)}
        return evaluation.renamed(alike)

    def _sampled(self, profile: FullCopies, agent: str, vector: CopyVector) -> Estimate:
        others = tuple(sorted((self.kinds[name], own) for name, own in profile.items() if name != agent))
        key = (self.kinds[agent], others, profile[agent], vector)
        if key not in self.sampled_gains:
            sampling = PairedSampling(
                self.runs, seed=self.seed, stop_when_decided=False, seconds=self.seconds, bounds=self.bounds
            )
            deviation = CopiesOf(agent, vector, profile)
            drawn = sampled_gain(self.market, self.mechanism, deviation, sampling, against=profile[agent])
            method = f"{drawn.runs} pairs of runs, seed {self.seed}"
            self.sampled_gains[key] = drawn.progress.estimates(sampling.confidence, method, self.bounds)[0]
        return self.sampled_gains[key]


def agent_kinds(market: Market, mechanism: Mechanism) -> dict[str, int]:
    """Equal numbers for exchangeable agents, which have equal priors and no order of play."""
    if not mechanism.permutation_invariant:
        return {agent.name: number for number, agent in enumerate(market.agents)}
    laws = [agent.laws for agent in market.agents]
    return {agent.name: laws.index(agent.laws) for agent in market.agents}


def payoff_table(
    market: Market, mechanism: Mechanism, runs: int | None, seed: int, seconds: float | None = None
) -> PayoffTable:
    """Choose the closed form if it applies; else samples if runs are given; else the state tree."""
    world, honest = [(market, mechanism)], full_copies(market.agents, None)
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
    """Vectors that each agent may register, the tolerance, and the step towards a best response."""

    vectors: Mapping[str, Sequence[CopyVector]]
    kinds: Mapping[str, OriginalKinds]
    tolerance: float
    damping: float

    def best_response(self, table: PayoffTable, profile: FullCopies, agent: Agent) -> BestResponse:
        """Return the best vector; among equals up to the tolerance, the one with the fewest arms."""
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
        responses: dict[tuple[int, CopyVector], BestResponse] = {}
        for agent in table.market.agents:
            role = (table.kinds[agent.name], profile[agent.name])
            if role not in responses:
                responses[role] = self.best_response(table, profile, agent)
        return {agent.name: responses[table.kinds[agent.name], profile[agent.name]] for agent in table.market.agents}

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
    """Profiles visited, best responses to the last one, and the profiles of a cycle if it came back."""

    profiles: tuple[FullCopies, ...]
    responses: Mapping[str, BestResponse]
    cycle: tuple[FullCopies, ...] = ()


def follow(
    table: PayoffTable, strategies: Strategies, start: FullCopies, steps: int, clock: Deadline, in_turn: bool = False
) -> Path:
    """Move all agents at once, part of the way, or in turn, all the way, until nobody gains or a profile comes back."""
    profiles = [start]
    rounds: list[FullCopies] = []  # those of them in which it was everybody's turn
    while True:
        profile = profiles[-1]
        responses = strategies.all_responses(table, profile)
        if profile in rounds:
            return Path(tuple(profiles), responses, tuple(profiles[profiles.index(profile) : -1]))
        if not any(response.pays for response in responses.values()) or len(profiles) > steps or clock.spent:
            return Path(tuple(profiles), responses)
        rounds.append(profile)
        if in_turn:
            for agent in table.market.agents:
                best = strategies.best_response(table, profiles[-1], agent)
                if best.pays:
                    profiles.append({**profiles[-1], agent.name: best.copies})
        else:
            paying = {name: response.copies for name, response in responses.items() if response.pays}
            steps_to = {name: strategies.step(name, profile[name], copies) for name, copies in paying.items()}
            profiles.append({**profile, **steps_to})
        clock.tell(len(profiles) - 1, steps, f"best responses, {'in turn' if in_turn else 'all at once'}")


PathEnd = Literal["equilibrium", "cycle", "unfinished"]


@dataclass(frozen=True, repr=False)
class Equilibrium(Tabular):
    """Registrations of agents that all play best responses: the result of `cp.equilibrium`.

    As a table (`to_frame`, `to_markdown`, `to_latex`) it has a row for each agent.

    Attributes
    ----------
    market : Market
        The market.
    mechanism : Mechanism
        The mechanism.
    status : {"equilibrium", "cycle", "unfinished"}
        "equilibrium": nobody gains by other copies within the cap, up to `incentives`. "cycle": best responses came
        back to a profile, `cycle`. "unfinished": there was no time for either.
    copies : dict of str to tuple of int
        What everybody registers in the end; of a cycle, in its first profile.
    incentives : dict of str to Estimate
        The most that each agent would gain by other copies within the cap, with its error; negative if it has
        nothing better.
    responses : dict of str to tuple of int
        The copies by which it would.
    evaluation : Evaluation
        Payoffs and regret at `copies`.
    honest : Evaluation
        The same if everybody were honest.
    cycle : tuple of dict
        The profiles of a cycle in their order.
    path : tuple of dict
        Every profile that was passed, from the start on.
    max_copies : int
        The cap: the most copies of each original.
    scope : str
        What was tried and how it was computed.
    """

    keys_of_data = (
        "status", "mechanism", "copies", "incentives", "responses", "largest_incentive",
        "honest_regret=honest.regret", "regret=evaluation.regret", "payoff=evaluation.payoff", "cycle", "path",
        "at_cap", "max_copies", "scope",
    )  # fmt: skip

    market: Market
    mechanism: Mechanism
    status: PathEnd
    copies: FullCopies
    incentives: dict[str, Estimate]
    responses: FullCopies
    evaluation: Evaluation
    honest: Evaluation
    cycle: tuple[FullCopies, ...]
    path: tuple[FullCopies, ...]
    max_copies: int
    scope: str

    def __repr__(self) -> str:
        copies = ", ".join(f"{name} {own}" for name, own in list(self.copies.items())[:6])
        more = ", .." if len(self.copies) > 6 else ""
        return (
            f"Equilibrium({self.status!r}, mechanism={self.mechanism.name!r}, copies: {copies}{more},\n"
            f"            regret {self.evaluation.regret.value:,.6g} instead of {self.honest.regret.value:,.6g}, "
            f"incentives up to {self.largest_incentive:.2g} of a payoff)"
        )

    @property
    def largest_incentive(self) -> float:
        """Largest incentive as a part of its agent's payoff, its error included; 0 if nobody has one."""
        parts = [
            incentive.high / self.evaluation.payoff[name].value if self.evaluation.payoff[name].value > 0 else 0.0
            for name, incentive in self.incentives.items()
        ]
        return max(0.0, *parts)

    @property
    def at_cap(self) -> tuple[str, ...]:
        """Agents that register the cap of some original and might want more."""
        return tuple(name for name, own in self.copies.items() if max(own, default=0) == self.max_copies > 1)

    @property
    def price(self) -> float:
        """Regret divided by that of honest agents: what the copies cost the platform."""
        honest = self.honest.regret.value
        return self.evaluation.regret.value / honest if honest > 0 else float("inf")

    def to_columns(self) -> dict[str, list[Any]]:
        """One row for each agent."""
        names = list(self.copies)
        return {
            "agent": names,
            "copies": [self.copies[name] for name in names],
            "payoff": [self.evaluation.payoff[name].value for name in names],
            "honest": [self.honest.payoff[name].value for name in names],
            "incentive": [self.incentives[name].value for name in names],
            "error": [self.incentives[name].error for name in names],
        }


def iterate(
    table: PayoffTable, strategies: Strategies, start: FullCopies, steps: int, clock: Deadline, cap: int, tried: str
) -> Equilibrium:
    """Move all at once, part of the way; after a cycle in turn, all the way. `tried` describes the vectors."""
    path, how = follow(table, strategies, start, steps, clock), "all agents move at once"
    if path.cycle:
        path = follow(table, strategies, path.cycle[0], steps, clock, in_turn=True)
        how = "agents move in turn, after a cycle of moves at once"
    last, responses = path.profiles[-1], path.responses
    status: PathEnd = "equilibrium"
    if path.cycle:
        status = "cycle"
    elif any(response.pays for response in responses.values()):
        status = "unfinished"
    left_out = f"; {len(table.left_out)} vectors were too large for the engine" if table.left_out else ""
    return Equilibrium(
        market=table.market,
        mechanism=table.mechanism,
        status=status,
        copies=last,
        incentives={name: response.gain for name, response in responses.items()},
        responses={name: response.copies for name, response in responses.items()},
        evaluation=table.evaluation(last),
        honest=table.evaluation(full_copies(table.market.agents, None)),
        cycle=path.cycle,
        path=path.profiles,
        max_copies=cap,
        scope=f"{tried}, {table.method}; {how}; pure strategies, from one start{left_out}",
    )


def equilibrium(
    market: Market,
    mechanism: Mechanism,
    *,
    max_copies: int = 8,
    start: Copies | None = None,
    steps: int = 100,
    runs: int | None = None,
    seed: int = 0,
    seconds: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> Equilibrium:
    """Find what everybody registers if all agents play best responses.

    All agents move at once, each part of the way to its best response, until nobody gains. If a profile comes back,
    they move one after the other, each all the way, and if one comes back again, that is reported as a cycle.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism
        The platform's algorithm.
    max_copies : int, default 8
        The cap: an agent may register every original up to this often, and every such vector is tried. Under many
        mechanisms more copies always pay, and an equilibrium exists only because of a cap.
    start : mapping of str to sequence of int, optional
        What everybody registers at first; agents that are left out are honest.
    steps : int, default 100
        The most moves of each kind.
    runs : int, optional
        Pairs of runs for each vector if the mechanism has no closed form. By default the state tree is tried, which is
        exact and suits short horizons.
    seed : int, default 0
        The seed, where it samples.
    seconds : float, optional
        Stop after about this time.
    progress : callable, optional
        Called with (moves, the most moves, what).

    Returns
    -------
    Equilibrium
        Its `status` is "equilibrium", "cycle" or "unfinished"; `incentives` has the most that each agent would gain by
        other copies, with its error.

    References
    ----------
    The paper, section 2, for the game; its profiles of copies are pure strategies, chosen before means are known.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, equilibrium, mechanism
    >>> prior = Discrete([0.2, 0.8], [0.5, 0.5])
    >>> market = Market([Agent("ana", 2, prior), Agent("bo", 2, prior)], horizon=1000)
    >>> found = equilibrium(market, mechanism("etc", arm_rounds=20), max_copies=4)
    >>> found.status, found.copies, round(found.price, 2)
    ('equilibrium', {'ana': (4, 4), 'bo': (4, 4)}, 4.0)
    """
    full = full_copies(checked_market(market).agents, start)
    checked_mechanism(mechanism)
    check_sampling(runs=runs, progress=progress)
    budget = None if seconds is None else number_in(seconds, "seconds", 0, error=EngineError, low_open=True)
    cap, moves = count(max_copies, "max_copies", error=EngineError), count(steps, "steps", error=EngineError)
    strategies = _strategies(market, mechanism, cap)
    clock = Deadline(budget, progress)
    most = max(map(len, strategies.vectors.values()))
    of_vector = None if budget is None else budget / (STEPS_AT_LEAST * most)
    table = payoff_table(market, mechanism, whole(runs), checked_seed(seed), of_vector)
    tried = f"every vector of up to {cap} copies of each original"
    return iterate(table, strategies, full, moves, clock, cap, tried)


def _strategies(market: Market, mechanism: Mechanism, cap: int) -> Strategies:
    vectors: dict[str, list[CopyVector]] = {}
    kinds: dict[str, OriginalKinds] = {}
    for agent in market.agents:
        kinds[agent.name] = kinds_of(agent, not mechanism.permutation_invariant)
        every, left_out = grid(kinds[agent.name], cap)
        if left_out or len(every) > MOST_VECTORS:
            raise EngineError(
                f"expected at most {MOST_VECTORS} copy vectors of an agent, got more with {agent.count} originals and "
                f"up to {cap} copies of each; give a smaller max_copies"
            )
        vectors[agent.name] = [kinds[agent.name].honest, *every]
    return Strategies(vectors, kinds, TOLERANCE, DAMPING)
