"""Gains at every score to beat: how the others can affect an agent, and which rounds it has anyway.

A *two-phase* game has a trial, in which every agent has the same rounds, and then an award decided by scores.
Without an award, or without other agents, the others do not matter.

*Thresholds.* Against fixed others an agent wins the award with a probability g(score) that does not fall in its score.
A nondecreasing g is a mixture of steps "wins with a score of at least y", y = "never" included, and payoffs are linear
in g. So no opponents, with any means and strategies, allow a larger gain than the best single threshold, provided the
others are independent of the agent's means.

If too many arms lose the score there are two more cases: an agent without a score loses to everybody who has one, and
if nobody else has one, it wins with probability 1/n, or for sure if it has a score itself.

Everything is computed once for each multiset of realised means. Realisations with equally good originals are kept
separate: copies change nothing there, so that their difference is exactly zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import islice

import numpy as np
from flint import arb, ctx

from cloneproof._clock import check_time
from cloneproof.analysis.audit.copy_vectors import MOST_VECTORS, CopyVector, of_sum
from cloneproof.analysis.audit.question import AuditCase
from cloneproof.engines.closed_form.commitment import (
    Binomial,
    Fixed,
    Phases,
    Rounds,
    agent_score,
    commitment_of_types,
    unfinished_trial,
)
from cloneproof.engines.closed_form.exact_payoffs import check_trials
from cloneproof.engines.closed_form.rewards import Bernoulli, Deterministic, RewardLaw
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import LOST, PRECISION, Arithmetic, Array, Number, ball
from cloneproof.laws.best import best_of_atoms
from cloneproof.laws.counts import binomial_terms
from cloneproof.laws.means import CopiedOriginal, ExactAtoms, MeanCounts, merge_equal_means, prior_mean, realisations
from cloneproof.laws.points import exact_points

SUMMED_TERM_BY_TERM = 200_000  # Up to this many rounds an expectation over them is a sum of positive terms.
NEVER = math.inf  # The threshold that no score reaches.
NOBODY = -math.inf  # The threshold if no other agent has a score.


@dataclass(frozen=True)
class TwoPhaseGame:
    """A case, the agent's priors, its rounds of the trial, and those of the award (0: none)."""

    case: AuditCase
    priors: tuple[ExactAtoms, ...]
    trial: Rounds
    award: int

    @property
    def deterministic(self) -> bool:
        return self.case.market.family.law == "point"

    @property
    def contested(self) -> bool:
        return self.award > 0 and self.case.agents > 1

    @property
    def level(self) -> bool:
        """Whether the originals are equally good in every realisation, so that copies change no reward."""
        return len(self.priors) == 1 or (len(set(self.priors)) == 1 and len(self.priors[0]) == 1)

    @property
    def max_arms(self) -> int | None:
        """Arms above which there is no score (K); None if every agent has one."""
        return self.case.running.scoring.max_arms

    @property
    def score_rounds(self) -> int:
        return self.case.running.scoring.counted_in(self.phases.trial)

    @property
    def phases(self) -> Phases:
        """Trial and award, for the law of the score."""
        return Phases(self.case.running, self.case.running.agent_rounds, self.award)

    def scored(self, arms: int) -> bool:
        return self.max_arms is None or arms <= self.max_arms

    @property
    def trial_mean(self) -> Fraction:
        """Expected rounds without the award."""
        if isinstance(self.trial, Binomial):
            return self.trial.chance * self.trial.rounds
        return sum((chance * rounds for chance, rounds in self.trial.chances), Fraction(0))


