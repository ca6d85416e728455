"""Exploration that is cut short: which arms were pulled how often, and the law of the rewards (no commitment yet)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cache

from flint import arb, fmpz

from cloneproof.engines.closed_form.laws.arithmetic import NEGLIGIBLE, Arithmetic, Number
from cloneproof.engines.closed_form.laws.reward_laws import RewardLaw, Sums
from cloneproof.engines.closed_form.phases.committed_sums import MeanCounts
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
    """The law of the rewards where `draws` random arms, without replacement, are pulled `step` times.

    The arms of type t have base[t] pulls together anyway. How many arms of a type are drawn is hypergeometric.
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
    """How many of the drawn are marked, and its chance, where that is not negligible.

    The ways are whole numbers, each made from the one before it by an exact division, and rounded once:
    ways(k + 1) = ways(k) (marked - k) (draws - k) / ((k + 1) (others - draws + k + 1)).

    >>> from cloneproof.engines.closed_form.laws.arithmetic import FLOATS
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
    """The different means and how many arms have each, the rarest first (fewest ways to draw from it)."""
    counts: dict[float, int] = {}
    for mean, count in runs:
        counts[mean] = counts.get(mean, 0) + count
    return tuple(sorted(counts.items(), key=lambda item: (item[1], item[0])))
