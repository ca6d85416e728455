"""Three strategies of the audit: `by_theorem`, `exact` and `sampled`.

If a theorem on slots speaks about every agent and horizon, a few deviations show what copies cost. The exact strategy
computes honest payoffs at all horizons, then every vector of copies in floats, then the best and the doubtful ones in
ball arithmetic. Sampling answers everything if no exact engine applies, or confirms the best find of a quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from cloneproof.analysis.audit.arguments import limit_worlds, more_vectors, worlds_that_suffice
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, grid, ladders
from cloneproof.analysis.audit.question import AgentCases, AuditCase, Question
from cloneproof.analysis.audit.race import race
from cloneproof.analysis.audit.race_state import ALPHA, RaceEntry
from cloneproof.analysis.audit.search_result import (
    ExactResult,
    FoundDeviations,
    KnownArguments,
    SearchResult,
    Witness,
    argued_result,
    best_of,
    does_not_pay,
    pays,
    simplest_of,
    tried_by_agent,
    with_evaluated,
)
from cloneproof.analysis.audit.theorems import Basis
from cloneproof.analysis.deviations import CopiesOf
from cloneproof.analysis.evaluate import ExactEngine, evaluate, exact_evaluations
from cloneproof.analysis.gain import compared, exact_gain, exact_payoffs, payoff_of
from cloneproof.analysis.search import Answers, Search, run_search, until_interrupted
from cloneproof.engines.black_box import BlackBoxJob, black_box_runs
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Evaluation
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, available_threads, nothing_sampled, run_source
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.market.market import full_copies

HONEST_PART = 0.5  # Honest payoffs may take this part of the budget; what takes longer is sampled.
DRAFT = "the search is done; there was no time to enclose the best deviation in ball arithmetic"
LONGEST_RUNG = {"closed-form": 0.5, "tree": 2.0, "auto": 0.5}  # A ladder ends at a rung that takes more seconds.
LONGEST_RUNG_PART = 0.05  # A rung may take this part of the budget even if it is longer than that.
MOST_DIGITS = 10.0  # The tree is not asked about a number of states with more digits.
MOST_REFINED = 40  # At most this many deviations too near the tolerance are enclosed in balls.
SECONDS_TO_ENCLOSE = 1.0  # Enclosing the best deviation of all may take this many seconds beyond the budget.
NOT_ENCLOSED = (
    "the budget was spent before the best deviation was enclosed in ball arithmetic: its error is a count of roundings"
)
MANY_COPIES = 1000  # Under the scan theorem this many copies of one original are evaluated.
MOST_EVALUATED = 1000  # So are at most this many horizons of an agent; at earlier ones the theorem speaks alone.
MOST_SAMPLED_HORIZONS = 50  # A race takes at most this many horizons.
MOST_STEPPED = 10**8  # Longer runs are not stepped through: the table of their logarithms takes 0.8 GB.
CHECKING_PART = 0.1  # Samples that only check arguments, which settle every case, have this part of the budget.
FIRST_ROUNDS = 64  # A black box plays this many rounds in this process, so that its errors show before others start.
FASTEST = 10**8  # No kernel plays more rounds a second.


def honest_evaluations(cases: AgentCases, seconds: float | None) -> tuple[dict[int, Evaluation], ExactEngine] | None:
    """Honest payoffs at every horizon, and the engine; None if no exact engine is fast enough."""
    engine: ExactEngine = "closed-form" if _too_many_states(cases) else "auto"
    try:
        with Deadline(seconds).for_engines():
            honest = cases[0].copies(cases[0].kinds.honest)
            evaluations, _ = exact_evaluations([case.under for case in cases], honest, engine)
    except EngineError:
        return None
    engines = {evaluation.engine for evaluation in evaluations.values()}
    if engines == {"closed-form"}:
        return evaluations, "closed-form"
    return evaluations, "tree" if engines == {"tree"} else "auto"


def _too_many_states(cases: AgentCases) -> bool:
    """Return whether the tree would certainly refuse, judged by its size; the tree itself can take seconds to find out.

    Random rewards leave about T^(2a - 1) / (2a - 1)! states of pulls and successes of a arms, unless a rule commits.
    """
    if cases[-1].market.segments:
        return any(_too_many_states((in_segment,)) for in_segment in cases[-1].by_segment.values())
    market = cases[-1].market  # at the longest horizon
    sure = market.family.law == "point"
    sure = sure or all(agent.support is not None and set(agent.support) <= {0.0, 1.0} for agent in market.agents)
    if sure or any(rule.commits for case in cases for rule in case.mechanism.rules):
        return False
    slots = max(case.mechanism.draws for case in cases) * len(market.agents)
    copied = all(case.mechanism.keeps_all_arms for case in cases)
    power = 2 * (slots or market.originals + copied) - 1
    return power * math.log10(market.horizon) - math.lgamma(power + 1) / math.log(10) > MOST_DIGITS


def exact(
    question: Question, arguments: KnownArguments, search: Search, clock: Deadline, enclose: bool = True
) -> FoundDeviations | None:
    """Strategy: every agent by an exact engine; None if none can evaluate honesty in time, or any deviation.

    Without `enclose` it ends before the best deviations are enclosed in ball arithmetic.
    """
    agents = question.searched
    within = None if clock.left is None else HONEST_PART * clock.left
    honest = None if question.box is not None else honest_evaluations(agents[0], within)
    if honest is None:
        return None
    (evaluations, engine), elementary = honest, _elementary(arguments)
    results: list[ExactResult] = []
    for cases, in_time in clock.shared_by(agents):
        paid = {horizon: payoff_of(evaluation, cases[0].name) for horizon, evaluation in evaluations.items()}
        more = more_vectors(cases, paid, elementary, question.tolerance)  # those that make the search complete
        vectors = list(dict.fromkeys([*grid(cases[0].kinds, search.copies)[0], *more]))
        start = [ExactResult(case, engine, paid[case.horizon], elementary.get(case)) for case in cases]
        rungs = ladders(cases[0].kinds, cases[-1].horizon)
        results += search_vectors(start, vectors, rungs, in_time)
    if not any(result.evaluated for result in results):
        return None
    in_floats = FoundDeviations(tuple(results), (DRAFT,))
    if not enclose or clock.interrupted:
        return in_floats
    better, late = refine(results, question.tolerance, clock)
    confirmed = confirm_heuristics(better, question.tolerance, search, clock)
    return FoundDeviations(tuple(confirmed), tuple(late))


def search_vectors(
    start: Sequence[ExactResult], vectors: Sequence[CopyVector], rungs: Sequence[Sequence[CopyVector]], clock: Deadline
) -> list[ExactResult]:
    """Evaluate the vectors, and each ladder until an engine refuses or a rung takes too long.

    `start` has what is known at each horizon; the tree takes all horizons of a vector in one pass.
    """
    every, engine = [*vectors, *chain(*rungs)], start[0].engine
    long = max(LONGEST_RUNG[engine], LONGEST_RUNG_PART * (clock.budget or 0.0))

    def evaluate_vector(vector: CopyVector) -> list[Witness]:
        """Return the witnesses of one vector at every horizon."""
        for smaller, why in answers.left_out.items() if engine == "tree" else ():
            if all(few <= many for few, many in zip(smaller, vector, strict=True)):
                raise EngineError(why)  # the tree only grows with the arms
        return witnesses(start, vector)

    def proposals() -> Iterator[CopyVector]:
        """Yield the vectors, then the rungs of one ladder after the other."""
        for number, vector in enumerate(chain(vectors, *(answers.climb(ladder, long) for ladder in rungs)), start=1):
            yield vector
            clock.tell(number, len(every), f"{start[0].agent}: copies {vector}")

    answers = Answers[CopyVector, list[Witness]](evaluate_vector, clock)
    with until_interrupted(clock):
        run_search(answers, proposals())
    if clock.spent:
        why = "interrupted" if clock.interrupted else f"the {clock.words} were over"
        for vector in every:
            if vector not in answers.evaluated:
                answers.left_out.setdefault(vector, why)
    return with_evaluated(start, answers.evaluated, answers.left_out)


def witnesses(results: Sequence[ExactResult], vector: CopyVector) -> list[Witness]:
    """Return the deviation at the horizon of each result."""
    markets = [result.case.under for result in results]
    deviation = results[0].case.deviation(vector)
    paid = exact_payoffs(markets, deviation, results[0].engine)
    return [
        Witness.of(deviation, result.case.market, compared(result.honest, paid[result.case.horizon]))
        for result in results
    ]


def refine(results: Sequence[ExactResult], tolerance: float, clock: Deadline) -> tuple[list[ExactResult], list[str]]:
    """Repeat in balls the best deviation of each agent and those too near the tolerance, fewest arms first.

    The best of all gets a second even if the budget is spent. Returns a note if there was no time.
    """
    tried = tried_by_agent(results)
    best = sorted(map(simplest_of, filter(None, tried)), key=lambda witness: -witness.relative_gain)
    case_of = {(result.agent, result.case.horizon): result for result in results}
    unclear = [
        witness
        for witness in chain(*tried)
        if case_of[witness.agent, witness.horizon].argument is None
        and not (pays(witness, tolerance) or does_not_pay(witness, tolerance))
    ]
    listed = best + sorted(unclear, key=lambda witness: sum(witness.copies))[:MOST_REFINED]
    wanted = {(witness.agent, witness.copies, witness.horizon): witness for witness in listed}
    after = Deadline(None if clock.left is None else clock.left + SECONDS_TO_ENCLOSE)
    answers = Answers[Any, Witness | None](lambda key: enclose(case_of[key[0], key[2]].case, wanted[key]), after)
    run_search(answers, (key for number, key in enumerate(wanted) if number == 0 or not clock.spent))
    better: dict[tuple[str, int], dict[CopyVector, Witness]] = {}
    for witness in filter(None, answers.evaluated.values()):
        better.setdefault((witness.agent, witness.horizon), {})[witness.copies] = witness
    late = [] if next(iter(wanted)) in answers.evaluated else [NOT_ENCLOSED]
    return [result.with_witnesses(better.get(key, {})) for key, result in case_of.items()], late


def enclose(case: AuditCase, witness: Witness) -> Witness | None:
    """Return the same deviation enclosed in ball arithmetic; None if it has no closed form."""
    try:
        enclosed = exact_gain(*case.under, CopiesOf(case.name, witness.copies), "closed-form", "ball")
    except OutOfTimeError:
        raise
    except EngineError:
        return None
    return replace(witness, honest=enclosed.honest, copied=enclosed.copied, gain=enclosed.gain)


def by_theorem(
    question: Question, arguments: KnownArguments, search: Search, clock: Deadline
) -> FoundDeviations | None:
    """Strategy: a few deviations, if a theorem on slots bounds what copies gain for every agent and horizon.

    That is the scan theorem, by which they gain nothing, or the ceiling of an index or bars until a random end, proven
    or computed; both hold against any opponents. The verdict rests on it. Where nothing is gained, the deviations are
    evaluated if they have a closed form and show what copies cost; one that pays would be a bug.
    """
    if question.opponents == "any" and question.also - {"withholding"}:
        return None
    results: list[SearchResult] = []
    for cases in question.searched:
        of_cases = [arguments[case] for case in cases if case in arguments]
        if sum(argument.basis in (Basis.SCAN, Basis.COMPUTED) for argument in of_cases) < len(cases):
            return None
        vector = few_vectors(cases[0].kinds)[0]
        most = 0 if any(argument.most > 0 for argument in of_cases) else MOST_EVALUATED
        first = max(0, len(cases) - most)  # of those that are evaluated
        results += [argued_result(case, vector, arguments[case]) for case in cases[:first]]
        results += _few_deviations(cases[first:], arguments, clock) if most else []
    return FoundDeviations(tuple(results), by_scan=True)


def few_vectors(kinds: OriginalKinds) -> list[CopyVector]:
    """Return a second copy of the first original, of all but the last, and many copies of the first.

    >>> few_vectors(OriginalKinds((0, 0, 0)))
    [(2, 1, 1), (2, 2, 1), (1000, 1, 1)]
    """
    rest = kinds.honest[1:]
    vectors = [(2, *rest), (*(2 for _ in rest), 1) if rest else (2,), (MANY_COPIES, *rest)]
    return list(dict.fromkeys(vectors))


def _few_deviations(cases: AgentCases, arguments: KnownArguments, clock: Deadline) -> Sequence[SearchResult]:
    """Evaluate them by the closed form if it applies."""
    vectors, honest = few_vectors(cases[0].kinds), CopiesOf(cases[0].name, cases[0].kinds.honest)
    try:
        with clock.for_engines():
            paid = exact_payoffs([case.under for case in cases], honest, "closed-form")
            results = [ExactResult(case, "closed-form", paid[case.horizon], arguments[case]) for case in cases]
            tried = {vector: witnesses(results, vector) for vector in vectors}
    except EngineError:
        return [argued_result(case, vectors[0], arguments[case]) for case in cases]
    return with_evaluated(results, tried, {})


def sampled(question: Question, arguments: KnownArguments, search: Search, clock: Deadline) -> FoundDeviations:
    """Strategy: one race of all agents and horizons, except those that an elementary argument covers."""
    agents = question.searched
    if question.box is not None:
        short = question.market.with_horizon(min(FIRST_ROUNDS, question.market.horizon))
        evaluate(short, question.box, search=Search(runs=1))  # run once here, so obvious errors surface immediately
        with black_box_runs(available_threads(), clock.left) as play:
            return FoundDeviations(tuple(sampled_results(agents, arguments, question.tolerance, search, clock, play)))
    every = [case for cases in agents for case in cases]
    jobs = [Job(case.market, case.mechanism, full_copies(case.market.agents, None)) for case in every]
    source = run_source(search.device, jobs, None)
    results = sampled_results(agents, arguments, question.tolerance, search, clock, source.ahead())
    return FoundDeviations(tuple(results), tuple(source.notes))


def sampled_results(
    agents: Sequence[AgentCases],
    arguments: KnownArguments,
    tolerance: float,
    search: Search,
    clock: Deadline,
    play: ChunkOutcomes[Any],
) -> list[SearchResult]:
    """Race all candidates; return a result for each case."""
    if len(agents[0]) > MOST_SAMPLED_HORIZONS:
        raise EngineError(
            f"expected at most {MOST_SAMPLED_HORIZONS} horizons where no exact engine applies, got "
            f"{len(agents[0])}; ask for fewer, or for shorter ones"
        )
    elementary = _elementary(arguments)
    argued: list[SearchResult] = []
    candidates: list[RaceEntry] = []
    complete: dict[AuditCase, list[CopyVector]] = {}
    implied: set[RaceEntry] = set()
    for case in (case for cases in agents for case in cases):
        vectors = _vectors(case, search.copies)
        if case in elementary and case.running.scoring.max_arms is None:
            argued.append(argued_result(case, vectors[0], elementary[case]))
            continue
        worlds, enough = limit_worlds(case), worlds_that_suffice(case)
        wanted = dict.fromkeys([*vectors, *worlds.values(), *(enough or ())])
        candidates += [RaceEntry(case, vector) for vector in wanted]
        if enough is not None:
            complete[case] = enough
            implied |= {RaceEntry(case, vector) for vector in wanted if vector not in enough}
    _check_size((entry.case for entry in candidates), clock)
    budget = None if clock.left is None else max(clock.left, 1e-3)
    if budget is not None and all(entry.case in arguments and arguments[entry.case].settles for entry in candidates):
        budget *= CHECKING_PART
    raced = race(candidates, tolerance, search, clock, budget, play=play, implied=frozenset(implied))
    results = [*argued, *(_with_argument(result, arguments, complete) for result in raced)]
    if not clock.interrupted and not any(result.evaluated for result in results):
        raise nothing_sampled(_first_pair(agents[0][0]), clock)
    return results


def _first_pair(case: AuditCase) -> list[Any]:
    """Return the runs of a pair: the honest world, and one with a second arm of each original."""
    kind: type[Any] = Job if case.box is None else BlackBoxJob
    return [kind(case.market, case.played, case.copies((number,) * len(case.kinds.honest))) for number in (1, 2)]


def _with_argument(
    result: SearchResult, arguments: KnownArguments, complete: Mapping[AuditCase, list[CopyVector]]
) -> SearchResult:
    """Return the result with the argument of its case, and whether it covers every vector.

    A case that an argument settles and of which nothing was played in time is argued, as it would be with more time.
    """
    case, argument = result.case, arguments.get(result.case)
    if argument is not None and argument.settles and result.honest is None:
        first, *others = result.left_out
        argued = argued_result(case, first, argument)
        return replace(argued, left_out={vector: result.left_out[vector] for vector in others})
    covers = case in complete and all(vector in result.at_most for vector in complete[case])
    return replace(result, argument=_elementary(arguments).get(case), covers=covers)


def _elementary(arguments: KnownArguments) -> KnownArguments:
    """Return the elementary arguments, which make a search unnecessary."""
    return {case: argument for case, argument in arguments.items() if argument.basis is Basis.ELEMENTARY}


def _check_size(cases: Iterable[AuditCase], clock: Deadline) -> None:
    """Refuse runs that are too long to step through, or of which the budget does not afford a single pair."""
    for case in {case.horizon: case for case in cases}.values():
        if any(rule.commits for rule in case.mechanism.rules):
            continue  # a commitment costs no rounds
        if case.horizon > MOST_STEPPED:
            raise EngineError(
                f"expected runs of at most {MOST_STEPPED} rounds where each round is stepped, got {case.horizon}; "
                "ask for a shorter horizon"
            )
        if clock.budget is not None and 2 * case.horizon / FASTEST > clock.budget:
            raise nothing_sampled(_first_pair(case), clock)


def confirm_heuristics(
    results: Sequence[ExactResult], tolerance: float, search: Search, clock: Deadline
) -> list[ExactResult]:
    """Sample the most promising deviation of each agent if errors are heuristic."""
    tried = tried_by_agent(results)
    unsure = [witnesses for witnesses in tried if any(witness.gain.heuristic for witness in witnesses)]
    level, search = ALPHA / max(1, len(unsure)), replace(search, bounds="distribution-free")
    confirmed = {(result.agent, result.case.horizon): result for result in results}
    for best in map(best_of, unsure):
        if best.gain.value <= 0 or clock.spent:
            continue
        result, budget = confirmed[best.agent, best.horizon], None if clock.budget is None else clock.left
        (raced,) = race([RaceEntry(result.case, best.copies)], tolerance, search, clock, budget, level)
        confirmed[best.agent, best.horizon] = replace(
            result.with_witnesses(raced.evaluated), samples={**result.samples, **raced.samples}
        )
    return list(confirmed.values())


def _vectors(case: AuditCase, max_copies: int) -> list[CopyVector]:
    """Return the grid and the ladders, cheapest first, so a short budget drops the expensive ones."""
    rungs = [vector for ladder in ladders(case.kinds, case.horizon) for vector in ladder]
    return sorted({*grid(case.kinds, max_copies)[0], *rungs}, key=lambda vector: (sum(vector), vector))
