"""What is sampled: everything where no exact engine applies, or the best find of a quadrature, to make sure of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from cloneproof.analysis.audit.cases import AgentCases, AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector, grid, ladders
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.judgement import best_of
from cloneproof.analysis.audit.proof.arms_in_play import limit_worlds, worlds_that_suffice
from cloneproof.analysis.audit.proof.theorems import elementary, theorem
from cloneproof.analysis.audit.search.race.api import race
from cloneproof.analysis.audit.search.race.candidates import RaceEntry
from cloneproof.analysis.audit.search.race.levels import ALPHA
from cloneproof.analysis.audit.search.results import ArguedResult, SearchResult
from cloneproof.analysis.black_box_runs import black_box_runs
from cloneproof.engines.black_box.contract import BlackBox
from cloneproof.engines.estimate import BoundsName, Estimate
from cloneproof.engines.monte_carlo.devices import DeviceName, run_source
from cloneproof.engines.monte_carlo.driver import available_threads
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, kernel_outcomes
from cloneproof.errors import EngineError
from cloneproof.market.copies import full_copies

MOST_SAMPLED_HORIZONS = 50
MOST_STEPPED = 10**8  # rounds of a run; the table of their logarithms takes 0.8 GB
CHECKED = 0.1  # of a budget
FASTEST = 10**8  # rounds a second, more than any kernel plays


@contextmanager
def plays(
    box: BlackBox | None, clock: Deadline, device: DeviceName, agents: Sequence[AgentCases], notes: list[str]
) -> Iterator[ChunkOutcomes[Any]]:
    """Who plays the runs: the kernels, on a device that is entered into the notes; a black box, on every core."""
    if box is None:
        source = run_source(device, (_honest_job(case) for cases in agents for case in cases), None)
        notes += source.notes
        yield source.ahead()
    else:
        with black_box_runs(available_threads(), clock.left) as play:
            yield play


def _honest_job(case: AuditCase) -> Job:
    return Job(case.market, case.mechanism, full_copies(case.market.agents, None))


def sampled_results(
    agents: Sequence[AgentCases],
    max_copies: int,
    tolerance: float,
    runs: int | None,
    seed: int,
    clock: Deadline,
    play: ChunkOutcomes[Any] = kernel_outcomes,
    bounds: BoundsName = "distribution-free",
) -> list[SearchResult]:
    """One race of all agents and horizons, but for those whom an elementary argument covers."""
    if len(agents[0]) > MOST_SAMPLED_HORIZONS:
        raise EngineError(
            f"expected at most {MOST_SAMPLED_HORIZONS} horizons where no exact engine applies, got "
            f"{len(agents[0])}; ask for fewer, or for shorter ones"
        )
    argued: list[SearchResult] = []
    candidates: list[RaceEntry] = []
    arguments: dict[AuditCase, str] = {}
    complete: dict[AuditCase, list[CopyVector]] = {}
    implied: set[RaceEntry] = set()
    for case in (case for cases in agents for case in cases):
        vectors, argument = _vectors(case, max_copies), elementary(case)
        if argument is not None:
            arguments[case] = argument
        if argument is not None and case.running.scoring.max_arms is None:
            argued.append(_argued_result(case, vectors[0], argument))
        else:
            worlds, enough = limit_worlds(case), worlds_that_suffice(case)
            wanted = dict.fromkeys([*vectors, *worlds.values(), *(enough or ())])
            candidates += [RaceEntry(case, vector) for vector in wanted]
            if enough is not None:
                complete[case] = enough
                implied |= {RaceEntry(case, vector) for vector in wanted if vector not in enough}
    _check_size((entry.case for entry in candidates), clock)
    budget = None if clock.left is None else max(clock.left, 1e-3)
    if budget is not None and all(theorem(case) is not None for case in {entry.case for entry in candidates}):
        budget *= CHECKED  # the verdict rests on a theorem, which the samples only check
    sampled = race(
        candidates, tolerance, runs, seed, clock, budget, play=play, bounds=bounds, implied=frozenset(implied)
    )
    for result in sampled:
        (case,) = result.cases
        if case in arguments:
            result.arguments[case.horizon] = arguments[case]
        result.covers = case in complete and all(vector in result.at_most for vector in complete[case])
    return [*argued, *sampled]


def _check_size(cases: Iterable[AuditCase], clock: Deadline) -> None:
    """Refuse what cannot come to anything: runs too long to be stepped, or of which a budget affords not one pair."""
    for horizon, mechanism in {case.horizon: case.mechanism for case in cases}.items():
        if any(rule.commits for rule in mechanism.rules):
            continue  # a commitment costs no rounds
        if horizon > MOST_STEPPED:
            raise EngineError(
                f"expected runs of at most {MOST_STEPPED} rounds where each round is stepped, got {horizon}; "
                "ask for a shorter horizon"
            )
        seconds = 2 * horizon / FASTEST
        if clock.budget is not None and seconds > clock.budget:
            raise EngineError(
                f"one pair of runs of {horizon} rounds takes at least {seconds:.1g} s, more than the budget of "
                f"{clock.budget:g} s; give more time, or ask for a shorter horizon"
            )


def _argued_result(case: AuditCase, vector: CopyVector, argument: str) -> ArguedResult:
    """A first copy, whose gain is nothing by an argument; what the payoff is, nobody had to find out."""
    half = case.market.share * case.horizon / 2  # means lie in [0, 1]
    payoff = Estimate(half, half, "proven", "between none and all of the rounds at a mean of 1")
    nothing = Estimate(0.0, 0.0, "proven", f"an argument: {argument}")
    witness = replace(case.witness(vector, payoff, payoff), gain=nothing)
    return ArguedResult((case,), {case.horizon: payoff}, {case.horizon: argument}, {vector: [witness]})


def confirm_heuristics(
    results: Sequence[SearchResult], tolerance: float, runs: int | None, seed: int, clock: Deadline
) -> None:
    """Where the errors are heuristic, sample the most promising deviation of each agent."""
    heuristic = [result for result in results if any(witness.gain.heuristic for witness in result.witnesses)]
    level = ALPHA / max(1, len(heuristic))
    for result in heuristic:
        best = best_of(result.witnesses)
        if best.gain.value > 0 and not clock.spent:
            case = next(case for case in result.cases if case.horizon == best.horizon)
            (sampled,) = race([RaceEntry(case, best.copies)], tolerance, runs, seed, clock, clock.left, level)
            result.samples |= sampled.samples
            for vector, (witness,) in sampled.evaluated.items():
                old = result.evaluated[vector]
                result.evaluated[vector] = [witness if each.horizon == best.horizon else each for each in old]


def _vectors(case: AuditCase, max_copies: int) -> list[CopyVector]:
    """The grid and the ladders, fewest arms first: the dear ones are the first to fall to a budget."""
    rungs = [vector for ladder in ladders(case.kinds, case.horizon) for vector in ladder]
    return sorted({*grid(case.kinds, max_copies)[0], *rungs}, key=lambda vector: (sum(vector), vector))
