"""Expected rewards of all agents under the flat reservoir for any registration, in closed form.

Slots hold uniform draws with replacement from an agent's arms, so given the means an agent's slots are independent and
identically distributed, and copies only shift the weights: a thousand copies cost what two do. An agent's pay in a
round is linear in the law of its own slots at each position, times what the others' earlier slots did. The average over
the random order of the agents is a Bernstein polynomial. Counts are those of coins, so every reward law in [0, 1] with
the same mean pays the same.

1. A test is reached if nobody passed before; it pays the agent's mean draw for its rounds.
2. A draw that passes pays its mean for all later rounds.
3. If nobody passes, the draw with the highest count pays its mean for the rest, ties to the earlier position; or a new
   draw of a random agent does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from cloneproof._clock import check_time
from cloneproof.engines.closed_form.commitment import CopiedOriginal, count_realisations, realisations
from cloneproof.engines.closed_form.laws import Arithmetic, Array, Number, binomial_with_cdf, tie_nodes
from cloneproof.errors import EngineError
from cloneproof.mechanisms.rule import Rule

MOST_REALISATIONS = 50_000


@dataclass(frozen=True)
class DrawLaws:
    """Agents of one kind: how many, the probability of each realisation, and the law of a draw from it.

    Rows are realisations. `fail`, `mean` and `passing` are the probability that a draw fails its test, its mean, and
    its mean if it passes (else 0). `below`, `at` and `paid` have a column for each level that does not pass: the
    probability of less, of exactly that, and the mean in the latter case.
    """

    agents: int
    chances: Array
    fail: Array
    mean: Array
    passing: Array
    below: Array
    at: Array
    paid: Array


def reservoir_rewards(
    agents: Sequence[Sequence[CopiedOriginal]], rule: Rule, horizon: int, arithmetic: Arithmetic
) -> tuple[list[Number], int]:
    """Each agent's expected reward, and a bound on its rounding errors."""
    keys = [tuple(sorted(agent)) for agent in agents]
    kinds = list(dict.fromkeys(keys))
    laws = _draw_laws(kinds, [keys.count(kind) for kind in kinds], rule, arithmetic)
    earned = [arithmetic.number(0)] * len(kinds)
    for draw in range(rule.draws):
        _add_tests(earned, laws, rule, horizon, draw, arithmetic)
    left = horizon - rule.draws * rule.explore * len(agents)
    roundings = _roundings(laws, rule, len(agents))
    if left > 0:
        fallback = _fresh_draw if rule.slots.fallback == "draw" else _best_count
        late = fallback(laws, rule, arithmetic)
        earned = [reward + left * each for reward, each in zip(earned, late, strict=True)]
    return [earned[kinds.index(key)] for key in keys], roundings


def _draw_laws(
    kinds: Sequence[tuple[CopiedOriginal, ...]], counts: Sequence[int], rule: Rule, arithmetic: Arithmetic
) -> list[DrawLaws]:
    """The laws of a draw for each kind of agents, over the same window of levels."""
    if any(count_realisations(list(kind), ordered=False) > MOST_REALISATIONS for kind in kinds):
        raise EngineError(
            f"the closed form of a reservoir expects at most {MOST_REALISATIONS} realisations of an agent's means, got "
            "more",
            "use engine='monte-carlo', or priors of fewer values",
        )
    n = rule.explore
    top = n if rule.slots.threshold is None else min(n, int(rule.slots.threshold) - 1)  # the highest that fails
    values = sorted({value for kind in kinds for original in kind for value, _ in original.atoms})
    counts_of = {value: binomial_with_cdf(n, value, arithmetic) for value in values}
    low = min([top, *(law.low for law in counts_of.values())])
    window = {value: law.on(low, top, arithmetic) for value, law in counts_of.items()}
    below, at = (np.array([window[value][part] for value in values]) for part in (0, 1))
    one, means = arithmetic.number(1), arithmetic.array([Fraction(value) for value in values])
    fails = arithmetic.array([counts_of[value].on(top + 1, top + 1, arithmetic)[0][0] for value in values])
    if rule.slots.threshold is None:
        fails = fails * 0 + one
    laws = []
    for kind, number in zip(kinds, counts, strict=True):
        chances, weights = [], []
        for chance, runs in realisations(list(kind), ordered=False):
            arms = sum(count for _, count in runs)
            weight = dict.fromkeys(values, Fraction(0))
            for value, count in runs:
                weight[value] += Fraction(count, arms)
            chances.append(chance)
            weights.append([weight[value] for value in values])
        draws = np.array([arithmetic.array(row) for row in weights])
        of_draw = (fails, means, means * (one - fails), below, at, at * means[:, None])
        laws.append(DrawLaws(number, arithmetic.array(chances), *map(draws.dot, of_draw)))
    return laws


