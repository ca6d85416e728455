"""The kernel over runs: `mechanisms.session` with the tapes of `engines.reference`, decision by decision."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.arm_table import ONE, admitted_arms, begin_run, rank_by_word
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import streams_of
from cloneproof.engines.monte_carlo.randomness.exact_sums import average
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.engines.monte_carlo.stepping.stepping_rounds import flat_rounds, two_level_rounds


class SteppingResults(NamedTuple):
    """Of each run of a chunk: rewards and means of the pulls of each agent, and the regret; and the arms of the last.

    `decisions` has no entries where nobody wants the arms.
    """

    payoff: FloatArray
    served: FloatArray
    regret: FloatArray
    decisions: IntArray


@compiled
def _run_steps(plan, tables, means, run_streams, results):
    """All runs of a chunk.

    NaN for a reward says that the run must be left to the reference: a priority was NaN, or a reward is outside its
    family's support or too large for exact sums. The tables are overwritten by every run.
    """
    arms, paid = tables.arms, tables.paid
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        begin_run(arms, plan.arms, streams.tapes, means[r])
        for a in range(plan.arms):
            arms[a].pulls = 0
        for i in range(plan.agents):
            paid[i, 0], paid[i, 1] = 0, 0
        if plan.sample > 0:
            _sample_arms(plan, streams.sample, tables)
        if plan.flat:
            done = flat_rounds(plan, tables, streams, results.decisions)
        else:
            done = two_level_rounds(plan, tables, streams, results.decisions)
        regret = 0.0
        for a in range(plan.arms):
            regret += arms[a].pulls * arms[a].loss
            results.served[r, arms[a].agent] += arms[a].pulls * arms[a].mean
        results.regret[r] = regret
        for i in range(plan.agents):
            results.payoff[r, i] = average(paid[i, 0], paid[i, 1], ONE) if done else np.nan


@compiled
def _sample_arms(plan, sample_stream, tables):
    """Keep the uniform sample of the arms of each agent, or of all arms, that the session keeps, in their order."""
    arms, rows, levels = tables.arms, tables.candidates, tables.levels
    begin = np.int64(0)
    for i in range(np.int64(0 if plan.flat else 1), len(levels)):
        level = levels[i]
        end = begin + level.registered
        stream = sample_stream if plan.flat else word(sample_stream, i - 1)
        for a in range(begin, end):
            arms[a].word = word(stream, arms[a].key)
        rank_by_word(arms, begin, end)
        if plan.admitted > 0:
            level.end = level.begin + admitted_arms(stream, end - begin, plan.admitted)
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
    def run_steps(plan, tables, means, run_streams, results):
        if sources:
            _run_steps(plan, tables, means, run_streams, results)

    return run_steps


run_steps = _cached(source_stamp())
"""`_run_steps`, compiled once for these sources."""
