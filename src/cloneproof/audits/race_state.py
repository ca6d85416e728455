"""The state of a race: what was drawn of each candidate, and what its pairs cost.

*Levels.* All statements of a race hold together at 1 - ALPHA:

- LOOKS * ALPHA: the intervals of the search, over all candidates together. Half of it is shared equally, half by rank:
  the first ones in the order in which they are planned have most, so that a slow race can decide without fresh pairs.
- HALF * ALPHA: confirmations. A candidate that seems to pay is sampled again from its own seed. These pairs are
  independent of what made it look good, so no union over all candidates is needed: the j-th candidate to be confirmed
  has the error level HALF * ALPHA * 2 / 3^j. Each level is shared by two estimates, the gain and the honest payoff.
  Of a black box, which is slow, the first list planned is fixed before anything is drawn: it needs no fresh pairs, and
  its look has the first of these levels.
- NONE * ALPHA: that *none* of the candidates gains more than x. This needs no union (an intersection-union test, Berger
  1982): the candidate with the largest true gain was fixed before anything was drawn, and the largest of all upper ends
  is at least its own. If some candidates were not looked at, the intervals of the search count instead.

*Generations.* Generation 0 is planned before anything is drawn; later ones are chosen by what earlier ones drew. Each
has its own seed, so given all earlier generations its candidates are fixed and its pairs independent of what chose
them, and both arguments hold conditionally. PLANNED of LOOKS and of NONE is for generation 0, and 2^-g of the rest for
generation g, so that the levels of all generations add up to at most NONE * ALPHA.

A look in short passes (`strata_of`) has SHORT of its candidate's level, and later whole passes have the rest: either
bounds the candidate. Every interval is a confidence sequence, so that it holds wherever pairs were spent and whenever
the race stopped.

*Forecasts*, on which no verdict rests. With n pairs of variance v and largest move c, a confidence sequence at level
alpha is about

    sqrt(2 L v / n) + c L / n,   L = ln(2 / alpha) + 1 (what its mixture of rates costs),

wide, so a gain that exceeds the tolerance by e shows after about 2 L v / e^2 + c L / e pairs. Of an asymptotic one
the second part is the room for what few pairs may have missed: with 1 + sqrt(2 L) for L, and the likely part of c.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof._lib.randomness import substream
from cloneproof.audits.deviations import CopyVector
from cloneproof.audits.gain import PairedSampling, PassLength, sampled_gain
from cloneproof.audits.question import AuditCase
from cloneproof.audits.search_result import SampledDeviation, Witness, does_not_pay, pays
from cloneproof.evaluation.precise import TENTH, THIRD
from cloneproof.runs.deadline import Deadline
from cloneproof.runs.estimate import BoundsName
from cloneproof.runs.job import strata_of
from cloneproof.runs.kernel import ChunkOutcomes, Outcomes, Runs
from cloneproof.runs.sampler import kernel_outcomes
from cloneproof.runs.statistics import RunTotals

# Error levels
ALPHA = 0.01  # All statements of a race hold together but for this probability.
HALF, NONE, LOOKS = 0.5, 0.4, 0.1  # Its parts for confirmations, for what none of the candidates gains, and for looks.
PLANNED = 0.9  # Planned candidates have this part of the latter two.
SHORT = 0.05  # A look in short passes has this part of its candidate's level.
OF_GAIN = 0.75  # The gain has this part of the level of a relative gain's upper end, the honest payoff the rest.
MIXTURE = 1.0  # The mixture of rates of a confidence sequence costs this much, in logarithms.

# Draws
FEW = 4  # Fewer pairs are never drawn at a time.
MANY_PASSES = 4  # From this many whole passes on they are drawn in place of short ones.
MOST_KEPT = 1 << 17  # This many runs of an honest world are kept; later ones are played again.
FIRST = 16  # A look has this many pairs.
GROWTH, MOST_GROWTH = 2, 8  # Pairs are multiplied by the first; by up to the second if none seem to pay.
SPARE = 1.1  # This multiple of what a forecast says is drawn.
RISES = 3.0  # A gain is clear if it is this many standard errors.
NEAR = 0.1  # A gain below this part of the tolerance is not pursued.
CONFIRMATIONS, GENERATIONS = 1, 2  # The streams of the seeds of confirmations and of generations.


def variance(totals: RunTotals) -> float:
    """Return the variance of the gain in one pass over the strata; of a single pass, that between its strata."""
    weights, count = np.array(totals.estimands.weights), totals.count
    bounds = totals.estimands.bounds[0]
    if count == 0 or (count == 1 and len(weights) == 1):
        return (bounds.most - bounds.least) ** 2 / 4
    if count == 1:
        sums = totals.sums[:, 0]
        spread = float(weights @ (sums - weights @ sums) ** 2)
        return spread * float((weights**2).sum())
    return float(totals.variances[0])


class RaceEntry(NamedTuple):
    """Copies of an agent at a horizon."""

    case: AuditCase
    copies: CopyVector

    @property
    def arms(self) -> int:
        return sum(map(sum, self.case.copies(self.copies).values()))


class Draw(NamedTuple):
    """A proposal: pairs of a candidate up to this number, from its generation's seed or, if `fresh`, to confirm it."""

    entry: RaceEntry
    pairs: int
    stratify: PassLength = True
    fresh: bool = False


