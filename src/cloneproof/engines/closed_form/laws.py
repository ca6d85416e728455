"""Two arithmetics behind one interface: floats for speed, balls for proof.

Vectors are NumPy arrays of floats or of `flint.arb` balls, so that the same code computes with both. Binomial laws,
Gauss nodes and expected rounds are computed in ball arithmetic first, so float tables are correctly rounded.

Ties. Give every candidate a uniform tie-breaker. Candidate a wins at value s with tie-breaker x if each other b is
below s, or at s with a smaller tie-breaker: P(a wins at s) = f_a(s) int_0^1 prod_{b != a} (F_b(s-) + x f_b(s)) dx. The
integrand is a polynomial in x with nonnegative coefficients, so a Gauss-Legendre rule with enough nodes is exact and
free of cancellation.

Binomial laws. Only the window with all but NEGLIGIBLE of the probability is kept. Terms fall away from the mode, so the
cut on one side is at most its first term times the number of terms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce
from itertools import accumulate
from typing import Any, Final

import numpy as np
from flint import arb, arb_poly, ctx, fmpq
from numpy.typing import NDArray

from cloneproof._clock import check_time
from cloneproof.mechanisms.online.levels import TICK_BITS, ticks

Array = NDArray[Any]
Number = Any  # a float or a ball

PRECISION: Final = 192  # bits; lgamma at 10^15 rounds loses about 60 of them
UNIT: Final = 2.0**-53  # the relative error of one rounding
NEGLIGIBLE: Final = 1e-45  # a probability that may be dropped; all of those together stay below LOST
LOST: Final = 1e-30  # the probability that is lost to dropped tails, at most
_LOG_ERROR = {False: 42.0, True: 110.0}  # relative errors of 6e-19 and 2e-48
UNLIKELY = 1e-34  # a chance of a best value so low that it may be left out


def ball(value: Fraction | float) -> Number:
    """Return the exact number as a ball; a float is read as a dyadic fraction."""
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


@dataclass(frozen=True)
class Arithmetic:
    """Arithmetic of a computation: in balls if `proven`, otherwise in floats."""

    proven: bool

    def number(self, value: Number | Fraction) -> Number:
        """Return a ball, fraction, whole number or float, in this arithmetic."""
        if self.proven:
            return value if isinstance(value, arb) else ball(value)
        return float(value)

    def array(self, values: list[Number]) -> Array:
        if not self.proven:
            return np.array([float(value) for value in values])
        made = np.empty(len(values), dtype=object)
        made[:] = [self.number(value) for value in values]
        return made

    def zeros(self, *shape: int) -> Array:
        if not self.proven:
            return np.zeros(shape)
        made = np.empty(shape, dtype=object)
        made[...] = arb(0)
        return made

    def convolve(self, a: Array, b: Array) -> Array:
        """Multiply two polynomials with nonnegative coefficients, without cancellation."""
        if not self.proven:
            return np.convolve(a, b)
        product = (arb_poly(a.tolist()) * arb_poly(b.tolist())).coeffs()
        made = self.zeros(len(a) + len(b) - 1)
        made[: len(product)] = product
        return made


FLOATS: Final = Arithmetic(proven=False)
BALLS: Final = Arithmetic(proven=True)


def node_count(degree: int, proven: bool) -> int:
    """Return enough nodes for a polynomial of that degree with nonnegative coefficients.

    N = degree // 2 + 1 are exact. Fewer do for a large degree k: N nodes integrate x^k with relative error at most
    4 (k+1) exp(-4 N^2 / k), since the Chebyshev coefficients of ((1+t)/2)^k are 2 C(2k, k+j) / 4^k, of which the rule
    misses those from j = 2N on, a binomial tail. Smaller powers do better, so the bound holds for their sums.
    """
    reduced = 0.5 * math.sqrt(degree * (_LOG_ERROR[proven] + math.log(4 * degree + 4)))
    return min(degree // 2 + 1, math.ceil(reduced) + 1)


@lru_cache(maxsize=256)
def _nodes(degree: int, proven: bool) -> tuple[Array, Array]:
    exact, number = degree // 2 + 1, node_count(degree, proven)
    arithmetic = BALLS if proven else FLOATS
    with ctx.workprec(PRECISION):
        pairs = [arb.legendre_p_root(number, k, weight=True) for k in range(number)]
        slack = arb(1) if number == exact else arb(1, 2 * math.exp(-_LOG_ERROR[proven]))
        nodes = arithmetic.array([(1 + root) / 2 for root, _ in pairs])
        weights = arithmetic.array([slack * weight / 2 for _, weight in pairs])
    return nodes, weights


def tie_nodes(degree: int, arithmetic: Arithmetic) -> tuple[Array, Array]:
    """Return nodes and weights on [0, 1] that integrate every polynomial of that degree with coefficients >= 0."""
    return _nodes(degree, arithmetic.proven)


def products_without_each(factors: list[Array]) -> list[Array]:
    """Return for each factor the product of all others, with no division."""
    before, after = [factors[0] * 0 + 1], [factors[-1] * 0 + 1]
    for factor in factors[:-1]:
        before.append(before[-1] * factor)
    for factor in reversed(factors[1:]):
        after.append(after[-1] * factor)
    return [left * right for left, right in zip(before, reversed(after), strict=True)]


def binomial_term(rounds: int, chance: Fraction, count: int) -> Number:
    """Return P(Bin(rounds, chance) = count), for a chance strictly between 0 and 1."""
    p, up, down = ball(chance), arb(count + 1), arb(rounds - count + 1)
    ways = arb(rounds + 1).lgamma() - up.lgamma() - down.lgamma()
    return (ways + count * p.log() + (rounds - count) * (1 - p).log()).exp()


@lru_cache(maxsize=4096)
def binomial_window(rounds: int, mean: float | Fraction) -> tuple[int, tuple[Number, ...]]:
    """Return the first count of the window and the probabilities from there on, as balls."""
    chance = Fraction(mean)
    if rounds == 0 or chance == 0:
        return 0, (arb(1),)
    if chance == 1:
        return rounds, (arb(1),)
    with ctx.workprec(PRECISION):
        odds = ball(chance / (1 - chance))
        mode = min(rounds, int((rounds + 1) * chance))
        least = ball(NEGLIGIBLE / (rounds + 1))
        peak = binomial_term(rounds, chance, mode)
        above, term, count = [], peak, mode
        while count < rounds and not term < least:
            term = term * odds * (rounds - count) / (count + 1)
            count += 1
            above.append(term)
        below, term, count = [], peak, mode
        while count > 0 and not term < least:
            term = term * count / (odds * (rounds - count + 1))
            count -= 1
            below.append(term)
    return mode - len(below), (*reversed(below), peak, *above)


@lru_cache(maxsize=1024)
def binomial_below(rounds: int, mean: float | Fraction) -> tuple[Number, ...]:
    """Return the probability of at most each number of the window, as balls."""
    with ctx.workprec(PRECISION):
        return tuple(accumulate(binomial_window(rounds, mean)[1]))


@lru_cache(maxsize=256)
def expected_minimum(rounds: int, chance: Fraction, cap: int) -> Number:
    """Return E min(H, cap) for H = Bin(rounds, chance), as a ball.

    Below the mean it is cap - sum_{h < cap} (cap - h) P(H = h), above it E H - sum_{h > cap} (h - cap) P(H = h): both
    sums start at the cap and fall geometrically away from the mean, or within a few standard deviations of it.
    """
    mean = chance * rounds
    if cap >= rounds or chance == 0:
        return ball(min(mean, Fraction(cap)) if chance == 0 else mean)
    if chance == 1:
        return arb(min(rounds, cap))
    with ctx.workprec(PRECISION):
        odds, least = ball(chance / (1 - chance)), ball(Fraction(NEGLIGIBLE) / (rounds + 1) ** 2)
        excess, distance = arb(0), 0
        low = cap <= mean
        count = cap - 1 if low else cap + 1
        term = binomial_term(rounds, chance, count)
        while True:
            distance += 1
            excess += distance * term
            if count == (0 if low else rounds) or term < least:
                break
            if low:
                term = term * count / (odds * (rounds - count + 1))
                count -= 1
            else:
                term = term * odds * (rounds - count) / (count + 1)
                count += 1
        # what is left is at most rounds * rounds terms' worth of the last one, hence below NEGLIGIBLE
        excess += arb(NEGLIGIBLE / 2, NEGLIGIBLE / 2) if term < least else arb(0)
        return (ball(cap) if low else ball(mean)) - excess


@dataclass(frozen=True)
class Law:
    """Weights of low, low + 1, .., which need not sum to 1 (a law of some event and a number together).

    Weights are nonnegative and are only ever added and multiplied, so each is right up to a relative error of
    `roundings` * 2^-53 to first order.
    """

    low: int
    weights: Array
    roundings: int = 1
    cumulated: Array | None = None  # the weights up to each number, where they are known better than by adding up

    @property
    def high(self) -> int:
        """Largest number of the window."""
        return self.low + len(self.weights) - 1

    def on(self, low: int, high: int, arithmetic: Arithmetic) -> tuple[Array, Array]:
        """Return the weight below each number from low to high, and the weight at it."""
        at, before = arithmetic.zeros(high - low + 1), arithmetic.zeros(high - low + 1)
        below = np.cumsum(self.weights) if self.cumulated is None else self.cumulated
        first, last = max(low, self.low), min(high, self.high)
        if first <= last:
            at[first - low : last - low + 1] = self.weights[first - self.low : last - self.low + 1]
        first, last = max(low, self.low + 1), min(high, self.high)
        if first <= last:
            before[first - low : last - low + 1] = below[first - 1 - self.low : last - self.low]
        if high > self.high:
            before[max(self.high + 1 - low, 0) :] = below[-1]
        return before, at


@lru_cache(maxsize=2048)  # thousands of mixtures of a few hundred of them; a window has some 14 standard deviations
def binomial(rounds: int, mean: float, arithmetic: Arithmetic) -> Law:
    """Return the law of the number of successes."""
    low, window = binomial_window(rounds, mean)
    weights = arithmetic.array(list(window))
    weights.flags.writeable = False
    return Law(low, weights)


def binomial_with_cdf(rounds: int, mean: float | Fraction, arithmetic: Arithmetic) -> Law:
    """Return the law with its distribution function, rounded once, so that high powers of it are accurate."""
    low, window = binomial_window(rounds, mean)
    return Law(low, arithmetic.array(list(window)), 1, arithmetic.array(list(binomial_below(rounds, mean))))


def convolve(a: Law, b: Law, arithmetic: Arithmetic) -> Law:
    """Return the law of the sum of two independent numbers; a sum of positive products loses one rounding a term."""
    if len(a.weights) == 1 or len(b.weights) == 1:
        return Law(a.low + b.low, a.weights * b.weights, a.roundings + b.roundings + 1)
    check_time("closed form")
    roundings = a.roundings + b.roundings + min(len(a.weights), len(b.weights))
    return trim(Law(a.low + b.low, arithmetic.convolve(a.weights, b.weights), roundings))


def power(law: Law, exponent: int, arithmetic: Arithmetic) -> Law:
    """Return the law of the sum of that many independent numbers, by repeated squaring."""
    result: Law | None = None
    while exponent:
        if exponent & 1:
            result = law if result is None else convolve(result, law, arithmetic)
        exponent >>= 1
        if exponent:
            law = convolve(law, law, arithmetic)
    return Law(0, arithmetic.array([1]), 0) if result is None else result


def scale(law: Law, factor: Number) -> Law:
    """Multiply every weight by a factor."""
    return Law(law.low, law.weights * factor, law.roundings + 2)


def add_laws(laws: Iterable[Law], arithmetic: Arithmetic) -> Law:
    """Add laws, weight by weight."""
    parts = list(laws)
    if len(parts) == 1:
        return parts[0]
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    total = arithmetic.zeros(high - low + 1)
    for part in parts:
        total[part.low - low : part.high - low + 1] += part.weights
    return Law(low, total, max(part.roundings for part in parts) + len(parts))


def trim(law: Law) -> Law:
    """Drop negligible weights at both ends."""
    weights = law.weights
    if weights.dtype != object:
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        if not len(kept):
            return Law(law.low, weights[:1], law.roundings)
        return Law(law.low + int(kept[0]), weights[kept[0] : kept[-1] + 1], law.roundings)
    first, last = 0, len(weights) - 1
    while first < last and weights[first] < NEGLIGIBLE:
        first += 1
    while last > first and weights[last] < NEGLIGIBLE:
        last -= 1
    return Law(law.low + first, weights[first : last + 1], law.roundings)


MeanCounts = tuple[tuple[float, int], ...]  # different means, and how many arms have each


def committed_sums(types: MeanCounts, rounds: int, arithmetic: Arithmetic) -> list[Law]:
    """Return, for each type, the law of the successes in `rounds` pulls of every arm if that type is chosen."""
    laws = [binomial(rounds, mean, arithmetic) for mean, _ in types]
    sums: list[list[Law]] = [[] for _ in types]
    low = _lowest_best(laws, types)
    for high in sorted({law.high for law in laws}):
        if high < low:
            continue
        active = [t for t, law in enumerate(laws) if law.high >= high]
        whole = [binomial(rounds * types[t][1], types[t][0], arithmetic) for t in range(len(types)) if t not in active]
        if len(active) == 1:
            parts = {active[0]: [_best_from(laws[active[0]], types[active[0]], low, rounds, arithmetic)]}
        else:
            kinds = [(laws[t], types[t][1]) for t in active]
            arms = sum(count for _, count in types)
            parts = {t: part for t, part in zip(active, _ties(kinds, low, high, arms, arithmetic), strict=True) if part}
        for t, part in parts.items():
            sums[t].append(reduce(lambda a, b: convolve(a, b, arithmetic), whole, add_laws(part, arithmetic)))
        low = high + 1
    return [add_laws(part, arithmetic) if part else Law(0, arithmetic.array([0]), 0) for part in sums]


def _lowest_best(laws: list[Law], types: MeanCounts) -> int:
    """Return the lowest value of the best arm that matters."""
    low, high = max(law.low for law in laws), max(law.high for law in laws)
    chance = np.ones(high - low + 1)
    for law, (_, count) in zip(laws, types, strict=True):
        below = np.ones(high - low + 1)
        known = np.minimum(np.cumsum([float(weight) for weight in law.weights]), 1.0)[low - law.low :]
        below[: len(known)] = known
        chance *= below**count
    return low + int(np.searchsorted(chance, UNLIKELY))


def _best_from(law: Law, kind: tuple[float, int], low: int, rounds: int, arithmetic: Arithmetic) -> Law:
    """Return the law of the sum over arms of one type, the best of which has at least `low`.

    With L for a sum whose terms are all below, B for the rest and W for the whole: B(a+b) = B(a) W(b) + L(a) B(b).
    """
    mean, count = kind
    if low <= law.low:
        return binomial(rounds * count, mean, arithmetic)
    below = Law(law.low, law.weights[: low - law.low])
    best = Law(low, law.weights[low - law.low :])
    done = 1
    for bit in bin(count)[3:]:
        for more in (done,) if bit == "0" else (done, 1):
            whole = binomial(rounds * more, mean, arithmetic)
            step = best if more == done else Law(low, law.weights[low - law.low :])
            lower = power(below, done, arithmetic)
            best = add_laws([convolve(best, whole, arithmetic), convolve(lower, step, arithmetic)], arithmetic)
            done += more
    return best


def _ties(kinds: list[tuple[Law, int]], low: int, high: int, arms: int, arithmetic: Arithmetic) -> list[list[Law]]:
    """Return, for each type, the laws of the sum if it is chosen at a value from low to high, to be added up."""
    nodes, weights = tie_nodes(arms - 1, arithmetic)
    parts: list[list[Law]] = [[] for _ in kinds]
    for s in range(low, high + 1):
        for x, weight in zip(nodes, weights, strict=True):
            check_time("closed form")
            all_arms, but_one = [], []
            for law, count in kinds:
                cut = law.weights[: s - law.low + 1].copy()
                cut[-1] = cut[-1] * x
                below = Law(law.low, cut, 3)
                but_one.append(power(below, count - 1, arithmetic))
                all_arms.append(convolve(but_one[-1], below, arithmetic))
            for t, (reward_law, count) in enumerate(kinds):
                law = Law(s, reward_law.weights[s - reward_law.low : s - reward_law.low + 1] * (weight * count), 3)
                for u in range(len(kinds)):
                    law = convolve(law, but_one[u] if u == t else all_arms[u], arithmetic)
                parts[t].append(law)
    return parts


Sums = Any  # a law of a sum of rewards, in the form of its family


@dataclass(frozen=True)
class Bernoulli:
    """Rewards 0 or 1: sums are binomial, on a lattice. Every family of rewards has the methods below.

    comparison_law       the law of what an arm is judged by after that many rounds, on a scale common to all arms
    pulls                the law of the sum of that many rewards of one mean
    plus, mixture        the law of the sum of two independent sums; a weighted mixture
    sums_by_commitment   for each type, the law of the sum of exploration rewards if an arm of it is chosen
    scores               the scores in increasing order as the mechanism sees them, their weights, and the roundings
    """

    arithmetic: Arithmetic

    def comparison_law(self, mean: float, rounds: int) -> Law:
        return binomial_with_cdf(rounds, mean, self.arithmetic)

    def pulls(self, rounds: int, mean: float) -> Sums:
        return binomial(rounds, mean, self.arithmetic)

    def plus(self, a: Sums, b: Sums) -> Sums:
        return convolve(a, b, self.arithmetic)

    def mixture(self, parts: Iterable[tuple[Number, Sums]]) -> Sums:
        return add_laws((scale(law, weight) for weight, law in parts), self.arithmetic)

    def scores(self, sums: Sums, rounds: int) -> tuple[Array, Array, int]:
        return np.arange(sums.low, sums.high + 1, dtype=float), sums.weights, sums.roundings

    def sums_by_commitment(self, types: MeanCounts, rounds: int) -> list[Sums]:
        return committed_sums(types, rounds, self.arithmetic)


@dataclass(frozen=True, eq=False)
class Deterministic:
    """Every reward is the mean: sums are points, in the session's ticks of 2^-60, and judged as by the session."""

    arithmetic: Arithmetic
    ranks: dict[float, int]

    @classmethod
    def of(cls, means: Iterable[float], arithmetic: Arithmetic) -> Deterministic:
        """Make it with the order of all means that may occur."""
        distinct = set(means)
        rounded = {mean: ticks(mean) / (1 << TICK_BITS) for mean in distinct}
        order = {value: rank for rank, value in enumerate(sorted(set(rounded.values())))}
        return cls(arithmetic, {mean: order[rounded[mean]] for mean in distinct})

    def comparison_law(self, mean: float, rounds: int) -> Law:
        return Law(self.ranks[mean], self.arithmetic.array([1]), 0)

    def pulls(self, rounds: int, mean: float) -> Sums:
        return {rounds * ticks(mean): self.arithmetic.number(1)}

    def plus(self, a: Sums, b: Sums) -> Sums:
        return self.mixture((weight, {x + shift: other for x, other in b.items()}) for shift, weight in a.items())

    def mixture(self, parts: Iterable[tuple[Number, Sums]]) -> Sums:
        total: dict[int, Number] = {}
        for weight, sums in parts:
            for value, chance in sums.items():
                total[value] = total[value] + weight * chance if value in total else weight * chance
        return total

    def scores(self, sums: Sums, rounds: int) -> tuple[Array, Array, int]:
        """Return the scores: exact averages rounded once, so that averages that tie in the session tie here."""
        rounded: dict[float, Number] = {}
        for value, chance in sums.items():
            score = value / (rounds << TICK_BITS)
            rounded[score] = rounded[score] + chance if score in rounded else chance
        order = sorted(rounded)
        return np.array(order), self.arithmetic.array([rounded[score] for score in order]), 2 * len(sums) + 2

    def sums_by_commitment(self, types: MeanCounts, rounds: int) -> list[Sums]:
        best = max(self.ranks[mean] for mean, _ in types)
        tied = sum(count for mean, count in types if self.ranks[mean] == best)
        explored = sum(rounds * count * ticks(mean) for mean, count in types)
        unit = self.arithmetic.number(1)
        return [{explored: unit * count / tied} if self.ranks[mean] == best else {} for mean, count in types]


RewardLaw = Bernoulli | Deterministic