def _add_tests(
    earned: list[Number], laws: list[DrawLaws], rule: Rule, horizon: int, draw: int, arithmetic: Arithmetic
) -> None:
    """Add steps 1 and 2 for one draw of every agent to what each kind of agent earns."""
    count, n = sum(law.agents for law in laws), rule.explore
    begins = [horizon - (draw * count + place) * n for place in range(count)]
    if begins[0] <= 0:
        return
    tested = arithmetic.array([min(n, max(0, begin)) for begin in begins])
    later = arithmetic.array([max(0, begin - n) for begin in begins])
    powers = [law.chances * law.fail**draw for law in laws]
    alive = [power.sum() for power in powers]
    dead = [(power * law.fail).sum() for power, law in zip(powers, laws, strict=True)]
    for i, law in enumerate(laws):
        check_time("closed form")
        others = [(other.agents - (k == i), alive[k], dead[k]) for k, other in enumerate(laws)]
        reached = _order_averages(others, arithmetic)
        pay = (powers[i] * law.mean).sum() * tested + (powers[i] * law.passing).sum() * later
        earned[i] = earned[i] + (reached * pay).sum() / count


def _order_averages(factors: list[tuple[int, Number, Number]], arithmetic: Arithmetic) -> Array:
    """For 0, 1, .. agents that come first: the average over their choice of the product of all factors.

    Each kind comes as (how many agents, factor of one that comes later, factor of one that comes first).
    """
    averages = arithmetic.array([1])
    for agents, later, first in factors:
        for _ in range(agents):
            size = len(averages)
            grown = arithmetic.zeros(size + 1)
            if arithmetic.proven:
                stay = arithmetic.array([Fraction(size - place, size) for place in range(size)])
                move = arithmetic.array([Fraction(place + 1, size) for place in range(size)])
            else:  # the same floats, without thousands of fractions
                stay, move = np.arange(size, 0, -1) / size, np.arange(1, size + 1) / size
            grown[:-1] += averages * later * stay
            grown[1:] += averages * first * move
            averages = grown
    return averages


def _best_count(laws: list[DrawLaws], rule: Rule, arithmetic: Arithmetic) -> list[Number]:
    """Step 3: what one agent of each kind earns in a round after all tests, if nobody passed."""
    s, count = rule.draws, sum(law.agents for law in laws)
    nodes, weights = tie_nodes(count - 1, arithmetic)
    earned = [arithmetic.number(0)] * len(laws)
    for slot in range(s):
        own, first, last = [], [], []
        for law in laws:
            up_to = law.below + law.at
            weight = law.chances[:, None] * law.below**slot * up_to ** (s - 1 - slot)
            own.append((weight * law.paid).sum(axis=0))
            first.append((weight * law.below).sum(axis=0))  # an agent that comes first must be below in this draw too
            last.append((weight * up_to).sum(axis=0))
        for node, share in zip(nodes, weights, strict=True):
            check_time("closed form")
            factors = [node * a + (1 - node) * b for a, b in zip(first, last, strict=True)]
            for i in range(len(laws)):
                product = factors[i] * 0 + 1
                for k, factor in enumerate(factors):
                    product = product * factor ** (laws[k].agents - (k == i))
                earned[i] = earned[i] + share * (own[i] * product).sum()
    return earned


def _fresh_draw(laws: list[DrawLaws], rule: Rule, arithmetic: Arithmetic) -> list[Number]:
    """Step 3 with a fresh draw: an agent at random, if nobody passed."""
    count, s = sum(law.agents for law in laws), rule.draws
    alive = [(law.chances * law.fail**s).sum() for law in laws]
    earned = []
    for i, law in enumerate(laws):
        product = arithmetic.number(1)
        for k, other in enumerate(laws):
            product = product * alive[k] ** (other.agents - (k == i))
        earned.append((law.chances * law.fail**s * law.mean).sum() * product / count)
    return earned


def _roundings(laws: list[DrawLaws], rule: Rule, agents: int) -> int:
    """The rounding bound: all sums are of positive products, powers multiply roundings, products and sums add them."""
    realised = max(len(law.chances) for law in laws)
    levels = int(laws[0].at.shape[1])
    one_agent = (rule.draws + 1) * (levels + 8) + realised
    return agents * (one_agent + 4) + rule.draws * agents + levels + 32
