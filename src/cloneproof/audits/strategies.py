"""Three strategies of the audit: `by_theorem`, `exact` and `sampled`.

If a theorem on slots speaks about every agent, a few deviations show what copies cost. The exact strategy
computes honest payoffs, then every vector of copies. Sampling answers everything if no exact engine applies, or
confirms the best find of a quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

from cloneproof.audits.deviations import CopyVector, OriginalKinds, grid, ladders
from cloneproof.audits.gain import compared, exact_payoffs, payoff_of
from cloneproof.audits.question import Argument, AuditCase, Question
from cloneproof.audits.race import MOST_EACH, race
from cloneproof.audits.race_state import ALPHA, RaceEntry
from cloneproof.audits.search_result import (
    ExactResult,
    FoundDeviations,
    SearchResult,
    Witness,
    against_anybody,
    argued_result,
    best_of,
    more_vectors,
)
from cloneproof.errors import EngineError
from cloneproof.evaluation.evaluate import ExactEngine, evaluate, exact_evaluations
from cloneproof.evaluation.reference import runs_of
from cloneproof.evaluation.search import Answers, Search, run_search, until_interrupted
from cloneproof.laws.arithmetic import at_most_products
from cloneproof.market.market import Market, full_copies
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Evaluation
from cloneproof.runs.kernel import ChunkOutcomes, Runs
from cloneproof.runs.sampler import available_threads, nothing_sampled, run_source

MOST_DIGITS = 6.0  # The tree is not asked about a number of states with more digits.
MANY_COPIES = 1000  # Under the scan theorem this many copies of one original are evaluated.
OTHERS_LISTS = ((1, 1), (2, 2), (4, 4), (16, 16), (16, 1))  # how often the others register their first, and the rest
MOST_STEPPED = 10**8  # Longer runs are not stepped through: the table of their logarithms takes 0.8 GB.
CHECKING = 64  # pairs of runs of each list at most, where these only check arguments that settle every case
FIRST_ROUNDS = 64  # A black box plays this many rounds in this process, so that its errors show before others start.
FASTEST = 10**8  # No kernel plays more rounds a second.


def honest_evaluation(case: AuditCase) -> tuple[Evaluation, ExactEngine] | None:
    """Honest payoffs, and the engine; None if exact engines refuse, as it takes too long."""
    engine: ExactEngine = "law" if _too_many_states(case.market) else "auto"
    try:
        with at_most_products():
            evaluations, _ = exact_evaluations([case.under], case.copies(case.kinds.honest), engine)
    except EngineError:
        return None
    (evaluation,) = evaluations.values()
    if evaluation.engine == "law":
        return evaluation, "law"
    return evaluation, "tree" if evaluation.engine == "tree" else "auto"


def _too_many_states(market: Market) -> bool:
    """Return whether the tree would certainly refuse, judged by its size; the tree itself can take seconds to find out.

    Random rewards leave about T^(2a - 1) / (2a - 1)! states of pulls and successes of a arms.
    """
    if market.segments:
        return any(map(_too_many_states, market.by_segment.values()))
    sure = market.family.law == "point"
    sure = sure or all(agent.support is not None and set(agent.support) <= {0.0, 1.0} for agent in market.agents)
    power = 2 * market.originals + 1
    return not sure and power * math.log10(market.horizon) - math.lgamma(power + 1) / math.log(10) > MOST_DIGITS


def exact(question: Question, search: Search, clock: Deadline) -> FoundDeviations | None:
    """Strategy: every agent by an exact engine; None if none can evaluate honesty, or any deviation."""
    with clock.for_engines():
        honest = honest_evaluation(question.searched[0])
    if honest is None:
        return None
    evaluation, engine = honest
    results: list[ExactResult] = []
    for case in question.searched:
        paid = payoff_of(evaluation, case.name)
        more = more_vectors(case, paid, question.tolerance)  # those that make the search complete
        vectors = list(dict.fromkeys([*grid(case.kinds, search.copies)[0], *more]))
        start = ExactResult(case, engine, paid, case.elementary)
        results.append(search_vectors(start, vectors, ladders(case.kinds, case.horizon), clock))
    if not any(result.evaluated for result in results):
        return None
    if clock.interrupted:
        return FoundDeviations(tuple(results))
    return FoundDeviations(tuple(confirm_heuristics(results, question.tolerance, search, clock)))


def search_vectors(
    start: ExactResult, vectors: Sequence[CopyVector], rungs: Sequence[Sequence[CopyVector]], clock: Deadline
) -> ExactResult:
    """Evaluate the vectors, and each ladder until an engine refuses."""
    every, engine = [*vectors, *chain(*rungs)], start.engine

    def evaluate_vector(vector: CopyVector) -> Witness:
        for smaller, why in answers.left_out.items() if engine == "tree" else ():
            if all(few <= many for few, many in zip(smaller, vector, strict=True)):
                raise EngineError(why)  # the tree only grows with the arms
        return witness_of(start, vector)

    def proposals() -> Iterator[CopyVector]:
        """Yield the vectors, then the rungs of one ladder after the other."""
        for number, vector in enumerate(chain(vectors, *(answers.climb(ladder) for ladder in rungs)), start=1):
            yield vector
            clock.tell(number, len(every), f"{start.agent}: copies {vector}")

    answers = Answers[CopyVector, Witness](evaluate_vector, clock)
    with until_interrupted(clock), at_most_products():
        run_search(answers, proposals())
    if clock.spent:
        why = (
            "interrupted"
            if clock.interrupted
            else "the time was over"
            if clock.limit is None
            else f"the {clock.limit:g} s were over"
        )
        for vector in every:
            if vector not in answers.evaluated:
                answers.left_out.setdefault(vector, why)
    return replace(start, evaluated=dict(answers.evaluated), left_out=answers.left_out)


def witness_of(result: ExactResult, vector: CopyVector) -> Witness:
    """Return what a vector gains, by the engine of the result."""
    case, deviation = result.case, result.case.deviation(vector)
    paid = exact_payoffs([case.under], deviation, result.engine)[case.horizon]
    return Witness.of(deviation, case.market, compared(result.honest, paid))


def by_theorem(question: Question, search: Search, clock: Deadline) -> FoundDeviations | None:
    """Strategy: a few deviations, if a theorem on slots bounds what copies gain for every agent.

    That is the scan theorem, by which they gain nothing, or the ceiling of an index or bars until a random end, proven
    or computed; both hold against any opponents. The verdict rests on it. Where nothing is gained, the deviations are
    evaluated if they have a closed form and show what copies cost; one that pays would be a bug.
    """
    known = [(case, case.argument) for case in question.searched]
    covered = [(case, argument) for case, argument in known if argument is not None and argument.on_slots]
    if len(covered) < len(known):
        return None
    return FoundDeviations(tuple(_few_deviations(*of_case, clock) for of_case in covered), by_scan=True)


def by_lists(question: Question, search: Search, clock: Deadline) -> FoundDeviations | None:
    """Strategy against any opponents: copies of each agent while the others register some lists, until one pays.

    None if the others do not matter, or a proof covers any of them: then it is enough to search against the market.
    """
    cases = question.searched
    if all(case.proof.apart or against_anybody(case, case.argument) for case in cases):
        return None
    results, notes = list[SearchResult](), dict[str, None]()
    for first, rest in OTHERS_LISTS:
        if results and clock.spent:
            break
        lists = {agent.name: (first, *(rest,) * (agent.count - 1)) for agent in question.market.agents}
        for case in cases:
            others = {name: own for name, own in lists.items() if name != case.name and set(own) != {1}}
            asked = replace(case, others=others) if others else case
            if asked.others == {} and first > 1:
                continue
            alone = replace(question, cases={case.name: asked}, representatives={case.name: case.name})
            found = exact(alone, search, clock) or sampled(alone, search, clock)
            results += found.results
            notes |= dict.fromkeys(found.notes)
        if any(result.paying(question.tolerance) for result in results):
            break
    return FoundDeviations(tuple(results), tuple(notes))


def few_vectors(kinds: OriginalKinds) -> list[CopyVector]:
    """Return a second copy of the first original, of all but the last, and many copies of the first.

    >>> few_vectors(OriginalKinds((0, 0, 0)))
    [(2, 1, 1), (2, 2, 1), (1000, 1, 1)]
    """
    rest = kinds.honest[1:]
    vectors = [(2, *rest), (*(2 for _ in rest), 1) if rest else (2,), (MANY_COPIES, *rest)]
    return list(dict.fromkeys(vectors))


def _few_deviations(case: AuditCase, argument: Argument, clock: Deadline) -> SearchResult:
    """Evaluate them by the closed form if it applies and they gain nothing."""
    vectors, honest = few_vectors(case.kinds), case.deviation(case.kinds.honest)
    if argument.most > 0:
        return argued_result(case, vectors[0], argument)
    try:
        with clock.for_engines():
            paid = exact_payoffs([case.under], honest, "law")[case.horizon]
            result = ExactResult(case, "law", paid, argument)
            return replace(result, evaluated={vector: witness_of(result, vector) for vector in vectors})
    except EngineError:
        return argued_result(case, vectors[0], argument)


def sampled(question: Question, search: Search, clock: Deadline) -> FoundDeviations:
    """Strategy: one race of all agents, except those that an elementary argument covers."""
    cases = question.searched
    if question.slow:
        short = question.market.with_horizon(min(FIRST_ROUNDS, question.market.horizon))
        evaluate(short, cases[0].mechanism, engine="runs", search=Search(runs=1))  # so that obvious errors show at once
    honest = [runs_of(case.market, case.mechanism, full_copies(case.market.agents, None)) for case in cases]
    with run_source(honest, None, search.device, available_threads(), clock.left) as source:
        results = sampled_results(cases, question.tolerance, search, clock, source.ahead())
    return FoundDeviations(tuple(results), tuple(source.notes))


def sampled_results(
    cases: Sequence[AuditCase],
    tolerance: float,
    search: Search,
    clock: Deadline,
    play: ChunkOutcomes,
) -> list[SearchResult]:
    """Race all candidates; return a result for each case."""
    argued: list[SearchResult] = []
    candidates: list[RaceEntry] = []
    for case in cases:
        vectors = _vectors(case, search.copies)
        if case.elementary is not None:
            argued.append(argued_result(case, vectors[0], case.elementary))
            continue
        candidates += [RaceEntry(case, vector) for vector in vectors]
    _check_size(entry.case for entry in candidates)
    if search.runs is None and all(_settled(entry.case) for entry in candidates):
        search = replace(search, runs=CHECKING)
    raced = race(candidates, tolerance, search, clock, play=play)
    results = [*argued, *map(_with_argument, raced)]
    if not clock.interrupted and not any(result.evaluated for result in results):
        raise nothing_sampled(_first_pair(cases[0]), clock.limit)
    return results


def _first_pair(case: AuditCase) -> list[Runs]:
    """Return the runs of a pair: the honest world, and one with a second arm of each original."""
    return [runs_of(case.market, case.mechanism, case.copies((number,) * len(case.kinds.honest))) for number in (1, 2)]


def _settled(case: AuditCase) -> bool:
    return case.argument is not None and case.argument.settles


def _with_argument(result: SearchResult) -> SearchResult:
    """Return the argument in place of a search of a settled case of which nothing was played in time.

    So it would be with more time.
    """
    argument = result.case.argument
    if argument is None or not argument.settles or result.honest is not None:
        return result
    first, *others = result.left_out
    argued = argued_result(result.case, first, argument)
    return replace(argued, left_out={vector: result.left_out[vector] for vector in others})


def _check_size(cases: Iterable[AuditCase]) -> None:
    """Refuse runs that are too long to step through."""
    for case in islice(cases, 1):  # all are of one market
        if case.horizon > MOST_STEPPED and _first_pair(case)[0].kernel.seconds * FASTEST >= case.horizon:
            raise EngineError(
                f"expected runs of at most {MOST_STEPPED} rounds where each round is stepped, got {case.horizon}; "
                "ask for a shorter horizon"
            )


def confirm_heuristics(
    results: Sequence[ExactResult], tolerance: float, search: Search, clock: Deadline
) -> list[ExactResult]:
    """Sample the most promising deviation of each agent if errors are heuristic."""
    tried = [result.witnesses for result in results]
    unsure = [witnesses for witnesses in tried if any(witness.gain.heuristic for witness in witnesses)]
    level = ALPHA / max(1, len(unsure))
    confirmed = {result.agent: result for result in results}
    for best in map(best_of, unsure):
        if best.gain.value <= 0 or clock.spent:
            continue
        result = confirmed[best.agent]
        (raced,) = race([RaceEntry(result.case, best.copies)], tolerance, search, clock, level)
        confirmed[best.agent] = replace(
            result.with_witnesses(raced.evaluated), samples={**result.samples, **raced.samples}
        )
    return list(confirmed.values())


def _vectors(case: AuditCase, max_copies: int) -> list[CopyVector]:
    """Return the grid and the ladders, those of the fewest arms first."""
    rungs = [vector for ladder in ladders(case.kinds, min(case.horizon, MOST_EACH)) for vector in ladder]
    return sorted({*grid(case.kinds, max_copies)[0], *rungs}, key=lambda vector: (sum(vector), vector))
