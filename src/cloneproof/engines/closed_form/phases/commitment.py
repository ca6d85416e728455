"""Which arm explore-then-commit commits to, with the means still random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from cloneproof.engines.closed_form.laws.arithmetic import Arithmetic, Array, Number
from cloneproof.engines.closed_form.laws.integer_law import Law
from cloneproof.engines.closed_form.laws.tie_breaking import products_without_each, tie_nodes
from cloneproof.engines.time_limit import check_time

ExactAtoms = tuple[tuple[float, Fraction], ...]
CHUNK = 1_000_000  # numbers held at a time for one factor


class EqualArms(NamedTuple):
    """`number` originals with the same prior, each registered `copies` times."""

    atoms: ExactAtoms
    copies: int
    number: int


@dataclass(frozen=True)
class Commitment:
    """For each group and value: the chance that one given original has this mean and an arm of it is committed to."""

    chances: tuple[tuple[Number, ...], ...]
    roundings: int

    def mean(self, groups: list[EqualArms], group: int) -> Number:
        """The mean of the arm committed to, where it belongs to one given original of the group."""
        weighted = zip(groups[group].atoms, self.chances[group], strict=True)
        return sum(chance * value for (value, _), chance in weighted)


def commitment(groups: list[EqualArms], comparison_law: Callable[[float], Law], arithmetic: Arithmetic) -> Commitment:
    """The chances of commitment, where `comparison_law(mean)` is the law of what an arm is judged by.

    Originals are independent, and copies of one are so given its mean. So the factor of an original in the tie formula
    is its average over the prior of (F(s-) + x f(s))^copies, and no joint enumeration of means is needed.
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
    """The weight below and at each number from low to high; one entry for all of them where the law lies elsewhere."""
    if low <= law.high and law.low <= high:
        return law.on(low, high, arithmetic)
    return arithmetic.array([1 if law.high < low else 0]), arithmetic.array([0])


def _wins(
    groups: list[EqualArms], winner: float, below: dict[float, Array], at: Array, arithmetic: Arithmetic
) -> list[tuple[int, Array]]:
    """For each group that may have the winner's mean: the integrand of one given original's win, at each node."""
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
