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
from cloneproof.analysis.audit.result import Witness, best_of, is_open, simplest_of
from cloneproof.analysis.audit.search_result import (
    ExactResult,
    FoundDeviations,
    HorizonPayoffs,
    KnownArguments,
    SearchResult,
    argued_result,
)
from cloneproof.analysis.audit.theorems import Argument, Basis
from cloneproof.analysis.evaluate import ExactEngine, black_box_runs, evaluate, exact_evaluations
from cloneproof.analysis.search import Answers, Search, run_search, until_interrupted
from cloneproof.engines.black_box import BlackBoxJob
from cloneproof.engines.closed_form.exact_payoffs import closed_form
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, Evaluation
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
            evaluations = _evaluations(cases, cases[0].kinds.honest, engine)
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
        return any(_too_many_states((part,)) for part in cases[-1].parts.values())
    market = cases[-1].market  # at the longest horizon
    sure = market.family.law == "point"
    sure = sure or all(agent.support is not None and set(agent.support) <= {0.0, 1.0} for agent in market.agents)
    if sure or any(rule.commits for case in cases for rule in case.mechanism.rules):
        return False
    slots = max(case.mechanism.arm.draws for case in cases) * len(market.agents)
    copied = all(case.mechanism.sample is None for case in cases)
    power = 2 * (slots or market.originals + copied) - 1
    return power * math.log10(market.horizon) - math.lgamma(power + 1) / math.log(10) > MOST_DIGITS


def exact(
    question: Question, known: KnownArguments, search: Search, clock: Deadline, enclose: bool = True
) -> FoundDeviations | None:
    """Strategy: every agent by an exact engine; None if none can evaluate honesty in time, or any deviation.

    Without `enclose` it ends before the best deviations are enclosed in ball arithmetic.
    """
    agents = question.searched
    within = None if clock.left is None else HONEST_PART * clock.left
    honest = None if question.box is not None else honest_evaluations(agents[0], within)
    if honest is None:
        return None
    (evaluations, engine), elementary, results = honest, _elementary(known), []
    for number, cases in enumerate(agents):
        paid = {horizon: evaluation.payoff[cases[0].name] for horizon, evaluation in evaluations.items()}
        arguments = {case.horizon: elementary[case] for case in cases if case in elementary}
        more = more_vectors(cases, paid, arguments, question.tolerance)  # those that make the search complete
        vectors = list(dict.fromkeys([*grid(cases[0].kinds, search.copies)[0], *more]))
        rungs, start = ladders(cases[0].kinds, cases[-1].horizon), ExactResult(cases, engine, paid, arguments)
        results.append(search_vectors(start, vectors, rungs, clock.share(len(agents) - number)))
    if not any(result.evaluated for result in results):
        return None
    in_floats = FoundDeviations(tuple(results), (DRAFT,))
    if not enclose or clock.interrupted:
        return in_floats
    better, late = refine(results, question.tolerance, clock)
    confirmed = confirm_heuristics(better, question.tolerance, search, clock)
    return FoundDeviations(tuple(confirmed), tuple(late))


def search_vectors(
    start: ExactResult, vectors: Sequence[CopyVector], rungs: Sequence[Sequence[CopyVector]], clock: Deadline
) -> ExactResult:
    """Evaluate the vectors, and each ladder until an engine refuses or a rung takes too long."""
    every = [*vectors, *chain(*rungs)]
    long = max(LONGEST_RUNG[start.engine], LONGEST_RUNG_PART * (clock.budget or 0.0))

    def evaluate_vector(vector: CopyVector) -> list[Witness]:
        """Return the witnesses of one vector at every horizon."""
        for smaller, why in answers.left_out.items() if start.engine == "tree" else ():
            if all(few <= many for few, many in zip(smaller, vector, strict=True)):
                raise EngineError(why)  # the tree only grows with the arms
        return witnesses(start.cases, start.engine, start.honest, vector)

    def proposals() -> Iterator[CopyVector]:
        """Yield the vectors, then the rungs of one ladder after the other."""
        for number, vector in enumerate(chain(vectors, *(answers.climb(ladder, long) for ladder in rungs)), start=1):
            yield vector
            clock.tell(number, len(every), f"{start.agent}: copies {vector}")

    answers = Answers[CopyVector, list[Witness]](evaluate_vector, clock)
    with until_interrupted(clock):
        run_search(answers, proposals())
    if clock.spent:
        why = "interrupted" if clock.interrupted else f"the {clock.words} were over"
        for vector in every:
            if vector not in answers.evaluated:
                answers.left_out.setdefault(vector, why)
    return replace(start, evaluated=answers.evaluated, left_out=answers.left_out)


def payoffs(cases: AgentCases, engine: ExactEngine, vector: CopyVector) -> HorizonPayoffs:
    """Return the agent's payoff with these copies at every horizon."""
    evaluations = _evaluations(cases, vector, engine)
    return {horizon: evaluation.payoff[cases[0].name] for horizon, evaluation in evaluations.items()}


def _evaluations(cases: AgentCases, vector: CopyVector, engine: ExactEngine) -> dict[int, Evaluation]:
    worlds = [(case.market, case.mechanism) for case in cases]
    return exact_evaluations(worlds, cases[0].copies(vector), engine)[0]


