"""Runs of a mechanism that samples arms, stratified by which arms are drawn.

S-UCB keeps a uniform sample of all registered arms and plays UCB1 on it. Given how many copies of each original are
drawn it is UCB1 on that many copies, as copies are exchangeable and explored in a random order. Those numbers have a
multivariate hypergeometric law, so the probability of a stratum is known and only what happens inside it is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from math import comb, prod, sqrt
from typing import NamedTuple

import numpy as np
from scipy import stats

from cloneproof._arrays import FloatArray
from cloneproof.engines.estimate import Estimate

RARE = 0.01  # compositions less likely than this share one stratum
LEAST = 4  # runs of a stratum
ArmCounts = tuple[int, ...]  # how many copies of each original


class SampleStratum(NamedTuple):
    """Some compositions of the rare originals (the others are drawn given these), and the runs they get."""

    probability: float
    rare: tuple[ArmCounts, ...]
    odds: tuple[float, ...]
    runs: int


class ArmSample(NamedTuple):
    """A uniform sample of `size` arms: the copies of each original, and which originals are rare in it.

    Rare is an original of which fewer than one copy is drawn on average: whether it is drawn is what makes runs differ.
    """

    copies: ArmCounts
    size: int
    rare: tuple[int, ...]
    common: tuple[int, ...]

    @classmethod
    def of(cls, copies: Sequence[int], size: int) -> ArmSample:
        """The sample, of no more arms than there are; where all are kept no original counts as rare."""
        arms = sum(copies)
        rare = tuple(k for k, count in enumerate(copies) if count * size < arms) if size < arms else ()
        return cls(tuple(copies), min(size, arms), rare, tuple(k for k in range(len(copies)) if k not in rare))

    def law(self) -> dict[ArmCounts, float]:
        """How many copies of each rare original are drawn, with probabilities, likeliest first."""
        arms, others = sum(self.copies), sum(self.copies[k] for k in self.common)
        found = {
            drawn: prod(comb(self.copies[k], number) for k, number in zip(self.rare, drawn, strict=True))
            * comb(others, self.size - sum(drawn))
            for drawn in product(*(range(min(self.copies[k], self.size) + 1) for k in self.rare))
            if sum(drawn) <= self.size
        }
        every = comb(arms, self.size)
        return {drawn: ways / every for drawn, ways in sorted(found.items(), key=lambda pair: -pair[1]) if ways}

    def strata(self, runs: int) -> list[SampleStratum]:
        """One for each composition of at least that probability, one for all others; runs in proportion, LEAST each."""
        law = self.law()
        own = [[drawn] for drawn, chance in law.items() if chance >= RARE]
        rest = [drawn for drawn, chance in law.items() if chance < RARE]
        strata = []
        for group in [*own, rest] if rest else own:
            total = math.fsum(law[drawn] for drawn in group)
            odds = tuple(law[drawn] / total for drawn in group)
            strata.append(SampleStratum(total, tuple(group), odds, max(LEAST, round(total * runs))))
        return strata

    def draw(self, stratum: SampleStratum, randomness: np.random.Generator) -> ArmCounts:
        """How many copies of each original are kept, given the stratum."""
        drawn = stratum.rare[int(randomness.choice(len(stratum.rare), p=stratum.odds))]
        numbers = dict(zip(self.rare, drawn, strict=True))
        available = [self.copies[k] for k in self.common]
        others = randomness.multivariate_hypergeometric(available, self.size - sum(drawn), method="marginals")
        numbers |= dict(zip(self.common, others.tolist(), strict=True))
        return tuple(numbers[k] for k in range(len(self.copies)))


class RunsMean(NamedTuple):
    """A mean over runs, its standard error with its degrees of freedom, and the variance of a single plain run."""

    mean: float
    standard_error: float
    degrees: float
    run_variance: float

    @classmethod
    def of(cls, strata: Sequence[tuple[float, FloatArray]]) -> RunsMean:
        """From (probability, runs) of every stratum; one stratum of probability 1 are plain runs.

        The degrees of freedom are Welch and Satterthwaite's. The variance of a plain run is that inside the strata and
        that between them; what the means' own errors add to the latter is taken off, so it is unbiased.
        """
        mean = math.fsum(chance * float(np.mean(runs)) for chance, runs in strata)
        inside = [float(np.var(runs, ddof=1)) for _, runs in strata]
        parts = [chance**2 * own / len(runs) for (chance, runs), own in zip(strata, inside, strict=True)]
        error = math.fsum(parts)
        spread = math.fsum(part**2 / (len(runs) - 1) for part, (_, runs) in zip(parts, strata, strict=True))
        variance = error + math.fsum(
            chance * (own * (1 - 1 / len(runs)) + (float(np.mean(runs)) - mean) ** 2)
            for (chance, runs), own in zip(strata, inside, strict=True)
        )
        plain = sum(len(runs) for _, runs in strata) - 1
        return cls(mean, sqrt(error), error**2 / spread if spread > 0 else plain, variance)

    def quantile(self, confidence: float) -> float:
        """Student's, two-sided."""
        return float(stats.t.ppf((1 + confidence) / 2, self.degrees))

    def estimate(self, confidence: float) -> Estimate:
        """With Student's interval: an estimate of the error, as runs are not normal."""
        error = self.quantile(confidence) * self.standard_error
        return Estimate(self.mean, error, "estimated", f"Student's t over independent runs, {confidence:.0%}")

    def error_of_difference(self, repetitions: int) -> float:
        """The standard error of the difference to a mean over so many plain runs of somebody else."""
        return sqrt(self.standard_error**2 + self.run_variance / repetitions)
