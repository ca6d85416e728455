"""Which arm explore-then-commit commits to, averaged over random means, and each arm's expected rounds; trials.

Exploration and commitment are piecewise linear in the number of rounds, so that the expectation over a random number of
rounds H needs E min(H, j m) for a few j only.

In the trials of a two-phase mechanism, given the realised means, the trial and (after a restart) the award are
independent. For each realisation the law of an agent's score is computed exactly and multiplied by what an award would
pay; the others matter only through the score.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import Array, products_of_others, tie_nodes
from cloneproof.laws.counts import CountLaw, expected_minimum, hypergeometric
from cloneproof.laws.means import CopiedOriginal, EqualArms, MeanCounts, merge_equal_means, realisations
from cloneproof.mechanisms.bandits.rule import Order
from cloneproof.mechanisms.committing.rewards import RewardLaw, Sums

if TYPE_CHECKING:
    from cloneproof.mechanisms.committing.committing import Committing

CHUNK = 1_000_000  # numbers held at a time for one factor


@dataclass(frozen=True)
class Commitment:
    """For each group and value: the probability that a given original has this mean and one of its arms is chosen."""

    chances: tuple[tuple[float, ...], ...]

    def mean(self, groups: list[EqualArms], group: int) -> float:
        """Return the mean of the chosen arm, if it belongs to a given original of the group."""
        weighted = zip(groups[group].atoms, self.chances[group], strict=True)
        return sum(chance * value for (value, _), chance in weighted)


def commitment(groups: list[EqualArms], rewards: RewardLaw, arm_rounds: int) -> Commitment:
    """Return the probabilities of commitment after `arm_rounds` rounds of each arm.

    Originals are independent, and so are copies of one given its mean. The factor of an original in the tie formula is
    therefore the average over its prior of (F(s-) + x f(s))^copies, without enumerating joint means.
    """
    arms = sum(group.copies * group.number for group in groups)
    nodes, weights = tie_nodes(arms - 1)
    laws = {value: rewards.comparison_law(value, arm_rounds) for group in groups for value, _ in group.atoms}
    chances = [[0.0] * len(group.atoms) for group in groups]
    least = max(min(laws[value].low for value, _ in group.atoms) for group in groups)
    for winner, law in laws.items():
        low, high = max(law.low, least), law.high  # the best arm is judged at least as good as each one's worst
        if low > high:
            continue
        tails = {value: _below_and_at(other, low, high) for value, other in laws.items()}
        step = max(1, CHUNK // (high - low + 1))
        for start in range(0, len(nodes), step):
            x, weight = nodes[start : start + step, None], weights[start : start + step]
            below = {value: before + x * at for value, (before, at) in tails.items()}
            for g, gain in _wins(groups, winner, below, tails[winner][1]):
                position = [value for value, _ in groups[g].atoms].index(winner)
                chances[g][position] = chances[g][position] + (weight @ gain).sum()
    return Commitment(tuple(tuple(row) for row in chances))


def _below_and_at(law: CountLaw, low: int, high: int) -> tuple[Array, Array]:
    """Return the weight below and at each number from low to high; a single entry if the law lies elsewhere."""
    if low <= law.high and law.low <= high:
        return law.on(low, high)
    return np.array([float(law.high < low)]), np.zeros(1)


def _wins(groups: list[EqualArms], winner: float, below: dict[float, Array], at: Array) -> list[tuple[int, Array]]:
    """Return the integrand of a given original's win at each node, for each group that may have the winner's mean."""
    factors = []
    for group in groups:
        terms = [float(weight) * below[value] ** group.copies for value, weight in group.atoms]
        factors.append(sum(terms[1:], terms[0]))
    others = products_of_others([factor**group.number for factor, group in zip(factors, groups, strict=True)])
    wins = []
    for g, group in enumerate(groups):
        share = dict(group.atoms).get(winner)
        if share is not None:
            tied = at * below[winner] ** (group.copies - 1) * factors[g] ** (group.number - 1)
            wins.append((g, tied * others[g] * float(share * group.copies)))
    return wins


@dataclass(frozen=True)
class Fixed:
    """A number of rounds that takes finitely many values."""

    chances: tuple[tuple[Fraction, int], ...]

    @classmethod
    def of(cls, rounds: int) -> Fixed:
        return cls(((Fraction(1), rounds),))

    @property
    def mean(self) -> Fraction:
        return sum((chance * rounds for chance, rounds in self.chances), Fraction(0))

    def minimum(self, cap: int) -> Fraction:
        return sum((chance * min(rounds, cap) for chance, rounds in self.chances), Fraction(0))


@dataclass(frozen=True)
class Binomial:
    """Rounds of an agent that is chosen with probability `chance` in each of `rounds` rounds."""

    rounds: int
    chance: Fraction

    @property
    def mean(self) -> Fraction:
        return self.chance * self.rounds

    def minimum(self, cap: int) -> Fraction:
        return Fraction(expected_minimum(self.rounds, self.chance, cap))


Rounds = Fixed | Binomial


def schedule(copies: Sequence[int], order: Order, arm_rounds: int, rounds: Rounds) -> tuple[list[Fraction], Fraction]:
    """Return expected exploration rounds of entries with these numbers of arms, and those after the commitment.

    Entries are in order of registration. With round-robin and block all arms expect the same exploration.
    """
    arms = sum(copies)
    explored = rounds.minimum(arms * arm_rounds)
    committed = rounds.mean - explored
    if order != "index":
        return [explored * count / arms for count in copies], committed
    ends, end = [], 0
    for count in copies:
        end += count * arm_rounds
        ends.append(rounds.minimum(end))
    return [end - start for start, end in zip([Fraction(0), *ends[:-1]], ends, strict=True)], committed


def unfinished_trial(agents: int, order: Order, trial: int, horizon: int) -> list[Fixed]:
    """Return the rounds of each agent if the horizon ends within the trials."""
    if order == "round-robin":
        sweeps, extra = divmod(horizon, agents)
        more = Fraction(extra, agents)
        return [Fixed(((1 - more, sweeps), (more, sweeps + 1)))] * agents
    turns = [min(max(horizon - trial * turn, 0), trial) for turn in range(agents)]
    if order == "index":
        return [Fixed.of(turn) for turn in turns]
    return [Fixed(tuple((Fraction(1, agents), turn) for turn in turns))] * agents


def unfinished_exploration(runs: MeanCounts, order: Order, arm_rounds: int, rounds: int, rewards: RewardLaw) -> Sums:
    """Return the law of `rounds` exploration rewards, fewer than all arms need; `runs` in order of registration.

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
        sweeps, extra = divmod(rounds, sum(counts))
        return sums_of_random_arms(types, [sweeps * count for count in counts], counts, extra, 1, rewards)
    full, rest = divmod(rounds, arm_rounds)
    if rest == 0:
        return sums_of_random_arms(types, [0] * len(types), counts, full, arm_rounds, rewards)
    parts = []
    for t, (_, count) in enumerate(types):
        started = [rest if u == t else 0 for u in range(len(types))]
        others = [number - (u == t) for u, number in enumerate(counts)]
        parts.append((count / sum(counts), sums_of_random_arms(types, started, others, full, arm_rounds, rewards)))
    return rewards.mixture(parts)


