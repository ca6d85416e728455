"""What copies do to their own agent: its trial, its award, and the law of its score together with the award.

Everything is found once for each multiset of realised means; realisations in which all originals are equally good are
kept apart, since copies change nothing there: a difference in which only those are left is exactly zero, not a ball
around it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from cloneproof.analysis.audit.dominance.two_phase_game import TwoPhaseGame
from cloneproof.engines.closed_form.laws.arithmetic import LOST, PRECISION, Arithmetic, Array, Number
from cloneproof.engines.closed_form.laws.reward_laws import Bernoulli, Deterministic, RewardLaw
from cloneproof.engines.closed_form.phases.committed_sums import MeanCounts
from cloneproof.engines.closed_form.phases.cut_exploration import merge_equal_means
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal, realisations
from cloneproof.engines.closed_form.phases.trial_score import ScoreLaw, agent_score, commitment_of_types
from cloneproof.engines.closed_form.size import check_trials


@dataclass(frozen=True)
class AwardLaw:
    """E[award's reward; score = s] for every possible score s, in increasing order."""

    scores: Array
    rewards: Array

    def from_score(self, threshold: float, arithmetic: Arithmetic) -> Number:
        """E[award's reward; score >= threshold]."""
        return self.tails(np.array([threshold]), arithmetic)[0]

    def tails(self, thresholds: Array, arithmetic: Arithmetic) -> Array:
        """The same at many thresholds."""
        sums = arithmetic.zeros(len(self.scores) + 1)
        sums[:-1] = np.cumsum(self.rewards[::-1])[::-1]
        return np.asarray(sums[np.searchsorted(self.scores, thresholds)])


@dataclass(frozen=True)
class ScoreProfile:
    """A copies vector of the agent, in rewards (not yet shares).

    mean    of an exploration round; excess: how much better the arm committed to is, on average
    varied  scores and awards where the originals differ in their means, level: where they do not
    """

    copies: tuple[int, ...]
    mean: Fraction
    excess: Number
    varied: AwardLaw | None
    level: AwardLaw | None

    @property
    def arms(self) -> int:
        """How many arms are registered."""
        return sum(self.copies)


@dataclass
class ScoreProfiler:
    """Profiles in one arithmetic; realisations are shared between copies vectors."""

    game: TwoPhaseGame
    arithmetic: Arithmetic
    _scores: dict[MeanCounts, ScoreLaw] = field(default_factory=dict)
    _committed: dict[MeanCounts, Number] = field(default_factory=dict)

    def profile(self, copies: tuple[int, ...]) -> ScoreProfile:
        """The profile of one copies vector."""
        game = self.game
        originals, arms = game.originals(copies), sum(copies)
        contested = game.contested and game.scored(arms)
        ordered = contested and game.phases.order_matters(arms)
        with ctx.workprec(PRECISION):
            if contested:
                check_trials([tuple(originals)], game.phases, self.arithmetic)
            excess = self.arithmetic.number(0)
            varied: list[tuple[Array, Array]] = []
            level: list[tuple[Array, Array]] = []
            for weight, runs in realisations(originals, ordered):
                same = len({mean for mean, _ in runs}) == 1
                share = self.arithmetic.number(weight)
                if not same:
                    explored = sum((Fraction(mean) * count for mean, count in runs), Fraction(0)) / arms
                    excess = excess + share * (self._commits_to(runs) - self.arithmetic.number(explored))
                if contested:
                    score = self._score(runs, ordered)
                    (level if same else varied).append((score.scores, share * score.awards))
            return ScoreProfile(
                copies,
                game.explored_mean(copies),
                excess,
                self._sum(varied) if contested else None,
                self._sum(level) if contested else None,
            )

    def _rewards(self) -> RewardLaw:
        if not self.game.deterministic:
            return Bernoulli(self.arithmetic)
        means = {value for atoms in self.game.priors for value, _ in atoms}
        return Deterministic.of(means, self.arithmetic)

    def _commits_to(self, runs: MeanCounts) -> Number:
        """The mean of the arm that a fresh ETC commits to."""
        types = merge_equal_means(runs)
        if types not in self._committed:
            m = self.game.arm_rounds
            groups, chosen = commitment_of_types(types, m, self._rewards(), self.arithmetic)
            mean = sum(chosen.mean(groups, g) * group.number for g, group in enumerate(groups))
            self._committed[types] = mean + arb(0, LOST) if self.arithmetic.proven else mean
        return self._committed[types]

    def _score(self, runs: MeanCounts, ordered: bool) -> ScoreLaw:
        key = runs if ordered else merge_equal_means(runs)
        if key not in self._scores:
            points = [CopiedOriginal(((mean, Fraction(1)),), count) for mean, count in key]
            self._scores[key] = agent_score(points, self.game.phases, self._rewards(), self.arithmetic)
        return self._scores[key]

    def _sum(self, parts: list[tuple[Array, Array]]) -> AwardLaw:
        if not parts:
            return AwardLaw(np.array([]), self.arithmetic.zeros(0))
        scores = np.unique(np.concatenate([of_part for of_part, _ in parts]))
        rewards = self.arithmetic.zeros(len(scores))
        for of_part, award in parts:
            rewards[np.searchsorted(scores, of_part)] += award
        return AwardLaw(scores, rewards)
