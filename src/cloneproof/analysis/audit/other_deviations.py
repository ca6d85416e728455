"""Deviations other than copies. They are outside the paper's claim and do not change the verdict.

*Withholding* leaves originals out. *Splitting* divides them among two accounts, or registers them in three or five. A
*copy cost* is the fee per copy that would stop the best deviation.

What *informed* agents gain is in `informed`, what *variants* gain in `variants`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, NamedTuple

from cloneproof.analysis.audit.copy_vectors import OriginalKinds, withholding_vectors
from cloneproof.analysis.audit.gained import Gained, InformedGain, NearCopyGain
from cloneproof.analysis.audit.informed import informed_gain, realised_means
from cloneproof.analysis.audit.question import AgentCases, Question
from cloneproof.analysis.audit.result import Witness, best_of, does_not_pay, pays
from cloneproof.analysis.audit.search_result import ExactResult, FoundDeviations, HorizonPayoffs, SearchResult
from cloneproof.analysis.audit.strategies import enclose, search_vectors, witnesses
from cloneproof.analysis.audit.variants import variant_gain
from cloneproof.analysis.evaluate import ExactEngine, exact_evaluations
from cloneproof.analysis.search import Answers, Search, run_search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.market.market import Agent, Market, full_copies

MOST_REALISATIONS = 256  # More realisations of an agent's means are not enumerated.
FIRST, SECOND, BOTH = 1, 2, 3  # The accounts that register an original, as a bit set.
SECOND_NAME = " (second account)"  # A second account has its agent's name and this.
SAMPLED: Final = frozenset(("informed", "variants"))  # what is sampled if no exact engine applies
MORE_ACCOUNTS = (3, 5)  # Splits into this many accounts are tried beside those into two.


class Split(NamedTuple):
    """The accounts that register each original, as a bit set: the first (1), the second (2), or both (3)."""

    owners: tuple[int, ...]
    accounts: int = 2

    def of(self, account: int) -> list[int]:
        return [k for k, owner in enumerate(self.owners) if owner & account]


def splits(kinds: OriginalKinds) -> Iterator[Split]:
    """Yield every split in which both accounts register something, up to exchanges of originals and of the accounts.

    >>> [split.owners for split in splits(OriginalKinds((0, 0)))]
    [(2, 1), (3, 2), (3, 3)]
    """
    swapped = {FIRST: SECOND, SECOND: FIRST, BOTH: BOTH}
    seen: set[tuple[int, ...]] = set()
    for owners in product((BOTH, SECOND, FIRST), repeat=kinds.count):
        mirrored = tuple(swapped[owner] for owner in owners)
        split = Split(owners)
        if not kinds.canonical(owners) or not split.of(FIRST) or not split.of(SECOND):
            continue
        if kinds.sorted(mirrored) not in seen:
            seen.add(owners)
    yield from (Split(owners) for owners in sorted(seen))


def wider_splits(count: int, accounts: int) -> Iterator[Split]:
    """Splits into more than two accounts: every original in each of them and, if there are enough, each in one.

    >>> [split.owners for split in wider_splits(3, 3)]
    [(7, 7, 7), (1, 2, 4)]
    """
    yield Split((2**accounts - 1,) * count, accounts)
    if count >= accounts:
        yield Split(tuple(1 << k % accounts for k in range(count)), accounts)


def best_split(result: ExactResult, accounts: int, clock: Deadline) -> tuple[Witness | None, list[str]]:
    """Return the most profitable split of a result's agent, and what could not be evaluated."""
    kinds = result.cases[0].kinds
    every = list(splits(kinds) if accounts == 2 else wider_splits(kinds.count, accounts))
    answers = Answers[Split, HorizonPayoffs](lambda split: split_payoffs(result.cases, split, result.engine), clock)
    run_search(answers, every)
    witnesses = []
    for split, paid in answers.evaluated.items():
        copies = tuple(owner.bit_count() for owner in split.owners)
        for case in result.cases:
            market = split_market(case.market, case.name, split)
            honest, both = result.honest[case.horizon], paid[case.horizon]
            witnesses.append(
                Witness(case.name, copies, honest, both, both - honest, market, full_copies(market.agents, None))
            )
    refused = answers.left_out.items()
    notes = [f"splitting {result.agent} as {split.owners} was not evaluated: {why}" for split, why in refused]
    if len(answers.evaluated) + len(refused) < len(every):
        notes.append("splitting: the budget was spent before every split was tried")
    return (best_of(witnesses) if witnesses else None), notes


