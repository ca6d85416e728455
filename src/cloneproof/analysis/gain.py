"""What a deviation is worth to an agent: sampled in pairs, so that only what the copies change adds noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.run_source import check_mechanism_or_box, job_of, source_of
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.driver import Reason, RunPlan, Status, drive
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import (
    ChunkOutcomes,
    check_sampling,
    expected_count,
    identity,
    is_precise,
    limit_of,
)
from cloneproof.engines.monte_carlo.statistics.payoff_ranges import gain_bounds, payoff_bounds
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals, Target
from cloneproof.engines.monte_carlo.statistics.strata import Strata, strata_of
from cloneproof.errors import MarketError, did_you_mean
from cloneproof.market.copies import Copies, full_copies
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_seed

GainDecision = Literal["pays", "does not pay", "undecided"]

DIFFERENCE = slice(0, 1)  # the columns: copied minus honest, honest, copied


@dataclass(frozen=True)
class Gain:
    """The gain of a deviation: its payoff minus that of honest registration, and how sure that is.

    `decided` is "pays" where the whole interval lies above 0, "does not pay" where none of it does. Estimates hold at
    `confidence`, each by itself, whenever the sampling stopped. `variance_reduction` compares the variance of the
    paired and stratified estimate with that of independent runs in the two worlds, at the same number of runs
    (infinite where pairs leave no noise, None for fewer than two observations); `pairing` is the share of common
    random numbers in it, the rest is due to the strata.
    """

    agent: str
    copies: dict[str, tuple[int, ...]]
    estimate: Estimate
    honest: Estimate
    copied: Estimate
    confidence: float
    runs: int
    stopped: Reason | Literal["decided"]
    variance_reduction: float | None
    pairing: float | None
    progress: RunTotals

    @property
    def decided(self) -> GainDecision:
        """Whether it pays, in words."""
        if self.estimate.low > 0:
            return "pays"
        return "does not pay" if self.estimate.high <= 0 else "undecided"

    @property
    def partial(self) -> bool:
        """Whether it ended before what was asked for."""
        return self.stopped in ("budget", "interrupted")


def gain(
    market: Market,
    mechanism: Mechanism | BlackBox,
    agent: str,
    copies: Sequence[int] | Copies,
    *,
    runs: int | None = None,
    precision: float | None = None,
    confidence: float = 0.99,
    seed: int = 0,
    stratify: bool = True,
    stop_when_decided: bool = True,
    budget_seconds: float | None = None,
    threads: int | None = None,
    progress: Callable[[Status], None] | None = None,
    resume: RunTotals | None = None,
    outcomes: ChunkOutcomes | None = None,
    chunk: int | None = None,
) -> Gain:
    """What `agent` gains by registering these copies (its own, or a mapping in which the others' are fixed as well).

    Both worlds are run on the same means, tapes and ties, run by run. With `stratify` a market of at most 256
    realisations of its discrete priors is sampled in passes over all of them. It stops as soon as the sign is decided
    (unless told not to), when the gain's half-width is at most `precision` (absolute, in the unit of payoffs), after
    `runs` pairs, or when the budget is spent; after 1000 pairs if none of these is given.

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7, rewards="deterministic")
    >>> found = gain(market, mechanism("ucb1"), "ana", (2, 1), seed=1)
    >>> found.decided, found.runs < 1000
    ('pays', True)
    """
    check_sampling(runs, precision, confidence, budget_seconds, threads)
    check_mechanism_or_box(mechanism)
    known = [each.name for each in market.agents]
    if agent not in known:
        raise MarketError(
            f"unknown agent {agent!r}; {did_you_mean(str(agent), known)}the market has {', '.join(known)}"
        )
    asked = copies if isinstance(copies, Mapping) else {agent: copies}
    full = full_copies(market.agents, asked)
    honest = full_copies(market.agents, {name: own for name, own in full.items() if name != agent})
    strata = strata_of(market) if stratify else Strata()
    jobs = [job_of(market, mechanism, world, checked_seed(seed), strata.means) for world in (honest, full)]
    bounds = (gain_bounds(market), payoff_bounds(market), payoff_bounds(market))
    target = Target(bounds, strata.weights, identity(jobs[1], agent))
    alpha = 1 - confidence
    plan = RunPlan(
        limit=limit_of(runs, precision, budget_seconds, len(strata.weights)),
        enough=partial(_enough, precision=precision, alpha=alpha, sign=stop_when_decided),
        aim=None
        if precision is None
        else partial(expected_count, precision=precision, alpha=alpha, columns=DIFFERENCE),
        budget_seconds=budget_seconds,
        threads=threads,
        chunk=chunk,
        report=progress,
    )
    start = RunTotals.empty(target) if resume is None else resume.of_the_same(target)
    with source_of(mechanism, threads) as (source, executor):
        observe = partial(_pairs, outcomes or source, jobs[0], jobs[1], known.index(agent))
        end, stopped = drive(observe, start, replace(plan, executor=executor))
    how = f"{end.runs} pairs of runs with common random numbers, seed {seed}"
    if strata.means:
        how += f", {len(strata.weights)} strata"
    difference, before, after = end.estimates(confidence, how)
    reduction, pairing = _variance_reduction(end)
    decided = stopped == "enough" and not (precision is not None and is_precise(end, precision, alpha, DIFFERENCE))
    why: Reason | Literal["decided"] = "decided" if decided else stopped
    return Gain(agent, full, difference, before, after, confidence, end.runs, why, reduction, pairing, end)


def _pairs(outcomes: ChunkOutcomes, honest: Job, copied: Job, agent: int, first: int, count: int) -> FloatArray:
    """One row a run: what the copies changed, and the payoff without and with them."""
    before = outcomes(honest, first, count).payoff[:, agent]
    after = outcomes(copied, first, count).payoff[:, agent]
    return np.column_stack([after - before, before, after])


def _enough(state: RunTotals, precision: float | None, alpha: float, sign: bool) -> bool:
    """Whether the sign or the precision is reached."""
    width = float(state.half_widths(alpha)[0])
    if precision is not None and width <= precision:
        return True
    mean = float(state.means[0])
    return sign and (mean - width > 0 or mean + width <= 0)


def _variance_reduction(end: RunTotals) -> tuple[float | None, float | None]:
    """(independent runs) / (what was done), and / (pairs without strata), by the variances met, per run."""
    if end.count < 2:
        return None, None
    weights = np.array(end.target.weights)[:, None]
    means, squares = end.sums / end.count, end.squares / end.count
    inside = squares - means**2
    inside = np.where(inside > 1e-12 * squares, inside, 0.0) * end.count / (end.count - 1)  # rounding is no noise
    over_all = (weights * inside).sum(axis=0) + (weights * (means - (weights * means).sum(axis=0)) ** 2).sum(axis=0)
    paired = float(len(weights) * (weights**2 * inside).sum(axis=0)[0])
    apart = float(over_all[1] + over_all[2])
    return _ratio(apart, paired), _ratio(apart, float(over_all[0]))


def _ratio(above: float, below: float) -> float | None:
    if below > 0:
        return above / below
    return float("inf") if above > 0 else None