def witnesses(cases: AgentCases, engine: ExactEngine, honest: HorizonPayoffs, vector: CopyVector) -> list[Witness]:
    """Return the deviation at every horizon."""
    copied = payoffs(cases, engine, vector)
    return [case.witness(vector, honest[case.horizon], copied[case.horizon]) for case in cases]


def refine(results: Sequence[ExactResult], tolerance: float, clock: Deadline) -> tuple[list[ExactResult], list[str]]:
    """Repeat in balls the best deviation of each agent and those too near the tolerance, fewest arms first.

    The best of all gets a second even if the budget is spent. Returns a note if there was no time.
    """
    best = [(result, simplest_of(result.witnesses)) for result in results if result.evaluated]
    best.sort(key=lambda pair: -pair[1].relative_gain)
    unclear = [
        (result, witness)
        for result in results
        for witness in result.witnesses
        if witness.horizon not in result.arguments and is_open(witness, tolerance)
    ]
    listed = best + sorted(unclear, key=lambda pair: sum(pair[1].copies))[:MOST_REFINED]
    wanted = {(each.agent, each.copies, each.horizon): (result.cases, each) for result, each in listed}
    honest: dict[int, dict[str, Estimate]] = {}
    after = Deadline(None if clock.left is None else clock.left + SECONDS_TO_ENCLOSE)
    answers = Answers[Any, Witness | None](lambda key: enclose(*wanted[key], honest), after)
    run_search(answers, (key for number, key in enumerate(wanted) if number == 0 or not clock.spent))
    enclosed = [witness for witness in answers.evaluated.values() if witness is not None]
    late = [] if next(iter(wanted)) in answers.evaluated else [NOT_ENCLOSED]
    return [result.with_witnesses(each for each in enclosed if each.agent == result.agent) for result in results], late


def enclose(
    cases: AgentCases, witness: Witness, honest: dict[int, dict[str, Estimate]] | None = None
) -> Witness | None:
    """Return the same deviation enclosed in ball arithmetic; None if it has no closed form.

    `honest` caches everybody's honest payoffs by horizon.
    """
    honest = {} if honest is None else honest
    case = next(case for case in cases if case.horizon == witness.horizon)
    try:
        if case.horizon not in honest:
            everybody = case.copies(case.kinds.honest)
            honest[case.horizon] = closed_form(case.market, case.mechanism, everybody, "ball").payoff
        copied = closed_form(case.market, case.mechanism, witness.all_copies, "ball").payoff[case.name]
    except OutOfTimeError:
        raise
    except EngineError:
        return None
    before = honest[case.horizon][case.name]
    return replace(witness, honest=before, copied=copied, gain=copied - before)


def by_theorem(question: Question, known: KnownArguments, search: Search, clock: Deadline) -> FoundDeviations | None:
    """Strategy: a few deviations, if a theorem on slots bounds what copies gain for every agent and horizon.

    That is the scan theorem, by which they gain nothing, or the ceiling of an index or bars until a random end, proven
    or computed; both hold against any opponents. The verdict rests on it. Where nothing is gained, the deviations are
    evaluated if they have a closed form and show what copies cost; one that pays would be a bug.
    """
    if question.opponents == "any" and question.also - {"withholding"}:
        return None
    results: list[SearchResult] = []
    for cases in question.searched:
        arguments = {case.horizon: known[case] for case in cases if case in known}
        on_draws = [argument.basis in (Basis.SCAN, Basis.COMPUTED) for argument in arguments.values()]
        if sum(on_draws) < len(cases):
            return None
        vector = few_vectors(cases[0].kinds)[0]
        if any(argument.most > 0 for argument in arguments.values()):
            results.append(argued_result(cases, vector, arguments))
            continue
        results += [argued_result((case,), vector, arguments) for case in cases[:-MOST_EVALUATED]]
        results.append(_few_deviations(cases[-MOST_EVALUATED:], arguments, clock))
    return FoundDeviations(tuple(results), by_scan=True)


def few_vectors(kinds: OriginalKinds) -> list[CopyVector]:
    """Return a second copy of the first original, of all but the last, and many copies of the first.

    >>> few_vectors(OriginalKinds((0, 0, 0)))
    [(2, 1, 1), (2, 2, 1), (1000, 1, 1)]
    """
    rest = kinds.honest[1:]
    vectors = [(2, *rest), (*(2 for _ in rest), 1) if rest else (2,), (MANY_COPIES, *rest)]
    return list(dict.fromkeys(vectors))


def _few_deviations(cases: AgentCases, arguments: dict[int, Argument], clock: Deadline) -> SearchResult:
    """Evaluate them by the closed form if it applies."""
    vectors = few_vectors(cases[0].kinds)
    try:
        with clock.for_engines():
            honest = payoffs(cases, "closed-form", cases[0].kinds.honest)
            evaluated = {vector: witnesses(cases, "closed-form", honest, vector) for vector in vectors}
    except EngineError:
        return argued_result(cases, vectors[0], arguments)
    return ExactResult(cases, "closed-form", honest, arguments, evaluated)


