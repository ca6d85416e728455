"""The audit: whether an agent can profit from registering copies, and how sure that is.

1. `question` turns the arguments into cases, one for each agent.
2. A case asks the mechanism for a proof that no copies can pay (`AuditCase.argument`).
3. The first strategy that applies finds deviations: `by_theorem` if a theorem on slots bounds what copies gain for
   every agent, `by_lists` against any opponents, `exact` (vectors of copies by exact engines), or
   `sampled` (paired runs).
4. `OtherDeviations` adds those other than copies, which do not change the verdict.
5. `after_search` says what the proof and the search come to.
6. `with_knowledge` says what naming the best item would gain.
7. `conclude` returns `exploitable` with a witness whose gain is surely above the tolerance, `clone-proof` if an
   argument settles every case, or else `undecided`. It also says under which delays of rewards the verdict holds.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from cloneproof.audits.deviations import CopyVector
from cloneproof.audits.gain import Finding
from cloneproof.audits.other_deviations import OtherDeviations, with_knowledge
from cloneproof.audits.question import (
    AlsoName,
    Argument,
    Auditable,
    AuditCase,
    OpponentsName,
    Question,
    checked_question,
)
from cloneproof.audits.result import Audit, AuditScope, DelayScope, Reason, TriedVectors, Verdict
from cloneproof.audits.search_result import (
    BoundedDeviation,
    ExactResult,
    FoundDeviations,
    SampledDeviation,
    SearchResult,
    Witness,
    after_search,
    best_of,
    for_exchangeable,
    largest_of,
    simplest_of,
)
from cloneproof.audits.strategies import by_lists, by_theorem, exact, sampled
from cloneproof.errors import EngineError
from cloneproof.evaluation.search import SEARCH, Search
from cloneproof.market.market import Market
from cloneproof.runs.deadline import Deadline, ProgressCallback, interrupts_raised
from cloneproof.runs.estimate import Estimate
from cloneproof.runs.sampler import check_sampling
from cloneproof.runs.statistics import in_groups

INTERRUPTED = "interrupted: this is what was found by then"
MOST_REASONS = 2  # It gives at most this many reasons why vectors were left out.
Strategy = Callable[[Question, Search, Deadline], FoundDeviations | None]


def audit(
    market: Market,
    mechanism: Auditable,
    *,
    agent: str | None = None,
    opponents: OpponentsName = "market",
    tolerance: float = 0.0,
    also: Iterable[AlsoName] = (),
    search: Search = SEARCH,
    seconds: float | None = None,
    progress: ProgressCallback | None = None,
) -> Audit:
    """Try to game a mechanism: the verdict, the best deviation found, and the scope of both.

    Parameters
    ----------
    market : Market
        The platform's problem, with what agents know of their items.
    mechanism : Mechanism, callable or BlackBox
        The mechanism, or a function of the market that makes one. Or your own policy,
        `cp.BlackBox(MyPolicy)`, which is sampled on all cores.
    agent : str, optional
        Whose deviations are tried; everybody's, one agent at a time, if left out.
    opponents : {"market", "any"}, default "market"
        "market": the others are honest and have their priors. "any": whatever they are and register, as long as that
        does not depend on the means of the agent's originals. It is clone-proof by a proof that covers any opponents;
        else lists of the others are searched, and it is exploitable or undecided.
    tolerance : float, default 0.0
        The gain, relative to the honest payoff, that counts as none.
    also : iterable of {"withholding", "splitting", "informed"}, optional
        Further deviations, which do not change the verdict. "withholding" leaves originals out and "splitting" divides
        them between two accounts, both in `Audit.also`. "informed" finds what an agent gains on average that knows its
        best original and registers it alone, and what becomes of the regret if one agent or everybody does, rightly or
        not, in `Audit.informed`.
    search, seconds : Search or float, optional
        How many copies of each original are tried, and how runs are sampled if no exact engine applies: until the sign
        of a gain is settled, or the largest gain that is left is precise. What `seconds` cut is `undecided`.
    progress : callable, optional
        Called with (done, total, what).

    Returns
    -------
    Audit
        Its `verdict` is "exploitable", "clone-proof" or "undecided"; `worst` is the deviation that it rests on. Ctrl-C
        returns what was found by then, marked `interrupted`.

    Raises
    ------
    CloneproofError
        If an argument is invalid, or no engine can evaluate any deviation.

    References
    ----------
    The paper, section 3: a mechanism is replication-proof if honest registration is a dominant strategy.

    Examples
    --------
    >>> from cloneproof import Agent, Discrete, Market, audit, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    >>> a = audit(market, mechanism("ucb1"))
    >>> a.verdict, a.worst.copies, round(a.worst.gain.value, 9)
    ('exploitable', (2, 1), 0.25)
    >>> audit(market, mechanism("etc", arm_rounds=1)).verdict
    'clone-proof'
    """
    check_sampling(progress=progress)
    clock = Deadline(search.within(seconds).seconds, progress)
    question = checked_question(market, mechanism, agent, opponents, tolerance, also)
    return answer(question, search, clock)


def answer(question: Question, search: Search, clock: Deadline) -> Audit:
    """Return the audit of a checked question."""
    others: tuple[Strategy, ...] = (exact, sampled)
    strategies = (by_theorem, *((by_lists,) if question.opponents == "any" else ()), *others)
    question = question.proving()
    with interrupts_raised():
        with clock.for_engines():
            for case in question.searched:
                case.proof  # noqa: B018 (kept: a proof that takes long ends with the seconds)
        answers = (find(question, search, clock) for find in strategies)
        deviations = next(filter(None, answers))
        if clock.interrupted and not any(result.evaluated for result in deviations.results):
            raise KeyboardInterrupt  # before there was anything to tell
        also = OtherDeviations(question, deviations, search, clock)
        also.answer()
    covered = after_search(question, deviations.results)
    audit = conclude(question, deviations, covered, also, search.copies)
    audit = replace(with_knowledge(audit, question, search, clock), asked=(question, search), seconds=clock.seconds)
    return replace(audit, interrupted=True, notes=(*audit.notes, INTERRUPTED)) if clock.interrupted else audit


def scope_of(
    question: Question,
    copies: int,
    attack: Estimate | None,
    results: Sequence[SearchResult],
    covered: Mapping[str, Argument],
) -> AuditScope:
    """Return what was tried and what covers the rest; `covered` has the argument of each agent."""
    left_out = Counter(why for result in results for why in result.left_out.values())
    added: dict[str, dict[CopyVector, None]] = {}
    for result in results:
        added.setdefault(result.agent, {}).update(dict.fromkeys(v for v in result.added if v in result.evaluated))
    return AuditScope(
        question.opponents,
        tuple(question.agents),
        question.market.horizon,
        question.tolerance,
        question.market.ends == "at-random",
        tried=_tried(results),
        copies=copies,
        engines=tuple(sorted({result.engine for result in results})),
        added={agent: tuple(vectors) for agent, vectors in added.items() if vectors},
        left_out=tuple(left_out.most_common(MOST_REASONS)),
        attack=attack,
        reasons=_reasons(question.agents, covered),
        by_shares=all(case.proof.by_shares for case in question.searched),
        segments=len(question.market.segments),
    )


def _tried(results: Sequence[SearchResult]) -> tuple[TriedVectors, ...]:
    """Vectors tried, agents with equal numbers together."""
    vectors: dict[str, set[CopyVector]] = {}
    for result in results:
        vectors.setdefault(result.agent, set()).update(result.evaluated)
    alike: dict[tuple[int, int], list[str]] = {}
    for agent, tried in vectors.items():
        alike.setdefault((len(tried), max(map(max, tried), default=1)), []).append(agent)
    return tuple(TriedVectors(tuple(agents), *numbers) for numbers, agents in alike.items())


def _reasons(agents: Sequence[str], covered: Mapping[str, Argument]) -> tuple[Reason, ...]:
    """Return the argument for each agent, or what was not ruled out; agents with the same reason together."""
    alike: dict[tuple[str, bool], list[tuple[str, float]]] = {}
    for agent, argument in ((agent, covered[agent]) for agent in agents if agent in covered):
        most = 0.0 if argument.settles else argument.most
        alike.setdefault((argument.words, argument.settles), []).append((agent, most))
    return tuple(
        Reason(tuple(agent for agent, _ in members), *key, max(most for _, most in members))
        for key, members in alike.items()
    )


def conclude(
    question: Question,
    deviations: FoundDeviations,
    covered: Mapping[AuditCase, Argument],
    also: OtherDeviations,
    copies: int,
) -> Audit:
    """Make the audit of what a strategy found, the arguments and the other deviations; `copies` is the grid's cap.

    The verdict is `exploitable` if a deviation surely pays, `clone-proof` if an argument settles every case, and else
    `undecided`.
    """
    results = _of_everybody(question, deviations.results)
    tried = [witness for result in results for witness in result.witnesses]
    bounds = [bounded for result in results for bounded in result.bounds()]
    if not bounds:
        reasons = dict.fromkeys(why for result in results for why in result.left_out.values())
        raise EngineError("no deviation could be evaluated: " + "; ".join(list(reasons)[:3]))
    of_agents = {
        name: covered[question.cases[representative]]
        for name, representative in question.representatives.items()
        if question.cases[representative] in covered
    }
    paying = [witness for result in results for witness in result.paying(question.tolerance)]
    arguments = of_agents.values()
    verdict: Verdict
    if paying:
        verdict, worst = "exploitable", simplest_of(paying)
    elif len(arguments) == len(question.cases) and all(argument.settles for argument in arguments):
        computed = [result for result in results if result.samples] or [result for result in results if result.bounds()]
        verdict, worst = "clone-proof", best_of(result.worst for result in computed)  # rather than argued about
    else:
        verdict, worst = "undecided", max(bounds, key=_relative_gain_not_ruled_out)[0]
    samples = tuple(sample for result in results for sample in result.samples.values())
    audit = Audit(
        mechanism=question.cases[worst.agent].mechanism,
        market=question.cases[worst.agent].market,
        verdict=verdict,
        worst=worst,
        scope=scope_of(question, copies, worst.gain if paying else None, results, of_agents),
        tried_at_most=largest_of(bound for _, bound in bounds),
        tolerance=question.tolerance,
        tried=tuple(tried),
        notes=(*deviations.notes, *also.notes, *_contradictions(paying, of_agents)),
        also=also.deviations,
        informed=also.informed,
        not_computed=also.missing,
        by_segment=_by_segment(question, worst, samples) if question.market.segments else {},
        samples=samples,
        gain_at_most=_ceiling(question, covered),
        more=next((result.more for result in results if result.more), "") if verdict == "undecided" else "",
    )
    if deviations.by_scan and verdict != "exploitable":
        evaluated = _tried([result for result in deviations.results if isinstance(result, ExactResult)])
        scope = replace(audit.scope, against="scan", tried=evaluated)
    else:
        scope = replace(audit.scope, about_tried=audit.about_tried)
    audit = replace(audit, scope=scope)
    return check_delays(audit, question)


def _by_segment(question: Question, worst: Witness, samples: Sequence[SampledDeviation]) -> dict[str, Witness]:
    """Return the deviation that the verdict rests on in each segment; none if it was argued or cannot be told apart."""
    case = question.cases[worst.agent]
    if worst.argued:
        return {}
    drawn = (sample for sample in samples if (sample.agent, sample.copies) == (worst.agent, worst.copies))
    sample = next(drawn, None)
    if sample is not None:
        _, *groups = in_groups(sample.progress.estimates(sample.confidence, "pairs of runs", sample.bounds), 3)
        paid = [Finding(honest, copied, gain) for gain, honest, copied in groups]
    else:
        paid = list(worst.by_segment.values())
    segments, deviation = zip(case.market.by_segment.items(), paid, strict=False), case.deviation(worst.copies)
    return {name: Witness.of(deviation, market, own) for (name, market), own in segments}


def _ceiling(question: Question, covered: Mapping[AuditCase, Argument]) -> Estimate | None:
    """Return the largest ceiling on the gains of copies and withholding, if every case has one (the index on slots)."""
    arguments = [covered.get(case) for case in question.searched]
    proofs = [argument.proof for argument in arguments if argument is not None and argument.proof is not None]
    ceilings = [proof.most for proof in proofs if proof.most is not None]
    return max(ceilings, key=lambda ceiling: ceiling.high) if len(ceilings) == len(arguments) else None


def _of_everybody(question: Question, searched: Sequence[SearchResult]) -> list[SearchResult]:
    """Return the findings for all agents, from those for one of each kind."""
    return [
        result if result.agent == name else for_exchangeable(result, question.cases[name])
        for name, representative in question.representatives.items()
        for result in searched
        if result.agent == representative and (not result.case.others or representative == name)
    ]


def _relative_gain_not_ruled_out(bounded: BoundedDeviation) -> tuple[float, float]:
    witness, bound = bounded
    upper_end = witness.gain_at_most / max(witness.honest.value, 1e-300)
    return (upper_end if bound is None else bound), upper_end


def _contradictions(paying: list[Witness], covered: Mapping[str, Argument]) -> list[str]:
    """Notes on arguments that contradict a deviation that pays, which would be a bug."""
    against = [(witness, covered[witness.agent]) for witness in paying]
    return [
        f"contradiction, please report: copies {witness.copies} of {witness.agent} pay, against this argument: "
        f"{argument.words}"
        for witness, argument in against
        if argument.settles
    ][:3]


def check_delays(audit: Audit, question: Question) -> Audit:
    """Return the audit with what is known of late rewards, which may turn `clone-proof` into `undecided`.

    That is so if the market declares delays and no bound shows that what copies gain by them is within the tolerance.

    References
    ----------
    docs/textbook/delays.md, part (a) of the theorem.
    """
    bounds = [case.proof.late for case in question.searched]
    gain, reason = max(bounds, key=lambda bound: math.inf if bound[0] is None else bound[0])
    if not reason:
        return audit
    verdict, declared = audit.verdict, question.market.delays != "none"
    allowed = min(audit.tolerance * max(0.0, witness.honest.low) for witness in (audit.worst, *audit.tried))
    if declared and verdict == "clone-proof" and (gain is None or gain > allowed):
        verdict = "undecided"
    return replace(audit, verdict=verdict, scope=replace(audit.scope, delays=DelayScope(declared, gain, reason)))
