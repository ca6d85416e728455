"""One agent in the trials of a two-phase mechanism: the law of its score, jointly with what an award pays.

Given the realised means, the trial and (after a restart) the award are independent. For each realisation the law of the
score is computed exactly and multiplied by what an award would pay; the others matter only through the score.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

import numpy as np
from flint import arb, fmpz

from cloneproof._clock import check_time
from cloneproof.engines.closed_form.commitment import (
    Commitment,
    CopiedOriginal,
    EqualArms,
    Fixed,
    commitment,
    realisations,
    schedule,
)
from cloneproof.engines.closed_form.laws import (
    NEGLIGIBLE,
    Arithmetic,
    Array,
    Bernoulli,
    MeanCounts,
    Number,
    RewardLaw,
    Sums,
    products_without_each,
    tie_nodes,
)
from cloneproof.errors import EngineError
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.rule import Order


def unfinished_exploration(
    runs: MeanCounts, order: Order, arm_rounds: int, rounds: int, rewards: RewardLaw, arithmetic: Arithmetic
) -> Sums:
    """The law of the sum of `rounds` exploration rewards, fewer than all arms need; `runs` in order of registration.

    round-robin  every arm has floor(rounds / k) pulls, and rounds mod k random ones one more
    block        random arms one after the other, the last one partial
    index        the same in order of registration
    """
    if order == "index":
        total, left = rewards.pulls(0, runs[0][0]), rounds
        for mean, count in runs:
            taken = min(left, count * arm_rounds)
            total = rewards.plus(total, rewards.pulls(taken, mean))
            left -= taken
        return total
    types = merge_equal_means(runs)
    counts = [count for _, count in types]
    if order == "round-robin":
        each, extra = divmod(rounds, sum(counts))
        return sums_of_random_arms(types, [each * count for count in counts], counts, extra, 1, rewards, arithmetic)
    full, rest = divmod(rounds, arm_rounds)
    if rest == 0:
        return sums_of_random_arms(types, [0] * len(types), counts, full, arm_rounds, rewards, arithmetic)
    parts = []
    for t, (_, count) in enumerate(types):
        started = [rest if u == t else 0 for u in range(len(types))]
        others = [number - (u == t) for u, number in enumerate(counts)]
        weight = arithmetic.number(Fraction(count, sum(counts)))
        parts.append((weight, sums_of_random_arms(types, started, others, full, arm_rounds, rewards, arithmetic)))
    return rewards.mixture(parts)


def sums_of_random_arms(
    types: MeanCounts,
    base: list[int],
    counts: list[int],
    draws: int,
    step: int,
    rewards: RewardLaw,
    arithmetic: Arithmetic,
) -> Sums:
    """The law of the rewards if `draws` random arms, without replacement, are pulled `step` times.

    The arms of type t have base[t] pulls together in any case. How many arms of a type are drawn is hypergeometric.
    """

    @cache
    def rest(t: int, left: int) -> Sums:
        mean, others = types[t][0], sum(counts[t + 1 :])
        if t == len(types) - 1:
            return rewards.pulls(base[t] + step * left, mean)
        parts = []
        for number, chance in hypergeometric(counts[t], others, left, arithmetic):
            sums = rewards.pulls(base[t] + step * number, mean)
            parts.append((chance, rewards.plus(sums, rest(t + 1, left - number))))
        return rewards.mixture(parts)

    return rest(0, draws)


def hypergeometric(marked: int, others: int, draws: int, arithmetic: Arithmetic) -> Iterator[tuple[int, Number]]:
    """The number of marked items among the drawn, with probabilities that are not negligible.

    The ways are exact whole numbers, rounded once: ways(k + 1) = ways(k) (marked - k) (draws - k) / ((k + 1) (others -
    draws + k + 1)).

    >>> from cloneproof.engines.closed_form.laws import FLOATS
    >>> list(hypergeometric(2, 2, 2, FLOATS))
    [(0, 0.16666666666666666), (1, 0.6666666666666666), (2, 0.16666666666666666)]
    """
    least, most = max(0, draws - others), min(marked, draws)
    total = math.comb(marked + others, draws)
    ways = math.comb(marked, least) * math.comb(others, draws - least)
    for number in range(least, most + 1):
        chance = ways / total  # of whole numbers: rounded correctly, whatever their size
        if chance > NEGLIGIBLE:
            yield number, arb(fmpz(ways)) / arb(fmpz(total)) if arithmetic.proven else chance
        ways = ways * ((marked - number) * (draws - number)) // ((number + 1) * (others - draws + number + 1))


def merge_equal_means(runs: MeanCounts) -> MeanCounts:
    """The different means and how many arms have each, the rarest first."""
    counts: dict[float, int] = {}
    for mean, count in runs:
        counts[mean] = counts.get(mean, 0) + count
    return tuple(sorted(counts.items(), key=lambda item: (item[1], item[0])))


@dataclass(frozen=True)
class ScoreLaw:
    """The possible scores in increasing order (-inf: none), their chances, and E[award's reward; that score]."""

    scores: Array
    chances: Array
    awards: Array
    roundings: int


@dataclass(frozen=True)
class Phases:
    """The trial's and the award's rounds of the mechanism."""

    mechanism: Mechanism
    trial: int
    award: int

    @property
    def arm_rounds(self) -> int:
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
    """The joint law of score and award given the means, by the type of the chosen arm."""
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
            f"{phases.trial} rounds for {arms} arms of {m} rounds",
            "use engine='monte-carlo', or restart='award'",
        )
    sums = unfinished_exploration(runs, phases.mechanism.arm.order, m, phases.trial, rewards, arithmetic)
    return [(sums, awards[0])], chosen.roundings + 3 * (arms + 2) * len(types)  # a mixture for each type


