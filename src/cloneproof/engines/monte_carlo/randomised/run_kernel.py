"""The kernel over runs: what `mechanisms.session` does with the tapes of `engines.reference`, decision by decision."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb

from cloneproof.engines.monte_carlo.arm_table import ZERO, begin_run
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomised.average_tree import average_tree
from cloneproof.engines.monte_carlo.randomised.click_table import open_arms
from cloneproof.engines.monte_carlo.randomised.greedy_loop import greedy_rounds
from cloneproof.engines.monte_carlo.randomised.thompson_loop import thompson_rounds
from cloneproof.engines.monte_carlo.randomness.compiled_streams import level_stream, streams_of
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted


class RandomisedPlan(NamedTuple):
    """Rounds, whether the rule is Thompson's, and the c of epsilon-greedy."""

    horizon: int
    thompson: bool
    c: float


@compiled
def _run_randomised(plan, counted_arms, means, run_streams, payoff, served, regret):
    """All runs of a chunk: rewards and means of the pulls of each agent, added to the arrays, and the regret."""
    arms = uncounted(counted_arms)
    tree = average_tree(len(arms))
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        begin_run(arms, len(arms), streams.tapes, means[r])
        stream = level_stream(streams.levels, ZERO, ZERO)
        open_arms(arms, stream)
        if plan.thompson:
            thompson_rounds(arms, plan.horizon, stream)
        else:
            greedy_rounds(arms, tree, plan.horizon, stream, plan.c)
        for a in range(len(arms)):
            payoff[r, arms[a].agent] += arms[a].wins
            served[r, arms[a].agent] += arms[a].pulls * arms[a].mean
            regret[r] += arms[a].pulls * arms[a].loss


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_randomised(plan, arms, means, run_streams, payoff, served, regret):
        if sources:
            _run_randomised(plan, arms, means, run_streams, payoff, served, regret)

    return run_randomised


run_randomised = _cached(source_stamp())
"""`_run_randomised`, compiled once for these sources."""
