"""The means of a range of runs at once: the same bits as `engines.reference.drawn_means`, vectorised."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from cloneproof._arrays import FloatArray, WordArray
from cloneproof._randomness import substream
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.reference import MEANS_STREAM
from cloneproof.market.priors import Beta, Prior


def words(streams: WordArray | np.uint64, index: int) -> WordArray:
    """`cloneproof._randomness.word` of many streams."""
    with np.errstate(over="ignore"):
        x = np.atleast_1d(np.asarray(streams, np.uint64)) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(index + 1)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def run_streams(seed: int, first: int, count: int) -> WordArray:
    """The stream of each run: `substream(0, seed, run)`."""
    base = np.uint64(substream(0, seed))
    runs = np.arange(first, first + count, dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = base + np.uint64(0x9E3779B97F4A7C15) * (runs + np.uint64(1))
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def means_of_runs(job: Job, first: int, count: int) -> FloatArray:
    """Runs x originals (agent by agent), drawn from the priors or taken from the strata."""
    if job.strata:
        rows = [[mean for agent in job.market.agents for mean in s[agent.name]] for s in job.strata]
        return np.asarray(np.array(rows)[np.arange(first, first + count) % len(rows)])
    streams = words(run_streams(job.seed, first, count), MEANS_STREAM)
    columns = []
    for i, agent in enumerate(job.market.agents):
        agent_streams = words(streams, i)
        for o, prior in enumerate(agent.priors):
            u = ((words(agent_streams, o) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
            columns.append(_quantiles(prior, u))
    return np.stack(columns, axis=1)


def _quantiles(prior: Prior, u: FloatArray) -> FloatArray:
    """`prior.quantile` of many levels, bit for bit."""
    if prior.atoms is not None:
        values = np.array([value for value, _ in prior.atoms])
        cumulated = np.cumsum([weight for _, weight in prior.atoms])
        steps = np.searchsorted(cumulated, u * cumulated[-1], side="right")
        return np.asarray(values[np.minimum(steps, len(values) - 1)])
    if isinstance(prior, Beta):
        return np.asarray(betaincinv(prior.a, prior.b, u))
    return np.array([prior.quantile(level) for level in u])
