"""Best response by sampling, where no exact engine applies: search, then confirm.

1. *Looks.* A few pairs of each candidate, spread over agents and rungs with large rungs early (`look_order`).
2. *Successive halving* (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016): the half of the candidates that
   promises most gets twice the pairs, again and again.
3. *Optimism.* Then the pairs go to whoever leaves room for the largest gain, so that the bound of what the tried
   deviations gain falls.
4. *Confirmation*, at any time: whenever a candidate seems to pay, and to be known to for no more than the work so far
   (or half of what is left of a budget, where it stands out), it is sampled afresh, from another seed. What made it
   look good is no part of these pairs, so no union over all candidates is needed: the j-th candidate to be confirmed
   has the error level HALF * ALPHA / 2^j.

The intervals of steps 1 to 3 hold at LOOKS * ALPHA over all candidates together. Each level is shared by two estimates,
the gain and the honest payoff that a tolerance is relative to.

That *none* of the candidates gains more than x needs no union (an intersection-union test, Berger 1982): let j be the
candidate of the largest relative gain. Whichever it is, it was fixed before anything was drawn, and the largest of all
upper ends is at least its own. So the largest of upper ends at NONE * ALPHA each bounds the largest gain at NONE *
ALPHA, if every candidate was looked at; where some were not, which ones may have to do with what was drawn, and the
level is shared among all of them after all.

Every interval is a confidence sequence, so all statements of an audit hold together at 1 - ALPHA, wherever pairs were
spent and whenever it stopped. Honest runs are played once for all candidates. It ends when a gain is surely above the
tolerance, every candidate surely is not, or runs or budget are spent.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from cloneproof._randomness import substream
from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.judgement import does_not_pay, pays, relative_gain_at_most
from cloneproof.analysis.audit.search.forecast import pairs_until_known, pairs_until_ruled_out, variance
from cloneproof.analysis.audit.search.honest_runs import HonestRuns
from cloneproof.analysis.audit.search.look_order import in_turn, rung_rank
from cloneproof.analysis.audit.search.results import SampledResult
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness
from cloneproof.analysis.gain import sampled_gain
from cloneproof.analysis.paired_runs import PairedSampling
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.job import Job
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, kernel_outcomes
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals
from cloneproof.engines.monte_carlo.statistics.strata import strata_of
from cloneproof.market.copies import full_copies
from cloneproof.mechanisms.mechanism import Mechanism

ALPHA = 0.01
HALF, NONE, LOOKS = 0.5, 0.4, 0.1  # of it: for confirmations, for what none of the candidates gains, for looks
OF_GAIN = 0.75  # of the level of an upper end of a relative gain: for the gain; the rest for the honest payoff
FIRST, FEW = 16, 4  # pairs of a look; of one that is dear
GROWTH, MOST_GROWTH = 2, 8  # of a candidate's pairs from turn to turn, where it may pay; where it does not
SPARE = 1.1  # of what a forecast says
RUNS = 2048  # pairs of a candidate at most, if neither runs nor a budget is given
NO_LIMIT = 1 << 30
LOOK, DEAR_LOOK = 0.02, 0.15  # of what is left of a budget: for one look, and for one with few pairs
CLEAR = 2.0  # standard errors
TURN = 0.5  # of what is left, for one turn
AHEAD_ARMS = 64  # of a candidate whose first runs are drawn with those of all others
LONGEST_PASS = 64  # strata that a look takes in, under a budget


class RaceEntry(NamedTuple):
    """Copies of an agent at a horizon."""

    case: AuditCase
    copies: CopyVector

    @property
    def arms(self) -> int:
        """The arms of everybody together."""
        return sum(map(sum, self.case.copies(self.copies).values()))


@dataclass(frozen=True)
class Draws:
    """What was drawn of a candidate from one seed, at one level, and what a pair costs."""

    sample: SampledDeviation
    witness: Witness
    alone: Witness  # with the upper end of the gain, and the lower end of the honest payoff, at the level of "none"
    cost: float

    @property
    def totals(self) -> RunTotals:
        """The sums so far."""
        return self.sample.progress

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.totals.runs

    def excess(self, tolerance: float) -> float:
        """By how much the gain seems to exceed the tolerance."""
        return self.witness.gain.value - tolerance * max(0.0, self.witness.honest.value)

    @cached_property
    def variance(self) -> float:
        """The variance of one observation of the gain, as met."""
        return variance(self.totals)

    @property
    def error(self) -> float:
        """The standard error of the gain."""
        return math.sqrt(self.variance / max(1, self.totals.count))

    def pairs_until_known(self, excess: float, alpha: float, bounds: BoundsName) -> float:
        """The pairs in all after which a gain of `excess` above the tolerance shows."""
        return pairs_until_known(self.totals.estimands, self.variance, excess, alpha, bounds)


@dataclass
class Race:
    """What is known of each candidate, and what its pairs cost: seconds under a budget, else arms times rounds."""

    tolerance: float
    seed: int
    alpha: float
    candidates: Sequence[RaceEntry]
    most: int
    clock: Deadline
    budget: float | None
    play: ChunkOutcomes[Any] = kernel_outcomes
    bounds: BoundsName = "distribution-free"
    looks: dict[RaceEntry, Draws] = field(default_factory=dict)
    confirmations: dict[RaceEntry, Draws] = field(default_factory=dict)
    work: float = 0.0  # in the unit of cost
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.budget)
        self.outcomes = HonestRuns[Any](self.play)
        markets = {id(entry.case.market): entry.case.market for entry in self.candidates}
        self.strata = {key: len(strata_of(market).weights) for key, market in markets.items()}

    def draw(
        self, entry: RaceEntry, pairs: int, before: Draws | None, seed: int, level: float, stratify: bool
    ) -> Draws:
        """The candidate with so many pairs in all, or as many as the budget affords."""
        case, begun = entry.case, time.perf_counter()
        if before is not None:
            stratify = len(before.totals.estimands.weights) > 1
        sampling = PairedSampling(
            pairs, None, 1 - level / 2, seed, stratify, False, self.deadline.left,
            resume=None if before is None else before.totals, outcomes=self.outcomes, bounds=self.bounds,
        )  # fmt: skip
        gain = sampled_gain(case.market, case.played, case.name, case.copies(entry.copies), sampling)
        done = gain.runs - (0 if before is None else before.pairs)
        seconds = (time.perf_counter() - begun) / max(1, done)
        cost = float(entry.arms * case.horizon) if self.budget is None else max(seconds, 1e-9)
        self.work += cost * done
        sample = SampledDeviation(
            case.name, entry.copies, case.market, case.mechanism, seed, sampling.confidence, gain.progress
        )
        witness = Witness(case.name, entry.copies, gain.honest, gain.copied, gain.estimate, case.market, gain.copies)
        return Draws(sample, witness, self._alone(witness, gain.progress, NONE * self.alpha), cost)

    def _alone(self, witness: Witness, totals: RunTotals, level: float) -> Witness:
        """The witness whose one end of the relative gain, the upper one, holds at that level."""
        gain = float(totals.half_widths(2 * OF_GAIN * level, self.bounds)[0])
        honest = float(totals.half_widths(2 * (1 - OF_GAIN) * level, self.bounds)[1])
        return replace(witness, gain=replace(witness.gain, error=gain), honest=replace(witness.honest, error=honest))

    # Steps 1 to 3: the search.

    def look(self, entry: RaceEntry) -> bool:
        """A first look, unless it is too dear for what is left; whether there was one."""
        strata = self.strata[id(entry.case.market)]
        pairs, stratify = max(FIRST, strata), True
        if self.budget is not None:
            left, cost = self.deadline.left or 0.0, self._guessed_cost(entry)
            stratify = strata <= LONGEST_PASS and strata * cost <= LOOK * left
            pairs = max(FIRST, strata) if stratify else FIRST
            if not self.looks or pairs * cost > LOOK * left:  # the first one tells what pairs cost
                pairs, stratify = FEW, False
            if self.looks and pairs * cost > DEAR_LOOK * left:
                return False
        self.search(entry, min(pairs, self.most), stratify)
        return True

    def search(self, entry: RaceEntry, pairs: int, stratify: bool = True) -> None:
        """Bring a candidate to so many pairs."""
        level = LOOKS * self.alpha / len(self.candidates)
        self.looks[entry] = self.draw(entry, pairs, self.looks.get(entry), self.seed, level, stratify)
        self.tell(f"{entry.case.name}: {self.looks[entry].pairs} pairs of copies {entry.copies}")

    def _guessed_cost(self, entry: RaceEntry) -> float:
        """Of a pair of an unknown candidate, in proportion to the arms and rounds of the nearest one that is known."""
        if not self.looks:
            return 0.0
        near = min(self.looks, key=lambda other: abs(math.log(other.arms / entry.arms)))
        return self.looks[near].cost * entry.arms / near.arms * entry.case.horizon / near.case.horizon

    def open(self) -> list[RaceEntry]:
        """Those of whom it is not known that they do not pay."""
        return [entry for entry in self.looks if not does_not_pay(self.looks[entry].alone, self.tolerance)]

    def promise(self, entry: RaceEntry) -> float:
        """What it would cost to know that it pays, if its gain is a standard error more than it seems."""
        draws = self.looks[entry]
        excess = draws.excess(self.tolerance) + draws.error
        return draws.cost * draws.pairs_until_known(excess, self.alpha, self.bounds)

    def room(self, entry: RaceEntry) -> float:
        """The largest relative gain that is not ruled out."""
        witness = self.looks[entry].alone
        return witness.gain_at_most / max(witness.honest.value, 1e-300)

    def _wanted(self, draws: Draws) -> int:
        """Twice the pairs; or as many as it seems to take until it surely does not pay."""
        room = -draws.excess(self.tolerance)
        level = NONE * OF_GAIN * self.alpha
        forecast = pairs_until_ruled_out(draws.totals.estimands, draws.variance, room, level, self.bounds)
        if math.isinf(forecast):
            return GROWTH * max(1, draws.pairs)
        least = draws.pairs + max(1, draws.pairs // 4)
        return int(max(least, min(SPARE * forecast, MOST_GROWTH * draws.pairs)))

    def affordable(self, entry: RaceEntry) -> int:
        """The pairs of its next turn in all; no more than it has where the budget affords nothing worth a turn."""
        draws = self.looks[entry]
        wanted = min(self.most, self._wanted(draws))
        if self.deadline.left is None:
            return wanted
        within = draws.pairs + int(self.deadline.left * TURN / draws.cost)
        return min(wanted, within) if within >= draws.pairs + max(1, draws.pairs // 4) else draws.pairs

    def turn(self, entry: RaceEntry) -> bool:
        """More pairs, as far as they are affordable; whether there were any."""
        pairs, before = self.affordable(entry), self.looks[entry].pairs
        if pairs <= before:
            return False
        self.search(entry, pairs)
        return self.looks[entry].pairs > before

    # Step 4: the confirmation.

    def found(self) -> bool:
        """Whether somebody surely pays, by the search itself or after a confirmation that is near."""
        return self.anybody_pays() or self.confirm_if_near()

    def confirm_if_near(self) -> bool:
        """Sample afresh whoever seems to pay, and to be known to for no more than the work so far; whether one does."""
        while not self.deadline.spent:
            costs = {entry: self.cost_of_confirmation(entry) for entry in self.looks}
            entry = min(costs, key=lambda each: costs[each], default=None)
            if entry is None or costs[entry] > self.worth_confirming(entry):
                return False
            self.confirm(entry)
            if self.anybody_pays():
                return True
        return False

    def worth_confirming(self, entry: RaceEntry) -> float:
        """The most that a confirmation may cost: the work so far; half of what is left, for what stands out."""
        draws = self.confirmations.get(entry) or self.looks[entry]
        clear = draws.excess(self.tolerance) > CLEAR * draws.error
        return max(self.work, (self.deadline.left or 0.0) / 2) if clear else self.work

    def cost_of_confirmation(self, entry: RaceEntry) -> float:
        """The forecast, from the fresh pairs where there are some."""
        fresh = self.confirmations.get(entry)
        draws = fresh or self.looks[entry]
        excess = draws.excess(self.tolerance) - draws.error / 2
        wanted = draws.pairs_until_known(excess, self.alpha * HALF / 4, self.bounds)
        done = 0 if fresh is None else fresh.pairs
        if done >= self.most or wanted > 4 * self.most:
            return math.inf
        return draws.cost * max(wanted - done, done / 4, 1.0)

    def confirm(self, entry: RaceEntry) -> None:
        """Half of the fresh pairs that are still forecast, at least a quarter more than there are."""
        fresh = self.confirmations.get(entry)
        done = 0 if fresh is None else fresh.pairs
        cost = (fresh or self.looks[entry]).cost
        pairs = min(self.most, done + max(FEW, done // 4, math.ceil(self.cost_of_confirmation(entry) / cost / 2)))
        if fresh is None:
            rank, seed = len(self.confirmations) + 1, substream(1, self.seed) >> 1
            level, stratify = HALF * self.alpha * 2.0**-rank, pairs >= self.strata[id(entry.case.market)]
        else:
            level, seed, stratify = 2 * (1 - fresh.sample.confidence), fresh.sample.seed, True
        self.confirmations[entry] = self.draw(entry, pairs, fresh, seed, level, stratify)
        self.tell(f"{entry.case.name}: {self.confirmations[entry].pairs} fresh pairs of copies {entry.copies}")

    def known(self, entry: RaceEntry) -> Draws:
        """What there is to say of a candidate: its fresh pairs if they know more, or that it pays."""
        look, fresh = self.looks[entry], self.confirmations.get(entry)
        if fresh is None:
            return look
        better = pays(fresh.witness, self.tolerance) or fresh.witness.gain.error <= look.witness.gain.error
        return fresh if better else look

    def anybody_pays(self) -> bool:
        """Whether a gain is surely above the tolerance."""
        drawn = [*self.looks.values(), *self.confirmations.values()]
        return any(pays(draws.witness, self.tolerance) for draws in drawn)

    def relative_gain_at_most(self, entry: RaceEntry) -> float | None:
        """Of the upper ends whose largest bounds what any candidate gains."""
        draws = self.looks[entry]
        if len(self.looks) == len(self.candidates):
            return relative_gain_at_most(draws.alone)
        level = NONE * self.alpha / len(self.candidates)
        return relative_gain_at_most(self._alone(draws.witness, draws.totals, level))

    def tell(self, what: str) -> None:
        """Report progress: the part of the budget that is spent, or the candidates looked at."""
        if self.budget is not None:
            self.clock.tell(min(100, int(100 * self.deadline.seconds / self.budget)), 100, what)
        else:
            self.clock.tell(len(self.looks), len(self.candidates), what)

    def results(self) -> dict[AuditCase, SampledResult]:
        """What is known, case by case; an honest payoff is that of the candidate that knows it best."""
        results = {entry.case: SampledResult((entry.case,)) for entry in self.candidates}
        for entry in self.looks:
            result, draws = results[entry.case], self.known(entry)
            result.evaluated[entry.copies], result.samples[entry.copies] = [draws.witness], draws.sample
            result.at_most[entry.copies] = self.relative_gain_at_most(entry)
            best = result.honest.get(entry.case.horizon)
            if best is None or draws.witness.honest.error < best.error:
                result.honest[entry.case.horizon] = draws.witness.honest
        why = f"too dear for a budget of {self.budget or 0.0:.3g} s"
        if self.anybody_pays():
            why = "the search ended with one that pays"
        for entry in self.candidates:
            if entry not in self.looks:
                results[entry.case].left_out[entry.copies] = why
        return results


def race(
    candidates: Sequence[RaceEntry],
    tolerance: float,
    runs: int | None,
    seed: int,
    clock: Deadline,
    budget: float | None,
    alpha: float = ALPHA,
    play: ChunkOutcomes[Any] = kernel_outcomes,
    bounds: BoundsName = "distribution-free",
) -> list[SampledResult]:
    """Sampled gains of the candidates, a result for each case; all of it holds at 1 - alpha."""
    if budget is not None and candidates:
        clock.tell(0, 100, "compiling")
        _compile(candidates[0], seed, play)
        if candidates[0].case.box is not None and clock.left is not None:
            budget = max(clock.left, 1e-3)  # starting processes counts: nothing is compiled for good
    _draw_first_runs(candidates, seed, play)
    most = runs if runs is not None else (RUNS if budget is None else NO_LIMIT)
    state = Race(tolerance, seed, alpha, candidates, most, clock, budget, play, bounds)
    _search(state, _in_order(candidates))
    return list(state.results().values())


def _search(state: Race, waiting: list[RaceEntry]) -> None:
    """Looks, halving, optimism, with confirmations in between, until somebody surely pays or nothing is left."""
    dear: list[RaceEntry] = []
    for entry in waiting:
        if state.looks and state.deadline.spent:
            return
        if not state.look(entry):
            dear.append(entry)
        elif state.found():
            return
    if _halve(state) or state.found():
        return
    while not state.deadline.spent and _most_open(state, dear):
        if state.found():
            return


def _halve(state: Race) -> bool:
    """Twice the pairs for the half that promises most, again and again; whether somebody surely pays."""
    left = sorted(state.open(), key=state.promise)
    while len(left) > 1:
        left = left[: len(left) // 2]
        for entry in left:
            if state.turn(entry) and state.found():
                return True
        left.sort(key=state.promise)
    return False


def _most_open(state: Race, dear: list[RaceEntry]) -> bool:
    """A turn of whoever leaves room for the largest gain, or else a look that was too dear; whether there was any."""
    by_room = sorted(state.open(), key=state.room, reverse=True)
    return any(state.turn(entry) for entry in by_room) or (bool(dear) and state.look(dear.pop(0)))


def _in_order(candidates: Sequence[RaceEntry]) -> list[RaceEntry]:
    by_case: dict[AuditCase, list[RaceEntry]] = {}
    for entry in candidates:
        by_case.setdefault(entry.case, []).append(entry)
    return in_turn(sorted(of_case, key=lambda entry: rung_rank(entry.copies)) for of_case in by_case.values())


def _draw_first_runs(candidates: Sequence[RaceEntry], seed: int, play: ChunkOutcomes[Any]) -> None:
    """Where runs are drawn ahead, on a card: those of all looks in one launch, but for the longest ladders."""
    expect = getattr(play, "expect", None)
    if expect is None:
        return
    jobs = []
    for entry in candidates:
        strata = strata_of(entry.case.market).means
        if isinstance(entry.case.played, Mechanism) and entry.arms <= AHEAD_ARMS:
            for copies in (entry.case.copies(entry.copies), full_copies(entry.case.market.agents, None)):
                jobs.append(Job(entry.case.market, entry.case.played, copies, seed, strata))
    expect(jobs)


def _compile(entry: RaceEntry, seed: int, play: ChunkOutcomes[Any]) -> None:
    """Play a pair over few rounds, so that what has to be compiled is compiled before the budget's clock starts."""
    case = entry.case
    market = case.market.with_horizon(min(case.horizon, 64))
    twice = case.copies(tuple(min(2, number) for number in entry.copies))
    sampled_gain(market, case.played, case.name, twice, PairedSampling(1, seed=seed, stratify=False, outcomes=play))