def account_names(agent: str, accounts: int = 2) -> list[str]:
    """Return the names of the accounts of an agent that splits."""
    return [agent, agent + SECOND_NAME, *(f"{agent} (account {number})" for number in range(3, accounts + 1))]


def split_market(market: Market, agent: str, split: Split) -> Market:
    """Return the market in which the agent has several accounts."""
    agents: list[Agent] = []
    for each in market.agents:
        if each.name != agent:
            agents.append(each)
            continue
        for number, name in enumerate(account_names(agent, split.accounts)):
            agents.append(Agent(name, prior=[each.laws[k] for k in split.of(1 << number)]))
    return market.with_agents(agents)


def split_payoffs(cases: AgentCases, split: Split, engine: ExactEngine) -> HorizonPayoffs:
    """Return what all accounts earn together at every horizon."""
    if cases[0].market.segments:
        paid = {case: [split_payoffs((part,), split, engine) for part in case.parts.values()] for case in cases}
        return {
            case.horizon: weighted_sum([(1.0, each) for own in parts for each in own.values()])
            for case, parts in paid.items()
        }
    realisations: list[tuple[float, tuple[float, ...] | None]] = [(1.0, None)]
    if any(owner.bit_count() > 1 for owner in split.owners):
        alike = list(zip(cases[0].kinds.labels, split.owners, strict=True))
        realisations = [*realised_means(cases[0].agent, alike)]
    name = cases[0].name
    parts: dict[int, list[tuple[float, Estimate]]] = {case.horizon: [] for case in cases}
    for weight, means in realisations:
        drawn = [case.market if means is None else case.market.at({name: means}) for case in cases]
        markets = [split_market(market, name, split) for market in drawn]
        worlds = [(market, case.mechanism) for market, case in zip(markets, cases, strict=True)]
        evaluations, _ = exact_evaluations(worlds, full_copies(markets[0].agents, None), engine)
        for horizon, evaluation in evaluations.items():
            parts[horizon] += [(weight, evaluation.payoff[account]) for account in account_names(name, split.accounts)]
    return {horizon: weighted_sum(of_horizon) for horizon, of_horizon in parts.items()}


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


def other_deviations(question: Question, found: FoundDeviations, search: Search, clock: Deadline) -> OtherDeviations:
    """Return the deviations other than copies that the question asks for."""
    exact = [result for result in found.results if isinstance(result, ExactResult)]
    by_engine = question.also & {"withholding", "splitting"} - ({"withholding"} if found.by_scan else set())
    answer = OtherDeviations()
    if clock.interrupted:
        return replace(answer, missing=dict.fromkeys(sorted(question.also), "interrupted"))
    if by_engine and len(exact) < len(found.results):
        answer = OtherDeviations(
            notes=("withholding and splitting are tried by exact engines only, and none applies here",)
        )
    if "withholding" in by_engine:
        answer |= _withholding(exact, search.copies, question.tolerance, clock)
    if "splitting" in question.also:
        for accounts in (2, *MORE_ACCOUNTS):
            answer |= _splitting(exact, accounts, question.tolerance, clock)
    if "copy-cost" in question.also:
        answer |= _copy_cost(found.results)
    if "withholding" in question.also and found.by_scan:
        answer |= _scan_withholding(exact, question.tolerance)
    if "informed" in question.also:
        answer |= _informed(found.results, search, question.tolerance, clock)
    if "variants" in question.also:
        answer |= _variants(found.results, search, question.tolerance, clock)
    apart = {"informed": answer.informed, "variants": answer.variants, "copy-cost": answer}  # the last is a note
    computed = {*answer.deviations, *(name for name, each in apart.items() if each is not None)}
    left = sorted(question.also - computed)
    why = {name: next((note for note in answer.notes if name in note), "interrupted") for name in left}
    return replace(answer, missing={name: note.removeprefix(f"{name}: ") for name, note in why.items()})


