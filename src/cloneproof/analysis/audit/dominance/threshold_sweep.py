"""The complete sweep: what a deviation gains at every threshold that the others can set.

Against fixed others an agent wins the award with a chance g(score) that does not fall in its score, ties included. A
nondecreasing g is a mixture of steps "wins with a score of at least y", y = "never" included, and payoffs are linear in
g. So no set of opponents, with any means and any strategies, gives a larger gain than the best single threshold does,
as long as the others are independent of the agent's means: g is then one and the same for all of them. Two more cases
belong to a score that too many arms lose: an agent without one loses to everybody who has one; and if nobody else has
one, it wins with chance 1/n, and with a score it wins for sure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from cloneproof.analysis.audit.dominance.score_profile import AwardLaw, ScoreProfile
from cloneproof.analysis.audit.dominance.two_phase_game import TwoPhaseGame
from cloneproof.engines.closed_form.expectation import prior_mean
from cloneproof.engines.closed_form.laws.arithmetic import LOST, PRECISION, Arithmetic, Array, Number

NEVER = math.inf  # nobody's score is enough
NOBODY = -math.inf  # no other agent has a score, or there is no contest


@dataclass(frozen=True)
class ThresholdSweep:
    """A deviation at every threshold, in rewards: what it gains, and what honesty earns there."""

    copies: tuple[int, ...]
    thresholds: Array
    gains: Array
    honest: Array

    def excess(self, tolerance: Number) -> Array:
        """The gain beyond the part of the honest payoff that counts as none; linear in the others as well."""
        return self.gains - tolerance * self.honest if tolerance else self.gains


def threshold_sweep(
    game: TwoPhaseGame, honest: ScoreProfile, copied: ScoreProfile, grid: Array, arithmetic: Arithmetic
) -> ThresholdSweep:
    """The deviation at all thresholds of the grid (which must hold every possible score of both), and two more."""
    with ctx.workprec(PRECISION):
        trial = _trial_gain(game, honest, copied, arithmetic)
        earned = _trial(game, honest, arithmetic)
        if not game.contested:
            prize = _award_gain(game, honest, copied, arithmetic)
            whole = earned + _award(game, honest, arithmetic)
            return ThresholdSweep(copied.copies, np.array([NOBODY]), _array([trial + prize]), _array([whole]))
        at = np.append(grid, NEVER)
        won = _won(game, honest, at, arithmetic)
        if copied.varied is not None and honest.varied is not None:  # both have a score: level means cancel exactly
            prize = _tails(copied.varied, at, game, arithmetic) - _tails(honest.varied, at, game, arithmetic)
        elif copied.varied is not None:  # an honest agent without a score never wins against one with a score
            prize = _won(game, copied, at, arithmetic)
        else:
            prize = -won
        gains, payoffs = prize + trial, won + earned
        if game.max_arms is None:
            return ThresholdSweep(copied.copies, at, gains, payoffs)
        nobody = trial + _alone(game, copied, arithmetic) - _alone(game, honest, arithmetic)
        if copied.varied is not None and honest.varied is not None:
            nobody = trial + _award_gain(game, honest, copied, arithmetic)
        first = earned + _alone(game, honest, arithmetic)
        at, gains = np.concatenate([[NOBODY], at]), np.concatenate([_array([nobody]), gains])
        return ThresholdSweep(copied.copies, at, gains, np.concatenate([_array([first]), payoffs]))


def upper_sweep(
    game: TwoPhaseGame, honest: ScoreProfile, arms: int, grid: Array, arithmetic: Arithmetic
) -> ThresholdSweep:
    """An upper bound for every copies vector of at least that many arms.

    An exploration round earns at most the best prior's mean, any other round at most the best original, and k arms take
    k m rounds to explore: so E[reward in H rounds] <= H mean + max(H - k m, 0) (E best - mean), and that falls in k.
    With a score the award may always be won; without one it is won only where nobody has one, with chance 1/n.
    """
    with ctx.workprec(PRECISION):
        mean = max(prior_mean(atoms) for atoms in game.priors)
        ideal = ScoreProfile((), mean, arithmetic.number(game.best_mean - mean), None, None)
        late = arithmetic.number(game.committed_trial(arms))
        trial = arithmetic.number((mean - honest.mean) * game.trial_mean) + ideal.excess * late
        trial = trial - honest.excess * arithmetic.number(game.committed_trial(honest.arms))
        award = arithmetic.number(mean * game.award) + ideal.excess * game.committed_award(arms)
        earned, certain = _trial(game, honest, arithmetic), _award(game, honest, arithmetic)
        copies = (arms - len(game.priors) + 1, *(1,) * (len(game.priors) - 1))
        if not game.contested:
            extra = arithmetic.number((mean - honest.mean) * game.award) + ideal.excess * game.committed_award(arms)
            extra = extra - honest.excess * game.committed_award(honest.arms)
            return ThresholdSweep(copies, np.array([NOBODY]), _array([trial + extra]), _array([earned + certain]))
        at = np.append(grid, NEVER)
        won = _won(game, honest, at, arithmetic)
        most = award if game.scored(arms) else arithmetic.number(0)
        gains, payoffs = -won + (trial + most), won + earned
        gains[-1] = trial  # the award is never won there
        if game.level and game.scored(arms):
            gains[:] = arithmetic.number(0)  # copies of equally good originals change nothing
        if game.max_arms is None:
            return ThresholdSweep(copies, at, gains, payoffs)
        alone = _alone(game, honest, arithmetic)
        chance = 1 if game.scored(arms) else Fraction(1, game.agents)
        nobody = trial + award * arithmetic.number(chance) - alone
        at, gains = np.concatenate([[NOBODY], at]), np.concatenate([_array([nobody]), gains])
        return ThresholdSweep(copies, at, gains, np.concatenate([_array([earned + alone]), payoffs]))


def threshold_grid(profiles: list[ScoreProfile]) -> Array:
    """Every possible score of the profiles, in increasing order."""
    scores = [law.scores for profile in profiles for law in (profile.varied, profile.level) if law is not None]
    return np.unique(np.concatenate([np.array([]), *scores]))


def _trial(game: TwoPhaseGame, profile: ScoreProfile, arithmetic: Arithmetic) -> Number:
    late = arithmetic.number(game.committed_trial(profile.arms))
    return arithmetic.number(profile.mean * game.trial_mean) + profile.excess * late


def _trial_gain(game: TwoPhaseGame, honest: ScoreProfile, copied: ScoreProfile, arithmetic: Arithmetic) -> Number:
    """Exactly 0 where nothing is committed to and the priors are equal, as the means of exploration cancel exactly."""
    number = arithmetic.number
    late = copied.excess * number(game.committed_trial(copied.arms))
    late = late - honest.excess * number(game.committed_trial(honest.arms))
    return late + number((copied.mean - honest.mean) * game.trial_mean)


def _award(game: TwoPhaseGame, profile: ScoreProfile, arithmetic: Arithmetic) -> Number:
    """What the award pays if it is certain."""
    return arithmetic.number(profile.mean * game.award) + profile.excess * game.committed_award(profile.arms)


def _award_gain(game: TwoPhaseGame, honest: ScoreProfile, copied: ScoreProfile, arithmetic: Arithmetic) -> Number:
    late = copied.excess * game.committed_award(copied.arms) - honest.excess * game.committed_award(honest.arms)
    return late + arithmetic.number((copied.mean - honest.mean) * game.award)


def _alone(game: TwoPhaseGame, profile: ScoreProfile, arithmetic: Arithmetic) -> Number:
    """What the award pays where no other agent has a score."""
    chance = Fraction(1) if profile.varied is not None else Fraction(1, game.agents)
    return _award(game, profile, arithmetic) * arithmetic.number(chance)


def _won(game: TwoPhaseGame, profile: ScoreProfile, at: Array, arithmetic: Arithmetic) -> Array:
    """What the award pays with a score of at least each threshold: nothing without a score."""
    if profile.varied is None or profile.level is None:
        return arithmetic.zeros(len(at))
    return _tails(profile.varied, at, game, arithmetic) + _tails(profile.level, at, game, arithmetic)


def _tails(awards: AwardLaw, at: Array, game: TwoPhaseGame, arithmetic: Arithmetic) -> Array:
    """With what the dropped tails of the laws can be worth; exactly 0 where there is nothing to win.

    Never less than nothing: without a score the award is lost, and where that loss is all, its sign must not be.
    """
    tails = awards.tails(at, arithmetic)
    if arithmetic.proven and len(awards.scores):
        lost = arb(0, LOST * game.award)
        tails = _array([(tail + lost).nonnegative_part() for tail in tails])
        tails[at == NEVER] = arb(0)
    return tails


def _array(values: list[Number]) -> Array:
    array = np.empty(len(values), dtype=object if isinstance(values[0], arb) else float)
    array[:] = values
    return array
