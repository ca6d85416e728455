"""A job: what is sampled. A chunk is a pure function of the job and a range of runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, wraps
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np

from cloneproof._lib.arrays import FloatArray, WordArray
from cloneproof._lib.randomness import GOLDEN, substream
from cloneproof.errors import EngineError
from cloneproof.evaluation.reference import MEANS_STREAM, Run, simulate_run
from cloneproof.market.market import FullCopies, Market, Means
from cloneproof.market.priors import quantiles
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.plays import plays

Kept = TypeVar("Kept")
M_co = TypeVar("M_co", covariant=True)  # what plays: a mechanism, or somebody's black box


ROUNDS_IN_PYTHON = 5 * 10**4  # a second
MOST_REALISATIONS = 256
LARGEST_SUM = 2.0**33  # of rewards that are no whole numbers
FARTHEST = 9.0  # standard deviations of a normal reward from a uniform number of 52 bits, at most
SEGMENTS = 3  # the stream of the seeds of segments


@dataclass(frozen=True)
class SamplingJob(Generic[M_co]):
    """A market under a mechanism or policy, with everybody's copies and a seed.

    With strata, run r takes the means of stratum r modulo their number instead of drawing them; its tapes and ties are
    unchanged.
    """

    market: Market
    mechanism: M_co
    copies: FullCopies
    seed: int = 0
    strata: tuple[Means, ...] = field(default=())

    def __getstate__(self) -> dict[str, Any]:
        """Return what makes the job, without what a kernel keeps of it in this process (`once_a_job`)."""
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def parts(self) -> Sequence[Self]:
        """Jobs whose outcomes add up to this one's: itself, if it is played as a whole."""
        return (self,)


class Job(SamplingJob[Mechanism]):
    """A market under a mechanism, for the kernels; a `BlackBoxJob` is the same for black boxes."""

    @cached_property
    def parts(self) -> Sequence[Self]:
        """One job for each segment, on rewards of that segment and random numbers of its own."""
        if not self.market.segments:
            return (self,)
        return tuple(
            type(self)(play.market, play.mechanism, self.copies, substream(SEGMENTS, self.seed, k) >> 1)
            for k, play in enumerate(plays(self.market, self.mechanism))
        )


def once_a_job(make: Callable[[Job], Kept]) -> Callable[[Job], Kept]:
    """Make a thing once for all chunks of a job, and keep it with the job."""

    @wraps(make)
    def made(job: Job) -> Kept:
        kept, name = vars(job), f"{make.__module__}.{make.__qualname__}"
        if name not in kept:
            kept[name] = make(job)  # two threads may both make it: either will do
        found: Kept = kept[name]
        return found

    return made


class Outcomes(NamedTuple):
    """Outcome of each run of a range: payoffs (runs x agents, the share included) and regrets (runs).

    `served` is the payoff with every reward replaced by its arm's mean. It has the same expectation as `payoff` without
    the noise of the rewards, and lies between 0 and all rounds at the agent's best mean. `rounds` counts the pulls of
    each agent; None if the kernel does not keep them.
    """

    payoff: FloatArray
    regret: FloatArray
    served: FloatArray
    rounds: FloatArray | None = None

    @property
    def rows(self) -> FloatArray:
        """One row per run: every payoff, the regret, and what every agent is served."""
        return np.column_stack([self.payoff, self.regret, self.served])


def words(streams: WordArray | np.uint64, index: int | WordArray) -> WordArray:
    """Return `cloneproof._lib.randomness.word` of many streams, or of many numbers of one stream."""
    with np.errstate(over="ignore"):
        x = np.atleast_1d(np.asarray(streams, np.uint64)) + np.uint64(GOLDEN) * np.asarray(index + 1, np.uint64)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)), np.uint64)


