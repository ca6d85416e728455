"""The runs of a chunk, one after the other: their streams, their means, and the kernel that plays them."""
# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from cloneproof.engines.monte_carlo.randomness.compiled_hash import word
from cloneproof.engines.monte_carlo.source_stamp import source_stamp
from cloneproof.engines.monte_carlo.ucb.borrowed_arrays import borrowed
from cloneproof.engines.monte_carlo.ucb.groups.group_memory import Memory
from cloneproof.engines.monte_carlo.ucb.hierarchy_loop import FEW, run_levels
from cloneproof.engines.monte_carlo.ucb.tables.reward_tape import threshold
from cloneproof.engines.monte_carlo.ucb.ucb1_loop import run_few
from cloneproof.engines.monte_carlo.ucb.ucb_plan import RegisteredArms, UcbTable
from cloneproof.engines.monte_carlo.ucb.work_arrays import Work
from cloneproof.engines.reference import SESSION_STREAM, TAPE_STREAM

_ZERO, _ONE = np.uint64(0), np.uint64(1)
_TAPES, _SESSION = np.uint64(TAPE_STREAM), np.uint64(SESSION_STREAM)
_MACHINE = np.uint64(0)


@nb.njit(nogil=True)
def _run_all(arm_table, agent_table, flat, horizon, arms, memory, work, streams, means, constant, pulls, wins, trace):
    """Play run after run; `pulls` by original, `wins` by agent and, if wanted, the `trace` of decisions are results.

    The streams are those of `engines.reference` and `mechanisms.session`: a run has one for its tapes and one that
    seeds a session, of which a stream goes to the machine.
    """
    arm_table, agent_table, arms = _table(arm_table), _table(agent_table), _arms(arms)
    memory = Memory(borrowed(memory.ints), borrowed(memory.floats), borrowed(memory.words), memory.at)
    work = _work(work)
    few = flat and len(arms.original) <= FEW and arms.sample == 0 and not constant
    for r in range(len(streams)):
        seed = word(streams[r], _SESSION) >> _ONE
        machine = word(word(_ZERO, seed), _MACHINE)
        _originals(work, arms, word(streams[r], _TAPES), means[r])
        own_pulls, own_wins, own_trace = borrowed(pulls[r]), borrowed(wins[r]), borrowed(trace[r])
        if few:
            run_few(arm_table, horizon, arms, work, machine, own_pulls, own_wins, own_trace)
        else:
            run_levels(
                arm_table, agent_table, flat, horizon, arms, memory, work, machine, constant, own_pulls, own_wins,
                own_trace,
            )  # fmt: skip


@nb.njit(nogil=True)
def _originals(work, arms, stream, means):
    """Tapes, thresholds and exact means of the originals; equal means are one class."""
    for o in range(len(means)):
        work.tapes[o] = word(word(stream, np.uint64(arms.agent_of[o])), arms.place_of[o])
        work.thresholds[o] = threshold(means[o])
        ticks = np.rint(means[o] * 2.0**60)
        work.ticks[o], work.means[o], work.classes[o] = np.int64(ticks), ticks * 2.0**-60, o
        for other in range(o):
            if work.means[other] == work.means[o]:
                work.classes[o] = other
                break


@nb.njit(nogil=True)
def _table(table):
    return UcbTable(
        borrowed(table.exact), borrowed(table.root), borrowed(table.reciprocal), borrowed(table.reciprocal_root),
        table.shift, table.margin,
    )  # fmt: skip


@nb.njit(nogil=True)
def _arms(arms):
    return RegisteredArms(
        borrowed(arms.original), borrowed(arms.copy), borrowed(arms.key), borrowed(arms.agent_of),
        borrowed(arms.place_of), borrowed(arms.first), arms.sample,
    )  # fmt: skip


@nb.njit(nogil=True)
def _work(w):
    return Work(
        borrowed(w.kept), borrowed(w.order), borrowed(w.tape), borrowed(w.pulls), borrowed(w.sums),
        borrowed(w.estimates), borrowed(w.roots), borrowed(w.streams), borrowed(w.ties), borrowed(w.counts),
        borrowed(w.rounds), borrowed(w.leader), borrowed(w.until), borrowed(w.bars), borrowed(w.agent_keys),
        borrowed(w.agent_order), borrowed(w.agent_pulls), borrowed(w.agent_sums), borrowed(w.agent_rests),
        borrowed(w.agent_means), borrowed(w.agent_roots), borrowed(w.tapes), borrowed(w.thresholds),
        borrowed(w.means), borrowed(w.ticks), borrowed(w.classes), borrowed(w.nothing),
    )  # fmt: skip


def _cached(sources: int) -> Any:
    @nb.njit(cache=True, nogil=True)
    def run_all(
        arm_table, agent_table, flat, horizon, arms, memory, work, streams, means, constant, pulls, wins, trace
    ):  # fmt: skip
        if sources:
            _run_all(
                arm_table, agent_table, flat, horizon, arms, memory, work, streams, means, constant, pulls, wins, trace
            )

    return run_all


run_all = _cached(source_stamp())
"""`_run_all`, compiled once for these sources."""
