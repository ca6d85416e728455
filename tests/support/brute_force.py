"""The independent brute force: expected payoffs and regret by summing over every history, in exact fractions.

Written from the documents alone, and for clarity, not speed; it shares no code with the session or an engine and only
reads a mechanism as data. The statistics of a level are never updated: they are read off the history anew in every
round, by their definition. Histories that agree in every statistic of every labelled arm and agent are continued only
once; that is all the merging there is. Sizes: about 5 registered arms and 8 to 12 rounds.

What a mechanism means: docs/glossary.md#what-a-mechanism-does, with the decisions of docs/reading.md. Thompson sampling
is only for Bernoulli rewards here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb
from typing import NamedTuple

from cloneproof.market import Copies, Market, arms_of, full_copies
from cloneproof.mechanisms import Mechanism
from cloneproof.mechanisms.bandits.rule import Rule

ZERO, ONE = Fraction(0), Fraction(1)
Law = dict[int, Fraction]  # a distribution over the candidates of a level
Event = tuple[int, Fraction]  # a round as a level sees it: the candidate and its reward
Arms = tuple[tuple[Fraction, ...], ...]  # the mean of every arm of every agent


class Pull(NamedTuple):
    """One round of a history."""

    agent: int
    arm: int
    reward: Fraction


History = tuple[Pull, ...]


class Level(NamedTuple):
    """All that a level knows: pulls and rewards of each candidate, and its first pick after exploration."""

    pulls: tuple[int, ...]
    sums: tuple[Fraction, ...]
    first_pick: int | None


class State(NamedTuple):
    """All that a mechanism knows before a round: its levels."""

    round: int
    agents: Level | None
    arms: tuple[Level, ...]


# ---- the expectation


def brute_force(
    market: Market, mechanism: Mechanism, copies: Copies | None, horizon: int
) -> tuple[dict[str, Fraction], Fraction]:
    """The ex-ante payoff of every agent, and the platform's expected regret against the best original."""
    registered = full_copies(market.agents, copies)
    names = list(registered)
    earned = [ZERO] * len(names)
    regret = ZERO

    @cache
    def outcome(arms: Arms) -> tuple[Fraction, ...]:
        return _totals(mechanism, arms, market.family.name, horizon)

    for probability, means in _realisations(market):
        every = tuple(tuple(means[name][o] for o, _ in arms_of(registered[name])) for name in names)
        best = max(mean for own in means.values() for mean in own)
        *rewards, pulled = outcome(every)
        regret += probability * (horizon * best - pulled)
        for agent, reward in enumerate(rewards):
            earned[agent] += probability * reward
    share = _exact(market.share)
    return {name: share * total for name, total in zip(names, earned, strict=True)}, regret


def _realisations(market: Market) -> Iterator[tuple[Fraction, Mapping[str, tuple[Fraction, ...]]]]:
    """Every vector of means with its probability; the weights as given, divided by their exact sum."""
    laws = []
    for agent in market.agents:
        for prior in agent.priors:
            assert prior.atoms is not None, "only discrete priors can be enumerated"
            total = sum((_exact(weight) for _, weight in prior.atoms), ZERO)
            laws.append([(_exact(value), _exact(weight) / total) for value, weight in prior.atoms])
    for draw in product(*laws):
        probability, means, values = ONE, {}, iter(draw)
        for agent in market.agents:
            own = [next(values) for _ in agent.priors]
            means[agent.name] = tuple(value for value, _ in own)
            for _, weight in own:
                probability *= weight
        yield probability, means


def _totals(mechanism: Mechanism, arms: Arms, family: str, horizon: int) -> tuple[Fraction, ...]:
    """Expected rewards of each agent and the expected sum of the means pulled, over every history of these arms."""
    known: dict[State, tuple[Fraction, ...]] = {}
    nothing = (ZERO,) * (len(arms) + 1)
    counts = [len(own) for own in arms]

    def ahead(history: History) -> tuple[Fraction, ...]:
        if len(history) == horizon:
            return nothing
        state = _observed(mechanism, counts, history)
        found = known.get(state)
        if found is None:
            total = list(nothing)
            for chance, agent, arm in _choices(mechanism, counts, state):
                mean = arms[agent][arm]
                total[-1] += chance * mean
                for probability, reward in _rewards(family, mean):
                    weight = chance * probability
                    total[agent] += weight * reward
                    for k, later in enumerate(ahead((*history, Pull(agent, arm, reward)))):
                        if later:  # nothing follows the last round
                            total[k] += weight * later
            found = known[state] = tuple(total)
        return found

    return ahead(())


