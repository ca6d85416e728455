"""Two facts about a rule over one agent's arms: what copies change of its RP-regret, and whether it is adaptive."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement

from cloneproof.analysis.properties.rp_regret import rp_regrets, sorted_copies
from cloneproof.engines.estimate import Estimate
from cloneproof.market.instance import Instance
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.session import session


def copy_margins(
    mechanism: Mechanism, means: Sequence[Sequence[float]], most_copies: int, horizons: Sequence[int]
) -> Iterator[Estimate]:
    """RP-regret with copies minus honest RP-regret, for every set of means, sorted copies and horizon."""
    for own in means:
        honest = rp_regrets(mechanism, Instance(tuple(own), (1,) * len(own)), horizons, "bernoulli")
        for copies in sorted_copies(len(own), most_copies):
            copied = rp_regrets(mechanism, Instance(tuple(own), copies), horizons, "bernoulli")
            yield from (copied[horizon] - honest[horizon] for horizon in horizons)


def means_on_a_grid(parts: int, originals: int) -> list[tuple[float, ...]]:
    """All multisets of means 0, 1/parts, .., 1 that are not all equal."""
    grid = [k / parts for k in range(parts + 1)]
    return [own for own in combinations_with_replacement(grid, originals) if len(set(own)) > 1]


def arms_pulled(mechanism: Mechanism, arms: int, horizon: int, reward: Callable[[int], float], seed: int) -> list[int]:
    """Which arms one run pulls if round t pays reward(t); the seed decides all else."""
    run = session(mechanism, {"agent": arms}, horizon, seed=seed)
    pulled = []
    for round_ in range(horizon):
        decision = run.decide()
        pulled.append(decision.arm)
        run.reward(decision.id, reward(round_))
    return pulled


def on_a_schedule(runs: Sequence[Sequence[int]]) -> bool:
    """Whether the runs can come from a fixed schedule that is followed by a single arm.

    >>> on_a_schedule([[0, 1, 0, 0], [0, 1, 1, 1]]), on_a_schedule([[0, 0, 0, 0], [0, 0, 1, 2]])
    (True, False)
    """
    return any(
        len({tuple(run[:first]) for run in runs}) == 1 and all(len(set(run[first:])) <= 1 for run in runs)
        for first in range(len(runs[0]) + 1)
    )
