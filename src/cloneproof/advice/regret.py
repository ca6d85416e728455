"""What a mechanism costs if everybody is honest: its regret, over time, and who is shown meanwhile."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._clock import count_work
from cloneproof.advice.recommendation import CoursePoint
from cloneproof.analysis.evaluate import exact_evaluations
from cloneproof.analysis.search import Search
from cloneproof.engines.estimate import Estimate, Evaluation, weighted_sum
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import RunPlan, drive, kernel_outcomes, run_cost, run_seconds
from cloneproof.engines.monte_carlo.statistics import FIRST_TIME, Estimands, RunTotals, regret_bounds, with_sum
from cloneproof.engines.plays import plays
from cloneproof.errors import CloneproofError, OutOfTimeError
from cloneproof.laws.bars import bars_regret
from cloneproof.laws.best import best_round, places_taken
from cloneproof.laws.reservoir import ReservoirMarket, ReservoirNumbers
from cloneproof.market.market import Copies, Market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.slots import passing_count
from cloneproof.mechanisms.parameters.bars_tuning import QUOTED
from cloneproof.mechanisms.parameters.reservoir import COARSE, FINE, reservoir_market
from cloneproof.mechanisms.rule import Rule

MOST_RUNS = 4000  # A regret is sampled in at most this many runs.
PATIENCE = 6.0  # The fewest runs of an interval may take this many times as long as there is.
TUNING_RUNS = 500  # The regrets that a tuning compares are of this many runs, if nothing computes them.
LOOSE = 0.95  # A sampled regret says nothing if its error is a larger part of it.
ROUNDINGS = 1e-12  # Error of a regret by moments, relative to a round's reward.
ERRORS = 2.58  # An interval at 99 % has this many standard errors.
POINTS = 7  # A curve over time has this many points,
FIRST_POINT = 10**4  # the first one after this part of the rounds,
MOST_CURVE_RUNS = 400  # and at most this many runs.


@dataclass(frozen=True)
class SamplingBudget:
    """Seconds and seed of a sampled figure, if no exact engine applies."""

    seconds: float = 0.5
    seed: int = 0
    caught: float = 0.0  # the chance that a de-duplicator removes a copy

    def search(self, least: float) -> Search:
        """Return the same as options of an audit, with at least `least` seconds."""
        return Search(seconds=max(least, self.seconds), seed=self.seed)


def is_listed(market: Market) -> bool:
    """Return whether all rates that items may have are listed."""
    return all(agent.support is not None for agent in market.agents)


def by_closed_form(market: Market, mechanism: Mechanism, copies: Copies | None = None) -> Evaluation:
    """Return the exact payoffs and regret, or raise the engine's refusal."""
    full = full_copies(market.agents, copies)
    return exact_evaluations([(market, mechanism)], full, "closed-form")[0][market.horizon]


def computed_regret(market: Market, mechanism: Mechanism, copies: Copies | None = None) -> Estimate | None:
    """Return the regret by the closed form for listed rates, or by moments for a flat reservoir or bars, or None."""
    regrets = [_computed_in(play.market, play.mechanism, copies) for play in plays(market, mechanism)]
    if not market.segments:
        return regrets[0]
    terms = [(1.0, regret) for regret in regrets if regret is not None]
    return weighted_sum(terms) if len(terms) == len(regrets) else None


def _computed_in(market: Market, mechanism: Mechanism, copies: Copies | None) -> Estimate | None:
    of_moments = _formula(market, mechanism) if copies is None else None
    try:
        if is_listed(market):  # else quadrature is slower and less exact than runs
            return by_closed_form(market, mechanism, copies).regret
    except OutOfTimeError:
        if of_moments is None:
            raise
    except CloneproofError:
        pass
    return None if of_moments is None else _regret_by_moments(market, of_moments)


def computed_or_none(market: Market, mechanism: Mechanism, copies: Copies | None = None) -> Estimate | None:
    """Return the computed regret; None if there is none, or if it takes too long."""
    try:
        return computed_regret(market, mechanism, copies)
    except CloneproofError:
        return None


