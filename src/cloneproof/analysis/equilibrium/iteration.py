"""From a start to where best responses end."""

from __future__ import annotations

from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.equilibrium.dynamics import Path, Strategies, in_turn, together
from cloneproof.analysis.equilibrium.payoff_table import PayoffTable
from cloneproof.analysis.equilibrium.result import Equilibrium, PathEnd
from cloneproof.market.copies import FullCopies, full_copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism


def iterate(
    market: Market,
    mechanism: Mechanism,
    table: PayoffTable,
    strategies: Strategies,
    start: FullCopies,
    steps: int,
    clock: Deadline,
    cap: int,
    tried: str,
) -> Equilibrium:
    """All at once, part of the way; after a cycle in turn, all the way. `tried` says which vectors these are."""
    path, how = together(market, table, strategies, start, steps, clock), "all agents move at once"
    if path.cycle:
        path = in_turn(market, table, strategies, path.cycle[0], steps, clock)
        how = "agents move in turn, after a cycle of moves at once"
    return _conclude(market, mechanism, table, strategies, path, how, cap, tried)


def _conclude(
    market: Market,
    mechanism: Mechanism,
    table: PayoffTable,
    strategies: Strategies,
    path: Path,
    how: str,
    cap: int,
    tried: str,
) -> Equilibrium:
    last = path.cycle[0] if path.cycle else path.profiles[-1]
    responses = path.responses or strategies.all_responses(market, table, last)
    status: PathEnd = "equilibrium"
    if path.cycle:
        status = "cycle"
    elif any(response.pays for response in responses.values()):
        status = "unfinished"
    left_out = f"; {len(table.left_out)} vectors were too large for the engine" if table.left_out else ""
    return Equilibrium(
        market=market,
        mechanism=mechanism,
        status=status,
        copies=last,
        incentives={name: response.gain for name, response in responses.items()},
        responses={name: response.copies for name, response in responses.items()},
        evaluation=table.evaluation(last),
        honest=table.evaluation(full_copies(market.agents, None)),
        cycle=path.cycle,
        path=path.profiles,
        max_copies=cap,
        scope=f"{tried}, {table.method}; {how}; pure strategies, from one start{left_out}",
    )
