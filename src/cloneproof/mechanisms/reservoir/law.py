"""Expected rewards of all agents under the flat reservoir, and a bar on slots, for any registration, in closed form.

Slots hold uniform draws with replacement from an agent's arms, so given the means an agent's slots are independent and
identically distributed, and copies only shift the weights: a thousand copies cost what two do. An agent's pay in a
round is linear in the law of its own slots at each position, times what the others' earlier slots did. The average over
the random order of the agents is a Bernstein polynomial. Counts are those of coins, so every reward law in [0, 1] with
the same mean pays the same.

1. A test is reached if nobody passed before; it pays the agent's mean draw for its rounds.
2. A draw that passes pays its mean for all later rounds.
3. If nobody passes, the draw with the highest count pays its mean for the rest, ties to the earlier position.

All of this needs expectations of powers: with x = sum_k w_k x(v_k) the chance that a draw from means v has some
property, and y for another one, E[x^a y^b] over the prior. Either the realisations of an agent's means are listed, or,
if there are many, expectations are taken one original at a time: E[x^a y^b] / (a! b!) of independent summands is the
convolution of theirs. A bar on slots (`laws.bars`) needs such expectations too, at the places of a path.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial, reduce
from itertools import zip_longest
from operator import add
from typing import TYPE_CHECKING, cast

import numpy as np

from cloneproof._lib.schedules import Bar
from cloneproof.errors import EngineError
from cloneproof.laws.arithmetic import Array, check_products, tie_nodes, to_the_power
from cloneproof.laws.bars import bar_path, bar_pay
from cloneproof.laws.counts import binomial
from cloneproof.laws.draws import UniformDraws
from cloneproof.laws.means import CopiedOriginal, MeanCounts, count_realisations, realisations
from cloneproof.laws.scan import highest_count_pay, order_averages, place_rounds, scan_moments
from cloneproof.mechanisms.expectations import Expectations
from cloneproof.mechanisms.reservoir.rank import SlotRule, passing_count
from cloneproof.mechanisms.terms import Feature, Terms
from cloneproof.runs.estimate import Evaluation
from cloneproof.runs.job import Job

if TYPE_CHECKING:
    from cloneproof.mechanisms.reservoir.reservoirs import Reservoir

MOST_DRAWS = 150  # draws up to which factorials are floats
SLOTS = 1024  # the most points of a Gauss rule
BAR_POINTS = 240  # of the finer of two resolutions under a bar
Realisations = list[tuple[Fraction, MeanCounts]]  # of some originals' means, with their probabilities
IndependentParts = tuple[Realisations, int]  # how many parts there are with these realisations


@dataclass(frozen=True)
class CountLaws:
    """Laws of a test's count, with a row for each value of all priors.

    `fail`, `mean` and `passing` are the probability of failing, the mean, and the mean if it passes (else 0). `below`,
    `up_to` and `paid` have a column for each level that does not pass: the probability of less and of at most that, and
    the mean if it is exactly that.
    """

    values: dict[float, int]
    fail: Array
    mean: Array
    passing: Array
    below: Array
    up_to: Array
    paid: Array


@dataclass(frozen=True)
class DrawLaws:
    """Expectations over the means of agents of one kind, and the number of those agents.

    With f the chance that a draw fails, `alive[j]` is E f^j, `mean[j]` and `passing[j]` are E[f^j x] with x a draw's
    mean, and its mean if it passes (else 0). For each slot j and level, in the notation of `laws.scan`: `own[j]` is
    E[b^j u^(s - 1 - j) x] with x a draw's mean if its count is at the level (else 0), `first[j]` is
    E[b^(j + 1) u^(s - 1 - j)] and `last[j]` is E[b^j u^(s - j)]; None unless counts are ranked in the end.
    """

    agents: int
    alive: Array
    mean: Array
    passing: Array
    own: Array | None = None
    first: Array | None = None
    last: Array | None = None


def law(mechanism: Reservoir, job: Job) -> Evaluation:
    """Compute every agent's ex-ante payoff and the expected regret under a scan of coins, or a bar until a random end.

    A mechanism that tests slots counts coins whatever the rewards are.
    """
    market, copies, rule, name = job.market, job.copies, mechanism.arm, mechanism.name
    if (mechanism.arm.bar is None) == (market.ends == "at-random"):
        ends = ("at random under bars", "at its horizon") if mechanism.arm.bar else ("at its horizon", "at random")
        raise EngineError(f"an exact law expects a market that ends {ends[0]}, got one that ends {ends[1]}")
    if market.places:
        raise EngineError("an exact law expects one arm a round, got positions of a page")
    if (why := mechanism.takes(Feature.REWARDS, Terms.of(market))) is not None:
        raise EngineError(why)
    if mechanism.arm.bar and mechanism.agent is None:
        bars = Expectations(market, copies, lambda agents: bar_rewards(agents, rule, market.horizon))
        return bars.exactly() if bars.listed else bars.by_two_resolutions(BAR_POINTS, "legendre")  # it bends at a bar
    if not (rule.commits and rule.binarise):
        raise EngineError(f"an exact law expects tests of slots on coins, got the rule {rule.name!r} in {name!r}")
    if mechanism.agent is not None and len(market.agents) > 1:
        raise EngineError(f"an exact law expects slots in one timetable, got a contest of champions in {name!r}")
    found = Expectations(market, copies, lambda agents: reservoir_rewards(agents, rule, market.horizon))
    if found.listed:
        return found.exactly()
    coins = min(market.horizon, rule.draws * rule.tries + 1)  # those that are counted, and the reward itself
    if (proven := found.by_coins(SLOTS, coins)) is not None:
        return proven
    raise EngineError(
        f"an exact law expects continuous priors of which at most {SLOTS} points stand for all, got {coins} rewards of "
        "an original that tell them apart; take prior.discretised(5)"
    )


def reservoir_rewards(agents: Sequence[Sequence[CopiedOriginal]], rule: SlotRule, horizon: int) -> list[float]:
    """Return each agent's expected reward."""
    keys = [tuple(sorted(agent)) for agent in agents]
    kinds = list(dict.fromkeys(keys))
    left = horizon - rule.draws * rule.tries * len(agents)
    tested = count_laws({value for kind in kinds for original in kind for value, _ in original.atoms}, rule)
    laws = [
        _draw_laws(
            independent_parts(kind, rule.draws, tested.below.shape[1]),
            keys.count(kind),
            rule.draws,
            tested,
            left > 0,
        )
        for kind in kinds
    ]
    earned = [0.0] * len(kinds)
    for draw in range(rule.draws):
        _add_tests(earned, laws, rule, horizon, draw)
    if left > 0:
        late = _best_count(laws, rule)
        earned = [reward + left * later for reward, later in zip(earned, late, strict=True)]
    return [float(earned[kinds.index(key)]) for key in keys]


