"""The runs of a chunk, one after the other: their streams, their means, and the loop that plays them."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN202 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from cloneproof._arrays import IntArray
from cloneproof.engines.monte_carlo.compiled_functions import compiled
from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.randomness.compiled_streams import streams_of
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.engines.monte_carlo.ucb.hierarchy_loop import run_hierarchy
from cloneproof.engines.monte_carlo.ucb.leader_choice import LARGEST_SCAN
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import threshold
from cloneproof.engines.monte_carlo.ucb.ucb1_loop import run_ucb1
from cloneproof.engines.monte_carlo.uncounted_arrays import uncounted


class UcbResults(NamedTuple):
    """Of each run of a chunk, or of one run: pulls by original, wins by agent, and the arm of each round.

    `trace` has no columns where nobody wants the arms. Where rewards are constant, `wins` means nothing.
    """

    pulls: IntArray
    wins: IntArray
    trace: IntArray


@compiled
def _run_chunk(plan, groups, work, run_streams, means, results):
    """Play run after run."""
    plan, groups, work = uncounted(plan), uncounted(groups), uncounted(work)
    small = (
        plan.flat
        and len(plan.arms.original) <= LARGEST_SCAN
        and plan.arms.sample == plan.arms.admitted == 0
        and not plan.constant
    )
    for r in range(len(run_streams)):
        streams = streams_of(run_streams[r])
        _set_originals(work.originals, plan.arms, streams.tapes, means[r])
        run = uncounted(UcbResults(results.pulls[r], results.wins[r], results.trace[r]))
        if small:
            run_ucb1(plan, work, streams, run)
        else:
            run_hierarchy(plan, groups, work, streams, run)


@compiled
def _set_originals(originals, arms, stream, means):
    """Tapes, thresholds and exact means of the originals; equal means are one class."""
    for o in range(len(means)):
        originals.tapes[o] = word(word(stream, np.uint64(arms.agent_of[o])), arms.place_of[o])
        originals.thresholds[o] = threshold(means[o])
        ticks = np.rint(means[o] * 2.0**60)
        originals.ticks[o], originals.means[o], originals.classes[o] = np.int64(ticks), ticks * 2.0**-60, o
        for other in range(o):
            if originals.means[other] == originals.means[o]:
                originals.classes[o] = other
                break


def _cached(sources: int) -> Any:  # noqa: ANN401 (Numba's dispatchers have no type)
    @nb.njit(cache=True, nogil=True)
    def run_chunk(plan, groups, work, run_streams, means, results):
        if sources:
            _run_chunk(plan, groups, work, run_streams, means, results)

    return run_chunk


run_chunk = _cached(source_stamp())
"""`_run_chunk`, compiled once for these sources."""
