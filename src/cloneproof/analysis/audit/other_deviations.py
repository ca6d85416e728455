"""Deviations other than copies. They are outside the paper's claim and do not change the verdict.

*Withholding* leaves originals out. *Splitting* divides them among two accounts, or registers them in three or five. A
*copy cost* is the fee per copy that would stop the best deviation.

An *informed* agent knows its means before it registers and chooses the best copies for each realisation. With v the
agent's realised means and pi(c | v) its payoff if it registers c (others honest, with their priors), its payoff is the
sum over v of P(v) max over c of pi(c | v), and its gain is that minus the sum of P(v) pi(1, .., 1 | v). Given v the
means are points, so any exact engine can answer. Under a scan over slots (reservoirs) the best original alone is a best
response at every v, whatever the others do (docs/textbook/reservoir.md, section 9). Under other mechanisms a few
registrations are tried.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement, product
from typing import NamedTuple

from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, withholding_vectors
from cloneproof.analysis.audit.question import AgentCases, AuditCase, Question, epoch_cases
from cloneproof.analysis.audit.result import (
    InformedGain,
    InformedResponse,
    Witness,
    best_of,
    does_not_pay,
    pays,
)
from cloneproof.analysis.audit.search_result import ExactResult, FoundDeviations, HorizonPayoffs, SearchResult
from cloneproof.analysis.audit.strategies import enclose, payoffs, search_vectors, witnesses
from cloneproof.analysis.audit.theorems import is_scan
from cloneproof.analysis.evaluate import ExactEngine, exact_evaluations
from cloneproof.analysis.search import Answers, Search, run_search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.market.market import Agent, Market, full_copies

MOST_REALISATIONS = 256  # More realisations of an agent's means are not enumerated.
FIRST, SECOND, BOTH = 1, 2, 3  # The accounts that register an original, as a bit set.
SECOND_NAME = " (second account)"  # A second account has its agent's name and this.
MORE_ACCOUNTS = (3, 5)  # Splits into this many accounts are tried beside those into two.


def realised_means(agent: Agent, alike: Sequence[Hashable]) -> list[tuple[float, tuple[float, ...]]]:
    """Return every realisation of the agent's means with its probability; equal marks in `alike` can be exchanged.

    Of originals that are alike, the larger mean comes first.

    >>> from cloneproof.market.priors import Discrete
    >>> realised_means(Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), [0, 0])
    [(0.25, (0.0, 0.0)), (0.5, (1.0, 0.0)), (0.25, (1.0, 1.0))]
    """
    groups: dict[Hashable, list[int]] = {}
    for position, mark in enumerate(alike):
        groups.setdefault(mark, []).append(position)
    atoms = {mark: agent.priors[positions[0]].atoms for mark, positions in groups.items()}
    sizes = [math.comb(len(own) + len(groups[mark]) - 1, len(groups[mark])) for mark, own in atoms.items() if own]
    if len(sizes) < len(atoms) or math.prod(sizes) > MOST_REALISATIONS:
        raise EngineError(
            f"expected discrete priors with at most {MOST_REALISATIONS} realisations of the agent's means, got "
            f"{'a continuous one' if len(sizes) < len(atoms) else math.prod(sizes)}; use prior.discretised(3)"
        )
    found = []
    for parts in product(*(_multisets(atoms[mark] or (), len(positions)) for mark, positions in groups.items())):
        means = [0.0] * agent.count
        for positions, (_, values) in zip(groups.values(), parts, strict=True):
            for position, value in zip(positions, values, strict=True):
                means[position] = value
        found.append((math.prod(chance for chance, _ in parts), tuple(means)))
    return found


def _multisets(atoms: Sequence[tuple[float, float]], size: int) -> list[tuple[float, tuple[float, ...]]]:
    """Return each multiset of `size` values, the largest first, with its multinomial probability."""
    found = []
    for places in combinations_with_replacement(range(len(atoms)), size):
        chance = float(math.factorial(size))
        for place, number in Counter(places).items():
            chance *= atoms[place][1] ** number / math.factorial(number)
        found.append((chance, tuple(sorted((atoms[place][0] for place in places), reverse=True))))
    return found


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
            agents.append(Agent(name, prior=[each.priors[k] for k in split.of(1 << number)]))
    return Market(agents, market.horizon, market.share, market.rewards, ends=market.ends)


def split_payoffs(cases: AgentCases, split: Split, engine: ExactEngine) -> HorizonPayoffs:
    """Return what all accounts earn together at every horizon."""
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
    notes: tuple[str, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)  # what was asked for and has no number, and why

    def __or__(self, other: OtherDeviations) -> OtherDeviations:
        return OtherDeviations(
            self.deviations | other.deviations, self.informed or other.informed, (*self.notes, *other.notes)
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
        answer |= _informed(found.results, search.copies, question.tolerance, clock)
    computed = {*answer.deviations, *([] if answer.informed is None else ["informed"]), "copy-cost"}  # a note is one
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


def _change(found: Witness | InformedGain) -> str:
    gain, part = found.gain.value, found.relative_gain
    return f"changes the payoff by {gain:+.6g} ({part:+.2%}) at horizon {found.horizon}"


def _worth(witness: Witness, tolerance: float) -> str:
    return f"{_change(witness)}: {_judged(witness, tolerance)}"


def _judged(found: Witness | InformedGain, tolerance: float) -> str:
    if pays(found, tolerance):
        return "it pays"
    return "it does not pay" if does_not_pay(found, tolerance) else "undecided"


def _informed(results: Sequence[SearchResult], copies: int, tolerance: float, clock: Deadline) -> OtherDeviations:
    """Return the largest relative gain of an informed agent, or why none is known."""
    gains: list[InformedGain] = []
    notes: list[str] = []
    for result in results:
        engine: ExactEngine = "auto"
        if isinstance(result, ExactResult):
            engine = result.engine
        elif result.engine != "argument" or not all(map(best_alone_suffices, result.cases)):
            continue  # no exact engine may answer for it
        try:
            gains += informed_gains(result.cases, engine, copies, clock)
        except EngineError as refusal:
            notes.append(f"informed: {result.agent} was not evaluated: {refusal.reason}")
    if not gains:
        return OtherDeviations(
            notes=tuple(notes[:3]) or ("informed: tried by exact engines only, and none applies here",)
        )
    best = max(gains, key=lambda gain: gain.relative_gain)
    return OtherDeviations(informed=best, notes=(*notes[:3], _sentence(best, copies, tolerance)))


def informed_gains(cases: AgentCases, engine: ExactEngine, max_copies: int, clock: Deadline) -> list[InformedGain]:
    """Return the gain at every horizon."""
    agent, kinds = cases[0].agent, cases[0].kinds
    complete = all(map(best_alone_suffices, cases))
    realised = realised_means(agent, kinds.labels)
    found: dict[int, list[InformedResponse]] = {case.horizon: [] for case in cases}
    for number, (chance, means) in enumerate(realised):
        if clock.spent:
            raise EngineError(f"the budget was spent after {number} of {len(realised)} realisations of its means")
        at_means = tuple(replace(case, market=case.market.at({case.name: means})) for case in cases)
        honest = payoffs(at_means, engine, kinds.honest)
        best = {horizon: (payoff, kinds.honest) for horizon, payoff in honest.items()}
        alone = tuple(int(k == means.index(max(means))) for k in range(kinds.count))
        for vector in [alone] if complete else informed_vectors(kinds, means, max_copies):
            for horizon, payoff in payoffs(at_means, engine, vector).items():
                if payoff.value > best[horizon][0].value:
                    best[horizon] = payoff, vector
        for horizon, (payoff, vector) in best.items():
            found[horizon].append(InformedResponse(means, chance, vector, honest[horizon], payoff))
        clock.tell(number + 1, len(realised), f"{agent.name}, informed: means {means}")
    gains = []
    for horizon, responses in found.items():
        honestly = weighted_sum([(each.chance, each.honest) for each in responses])
        informed = weighted_sum([(each.chance, each.best) for each in responses])
        gain = informed - honestly
        gains.append(InformedGain(agent.name, horizon, honestly, informed, gain, tuple(responses), complete))
    return gains


def best_alone_suffices(case: AuditCase) -> bool:
    """Return whether the best original alone is always a best response: a scan over slots in every epoch."""
    family = case.market.family
    return family.low >= 0 and family.high <= 1 and all(is_scan(epoch.running) for epoch in epoch_cases(case))


def informed_vectors(kinds: OriginalKinds, means: Sequence[float], max_copies: int) -> list[CopyVector]:
    """Vectors of 0, 1, 2 or the cap for each original, without honesty; equal originals in falling order.

    >>> informed_vectors(OriginalKinds((0, 0)), (0.8, 0.2), 2)[:4]
    [(0, 1), (0, 2), (1, 0), (1, 2)]
    >>> informed_vectors(OriginalKinds((0, 0)), (0.8, 0.8), 2)
    [(1, 0), (2, 0), (2, 1), (2, 2)]
    """
    marks = list(zip(kinds.labels, means, strict=True))
    equal = OriginalKinds(tuple(marks.index(mark) for mark in marks))
    numbers = sorted({0, 1, min(2, max_copies), max_copies})
    every = product(numbers, repeat=kinds.count)
    return [vector for vector in every if any(vector) and equal.canonical(vector) and vector != kinds.honest]


def _sentence(best: InformedGain, max_copies: int, tolerance: float) -> str:
    how = (
        "its best original alone is a best response whatever its means are"
        if best.complete
        else f"with 0, 1, 2 or {max_copies} of each original, the best for each of {len(best.responses)} realisations; "
        "other copies may pay more"
    )
    gain = f"{best.gain.value:+.6g} ({best.relative_gain:+.2%}) at horizon {best.horizon}"
    return (
        f"informed: if {best.agent} knew its means before it registers, its payoff would change by {gain}: "
        f"{_judged(best, tolerance)}; {how}"
    )