def _rewards(family: str, mean: Fraction) -> list[tuple[Fraction, Fraction]]:
    """The possible rewards of a pull as (probability, reward)."""
    if family == "deterministic":
        return [(ONE, mean)]
    assert family == "bernoulli", f"no brute force for {family} rewards"
    return [(p, r) for p, r in ((mean, ONE), (1 - mean, ZERO)) if p > 0]


# ---- what a mechanism knows, picks


def _observed(mechanism: Mechanism, counts: Sequence[int], history: History) -> State:
    """The statistics that the mechanism has after this history."""
    now = len(history) + 1
    if mechanism.agent is None:
        start, explore = _epoch(mechanism, now)
        label = {place: k for k, place in enumerate(_places(counts))}
        events = [(label[pull.agent, pull.arm], pull.reward) for pull in history[start:]]
        return State(now, None, (_level(events, sum(counts), explore),))
    trial = len(counts) * mechanism.agent.tries
    agents = _level([(pull.agent, pull.reward) for pull in history], len(counts), mechanism.agent.tries)
    since = history[trial:] if getattr(mechanism, "clears", False) and len(history) >= trial else history
    inside = tuple(
        _level([(pull.arm, pull.reward) for pull in since if pull.agent == agent], count, mechanism.arm.tries)
        for agent, count in enumerate(counts)
    )
    return State(now, agents, inside)


def _level(events: Sequence[Event], candidates: int, explore: int) -> Level:
    pulls, sums, first_pick = [0] * candidates, [ZERO] * candidates, None
    for candidate, reward in events:
        if first_pick is None and min(pulls) >= explore:
            first_pick = candidate
        pulls[candidate] += 1
        sums[candidate] += reward
    return Level(tuple(pulls), tuple(sums), first_pick)


def _choices(mechanism: Mechanism, counts: Sequence[int], state: State) -> Iterator[tuple[Fraction, int, int]]:
    """Every (probability, agent, arm) that the mechanism may pull now."""
    if state.agents is None:
        _, explore = _epoch(mechanism, state.round)
        places = _places(counts)
        for candidate, chance in _pick(mechanism.arm, explore, state.arms[0], _averages(state.arms[0])).items():
            yield chance, *places[candidate]
        return
    assert mechanism.agent is not None
    scores = _averages(state.agents)
    for agent, chance in _pick(mechanism.agent, mechanism.agent.tries, state.agents, scores).items():
        level = state.arms[agent]
        for arm, part in _pick(mechanism.arm, mechanism.arm.tries, level, _averages(level)).items():
            yield chance * part, agent, arm


def _places(counts: Sequence[int]) -> list[tuple[int, int]]:
    return [(agent, arm) for agent, count in enumerate(counts) for arm in range(count)]


def _averages(level: Level) -> list[Fraction | None]:
    return [total / n if n else None for n, total in zip(level.pulls, level.sums, strict=True)]


def _epoch(mechanism: Mechanism, now: int) -> tuple[int, int]:
    """How many rounds were over when this epoch began, and its rounds of exploration for each arm."""
    if getattr(mechanism, "power", None) is None:
        return 0, mechanism.arm.tries
    power, number = mechanism.power, 1
    while 2**number < now:
        number += 1
    start = 0 if number == 1 else 2 ** (number - 1)
    return start, max(1, _floor(lambda: Decimal(2**number).ln() ** _decimal(power)))


# ---- a level's pick


def _pick(rule: Rule, explore: int, level: Level, scores: Sequence[Fraction | None]) -> Law:
    everybody = range(len(level.pulls))
    if min(level.pulls) < explore:
        unfinished = [k for k in everybody if level.pulls[k] < explore]
        order = getattr(rule, "order", "round-robin")
        if order == "index":
            return {unfinished[0]: ONE}
        if order == "block":
            return _evenly([k for k in unfinished if level.pulls[k] > 0] or unfinished)
        return _evenly([k for k in unfinished if level.pulls[k] == min(level.pulls)])
    if getattr(rule, "commits", False) and level.first_pick is not None:
        return {level.first_pick: ONE}
    rounds = sum(level.pulls) + (1 if rule.clock == "current" else 0)
    if rule.name == "uniform":
        return _evenly(everybody)
    if rule.name == "etc":
        some = [score for score in scores if score is not None]
        return _evenly([k for k in everybody if scores[k] == (max(some) if some else None)])
    if rule.name == "epsilon-greedy":
        epsilon = min(ONE, _exact(rule.options["c"]) * len(scores) / rounds)
        means = [score or ZERO for score in scores]
        law = {k: epsilon * chance for k, chance in _evenly(everybody).items()}
        for k, chance in _evenly([k for k in everybody if means[k] == max(means)]).items():
            law[k] += (1 - epsilon) * chance
        return {k: chance for k, chance in law.items() if chance > 0}
    if rule.name == "thompson":
        counts = [(n, int(score * n) if score else 0) for score, n in zip(scores, level.pulls, strict=True)]
        return {k: _chance_of_largest(own, tuple(sorted(counts[:k] + counts[k + 1 :]))) for k, own in enumerate(counts)}
    if rule.name == "steady-ucb":
        return _steadily(rule, level, scores)
    assert rule.name == "ucb", f"no brute force for the rule {rule.name}"
    assert "constant" in rule.options, "no brute force for somebody's own bonus"
    assert rule.options.keys() <= {"constant", "clock"}, f"an option of UCB unknown here: {rule.options}"
    known = tuple((score, n) for score, n in zip(scores, level.pulls, strict=True) if score is not None)
    best = _highest_ucb(frozenset(known), rule.options["constant"], rounds)
    return _evenly([k for k in everybody if known[k] == best])


