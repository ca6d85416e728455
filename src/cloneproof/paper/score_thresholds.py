"""Theorem 4's statement against any opponents: the largest gain of copies over all scores that others may set.

In a trial every agent has the same rounds, and then an award is decided by scores. Against fixed others an agent wins
it with a probability g(score) that does not fall in its score. A nondecreasing g is a mixture of steps "wins with a
score of at least y", y = "never" included, and payoffs are linear in g. So no opponents, with any means and strategies,
allow a larger gain than the best single threshold, provided the others are independent of the agent's means.

Realisations with equally good originals are kept apart: copies change nothing there, and their parts cancel exactly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from cloneproof._lib.arrays import FloatArray
from cloneproof.laws.means import CopiedOriginal, ExactAtoms, MeanCounts, merge_equal_means, prior_mean, realisations
from cloneproof.laws.points import exact_points
from cloneproof.market import Market
from cloneproof.mechanisms.committing.commitment import Phases, agent_score, commitment_of_types
from cloneproof.mechanisms.committing.rewards import Bernoulli, Deterministic, RewardLaw
from cloneproof.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class TwoPhases:
    """H-ETC-R for one agent: its priors, the phases and the law of its rewards. Laws of scores are computed once."""

    share: float
    priors: tuple[ExactAtoms, ...]
    phases: Phases
    rewards: RewardLaw
    _scores: dict[MeanCounts, tuple[FloatArray, FloatArray]] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, market: Market, mechanism: Mechanism, agent: str) -> TwoPhases:
        """Return the game of one agent: bernoulli or deterministic rewards, and a horizon beyond the trial."""
        priors = tuple(exact_points(prior, 0) for prior in next(a for a in market.agents if a.name == agent).priors)
        trial = mechanism.parameters["agent_rounds"]
        award = market.horizon - len(market.agents) * trial
        assert award > 0
        means = {value for atoms in priors for value, _ in atoms}
        coins = market.family.law == "coin"
        rewards = Bernoulli() if coins else Deterministic.of(means)
        return cls(float(market.share), priors, Phases(mechanism, trial, award), rewards)


@dataclass(frozen=True)
class CopiesInTwoPhases:
    """A vector of copies, in rewards before the share: what the trial pays, and the award's reward by score.

    `varied` counts only realisations in which the originals differ; it has the scores and E[award's reward; score].
    """

    trial: float
    varied: tuple[FloatArray, FloatArray]


def profile(game: TwoPhases, copies: tuple[int, ...]) -> CopiesInTwoPhases:
    """Return what these copies earn in the trial, and in the award at each score."""
    arms, phases = sum(copies), game.phases
    originals = [CopiedOriginal(atoms, count) for atoms, count in zip(game.priors, copies, strict=True)]
    mean = sum((prior_mean(original.atoms) * original.copies for original in originals), Fraction(0)) / arms
    ordered, excess, laws = phases.order_matters(arms), 0.0, []
    for weight, runs in realisations(originals, ordered):
        if len({value for value, _ in runs}) == 1:
            continue
        explored = sum((Fraction(value) * count for value, count in runs), Fraction(0)) / arms
        groups, chosen = commitment_of_types(merge_equal_means(runs), phases.arm_rounds, game.rewards)
        committed = sum(chosen.mean(groups, g) * group.number for g, group in enumerate(groups))
        excess += float(weight) * (committed - float(explored))
        scores, awards = _award(game, runs, ordered)
        laws.append((scores, float(weight) * awards))
    late = max(0, phases.trial - arms * phases.arm_rounds)
    scores = np.unique(np.concatenate([scores for scores, _ in laws]))
    awards = np.zeros(len(scores))
    for own, parts in laws:
        awards[np.searchsorted(scores, own)] += parts
    return CopiesInTwoPhases(float(mean * phases.trial) + excess * late, (scores, awards))


def _award(game: TwoPhases, runs: MeanCounts, ordered: bool) -> tuple[FloatArray, FloatArray]:
    key = runs if ordered else merge_equal_means(runs)
    if key not in game._scores:
        points = [CopiedOriginal(((mean, Fraction(1)),), count) for mean, count in key]
        law = agent_score(points, game.phases, game.rewards)
        game._scores[key] = (law.scores, law.awards)
    return game._scores[key]


def largest_gain(game: TwoPhases, honest: CopiesInTwoPhases, copied: CopiesInTwoPhases) -> float:
    """Return what the copies gain at the best threshold, a score that nobody reaches included."""
    grid = np.append(np.union1d(honest.varied[0], copied.varied[0]), np.inf)
    won = _won(copied, grid) - _won(honest, grid)
    return game.share * float((won + (copied.trial - honest.trial)).max())


def _won(paid: CopiesInTwoPhases, at: FloatArray) -> FloatArray:
    """Return what the award pays with a score of at least each threshold."""
    scores, awards = paid.varied
    sums = np.append(np.cumsum(awards[::-1])[::-1], 0.0)
    return np.asarray(sums[np.searchsorted(scores, at)])
