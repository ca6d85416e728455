"""The state of a race: what was drawn of each candidate, and what its pairs cost.

*Levels.* All statements of a race hold together at 1 - ALPHA:

- LOOKS * ALPHA: the intervals of the search, over all candidates together.
- HALF * ALPHA: confirmations. A candidate that seems to pay is sampled again from its own seed. These pairs are
  independent of what made it look good, so no union over all candidates is needed: the j-th candidate to be confirmed
  has the error level HALF * ALPHA * 2 / 3^j. Each level is shared by two estimates, the gain and the honest payoff.
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

wide, so a gain that exceeds the tolerance by e shows after about 2 L v / e^2 + c L / e pairs. An asymptotic one lacks
the second part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof._clock import now
from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.question import AuditCase
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness, pays
from cloneproof.analysis.gain import PairedSampling, PassLength, sampled_gain
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.job import Outcomes, strata_of
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, J, kernel_outcomes
from cloneproof.engines.monte_carlo.statistics import RunTotals

MIXTURE = 1.0  # what the mixture of rates of a confidence sequence costs, in logarithms


def variance(totals: RunTotals) -> float:
    """The variance of the gain in one observation (a pass over the strata); for one pass, that between its strata."""
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

    @property
    def attacks(self) -> bool:
        """Whether it is a replication; worlds without some originals are played only as bounds for others."""
        return 0 not in self.copies


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

    def excess(self, tolerance: float) -> float:
        """By how much the estimated gain exceeds the tolerance."""
        return self.witness.gain.value - tolerance * max(0.0, self.witness.honest.value)

    @cached_property
    def variance(self) -> float:
        """The variance of the gain in one pair of whole passes, from the variances inside the strata."""
        weights, count = np.array(self.totals.estimands.weights), self.totals.count
        if count < 2:
            return variance(self.totals) / float((weights**2).sum())
        means, squares = self.totals.sums[:, 0] / count, self.totals.squares[:, 0] / count
        return float(weights @ np.maximum(0.0, squares - means**2)) * count / (count - 1)

    @cached_property
    def error(self) -> float:
        return math.sqrt(variance(self.totals) / max(1, self.totals.count))

    def pairs_until_known(self, excess: float, alpha: float, bounds: BoundsName) -> float:
        """The total pairs after which a gain of `excess` above the tolerance shows; infinite if it is not positive."""
        if excess <= 0:
            return math.inf
        log = math.log(2 / alpha) + MIXTURE
        return 2 * log * self.variance / excess**2 + self._largest(bounds) * log / excess

    def pairs_until_ruled_out(self, room: float, alpha: float, bounds: BoundsName) -> float:
        """The total pairs after which the upper end of a gain has come down by `room`; infinite if not positive."""
        if room <= 0:
            return math.inf
        log = math.log(1 / alpha) + MIXTURE
        slope = math.sqrt(2 * log * self.variance)
        root = (slope + math.sqrt(slope**2 + 4 * self._largest(bounds) * log * room)) / (2 * room)
        return root**2

    def _largest(self, bounds: BoundsName) -> float:
        """Half the range of a gain: the most that one pair of a whole pass adds to n times the mean."""
        gains = self.totals.estimands.bounds[0]
        return (gains.most - gains.least) / 2 if bounds == "distribution-free" else 0.0


ALPHA = 0.01
HALF, NONE, LOOKS = 0.5, 0.4, 0.1  # of it: for confirmations, for what none of the candidates gains, for looks
PLANNED = 0.9  # of the latter two: for the candidates that were planned
SHORT = 0.05  # of a candidate's level: for a look in short passes
OF_GAIN = 0.75  # of the level of an upper end of a relative gain: for the gain; the rest for the honest payoff


def confirmation_level(alpha: float, rank: int) -> float:
    """The level of the candidate confirmed first, second, ..: two thirds for the first, then slowly falling parts.

    >>> round(sum(confirmation_level(0.01, rank) for rank in range(1, 10**5)), 7)
    0.005
    """
    part = 2 / 3 if rank == 1 else 1 / (3 * (rank - 1) * rank)  # 1/2 + 1/6 + 1/12 + .. = 1
    return HALF * alpha * part


def generation_share(generation: int) -> float:
    """The part of a level that a generation of candidates has.

    >>> round(sum(generation_share(g) for g in range(60)), 12)
    1.0
    """
    return PLANNED if generation == 0 else (1 - PLANNED) * 2.0**-generation


MOST_KEPT = 1 << 17  # runs of a world; later ones are played again


class HonestRuns(Generic[J]):
    """The outcomes of `play`, with those of honest worlds cached."""

    def __init__(self, play: ChunkOutcomes[J]) -> None:
        self.play = play
        self.kept: dict[object, tuple[J, dict[int, FloatArray]]] = {}  # the job keeps alive what the key identifies

    def __call__(self, job: J, first: int, count: int) -> Outcomes:
        copied = any(number != 1 for numbers in job.copies.values() for number in numbers)
        if copied or first + count > MOST_KEPT:
            return self.play(job, first, count)
        key = (id(job.market), id(job.mechanism), job.seed, len(job.strata))
        _, rows = self.kept.setdefault(key, (job, {}))
        missing = np.array([run for run in range(first, first + count) if run not in rows], dtype=int)
        for stretch in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1) if len(missing) else ():
            begin = int(stretch[0])
            rows |= enumerate(np.column_stack(self.play(job, begin, len(stretch))), start=begin)
        table, agents = np.array([rows[run] for run in range(first, first + count)]), len(job.market.agents)
        return Outcomes(table[:, :agents], table[:, agents], table[:, agents + 1 :])


FEW = 4  # pairs of a look that is expensive; the fewest that are drawn at a time


@dataclass
class Race:
    """What is known of each candidate, and what its pairs cost: seconds under a budget, else arms times rounds."""

    tolerance: float
    seed: int
    alpha: float
    planned: Sequence[RaceEntry]
    most: int
    clock: Deadline
    budget: float | None
    play: ChunkOutcomes[Any] = kernel_outcomes
    bounds: BoundsName = "distribution-free"
    implied: frozenset[RaceEntry] = frozenset()  # planned, and bounded by the other planned ones
    looks: dict[RaceEntry, Draws] = field(default_factory=dict)
    confirmations: dict[RaceEntry, Draws] = field(default_factory=dict)
    work: float = 0.0  # in the unit of cost
    generations: list[list[RaceEntry]] = field(init=False)  # planned, and then added
    numbers: dict[RaceEntry, int] = field(init=False)  # the generation of each
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = self.clock if self.budget is None else Deadline(self.budget)
        self.outcomes = HonestRuns[Any](self.play)
        self.generations, self.numbers = [], {}
        self.add(self.planned)
        markets = {id(entry.case.market): entry.case.market for entry in self.planned}
        self.strata = {key: len(strata_of(market).weights) for key, market in markets.items()}
        self.short = {key: len(strata_of(market, short=True).weights) for key, market in markets.items()}

    @property
    def candidates(self) -> list[RaceEntry]:
        return [entry for generation in self.generations for entry in generation]

    def add(self, entries: Sequence[RaceEntry]) -> None:
        self.numbers |= dict.fromkeys(entries, len(self.generations))
        self.generations.append(list(entries))

    @property
    def bounding(self) -> list[RaceEntry]:
        """The candidates whose bounds bound all; without the implied ones once all others planned were looked at."""
        others = [entry for entry in self.planned if entry not in self.implied]
        implied = self.implied if all(entry in self.looks for entry in others) else frozenset()
        return [entry for entry in self.candidates if entry not in implied]

    def draw(
        self, entry: RaceEntry, pairs: int, before: Draws | None, seed: int, level: float, stratify: PassLength
    ) -> Draws:
        """Draw the candidate's pairs up to a number, or as many as the budget affords."""
        case, begun = entry.case, now()
        if before is not None:
            stratify = self.passes(entry, before.totals)
        sampling = PairedSampling(
            pairs, 1 - level / 2, seed, stratify, False, self.deadline.left,
            resume=None if before is None else before.totals, outcomes=self.outcomes, bounds=self.bounds,
        )  # fmt: skip
        gain = sampled_gain(case.market, case.played, case.name, case.copies(entry.copies), sampling)
        done = gain.runs - (0 if before is None else before.pairs)
        seconds = (now() - begun) / max(1, done)
        cost = float(entry.arms * case.horizon) if self.budget is None else max(seconds, 1e-9)
        self.work += cost * done
        sample = SampledDeviation(
            case.name, entry.copies, case.market, case.mechanism, seed, sampling.confidence, gain.progress
        )
        witness = Witness(case.name, entry.copies, gain.honest, gain.copied, gain.estimate, case.market, gain.copies)
        none = NONE * self.alpha * generation_share(self.numbers[entry])  # of it gains more than the largest end
        return Draws(sample, witness, self.one_sided(entry, witness, gain.progress, none), cost)

    def passes(self, entry: RaceEntry, totals: RunTotals) -> PassLength:
        length, market = len(totals.estimands.weights), id(entry.case.market)
        return "short" if 1 < length < self.strata[market] else length > 1

    def share(self, entry: RaceEntry, stratify: PassLength) -> float:
        """The part of a candidate's level for pairs drawn in such passes."""
        if self.strata[id(entry.case.market)] == 1:
            return 1.0
        return 1 - SHORT if stratify is True else SHORT

    def one_sided(self, entry: RaceEntry, witness: Witness, totals: RunTotals, level: float) -> Witness:
        """The witness with an upper end of the relative gain that holds at that level."""
        level *= self.share(entry, self.passes(entry, totals))
        gain = float(totals.half_widths(2 * OF_GAIN * level, self.bounds)[0])
        honest = float(totals.half_widths(2 * (1 - OF_GAIN) * level, self.bounds)[1])
        return replace(witness, gain=replace(witness.gain, error=gain), honest=replace(witness.honest, error=honest))

    def anybody_pays(self) -> bool:
        """Whether a gain is surely above the tolerance."""
        drawn = [*self.looks.items(), *self.confirmations.items()]
        return any(entry.attacks and pays(draws.witness, self.tolerance) for entry, draws in drawn)

    def tell(self, what: str) -> None:
        """Report progress: the part of the budget spent, or the candidates looked at."""
        if self.budget is not None:
            self.clock.tell(min(100, int(100 * self.deadline.seconds / self.budget)), 100, what)
        else:
            self.clock.tell(len(self.looks), len(self.candidates), what)
