"""Runs by the reference simulator, for what no kernel can take."""

from __future__ import annotations

import numpy as np

from cloneproof.engines.monte_carlo.job import Job, Outcomes
from cloneproof.engines.reference import Run, simulate_run


def reference_run(job: Job, run: int) -> Run:
    """One run of a job; a stratum's means are priors of one point, everything else is as drawn."""
    market = job.market.at(job.strata[run % len(job.strata)]) if job.strata else job.market
    return simulate_run(market, job.mechanism, job.copies, job.seed, run)


def reference_outcomes(job: Job, first: int, count: int) -> Outcomes:
    """Runs first, .., first + count - 1 of any job: slow, but there is nothing that it cannot run."""
    runs = [reference_run(job, run) for run in range(first, first + count)]
    payoff, served = (
        np.array([list(getattr(run, field).values()) for run in runs]).reshape(count, len(job.market.agents))
        for field in ("payoff", "served")
    )
    return Outcomes(payoff, np.array([run.regret for run in runs]), served)