def _steadily(rule: Rule, level: Level, scores: Sequence[Fraction | None]) -> Law:
    """The highest mean + sqrt(constant ln T / n) over the rewards that count; without one, below everybody."""
    known = {k: (score, n) for k, (score, n) in enumerate(zip(scores, level.pulls, strict=True)) if score is not None}
    if not known:
        return _evenly(range(len(scores)))
    best = _highest_ucb(frozenset(known.values()), rule.options["constant"], rule.options["horizon"])
    return _evenly([k for k, own in known.items() if own == best])


@cache
def _chance_of_largest(own: tuple[int, int], others: tuple[tuple[int, int], ...]) -> Fraction:
    """P(a draw from Beta(1 + ones, 1 + zeros) exceeds those of the others); (coins, ones) of each.

    Coefficients of polynomials in x, by definition: x^ones (1 - x)^zeros over its integral; integrated term by term.
    """

    def density(coins: int, ones: int) -> list[Fraction]:
        shape = [ZERO] * ones + [Fraction((-1) ** k * comb(coins - ones, k)) for k in range(coins - ones + 1)]
        return [c / sum(integral(shape)) for c in shape]

    def integral(polynomial: list[Fraction]) -> list[Fraction]:
        return [ZERO, *(c / (k + 1) for k, c in enumerate(polynomial))]

    product_of_all = density(*own)
    for other in others:
        factor, longer = integral(density(*other)), [ZERO] * (len(product_of_all) + other[0] + 1)
        for i, a in enumerate(product_of_all):
            for j, b in enumerate(factor):
                longer[i + j] += a * b
        product_of_all = longer
    return sum(integral(product_of_all), ZERO)


def _evenly(candidates: Iterable[int]) -> Law:
    those = list(candidates)
    return dict.fromkeys(those, Fraction(1, len(those)))


@cache
def _highest_ucb(statistics: frozenset[tuple[Fraction, int]], constant: float, clock: int) -> tuple[Fraction, int]:
    """The (mean, pulls) of highest mean + sqrt(constant ln t / n).

    Only equal statistics tie: ln t is transcendental for a whole t >= 2 (Lindemann), and so is its rational multiple
    times sqrt(t); if different pulls gave equal priorities, it would be algebraic. So enough digits decide.
    """
    if clock == 1:
        assert len(statistics) == 1, "ln 1 = 0, but then only one candidate can have been explored"
        return next(iter(statistics))

    def priority(mean: Fraction, pulls: int) -> Decimal:
        square = _decimal(constant) * Decimal(clock).ln() / pulls
        return _decimal(mean) + square.sqrt()

    first, *others = sorted(statistics)
    for other in others:
        digits, lead = 20, Decimal(0)
        while abs(lead) < Decimal(10) ** (5 - digits):
            digits *= 2
            with localcontext(prec=digits):
                lead = priority(*other) - priority(*first)
        first = other if lead > 0 else first
    return first


def _exact(number: float) -> Fraction:
    return Fraction(number)


def _decimal(number: float | Fraction) -> Decimal:
    exact = Fraction(number)
    return Decimal(exact.numerator) / exact.denominator


def _floor(value: Callable[[], Decimal]) -> int:
    """The floor of a number that is known to any precision."""
    digits = 20
    while True:
        with localcontext(prec=digits):
            number, unsure = value(), Decimal(10) ** (5 - digits)
            low, high = (math.floor(number - unsure), math.floor(number + unsure))
        if low == high:
            return low
        digits *= 2
