"""Which arm explore-then-commit commits to, averaged over random means, and each arm's expected rounds.

Exploration and commitment are piecewise linear in the number of rounds, so that the expectation over a random number of
rounds H needs E min(H, j m) for a few j only.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise, product
from typing import NamedTuple

from flint import arb

from cloneproof._clock import check_time
from cloneproof.engines.closed_form.laws import (
    Arithmetic,
    Array,
    Law,
    MeanCounts,
    Number,
    ball,
    expected_minimum,
    products_without_each,
    tie_nodes,
)
from cloneproof.mechanisms.rule import Order

ExactAtoms = tuple[tuple[float, Fraction], ...]
CHUNK = 1_000_000  # numbers held at a time for one factor


class EqualArms(NamedTuple):
    """`number` originals with the same prior, each registered `copies` times."""

    atoms: ExactAtoms
    copies: int
    number: int


@dataclass(frozen=True)
class Commitment:
    """For each group and value: the probability that a given original has this mean and one of its arms is chosen."""

    chances: tuple[tuple[Number, ...], ...]
    roundings: int

    def mean(self, groups: list[EqualArms], group: int) -> Number:
        """The mean of the chosen arm, if it belongs to a given original of the group."""
        weighted = zip(groups[group].atoms, self.chances[group], strict=True)
        return sum(chance * value for (value, _), chance in weighted)


def commitment(groups: list[EqualArms], comparison_law: Callable[[float], Law], arithmetic: Arithmetic) -> Commitment:
    """The probabilities of commitment; `comparison_law(mean)` is the law of what an arm is judged by.

    Originals are independent, and so are copies of one given its mean. The factor of an original in the tie formula is
    therefore the average over its prior of (F(s-) + x f(s))^copies, without enumerating joint means.
    """
    arms = sum(group.copies * group.number for group in groups)
    nodes, weights = tie_nodes(arms - 1, arithmetic)
    laws = {value: comparison_law(value) for group in groups for value, _ in group.atoms}
    chances = [[arithmetic.number(0)] * len(group.atoms) for group in groups]
    least = max(min(laws[value].low for value, _ in group.atoms) for group in groups)
    widest = 1
    for winner, law in laws.items():
        low, high = max(law.low, least), law.high  # the best arm is judged at least as good as each one's worst
        if low > high:
            continue
        widest = max(widest, high - low + 1)
        tails = {value: _below_and_at(other, low, high, arithmetic) for value, other in laws.items()}
        step = max(1, CHUNK // (high - low + 1))
        for start in range(0, len(nodes), step):
            check_time("closed form")
            x, weight = nodes[start : start + step, None], weights[start : start + step]
            below = {value: before + x * at for value, (before, at) in tails.items()}
            for g, gain in _wins(groups, winner, below, tails[winner][1], arithmetic):
                position = [value for value, _ in groups[g].atoms].index(winner)
                chances[g][position] = chances[g][position] + (weight @ gain).sum()
    # F + x f has 3 roundings, its powers 4 for each arm; then the sums over atoms, groups, values and nodes
    averaged = sum(group.number * (len(group.atoms) + 3) for group in groups)
    roundings = 5 * arms + averaged + 2 * len(groups) + widest + len(nodes) + 8
    return Commitment(tuple(tuple(row) for row in chances), roundings)


def _below_and_at(law: Law, low: int, high: int, arithmetic: Arithmetic) -> tuple[Array, Array]:
    """The weight below and at each number from low to high; a single entry if the law lies elsewhere."""
    if low <= law.high and law.low <= high:
        return law.on(low, high, arithmetic)
    return arithmetic.array([1 if law.high < low else 0]), arithmetic.array([0])


def _wins(
    groups: list[EqualArms], winner: float, below: dict[float, Array], at: Array, arithmetic: Arithmetic
) -> list[tuple[int, Array]]:
    """For each group that may have the winner's mean: the integrand of a given original's win, at each node."""
    factors = []
    for group in groups:
        check_time("closed form")
        terms = [arithmetic.number(weight) * below[value] ** group.copies for value, weight in group.atoms]
        factors.append(sum(terms[1:], terms[0]))
    others = products_without_each([factor**group.number for factor, group in zip(factors, groups, strict=True)])
    wins = []
    for g, group in enumerate(groups):
        share = dict(group.atoms).get(winner)
        if share is not None:
            tied = at * below[winner] ** (group.copies - 1) * factors[g] ** (group.number - 1)
            wins.append((g, tied * others[g] * arithmetic.number(share * group.copies)))
    return wins


def prior_mean(atoms: ExactAtoms) -> Fraction:
    """The exact expectation of a prior."""
    return sum((Fraction(value) * weight for value, weight in atoms), Fraction(0))


def expected_best(priors: list[ExactAtoms]) -> Number:
    """E max over independent originals, as a ball: the top value minus the integral of the distribution function."""
    equal = Counter(map(tuple, priors))
    values = sorted({value for atoms in equal for value, _ in atoms})
    total = ball(values[-1])
    for value, following in pairwise(values):
        below = arb(1)
        for atoms, count in equal.items():
            below *= ball(sum((weight for atom, weight in atoms if atom <= value), Fraction(0))) ** count
        total -= ball(Fraction(following) - Fraction(value)) * below
    return total


class CopiedOriginal(NamedTuple):
    """A registered original: its prior as exact atoms, and how often it is registered (at least once)."""

    atoms: ExactAtoms
    copies: int


def group_originals(originals: list[CopiedOriginal]) -> list[EqualArms]:
    """Group originals of equal prior and equal copies, in order of first appearance."""
    return [EqualArms(*original, number) for original, number in Counter(originals).items()]


def count_realisations(originals: list[CopiedOriginal], ordered: bool) -> int:
    """How many `realisations` there are."""
    if ordered:
        return math.prod(len(original.atoms) for original in originals)
    return math.prod(math.comb(g.number + len(g.atoms) - 1, g.number) for g in group_originals(originals))


def realisations(originals: list[CopiedOriginal], ordered: bool) -> Iterator[tuple[Fraction, MeanCounts]]:
    """Each realisation with its probability: runs of (mean, arms), optionally in order of registration."""
    if ordered:
        for atoms in product(*(original.atoms for original in originals)):
            check_time("closed form")
            runs = tuple((value, original.copies) for (value, _), original in zip(atoms, originals, strict=True))
            yield math.prod((weight for _, weight in atoms), start=Fraction(1)), runs
        return
    for parts in product(*(list(_multisets(group)) for group in group_originals(originals))):
        check_time("closed form")
        weight = math.prod((chance for chance, _ in parts), start=Fraction(1))
        yield weight, tuple(run for _, runs in parts for run in runs)


def _multisets(group: EqualArms) -> Iterator[tuple[Fraction, MeanCounts]]:
    """How many of the group's originals have each value, with multinomial probabilities."""
    for positions in combinations_with_replacement(range(len(group.atoms)), group.number):
        counts = Counter(positions)
        chance = Fraction(math.factorial(group.number))
        for position, number in counts.items():
            chance *= group.atoms[position][1] ** number / math.factorial(number)
        yield chance, tuple((group.atoms[position][0], number * group.copies) for position, number in counts.items())