def sampled(question: Question, known: KnownArguments, search: Search, clock: Deadline) -> FoundDeviations:
    """Strategy: one race of all agents and horizons, except those that an elementary argument covers."""
    agents = question.searched
    if question.box is not None:
        short = question.market.with_horizon(min(FIRST_ROUNDS, question.market.horizon))
        evaluate(short, question.box, search=Search(runs=1))  # run once here, so obvious errors surface immediately
        with black_box_runs(available_threads(), clock.left) as play:
            return FoundDeviations(tuple(sampled_results(agents, known, question.tolerance, search, clock, play)))
    every = [case for cases in agents for case in cases]
    jobs = [Job(case.market, case.mechanism, full_copies(case.market.agents, None)) for case in every]
    source = run_source(search.device, jobs, None)
    results = sampled_results(agents, known, question.tolerance, search, clock, source.ahead())
    return FoundDeviations(tuple(results), tuple(source.notes))


def sampled_results(
    agents: Sequence[AgentCases],
    known: KnownArguments,
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
    elementary = _elementary(known)
    argued: list[SearchResult] = []
    candidates: list[RaceEntry] = []
    complete: dict[AuditCase, list[CopyVector]] = {}
    implied: set[RaceEntry] = set()
    for case in (case for cases in agents for case in cases):
        vectors = _vectors(case, search.copies)
        if case in elementary and case.running.scoring.max_arms is None:
            argued.append(argued_result((case,), vectors[0], {case.horizon: elementary[case]}))
            continue
        worlds, enough = limit_worlds(case), worlds_that_suffice(case)
        wanted = dict.fromkeys([*vectors, *worlds.values(), *(enough or ())])
        candidates += [RaceEntry(case, vector) for vector in wanted]
        if enough is not None:
            complete[case] = enough
            implied |= {RaceEntry(case, vector) for vector in wanted if vector not in enough}
    _check_size((entry.case for entry in candidates), clock)
    budget = None if clock.budget is None or clock.left is None else max(clock.left, 1e-3)
    if budget is not None and all(entry.case in known and known[entry.case].settles for entry in candidates):
        budget *= CHECKING_PART
    raced = race(candidates, tolerance, search, clock, budget, play=play, implied=frozenset(implied))
    results = [*argued, *(_with_argument(result, known, complete) for result in raced)]
    if not clock.interrupted and not any(result.evaluated for result in results):
        raise nothing_sampled(_first_pair(agents[0][0]), clock)
    return results


def _first_pair(case: AuditCase) -> list[Any]:
    """Return the runs of a pair: the honest world, and one with a second arm of each original."""
    kind: type[Any] = Job if case.box is None else BlackBoxJob
    return [kind(case.market, case.played, case.copies((number,) * len(case.kinds.honest))) for number in (1, 2)]


def _with_argument(
    result: SearchResult, known: KnownArguments, complete: Mapping[AuditCase, list[CopyVector]]
) -> SearchResult:
    """Return the result with the argument of its case, and whether it covers every vector.

    A case that an argument settles and of which nothing was played in time is argued, as it would be with more time.
    """
    (case,) = result.cases
    argument = known.get(case)
    if argument is not None and argument.settles and not result.honest:
        first, *others = result.left_out
        argued = argued_result((case,), first, {case.horizon: argument})
        return replace(argued, left_out={vector: result.left_out[vector] for vector in others})
    covers = case in complete and all(vector in result.at_most for vector in complete[case])
    arguments = {each.horizon: found for each, found in _elementary(known).items() if each is case}
    return replace(result, arguments=arguments, covers=covers)


def _elementary(known: KnownArguments) -> KnownArguments:
    """Return the elementary arguments, which make a search unnecessary."""
    return {case: argument for case, argument in known.items() if argument.basis is Basis.ELEMENTARY}


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
    heuristic = [any(witness.gain.heuristic for witness in result.witnesses) for result in results]
    level, search = ALPHA / max(1, sum(heuristic)), replace(search, bounds="distribution-free")
    pairs = zip(results, heuristic, strict=True)
    return [_confirmed(result, tolerance, search, clock, level) if unsure else result for result, unsure in pairs]


def _confirmed(result: ExactResult, tolerance: float, search: Search, clock: Deadline, level: float) -> ExactResult:
    best = best_of(result.witnesses)
    if best.gain.value <= 0 or clock.spent:
        return result
    case = next(case for case in result.cases if case.horizon == best.horizon)
    (raced,) = race(
        [RaceEntry(case, best.copies)], tolerance, search, clock, None if clock.budget is None else clock.left, level
    )
    return replace(result.with_witnesses(raced.witnesses), samples={**result.samples, **raced.samples})


def _vectors(case: AuditCase, max_copies: int) -> list[CopyVector]:
    """Return the grid and the ladders, cheapest first, so a short budget drops the expensive ones."""
    rungs = [vector for ladder in ladders(case.kinds, case.horizon) for vector in ladder]
    return sorted({*grid(case.kinds, max_copies)[0], *rungs}, key=lambda vector: (sum(vector), vector))