@dataclass(frozen=True)
class Draws:
    """What was drawn of a candidate from one seed, at one level, and what a pair costs."""

    sample: SampledDeviation
    witness: Witness
    one_sided: Witness  # with the upper end of the gain, and the lower end of the honest payoff, at the level of "none"
    cost: float

    @property
    def totals(self) -> RunTotals:
        return self.sample.progress

    @property
    def pairs(self) -> int:
        return self.totals.runs

    @property
    def count(self) -> int:
        """Pairs, or whole passes over the strata."""
        return self.totals.count

    def excess(self, tolerance: float) -> float:
        """By how much the estimated gain exceeds the tolerance."""
        return self.witness.gain.value - tolerance * max(0.0, self.witness.honest.value)

    @cached_property
    def variance(self) -> float:
        """Variance of the gain in one pair of whole passes, from the variances inside the strata."""
        weights, count = np.array(self.totals.estimands.weights), self.totals.count
        if count < 2:
            return variance(self.totals) / float((weights**2).sum())
        means, squares = self.totals.sums[:, 0] / count, self.totals.squares[:, 0] / count
        return float(weights @ np.maximum(0.0, squares - means**2)) * count / (count - 1)

    @cached_property
    def error(self) -> float:
        return math.sqrt(variance(self.totals) / max(1, self.totals.count))

    def pairs_until_known(self, excess: float, alpha: float, bounds: BoundsName) -> float:
        """Return the total pairs after which a gain of `excess` above the tolerance shows; infinite if not positive."""
        if excess <= 0:
            return math.inf
        log = math.log(2 / alpha) + MIXTURE
        return 2 * log * self.variance / excess**2 + self._rest(bounds, log) / excess

    def pairs_until_ruled_out(self, room: float, alpha: float, bounds: BoundsName) -> float:
        """Return the total pairs that bring the upper end of a gain down by `room`; infinite if not positive."""
        if room <= 0:
            return math.inf
        log = math.log(1 / alpha) + MIXTURE
        slope = math.sqrt(2 * log * self.variance)
        root = (slope + math.sqrt(slope**2 + 4 * self._rest(bounds, log) * room)) / (2 * room)
        return root**2

    def _rest(self, bounds: BoundsName, log: float) -> float:
        """Return n times the part of the half-width that does not come from the variance."""
        gains = self.totals.estimands.bounds[0]
        largest = (gains.most - gains.least) / 2  # what one pair of a whole pass adds at most
        if bounds == "distribution-free":
            return largest * log
        return self.totals.estimands.likely * largest * (1 + math.sqrt(2 * log))


def confirmation_level(alpha: float, rank: int) -> float:
    """Return the level of the candidate confirmed first, second, ..: two thirds, then slowly falling parts.

    >>> round(sum(confirmation_level(0.01, rank) for rank in range(1, 10**5)), 7)
    0.005
    """
    part = 2 / 3 if rank == 1 else 1 / (3 * (rank - 1) * rank)  # 1/2 + 1/6 + 1/12 + .. = 1
    return HALF * alpha * part


