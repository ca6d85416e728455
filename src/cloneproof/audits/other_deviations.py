"""Deviations other than copies. They are outside the paper's claim and do not change the verdict.

*Withholding* leaves originals out. *Splitting* divides them among two accounts, or registers them in three or five.
What *informed* agents gain is in `informed`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from cloneproof.audits.copy_vectors import withholding_vectors
from cloneproof.audits.deviations import CopiesOf, Split, splits, wider_splits
from cloneproof.audits.gain import (
    Finding,
    PairedSampling,
    Payoff,
    compared,
    exact_payoffs,
    sampled_gain,
)
from cloneproof.audits.informed import informed_gain
from cloneproof.audits.question import AuditCase, Question
from cloneproof.audits.result import InformedGain
from cloneproof.audits.search_result import (
    ExactResult,
    FoundDeviations,
    Witness,
    best_of,
    does_not_pay,
    pays,
)
from cloneproof.audits.strategies import search_vectors, witness_of
from cloneproof.evaluation.search import Answers, Search, run_search
from cloneproof.market.market import full_copies
from cloneproof.runs.deadline import Deadline

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