def _withholding(exact: Sequence[ExactResult], copies: int, tolerance: float, clock: Deadline) -> OtherDeviations:
    cases = {result.agent: result.cases for result in exact}
    tried: list[Witness] = []
    for result in exact:
        tried += search_vectors(result, withholding_vectors(result.cases[0].kinds, copies), [], clock).witnesses
    if not tried:
        return OtherDeviations(notes=("withholding: nothing to try, the agents have one original each",))
    best = best_of(tried)
    with clock.for_engines(), suppress(OutOfTimeError):
        best = enclose(cases[best.agent], best) or best
    note = f"withholding: registering {best.copies} as {best.agent} {_worth(best, tolerance)}"
    return OtherDeviations({"withholding": best}, notes=(note,))


def _scan_withholding(exact: Sequence[ExactResult], tolerance: float) -> OtherDeviations:
    """Withholding under the scan theorem: one original left out, and all but one, if they are evaluated."""
    tried: list[Witness] = []
    for result in exact:
        count = result.cases[0].kinds.count
        vectors = {(*(1,) * (count - 1), 0), (1, *(0,) * (count - 1))} if count > 1 else set()
        for vector in sorted(vectors, reverse=True):
            tried += witnesses(result.cases, "closed-form", result.honest, vector)
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
    for result in exact:
        witness, missing = best_split(result, accounts, clock)
        notes += missing[:3]
        tried += [] if witness is None else [witness]
    if not tried:
        return OtherDeviations(notes=tuple(notes))
    best = best_of(tried)
    arms = {each.name: each.count for each in best.market.agents}
    if accounts > 2:
        arms_words = f"{best.agent}, with {best.copies} arms of its originals in all"
        note = f"{accounts} accounts: {arms_words}, {_worth(best, tolerance)}"
        return OtherDeviations({f"{accounts} accounts": best}, notes=(*notes, note))
    first, second = (arms[account] for account in account_names(best.agent))
    notes.append(
        f"splitting: {best.agent} under two names, with {first} and {second} arms and the originals registered "
        f"{best.copies} times in all, {_worth(best, tolerance)}"
    )
    return OtherDeviations({"splitting": best}, notes=tuple(notes))


def _copy_cost(results: Sequence[SearchResult]) -> OtherDeviations:
    found = smallest_copy_cost(witness for result in results for witness in result.witnesses)
    if found is None:
        return OtherDeviations(notes=("copy cost: none is needed, no deviation tried pays",))
    cost, witness = found
    note = (
        f"copy cost: {cost.value:.6g} for each extra arm (error {cost.error:.1e}) makes honesty the best of "
        f"what was tried; copies {witness.copies} of {witness.agent} set it"
    )
    return OtherDeviations({"copy cost": witness}, notes=(note,))


def _change(found: Witness | NearCopyGain) -> str:
    gain, part = found.gain.value, found.relative_gain
    return f"changes the payoff by {gain:+.6g} ({part:+.2%}) at horizon {found.horizon}"


def _worth(witness: Witness, tolerance: float) -> str:
    return f"{_change(witness)}: {_judged(witness, tolerance)}"


def _judged(found: Gained, tolerance: float) -> str:
    if pays(found, tolerance):
        return "it pays"
    return "it does not pay" if does_not_pay(found, tolerance) else "undecided"


def _informed(results: Sequence[SearchResult], search: Search, tolerance: float, clock: Deadline) -> OtherDeviations:
    best, notes = informed_gain(results, search, clock)
    said = [] if best is None else [_sentence(best, search.copies, tolerance)]
    return OtherDeviations(informed=best, notes=(*notes[:3], *said))


def _variants(results: Sequence[SearchResult], search: Search, tolerance: float, clock: Deadline) -> OtherDeviations:
    """Return the largest relative gain of an agent with variants at the last horizon, or who was not evaluated."""
    gains, notes = [], []
    for left, result in enumerate(results):
        try:
            gains.append(variant_gain(result.cases[-1], search, clock.share(len(results) - left)))
        except EngineError as refusal:
            notes.append(f"variants: {result.agent} was not evaluated: {refusal.reason}")
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