def generation_share(generation: int) -> float:
    """Return the part of a level that a generation of candidates has.

    >>> round(sum(generation_share(g) for g in range(60)), 12)
    1.0
    """
    return PLANNED if generation == 0 else (1 - PLANNED) * 2.0**-generation


class HonestRuns:
    """The outcomes of `play`, with those of honest worlds cached."""

    def __init__(self, play: ChunkOutcomes) -> None:
        self.play = play
        self.kept: dict[object, tuple[Runs, dict[int, FloatArray]]] = {}  # runs keep alive what the key identifies

    def __call__(self, runs: Runs, first: int, count: int) -> Outcomes:
        job = runs.job
        copied = any(number != 1 for numbers in job.copies.values() for number in numbers)
        if copied or first + count > MOST_KEPT:
            return self.play(runs, first, count)
        key = (id(job.market), id(runs.mechanism), job.seed, len(job.strata))
        _, rows = self.kept.setdefault(key, (runs, {}))
        missing = np.array([run for run in range(first, first + count) if run not in rows], dtype=int)
        for stretch in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1) if len(missing) else ():
            begin = int(stretch[0])
            rows |= enumerate(self.play(runs, begin, len(stretch)).rows, start=begin)
        table, agents = np.array([rows[run] for run in range(first, first + count)]), len(job.market.agents)
        return Outcomes(table[:, :agents], table[:, agents], table[:, agents + 1 :])


