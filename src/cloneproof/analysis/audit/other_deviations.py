"""Deviations other than copies. They are outside the paper's claim and do not change the verdict.

*Withholding* leaves originals out. *Splitting* divides them among two accounts, or registers them in three or five. A
*copy cost* is the fee per copy that would stop the best deviation.

What *informed* agents gain is in `informed`, what *variants* gain in `variants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final

from cloneproof.analysis.audit.copy_vectors import withholding_vectors
from cloneproof.analysis.audit.informed import informed_gain
from cloneproof.analysis.audit.question import AuditCase, Question
from cloneproof.analysis.audit.result import InformedGain, NearCopyGain
from cloneproof.analysis.audit.search_result import (
    ExactResult,
    FoundDeviations,
    SearchResult,
    Witness,
    best_of,
    does_not_pay,
    found_together,
    pays,
    tried_by_agent,
)
from cloneproof.analysis.audit.strategies import enclose, search_vectors, witnesses
from cloneproof.analysis.audit.variants import variant_gain
from cloneproof.analysis.deviations import CopiesOf, Split, splits, wider_splits
from cloneproof.analysis.gain import Finding, PairedSampling, Payoff, compared, exact_payoffs, sampled_gain
from cloneproof.analysis.search import Answers, Search, run_search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.market.market import full_copies

SAMPLED: Final = frozenset(("informed", "variants", "withholding"))  # what is sampled if no exact engine applies
MORE_ACCOUNTS = (3, 5)  # Splits into this many accounts are tried beside those into two.


def best_split(results: Sequence[ExactResult], accounts: int, clock: Deadline) -> tuple[Witness | None, list[str]]:
    """Return the most profitable split of an agent at the horizons of its results, and what could not be evaluated."""
    agent, kinds, markets = results[0].agent, results[0].case.kinds, [result.case.under for result in results]
    every = [
        Split(agent, owners, accounts, kinds.labels)
        for owners in (splits(kinds) if accounts == 2 else wider_splits(kinds.count, accounts))
    ]
    answers = Answers[Split, dict[int, Payoff]](lambda split: exact_payoffs(markets, split, results[0].engine), clock)
    run_search(answers, every)
    tried = []
    for split, paid in answers.evaluated.items():
        for result in results:
            several = split.market(result.case.market)
            paid_more = compared(result.honest, paid[several.horizon]).numbers
            tried.append(Witness(*paid_more, agent, split.copies, several, full_copies(several.agents, None)))
    refused = answers.left_out.items()
    notes = [f"splitting {agent} as {split.owners} was not evaluated: {why}" for split, why in refused]
    if len(answers.evaluated) + len(refused) < len(every):
        notes.append("splitting: the budget was spent before every split was tried")
    return (best_of(tried) if tried else None), notes


def smallest_copy_cost(tried: Iterable[Witness]) -> tuple[Estimate, Witness] | None:
    """Return the smallest cost per extra arm at which no deviation tried pays, and the deviation that sets it.

    It is the largest gain per extra arm. None if no deviation pays anyway (within its error).
    """
    extra = [(sum(witness.copies) - len(witness.copies), witness.gain, witness) for witness in tried]
    costs = (
        (replace(gain, value=gain.value / arms, error=gain.error / arms), witness)
        for arms, gain, witness in extra
        if arms > 0 and gain.value > 0
    )
    return max(costs, key=lambda cost: cost[0].value, default=None)


@dataclass(frozen=True)
class OtherDeviations:
    """What was found beside the verdict: the best deviation of each kind, what an informed agent gains, and notes."""

    deviations: dict[str, Witness] = field(default_factory=dict)
    informed: InformedGain | None = None
    variants: NearCopyGain | None = None
    notes: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)  # what was asked for and has no number, and why

    def __or__(self, other: OtherDeviations) -> OtherDeviations:
        return OtherDeviations(
            self.deviations | other.deviations,
            self.informed or other.informed,
            self.variants or other.variants,
            (*self.notes, *other.notes),
        )


def other_deviations(
    question: Question, deviations: FoundDeviations, search: Search, clock: Deadline
) -> OtherDeviations:
    """Return the deviations other than copies that the question asks for."""
    exact = [result for result in deviations.results if isinstance(result, ExactResult)]
    by_engine = question.also & {"withholding", "splitting"} - ({"withholding"} if deviations.by_scan else set())
    answer = OtherDeviations()
    if clock.interrupted:
        return replace(answer, missing=dict.fromkeys(sorted(question.also), "interrupted"))
    if "splitting" in by_engine and len(exact) < len(deviations.results):
        answer = OtherDeviations(notes=("splitting is tried by exact engines only, and none applies here",))
    if "withholding" in by_engine:
        answer |= _withholding(deviations.results, search, question.tolerance, clock)
    if "splitting" in question.also:
        for accounts in (2, *MORE_ACCOUNTS):
            answer |= _splitting(exact, accounts, question.tolerance, clock)
    if "copy-cost" in question.also:
        answer |= _copy_cost(deviations.results)
    if "withholding" in question.also and deviations.by_scan:
        answer |= _scan_withholding(exact, question.tolerance)
    if "informed" in question.also:
        answer |= _informed(deviations.results, search, question.tolerance, clock)
    if "variants" in question.also:
        answer |= _variants(deviations.results, search, question.tolerance, clock)
    apart = {"informed": answer.informed, "variants": answer.variants, "copy-cost": answer}  # the last is a note
    computed = {*answer.deviations, *(name for name, answered in apart.items() if answered is not None)}
    left = sorted(question.also - computed)
    why = {name: next((note for note in answer.notes if name in note), "interrupted") for name in left}
    return replace(answer, missing={name: note.removeprefix(f"{name}: ") for name, note in why.items()})


def _withholding(found: Sequence[SearchResult], search: Search, tolerance: float, clock: Deadline) -> OtherDeviations:
    exact = [result for result in found if isinstance(result, ExactResult)]
    case_of = {(result.agent, result.case.horizon): result.case for result in exact}
    tried: list[Witness] = []
    for results in found_together(exact):
        withheld = search_vectors(results, withholding_vectors(results[0].case.kinds, search.copies), [], clock)
        tried += chain(*tried_by_agent(withheld))
    sampled = [result.case for result in found if result.engine == "sampled"]
    cases = {case.name: case for case in sampled if case.agent.count > 1}  # each at its last horizon
    for number, case in enumerate(cases.values()):
        tried += sampled_withholding(case, search, clock.share(len(cases) - number))
    if not tried and (cases or len(exact) + len(sampled) < len(found)):
        why = "the budget was spent before any was sampled" if cases else "neither an engine nor samples apply here"
        return OtherDeviations(notes=(f"withholding: {why}",))
    if not tried:
        return OtherDeviations(notes=("withholding: nothing to try, the agents have one original each",))
    best = best_of(tried)
    if (best.agent, best.horizon) in case_of:
        with clock.for_engines(), suppress(OutOfTimeError):
            best = enclose(case_of[best.agent, best.horizon], best) or best
    note = f"withholding: registering {best.copies} as {best.agent} {_worth(best, tolerance)}"
    return OtherDeviations({"withholding": best}, notes=(note,))


def sampled_withholding(case: AuditCase, search: Search, clock: Deadline) -> list[Witness]:
    """Return what leaving out one original, and all but one, gains by pairs of runs: all hold together at 99 %."""
    count, tried = case.kinds.count, []
    vectors = {(*(1,) * k, 0, *(1,) * (count - 1 - k)) for k in range(count)}
    vectors |= {(*(0,) * k, 1, *(0,) * (count - 1 - k)) for k in range(count)}
    vectors = {case.kinds.sorted(vector) for vector in vectors}
    for number, vector in enumerate(sorted(vectors, reverse=True)):
        seconds = None if clock.left is None else clock.left / (len(vectors) - number)
        sampling = PairedSampling(
            search.runs, 1 - 0.01 / len(vectors), search.seed, seconds=seconds, bounds=search.bounds or "asymptotic",
            device=search.device,
        )  # fmt: skip
        drawn = sampled_gain(case.market, case.played, CopiesOf(case.name, vector), sampling)
        if drawn.runs:
            tried.append(Witness(*drawn.finding.numbers, case.name, vector, case.market, drawn.copies))
    return tried


def _scan_withholding(exact: Sequence[ExactResult], tolerance: float) -> OtherDeviations:
    """Withholding under the scan theorem: one original left out, and all but one, if they are evaluated."""
    tried: list[Witness] = []
    for results in found_together(exact):
        count = results[0].case.kinds.count
        vectors = {(*(1,) * (count - 1), 0), (1, *(0,) * (count - 1))} if count > 1 else set()
        for vector in sorted(vectors, reverse=True):
            tried += witnesses(results, vector)
    if not tried:
        return OtherDeviations(notes=("withholding: covered by the scan theorem; none was evaluated",))
    best = best_of(tried)
    against = "it pays, against the scan theorem: please report this" if pays(best, tolerance) else "it does not pay"
    what = f"registering {best.copies} as {best.agent} {_change(best)}"
    note = f"withholding: covered by the scan theorem; {what}: {against}"
    return OtherDeviations({"withholding": best}, notes=(note,))


def _splitting(exact: Sequence[ExactResult], accounts: int, tolerance: float, clock: Deadline) -> OtherDeviations:
    tried: list[Witness] = []
    notes: list[str] = []
    for results in found_together(exact):
        witness, missing = best_split(results, accounts, clock)
        notes += missing[:3]
        tried += [] if witness is None else [witness]
    if not tried:
        return OtherDeviations(notes=tuple(notes))
    best = best_of(tried)
    arms = {account.name: account.count for account in best.market.agents}
    if accounts > 2:
        arms_words = f"{best.agent}, with {best.copies} arms of its originals in all"
        note = f"{accounts} accounts: {arms_words}, {_worth(best, tolerance)}"
        return OtherDeviations({f"{accounts} accounts": best}, notes=(*notes, note))
    first, second = (arms[account] for account in Split(best.agent, best.copies).accounts)
    notes.append(
        f"splitting: {best.agent} under two names, with {first} and {second} arms and the originals registered "
        f"{best.copies} times in all, {_worth(best, tolerance)}"
    )
    return OtherDeviations({"splitting": best}, notes=tuple(notes))


def _copy_cost(results: Sequence[SearchResult]) -> OtherDeviations:
    smallest = smallest_copy_cost(chain(*tried_by_agent(results)))
    if smallest is None:
        return OtherDeviations(notes=("copy cost: none is needed, no deviation tried pays",))
    cost, witness = smallest
    note = (
        f"copy cost: {cost.value:.6g} for each extra arm (error {cost.error:.1e}) makes honesty the best of "
        f"what was tried; copies {witness.copies} of {witness.agent} set it"
    )
    return OtherDeviations({"copy cost": witness}, notes=(note,))


def _change(deviation: Witness | NearCopyGain) -> str:
    gain, relative = deviation.gain.value, deviation.relative_gain
    return f"changes the payoff by {gain:+.6g} ({relative:+.2%}) at horizon {deviation.horizon}"


def _worth(witness: Witness, tolerance: float) -> str:
    return f"{_change(witness)}: {_judged(witness, tolerance)}"


def _judged(deviation: Finding, tolerance: float) -> str:
    if pays(deviation, tolerance):
        return "it pays"
    return "it does not pay" if does_not_pay(deviation, tolerance) else "undecided"


def _informed(results: Sequence[SearchResult], search: Search, tolerance: float, clock: Deadline) -> OtherDeviations:
    best, notes = informed_gain(results, search, clock)
    said = [] if best is None else [_sentence(best, search.copies, tolerance)]
    return OtherDeviations(informed=best, notes=(*notes[:3], *said))


def _variants(results: Sequence[SearchResult], search: Search, tolerance: float, clock: Deadline) -> OtherDeviations:
    """Return the largest relative gain of an agent with variants at the last horizon, or who was not evaluated."""
    last, gains, notes = [group[-1].case for group in found_together(results)], [], []
    for number, case in enumerate(last):
        try:
            gains.append(variant_gain(case, search, clock.share(len(last) - number)))
        except EngineError as refusal:
            notes.append(f"variants: {case.name} was not evaluated: {refusal.reason}")
    if not gains:
        return OtherDeviations(notes=tuple(notes[:3]))
    best = max(gains, key=lambda gain: gain.relative_gain)
    how = f"of spread {best.spread:g}" if best.new is None else f"of which each is new with chance {best.new:g}"
    said = f"variants: {best.variants} of each original {how}, as {best.agent}: {_change(best)}"
    return OtherDeviations(variants=best, notes=(*notes[:3], f"{said}: {_judged(best, tolerance)}"))


def _sentence(best: InformedGain, max_copies: int, tolerance: float) -> str:
    if best.complete:
        how = "its best original alone is a best response whatever its means are"
    elif best.responses:
        how = (
            f"with 0, 1, 2 or {max_copies} of each original, the best for each of {len(best.responses)} realisations; "
            "other copies may pay more"
        )
    else:
        how = "with its best original alone; other lists may pay more"
    gain = f"{best.gain.value:+.6g} ({best.relative_gain:+.2%}) at horizon {best.horizon}"
    return (
        f"informed: if {best.agent} knew its means before it registers, its payoff would change by {gain}: "
        f"{_judged(best, tolerance)}; {how}"
    )
