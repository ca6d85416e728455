"""`cp.equilibrium`: iterated best responses in copies, up to a fixed point or a cycle."""

from __future__ import annotations

from collections.abc import Callable

from cloneproof._checks import real, whole
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, grid, kinds_of
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.equilibrium.dynamics import Strategies
from cloneproof.analysis.equilibrium.iteration import iterate
from cloneproof.analysis.equilibrium.payoff_table import payoff_table
from cloneproof.analysis.equilibrium.result import Equilibrium
from cloneproof.engines.monte_carlo.sampler import check_sampling
from cloneproof.errors import EngineError, MechanismError, brief
from cloneproof.market.copies import Copies, full_copies
from cloneproof.market.market import Market, checked_market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_seed

MOST_VECTORS = 2000


def equilibrium(
    market: Market,
    mechanism: Mechanism,
    *,
    max_copies: int = 8,
    withhold: bool = False,
    start: Copies | None = None,
    damping: float = 0.5,
    tolerance: float = 1e-9,
    steps: int = 100,
    runs: int | None = None,
    seed: int = 0,
    budget_seconds: float | None = None,
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
        The cap. An agent may register every original from once up to so many times, and every such vector is tried:
        under many mechanisms more copies always pay, and an equilibrium exists only because of a cap.
    withhold : bool, default False
        Also leave originals out.
    start : mapping of str to sequence of int, optional
        What everybody registers at first; who is left out is honest.
    damping : float, default 0.5
        How far an agent goes towards its best response where all move at once, above 0 and at most 1.
    tolerance : float, default 1e-9
        The gain, relative to the payoff, that counts as none.
    steps : int, default 100
        The most moves of each kind.
    runs : int, optional
        Pairs of runs for each vector, where the mechanism has no closed form. Left out, the state tree is tried, which
        is exact and fits short horizons.
    seed : int, default 0
        The seed, where it samples.
    budget_seconds : float, optional
        Stop after about this time.
    progress : callable, optional
        Called with (moves, the most moves, what).

    Returns
    -------
    Equilibrium
        Its `status` is "equilibrium", "cycle" or "unfinished"; `incentives` has the most that each agent would gain by
        other copies, with its error.

    Raises
    ------
    CloneproofError
        Where an argument makes no sense, or where no exact engine applies and no runs are given.

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
    if not isinstance(mechanism, Mechanism):
        raise MechanismError(f"expected a mechanism, got {brief(mechanism)}; make one with cp.mechanism(name, ..)")
    check_sampling(runs=runs, budget_seconds=budget_seconds, progress=progress)
    cap = whole(max_copies)
    if cap is None or cap < 1:
        raise EngineError(f"expected max_copies to be a whole number from 1 on, got {brief(max_copies)}; 8 is usual")
    moves = whole(steps)
    if moves is None or moves < 1:
        raise EngineError(f"expected steps to be a whole number from 1 on, got {brief(steps)}; 100 is usual")
    way, slack = real(damping), real(tolerance)
    if way is None or not 0 < way <= 1:
        raise EngineError(f"expected damping above 0 and at most 1, got {brief(damping)}; 0.5 goes half of the way")
    if slack is None or slack < 0:
        raise EngineError(f"expected a tolerance of at least 0, got {brief(tolerance)}; 1e-9 is usual")
    strategies = _strategies(market, mechanism, cap, withhold, slack, way)
    clock = Deadline(budget_seconds, progress)
    table = payoff_table(market, mechanism, full_copies(market.agents, None), whole(runs), checked_seed(seed))
    tried = f"every vector of up to {cap} copies of each original{', originals left out included' if withhold else ''}"
    return iterate(market, mechanism, table, strategies, full, moves, clock, cap, tried)


def _strategies(
    market: Market, mechanism: Mechanism, cap: int, withhold: bool, tolerance: float, damping: float
) -> Strategies:
    vectors: dict[str, list[CopyVector]] = {}
    kinds: dict[str, OriginalKinds] = {}
    for agent in market.agents:
        kinds[agent.name] = kinds_of(agent, not mechanism.permutation_invariant)
        every, left_out = grid(kinds[agent.name], cap, least=0 if withhold else 1)
        if left_out or len(every) > MOST_VECTORS:
            raise EngineError(
                f"expected at most {MOST_VECTORS} copy vectors of an agent, got more with {agent.count} originals and "
                f"up to {cap} copies of each; give a smaller max_copies"
            )
        vectors[agent.name] = [kinds[agent.name].honest, *every]
    return Strategies(vectors, kinds, tolerance, damping)
