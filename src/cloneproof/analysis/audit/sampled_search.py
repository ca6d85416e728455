"""Sampling in an audit: everything if no exact engine applies, or the best find of a quadrature, to confirm it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from cloneproof.analysis.audit.copy_vectors import CopyVector, grid, ladders
from cloneproof.analysis.audit.coverage import limit_worlds, worlds_that_suffice
from cloneproof.analysis.audit.question import AgentCases, AuditCase, Question
from cloneproof.analysis.audit.race import race
from cloneproof.analysis.audit.race_state import ALPHA, RaceEntry
from cloneproof.analysis.audit.results import ExactResult, FoundDeviations, SearchResult, argued_result
from cloneproof.analysis.audit.theorems import Argument, elementary, theorem
from cloneproof.analysis.audit.verdict import best_of
from cloneproof.analysis.evaluate import black_box_runs, evaluate
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.monte_carlo.driver import available_threads
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, kernel_outcomes, run_source
from cloneproof.errors import EngineError
from cloneproof.market.market import full_copies

MOST_SAMPLED_HORIZONS = 50
MOST_STEPPED = 10**8  # rounds of a run; the table of their logarithms takes 0.8 GB
CHECKED = 0.1  # of a budget
TRIED = 64  # rounds of a black box before processes are started
FASTEST = 10**8  # rounds a second, more than any kernel plays


def sampled(question: Question, limits: Search, clock: Deadline) -> FoundDeviations:
    """A strategy: one race of all agents and horizons, except those that an elementary argument covers."""
    agents = question.searched
    if question.box is not None:
        short = question.market.with_horizon(min(TRIED, question.market.horizon))
        evaluate(short, question.box, search=Search(runs=1))  # here: what it does wrong at once is told at once
        with black_box_runs(available_threads(), clock.left) as play:
            return FoundDeviations(
                tuple(sampled_results(agents, question.tolerance, limits, clock, play)), limits.copies
            )
    jobs = (
        Job(case.market, case.mechanism, full_copies(case.market.agents, None)) for cases in agents for case in cases
    )
    source = run_source(limits.device, jobs, None)
    results = sampled_results(agents, question.tolerance, limits, clock, source.ahead())
    return FoundDeviations(tuple(results), limits.copies, tuple(source.notes))


def sampled_results(
    agents: Sequence[AgentCases],
    tolerance: float,
    limits: Search,
    clock: Deadline,
    play: ChunkOutcomes[Any] = kernel_outcomes,
) -> list[SearchResult]:
    """The results of the race, a case each."""
    if len(agents[0]) > MOST_SAMPLED_HORIZONS:
        raise EngineError(
            f"expected at most {MOST_SAMPLED_HORIZONS} horizons where no exact engine applies, got "
            f"{len(agents[0])}; ask for fewer, or for shorter ones"
        )
    argued: list[SearchResult] = []
    candidates: list[RaceEntry] = []
    arguments: dict[AuditCase, Argument] = {}
    complete: dict[AuditCase, list[CopyVector]] = {}
    implied: set[RaceEntry] = set()
    for case in (case for cases in agents for case in cases):
        vectors, argument = _vectors(case, limits.copies), elementary(case)
        if argument is not None:
            arguments[case] = argument
        if argument is not None and case.running.scoring.max_arms is None:
            argued.append(argued_result((case,), vectors[0], {case.horizon: argument}))
            continue
        worlds, enough = limit_worlds(case), worlds_that_suffice(case)
        wanted = dict.fromkeys([*vectors, *worlds.values(), *(enough or ())])
        candidates += [RaceEntry(case, vector) for vector in wanted]
        if enough is not None:
            complete[case] = enough
            implied |= {RaceEntry(case, vector) for vector in wanted if vector not in enough}
    _check_size((entry.case for entry in candidates), clock)
    budget = None if clock.budget is None or clock.left is None else max(clock.left, 1e-3)
    if budget is not None and all(theorem(case) is not None for case in {entry.case for entry in candidates}):
        budget *= CHECKED  # the verdict rests on a theorem, which the samples only check
    raced = race(candidates, tolerance, limits, clock, budget, play=play, implied=frozenset(implied))
    return [*argued, *(_with_arguments(result, arguments, complete) for result in raced)]


def _with_arguments(
    result: SearchResult, arguments: Mapping[AuditCase, Argument], complete: Mapping[AuditCase, list[CopyVector]]
) -> SearchResult:
    """The result with the argument of its case, and whether it covers every vector.

    A case that a theorem covers and of which nothing was played in time is argued, as it would be with more time.
    """
    (case,) = result.cases
    known = {case.horizon: arguments[case]} if case in arguments else {}
    argument = arguments.get(case) or (None if result.honest else theorem(case))
    if argument is not None and not result.honest:
        first, *others = result.left_out
        argued = argued_result((case,), first, {case.horizon: argument})
        return replace(argued, left_out={vector: result.left_out[vector] for vector in others})
    covers = case in complete and all(vector in result.at_most for vector in complete[case])
    return replace(result, arguments=known, covers=covers)


def _check_size(cases: Iterable[AuditCase], clock: Deadline) -> None:
    """Refuse runs that are too long to step through, or of which the budget does not afford a single pair."""
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


def confirm_heuristics(
    results: Sequence[ExactResult], tolerance: float, limits: Search, clock: Deadline
) -> list[ExactResult]:
    """Sample the most promising deviation of each agent if errors are heuristic."""
    heuristic = [result for result in results if any(witness.gain.heuristic for witness in result.witnesses)]
    level = ALPHA / max(1, len(heuristic))
    return [
        _confirmed(result, tolerance, replace(limits, bounds="distribution-free"), clock, level)
        if result in heuristic
        else result
        for result in results
    ]


def _confirmed(result: ExactResult, tolerance: float, limits: Search, clock: Deadline, level: float) -> ExactResult:
    best = best_of(result.witnesses)
    if best.gain.value <= 0 or clock.spent:
        return result
    case = next(case for case in result.cases if case.horizon == best.horizon)
    (raced,) = race(
        [RaceEntry(case, best.copies)], tolerance, limits, clock, None if clock.budget is None else clock.left, level
    )
    return replace(result.with_witnesses(raced.witnesses), samples={**result.samples, **raced.samples})


def _vectors(case: AuditCase, max_copies: int) -> list[CopyVector]:
    """The grid and the ladders, cheapest first, so a short budget drops the expensive ones."""
    rungs = [vector for ladder in ladders(case.kinds, case.horizon) for vector in ladder]
    return sorted({*grid(case.kinds, max_copies)[0], *rungs}, key=lambda vector: (sum(vector), vector))