def sums_of_random_arms(
    types: MeanCounts, base: list[int], counts: list[int], draws: int, step: int, rewards: RewardLaw
) -> Sums:
    """Return the law of the rewards if `draws` random arms, without replacement, are pulled `step` times.

    The arms of type t have base[t] pulls together in any case. How many arms of a type are drawn is hypergeometric.
    """

    @cache
    def rest(t: int, left: int) -> Sums:
        mean, others = types[t][0], sum(counts[t + 1 :])
        if t == len(types) - 1:
            return rewards.pulls(base[t] + step * left, mean)
        parts = []
        for number, chance in hypergeometric(counts[t], others, left):
            sums = rewards.pulls(base[t] + step * number, mean)
            parts.append((chance, rewards.plus(sums, rest(t + 1, left - number))))
        return rewards.mixture(parts)

    return rest(0, draws)


@dataclass(frozen=True)
class ScoreLaw:
    """Possible scores in increasing order (-inf: none), their chances, and E[award's reward; that score]."""

    scores: Array
    chances: Array
    awards: Array


@dataclass(frozen=True)
class Phases:
    """Rounds of the mechanism's trials and of its award."""

    mechanism: Committing
    trial: int
    award: int

    @property
    def arm_rounds(self) -> int:
        return self.mechanism.arm_rounds

    def order_matters(self, arms: int) -> bool:
        """Return whether the order of registration can matter: only if an exploration by index is cut short."""
        needed = arms * self.arm_rounds
        return self.mechanism.order == "index" and (self.trial < needed or 0 < self.award < needed)


ScorePiece = tuple[Sums, float]  # the law of the sum that is scored, what an award then pays


