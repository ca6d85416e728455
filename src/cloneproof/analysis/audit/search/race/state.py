"""The state of a race: what was drawn of each candidate, and what its pairs cost."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.judgement import pays
from cloneproof.analysis.audit.search.honest_runs import HonestRuns
from cloneproof.analysis.audit.search.race.candidates import Draws, RaceEntry
from cloneproof.analysis.audit.search.race.levels import NONE, OF_GAIN, SHORT, generation_share
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness
from cloneproof.analysis.gain import sampled_gain
from cloneproof.analysis.paired_runs import PairedSampling, PassLength
from cloneproof.engines.estimate import BoundsName
from cloneproof.engines.monte_carlo.sampler import ChunkOutcomes, kernel_outcomes
from cloneproof.engines.monte_carlo.statistics.run_totals import RunTotals
from cloneproof.engines.monte_carlo.statistics.strata import strata_of

FEW = 4  # pairs of a look that is dear; the fewest that are drawn at a time


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
        self.deadline = Deadline(self.budget)
        self.outcomes = HonestRuns[Any](self.play)
        self.generations, self.numbers = [], {}
        self.add(self.planned)
        markets = {id(entry.case.market): entry.case.market for entry in self.planned}
        self.strata = {key: len(strata_of(market).weights) for key, market in markets.items()}
        self.short = {key: len(strata_of(market, short=True).weights) for key, market in markets.items()}

    @property
    def candidates(self) -> list[RaceEntry]:
        """All of them, in the order in which they came."""
        return [entry for generation in self.generations for entry in generation]

    def add(self, entries: Sequence[RaceEntry]) -> None:
        """A generation of candidates."""
        self.numbers |= dict.fromkeys(entries, len(self.generations))
        self.generations.append(list(entries))

    @property
    def bounding(self) -> list[RaceEntry]:
        """Those whose bounds bound all: without the implied ones, if all others that were planned have been seen."""
        others = [entry for entry in self.planned if entry not in self.implied]
        implied = self.implied if all(entry in self.looks for entry in others) else frozenset()
        return [entry for entry in self.candidates if entry not in implied]

    def level_of_none(self, entry: RaceEntry) -> float:
        """The level at which none of the candidate's generation gains more than the largest of their upper ends."""
        return NONE * self.alpha * generation_share(self.numbers[entry])

    def draw(
        self, entry: RaceEntry, pairs: int, before: Draws | None, seed: int, level: float, stratify: PassLength
    ) -> Draws:
        """The candidate with so many pairs in all, or as many as the budget affords."""
        case, begun = entry.case, time.perf_counter()
        if before is not None:
            stratify = self.passes(entry, before.totals)
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
        return Draws(sample, witness, self.alone(entry, witness, gain.progress, self.level_of_none(entry)), cost)

    def passes(self, entry: RaceEntry, totals: RunTotals) -> PassLength:
        """In which passes pairs were drawn."""
        length, market = len(totals.estimands.weights), id(entry.case.market)
        return "short" if 1 < length < self.strata[market] else length > 1

    def share(self, entry: RaceEntry, stratify: PassLength) -> float:
        """Of the level of a candidate, for pairs that are drawn in such passes."""
        if self.strata[id(entry.case.market)] == 1:
            return 1.0
        return 1 - SHORT if stratify is True else SHORT

    def alone(self, entry: RaceEntry, witness: Witness, totals: RunTotals, level: float) -> Witness:
        """The witness whose one end of the relative gain, the upper one, holds at that level."""
        level *= self.share(entry, self.passes(entry, totals))
        gain = float(totals.half_widths(2 * OF_GAIN * level, self.bounds)[0])
        honest = float(totals.half_widths(2 * (1 - OF_GAIN) * level, self.bounds)[1])
        return replace(witness, gain=replace(witness.gain, error=gain), honest=replace(witness.honest, error=honest))

    def anybody_pays(self) -> bool:
        """Whether a gain is surely above the tolerance."""
        drawn = [*self.looks.items(), *self.confirmations.items()]
        return any(entry.attacks and pays(draws.witness, self.tolerance) for entry, draws in drawn)

    def tell(self, what: str) -> None:
        """Report progress: the part of the budget that is spent, or the candidates looked at."""
        if self.budget is not None:
            self.clock.tell(min(100, int(100 * self.deadline.seconds / self.budget)), 100, what)
        else:
            self.clock.tell(len(self.looks), len(self.candidates), what)
