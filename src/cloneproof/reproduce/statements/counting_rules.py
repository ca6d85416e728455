"""Three rules that look at how many arms there are, in fractions: against Proposition 1, and a footnote of Theorem 2.

All are permutation invariant.

Rules A and C: pull each of k arms once, in a random order; then in each round the best one with chance b, else a
uniform arm. Arms pay their mean surely.

- A: b = 1 for k <= 3, but 0 where the three values are 1, 1/2, 0; b = 1/2 for k >= 4.
- C: b = 1 for k <= 2 and for three different values, 0 for three of which two are equal; b = 1/2 for k >= 4.

Rule B, for every law of rewards in [0, 1]. One arm: that arm. Two: one pull r of each, then for good arm i with chance
1/2 + (r_i - rbar). Three: five pulls r, s, s', t, t' of each, in a random order, then for good arm i with chance
1/3 + (r_i - rbar)(1 - 17 det(1, s, s s') det(1, t, t t'))/36, determinants of the arms' rows. Four and more: a uniform
arm in each round. Each reward enters linearly, so only means matter: the determinants have the mean V, the product of
the three differences of means.

Averaged over who has which mean, an exploring round costs D, the average distance to the best mean, whatever is
registered. `docs/textbook/necessity.md` has the proofs: A and B violate TRP at (1, 1/2, 0), and under no prior do
copies pay (A: where rewards are sure; B: always); C is TRP for different means, and copies pay where means may be
equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import permutations, product

HALF = Fraction(1, 2)
VIOLATING = (Fraction(1), HALF, Fraction(0))  # the means at which A and B violate TRP
RulePayoff = Callable[[Sequence[Fraction], int], Fraction]  # expected reward of T rounds over arms of these means


def rule_a(arms: Sequence[Fraction], horizon: int) -> Fraction:
    """Expected reward under rule A.

    >>> rule_a(VIOLATING, 100), rule_a((Fraction(1), *VIOLATING), 100)
    (Fraction(50, 1), Fraction(161, 2))
    """
    if len(arms) >= 4:
        return best_or_uniform(arms, horizon, HALF)
    return best_or_uniform(arms, horizon, Fraction(sorted(arms) != sorted(VIOLATING)))


def rule_c(arms: Sequence[Fraction], horizon: int) -> Fraction:
    """Expected reward under rule C."""
    if len(arms) >= 4:
        return best_or_uniform(arms, horizon, HALF)
    return best_or_uniform(arms, horizon, Fraction(len(arms) < 3 or len(set(arms)) == 3))


def best_or_uniform(arms: Sequence[Fraction], horizon: int, best: Fraction) -> Fraction:
    """Each arm once, then the best one with that chance, else a uniform one; sure rewards."""
    average = sum(arms, Fraction(0)) / len(arms)
    explored = min(horizon, len(arms))
    return explored * average + (horizon - explored) * (best * max(arms) + (1 - best) * average)


def rule_b(arms: Sequence[Fraction], horizon: int) -> Fraction:
    """Expected reward under rule B, which depends on the means alone.

    >>> 100 - rule_b(VIOLATING, 100)
    Fraction(57685, 1152)
    """
    average, explored = sum(arms, Fraction(0)) / len(arms), {1: 1, 2: 2, 3: 15}.get(len(arms), 0)
    return horizon * average + max(0, horizon - explored) * advantage(arms)


def advantage(arms: Sequence[Fraction]) -> Fraction:
    """How much more than the average mean a round of rule B earns after its exploration."""
    if len(arms) == 2:
        return (arms[0] - arms[1]) ** 2 / 2
    return (1 - 17 * vandermonde(arms) ** 2) * squares(arms) / 36 if len(arms) == 3 else Fraction(0)


def vandermonde(means: Sequence[Fraction]) -> Fraction:
    """V, the product of the differences of three means."""
    return (means[1] - means[0]) * (means[2] - means[0]) * (means[2] - means[1])


def squares(means: Sequence[Fraction]) -> Fraction:
    """S, the sum of squared distances to their average."""
    average = sum(means, Fraction(0)) / len(means)
    return sum(((mean - average) ** 2 for mean in means), Fraction(0))


def permuted_regret(rule: RulePayoff, means: Sequence[Fraction], copies: Sequence[int], horizon: int) -> Fraction:
    """RP-regret: averaged over which original has how many copies.

    >>> [str(permuted_regret(rule_a, VIOLATING, copies, 100)) for copies in ((1, 1, 1), (2, 1, 1))]
    ['50', '26']
    """
    orders = list(permutations(copies))
    earned = sum((rule(registered_means(means, order), horizon) for order in orders), Fraction(0))
    return horizon * max(means) - earned / len(orders)


def ex_ante_payoff(
    rule: RulePayoff, prior: Mapping[Fraction, Fraction], copies: Sequence[int], horizon: int
) -> Fraction:
    """The agent's expected reward over a prior of i.i.d. means, share 1."""
    total = Fraction(0)
    for draw in product(prior.items(), repeat=len(copies)):
        weight = Fraction(1)
        for _, chance in draw:
            weight *= chance
        total += weight * rule(registered_means([mean for mean, _ in draw], copies), horizon)
    return total


def registered_means(means: Sequence[Fraction], copies: Sequence[int]) -> tuple[Fraction, ...]:
    """The arms' means in order of registration."""
    return tuple(mean for mean, count in zip(means, copies, strict=True) for _ in range(count))
