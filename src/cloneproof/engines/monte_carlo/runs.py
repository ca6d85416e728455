"""Shared parts of the runs of all kernels: random streams as in `engines.reference`, tables of arms, and results."""

# mypy: disable-error-code="no-untyped-def"
# ruff: noqa: ANN001, ANN201 (compiled functions are typed by their arguments)
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray, IntArray
from cloneproof.engines.monte_carlo.compiling import average, compiled, inlined, plus, uniform, word
from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.reference import SESSION_STREAM, TAPE_STREAM
from cloneproof.mechanisms.online.streams import COINS_STREAM, LEVELS_STREAM, SAMPLE_STREAM, STATE_STREAM
from cloneproof.mechanisms.sample import ADMISSION

NEVER: Final = 1 << 62  # more rounds than any horizon has
ZERO, ONE, NONE = np.int64(0), np.int64(1), np.int64(-1)
"""64-bit numbers: a literal among the arguments of a compiled function would have it compiled once more."""
ROUND_ROBIN, BLOCK, INDEX = range(3)
ORDERS: Final = {"round-robin": ROUND_ROBIN, "block": BLOCK, "index": INDEX}
ARM_FIELDS: Final = [
    ("agent", "i8"),
    ("number", "i8"),  # of the arm inside its agent
    ("original", "i8"),  # inside its agent
    ("copy", "i8"),
    ("column", "i8"),  # of the original in an array of means
    ("key", "u8"),  # by which its level knows it
    ("tape", "u8"),
    ("mean", "f8"),
    ("loss", "f8"),  # against the best original
    ("pulls", "i8"),
]
ARM: Final = np.dtype(ARM_FIELDS, align=True)


class RunStreams(NamedTuple):
    """Streams of one run: of its reward tapes, its levels, its sample of the arms, and its binarising coins."""

    tapes: np.uint64
    levels: np.uint64
    sample: np.uint64
    coins: np.uint64


@compiled
def streams_of(run_stream):
    """Return the streams of a run, from `substream(0, seed, run)`."""
    session = word(np.uint64(0), word(run_stream, SESSION_STREAM) >> np.uint64(1))
    state = word(session, STATE_STREAM)
    return RunStreams(
        word(run_stream, TAPE_STREAM), word(state, LEVELS_STREAM), word(state, SAMPLE_STREAM),
        word(session, COINS_STREAM),
    )  # fmt: skip


@compiled
def level_stream(levels, version, key):
    """Return the stream of a level, as `mechanisms.online.levels.level_stream`."""
    return word(word(levels, version), key)


ArmTable = npt.NDArray[Any]


def first_arms(job: Job) -> IntArray:
    """Return where the arms of each agent begin in the order of registration, and where all end."""
    return np.cumsum([0, *(sum(job.copies[agent.name]) for agent in job.market.agents)], dtype=np.int64)


def arm_table(job: Job, flat: bool, fields: npt.DTypeLike = ARM, more: int = 0) -> ArmTable:
    """Make a row for each arm that a job's copies register, in order, its first six fields filled; and `more` rows."""
    copies = np.array([number for agent in job.market.agents for number in job.copies[agent.name]])
    owners = np.array([(i, o) for i, agent in enumerate(job.market.agents) for o in range(agent.count)])
    column = np.repeat(np.arange(len(copies)), copies)
    table = np.zeros(len(column) + more, fields)
    arms, numbers = table[: len(column)], np.arange(len(column))
    arms["column"], arms["agent"], arms["original"] = column, owners[column, 0], owners[column, 1]
    arms["copy"] = numbers - (np.cumsum(copies) - copies)[column]
    arms["number"] = numbers - first_arms(job)[arms["agent"]]
    arms["key"] = arms["number"] + ((arms["agent"] << 32) if flat else 0)
    return table


class RunResults(NamedTuple):
    """Of each run of a chunk: rewards, means and number of the pulls of each agent, and the regret."""

    payoff: FloatArray
    served: FloatArray
    rounds: FloatArray
    regret: FloatArray

    @classmethod
    def empty(cls, runs: int, agents: int) -> RunResults:
        payoff, served, rounds = (np.zeros((runs, agents)) for _ in range(3))
        return cls(payoff, served, rounds, np.zeros(runs))

    def outcomes(self, share: float) -> Outcomes:
        """Return the outcomes if agents are paid this share."""
        return Outcomes(self.payoff * share, self.regret, self.served * share, self.rounds)


@inlined
def close_run(arms, paid, results, r):
    """Store the outcome of run r from the pulls of its arms and the exact sums paid to each agent."""
    regret = 0.0
    for a in range(len(arms)):
        regret += arms[a].pulls * arms[a].loss
        results.served[r, arms[a].agent] += arms[a].pulls * arms[a].mean
        results.rounds[r, arms[a].agent] += arms[a].pulls
    results.regret[r] = regret
    for i in range(len(paid)):
        results.payoff[r, i] = average(paid[i, 0], paid[i, 1], ONE)


@compiled
def pay(paid, agent, high, low):
    """Pay an agent an exact sum."""
    paid[agent, 0], paid[agent, 1] = plus(paid[agent, 0], paid[agent, 1], high, low)


@inlined
def begin_run(arms, count, tapes, means):
    """Set the tape, mean and loss of the first `count` rows, with no pulls; equal originals and copies share a tape."""
    best = means[0]
    for o in range(1, len(means)):
        best = max(best, means[o])
    for a in range(count):
        arms[a].tape = word(word(word(tapes, arms[a].agent), arms[a].original), arms[a].copy)
        arms[a].mean = means[arms[a].column]
        arms[a].loss = best - arms[a].mean
        arms[a].pulls = 0


@inlined
def rank_by_word(rows, begin, end):
    """Put the positions 0, 1, .. of the rows into their fields `rank`, in increasing order of `word`.

    Shell's sort: quick to compile, and fast enough for thousands of rows.
    """
    count = end - begin
    for k in range(count):
        rows[begin + k].rank = k
    gap = count // 2
    while gap > 0:
        for k in range(gap, count):
            here = rows[begin + k].rank
            value = rows[begin + here].word
            at = k
            while at >= gap:
                other = rows[begin + at - gap].rank
                before = rows[begin + other].word
                if before < value or (before == value and other < here):
                    break
                rows[begin + at].rank = other
                at -= gap
            rows[begin + at].rank = here
        gap = 1 if gap == 2 else gap * 5 // 11


@compiled
def admitted_arms(stream, arms, first):
    """Return how many of `arms` arms `mechanisms.Admission` keeps; `stream` is that of the sample."""
    coins, kept = word(stream, np.uint64(ADMISSION)), 0
    for k in range(1, arms + 1):
        if uniform(coins, k) * k < first:
            kept += 1
    return kept


@compiled
def all_explored(candidates, rounds):
    """Return the rounds of a whole exploration, at most NEVER, so that the product cannot overflow."""
    return candidates * rounds if rounds <= NEVER // candidates else NEVER


@compiled
def best_page(means, owners, attention):
    """Return what a page of the best slate of different agents is worth."""
    agents = owners[-1] + 1
    bests = np.zeros(agents)
    for o in range(len(means)):
        bests[owners[o]] = max(bests[owners[o]], means[o])
    bests = -np.sort(-bests)
    worth = 0.0
    for place in range(min(len(attention), agents)):
        worth += attention[place] * bests[place]
    return worth