def bar_rewards(agents: Sequence[Sequence[CopiedOriginal]], rule: SlotRule, horizon: int) -> list[float]:
    """Return each agent's expected reward under a bar on slots until a random end."""
    keys = [tuple(sorted(agent)) for agent in agents]
    kinds, slots = list(dict.fromkeys(keys)), rule.draws * len(agents)
    values = np.array(sorted({value for kind in kinds for original in kind for value, _ in original.atoms}))
    path = bar_path(values, cast("Bar", rule.bar), horizon, slots)
    copies = [[original.copies for original in kind] for kind in kinds]
    draws = UniformDraws([tuple(original.atoms for original in kind) for kind in kinds], values, copies)
    earned = bar_pay(draws, [keys.count(kind) for kind in kinds], rule.draws, path, directly=rule.draws)
    return [horizon * float(earned[kinds.index(key)]) for key in keys]


def _draw_laws(parts: Sequence[IndependentParts], agents: int, s: int, tested: CountLaws, ranked: bool) -> DrawLaws:
    """Return the expectations for agents of one kind; those by level only if counts are ranked in the end."""
    tests = [table[:, None] for table in (tested.fail, tested.mean, tested.passing)]
    levels = [tested.below, tested.up_to, tested.paid] if ranked else []
    if len(parts) == 1 and parts[0][1] == 1:  # every realisation of the means is listed
        (realised, _), *_ = parts
        arms = sum(count for _, count in realised[0][1])
        chances, fail, mean, passing, *drawn = _draws(realised, arms, tested.values, [*tests, *levels])
        one = fail * 0 + 1
        tables = [table[:, 0] for table in scan_moments(s + 1, chances, fail, one, (one, mean, passing))]
        if ranked:
            below, up_to, paid = drawn
            tables += scan_moments(s, chances, below, up_to, (paid, below, up_to))
    else:
        fail, mean, passing = tests
        needed = [(j, 0) for j in range(s + 1)]
        powers = expected_powers(parts, tested.values, (fail, fail * 0, mean, passing), needed)
        tables = [np.array([powers[pair][which, 0] for pair in needed]) for which in range(3)]
        if ranked:
            needed = [(j, rest - j) for rest in (s, s - 1) for j in range(rest + 1)]
            powers = expected_powers(parts, tested.values, levels, needed)
            tables.append(np.array([powers[j, s - 1 - j][1] for j in range(s)]))
            tables.append(np.array([powers[j + 1, s - 1 - j][0] for j in range(s)]))
            tables.append(np.array([powers[j, s - j][0] for j in range(s)]))
    return DrawLaws(agents, *tables)


