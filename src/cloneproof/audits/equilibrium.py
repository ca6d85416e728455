"""`cp.equilibrium`: iterated best responses in copies, up to a fixed point or a cycle.

Payoffs of vectors of copies against what the others register are exact, or from pairs of sampled runs. Agents with
equal priors and equal registrations have the same best responses, so that twenty equal agents ask once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from cloneproof._lib.checks import count, number_in, whole
from cloneproof._lib.tables import Tabular
from cloneproof.audits.deviations import CopiesOf, CopyVector, grid, kinds_of
from cloneproof.audits.gain import PairedSampling, sampled_gain
from cloneproof.errors import EngineError
from cloneproof.evaluation.evaluate import ExactEngine, evaluate, exact_evaluations
from cloneproof.evaluation.search import Answers, Search, run_search
from cloneproof.market.market import Agent, Copies, FullCopies, Market, checked_market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.streams import checked_seed
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import BoundsName, Estimate, Evaluation
from cloneproof.runs.sampler import check_sampling

MOST_VECTORS = 2000  # An agent may choose among at most this many vectors.
STEPS_AT_LEAST = 4  # A budget leaves time for this many steps, where payoffs are sampled.
DAMPING = 0.5  # Where all move at once, an agent goes this part of the way to its best response.
TOLERANCE = 1e-9  # A gain up to this part of the payoff counts as none.


class BestResponse(NamedTuple):
    """An agent's best vector against a profile, its gain over the current one, and whether that surely pays."""

    copies: CopyVector
    gain: Estimate
    pays: bool


@dataclass
class CopyGame:
    """The game in which each agent registers one of some vectors of copies; what was evaluated is kept.

    Without an engine, gains are sampled in `runs` pairs of runs, for at most `seconds` each. A gain up to `tolerance`
    of the payoff counts as none. Where all move at once, an agent goes the part `damping` of the way.
    """

    market: Market
    mechanism: Mechanism
    vectors: Mapping[str, Sequence[CopyVector]]
    engine: ExactEngine | None
    runs: int = 0
    seed: int = 0
    seconds: float | None = None
    bounds: BoundsName = "asymptotic"
    tolerance: float = TOLERANCE
    damping: float = DAMPING
    left_out: set[CopyVector] = field(default_factory=set)

    def __post_init__(self) -> None:
        in_order = not self.mechanism.exchangeable
        laws = [agent.laws for agent in self.market.agents]
        numbered = enumerate(self.market.agents)
        self.kinds = {agent.name: k if in_order else laws.index(agent.laws) for k, agent in numbered}
        self.originals = {agent.name: kinds_of(agent, in_order) for agent in self.market.agents}
        self.evaluations: dict[object, Evaluation] = {}
        self.responses: dict[object, BestResponse] = {}

    @property
    def method(self) -> str:
        if self.engine is not None:
            return f"exact ({self.engine})"
        return f"sampled (up to {self.runs} pairs of runs for each vector of copies, 99 % confidence each)"

    @property
    def cap(self) -> int:
        """The most copies of an original that anybody may register."""
        return max(max(vector) for own in self.vectors.values() for vector in own)

    def evaluation(self, profile: FullCopies) -> Evaluation:
        """Return everybody's payoff if this is registered."""
        key = tuple(profile.items())
        if key not in self.evaluations:
            self.evaluations[key] = self._evaluated(profile)
        return self.evaluations[key]

    def _evaluated(self, profile: FullCopies) -> Evaluation:
        if self.engine is not None:
            return exact_evaluations([(self.market, self.mechanism)], profile, self.engine)[0][self.market.horizon]
        search = Search(runs=self.runs, seed=self.seed, seconds=self.seconds)
        return evaluate(self.market, self.mechanism, profile, engine="runs", search=search)

    def gains(self, profile: FullCopies, agent: str) -> dict[CopyVector, Estimate]:
        """Return the agent's gain by each vector instead of its own, but for vectors that no engine can evaluate."""

        def gain(vector: CopyVector) -> Estimate:
            if self.engine is None:
                return self._sampled_gain(profile, agent, vector)
            return self.evaluation({**profile, agent: vector}).payoff[agent] - self.evaluation(profile).payoff[agent]

        others = [vector for vector in self.vectors[agent] if vector != profile[agent]]
        answers = Answers[CopyVector, Estimate](gain)
        run_search(answers, others)
        if others and not answers.evaluated:
            why = answers.left_out.get(others[0], "time was over")
            raise EngineError(f"no other copies of {agent} could be evaluated: {why}")
        self.left_out |= answers.left_out.keys()
        return answers.evaluated

    def _sampled_gain(self, profile: FullCopies, agent: str, vector: CopyVector) -> Estimate:
        sampling = PairedSampling(
            self.runs, seed=self.seed, stop_when_decided=False, seconds=self.seconds, bounds=self.bounds
        )
        deviation = CopiesOf(agent, vector, profile)
        drawn = sampled_gain(self.market, self.mechanism, deviation, sampling, against=profile[agent])
        method = f"{drawn.runs} pairs of runs, seed {self.seed}"
        return drawn.progress.estimates(sampling.confidence, method, self.bounds)[0]

    def best_response(self, profile: FullCopies, agent: str) -> BestResponse:
        """Return the best vector; among equals up to the tolerance, the one with the fewest arms.

        Agents with equal priors and equal registrations share the answer.
        """
        others = sorted((self.kinds[name], own) for name, own in profile.items() if name != agent)
        situation = (self.kinds[agent], profile[agent], tuple(others))
        if situation not in self.responses:
            self.responses[situation] = self._best_response(profile, agent)
        return self.responses[situation]

    def _best_response(self, profile: FullCopies, agent: str) -> BestResponse:
        gains = self.gains(profile, agent)
        if not gains:
            nothing = Estimate(0.0, 0.0, "exact", "there is nothing else to register")
            return BestResponse(profile[agent], nothing, False)
        slack = self.tolerance * abs(self.evaluation(profile).payoff[agent].value)
        most = max(gain.value for gain in gains.values())
        best = min((vector for vector, gain in gains.items() if gain.value >= most - slack), key=lambda v: (sum(v), v))
        return BestResponse(best, gains[best], gains[best].low > 0 and gains[best].value > slack)

    def step(self, agent: str, own: CopyVector, best: CopyVector) -> CopyVector:
        """Part of the way to the best response, at least one copy for each original that differs."""
        moved = [
            number + int(math.copysign(math.ceil(self.damping * abs(aim - number)), aim - number))
            for number, aim in zip(own, best, strict=True)
        ]
        return self.originals[agent].sorted(tuple(moved))