@dataclass
class Race:
    """What is known of each candidate, and what its pairs cost: arms times rounds."""

    tolerance: float
    seed: int
    alpha: float
    planned: Sequence[RaceEntry]
    most: int
    clock: Deadline
    play: ChunkOutcomes = kernel_outcomes
    bounds: BoundsName = "asymptotic"
    looks: dict[RaceEntry, Draws] = field(default_factory=dict)
    confirmations: dict[RaceEntry, Draws] = field(default_factory=dict)
    tried: bool = False  # whether pairs were asked for
    work: float = 0.0  # in the unit of cost
    pairs: int = 0  # drawn of all candidates
    generations: list[list[RaceEntry]] = field(init=False)  # planned, and then added
    numbers: dict[RaceEntry, int] = field(init=False)  # the generation of each
    ranks: dict[RaceEntry, int] = field(init=False)  # its place there

    def __post_init__(self) -> None:
        self.outcomes = HonestRuns(self.play)
        self.generations, self.numbers, self.ranks = [], {}, {}
        self.add(self.planned)
        markets = {id(entry.case.market): entry.case.market for entry in self.planned}
        self.strata = {key: len(strata_of(market).weights) for key, market in markets.items()}
        self.short = {key: len(strata_of(market, short=True).weights) for key, market in markets.items()}

    @property
    def candidates(self) -> list[RaceEntry]:
        return [entry for generation in self.generations for entry in generation]

    def add(self, entries: Sequence[RaceEntry]) -> None:
        self.numbers |= dict.fromkeys(entries, len(self.generations))
        self.ranks |= {entry: rank for rank, entry in enumerate(entries)}
        self.generations.append(list(entries))

    @property
    def done(self) -> bool:
        """Whether one surely pays, or time is over and one was tried at least."""
        return self.anybody_pays() or (self.tried and self.clock.spent)

    def evaluate(self, proposal: Draw) -> None:
        """Draw the pairs of a candidate."""
        entry, pairs, stratify, fresh = proposal
        drawn, self.tried = self.confirmations if fresh else self.looks, True
        draws = self._confirmed(entry, pairs, stratify) if fresh else self._searched(entry, pairs, stratify)
        if not draws.pairs:
            return  # no pair ended in time: there is nothing to know
        drawn[entry] = draws
        kind = "fresh pairs" if fresh else "pairs"
        self.tell(f"{entry.case.name}: {drawn[entry].pairs} {kind} of copies {entry.copies}")

    def _searched(self, entry: RaceEntry, pairs: int, stratify: PassLength) -> Draws:
        """Draw from the seed of the candidate's generation; whole passes replace short ones."""
        before, whole = self.looks.get(entry), self.strata[id(entry.case.market)]
        if before is not None:
            stratify = self.passes(entry, before.totals)
            if stratify is not True and whole > 1 and pairs >= MANY_PASSES * whole:
                before, stratify = None, True
        number = self.numbers[entry]
        seed = self.seed if number == 0 else substream(GENERATIONS, self.seed, number) >> 1
        return self.draw(entry, pairs, before, seed, self.look_level(entry) * self.share(entry, stratify), stratify)

    def look_level(self, entry: RaceEntry) -> float:
        """Return the level of a candidate's interval in the search."""
        if self.confirms_first and entry == self.planned[0]:
            return confirmation_level(self.alpha, 1)
        rank, number = self.ranks[entry], self.numbers[entry]
        part = 0.5 / len(self.generations[number]) + 0.5 / ((rank + 1) * (rank + 2))
        return LOOKS * self.alpha * generation_share(number) * part

    def _confirmed(self, entry: RaceEntry, pairs: int, stratify: PassLength) -> Draws:
        """Draw from a seed of its own, at a level that falls with the number of candidates confirmed before."""
        fresh = self.confirmations.get(entry)
        if fresh is not None:
            return self.draw(entry, pairs, fresh, fresh.sample.seed, 2 * (1 - fresh.sample.confidence), stratify)
        rank = self.next_rank
        seed = substream(CONFIRMATIONS, self.seed, rank) >> 1
        return self.draw(entry, pairs, None, seed, confirmation_level(self.alpha, rank), stratify)

    @property
    def confirms_first(self) -> bool:
        """Whether the first list planned is confirmed by its look."""
        return bool(self.planned) and self.planned[0].case.slow

    @property
    def next_rank(self) -> int:
        """Rank of the next candidate to be confirmed (`confirmation_level`)."""
        return len(self.confirmations) + 1 + self.confirms_first

    def draw(
        self, entry: RaceEntry, pairs: int, before: Draws | None, seed: int, level: float, stratify: PassLength
    ) -> Draws:
        """Draw the candidate's pairs up to a number, or as many as there is time for."""
        case = entry.case
        if before is not None:
            stratify = self.passes(entry, before.totals)
        sampling = PairedSampling(
            pairs, 1 - level / 2, seed, stratify, False, self.clock.left,
            resume=None if before is None else before.totals, outcomes=self.outcomes, bounds=self.bounds,
        )  # fmt: skip
        deviation = case.deviation(entry.copies)
        gain = sampled_gain(case.market, case.mechanism, deviation, sampling)
        done = gain.runs - (0 if before is None else before.pairs)
        cost = float(entry.arms * case.horizon)
        self.work += cost * done
        self.pairs += done
        sample = SampledDeviation(
            case.name, entry.copies, case.market, case.mechanism, seed, sampling.confidence, gain.progress, self.bounds
        )
        witness = Witness.of(deviation, case.market, gain.finding)
        # Two statements come from the same pairs: an interval at the candidate's own level, and an upper end at the
        # level of "none gains more", which needs no union over candidates. Both are confidence sequences, so that it
        # does not matter when the race stops or how often a candidate was continued.
        none = NONE * self.alpha * generation_share(self.numbers[entry])  # of it gains more than the largest end
        return Draws(sample, witness, self.one_sided(entry, witness, gain.progress, none), cost)

    def passes(self, entry: RaceEntry, totals: RunTotals) -> PassLength:
        length, market = len(totals.estimands.weights), id(entry.case.market)
        return "short" if 1 < length < self.strata[market] else length > 1

    def share(self, entry: RaceEntry, stratify: PassLength) -> float:
        """Return the part of a candidate's level for pairs drawn in such passes."""
        if self.strata[id(entry.case.market)] == 1:
            return 1.0
        return 1 - SHORT if stratify is True else SHORT

    def one_sided(self, entry: RaceEntry, witness: Witness, totals: RunTotals, level: float) -> Witness:
        """Return the witness with an upper end of the relative gain that holds at that level."""
        level *= self.share(entry, self.passes(entry, totals))
        gain = float(totals.half_widths(2 * OF_GAIN * level, self.bounds)[0])
        honest = float(totals.half_widths(2 * (1 - OF_GAIN) * level, self.bounds)[1])
        return replace(witness, gain=replace(witness.gain, error=gain), honest=replace(witness.honest, error=honest))

    def anybody_pays(self) -> bool:
        """Return whether a gain is surely above the tolerance."""
        drawn = [*self.looks.values(), *self.confirmations.values()]
        return any(pays(draws.witness, self.tolerance) for draws in drawn)

    def best_of_case(self, case: AuditCase) -> RaceEntry | None:
        """Return the deviation of a case with the largest gain minus a standard error."""
        seen = [entry for entry in self.looks if entry.case is case]
        return max(seen, key=lambda entry: self.looks[entry].witness.gain.value - self.looks[entry].error, default=None)

    def gain_rises(self, entry: RaceEntry) -> bool:
        """Return whether the gain is clearly positive, or above that of half the copies, and not far from paying."""
        draws = self.looks[entry]
        gain, error = draws.witness.gain.value, RISES * draws.error
        near = NEAR * self.tolerance * max(0.0, draws.witness.honest.value)
        half = self.looks.get(RaceEntry(entry.case, tuple(math.ceil(number / 2) for number in entry.copies)))
        if gain > max(error, near):
            return True
        rise = 0.0 if half is None else gain - half.witness.gain.value
        return half is not None and rise > error + RISES * half.error and gain + rise > near

    def gain_not_ruled_out(self, entry: RaceEntry) -> float:
        """Return the largest relative gain that is not ruled out."""
        witness = self.looks[entry].one_sided
        return witness.gain_at_most / max(witness.honest.value, 1e-300)

    def not_ruled_out(self, among: Iterable[RaceEntry]) -> list[RaceEntry]:
        """Return the candidates looked at that are not known not to pay."""
        seen = (entry for entry in among if entry in self.looks)
        return [entry for entry in seen if not does_not_pay(self.looks[entry].one_sided, self.tolerance)]

    def cost_until_it_pays(self, entry: RaceEntry) -> float:
        """Return the forecast cost of knowing that it pays, if its gain is a standard error larger than it seems."""
        draws = self.looks[entry]
        excess = draws.excess(self.tolerance) + draws.error
        return draws.cost * draws.pairs_until_known(excess, self.alpha, self.bounds)

    def is_precise(self, entry: RaceEntry) -> bool:
        """Return whether a gain is known to a tenth of honest pay or half of a finer tolerance, or to its third."""
        gain, honest = self.looks[entry].one_sided.gain, self.looks[entry].witness.honest
        part = min(TENTH, self.tolerance / 2) if self.tolerance else TENTH
        return gain.error <= max(part * honest.value, THIRD * abs(gain.value))

    def first_draw(self, entry: RaceEntry) -> Draw:
        """Return a first look."""
        strata = self.short[id(entry.case.market)]
        short = strata < self.strata[id(entry.case.market)]
        return Draw(entry, min(max(FIRST, strata), self.most), "short" if short else True)

    def draw_more(self, entry: RaceEntry) -> Iterator[Draw]:
        """Propose more pairs of a candidate, if it may have more."""
        pairs = min(self.most, self.wanted(self.looks[entry]))
        if pairs > self.looks[entry].pairs:
            yield Draw(entry, pairs)

    def wanted(self, draws: Draws) -> int:
        """Return twice the pairs, or the forecast number until it surely does not pay."""
        level = NONE * OF_GAIN * self.alpha
        forecast = draws.pairs_until_ruled_out(-draws.excess(self.tolerance), level, self.bounds)
        if math.isinf(forecast):
            return GROWTH * max(1, draws.pairs)
        least = draws.pairs + max(1, draws.pairs // 4)
        return int(max(least, min(SPARE * forecast, MOST_GROWTH * draws.pairs)))

    def most_precise(self, entry: RaceEntry) -> Draws:
        """Return the statement about a candidate: from its fresh pairs if these are more precise."""
        look, fresh = self.looks[entry], self.confirmations.get(entry)
        if fresh is None:
            return look
        better = pays(fresh.witness, self.tolerance) or fresh.witness.gain.error <= look.witness.gain.error
        return fresh if better else look

    def tell(self, what: str) -> None:
        """Report progress: the candidates looked at."""
        self.clock.tell(len(self.looks), len(self.candidates), what)
