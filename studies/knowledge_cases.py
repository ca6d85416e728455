"""The ceiling of knowledge in small cases, in fractions (docs/textbook/knowledge.md).

    python studies/knowledge_cases.py [CASES] [SEED]

Two levels: an agent by a steady index of its own rewards, which never falls if one of them is raised; within an agent
any rule that sees its own rewards and dice. Each case draws such indices, rules within, the rates of two or three
agents, how ties are broken and a horizon, all of them small fractions, and computes exactly what one agent earns with
several lists: honest, copies, withheld items. None may earn more than its best item alone. Two faults are planted: an
index that falls when a reward is raised, and a rule within that looks at the clock. Nothing of the package is used.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

History = tuple[tuple[int, int], ...]  # of one agent: the arm and the reward, 0 or 1, of each of its rounds
Index = Callable[[tuple[int, ...]], Fraction]
LISTS = ((1, 1), (2, 1), (1, 2), (3, 1), (1, 0), (2, 2), (1, 3))


class Agent(NamedTuple):
    """The rate of each arm, the index of rewards in their order, and the seed of the rule within."""

    rates: tuple[Fraction, ...]
    index: Index
    within: int


def random_index(dice: random.Random, falls: bool = False) -> Index:
    """An index that rises in every reward: the larger of two sums with weights and offsets by number and place.

    With `falls`, one of the rewards counts against its agent.
    """
    weights = [[[Fraction(dice.randint(0, 6), 4) for _ in range(8)] for _ in range(8)] for _ in range(2)]
    offsets = [[Fraction(dice.randint(-8, 8), 4) for _ in range(8)] for _ in range(2)]
    against = Fraction(dice.randint(2, 6)) if falls else Fraction(0)

    @cache
    def index(rewards: tuple[int, ...]) -> Fraction:
        number = len(rewards)
        sums = [offset[number] for offset in offsets]
        for k in range(2):
            sums[k] += sum(weight * reward for weight, reward in zip(weights[k][number], rewards, strict=False))
        return max(sums) - (against * rewards[0] if rewards else 0)

    return index


def arm_shown(agent: Agent, history: History) -> list[tuple[Fraction, int]]:
    """The chance of each arm after a history: a rule of its own at every history, with dice of its own."""
    dice = random.Random(hash((agent.within, history)))
    arms = range(len(agent.rates))
    if dice.random() < 0.5:
        return [(Fraction(1), dice.choice(arms))]
    odds = [dice.randint(0, 3) for _ in arms]
    total = sum(odds) or 1
    return [(Fraction(each, total), arm) for arm, each in enumerate(odds) if each] or [(Fraction(1), 0)]


def pay(agents: Sequence[Agent], rounds: int, uniform_ties: bool) -> Fraction:
    """What the first agent earns in expectation; ties go to the earlier agent, or are uniform."""

    @cache
    def from_here(left: int, histories: tuple[History, ...]) -> Fraction:
        if left == 0:
            return Fraction(0)
        values = [agent.index(tuple(r for _, r in own)) for agent, own in zip(agents, histories, strict=True)]
        best = [k for k, value in enumerate(values) if value == max(values)]
        chosen = best if uniform_ties else best[:1]
        total = Fraction(0)
        for k in chosen:
            for chance, arm in arm_shown(agents[k], histories[k]):
                for reward, odds in ((1, agents[k].rates[arm]), (0, 1 - agents[k].rates[arm])):
                    if odds:
                        after = (*histories[:k], (*histories[k], (arm, reward)), *histories[k + 1 :])
                        earned = (reward if k == 0 else 0) + from_here(left - 1, after)
                        total += chance * odds * earned / len(chosen)
        return total

    return from_here(rounds, ((),) * len(agents))


class Case(NamedTuple):
    """What the best item alone earns, and each list."""

    alone: Fraction
    lists: dict[tuple[int, int], Fraction]

    @property
    def most_gained(self) -> Fraction:
        """By how much the best list beats the best item alone; 0 or less by the theorem."""
        return max(self.lists.values()) - self.alone


def random_case(dice: random.Random, falls: bool = False) -> Case:
    """Draw a case and compute it."""
    rates = sorted(Fraction(dice.randint(0, 6), 6) for _ in range(2))
    index, within = random_index(dice, falls), dice.getrandbits(32)
    rounds, ties = dice.randint(2, 5), dice.random() < 0.5
    rivals = [
        Agent(tuple(Fraction(dice.randint(0, 6), 6) for _ in range(dice.randint(1, 2))), random_index(dice),
              dice.getrandbits(32))
        for _ in range(dice.randint(1, 2))
    ]  # fmt: skip

    def earned(listed: tuple[int, ...]) -> Fraction:
        arms = tuple(rate for rate, number in zip(rates, listed, strict=True) for _ in range(number))
        return pay([Agent(arms, index, within), *rivals], rounds, ties)

    lists = {listed: earned(listed) for listed in dice.sample(LISTS, 4)}
    return Case(earned((0, 1)), lists)


def with_a_clock(rate: Fraction, rounds: int = 11) -> Fraction:
    """What an item alone earns against an agent that shows .44 in even rounds and 0 in odd ones: sure rewards.

    The index is the sum less half of the number of rounds; ties go to the item.
    """
    sums, numbers, earned = [Fraction(0), Fraction(0)], [0, 0], Fraction(0)
    for now in range(1, rounds + 1):
        mine = sums[0] - Fraction(numbers[0], 2) >= sums[1] - Fraction(numbers[1], 2)
        who, reward = (0, rate) if mine else (1, Fraction(44, 100) if now % 2 == 0 else Fraction(0))
        sums[who], numbers[who] = sums[who] + reward, numbers[who] + 1
        earned += reward if mine else 0
    return earned


def main(cases: int = 2000, seed: int = 52) -> None:
    """Print how many cases there were, and in how many a list beats the best item alone."""
    for falls in (False, True):
        dice = random.Random(f"{seed} {falls}")
        found = [random_case(dice, falls).most_gained for _ in range(cases)]
        beaten, equal = sum(gain > 0 for gain in found), sum(gain == 0 for gain in found)
        kind = "an index that falls in a reward" if falls else "steady indices"
        print(f"{kind}: {cases} cases, a list beats the best item alone in {beaten}, equals it in {equal}, by at most "
              f"{float(max(found)):.4f}")  # fmt: skip
    alone = {rate: with_a_clock(Fraction(rate, 100)) for rate in (45, 43)}
    print("a rule within that looks at the clock:", ", ".join(f".{k} alone earns {float(v)}" for k, v in alone.items()))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
