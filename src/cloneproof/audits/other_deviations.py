"""Deviations other than copies. They are outside the paper's claim and do not change the verdict.

*Withholding* leaves originals out. *Splitting* divides them between two accounts.

*Naming.* An informed agent registers its best original alone. One that names the best with accuracy a registers one
original alone: the best one with chance a, otherwise another one, each as likely (`deviations.Names`). So its list is
one item, and where priors are discrete and an exact engine takes the market, the gain is exact. The platform's regret,
against the best original whether it is registered or not, is what it was less what all agents together earn more.
Elsewhere, and for continuous priors, worlds are sampled: the same draws with and without naming. Under a scan over
slots (reservoirs) the best original alone is a best response whatever the means are and the others do
(docs/textbook/reservoir.md, section 9); under other mechanisms other lists may gain more.

*The ceiling of knowledge.* Under two levels whose upper one is a steady index of an agent's own rewards
(`Proof.named`), no list of an agent's items earns more than its best original listed alone, whatever the means, the
others and the horizon (docs/textbook/knowledge.md). So no copies and no withholding gain more than

    E[pay of the best original alone] - E[pay of honesty].

Under other two-level mechanisms, and on pages, the same number is measured and not proven, and the audit compares it
with what it tried. A list serves all segments: the ceiling is the sum of theirs, with the best original of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.audits.deviations import (
    CopiesOf,
    Deviation,
    Names,
    Split,
    honesty,
    splits,
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
from cloneproof.audits.result import Audit, InformedGain, KnowledgeGain, Naming
from cloneproof.audits.search_result import (
    ExactResult,
    FoundDeviations,
    SearchResult,
    Witness,
    best_of,
    does_not_pay,
    pays,
)
from cloneproof.audits.strategies import search_vectors
from cloneproof.errors import EngineError
from cloneproof.evaluation.evaluate import ExactEngine, exact_evaluations
from cloneproof.evaluation.search import Answers, Search, run_search
from cloneproof.market.market import full_copies
from cloneproof.mechanisms.proof import Lists
from cloneproof.mechanisms.segments import plays
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import Estimate, Evaluation, weighted_sum
from cloneproof.runs.kernel import Outcomes
from cloneproof.runs.statistics import gain_bounds, regret_bounds, served_bounds

ACCURACIES = (1.0, 0.85, 0.7)  # of naming one's best original


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

    @property
    def exact(self) -> list[ExactResult]:
        """Results of exact engines."""
        return [result for result in self.found.results if isinstance(result, ExactResult)]

    def answer(self) -> None:
        """Answer what is asked for, one kind of deviation after the other."""
        asked = self.question.also
        if self.clock.interrupted:
            self.missing = dict.fromkeys(sorted(asked), "interrupted")
            return
        if "withholding" in asked:
            self._withholding()
        if "splitting" in asked:
            self._splitting()
        if "informed" in asked:
            self._naming()
        computed = {*self.deviations, *(() if self.informed is None else ("informed",))}
        for name in sorted(asked - computed):
            why = next((note for note in self.notes if name in note), "interrupted")
            self.missing[name] = why.removeprefix(f"{name}: ")

    def _withholding(self) -> None:
        """Try lists that leave something out: by the engine that evaluated copies, or one or all but one by samples."""
        clock, results, tried = self.clock, self.found.results, list[Witness]()
        covered = "covered by the scan theorem; " if self.found.by_scan else ""
        for result in self.exact:
            vectors = withholding_vectors(result.case.kinds, 1 if covered else self.search.copies)
            tried += search_vectors(replace(result, evaluated={}, left_out={}), vectors, [], clock).witnesses
        sampled = [result.case for result in results if result.engine == "sampled"]
        cases = [case for case in sampled if case.agent.count > 1]
        for case in cases:
            tried += sampled_withholding(case, self.search, clock)
        if tried:
            best = best_of(tried)
            self.deviations["withholding"] = best
            self._note("withholding", f"{covered}registering {best.copies} as {best.agent}", best)
            return
        why = "nothing to try, the agents have one original each"
        if cases or len(self.exact) + len(sampled) < len(results):
            spent, none = "the budget was spent before any was sampled", "neither an engine nor samples apply here"
            why = spent if cases else "none was evaluated" if covered else none
        self.notes.append(f"withholding: {covered}{why}")

    def _splitting(self) -> None:
        """Divide originals between two accounts, by the engine that evaluated copies."""
        if len(self.exact) < len(self.found.results):
            self.notes.append("splitting is tried by exact engines only, and none applies here")
        tried: list[Witness] = []
        for result in self.exact:
            witness, left_out = best_split(result, self.clock)
            self.notes += left_out[:3]
            tried += [] if witness is None else [witness]
        if not tried:
            return
        self.deviations["splitting"] = best = best_of(tried)
        arms = {account.name: account.count for account in best.market.agents}
        first, second = (arms[account] for account in Split(best.agent, best.copies).accounts)
        words = f"{best.agent} under two names, with {first} and {second} arms and the originals registered "
        self._note("splitting", f"{words}{best.copies} times in all,", best)

    def _naming(self) -> None:
        """Let each agent name its best original; the one that gains most is told."""
        gains: list[InformedGain] = []
        for result in self.found.results:
            try:
                gains.append(naming_gain(result, self.search, self.clock))
            except EngineError as refusal:
                self.notes.append(f"informed: {result.agent} was not evaluated: {refusal.reason}")
        if gains:
            self.informed = best = max(gains, key=lambda gain: gain.relative_gain)
            how = "it is a best response whatever its means are" if best.complete else "other lists may pay more"
            knew = f"if {best.agent} knew its means and registered its best original alone, that"
            self._note("informed", knew, best, f" at horizon {best.horizon}", f"; {how}")

    def _note(self, kind: str, what: str, deviation: Finding, where: str = "", how: str = "") -> None:
        """Say what a deviation changes, and whether it pays."""
        judged = "it does not pay" if does_not_pay(deviation, self.question.tolerance) else "undecided"
        judged = "it pays" if pays(deviation, self.question.tolerance) else judged
        change = f"{deviation.gain.value:+.6g} ({deviation.relative_gain:+.2%})"
        self.notes.append(f"{kind}: {what} changes the payoff by {change}{where}: {judged}{how}")


def best_split(result: ExactResult, clock: Deadline) -> tuple[Witness | None, list[str]]:
    """Return the most profitable split of an agent, and what could not be evaluated."""
    agent, case, kinds = result.agent, result.case, result.case.kinds
    every = [Split(agent, owners, alike=kinds.labels) for owners in splits(kinds)]

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
    for vector in sorted(vectors, reverse=True):
        sampling = PairedSampling(
            search.runs, 1 - 0.01 / len(vectors), search.seed, seconds=clock.left,
            bounds=search.bounds, device=search.device,
        )  # fmt: skip
        withheld = CopiesOf(case.name, vector)
        drawn = sampled_gain(case.market, case.mechanism, withheld, sampling)
        if drawn.runs:
            tried.append(Witness.of(withheld, case.market, drawn.finding))
    return tried


def naming_gain(result: SearchResult, search: Search, clock: Deadline) -> InformedGain:
    """Return what naming is worth to an agent, by the engine that evaluated its copies or else by samples."""
    case, engine = result.case, result.engine
    if isinstance(result, ExactResult) or (engine == "argument" and _is_best_response(case)):
        try:
            with clock.for_engines():
                return exact_naming(case, result.engine if isinstance(result, ExactResult) else "auto")
        except EngineError:
            if clock.spent:
                raise
    return sampled_naming(case, search, clock)


def _is_best_response(case: AuditCase) -> bool:
    """Return whether the best original alone is always a best response."""
    return Lists.INFORMED in case.proof.covers


def exact_naming(case: AuditCase, engine: ExactEngine) -> InformedGain:
    """Return what naming is worth at each accuracy, by an exact engine."""
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
    return _informed(case, honest.regret, rows)


def sampled_naming(case: AuditCase, search: Search, clock: Deadline) -> InformedGain:
    """Return the same by samples.

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
    columns = zip(payoffs, gains, ACCURACIES, if_one, if_all, strict=True)
    return _informed(case, regret, [Naming(honest, *row) for row in columns])


def _informed(case: AuditCase, regret: Estimate, rows: Sequence[Naming]) -> InformedGain:
    return InformedGain(*rows[0].numbers, case.name, case.horizon, _is_best_response(case), regret, tuple(rows))


def with_knowledge(audit: Audit, question: Question, search: Search, clock: Deadline) -> Audit:
    """Return the audit with the largest ceiling of its agents, if it is asked for and in time."""
    cases, gains = question.searched, list[KnowledgeGain]()
    if not asks_for_ceiling(question) or audit.verdict == "clone-proof" or clock.spent:
        return audit
    for case in cases:
        try:
            gains.append(knowledge_gain(case, search, clock))
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
    return question.opponents == "market" and all(case.proof.named is not None for case in question.searched)


def knowledge_gain(case: AuditCase, search: Search, clock: Deadline) -> KnowledgeGain:
    """Return what an agent gains that lists its best original alone, by an exact engine or else by pairs of runs."""
    try:
        with clock.for_engines():
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
