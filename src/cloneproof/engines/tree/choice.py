"""Choices of a level among its candidates, in many states at once: `mechanisms.online.levels` without random numbers.

Statistics. A mean is the exact sum of rewards, in the session's ticks of 2^-30, divided by the pulls and rounded once,
so equal averages are equal floats.

Priorities. The built-in rules are evaluated on whole arrays with the same operations as their scalar functions; any
other function is called once for each different argument. A randomised rule is asked for the `chance` of each pick. UCB
indices are compared in floats and, if two are within 1e-9, in ball arithmetic at growing precision. A decision is
always reached: m1 + sqrt(c ln t / n1) = m2 + sqrt(c ln t / n2) with n1 != n2 would make ln t algebraic, which it is not
for t >= 2. Steady indices are floats by a fixed procedure, and are compared as such.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray
from cloneproof.engines.tree.shape import Ints, Shape, States
from cloneproof.mechanisms.arithmetic import ln
from cloneproof.mechanisms.online.levels import ONE, TICK_BITS, ticks
from cloneproof.mechanisms.rule import PriorityInputs, Rule, broken_rule, checked_chances

Mask = npt.NDArray[np.bool_]
NEAR = 1e-9


def compares_floats(rule: Rule) -> bool:
    """Whether the priority is a user's function, which can only be compared in floats."""
    known = ("none", "mean", "ucb", "slow-ucb", "steady-ucb", "steady-kl-ucb", "kl-moss", "epsilon-greedy")
    return rule.index not in known


def best(rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray) -> Mask:
    """Say which candidates (rows) have the highest priority in each state (columns)."""
    if rule.index == "none":
        return np.ones(pulls.shape, dtype=bool)
    if rule.index == "mean":
        value = np.where(pulls > 0, mean, -np.inf)
        return np.asarray(value == value.max(axis=0))
    if rule.index in ("ucb", "slow-ucb"):
        return _highest_index(rule, clock, pulls, mean)
    value = _call_priority(rule, np.ones_like(clock) if rule.steady else clock, pulls, mean)
    return np.asarray(value == value.max(axis=0))


def _highest_index(rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray) -> Mask:
    """Return which candidates (rows) have the highest UCB index in each state (columns), ties included."""
    # Floats decide wherever one index is clearly ahead. Where several are within rounding of the highest and not all of
    # them have equal statistics, `exceeds` compares them in balls, one after the other, and finds the leader. Only
    # candidates with the leader's statistics tie with it: different ones never do, since ln t is transcendental.
    slow = rule.index == "slow-ucb"
    scale = rule.parameters[0] * (np.sqrt(clock) * _ln(clock) if slow else _ln(clock))
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(pulls > 0, mean + np.sqrt(scale / pulls), np.inf)
    highest = value.max(axis=0)
    first = value == highest
    with np.errstate(invalid="ignore"):
        near = (highest - value <= NEAR * np.maximum(1.0, highest)) & np.isfinite(highest)
    doubtful = np.flatnonzero((near.sum(axis=0) > 1) & (clock > 1))
    if len(doubtful):
        some = near[:, doubtful]
        top = some.argmax(axis=0), doubtful
        alike = (pulls[:, doubtful] == pulls[top]) & (mean[:, doubtful] == mean[top])
        for k in doubtful[(some & ~alike).any(axis=0)]:
            rows = np.flatnonzero(near[:, k])
            leading = rows[0]
            for row in rows[1:]:
                candidate, rival = (
                    (int(pulls[row, k]), float(mean[row, k])),
                    (int(pulls[leading, k]), float(mean[leading, k])),
                )
                if candidate != rival and exceeds(int(clock[k]), rule.parameters[0], slow, *candidate, *rival):
                    leading = row
            first[:, k] = (pulls[:, k] == pulls[leading, k]) & (mean[:, k] == mean[leading, k])
    return np.asarray(first)


@lru_cache(maxsize=1 << 16)
def exceeds(clock: int, constant: float, slow: bool, pulls: int, mean: float, others: int, other_mean: float) -> bool:
    """Whether mean + sqrt(constant ln t / pulls) is above the other's, by balls; t >= 2 and different statistics.

    >>> exceeds(2, 2.0, False, 1, 0.25, 2, 0.5)
    True
    """
    if pulls == others:
        return mean > other_mean
    difference, precision = flint.arb(0), 128
    while not (difference > 0 or difference < 0):
        with flint.ctx.workprec(precision):
            t = flint.arb(clock)
            scale = flint.arb(constant) * t.log() * (t.sqrt() if slow else 1)
            difference = flint.arb(mean) + (scale / pulls).sqrt() - flint.arb(other_mean) - (scale / others).sqrt()
        precision *= 2
    return bool(difference > 0)