def regret_of(
    market: Market, mechanism: Mechanism, sampling: SamplingBudget, copies: Copies | None = None, loose: float = LOOSE
) -> Estimate | None:
    """Return the regret as computed, else sampled; None if the fewest runs take too long.

    None also if its error is a larger part of it than `loose`.
    """
    try:
        if (computed := computed_regret(market, mechanism, copies)) is not None:
            return computed
    except OutOfTimeError:
        return None
    job = Job(market, mechanism, full_copies(market.agents, copies), sampling.seed)
    cost = run_seconds(job)
    runs = min(MOST_RUNS, max(FIRST_TIME, round(sampling.seconds / cost)))
    if runs * cost > PATIENCE * sampling.seconds:
        return None
    try:
        regret = _sampled_regret(job, RunPlan(runs, seconds=PATIENCE * sampling.seconds, cost=cost))
    except OutOfTimeError:
        return None
    return regret if regret.error <= loose * max(1.0, regret.value) else None


def cost_of(market: Market, candidate: Mechanism) -> float:
    """Return the honest regret as computed, else in a few runs that are the same for all; infinite if neither."""
    try:
        if (regret := computed_regret(market, candidate)) is not None:
            return regret.value
        if not market.places and (is_listed(market) or not all(rule.commits for rule in candidate.rules)):
            return math.inf
        job = Job(market, candidate, full_copies(market.agents, None))
        return _sampled_regret(job, RunPlan(TUNING_RUNS, cost=run_cost(job))).value
    except OutOfTimeError:
        raise
    except CloneproofError:
        return math.inf


def _sampled_regret(job: Job, plan: RunPlan) -> Estimate:
    """Return the mean regret of as many runs as planned."""

    def regrets(first: int, count: int) -> FloatArray:
        return np.asarray(with_sum([kernel_outcomes(part, first, count).regret for part in job.parts])[0][:, None])

    most = with_sum([regret_bounds(part.market) for part in job.parts])[0]
    totals, _ = drive(regrets, RunTotals.empty(Estimands((most,))), plan)
    if totals.count < FIRST_TIME:
        raise OutOfTimeError("time was over after too few runs for an interval", "use a larger budget")
    return _mean_regret(float(totals.means[0]), float(totals.variances[0]), totals.count)


def _mean_regret(mean: float, variance: float, runs: int) -> Estimate:
    """Return a regret at 99 %, by the central limit theorem: the number of runs was fixed beforehand."""
    error = ERRORS * math.sqrt(variance / runs) if runs >= FIRST_TIME else math.inf
    return Estimate(mean, error, "asymptotic", f"{runs} runs, 99 % in the limit of many")


def _formula(market: Market, mechanism: Mechanism) -> Callable[[ReservoirMarket], float] | None:
    """Return the honest regret as a function of moments of priors: of bars, and of a flat reservoir on coins."""
    arm = mechanism.arm
    if market.ends == "at-random":
        of_bars = mechanism.bars and mechanism.flat
        return (lambda tabled: bars_regret(tabled, mechanism.bars, mechanism.draws, QUOTED)) if of_bars else None
    on_coins = mechanism.scans and arm.binarise and arm.slots.fallback == "best" and not mechanism.in_epochs
    return (lambda tabled: tabled.regret(numbers_of(arm))) if on_coins and not market.places else None


