"""Best response by sampling, where no exact engine applies: search, then confirm.

1. *Looks.* A few pairs of each candidate (`looks`).
2. *Successive halving*, then *optimism* (`pilot`).
3. *Confirmation*, at any time: whoever seems to pay is sampled afresh (`confirmation`).

All statements hold together at 1 - ALPHA (`levels`). Honest runs are played once for all candidates. It ends when a
gain is surely above the tolerance, every candidate surely is not, or runs or budget are spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.search.race.candidates import RaceEntry
from cloneproof.analysis.audit.search.race.levels import ALPHA
from cloneproof.analysis.audit.search.race.looks import in_order
from cloneproof.analysis.audit.search.race.outcome import race_results
from cloneproof.analysis.audit.search.race.pilot import run_search
from cloneproof.analysis.audit.search.race.state import Race
from cloneproof.analysis.audit.search.results import SampledResult
from cloneproof.analysis.gain import sampled_gain
from cloneproof.analysis.paired_runs import PairedSampling
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, kernel_outcomes
from cloneproof.engines.monte_carlo.statistics.strata import strata_of
from cloneproof.market.copies import full_copies
from cloneproof.mechanisms.mechanism import Mechanism

RUNS = 2048  # pairs of a candidate at most, if neither runs nor a budget is given
NO_LIMIT = 1 << 30
AHEAD_ARMS = 64  # of a candidate whose first runs are drawn with those of all others


def race(
    candidates: Sequence[RaceEntry],
    tolerance: float,
    runs: int | None,
    seed: int,
    clock: Deadline,
    budget: float | None,
    alpha: float = ALPHA,
    play: ChunkOutcomes[Any] = kernel_outcomes,
    bounds: BoundsName = "distribution-free",
    implied: frozenset[RaceEntry] = frozenset(),
) -> list[SampledResult]:
    """Sampled gains of the candidates, a result for each case; all of it holds at 1 - alpha.

    Those `implied` gain no more than the largest of the other candidates of their case, by an argument.
    """
    if budget is not None and candidates:
        clock.tell(0, 100, "compiling")
        _compile(candidates[0], seed, play)
        if candidates[0].case.box is not None and clock.left is not None:
            budget = max(clock.left, 1e-3)  # starting processes counts: nothing is compiled for good
    _draw_first_runs(candidates, seed, play)
    most = runs if runs is not None else (RUNS if budget is None else NO_LIMIT)
    state = Race(tolerance, seed, alpha, candidates, most, clock, budget, play, bounds, implied)
    run_search(state, in_order(candidates))
    return list(race_results(state).values())


def _draw_first_runs(candidates: Sequence[RaceEntry], seed: int, play: ChunkOutcomes[Any]) -> None:
    """Where runs are drawn ahead, on a card: those of all looks in one launch, but for the longest ladders."""
    expect = getattr(play, "expect", None)
    if expect is None:
        return
    jobs = []
    for entry in candidates:
        strata = strata_of(entry.case.market, short=True).means
        if isinstance(entry.case.played, Mechanism) and entry.arms <= AHEAD_ARMS:
            for copies in (entry.case.copies(entry.copies), full_copies(entry.case.market.agents, None)):
                jobs.append(Job(entry.case.market, entry.case.played, copies, seed, strata))
    expect(jobs)


def _compile(entry: RaceEntry, seed: int, play: ChunkOutcomes[Any]) -> None:
    """Play a pair over few rounds, so that what has to be compiled is compiled before the budget's clock starts."""
    case = entry.case
    market = case.market.with_horizon(min(case.horizon, 64))
    twice = case.copies(tuple(min(2, number) for number in entry.copies))
    sampled_gain(market, case.played, case.name, twice, PairedSampling(1, seed=seed, stratify=False, outcomes=play))
