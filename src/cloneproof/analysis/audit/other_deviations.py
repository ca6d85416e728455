"""Deviations other than copies. They are outside the paper's claim and do not change the verdict.

*Withholding* leaves originals out. *Splitting* divides them among two accounts, or registers them in three or five. A
*copy cost* is the fee per copy that would stop the best deviation. What *informed* agents gain is in `informed`.

*Variants* are near-copies that an agent registers in place of each original; they have a spread or may be new
(`deviations.Variants`). Both worlds, honest and with variants, are sampled on the same random numbers. Their ceilings
are those of docs/textbook/variants.md. With new items it is E[H_(l + N)] - H_l, by an exact engine. With a spread it is
the average over the sampled worlds of eps T (1 + M kappa_n v), where eps and v are those of the world and M, the own
tests to be expected, is at most the sum over j < s of f^j, f the chance that a draw from the list fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Final

import numpy as np
import scipy

from cloneproof._arrays import FloatArray
from cloneproof.analysis.audit.copy_vectors import withholding_vectors
from cloneproof.analysis.audit.informed import informed_gain
from cloneproof.analysis.audit.question import AuditCase, Question
from cloneproof.analysis.audit.result import InformedGain, NearCopyGain
from cloneproof.analysis.audit.search_result import (
    ExactResult,
    FoundDeviations,
    Witness,
    best_of,
    does_not_pay,
    found_together,
    pays,
    tried_by_agent,
)
from cloneproof.analysis.audit.strategies import enclose, search_vectors, witnesses
from cloneproof.analysis.audit.theorems import scan_theorem
from cloneproof.analysis.deviations import CopiesOf, Split, Variants, columns_of, honesty, splits, wider_splits
from cloneproof.analysis.gain import (
    Finding,
    PairedSampling,
    Payoff,
    compared,
    exact_payoffs,
    gain_columns,
    sample_worlds,
    sampled_gain,
)
from cloneproof.analysis.search import Answers, Search, run_search
from cloneproof.bounds import novelty_gain_ceiling, variant_gain_ceiling
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.monte_carlo.statistics import Bounds
from cloneproof.errors import EngineError, OutOfTimeError
from cloneproof.market.market import Agent, full_copies
from cloneproof.mechanisms.online.slots import passing_count

SAMPLED: Final = frozenset(("informed", "variants", "withholding"))  # what is sampled if no exact engine applies
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
    variants: NearCopyGain | None = None
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
        if "copy-cost" in asked:
            self._copy_cost()
        if "withholding" in asked and self.found.by_scan:
            self._scan_withholding()
        if "informed" in asked:
            self.informed, notes = informed_gain(self.found.results, self.search, self.clock)
            self.notes += notes[:3]
            if self.informed is not None:
                self.notes.append(self._informed_words(self.informed))
        if "variants" in asked:
            self._variants()
        apart = {"informed": self.informed, "variants": self.variants}
        computed = {"copy-cost", *self.deviations, *(name for name, gain in apart.items() if gain is not None)}
        for name in sorted(asked - computed):
            why = next((note for note in self.notes if name in note), "interrupted")
            self.missing[name] = why.removeprefix(f"{name}: ")

    def _withholding(self) -> None:
        """Try lists that leave something out: by the engine that evaluated copies, or one or all but one by samples."""
        clock, results, tried = self.clock, self.found.results, list[Witness]()
        for together in found_together(self.exact):
            vectors = withholding_vectors(together[0].case.kinds, self.search.copies)
            tried += chain(*tried_by_agent(search_vectors(together, vectors, [], clock)))
        sampled = [result.case for result in results if result.engine == "sampled"]
        cases = {case.name: case for case in sampled if case.agent.count > 1}  # each at its last horizon
        for case, in_time in clock.shared_by(cases.values()):
            tried += sampled_withholding(case, self.search, in_time)
        if not tried:
            why = "nothing to try, the agents have one original each"
            if cases or len(self.exact) + len(sampled) < len(results):
                spent, none = "the budget was spent before any was sampled", "neither an engine nor samples apply here"
                why = spent if cases else none
            self.notes.append(f"withholding: {why}")
            return
        best = best_of(tried)
        case_of = {(result.agent, result.case.horizon): result.case for result in self.exact}
        if (best.agent, best.horizon) in case_of:
            with clock.for_engines(), suppress(OutOfTimeError):
                best = enclose(case_of[best.agent, best.horizon], best) or best
        self.deviations["withholding"] = best
        self.notes.append(f"withholding: registering {best.copies} as {best.agent} {self._worth(best)}")

    def _scan_withholding(self) -> None:
        """Withholding under the scan theorem: one original left out, and all but one, if they are evaluated."""
        tried: list[Witness] = []
        for results in found_together(self.exact):
            count = results[0].case.kinds.count
            vectors = {(*(1,) * (count - 1), 0), (1, *(0,) * (count - 1))} if count > 1 else set()
            for vector in sorted(vectors, reverse=True):
                tried += witnesses(results, vector)
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
        for results in found_together(self.exact):
            witness, left_out = best_split(results, accounts, self.clock)
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

    def _copy_cost(self) -> None:
        smallest = smallest_copy_cost(chain(*tried_by_agent(self.found.results)))
        if smallest is None:
            self.notes.append("copy cost: none is needed, no deviation tried pays")
            return
        cost, witness = smallest
        self.deviations["copy cost"] = witness
        self.notes.append(
            f"copy cost: {cost.value:.6g} for each extra arm (error {cost.error:.1e}) makes honesty the best of "
            f"what was tried; copies {witness.copies} of {witness.agent} set it"
        )

    def _variants(self) -> None:
        """Find the largest relative gain of an agent with variants at the last horizon, or who was not evaluated."""
        last, gains, notes = [together[-1].case for together in found_together(self.found.results)], [], []
        for case, in_time in self.clock.shared_by(last):
            try:
                gains.append(variant_gain(case, self.search, in_time))
            except EngineError as refusal:
                notes.append(f"variants: {case.name} was not evaluated: {refusal.reason}")
        self.notes += notes[:3]
        if gains:
            self.variants = best = max(gains, key=lambda gain: gain.relative_gain)
            how = f"of spread {best.spread:g}" if best.new is None else f"of which each is new with chance {best.new:g}"
            listed = f"{best.variants} of each original {how}, as {best.agent}"
            self.notes.append(f"variants: {listed}: {self._worth(best)}")

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

    def _worth(self, deviation: Witness | NearCopyGain) -> str:
        return f"{_change(deviation)}: {self._judged(deviation)}"

    def _judged(self, deviation: Finding) -> str:
        if pays(deviation, self.question.tolerance):
            return "it pays"
        return "it does not pay" if does_not_pay(deviation, self.question.tolerance) else "undecided"


def _change(deviation: Witness | NearCopyGain) -> str:
    gain, relative = deviation.gain.value, deviation.relative_gain
    return f"changes the payoff by {gain:+.6g} ({relative:+.2%}) at horizon {deviation.horizon}"


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


def sampled_withholding(case: AuditCase, search: Search, clock: Deadline) -> list[Witness]:
    """Return what leaving out one original, and all but one, gains by pairs of runs: all hold together at 99 %."""
    count, tried = case.kinds.count, []
    vectors = {(*(1,) * k, 0, *(1,) * (count - 1 - k)) for k in range(count)}
    vectors |= {(*(0,) * k, 1, *(0,) * (count - 1 - k)) for k in range(count)}
    vectors = {case.kinds.sorted(vector) for vector in vectors}
    for vector, in_time in clock.shared_by(sorted(vectors, reverse=True)):
        sampling = PairedSampling(
            search.runs, 1 - 0.01 / len(vectors), search.seed, seconds=in_time.left,
            bounds=search.bounds or "asymptotic", device=search.device,
        )  # fmt: skip
        withheld = CopiesOf(case.name, vector)
        drawn = sampled_gain(case.market, case.played, withheld, sampling)
        if drawn.runs:
            tried.append(Witness.of(withheld, case.market, drawn.finding))
    return tried


def variant_gain(case: AuditCase, search: Search, clock: Deadline) -> NearCopyGain:
    """Return what an agent gains that registers variants of each of its originals, and the ceiling if one is known."""
    market, number = case.market, search.variants
    variants = Variants(case.name, number, search.spread, search.new)
    worlds = [honesty(market, case.name).sampled(market), variants.sampled(market)]
    place, own = case.place, columns_of(market, case.name)
    bounded = search.new is None and not market.places and _distance_counts(case)

    def observe(drawn: FloatArray, levels: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
        columns = [*gain_columns(*(outcomes.served[:, place] for outcomes in played))]
        if bounded:
            means = worlds[1].means(drawn, levels)[:, own.start : own.start + case.agent.count * number]
            columns.append(_distance_ceilings(case, np.repeat(drawn[:, own], number, axis=1), means))
        return np.column_stack(columns)

    most = market.share * market.most_rounds
    bounds = [Bounds(-most, most), Bounds(0.0, most), Bounds(0.0, most), Bounds(0.0, most)][: 3 + bounded]
    gain, honest, paid, *ceilings = sample_worlds(market, case.mechanism, worlds, observe, bounds, search, clock)
    ceiling = next(iter(ceilings), None) if search.new is None else _novelty_ceiling(case, number, search.new)
    return NearCopyGain(honest, paid, gain, case.name, case.horizon, number, search.spread, search.new, ceiling)


def _distance_counts(case: AuditCase) -> bool:
    """Return whether the ceiling by distance is proven: a flat scan whose scores are counts of coins."""
    running = case.running
    flat = running.flat and not running.in_epochs
    return flat and running.arm.binarise and scan_theorem(case) is not None


def _distance_ceilings(case: AuditCase, originals: FloatArray, means: FloatArray) -> FloatArray:
    """Return the ceiling of each world, and no more than all rounds at its best mean."""
    rule, rounds = case.running.arm, case.market.share * case.horizon
    pulls, passing, lists = rule.explore, passing_count(rule), [originals, means]
    failing = [scipy.special.bdtr(passing - 1, pulls, listed).mean(axis=1) for listed in lists]
    tests = (np.maximum(*failing)[:, None] ** np.arange(rule.draws)).sum(axis=1)
    distances, both = np.abs(means - originals).max(axis=1), np.concatenate(lists, axis=1)
    ceilings = []
    for distance, low, high, expected in zip(distances, both.min(axis=1), both.max(axis=1), tests, strict=True):
        most = variant_gain_ceiling(float(distance), 1, pulls, float(low), float(high), float(expected))
        ceilings.append(rounds * min(most, float(high)))
    return np.array(ceilings)


def _novelty_ceiling(case: AuditCase, number: int, new: float) -> Estimate | None:
    """Return E[H_(l + N)] - H_l if copies and withholding never pay and the closed form takes all these markets."""
    if scan_theorem(case) is None:
        return None
    market, agent = case.market, case.agent
    payoffs = []
    for more in range(agent.count * number + 1):
        larger = Agent(agent.name, agent.count + more, agent.priors[0])
        bigger = market.with_agents([larger if other.name == agent.name else other for other in market.agents])
        try:
            paid = exact_payoffs([(bigger, case.mechanism)], honesty(bigger, agent.name), "closed-form")
        except EngineError:
            return None
        payoffs.append(paid[case.horizon].total)
    error = 2 * max(payoff.error for payoff in payoffs)
    most = novelty_gain_ceiling([payoff.value for payoff in payoffs], new)
    return replace(payoffs[0], value=most, error=error)
