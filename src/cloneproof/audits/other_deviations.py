"""Deviations other than copies. They are outside the paper's claim and do not change the verdict.

*Withholding* leaves originals out. *Splitting* divides them among two accounts, or registers them in three or five.

An *informed* agent chooses the best copies for each realisation. With v its realised means and pi(c | v) its payoff if
it registers c (others honest, with their priors), its payoff is the sum over v of P(v) max over c of pi(c | v), and its
gain is that minus the sum of P(v) pi(1, .., 1 | v). Given v the means are points, so any exact engine can answer. Under
a scan over slots (reservoirs) the best original alone is a best response at every v, whatever the others do
(docs/textbook/reservoir.md, section 9). Under other mechanisms a few registrations are tried.

*Naming.* An agent that names its best original with accuracy a registers one original alone: the best one with chance
a, otherwise another one, each as likely (`deviations.Names`). So its list is one item, and where priors are discrete
and an exact engine takes the market, the gain is exact. The platform's regret, against the best original whether it is
registered or not, is what it was less what all agents together earn more. Elsewhere, and for continuous priors, worlds
are sampled: the same draws with and without naming.

*The ceiling of knowledge.* Under two levels whose upper one is a steady index of an agent's own rewards
(`Proof.named`), no list of an agent's items earns more than its best original listed alone, whatever the means, the
others and the horizon (docs/textbook/knowledge.md). So no copies and no withholding gain more than

    E[pay of the best original alone] - E[pay of honesty].

Under other two-level mechanisms, and on pages, the same number is measured and not proven, and the audit compares it
with what it tried. A list serves all segments: the ceiling is the sum of theirs, with the best original of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product
from typing import Final

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.audits.deviations import (
    CopiesOf,
    CopyVector,
    Deviation,
    Names,
    OriginalKinds,
    Split,
    honesty,
    realised_means,
    splits,
    wider_splits,
    withholding_vectors,
)
from cloneproof.audits.gain import (
    Finding,
    PairedSampling,
    Payoff,
    compared,
    exact_gain,
    exact_payoffs,
    gain_columns,
    payoff_of,
    sample_worlds,
    sampled_gain,
)
from cloneproof.audits.question import AuditCase, Question
from cloneproof.audits.result import Audit, InformedGain, InformedResponse, KnowledgeGain, Naming
from cloneproof.audits.search_result import (
    ExactResult,
    FoundDeviations,
    SearchResult,
    Witness,
    best_of,
    does_not_pay,
    pays,
)
from cloneproof.audits.strategies import search_vectors, witness_of
from cloneproof.errors import EngineError
from cloneproof.evaluation.evaluate import ExactEngine, exact_evaluations
from cloneproof.evaluation.search import Answers, Search, run_search
from cloneproof.market.market import Market, full_copies
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.proof import Lists
from cloneproof.mechanisms.segments import plays
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate, Evaluation, weighted_sum
from cloneproof.runs.kernel import Outcomes
from cloneproof.runs.statistics import gain_bounds, regret_bounds, served_bounds

SAMPLED: Final = frozenset(("informed", "withholding"))  # what is sampled if no exact engine applies
MORE_ACCOUNTS = (3, 5)  # Splits into this many accounts are tried beside those into two.


@dataclass
class OtherDeviations:
    """What a question asks for beside copies: the best deviation of each kind, notes, and what has no number, and why.

    `found` is what the search for copies found, whose engines are asked again.
    """

    question: Question
    found: FoundDeviations
    search: Search
    clock: Deadline
    deviations: dict[str, Witness] = field(default_factory=dict)
    informed: InformedGain | None = None
    notes: list[str] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)

    @cached_property
    def exact(self) -> list[ExactResult]:
        """Results of exact engines."""
        return [result for result in self.found.results if isinstance(result, ExactResult)]

    def answer(self) -> None:
        """Answer what is asked for, one kind of deviation after the other."""
        asked = self.question.also
        if self.clock.interrupted:
            self.missing = dict.fromkeys(sorted(asked), "interrupted")
            return
        if "splitting" in asked and len(self.exact) < len(self.found.results):
            self.notes.append("splitting is tried by exact engines only, and none applies here")
        if "withholding" in asked and not self.found.by_scan:
            self._withholding()
        for accounts in (2, *MORE_ACCOUNTS) if "splitting" in asked else ():
            self._splitting(accounts)
        if "withholding" in asked and self.found.by_scan:
            self._scan_withholding()
        if "informed" in asked:
            self.informed, notes = informed_gain(self.found.results, self.search, self.clock)
            self.notes += notes[:3]
            if self.informed is not None:
                self.notes.append(self._informed_words(self.informed))
        computed = {*self.deviations, *(() if self.informed is None else ("informed",))}
        for name in sorted(asked - computed):
            why = next((note for note in self.notes if name in note), "interrupted")
            self.missing[name] = why.removeprefix(f"{name}: ")

    def _withholding(self) -> None:
        """Try lists that leave something out: by the engine that evaluated copies, or one or all but one by samples."""
        clock, results, tried = self.clock, self.found.results, list[Witness]()
        for result in self.exact:
            vectors = withholding_vectors(result.case.kinds, self.search.copies)
            tried += search_vectors(replace(result, evaluated={}, left_out={}), vectors, [], clock).witnesses
        sampled = [result.case for result in results if result.engine == "sampled"]
        cases = [case for case in sampled if case.agent.count > 1]
        for case, in_time in clock.shared_by(cases):
            tried += sampled_withholding(case, self.search, in_time)
        if not tried:
            why = "nothing to try, the agents have one original each"
            if cases or len(self.exact) + len(sampled) < len(results):
                spent, none = "the budget was spent before any was sampled", "neither an engine nor samples apply here"
                why = spent if cases else none
            self.notes.append(f"withholding: {why}")
            return
        best = best_of(tried)
        self.deviations["withholding"] = best
        self.notes.append(f"withholding: registering {best.copies} as {best.agent} {self._worth(best)}")

    def _scan_withholding(self) -> None:
        """Withholding under the scan theorem: one original left out, and all but one, if they are evaluated."""
        tried: list[Witness] = []
        for result in self.exact:
            count = result.case.kinds.count
            vectors = {(*(1,) * (count - 1), 0), (1, *(0,) * (count - 1))} if count > 1 else set()
            for vector in sorted(vectors, reverse=True):
                tried.append(witness_of(result, vector))
        if not tried:
            self.notes.append("withholding: covered by the scan theorem; none was evaluated")
            return
        best = best_of(tried)
        contradicts = pays(best, self.question.tolerance)
        against = "it pays, against the scan theorem: please report this" if contradicts else "it does not pay"
        what = f"registering {best.copies} as {best.agent} {_change(best)}"
        self.deviations["withholding"] = best
        self.notes.append(f"withholding: covered by the scan theorem; {what}: {against}")

    def _splitting(self, accounts: int) -> None:
        tried: list[Witness] = []
        for result in self.exact:
            witness, left_out = best_split(result, accounts, self.clock)
            self.notes += left_out[:3]
            tried += [] if witness is None else [witness]
        if not tried:
            return
        best = best_of(tried)
        if accounts == 2:
            arms = {account.name: account.count for account in best.market.agents}
            first, second = (arms[account] for account in Split(best.agent, best.copies).accounts)
            kind = "splitting"
            words = f"{best.agent} under two names, with {first} and {second} arms and the originals registered "
            words += f"{best.copies} times in all"
        else:
            kind, words = f"{accounts} accounts", f"{best.agent}, with {best.copies} arms of its originals in all"
        self.deviations[kind] = best
        self.notes.append(f"{kind}: {words}, {self._worth(best)}")

    def _informed_words(self, best: InformedGain) -> str:
        if best.complete:
            how = "its best original alone is a best response whatever its means are"
        elif best.responses:
            how = (
                f"with 0, 1, 2 or {self.search.copies} of each original, the best for each of {len(best.responses)} "
                "realisations; other copies may pay more"
            )
        else:
            how = "with its best original alone; other lists may pay more"
        gain = f"{best.gain.value:+.6g} ({best.relative_gain:+.2%}) at horizon {best.horizon}"
        knew = f"informed: if {best.agent} knew its means before it registers, its payoff would change by {gain}"
        return f"{knew}: {self._judged(best)}; {how}"

    def _worth(self, deviation: Witness) -> str:
        return f"{_change(deviation)}: {self._judged(deviation)}"

    def _judged(self, deviation: Finding) -> str:
        if pays(deviation, self.question.tolerance):
            return "it pays"
        return "it does not pay" if does_not_pay(deviation, self.question.tolerance) else "undecided"


def _change(deviation: Witness) -> str:
    gain, relative = deviation.gain.value, deviation.relative_gain
    return f"changes the payoff by {gain:+.6g} ({relative:+.2%})"


def best_split(result: ExactResult, accounts: int, clock: Deadline) -> tuple[Witness | None, list[str]]:
    """Return the most profitable split of an agent, and what could not be evaluated."""
    agent, case, kinds = result.agent, result.case, result.case.kinds
    every = [
        Split(agent, owners, accounts, kinds.labels)
        for owners in (splits(kinds) if accounts == 2 else wider_splits(kinds.count, accounts))
    ]

    def paid_for(split: Split) -> Payoff:
        return exact_payoffs([case.under], split, result.engine)[case.horizon]

    answers = Answers[Split, Payoff](paid_for, clock)
    run_search(answers, every)
    tried = []
    for split, paid in answers.evaluated.items():
        several, paid_more = split.market(case.market), compared(result.honest, paid).numbers
        tried.append(Witness(*paid_more, agent, split.copies, several, full_copies(several.agents, None)))
    refused = answers.left_out.items()
    notes = [f"splitting {agent} as {split.owners} was not evaluated: {why}" for split, why in refused]
    if len(answers.evaluated) + len(refused) < len(every):
        notes.append("splitting: the budget was spent before every split was tried")
    return (best_of(tried) if tried else None), notes


def sampled_withholding(case: AuditCase, search: Search, clock: Deadline) -> list[Witness]:
    """Return what leaving out one original, and all but one, gains by pairs of runs: all hold together at 99 %."""
    count, tried = case.kinds.count, []
    vectors = {(*(1,) * k, 0, *(1,) * (count - 1 - k)) for k in range(count)}
    vectors |= {(*(0,) * k, 1, *(0,) * (count - 1 - k)) for k in range(count)}
    vectors = {case.kinds.sorted(vector) for vector in vectors}
    for vector, in_time in clock.shared_by(sorted(vectors, reverse=True)):
        sampling = PairedSampling(
            search.runs, 1 - 0.01 / len(vectors), search.seed, seconds=in_time.left,
            bounds=search.bounds, device=search.device,
        )  # fmt: skip
        withheld = CopiesOf(case.name, vector)
        drawn = sampled_gain(case.market, case.played, withheld, sampling)
        if drawn.runs:
            tried.append(Witness.of(withheld, case.market, drawn.finding))
    return tried


BEFORE = 4 / 3  # a search has three quarters of the time, and the ceiling of knowledge the rest
ACCURACIES = (1.0, 0.85, 0.7)  # of naming one's best original


def informed_gain(
    results: Iterable[SearchResult], search: Search, clock: Deadline
) -> tuple[InformedGain | None, list[str]]:
    """Return the largest relative gain of an informed agent, with what naming is worth; and who was not evaluated."""
    gains: list[tuple[InformedGain, AuditCase, ExactEngine]] = []
    notes = []
    for result in results:
        engine: ExactEngine = result.engine if isinstance(result, ExactResult) else "auto"
        try:
            gains.append((_gain_of_agent(result, engine, search, clock), result.case, engine))
        except EngineError as refusal:
            notes.append(f"informed: {result.agent} was not evaluated: {refusal.reason}")
    if not gains:
        return None, notes
    best, case, engine = max(gains, key=lambda of_agent: of_agent[0].relative_gain)
    if not best.naming:
        try:
            best = _with_naming(best, case, engine, search, clock)
        except EngineError as refusal:
            notes.append(f"informed: what naming does to the regret was not computed: {refusal.reason}")
    return best, notes


def _gain_of_agent(result: SearchResult, engine: ExactEngine, search: Search, clock: Deadline) -> InformedGain:
    """Return the gain by an exact engine, or else by samples."""
    if isinstance(result, ExactResult) or (result.engine == "argument" and best_alone_suffices(result.case)):
        try:
            return exact_informed_gain(result.case, engine, search.copies, clock)
        except EngineError:
            if clock.spent:
                raise
    return sampled_naming(result.case, search, clock)


def _with_naming(
    gain: InformedGain, case: AuditCase, engine: ExactEngine, search: Search, clock: Deadline
) -> InformedGain:
    try:
        with clock.for_engines():
            regret, naming = exact_naming(case, engine)
        return replace(gain, regret=regret, naming=naming)
    except EngineError:
        sampled = sampled_naming(case, search, clock)
        return replace(gain, regret=sampled.regret, naming=sampled.naming)


def exact_informed_gain(case: AuditCase, engine: ExactEngine, max_copies: int, clock: Deadline) -> InformedGain:
    """Return the gain by an exact engine."""
    kinds, responses = case.kinds, list[InformedResponse]()
    complete, realised = best_alone_suffices(case), realised_means(case.agent, kinds.labels)
    for number, (chance, means) in enumerate(realised):
        if clock.spent:
            raise EngineError(f"the budget was spent after {number} of {len(realised)} realisations of its means")
        at_means = [(case.market.at({case.name: means}), case.mechanism)]

        def payoff(vector: CopyVector, at_means: list[tuple[Market, Mechanism]] = at_means) -> Estimate:
            return exact_payoffs(at_means, CopiesOf(case.name, vector), engine)[case.horizon].total

        alone = tuple(int(k == means.index(max(means))) for k in range(kinds.count))
        vectors = [kinds.honest, *([alone] if complete else informed_vectors(kinds, means, max_copies))]
        paid = {vector: payoff(vector) for vector in vectors}
        best = max(paid, key=lambda vector: paid[vector].value)
        numbers = compared(Payoff(paid[kinds.honest]), Payoff(paid[best])).numbers
        responses.append(InformedResponse(*numbers, means, chance, best))
        clock.tell(number + 1, len(realised), f"{case.name}, informed: means {means}")
    honestly = weighted_sum([(response.chance, response.honest) for response in responses])
    informed = weighted_sum([(response.chance, response.copied) for response in responses])
    numbers = compared(Payoff(honestly), Payoff(informed)).numbers
    return InformedGain(*numbers, case.name, case.horizon, tuple(responses), complete)


def best_alone_suffices(case: AuditCase) -> bool:
    """Return whether the best original alone is always a best response."""
    return Lists.INFORMED in case.proof.covers


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


def exact_naming(case: AuditCase, engine: ExactEngine) -> tuple[Estimate, tuple[Naming, ...]]:
    """Return the honest regret and what naming is worth at each accuracy, by an exact engine."""
    market, whole = case.market, 1 / case.market.share

    def evaluation(deviation: Deviation) -> Evaluation:
        (world,) = deviation.worlds(market)
        return exact_evaluations([(world.market, case.mechanism)], world.copies, engine)[0][case.horizon]

    def regret(named: Evaluation) -> Estimate:
        less = [(-whole, payoff) for payoff in named.payoff.values()]
        return weighted_sum([(1, honest.regret), *((whole, payoff) for payoff in honest.payoff.values()), *less])

    honest, everybody = evaluation(honesty(market, case.name)), tuple(agent.name for agent in market.agents)
    rows = []
    for accuracy in ACCURACIES:
        one, all_of_them = (evaluation(Names(case.name, accuracy, namers)) for namers in (None, everybody))
        gained = compared(payoff_of(honest, case.name), payoff_of(one, case.name))
        rows.append(Naming(*gained.numbers, accuracy, regret(one), regret(all_of_them)))
    return honest.regret, tuple(rows)


def sampled_naming(case: AuditCase, search: Search, clock: Deadline) -> InformedGain:
    """Return the same by samples, and with it what an agent gains that registers its best original alone.

    Of an agent that errs, the worlds in which it is right and in which it is wrong are both played.
    """
    market, everybody = case.market, tuple(agent.name for agent in case.market.agents)
    lists: list[CopiesOf | Names] = [honesty(market, case.name), Names(case.name, 1.0), Names(case.name, 0.0)]
    lists += [Names(case.name, accuracy, everybody) for accuracy in ACCURACIES]

    def observe(_: FloatArray, __: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
        honest, right, wrong, *named = played
        before, best, other = (outcomes.served[:, case.place] for outcomes in (honest, right, wrong))
        mixed = [accuracy * best + (1 - accuracy) * other for accuracy in ACCURACIES]
        gains = [gain_columns(before, paid)[0] for paid in mixed]
        regrets = [accuracy * right.regret + (1 - accuracy) * wrong.regret for accuracy in ACCURACIES]
        if_all = [outcomes.regret for outcomes in named]
        return np.column_stack([before, *mixed, *gains, honest.regret, *regrets, *if_all])

    served, gained, lost = served_bounds(market, case.name), gain_bounds(market, case.name), regret_bounds(market)
    rows = len(ACCURACIES)
    bounds = [served, *[served] * rows, *[gained] * rows, *[lost] * (2 * rows + 1)]
    worlds = [deviation.sampled(market) for deviation in lists]
    estimates = iter(sample_worlds(market, case.mechanism, worlds, observe, bounds, search, clock))
    honest, payoffs, gains = next(estimates), [*islice(estimates, rows)], [*islice(estimates, rows)]
    regret, if_one, if_all = next(estimates), [*islice(estimates, rows)], [*estimates]
    rows_of_naming = zip(payoffs, gains, ACCURACIES, if_one, if_all, strict=True)
    naming = tuple(Naming(honest, *row) for row in rows_of_naming)
    complete = best_alone_suffices(case)
    return InformedGain(*naming[0].numbers, case.name, case.horizon, (), complete, regret, naming)


def with_knowledge(audit: Audit, question: Question, search: Search, clock: Deadline) -> Audit:
    """Return the audit with the largest ceiling of its agents, if it is asked for and in time."""
    cases, gains = question.searched, list[KnowledgeGain]()
    if not asks_for_ceiling(question) or audit.verdict == "clone-proof" or clock.spent:
        return audit
    for number, case in enumerate(cases):
        try:
            gains.append(knowledge_gain(case, search, clock.share(len(cases) - number)))
        except EngineError:
            return audit  # a ceiling of some agents is none of the mechanism
    most = max(gains, key=lambda gain: gain.relative_gain)
    tried = [witness for witness in audit.tried if witness.agent == most.agent]
    if tried and (best := best_of(tried)).gain.low > most.gain.high:
        most = replace(most, beaten_by=best.copies)
    ceiling = audit.gain_at_most
    if ceiling is None and all(gain.proven for gain in gains):
        ceiling = max((gain.gain for gain in gains), key=lambda gain: gain.high)
    return replace(audit, knowledge=most, gain_at_most=ceiling)


def asks_for_ceiling(question: Question) -> bool:
    """Return whether agents are compared in every round, by all of their own rewards."""
    if question.opponents == "any" or question.box is not None:
        return False
    return all(case.proof.named is not None for case in question.searched)


def knowledge_gain(case: AuditCase, search: Search, clock: Deadline) -> KnowledgeGain:
    """Return what an agent gains that lists its best original alone, by an exact engine or else by pairs of runs."""
    try:
        with clock.share(2).for_engines():
            numbers = exact_gain(*case.under, Names(case.name)).numbers
    except EngineError:
        by_segment = [
            _sampled(replace(case, market=play.market, mechanism=play.mechanism), search, clock)
            for play in plays(case.market, case.mechanism)
        ]
        honest, paid, gain = (weighted_sum([(1.0, own[k]) for own in by_segment]) for k in range(3))
        numbers = honest, paid, gain
    return KnowledgeGain(*numbers, case.name, case.horizon, bool(case.proof.named))


def _sampled(case: AuditCase, search: Search, clock: Deadline) -> list[Estimate]:
    """Return both payoffs and the gain from worlds with the same means and random numbers."""
    market, place = case.market, case.place
    worlds = [deviation.sampled(market) for deviation in (honesty(market, case.name), Names(case.name))]

    def observe(_: FloatArray, __: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
        gain, honest, paid = gain_columns(*(outcomes.served[:, place] for outcomes in played))
        return np.column_stack([honest, paid, gain])

    served = served_bounds(market, case.name)
    bounds = [served, served, gain_bounds(market, case.name)]
    return list(sample_worlds(market, case.mechanism, worlds, observe, bounds, search, clock))