def two_phase_game(case: AuditCase) -> TwoPhaseGame:
    """Return the game of one agent; raises an error if the mechanism has no complete sweep."""
    market, running, agent, number = case.market, case.running, case.agent, case.agents
    if (part := running.uncommitted_part) is not None:
        expected = "rules that explore and then commit (or a uniform choice of agents)"
        raise _refusal(expected, f"{part} in {running.name!r}")
    if running.in_epochs:
        raise _refusal("one trial and one award", f"{running.name!r}, whose epochs are checked one by one")
    if market.family.law not in ("coin", "point"):
        raise _refusal("bernoulli or deterministic rewards", f"{market.family.name!r}")
    if any(prior.atoms is None for prior in agent.priors):
        raise _refusal(
            f"discrete priors of {agent.name!r}", "a continuous one (prior.discretised(5) makes it discrete)"
        )
    rule, horizon = running.agent, market.horizon
    if rule is None and (number > 1 or not running.never_clears):
        raise _refusal("agents that compete by scores alone", f"{running.name!r}, where arms of all agents compete")
    award = 0
    rounds: Rounds = Fixed.of(horizon)
    if rule is not None and not rule.commits:
        rounds = Binomial(horizon, Fraction(1, number))
    elif rule is not None and horizon < number * rule.explore:
        position = market.agents.index(agent)
        rounds = unfinished_trial(number, rule.order, rule.explore, horizon)[position]
    elif rule is not None:
        if not running.clears_at_award:
            raise _refusal("arm statistics that are cleared at the award", f"{running.name!r} with no restart")
        rounds, award = Fixed.of(rule.explore), horizon - number * rule.explore
    game = TwoPhaseGame(case, tuple(exact_points(prior, 0) for prior in agent.priors), rounds, award)
    if running.explores_as_registered and len(set(game.priors)) > 1:
        raise _refusal("one prior for all originals where arms are explored by index", "several")
    return game


def _refusal(expected: str, got: str) -> EngineError:
    return EngineError(f"a complete check of dominance expects {expected}, got {got}; audit with opponents='market'")


@lru_cache(maxsize=4096)
def expected_beyond(rounds: Rounds, cap: int) -> Number:
    """E max(H - cap, 0), exactly 0 if H never exceeds the cap."""
    if isinstance(rounds, Fixed):
        return ball(sum((chance * max(0, number - cap) for chance, number in rounds.chances), Fraction(0)))
    if cap >= rounds.rounds:
        return arb(0)
    if rounds.chance == 1:
        return arb(rounds.rounds - cap)
    with ctx.workprec(PRECISION):
        if rounds.rounds > SUMMED_TERM_BY_TERM:
            return rounds.mean - rounds.minimum(cap) + arb(0, LOST * rounds.rounds)
        beyond = binomial_terms(rounds.rounds, rounds.chance, cap + 1, 1)
        return sum((term * distance for distance, term in enumerate(beyond, 1)), arb(0))


def deviations(game: TwoPhaseGame, max_copies: int) -> tuple[list[CopyVector], int]:
    """Up to `max_copies` of each original, and everything with a score if arms are limited, by rising arms.

    Also returns the smallest number of arms of a vector that is not included.
    """
    originals, scored = len(game.priors), game.max_arms or 0
    vectors: list[CopyVector] = []
    whole_until = max(scored + 1, originals + max_copies)  # smallest number of arms with a vector out of reach
    for arms in range(originals + 1, max(scored, originals * max_copies) + 1):
        most = arms if arms <= scored else max_copies
        of_arms = list(islice(of_sum(game.case.kinds, arms, most=most), MOST_VECTORS + 1 - len(vectors)))
        if len(vectors) + len(of_arms) > MOST_VECTORS:
            return vectors, min(whole_until, arms)
        vectors += of_arms[::-1]
    return vectors, whole_until


@dataclass(frozen=True)
class AwardLaw:
    """E[award's reward; score = s] for every possible score s, in increasing order."""

    scores: Array
    rewards: Array


@dataclass(frozen=True)
class ScoreProfile:
    """A vector of copies of the agent, in rewards (before the share).

    An `ideal` one stands for all vectors of at least this many arms: with a score it wins the award, at any threshold.
    """

    copies: CopyVector
    mean: Fraction  # of an exploration round
    excess: Number  # how much better the chosen arm is, on average
    varied: AwardLaw | None = None  # if the originals differ in their means
    level: AwardLaw | None = None  # if they do not
    ideal: bool = False

    @property
    def arms(self) -> int:
        return sum(self.copies)


@dataclass(frozen=True)
class ThresholdSweep:
    """A deviation at every threshold, in rewards: what it gains, and what honesty earns there."""

    copies: CopyVector
    thresholds: Array
    gains: Array
    honest: Array

    def excess(self, tolerance: Number) -> Array:
        """Return the gain above the tolerated part of the honest payoff; also linear in the others."""
        return self.gains - tolerance * self.honest if tolerance else self.gains


