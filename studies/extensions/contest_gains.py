"""What copies earn under any contest on fresh rewards, exactly: exploration, commitment, then the contest's rounds.

Given the means of an agent's originals and everything of the others, an arm of mean mu that is committed to is worth
V(mu) in the contest, whatever else was registered. So a gain needs only the chances of commitment and V at the agent's
own values, and it is linear in V: over every contest that could be it is largest at a corner of 0 <= V(mu) <= mu H.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, permutations

import numpy as np
from exact_contests import Contest, elimination_rounds, rounds_of_first

from cloneproof._arrays import FloatArray
from cloneproof.bounds.rounds import smallest
from cloneproof.engines.closed_form.commitment import commitment
from cloneproof.engines.closed_form.rewards import Bernoulli
from cloneproof.laws.means import EqualArms

Copies = tuple[int, ...]


@dataclass(frozen=True)
class Game:
    """The means of an agent's originals, K arms allowed, n agents, and the rounds after everybody's exploration."""

    values: tuple[float, ...]
    arms: int
    agents: int
    contest_rounds: int

    @property
    def means(self) -> list[float]:
        """The different means, rising."""
        return sorted(set(self.values))

    def horizon(self, m: int) -> int:
        """All rounds."""
        return self.agents * self.arms * m + self.contest_rounds

    def enough(self, wrong: int) -> int:
        """The smallest m with wrong * exp(-m gap^2) <= m gap / (l T); wrong: l - 1 (monotone), 2l - 1 (any contest)."""
        gap = min(b - a for a, b in pairwise(self.means))

        def holds(m: int) -> bool:
            return wrong * math.exp(-m * gap**2) <= m * gap / (len(self.values) * self.horizon(m))

        return smallest(holds)


@lru_cache(maxsize=100_000)
def commitments(values: tuple[float, ...], m: int, copies: Copies) -> tuple[FloatArray, float]:
    """The chance to commit to each of the means, and the mean of an explored arm, averaged over who has which mean."""
    orders, means = sorted(set(permutations(values))), sorted(set(values))
    chances, explored = np.zeros(len(means)), 0.0
    for order in orders:
        number = [sum(c for c, mean in zip(copies, order, strict=True) if mean == value) for value in means]
        groups = [EqualArms(((value, Fraction(1)),), 1, many) for value, many in zip(means, number, strict=True)]
        chosen = commitment(groups, Bernoulli(), m)
        chances += [float(row[0]) * many for row, many in zip(chosen.chances, number, strict=True)]
        explored += sum(c * mean for c, mean in zip(copies, order, strict=True)) / sum(copies)
    return chances / len(orders), explored / len(orders)


def before_the_contest(game: Game, m: int, copies: Copies) -> tuple[float, FloatArray]:
    """The reward of the K m rounds that every agent has anyway, and the chances of commitment."""
    chances, explored = commitments(game.values, m, copies)
    arms = sum(copies)
    return m * (arms * explored + (game.arms - arms) * float(chances @ np.array(game.means))), chances


def worst_over_contests(game: Game, m: int, copies: Copies, monotone: bool = False) -> float:
    """The largest gain of the copies over all contests, or over those in which a better arm gets no fewer rounds."""
    honest, at_honest = before_the_contest(game, m, (1,) * len(game.values))
    copied, at_copied = before_the_contest(game, m, copies)
    steps = (at_copied - at_honest) * np.array(game.means) * game.contest_rounds
    if monotone:  # rounds rise with the mean: mixtures of "all rounds from this mean on, none below it"
        return copied - honest + max(0.0, *(float(steps[k:].sum()) for k in range(len(steps))))
    return copied - honest + float(steps[steps > 0].sum())


def deviations(game: Game) -> list[Copies]:
    """Copies of at most K arms, the largest first."""
    originals = len(game.values)
    vectors = (tuple(c + 1 for c in extra) for extra in np.ndindex(*(game.arms,) * originals))
    return [v for v in vectors if originals < sum(v) <= game.arms and list(v) == sorted(v, reverse=True)]


def worths(game: Game, m: int, contest: Contest | str, others: FloatArray, start: int = 1) -> list[FloatArray]:
    """V at each of the agent's means against each row of the others' means; everybody begins with one round."""
    values = []
    for mean in game.means:
        means = np.column_stack([np.full(len(others), mean), others])
        if isinstance(contest, str):
            stages, total = game.contest_rounds // game.agents, game.contest_rounds
            rounds = elimination_rounds(means, total, stages, lambda stage: math.sqrt(2 * stage))
        else:
            left, begin = game.contest_rounds - game.agents, (start,) + (1,) * (game.agents - 1)
            rounds = 1 + rounds_of_first(contest, means, left, game.horizon(m), begin)
        values.append(mean * rounds)
    return values


def gain(
    game: Game, m: int, copies: Copies, contest: Contest | str, others: FloatArray, from_commitment: bool = False
) -> FloatArray:
    """What the copies gain in this contest against each row of the others' means.

    `from_commitment` is the broken variant in which rewards count from an agent's own commitment on: with fewer arms
    more of them are known when the contest begins, and an index is less optimistic.
    """
    paid = []
    for vector in ((1,) * len(game.values), copies):
        start = 1 + (game.arms - sum(vector)) * m if from_commitment else 1
        sure, chances = before_the_contest(game, m, vector)
        worth = worths(game, m, contest, others, start)
        paid.append(sure + sum(chance * value for chance, value in zip(chances, worth, strict=True)))
    return np.asarray(paid[1] - paid[0])