def count_laws(values: Iterable[float], rule: SlotRule) -> CountLaws:
    """Return the laws of a test."""
    n, rising, passing = rule.tries, sorted(values), passing_count(rule)
    top = passing - 1  # the highest that fails
    counts = [binomial(n, Fraction(value)) for value in rising]
    low, top = min([top, *(law.low for law in counts)]), min(top, max(law.high for law in counts))
    below, at = (np.array(rows) for rows in zip(*(law.on(low, top) for law in counts), strict=True))
    means = np.array(rising)
    fail = np.array([1.0 if passing > n else law.on(top + 1, top + 1)[0][0] for law in counts])
    places = {value: place for place, value in enumerate(rising)}
    return CountLaws(places, fail, means, means * (1 - fail), below, below + at, at * means[:, None])


def independent_parts(originals: Sequence[CopiedOriginal], draws: int, levels: int) -> list[IndependentParts]:
    """Divide an agent's originals into independent parts with multiplicities: all in one, or one original in each.

    Whichever takes fewer products.
    """
    power = draws + 1
    listed = 2.0 * power * len(originals) * count_realisations(originals)
    kinds = Counter(originals)
    joined = sum(number.bit_length() + number.bit_count() - 1 for number in kinds.values()) - 1
    alone = power**2 * sum(len(original.atoms) for original in kinds) + joined * power**4 / 8
    what, advice = f"{draws} draws of an agent", "take priors of fewer values"
    check_products(math.inf if alone < listed and power > MOST_DRAWS else min(listed, alone) * levels, what, advice)
    if listed <= alone:
        return [(list(realisations(originals)), 1)]
    return [([(weight, ((value, kind.copies),)) for value, weight in kind.atoms], n) for kind, n in kinds.items()]


