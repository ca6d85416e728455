"""One agent in the trials of a two-phase mechanism: the law of its score, and of its score with what an award pays it.

Given the realised means, the trial and (after a restart) the award are independent. So for each realisation the law of
the score is found exactly, and what an award would pay multiplies it; the other agents matter only through the score.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from cloneproof.engines.closed_form.laws.arithmetic import Arithmetic, Array, Number
from cloneproof.engines.closed_form.laws.reward_laws import Bernoulli, RewardLaw, Sums
from cloneproof.engines.closed_form.phases.commitment import Commitment, EqualArms, commitment
from cloneproof.engines.closed_form.phases.committed_sums import MeanCounts
from cloneproof.engines.closed_form.phases.cut_exploration import merge_equal_means, unfinished_exploration
from cloneproof.engines.closed_form.phases.realisations import CopiedOriginal, realisations
from cloneproof.engines.closed_form.phases.round_schedule import Fixed, schedule
from cloneproof.errors import EngineError
from cloneproof.mechanisms.mechanism import Mechanism


@dataclass(frozen=True)
class ScoreLaw:
    """The possible scores in increasing order (-inf: none), their chances, and E[award's reward; that score]."""

    scores: Array
    chances: Array
    awards: Array
    roundings: int


@dataclass(frozen=True)
class Phases:
    """What a realisation must know of the mechanism: the trial's and the award's rounds."""

    mechanism: Mechanism
    trial: int
    award: int

    @property
    def arm_rounds(self) -> int:
        """Exploration rounds of each arm."""
        return self.mechanism.arm.explore

    def order_matters(self, arms: int) -> bool:
        """Whether the order of registration can matter: only if an exploration by index is cut short."""
        needed = arms * self.arm_rounds
        return self.mechanism.arm.order == "index" and (self.trial < needed or 0 < self.award < needed)


ScorePiece = tuple[Sums | None, Number]  # the law of the sum that is scored (None: no score), what an award then pays


def agent_score(
    originals: list[CopiedOriginal], phases: Phases, rewards: RewardLaw, arithmetic: Arithmetic
) -> ScoreLaw:
    """The score of an agent, averaged over its realised means."""
    scored = phases.mechanism.scoring.counted_in(phases.trial)
    ordered = phases.order_matters(sum(original.copies for original in originals))
    parts: list[tuple[Array, Array, Number, Number]] = []
    roundings = count = 0
    for weight, runs in realisations(originals, ordered):
        if not weight:
            continue
        share = arithmetic.number(weight)
        pieces, lost = _pieces(runs, phases, rewards, arithmetic)
        for sums, award in pieces:
            if sums is None:
                scores, law, steps = np.array([-np.inf]), arithmetic.array([1]), 0
            else:
                scores, law, steps = rewards.scores(sums, scored)
            parts.append((scores, law, share, share * award))
            roundings, count = max(roundings, steps + lost), count + 1
    return _combine(parts, roundings + count + 8, arithmetic)


def _combine(parts: list[tuple[Array, Array, Number, Number]], roundings: int, arithmetic: Arithmetic) -> ScoreLaw:
    scores = np.unique(np.concatenate([part[0] for part in parts]))
    chances, awards = arithmetic.zeros(len(scores)), arithmetic.zeros(len(scores))
    for possible, law, share, award in parts:
        at = np.searchsorted(scores, possible)
        chances[at] += law * share
        awards[at] += law * award
    return ScoreLaw(scores, chances, awards, roundings)


def _pieces(
    runs: MeanCounts, phases: Phases, rewards: RewardLaw, arithmetic: Arithmetic
) -> tuple[list[ScorePiece], int]:
    """The joint law of score and award given the means, by the type of the arm that the trial committed to."""
    types = merge_equal_means(runs)
    arms, m = sum(count for _, count in types), phases.arm_rounds
    score, restart = phases.mechanism.scoring, phases.mechanism.clearing.at_award
    groups, chosen = commitment_of_types(types, m, rewards, arithmetic)
    number = arithmetic.number

    def fresh(rounds: int) -> Number:
        return etc_reward(runs, phases, rounds, groups, chosen, arithmetic)

    if len(types) == 1:
        awards = [number(Fraction(types[0][0]) * phases.award)]
    elif restart:
        awards = [fresh(phases.award)] * len(types)
    else:
        awards = [number(Fraction(mean) * phases.award) for mean, _ in types]
    if not score.allows(arms):
        paid = awards[0] if restart or len(types) == 1 else fresh(phases.trial + phases.award) - fresh(phases.trial)
        return [(None, paid)], chosen.roundings
    if score.fresh:
        rounds = score.counted_in(phases.trial)
        pieces: list[ScorePiece] = [
            (rewards.mixture([(chances[0] * count, rewards.pulls(rounds, mean))]), award)
            for (mean, count), chances, award in zip(types, chosen.chances, awards, strict=True)
        ]
        return pieces, chosen.roundings
    if len(types) == 1:
        return [(rewards.pulls(phases.trial, types[0][0]), awards[0])], chosen.roundings
    if phases.trial >= arms * m:
        left = phases.trial - arms * m
        explored = rewards.sums_by_commitment(types, m)
        return [
            (rewards.plus(sums, rewards.pulls(left, mean)), award)
            for (mean, _), sums, award in zip(types, explored, awards, strict=True)
        ], chosen.roundings
    if not restart:
        raise EngineError(
            f"the closed-form engine expects a trial that explores every arm where nothing restarts at the award, got "
            f"{phases.trial} rounds for {arms} arms of {m} rounds; use engine='monte-carlo', or restart='award'"
        )
    sums = unfinished_exploration(runs, phases.mechanism.arm.order, m, phases.trial, rewards, arithmetic)
    return [(sums, awards[0])], chosen.roundings + 3 * (arms + 2) * len(types)  # a mixture for each type


def commitment_of_types(
    types: MeanCounts, arm_rounds: int, rewards: RewardLaw, arithmetic: Arithmetic
) -> tuple[list[EqualArms], Commitment]:
    """Which of the arms of known means is committed to: a group for each mean."""
    groups = [EqualArms(((mean, Fraction(1)),), 1, count) for mean, count in types]
    if isinstance(rewards, Bernoulli):
        return groups, _among_bernoulli(types, arm_rounds, arithmetic)
    return groups, commitment(groups, lambda mean: rewards.comparison_law(mean, arm_rounds), arithmetic)


@lru_cache(maxsize=8192)
def _among_bernoulli(types: MeanCounts, arm_rounds: int, arithmetic: Arithmetic) -> Commitment:
    """The costly part of an audit, and the same for every number of agents, allowance of arms and score."""
    groups = [EqualArms(((mean, Fraction(1)),), 1, count) for mean, count in types]
    rewards = Bernoulli(arithmetic)
    return commitment(groups, lambda mean: rewards.comparison_law(mean, arm_rounds), arithmetic)


def etc_reward(
    runs: MeanCounts, phases: Phases, rounds: int, groups: list[EqualArms], chosen: Commitment, arithmetic: Arithmetic
) -> Number:
    """What a fresh ETC over arms of known means earns in so many rounds."""
    plan = schedule([count for _, count in runs], phases.mechanism.arm.order, phases.arm_rounds, Fixed.of(rounds))
    total = arithmetic.number(sum(mean * pulls for (mean, _), pulls in zip(runs, plan.exploration, strict=True)))
    if rounds > sum(count for _, count in runs) * phases.arm_rounds:
        best = sum(chosen.mean(groups, g) * group.number for g, group in enumerate(groups))
        total = total + arithmetic.number(plan.committed) * best
    return total