@dataclass(frozen=True)
class Fixed:
    """A number of rounds that takes finitely many values."""

    chances: tuple[tuple[Fraction, int], ...]

    @classmethod
    def of(cls, rounds: int) -> Fixed:
        return cls(((Fraction(1), rounds),))

    @property
    def mean(self) -> Number:
        return ball(sum((chance * rounds for chance, rounds in self.chances), Fraction(0)))

    def minimum(self, cap: int) -> Number:
        return ball(sum((chance * min(rounds, cap) for chance, rounds in self.chances), Fraction(0)))


@dataclass(frozen=True)
class Binomial:
    """The rounds of an agent that is chosen with this probability in each of so many rounds."""

    rounds: int
    chance: Fraction

    @property
    def mean(self) -> Number:
        return ball(self.chance * self.rounds)

    def minimum(self, cap: int) -> Number:
        return expected_minimum(self.rounds, self.chance, cap)


Rounds = Fixed | Binomial


@dataclass(frozen=True)
class Schedule:
    """Expected exploration rounds of each entry of a level, and the expected rounds after the commitment."""

    exploration: tuple[Number, ...]
    committed: Number


def schedule(copies: Sequence[int], order: Order, arm_rounds: int, rounds: Rounds) -> Schedule:
    """The schedule of ETC over entries of so many arms each, in order of registration.

    With round-robin and block all arms expect the same number of exploration rounds.
    """
    arms = sum(copies)
    explored = rounds.minimum(arms * arm_rounds)
    committed = rounds.mean - explored
    if order != "index":
        return Schedule(tuple(explored * count / arms for count in copies), committed)
    ends, end = [], 0
    for count in copies:
        end += count * arm_rounds
        ends.append(rounds.minimum(end))
    return Schedule(tuple(end - start for start, end in zip([ball(0), *ends[:-1]], ends, strict=True)), committed)


def unfinished_trial(agents: int, order: Order, trial: int, horizon: int) -> list[Fixed]:
    """The rounds of each agent if the horizon ends within the trials."""
    if order == "round-robin":
        each, extra = divmod(horizon, agents)
        more = Fraction(extra, agents)
        return [Fixed(((1 - more, each), (more, each + 1)))] * agents
    turns = [min(max(horizon - trial * turn, 0), trial) for turn in range(agents)]
    if order == "index":
        return [Fixed.of(turn) for turn in turns]
    return [Fixed(tuple((Fraction(1, agents), turn) for turn in turns))] * agents