def agent_score(originals: list[CopiedOriginal], phases: Phases, rewards: RewardLaw) -> ScoreLaw:
    """Return the score of an agent, averaged over its realised means."""
    ordered = phases.order_matters(sum(original.copies for original in originals))
    parts: list[tuple[Array, Array, float, float]] = []
    for weight, runs in realisations(originals, ordered):
        if not weight:
            continue
        share = float(weight)
        for sums, award in _pieces(runs, phases, rewards):
            scores, law = rewards.scores(sums, phases.trial)
            parts.append((scores, law, share, share * award))
    scores = np.unique(np.concatenate([part[0] for part in parts]))
    chances, awards = np.zeros(len(scores)), np.zeros(len(scores))
    for possible, law, share, award in parts:
        at = np.searchsorted(scores, possible)
        chances[at] += law * share
        awards[at] += law * award
    return ScoreLaw(scores, chances, awards)


def _pieces(runs: MeanCounts, phases: Phases, rewards: RewardLaw) -> list[ScorePiece]:
    """Return the joint law of score and award given the means, by the type of the chosen arm."""
    types = merge_equal_means(runs)
    arms, m = sum(count for _, count in types), phases.arm_rounds
    restart = phases.mechanism.clears
    groups, chosen = commitment_of_types(types, m, rewards)

    def fresh(rounds: int) -> float:
        """Return the expected reward of a new ETC over `rounds` rounds."""
        copies, order = [count for _, count in runs], phases.mechanism.order
        explored, committed = schedule(copies, order, m, Fixed.of(rounds))
        total = float(sum(Fraction(mean) * pulls for (mean, _), pulls in zip(runs, explored, strict=True)))
        if rounds > arms * m:
            best = sum(chosen.mean(groups, g) * group.number for g, group in enumerate(groups))
            total = total + float(committed) * best
        return total

    if len(types) == 1:
        awards = [float(Fraction(types[0][0]) * phases.award)]
    elif restart:
        awards = [fresh(phases.award)] * len(types)
    else:
        awards = [float(Fraction(mean) * phases.award) for mean, _ in types]
    if len(types) == 1:
        return [(rewards.pulls(phases.trial, types[0][0]), awards[0])]
    if phases.trial >= arms * m:
        left = phases.trial - arms * m
        explored = rewards.sums_by_commitment(types, m)
        return [
            (rewards.plus(sums, rewards.pulls(left, mean)), award)
            for (mean, _), sums, award in zip(types, explored, awards, strict=True)
        ]
    if not restart:
        raise EngineError(
            "an exact law expects a trial that explores every arm where nothing restarts at the award, got "
            f"{phases.trial} rounds for {arms} arms of {m} rounds; take restart='award'"
        )
    sums = unfinished_exploration(runs, phases.mechanism.order, m, phases.trial, rewards)
    return [(sums, awards[0])]


@lru_cache(maxsize=8192)
def commitment_of_types(types: MeanCounts, arm_rounds: int, rewards: RewardLaw) -> tuple[list[EqualArms], Commitment]:
    """Return the commitment among arms of known means, and a group for each mean.

    The costly part of an audit, cached: it is the same for every number of agents, allowance of arms and score.
    """
    groups = [EqualArms(((mean, Fraction(1)),), 1, count) for mean, count in types]
    return groups, commitment(groups, rewards, arm_rounds)


def awards(scores: list[ScoreLaw]) -> list[float]:
    """Return the expected reward of each agent from the award."""
    grid = np.unique(np.concatenate([score.scores for score in scores]))
    at, before, prizes = {}, {}, {}
    for score in {id(score): score for score in scores}.values():
        chances, prize = np.zeros(len(grid)), np.zeros(len(grid))
        position = np.searchsorted(grid, score.scores)
        chances[position], prize[position] = score.chances, score.awards
        below = np.zeros(len(grid))
        below[1:] = np.cumsum(chances)[:-1]
        at[id(score)], before[id(score)], prizes[id(score)] = chances, below, prize
    totals = [0.0] * len(scores)
    for x, weight in zip(*tie_nodes(len(scores) - 1), strict=True):
        below_or_tied: dict[int, Array] = {key: before[key] + x * at[key] for key in at}
        rivals = products_of_others([below_or_tied[id(score)] for score in scores])
        for i, score in enumerate(scores):
            totals[i] = totals[i] + float(weight * (prizes[id(score)] @ rivals[i]))
    return totals