def commitment_of_types(
    types: MeanCounts, arm_rounds: int, rewards: RewardLaw, arithmetic: Arithmetic
) -> tuple[list[EqualArms], Commitment]:
    """The commitment among arms of known means: a group for each mean."""
    groups = [EqualArms(((mean, Fraction(1)),), 1, count) for mean, count in types]
    if isinstance(rewards, Bernoulli):
        return groups, _among_bernoulli(types, arm_rounds, arithmetic)
    return groups, commitment(groups, lambda mean: rewards.comparison_law(mean, arm_rounds), arithmetic)


@lru_cache(maxsize=8192)
def _among_bernoulli(types: MeanCounts, arm_rounds: int, arithmetic: Arithmetic) -> Commitment:
    """The costly part of an audit, cached: it is the same for every number of agents, allowance of arms and score."""
    groups = [EqualArms(((mean, Fraction(1)),), 1, count) for mean, count in types]
    rewards = Bernoulli(arithmetic)
    return commitment(groups, lambda mean: rewards.comparison_law(mean, arm_rounds), arithmetic)


def etc_reward(
    runs: MeanCounts, phases: Phases, rounds: int, groups: list[EqualArms], chosen: Commitment, arithmetic: Arithmetic
) -> Number:
    """What a new ETC over arms of known means earns in so many rounds."""
    plan = schedule([count for _, count in runs], phases.mechanism.arm.order, phases.arm_rounds, Fixed.of(rounds))
    total = arithmetic.number(sum(mean * pulls for (mean, _), pulls in zip(runs, plan.exploration, strict=True)))
    if rounds > sum(count for _, count in runs) * phases.arm_rounds:
        best = sum(chosen.mean(groups, g) * group.number for g, group in enumerate(groups))
        total = total + arithmetic.number(plan.committed) * best
    return total


def awards(scores: list[ScoreLaw], arithmetic: Arithmetic) -> tuple[list[Number], int]:
    """The expected reward of each agent from the award, and the roundings."""
    grid = np.unique(np.concatenate([score.scores for score in scores]))
    at, before, prizes = {}, {}, {}
    for score in {id(score): score for score in scores}.values():
        chances, prize = arithmetic.zeros(len(grid)), arithmetic.zeros(len(grid))
        position = np.searchsorted(grid, score.scores)
        chances[position], prize[position] = score.chances, score.awards
        below = arithmetic.zeros(len(grid))
        below[1:] = np.cumsum(chances)[:-1]
        at[id(score)], before[id(score)], prizes[id(score)] = chances, below, prize
    nodes, weights = tie_nodes(len(scores) - 1, arithmetic)
    totals: list[Number] = [arithmetic.number(0)] * len(scores)
    for x, weight in zip(nodes, weights, strict=True):
        check_time("closed form")
        below_or_tied: dict[int, Array] = {key: before[key] + x * at[key] for key in at}
        rivals = products_without_each([below_or_tied[id(score)] for score in scores])
        for i, score in enumerate(scores):
            totals[i] = totals[i] + weight * (prizes[id(score)] @ rivals[i])
    worst = sum(score.roundings for score in scores) + len(scores) * (len(grid) + 4) + len(nodes) + len(grid)
    return totals, worst
