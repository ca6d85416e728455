"""What mechanisms cost if everybody is honest, and which costs least.

Regrets are computed where an engine can, and sampled otherwise. A ranking plays mechanisms in the same worlds, so that
differences vary less than regrets do, until no other one can be much cheaper than the first. Its intervals are
asymptotic confidence sequences: they hold at all numbers of runs together, so that sampling may stop as soon as they
decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.advice.recommendation import CheapestSeasons
from cloneproof.bounds import season_cost, season_length
from cloneproof.errors import CloneproofError, OutOfTimeError
from cloneproof.evaluation.evaluate import exact_evaluations
from cloneproof.evaluation.reference import runs_of
from cloneproof.evaluation.search import Search
from cloneproof.laws.best import best_round, places_taken
from cloneproof.laws.reservoir import COARSE, FINE, ReservoirMarket, reservoir_market
from cloneproof.market.market import Copies, Market, full_copies
from cloneproof.mechanisms.catalogue import mechanism
from cloneproof.mechanisms.facts import Setting
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.segments import plays
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate, weighted_sum
from cloneproof.runs.job import Job
from cloneproof.runs.kernel import Runs
from cloneproof.runs.sampler import (
    RunPlan,
    SamplingStatus,
    drive,
    kernel_outcomes,
)
from cloneproof.runs.statistics import (
    FIRST_TIME,
    Bounds,
    Estimands,
    RunTotals,
    regret_bounds,
    with_sum,
)

MOST_RUNS = 4000  # A regret is sampled in at most this many runs.
PATIENCE = 6.0  # The fewest runs of an interval may take this many times as long as there is.
AUDIT_RUNS = 64  # Pairs of each list in an audit, if nothing computes it.
TUNING_RUNS = 500  # The regrets that a tuning compares are of this many runs, if nothing computes them.
LOOSE = 0.95  # A sampled regret says nothing if its error is a larger part of it.
ROUNDINGS = 1e-12  # Error of a regret by moments, relative to a round's reward.
ERRORS = 2.58  # An interval at 99 % has this many standard errors.
SHORTER, SEASONS_TUNED = 16, 5  # Seasons are tuned at this many horizons, each that many times shorter.
MOST_DOUBLINGS = 10  # Horizons are doubled at most this often to find one that is long enough.
CONFIDENCE = 0.99  # All comparisons of a ranking hold together with this probability, in the limit of many runs.
CLOSE = 0.05  # The first mechanism is settled if it costs at most this part more than any other.
PRECISE = 0.1  # Sampling goes on until the error of the first regret is at most this part of it,
PRECISE_PART = 0.6  # for at most this part of the time.
RANK_PATIENCE = 5.0  # The fewest runs of an interval may take this many times as long as there is.


def run_seconds(runs: Runs) -> float:
    """Return about the seconds that a usual core takes for a run, from which numbers of runs follow."""
    return sum(part.kernel.seconds for part in runs.parts)


def prompt(market: Market) -> Market:
    """Return the market with rewards that are prompt in runs."""
    return market.with_delays("independent") if market.late else market


def heard(market: Market, mechanism: Mechanism) -> Market:
    """Return the market as it is sampled: with late rewards if compiled code plays them, else with prompt ones."""
    kernel = mechanism.runs(Job(market, full_copies(market.agents, None))) if market.late else None
    return market if kernel is not None and kernel.late else prompt(market)


@dataclass(frozen=True)
class SamplingBudget:
    """Seconds and seed of a sampled figure, if no exact engine applies."""

    seconds: float = 0.5
    seed: int = 0

    def search(self) -> Search:
        """Return options of an audit that is one figure of many."""
        return Search(copies=2, runs=AUDIT_RUNS, seed=self.seed)


def is_listed(market: Market) -> bool:
    """Return whether all rates that items may have are listed."""
    return all(agent.support is not None for agent in market.agents)


def computed_regret(market: Market, mechanism: Mechanism, copies: Copies | None = None) -> Estimate | None:
    """Return the regret by the closed form for listed rates, or by moments for a flat reservoir or a bar, or None."""
    regrets = [_computed_in(play.market, play.mechanism, copies) for play in plays(prompt(market), mechanism)]
    if not market.segments:
        return regrets[0]
    terms = [(1.0, regret) for regret in regrets if regret is not None]
    return weighted_sum(terms) if len(terms) == len(regrets) else None


def _computed_in(market: Market, mechanism: Mechanism, copies: Copies | None) -> Estimate | None:
    of_moments = mechanism.facts(Setting.of(market)).regret if copies is None else None
    try:
        if is_listed(market):  # else quadrature is slower and less exact than runs
            full = full_copies(market.agents, copies)
            return exact_evaluations([(market, mechanism)], full, "law")[0][market.horizon].regret
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
    market = heard(market, mechanism)
    drawn = runs_of(market, mechanism, full_copies(market.agents, copies), sampling.seed)
    cost = run_seconds(drawn)
    runs = min(MOST_RUNS, max(FIRST_TIME, round(sampling.seconds / cost)))
    if runs * cost > PATIENCE * sampling.seconds:
        return None
    try:
        regret = _sampled_regret(drawn, RunPlan(runs))
    except OutOfTimeError:
        return None
    return regret if regret.error <= loose * max(1.0, regret.value) else None


def cost_of(market: Market, candidate: Mechanism) -> float:
    """Return the honest regret as computed, else in a few runs that are the same for all; infinite if neither."""
    try:
        if (regret := computed_regret(market, candidate)) is not None:
            return regret.value
        if is_listed(market) and not market.places:
            return math.inf
        drawn = runs_of(heard(market, candidate), candidate, full_copies(market.agents, None))
        return _sampled_regret(drawn, RunPlan(TUNING_RUNS)).value
    except OutOfTimeError:
        raise
    except CloneproofError:
        return math.inf


def _sampled_regret(drawn: Runs, plan: RunPlan) -> Estimate:
    """Return the mean regret of as many runs as planned."""

    def regrets(first: int, count: int) -> FloatArray:
        return np.asarray(with_sum([kernel_outcomes(part, first, count).regret for part in drawn.parts])[0][:, None])

    most = with_sum([regret_bounds(part.job.market) for part in drawn.parts])[0]
    totals, _ = drive(regrets, RunTotals.empty(Estimands((most,))), plan)
    if totals.count < FIRST_TIME:
        raise OutOfTimeError("time was over after too few runs for an interval", "use a larger budget")
    return _mean_regret(float(totals.means[0]), float(totals.variances[0]), totals.count)


def _mean_regret(mean: float, variance: float, runs: int) -> Estimate:
    """Return a regret at 99 %, by the central limit theorem: the number of runs was fixed beforehand."""
    error = ERRORS * math.sqrt(variance / runs) if runs >= FIRST_TIME else math.inf
    return Estimate(mean, error, "confidence", f"{runs} runs, 99 % in the limit of many", level=0.99)


def _regret_by_moments(market: Market, regret: Callable[[ReservoirMarket], float]) -> Estimate:
    """Return the honest regret of a flat reservoir or of a bar: exact for atoms, else by quadrature."""
    priors = [agent.priors for agent in market.agents]
    how = "moments of one original at a time"
    if is_listed(market):
        tabled = reservoir_market(priors, market.horizon)
        value, rough = (regret(replace(tabled, cells=cells)) for cells in (tabled.cells, tabled.cells // 2))
        error = abs(value - rough) + ROUNDINGS * market.horizon
        return Estimate(value, error, "exact", how, heuristic=True)
    coarse, fine = (regret(reservoir_market(priors, market.horizon, n)) for n in (COARSE, FINE))
    how += f", quadrature with {COARSE} and {FINE} nodes"
    return Estimate(fine, abs(fine - coarse), "exact", how, heuristic=True)


def expected_best(market: Market) -> float:
    """Return the expected best mean of all originals, or what a page of the best slate is worth."""
    return best_round([agent.priors for agent in market.agents], market.places)


def best_reward(market: Market) -> float:
    """Return what perfect knowledge earns in all rounds and segments."""
    return sum(own.horizon * expected_best(own) for own in market.by_segment.values())


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


def reservoir_cost(market: Market) -> float:
    """Return what a reservoir with the numbers for this market costs."""
    return cost_of(market, mechanism("reservoir", market=market))


def cheapest_seasons(market: Market, lifetime: float) -> CheapestSeasons:
    """Return the seasons of least cost if rates last `lifetime` rounds, on average.

    The regret of a season is that of a tuned reservoir, by power laws between horizons that differ sixteenfold.
    """
    gap = random_regret(market) / market.horizon
    horizons = [market.horizon // SHORTER**k for k in range(SEASONS_TUNED)]
    tuned = [market.with_horizon(rounds) for rounds in horizons[::-1] if rounds >= len(market.agents)]
    costs = [max(1e-9, min(gap * own.horizon, reservoir_cost(own))) for own in tuned]
    lengths = [math.log(own.horizon) for own in tuned]

    def regret(rounds: int) -> float:
        return min(gap * rounds, math.exp(float(np.interp(math.log(rounds), lengths, np.log(costs)))))

    length = market.horizon if gap <= 0 else season_length(regret, market.horizon, gap, lifetime)[0]
    length = max(len(market.agents), length)
    one_season = market.horizon * season_cost(market.horizon, regret(market.horizon), gap, lifetime)
    return CheapestSeasons(lifetime, market.horizon, length, gap, one_season)


def enough_rounds(market: Market, share: float, clock: Deadline) -> int | None:
    """Return the first of 2T, 4T, .. at which a tuned reservoir costs at most that share of random play, if any."""
    for power in range(1, MOST_DOUBLINGS + 1):
        if clock.spent:
            return None
        longer = market.with_horizon(market.horizon * 2**power)
        most = share * random_regret(longer)
        try:
            if reservoir_cost(longer) <= most:
                return longer.horizon
        except CloneproofError:
            return None
    return None


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
    honest = full_copies(market.agents, None)
    drawn = [runs_of(heard(market, mechanism), mechanism, honest, seed) for mechanism in mechanisms]
    costs = [0.0 if exact is not None else _cost(runs) for exact, runs in zip(computed, drawn, strict=True)]
    patience = RANK_PATIENCE
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
            columns.append(np.full(count, exact.value) if exact else kernel_outcomes(drawn[k], first, count).regret)
        return compared.with_differences(np.column_stack(columns))

    most = max(FIRST_TIME, int(seconds / compared.cost)) if compared.cost else FIRST_TIME

    def report(status: SamplingStatus) -> None:
        tell(min(1.0, status.totals.count / most))

    plan = RunPlan(most, compared.decide, report=report)
    totals, _ = drive(regrets, RunTotals.empty(Estimands(compared.bounds(regret_bounds(market)))), plan)
    estimates = totals.estimates(CONFIDENCE, f"{totals.runs} runs, seed {seed}", "asymptotic")
    for place, k in enumerate(played):
        known_regrets[k] = computed[k] or estimates[place]
    excess = compared.excess(totals)
    pairs = {(played[i], played[j]) for i, j in np.argwhere(excess > 0.0) if i != j}
    return Ranking(tuple(known_regrets), frozenset(pairs))


def _cost(runs: Runs) -> float:
    """Return the seconds of a run; infinite if there is no time left even to load the kernels."""
    try:
        return run_seconds(runs)
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