def fastest_engine(market: Market, mechanism: Mechanism, runs: int | None) -> ExactEngine | None:
    """Choose the closed form if it applies; else samples (None) if runs are given; else the state tree."""
    world, honest = [(market, mechanism)], full_copies(market.agents, None)
    try:
        exact_evaluations(world, honest, "law")
        return "law"
    except EngineError as refusal:
        if runs is not None:
            return None
        try:
            exact_evaluations(world, honest, "tree")
        except EngineError as second:
            raise EngineError(
                f"no exact engine can do this: {refusal.reason}; {second.reason}; give runs, e.g. runs=200, to sample"
            ) from None
        return "tree"


class Path(NamedTuple):
    """Profiles visited, best responses to the last one, and the profiles of a cycle if it came back."""

    profiles: tuple[FullCopies, ...]
    responses: Mapping[str, BestResponse]
    cycle: tuple[FullCopies, ...] = ()


def follow(game: CopyGame, start: FullCopies, steps: int, clock: Deadline, in_turn: bool = False) -> Path:
    """Move all agents at once, part of the way, or in turn, all the way, until nobody gains or a profile comes back."""
    profiles = [start]
    rounds: list[FullCopies] = []  # those of them in which it was everybody's turn
    while True:
        profile = profiles[-1]
        responses = {name: game.best_response(profile, name) for name in profile}
        if profile in rounds:
            return Path(tuple(profiles), responses, tuple(profiles[profiles.index(profile) : -1]))
        paying = {name: response.copies for name, response in responses.items() if response.pays}
        if not paying or len(profiles) > steps or clock.spent:
            return Path(tuple(profiles), responses)
        rounds.append(profile)
        if in_turn:
            for name in profile:
                best = game.best_response(profiles[-1], name)
                if best.pays:
                    profiles.append({**profiles[-1], name: best.copies})
        else:
            moved = {name: game.step(name, profile[name], copies) for name, copies in paying.items()}
            profiles.append({**profile, **moved})
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


def iterate(game: CopyGame, start: FullCopies, steps: int, clock: Deadline, tried: str) -> Equilibrium:
    """Move all at once, part of the way; after a cycle in turn, all the way. `tried` describes the vectors."""
    path, how = follow(game, start, steps, clock), "all agents move at once"
    if path.cycle:
        path = follow(game, path.cycle[0], steps, clock, in_turn=True)
        how = "agents move in turn, after a cycle of moves at once"
    last, responses = path.profiles[-1], path.responses
    unfinished = any(response.pays for response in responses.values())
    left_out = f"; {len(game.left_out)} vectors were too large for the engine" if game.left_out else ""
    return Equilibrium(
        market=game.market,
        mechanism=game.mechanism,
        status="cycle" if path.cycle else "unfinished" if unfinished else "equilibrium",
        copies=last,
        incentives={name: response.gain for name, response in responses.items()},
        responses={name: response.copies for name, response in responses.items()},
        evaluation=game.evaluation(last),
        honest=game.evaluation(full_copies(game.market.agents, None)),
        cycle=path.cycle,
        path=path.profiles,
        max_copies=game.cap,
        scope=f"{tried}, {game.method}; {how}; pure strategies, from one start{left_out}",
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
    vectors = {agent.name: _vectors(agent, cap, not mechanism.exchangeable) for agent in market.agents}
    clock = Deadline(budget, progress)
    of_vector = None if budget is None else budget / (STEPS_AT_LEAST * max(map(len, vectors.values())))
    pairs, seed = whole(runs), checked_seed(seed)
    engine = fastest_engine(market, mechanism, pairs)
    game = CopyGame(market, mechanism, vectors, engine, pairs or 0, seed, of_vector)
    return iterate(game, full, moves, clock, f"every vector of up to {cap} copies of each original")


def _vectors(agent: Agent, cap: int, in_order: bool) -> list[CopyVector]:
    kinds = kinds_of(agent, in_order)
    every, left_out = grid(kinds, cap)
    if left_out or len(every) > MOST_VECTORS:
        raise EngineError(
            f"expected at most {MOST_VECTORS} copy vectors of an agent, got more with {agent.count} originals and "
            f"up to {cap} copies of each; give a smaller max_copies"
        )
    return [kinds.honest, *every]
