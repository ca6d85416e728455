"""The kernel over runs: `mechanisms.session` with the tapes of `engines.reference`, decision by decision."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.arm_table import ONE, begin_run, rank_by_word
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import streams_of
from cloneproof.engines.monte_carlo.randomness.exact_sums import average
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.engines.monte_carlo.stepping.stepping_rounds import flat_rounds, two_level_rounds


@nb.njit(nogil=True)
def all_runs(plan, values, epochs, logarithms, arms, rows, levels, decisions, means, run_streams, payoff, regret):
    """All runs of a chunk: the rewards of each agent and the regret of each run.

    NaN for a reward says that the run must be left to the reference: a priority was NaN, or a reward is outside its
    family's support or too large for exact sums. `arms`, `rows` and `levels` are tables of `tables_of`, overwritten by
    every run; `decisions`, where it has entries, receives the arms of the last run.
    """
    paid = np.zeros((plan.agents, 2), np.int64)
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        begin_run(arms, plan.arms, streams.tapes, means[r])
        for a in range(plan.arms):
            arms[a].pulls = 0
        for i in range(plan.agents):
            paid[i, 0], paid[i, 1] = 0, 0
        if plan.sample > 0:
            enter_sample(plan, streams.sample, arms, rows, levels)
        if plan.flat:
            done = flat_rounds(plan, values, epochs, logarithms, arms, rows, levels, decisions, streams, paid)
        else:
            done = two_level_rounds(plan, values, logarithms, arms, rows, levels, decisions, streams, paid)
        regret[r] = 0.0
        for a in range(plan.arms):
            regret[r] += arms[a].pulls * arms[a].loss
        for i in range(plan.agents):
            payoff[r, i] = average(paid[i, 0], paid[i, 1], ONE) if done else np.nan


@nb.njit(nogil=True)
def enter_sample(plan, stream, arms, rows, levels):
    """Keep the uniform sample of the arms of each agent, or of all arms, that the session keeps, in their order."""
    begin = np.int64(0)
    for i in range(np.int64(0 if plan.flat else 1), len(levels)):
        level = levels[i]
        end = begin + level.registered
        own = stream if plan.flat else word(stream, i - 1)
        for a in range(begin, end):
            arms[a].word = word(own, arms[a].key)
        rank_by_word(arms, begin, end)
        kept = level.end - level.begin
        for k in range(end - begin):
            arms[begin + arms[begin + k].rank].word = np.uint64(k < kept)
        at = level.begin
        for a in range(begin, end):
            if arms[a].word == np.uint64(1):
                rows[at].arm, rows[at].key = a, arms[a].key
                at += 1
        begin = end


def _cached(sources: int) -> Any:  # noqa: ANN401
    @nb.njit(cache=True, nogil=True)
    def run_steps(plan, values, epochs, logarithms, arms, rows, levels, decisions, means, run_streams, payoff, regret):
        if sources:
            all_runs(
                plan, values, epochs, logarithms, arms, rows, levels, decisions, means, run_streams, payoff, regret
            )

    return run_steps


run_steps = _cached(source_stamp())
"""`all_runs`, compiled once for these sources."""
