"""Exploration and commitment together: the sum of all exploration successes, jointly with the type committed to.

For every best value s and tie-breaker x, each other arm has the truncated generating polynomial
sum_{u<s} f(u) y^u + x f(s) y^s, and the arm committed to has f(s) y^s. Types whose window ends below s are whole there,
so they are multiplied in once; and where a single type is left, no ties between types have to be told apart.
"""

from __future__ import annotations

from functools import reduce

import numpy as np

from cloneproof.engines.closed_form.laws.arithmetic import Arithmetic
from cloneproof.engines.closed_form.laws.integer_law import Law, add_laws, binomial, convolve, power
from cloneproof.engines.closed_form.laws.tie_breaking import tie_nodes
from cloneproof.engines.time_limit import check_time

MeanCounts = tuple[tuple[float, int], ...]  # different means, and how many arms have each
UNLIKELY = 1e-34  # a chance of a best value so low that it may be left out


def committed_sums(types: MeanCounts, rounds: int, arithmetic: Arithmetic) -> list[Law]:
    """For each type, the law of the number of successes in `rounds` pulls of every arm where it is committed to."""
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
    """The lowest value of the best arm that has to be looked at."""
    low, high = max(law.low for law in laws), max(law.high for law in laws)
    chance = np.ones(high - low + 1)
    for law, (_, count) in zip(laws, types, strict=True):
        below = np.ones(high - low + 1)
        known = np.minimum(np.cumsum([float(weight) for weight in law.weights]), 1.0)[low - law.low :]
        below[: len(known)] = known
        chance *= below**count
    return low + int(np.searchsorted(chance, UNLIKELY))


def _best_from(law: Law, kind: tuple[float, int], low: int, rounds: int, arithmetic: Arithmetic) -> Law:
    """The law of the sum over arms of one type, the best of which has at least `low`.

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
    """For each type, the laws of the sum where it is committed to at a value from low to high, to be added up."""
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
