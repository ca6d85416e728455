"""`cp.equilibrium`: iterated best responses in copies, up to a fixed point or a cycle."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cloneproof._checks import count, number_in, whole
from cloneproof._tables import Tabular, fields_of
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, grid, kinds_of
from cloneproof.analysis.best_responses import PayoffTable, Strategies, in_turn, payoff_table, together
from cloneproof.analysis.search import takes_old_keywords
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.engines.monte_carlo.sampler import check_sampling
from cloneproof.errors import EngineError
from cloneproof.market.market import Copies, FullCopies, Market, checked_market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism, checked_mechanism
from cloneproof.mechanisms.online.opening import checked_seed

PathEnd = Literal["equilibrium", "cycle", "unfinished"]
MOST_VECTORS = 2000  # of an agent
STEPS_AT_LEAST = 4  # for which a budget leaves time, where payoffs are sampled


@dataclass(frozen=True, repr=False)
class Equilibrium(Tabular):
    """What everybody registers if everybody does what pays: the result of `cp.equilibrium`.

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
        The cap: up to so many copies of each original.
    scope : str
        What was tried and how it was computed.
    """

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
        """The largest incentive as a part of its agent's payoff, its error included; 0 if nobody has one."""
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
        """The regret minus that of honest agents: what the copies cost the platform."""
        honest = self.honest.regret.value
        return self.evaluation.regret.value / honest if honest > 0 else float("inf")

    def to_dict(self) -> dict[str, Any]:
        """The equilibrium as data for JSON."""
        return {
            **fields_of(self, "status", "mechanism", "copies", "incentives", "responses", "largest_incentive"),
            "honest_regret": self.honest.regret.to_dict(),
            **fields_of(self.evaluation, "regret", "payoff"),
            **fields_of(self, "cycle", "path", "at_cap", "max_copies", "scope"),
        }

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
    """All at once, part of the way; after a cycle in turn, all the way. `tried` describes the vectors."""
    path, how = together(table, strategies, start, steps, clock), "all agents move at once"
    if path.cycle:
        path = in_turn(table, strategies, path.cycle[0], steps, clock)
        how = "agents move in turn, after a cycle of moves at once"
    last = path.cycle[0] if path.cycle else path.profiles[-1]
    responses = path.responses or strategies.all_responses(table, last)
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


DAMPING = 0.5  # how far an agent goes towards its best response where all move at once
TOLERANCE = 1e-9  # the gain, relative to the payoff, that counts as none


@takes_old_keywords
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
    """What everybody registers if everybody does what pays.

    All agents move at once, each part of the way to its best response, until nobody gains. If a profile comes back,
    they move one after the other, each all the way, and if one comes back again, that is reported as a cycle.

    Parameters
    ----------
    market : Market
        The problem.
    mechanism : Mechanism
        The platform's algorithm.
    max_copies : int, default 8
        The cap: an agent may register every original up to so many times, and every such vector is tried. Under many
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
    limit = None if seconds is None else number_in(seconds, "seconds", 0, error=EngineError, low_open=True)
    cap, moves = count(max_copies, "max_copies", error=EngineError), count(steps, "steps", error=EngineError)
    strategies = _strategies(market, mechanism, cap)
    clock = Deadline(limit, progress)
    most = max(map(len, strategies.vectors.values()))
    each = None if limit is None else limit / (STEPS_AT_LEAST * most)
    table = payoff_table(market, mechanism, full_copies(market.agents, None), whole(runs), checked_seed(seed), each)
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