def _regret_by_moments(market: Market, regret: Callable[[ReservoirMarket], float]) -> Estimate:
    """Return the honest regret of a flat reservoir or of bars: exact for atoms, else by quadrature."""
    priors = [agent.priors for agent in market.agents]
    how = "moments of one original at a time"
    if is_listed(market):
        tabled = reservoir_market(priors, market.horizon)
        value, rough = (regret(replace(tabled, cells=cells)) for cells in (tabled.cells, tabled.cells // 2))
        error = abs(value - rough) + ROUNDINGS * market.horizon
        return Estimate(value, error, "estimated", f"{how}, in floats", heuristic=True)
    coarse, fine = (regret(reservoir_market(priors, market.horizon, n)) for n in (COARSE, FINE))
    how += f", quadrature with {COARSE} and {FINE} nodes"
    return Estimate(fine, abs(fine - coarse), "estimated", how, heuristic=True)


def numbers_of(arm: Rule) -> ReservoirNumbers:
    """Return the numbers of a rule that tests slots."""
    passing = passing_count(arm)
    return ReservoirNumbers(arm.explore, arm.draws, None if passing > arm.explore else passing)


def over_time(
    market: Market,
    mechanism: Mechanism,
    sampling: SamplingBudget,
    copies: Copies | None = None,
    points: int = POINTS,
    at_end: Estimate | None = None,
) -> tuple[CoursePoint, ...]:
    """Return the regret up to some rounds of the same runs, and how they were shared since the round before.

    Regrets are as computed, else of these runs; `at_end` is that of the whole run, if given. The runs have fixed ends,
    also in a market that ends at random, and the parameters of the whole horizon. Nothing is returned if there is no
    time for the fewest runs; shares are empty if the kernel does not count rounds.
    """
    running = replace(mechanism.at_horizon(len(market.agents), market.horizon), fallback=None)  # its first rounds
    first = min(market.horizon, max(10, market.horizon // FIRST_POINT))
    moments = sorted({round(first * (market.horizon / first) ** (k / (points - 1))) for k in range(points)})
    full = full_copies(market.agents, copies)
    jobs = [Job(market.with_horizon(rounds, "at-horizon"), running, full, sampling.seed) for rounds in moments]
    cost = sum(map(run_seconds, jobs))
    runs = min(MOST_CURVE_RUNS, max(FIRST_TIME, round(sampling.seconds / cost)))
    if runs * cost > PATIENCE * sampling.seconds:
        return ()
    curve, before = list[CoursePoint](), 0
    total = np.zeros((runs, len(market.agents)))
    for rounds, job in zip(moments, jobs, strict=True):
        played = kernel_outcomes(job, 0, runs)
        count_work(runs * run_seconds(job))
        regret = at_end if rounds == market.horizon else computed_or_none(job.market, running, copies)
        if regret is None:
            regret = _mean_regret(float(played.regret.mean()), float(played.regret.var(ddof=1)), runs)
        shares: Iterable[float] = ()
        if played.rounds is not None:
            new, total, before, since = played.rounds - total, played.rounds, rounds, rounds - before
            shown = since * max(1, min(len(market.places), new.shape[1]))
            shares = np.sort(new / shown, axis=1)[:, ::-1].mean(axis=0).tolist()
        curve.append(CoursePoint(rounds, regret, tuple(shares)))
    return tuple(curve)


def expected_best(market: Market) -> float:
    """Return the expected best mean of all originals, or what a page of the best slate is worth."""
    return best_round([agent.priors for agent in market.agents], market.places)


def expected_surplus(market: Market) -> float:
    """Return by how much a new item, of the prior of one of the originals, is better than the best: E(new - best)^+."""
    lists = [agent.priors for agent in market.agents]
    kinds = Counter((lists.index(own), prior) for own in lists for prior in own)
    with_one_more = (
        count * best_round([(*own, prior) if k == place else own for k, own in enumerate(lists)], market.places)
        for (place, prior), count in kinds.items()
    )
    return max(0.0, sum(with_one_more) / market.originals - expected_best(market))


def random_regret(market: Market) -> float:
    """Return the regret of playing an original at random in every round, or those of random agents on every page."""
    if market.segments:
        return sum(map(random_regret, market.by_segment.values()))
    if market.places:
        agents = [sum(prior.mean for prior in agent.priors) / agent.count for agent in market.agents]
        shown = sum(agents) / len(agents) * sum(places_taken(market.places, len(agents)))
    else:
        shown = sum(prior.mean for agent in market.agents for prior in agent.priors) / market.originals
    return market.horizon * max(0.0, expected_best(market) - shown)