def _call_priority(rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray) -> FloatArray:
    """Call the scalar priority once for each different (clock, pulls, mean)."""
    if rule.siblings:
        return _call_among(rule, clock, pulls, mean)
    means, which = np.unique(mean, return_inverse=True)
    wide = np.broadcast_to(clock, pulls.shape).astype(np.int64)
    code = (wide * (int(pulls.max()) + 1) + pulls) * len(means) + which.reshape(mean.shape)
    _, where, back = np.unique(code, return_index=True, return_inverse=True)
    count, values = len(pulls), np.empty(len(where))
    for k, (t, n, m) in enumerate(zip(wide.flat[where], pulls.flat[where], mean.flat[where], strict=True)):
        values[k] = _priority(rule, int(t), int(n), float(m), count, rule.parameters)
    return np.asarray(values[back.reshape(pulls.shape)])


def _call_among(rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray) -> FloatArray:
    """Call the priority of a rule that looks at siblings, once for each different candidate of each state."""
    values, known = np.empty(pulls.shape), dict[tuple[object, ...], float]()
    clocks = np.broadcast_to(clock, pulls.shape[1:]).tolist()
    for column, (time, numbers, means) in enumerate(zip(clocks, pulls.T.tolist(), mean.T.tolist(), strict=True)):
        pairs = sorted(zip(numbers, means, strict=True))
        among = tuple(n for n, _ in pairs), tuple(m for _, m in pairs)
        for row, (n, m) in enumerate(zip(numbers, means, strict=True)):
            key = (time, n, m, among)
            if key not in known:
                known[key] = _priority(rule, time, n, m, len(pairs), (*among, *rule.parameters))
            values[row, column] = known[key]
    return values


def _priority(rule: Rule, time: int, pulls: int, mean: float, count: int, rest: tuple[Any, ...]) -> float:
    try:
        value = _value(rule.priority, time, pulls, mean, count, rest)
    except Exception as problem:
        raise broken_rule(rule, time, pulls, mean, problem) from problem
    if not isinstance(value, int | float | np.number) or value != value:
        raise broken_rule(rule, time, pulls, mean, value)
    return float(value)


@lru_cache(maxsize=1 << 18)
def _value(
    priority: Callable[..., float], time: int, pulls: int, mean: float, count: int, rest: tuple[Any, ...]
) -> object:
    log = ln(time) if time > 0 else -math.inf
    return priority(PriorityInputs(time, log, pulls, mean, 0.5, 0.5, count), *rest)


def _ln(clock: Ints) -> FloatArray:
    """Return the logarithms of whole numbers from 1."""
    return np.asarray(_logarithms(int(clock.max(initial=1)).bit_length())[clock])


@cache
def _logarithms(bits: int) -> FloatArray:
    """Tabulate ln t for t < 2^bits; that of 0 is never asked for."""
    return np.array([0.0, *(ln(t) for t in range(1, 1 << bits))])


def spread(
    rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray, decided: Ints, chosen: Mask | None
) -> tuple[FloatArray, Mask]:
    """Return the probability of each candidate (rows) in each state (columns), and where a commitment is made now.

    Exploration comes first: least-pulled with ties uniform, block after block in random order, or by registration. Then
    the highest priority, ties uniform.
    """
    owed = decided < rule.explore
    exploring = owed.any(axis=0)
    committed = np.zeros(pulls.shape[1], dtype=bool) if chosen is None else chosen.any(axis=0)
    weights = np.zeros(pulls.shape)
    turn = np.flatnonzero(exploring & ~committed)
    if len(turn):
        weights[:, turn] = _even(_next_explored(rule, decided[:, turn], owed[:, turn]))
    free = np.flatnonzero(~exploring & ~committed)
    if len(free):
        at = clock[free] - (rule.clock == "completed")
        now = at, pulls[:, free], mean[:, free]
        if rule.randomised:
            weights[:, free] = checked_chances(rule, *now, np.zeros_like(now[1]))
        else:
            weights[:, free] = _even(best(rule, *now))
    if chosen is not None:
        weights[:, committed] = chosen[:, committed]
    return weights, np.asarray(~exploring & ~committed & rule.commits)


def _next_explored(rule: Rule, decided: Ints, owed: Mask) -> Mask:
    if rule.order == "round-robin":
        least = np.where(owed, decided, np.iinfo(np.int64).max).min(axis=0)
        return np.asarray(owed & (decided == least))
    if rule.order == "block":
        begun = owed & (decided > 0)
        return np.where(begun.any(axis=0), begun, owed)
    return np.asarray(owed & (owed.cumsum(axis=0) == 1))


def _even(candidates: Mask) -> FloatArray:
    return np.asarray(candidates / candidates.sum(axis=0))