def uniforms(streams: WordArray, index: int | WordArray) -> FloatArray:
    """Return `cloneproof._lib.randomness.uniform` of many streams."""
    return np.asarray(((words(streams, index) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52)


def run_streams(seed: int, first: int, count: int) -> WordArray:
    """Return the stream of each run: `substream(0, seed, run)`."""
    return words(np.uint64(substream(0, seed)), np.arange(first, first + count, dtype=np.uint64))


def means_of_runs(job: SamplingJob[Any], first: int, count: int) -> FloatArray:
    """Return runs x originals (agent by agent), drawn from the priors or taken from the strata."""
    if job.strata:
        rows = [[mean for agent in job.market.agents for mean in s[agent.name]] for s in job.strata]
        return np.asarray(np.array(rows)[np.arange(first, first + count) % len(rows)])
    streams = words(run_streams(job.seed, first, count), MEANS_STREAM)
    columns = []
    for i, agent in enumerate(job.market.agents):
        agent_streams = words(streams, i)
        columns += [quantiles(prior, uniforms(agent_streams, o)) for o, prior in enumerate(agent.priors)]
    return np.stack(columns, axis=1)


class Strata(NamedTuple):
    """Means of each stratum, in the order of the runs of a pass, and its weight; empty: runs draw from priors."""

    means: tuple[Means, ...] = ()
    weights: tuple[float, ...] = (1.0,)


def strata_of(market: Market, short: bool = False) -> Strata:
    """Return the strata of a market; empty for a single realisation, too many, or a continuous prior.

    A realisation of probability p is listed ceil(p / q) times, q being the least probability or 1/256 if that is more:
    at most 512 runs in a pass. In a short pass each is listed once. A few runs then give a rough mean, but the interval
    after many runs is wider.

    >>> from cloneproof.market import Agent, Discrete
    >>> strata_of(Market([Agent("ana", 1, Discrete([0, 1], [0.25, 0.75]))], horizon=9)).weights
    (0.25, 0.25, 0.25, 0.25)
    >>> strata_of(Market([Agent("ana", 1, Discrete([0, 1], [0.25, 0.75]))], horizon=9), short=True).weights
    (0.25, 0.75)
    """
    realisations = MOST_REALISATIONS + 1 if market.segments else 1  # each segment has its own
    for agent in [] if market.segments else market.agents:
        for prior in agent.laws:
            realisations *= MOST_REALISATIONS + 1 if prior.atoms is None else len(prior.atoms)
    if not 1 < realisations <= MOST_REALISATIONS:
        return Strata()
    likely = list(market.realisations())
    total = math.fsum(weight for weight, _ in likely)  # 1, up to the rounding of the weights
    unit = 1.0 if short else max(min(weight for weight, _ in likely), 1.0 / MOST_REALISATIONS)
    means: list[Means] = []
    weights: list[float] = []
    for weight, realisation in likely:
        times = math.ceil(weight / unit * (1.0 - 1e-9))
        means += [realisation] * times
        weights += [weight / total / times] * times
    return Strata(tuple(means), tuple(weights))


def check_sums(job: SamplingJob[Any]) -> None:
    """Raise an error if rewards may add up to more than the one word that holds their sum."""
    market, family = job.market, job.market.family
    largest = max(abs(family.low), abs(family.high))
    if family.law == "normal":
        largest = 1.0 + FARTHEST * family.parameters[0]
    if family.law == "point" and all(agent.support is not None for agent in market.agents):
        largest = max((mean for agent in market.agents for mean in agent.support or () if mean % 1.0), default=0.0)
    if family.law != "coin" and math.isfinite(largest) and market.horizon * largest >= LARGEST_SUM:
        raise EngineError(
            f"sampling expects rewards that add up to less than 2^33, got {market.horizon:,} rounds of up to "
            f"{largest:g}; ask for a shorter horizon, or scale the rewards"
        )


def reference_run(job: Job, run: int) -> Run:
    """Play one run of a job; the means of a stratum replace those of the run."""
    market = job.market.at(job.strata[run % len(job.strata)]) if job.strata else job.market
    return simulate_run(market, job.mechanism, job.copies, job.seed, run)


def reference_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Play runs first, .., first + count - 1 of any job, slowly, by the reference simulator."""
    return outcomes_of([reference_run(job, run) for run in range(first, first + count)], len(job.market.agents))


def outcomes_of(runs: Sequence[Run], agents: int) -> Outcomes:
    """Return the outcomes of runs that were played one by one."""
    payoff, served = (
        np.array([list(getattr(run, field).values()) for run in runs]).reshape(len(runs), agents)
        for field in ("payoff", "served")
    )
    return Outcomes(payoff, np.array([run.regret for run in runs]), served)
