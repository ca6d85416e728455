"""Which mechanism costs least: played in the same worlds until no other one can be much cheaper.

Regrets are computed where an engine can, and sampled otherwise. Runs of one seed have the same worlds under every
mechanism, so that differences vary less than regrets do. Intervals are asymptotic confidence sequences: they hold at
all numbers of runs together, so that sampling may stop as soon as they decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._clock import is_counted
from cloneproof.advice.regret import computed_or_none
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import (
    RunPlan,
    SamplingStatus,
    available_threads,
    drive,
    kernel_outcomes,
    run_seconds,
)
from cloneproof.engines.monte_carlo.statistics import FIRST_TIME, Bounds, Estimands, RunTotals, regret_bounds
from cloneproof.errors import OutOfTimeError
from cloneproof.market.market import Market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism

CONFIDENCE = 0.99  # All comparisons of a ranking hold together with this probability, in the limit of many runs.
CLOSE = 0.05  # The first mechanism is settled if it costs at most this part more than any other.
PRECISE = 0.1  # Sampling goes on until the error of the first regret is at most this part of it,
PRECISE_PART = 0.6  # for at most this part of the time.
PATIENCE = 5.0  # The fewest runs of an interval may take this many times as long as there is, if work is counted.


@dataclass(frozen=True)
class Ranking:
    """Regrets of mechanisms, None if even a few runs take too long, and what is not settled between them.

    `open_pairs` has (i, j) if it is not sure that mechanism i costs at most `CLOSE` more than mechanism j.
    """

    regrets: tuple[Estimate | None, ...]
    open_pairs: frozenset[tuple[int, int]]

    def rivals(self, first: int) -> list[int]:
        """Return the mechanisms that may be much cheaper than the given one."""
        unknown = [number for number, regret in enumerate(self.regrets) if regret is None]
        return [j for j in range(len(self.regrets)) if (first, j) in self.open_pairs or j in unknown]


def rank(
    market: Market,
    mechanisms: Sequence[Mechanism],
    seconds: float,
    seed: int,
    tell: Callable[[float], None] = lambda share: None,
) -> Ranking:
    """Sample the regrets that cannot be computed until the cheapest mechanism is settled; `tell` gets the part done.

    All pairs are compared at `CONFIDENCE` together, and each regret has that confidence by itself.
    """
    computed = [computed_or_none(market, mechanism) for mechanism in mechanisms]
    jobs = [Job(market, mechanism, full_copies(market.agents, None), seed) for mechanism in mechanisms]
    costs = [0.0 if exact is not None else _cost(job) for exact, job in zip(computed, jobs, strict=True)]
    patience = PATIENCE if is_counted() else float(available_threads())
    played = [k for k, cost in enumerate(costs) if FIRST_TIME * cost <= patience * seconds]
    sampled = [k for k in played if computed[k] is None]
    known_regrets: list[Estimate | None] = list(computed)
    if not sampled:
        return Ranking(tuple(known_regrets), _open(played, [known_regrets[k] for k in played]))
    slack = np.array([0.0 if (exact := computed[k]) is None else exact.error for k in played])
    compared = _Compared(len(played), slack, seconds, sum(costs[k] for k in sampled))

    def regrets(first: int, count: int) -> FloatArray:
        columns = []
        for k in played:
            exact = computed[k]
            columns.append(np.full(count, exact.value) if exact else kernel_outcomes(jobs[k], first, count).regret)
        return compared.with_differences(np.column_stack(columns))

    def report(status: SamplingStatus) -> None:
        tell(min(1.0, status.totals.count * compared.cost / seconds))

    most = max(FIRST_TIME, int(seconds / compared.cost))
    limit = most * compared.cost if is_counted() else seconds
    plan = RunPlan(most, compared.decide, limit, report=report, cost=compared.cost)
    totals, _ = drive(regrets, RunTotals.empty(Estimands(compared.bounds(regret_bounds(market)))), plan)
    estimates = totals.estimates(CONFIDENCE, f"{totals.runs} runs, seed {seed}", "asymptotic")
    for place, k in enumerate(played):
        known_regrets[k] = computed[k] or estimates[place]
    excess = compared.excess(totals)
    pairs = {(played[i], played[j]) for i, j in np.argwhere(excess > 0.0) if i != j}
    return Ranking(tuple(known_regrets), frozenset(pairs))


def _cost(job: Job) -> float:
    """Return the seconds of a run; infinite if there is no time left even to load the kernels."""
    try:
        return run_seconds(job)
    except OutOfTimeError:
        return math.inf


def _open(played: Sequence[int], regrets: Sequence[Estimate | None]) -> frozenset[tuple[int, int]]:
    """Return the pairs that computed regrets leave open."""
    pairs = [(k, regret) for k, regret in zip(played, regrets, strict=True) if regret is not None]
    return frozenset((i, j) for i, one in pairs for j, other in pairs if one.high > (1 + CLOSE) * other.low and i != j)


@dataclass(frozen=True)
class _Compared:
    """Columns of samples: each regret, and each regret minus 1 + CLOSE times another; `slack` is of computed ones."""

    count: int
    slack: FloatArray
    seconds: float
    cost: float

    def bounds(self, regret: Bounds) -> tuple[Bounds, ...]:
        difference = Bounds(-(1 + CLOSE) * regret.high, regret.high)
        return (Bounds(0.0, regret.high),) * self.count + (difference,) * self.count**2

    def with_differences(self, regrets: FloatArray) -> FloatArray:
        pairs = regrets[:, :, None] - (1 + CLOSE) * regrets[:, None, :]
        return np.column_stack([regrets, pairs.reshape(len(regrets), -1)])

    def excess(self, totals: RunTotals) -> FloatArray:
        """Return how much more than 1 + CLOSE times another one each mechanism may cost."""
        alpha = (1 - CONFIDENCE) / max(1, self.count * (self.count - 1))
        most = (totals.means + totals.half_widths(alpha, "asymptotic"))[self.count :].reshape(self.count, self.count)
        return np.asarray(most + self.slack[:, None] + (1 + CLOSE) * self.slack)

    def decide(self, totals: RunTotals) -> bool:
        """Return whether the cheapest mechanism is settled, and its regret precise or sampled long enough."""
        first = int(np.argmin(totals.means[: self.count]))
        if any(excess > 0.0 for j, excess in enumerate(self.excess(totals)[first]) if j != first):
            return False
        width = float(totals.half_widths(1 - CONFIDENCE, "asymptotic")[first])
        long = totals.count * self.cost >= PRECISE_PART * self.seconds
        return totals.count >= FIRST_TIME and (long or width <= PRECISE * float(totals.means[first]))