@dataclass
class ScoreProfiler:
    """Profiles of copies and their sweeps in one arithmetic; realisations are shared between vectors."""

    game: TwoPhaseGame
    arithmetic: Arithmetic
    _scores: dict[MeanCounts, AwardLaw] = field(default_factory=dict)
    _committed: dict[MeanCounts, Number] = field(default_factory=dict)

    def profile(self, copies: CopyVector) -> ScoreProfile:
        game, arms = self.game, sum(copies)
        originals = [CopiedOriginal(atoms, count) for atoms, count in zip(game.priors, copies, strict=True)]
        mean = sum((prior_mean(original.atoms) * original.copies for original in originals), Fraction(0)) / arms
        contested = game.contested and game.scored(arms)
        ordered = contested and game.phases.order_matters(arms)
        with ctx.workprec(PRECISION):
            if contested:
                check_trials([tuple(originals)], game.phases, self.arithmetic)
            excess = self.arithmetic.number(0)
            varied, level = list[AwardLaw](), list[AwardLaw]()
            for weight, runs in realisations(originals, ordered):
                check_time("closed form")
                same = len({value for value, _ in runs}) == 1
                share = self.arithmetic.number(weight)
                if not same:
                    explored = sum((Fraction(value) * count for value, count in runs), Fraction(0)) / arms
                    excess = excess + share * (self._commits_to(runs) - self.arithmetic.number(explored))
                if contested:
                    law = self._score(runs, ordered)
                    (level if same else varied).append(AwardLaw(law.scores, share * law.rewards))
            if not contested:
                return ScoreProfile(copies, mean, excess)
            return ScoreProfile(copies, mean, excess, self._sum(varied), self._sum(level))

    def _rewards(self) -> RewardLaw:
        if not self.game.deterministic:
            return Bernoulli(self.arithmetic)
        means = {value for atoms in self.game.priors for value, _ in atoms}
        return Deterministic.of(means, self.arithmetic)

    def _commits_to(self, runs: MeanCounts) -> Number:
        """Return the mean of the arm that a fresh ETC commits to."""
        types = merge_equal_means(runs)
        if types not in self._committed:
            groups, chosen = commitment_of_types(types, self.game.case.running.arm_rounds, self._rewards())
            mean = sum(chosen.mean(groups, g) * group.number for g, group in enumerate(groups))
            self._committed[types] = mean + arb(0, LOST) if self.arithmetic.proven else mean
        return self._committed[types]

    def _score(self, runs: MeanCounts, ordered: bool) -> AwardLaw:
        key = runs if ordered else merge_equal_means(runs)
        if key not in self._scores:
            points = [CopiedOriginal(((mean, Fraction(1)),), count) for mean, count in key]
            law = agent_score(points, self.game.phases, self._rewards())
            self._scores[key] = AwardLaw(law.scores, law.awards)
        return self._scores[key]

    def _sum(self, laws: list[AwardLaw]) -> AwardLaw:
        scores = np.unique(np.concatenate([np.array([]), *(law.scores for law in laws)]))
        rewards = self.arithmetic.zeros(len(scores))
        for law in laws:
            rewards[np.searchsorted(scores, law.scores)] += law.rewards
        return AwardLaw(scores, rewards)

    def sweep(self, honest: ScoreProfile, copied: ScoreProfile, grid: Array | None = None) -> ThresholdSweep:
        """Evaluate the deviation at the thresholds of the grid, which has every score of both, and at two more."""
        # A gain has a part that no score decides (the trial) and, at each threshold, a part that is won with the award.
        # Differences are formed before they are summed, so that equal parts cancel exactly. Two more thresholds bound
        # the rest: a score that nobody reaches, and opponents without a score.
        game, grid = self.game, threshold_grid([honest, copied]) if grid is None else grid
        with ctx.workprec(PRECISION):
            trial, prize = self._gain(honest, copied, award=False), self._gain(honest, copied, award=True)
            earned = self._certain(honest, award=False)
            if not game.contested:
                whole = earned + self._certain(honest, award=True)
                return ThresholdSweep(copied.copies, np.array([NOBODY]), _array([trial + prize]), _array([whole]))
            at, alone = np.append(grid, NEVER), self._alone(honest)
            gains, payoffs = self._won_more(honest, copied, at) + trial, self._won(honest, at) + earned
            if game.max_arms is None:
                return ThresholdSweep(copied.copies, at, gains, payoffs)
            both = game.scored(copied.arms) and game.scored(honest.arms)
            nobody = trial + (prize if both else self._alone(copied) - alone)
            at, gains = np.concatenate([[NOBODY], at]), np.concatenate([_array([nobody]), gains])
            return ThresholdSweep(copied.copies, at, gains, np.concatenate([_array([earned + alone]), payoffs]))

    def upper_sweep(self, honest: ScoreProfile, arms: int, grid: Array | None = None) -> ThresholdSweep:
        """Return an upper bound for every copies vector of at least that many arms.

        An exploration round earns at most the best prior's mean, any other round at most the best original, and k arms
        take k m rounds to explore: E[reward in H rounds] <= H mean + max(H - k m, 0) (E best - mean), which falls in k.
        With a score the award may always be won; without one only if nobody has one, with probability 1/n.
        """
        priors = self.game.priors
        with ctx.workprec(PRECISION):
            mean = max(prior_mean(atoms) for atoms in priors)
            copies = (arms - len(priors) + 1, *(1,) * (len(priors) - 1))
            ideal = ScoreProfile(
                copies, mean, self.arithmetic.number(best_of_atoms([priors], number=Fraction) - mean), ideal=True
            )
        return self.sweep(honest, ideal, grid)

    def _late(self, profile: ScoreProfile, award: bool) -> Number:
        """Return what the rounds after the commitment add, in the award or in the trial."""
        game, explored = self.game, profile.arms * self.game.case.running.arm_rounds
        if award:
            return profile.excess * max(0, game.award - explored)
        return profile.excess * self.arithmetic.number(expected_beyond(game.trial, explored))

    def _certain(self, profile: ScoreProfile, award: bool) -> Number:
        """Return what the trial pays, plus the award if it is certain."""
        rounds = self.game.award if award else self.game.trial_mean
        return self.arithmetic.number(profile.mean * rounds) + self._late(profile, award)

    def _gain(self, honest: ScoreProfile, copied: ScoreProfile, award: bool) -> Number:
        """Return the difference; exactly 0 without a commitment and with equal priors."""
        rounds = self.game.award if award else self.game.trial_mean
        late = self._late(copied, award) - self._late(honest, award)
        return late + self.arithmetic.number((copied.mean - honest.mean) * rounds)

    def _alone(self, profile: ScoreProfile) -> Number:
        """Return what the award pays if no other agent has a score."""
        chance = Fraction(1) if self.game.scored(profile.arms) else Fraction(1, self.game.case.agents)
        return self._certain(profile, award=True) * self.arithmetic.number(chance)

    def _won_more(self, honest: ScoreProfile, copied: ScoreProfile, at: Array) -> Array:
        """How much more the award pays than honesty's, with a score of at least each threshold."""
        if copied.ideal:
            scored, zero = self.game.scored(copied.arms), self.arithmetic.number(0)
            if self.game.level and scored:
                return self.arithmetic.zeros(len(at))  # copies of equally good originals change nothing
            more = (self._certain(copied, award=True) if scored else zero) - self._won(honest, at)
            more[-1] = zero  # the award is never won there
            return np.asarray(more)
        if copied.varied is not None and honest.varied is not None:  # both have a score: level means cancel exactly
            return np.asarray(self._tails(copied.varied, at) - self._tails(honest.varied, at))
        return np.asarray(self._won(copied, at) - self._won(honest, at))

    def _won(self, profile: ScoreProfile, at: Array) -> Array:
        """Return what the award pays with a score of at least each threshold; nothing without a score."""
        if profile.varied is None or profile.level is None:
            return self.arithmetic.zeros(len(at))
        return self._tails(profile.varied, at) + self._tails(profile.level, at)

    def _tails(self, awards: AwardLaw, at: Array) -> Array:
        """E[award's reward; score >= threshold], with a bound for dropped tails; exactly 0 if nothing can be won."""
        sums = self.arithmetic.zeros(len(awards.scores) + 1)
        sums[:-1] = np.cumsum(awards.rewards[::-1])[::-1]
        tails = np.asarray(sums[np.searchsorted(awards.scores, at)])
        if self.arithmetic.proven and len(awards.scores):
            lost = arb(0, LOST * self.game.award)
            tails = _array([(tail + lost).nonnegative_part() for tail in tails])
            tails[at == NEVER] = arb(0)
        return tails


def threshold_grid(profiles: list[ScoreProfile]) -> Array:
    """Return every possible score of the profiles, in increasing order."""
    scores = [law.scores for profile in profiles for law in (profile.varied, profile.level) if law is not None]
    return np.unique(np.concatenate([np.array([]), *scores]))


def _array(values: list[Number]) -> Array:
    array = np.empty(len(values), dtype=object if isinstance(values[0], arb) else float)
    array[:] = values
    return array