def expected_powers(
    parts: Sequence[IndependentParts],
    places: Mapping[float, int],
    tables: Sequence[Array],
    needed: Sequence[tuple[int, int]],
) -> dict[tuple[int, int], Array]:
    """Compute E[x^a y^b], then E[x^a y^b z] for each further z (rows), at every level (columns), for needed a and b.

    `tables` are x, y and each z for every value (rows) and level (columns).
    """
    arms = sum(number * sum(count for _, count in realised[0][1]) for realised, number in parts)
    rows, columns = (1 + max(pair[which] for pair in needed) for which in (0, 1))
    total = max(a + b for a, b in needed)
    convolved = partial(_convolved, total=total)
    factorials = [float(math.factorial(k)) for k in range(total + 1)]
    powers = []
    for realised, number in parts:
        chances, x, y, *marks = _draws(realised, arms, places, tables)
        table = np.zeros((rows, columns, len(tables) - 1, tables[0].shape[1]))
        x_power = chances[:, None] + x * 0
        for a in range(rows):
            weight = x_power
            for b in range(min(columns, total - a + 1)):
                table[a, b] = _moments(weight, marks) / (factorials[a] * factorials[b])
                weight = weight * y
            x_power = x_power * x
        powers.append(to_the_power(table, number, convolved))
    joined = reduce(convolved, powers)
    return {(a, b): joined[a, b] * (factorials[a] * factorials[b]) for a, b in needed}


def _draws(realised: Realisations, arms: int, places: Mapping[float, int], tables: Sequence[Array]) -> list[Array]:
    """Return the probability of each realisation and, for each table, its average over draws that are in this part."""
    runs = list(zip_longest(*(own for _, own in realised), fillvalue=(next(iter(places)), 0)))
    where = [[places[value] for value, _ in run] for run in runs]
    shares = [np.array([count / arms for _, count in run])[:, None] for run in runs]
    sums = [reduce(add, (share * table[rows] for share, rows in zip(shares, where, strict=True))) for table in tables]
    return [np.array([float(chance) for chance, _ in realised]), *sums]


def _moments(weight: Array, marks: Sequence[Array]) -> Array:
    """Return the sum of the weights over realisations, and with each mark."""
    return np.array([weight.sum(axis=0), *((weight * mark).sum(axis=0) for mark in marks)])


def _convolved(x: Array, y: Array, total: int) -> Array:
    """Combine the powers of two independent summands, divided by factorials; the mark is on one of the two."""
    rows, columns = x.shape[:2]
    out = x * 0
    for a in range(rows):
        for b in range(min(columns - 1, total - a) + 1):
            rest = y[: rows - a, : columns - b]
            out[a:, b:, :1] += x[a, b, :1] * rest[:, :, :1]
            out[a:, b:, 1:] += x[a, b, 1:] * rest[:, :, :1] + x[a, b, :1] * rest[:, :, 1:]
    return out


def _add_tests(earned: list[float], laws: list[DrawLaws], rule: SlotRule, horizon: int, draw: int) -> None:
    """Add steps 1 and 2 for one draw of every agent to what each kind of agent earns."""
    count, n = sum(law.agents for law in laws), rule.tries
    if draw * count * n >= horizon:
        return
    tested, later = (rounds.astype(float) for rounds in place_rounds(horizon, n, np.arange(count) + draw * count))
    for i, law in enumerate(laws):
        others = [
            (other.agents - (k == i), other.alive[draw : draw + 1], other.alive[draw + 1 : draw + 2])
            for k, other in enumerate(laws)
        ]
        reached = order_averages(others)[0]
        pay = law.mean[draw] * tested + law.passing[draw] * later
        earned[i] = earned[i] + (reached * pay).sum() / count


def _best_count(laws: list[DrawLaws], rule: SlotRule) -> list[float]:
    """Compute step 3: what one agent of each kind earns in a round after all tests, if nobody passed."""
    agents = [law.agents for law in laws]
    nodes, weights = tie_nodes(sum(agents) - 1)
    own, first, last = (
        np.array(tables) for tables in zip(*((law.own, law.first, law.last) for law in laws), strict=True)
    )
    earned = np.zeros(len(laws))
    for slot in range(rule.draws):
        at = slice(slot, slot + 1)
        earned = earned + highest_count_pay(agents, own[:, at], first[:, at], last[:, at], nodes, weights)
    return [*map(float, earned)]