def arm_statistics(shape: Shape, states: States, level: int) -> tuple[Ints, FloatArray, Mask | None]:
    """Return pulls and mean of each arm of a level, and which one it committed to."""
    arms = shape.levels[level]
    pulls = states[shape.rows("pulls", arms)].astype(np.int64)
    if shape.deterministic:
        mean = np.zeros(pulls.shape)
        for k, a in enumerate(arms):
            mean[k] = np.where(pulls[k] > 0, _sure_reward(shape, states, a), 0.0)
    else:
        mean = states[shape.rows("sum", arms)] / np.maximum(pulls, 1)
    if not shape.mechanism.commits_to_arm:
        return pulls, mean, None
    return pulls, mean, states[shape.rows("chosen", arms)] > 0


def _sure_reward(shape: Shape, states: States, arm: int) -> FloatArray:
    """Return what each pull of an arm pays where rewards are deterministic; 0 where that is not known yet."""
    original = shape.arms[arm]
    values = np.array([0.0, *(ticks(v) / ONE for v in shape.originals[original].belief.values)])
    return np.asarray(values[shape.successes(states, original)])


def agent_statistics(shape: Shape, states: States) -> tuple[Ints, Ints, FloatArray, Mask | None]:
    """Return rounds given, pulls that count and their mean for each agent, and which one was committed to."""
    observations = [shape.observations(states, o) for o in range(len(shape.originals))]
    decided = np.array([sum(observations[o] for o in originals) for originals in shape.originals_of])
    if shape.mechanism.scoring.partial:
        pulls, mean = _score_statistics(shape, states, decided)
    elif shape.deterministic:
        pulls = decided
        mean = np.array([_exact_mean(shape, states, originals, observations) for originals in shape.originals_of])
    else:
        total = np.array([sum(shape.successes(states, o) for o in originals) for originals in shape.originals_of])
        pulls, mean = decided, total / np.maximum(decided, 1)
    unscored = [i for i, arms in enumerate(shape.registered) if not shape.mechanism.scoring.allows(arms)]
    if unscored:
        pulls = pulls.copy()
        pulls[unscored], mean[unscored] = 0, 0.0
    if not shape.mechanism.commits_to_agent:
        return decided, pulls, mean, None
    return decided, pulls, mean, states[shape.rows("winner", tuple(range(shape.owners)))] > 0


def scored_pulls(shape: Shape, owner: int, decided: Ints) -> Ints:
    """Return the rewards that a partial score counts so far: after the rounds that it skips, until it is full.

    A score of fresh rewards starts with the round that commits. If an index over agents keeps counting after the arms
    were cleared, the rounds of their second exploration do not count either.
    """
    score, agent = shape.mechanism.scoring, shape.mechanism.rules[0]
    if not score.allows(shape.registered[owner]):
        return np.zeros_like(decided)
    arms, explore = len(shape.levels[owner]), shape.mechanism.arm_rounds
    skipped = score.skipped_rounds(arms, explore, agent.commits)
    start = max(skipped, arms * explore) if score.fresh else skipped
    if shape.counts_anew:
        decided = decided - np.clip(decided - agent.explore, 0, arms * explore)
    return np.clip(decided - start, 0, score.rounds)


def _score_statistics(shape: Shape, states: States, decided: Ints) -> tuple[Ints, FloatArray]:
    pulls = np.array([scored_pulls(shape, i, decided[i]) for i in range(shape.owners)])
    if not shape.deterministic:
        return pulls, states[shape.rows("score", tuple(range(shape.owners)))] / np.maximum(pulls, 1)
    mean = np.zeros(pulls.shape)
    for i in range(shape.owners):
        for a in shape.levels[i]:
            mean[i] += np.where(states[shape.row("chosen", a)] > 0, _sure_reward(shape, states, a), 0.0)
    return pulls, np.where(pulls > 0, mean, 0.0)


def _exact_mean(shape: Shape, states: States, originals: list[int], observations: list[Ints]) -> FloatArray:
    """Return the mean of different deterministic rewards, in whole numbers of any size where floats are inexact."""
    coarse = all((v * 2**20).is_integer() for o in originals for v in shape.originals[o].belief.values)
    kind = np.float64 if coarse else object
    total = np.zeros(states.shape[1], dtype=kind)
    for o in originals:
        values = [0, *(ticks(v) for v in shape.originals[o].belief.values)]
        worth = np.array([v / ONE for v in values] if coarse else values, dtype=kind)
        total = total + observations[o].astype(kind) * worth[shape.successes(states, o)]
    pulls = np.maximum(sum(observations[o] for o in originals), 1)
    if coarse:
        return np.asarray(total / pulls)
    return np.array([int(x) / (int(n) << TICK_BITS) for x, n in zip(total, pulls, strict=True)], dtype=float)
