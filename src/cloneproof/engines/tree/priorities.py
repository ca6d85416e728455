"""The candidates of highest priority in many states at once, near-ties decided right.

The built-in rules are evaluated on whole arrays with the same operations as their scalar functions; any other
function is called once for each different argument. UCB indices are compared in floats and, where two come within
1e-9, in ball arithmetic at growing precision: m1 + sqrt(c ln t / n1) = m2 + sqrt(c ln t / n2) with n1 != n2 would make
ln t algebraic, which it is not for t >= 2, so a decision is always reached. Steady indices do not watch the clock; they
are floats by a procedure that is the same everywhere, and are compared as such.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache
from typing import Any

import flint
import numpy as np
import numpy.typing as npt

from cloneproof._arrays import FloatArray
from cloneproof.engines.tree.beliefs import Ints
from cloneproof.mechanisms.logarithm import ln
from cloneproof.mechanisms.rule import Rule, broken_rule
from cloneproof.mechanisms.rules.epsilon_greedy import priority as epsilon_greedy
from cloneproof.mechanisms.rules.etc import average
from cloneproof.mechanisms.rules.slow_ucb import index as slow_index
from cloneproof.mechanisms.rules.steady_kl_ucb import index as steady_kl_index
from cloneproof.mechanisms.rules.steady_ucb import index as steady_index
from cloneproof.mechanisms.rules.thompson import posterior_draw, posterior_quantile
from cloneproof.mechanisms.rules.ucb import index
from cloneproof.mechanisms.rules.uniform import indifferent

Mask = npt.NDArray[np.bool_]
NEAR = 1e-9


def ignores_statistics(rule: Rule) -> bool:
    """Whether the rule looks at no statistics at all, so that none need be remembered."""
    return rule.priority is indifferent and rule.explore == 0


def flips_coin(rule: Rule) -> bool:
    """Whether the rule is epsilon-greedy, whose only randomness is a coin to branch on."""
    return rule.priority is epsilon_greedy


def draws_posteriors(rule: Rule) -> bool:
    """Whether the rule is Thompson sampling, whose randomness is a draw from each candidate's posterior."""
    return rule.priority in (posterior_draw, posterior_quantile)


def compares_floats(rule: Rule) -> bool:
    """Whether the priority is a user's function, which can only be compared in floats."""
    built_in = (index, slow_index, average, indifferent, epsilon_greedy, steady_index, steady_kl_index)
    return rule.priority not in built_in and not draws_posteriors(rule)


def best(rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray) -> Mask:
    """Which candidates (rows) have the highest priority in each state (columns)."""
    if rule.priority is indifferent:
        return np.ones(pulls.shape, dtype=bool)
    if rule.priority is epsilon_greedy:
        return np.asarray(mean == mean.max(axis=0))
    if rule.priority is average:
        value = np.where(pulls > 0, mean, -np.inf)
        return np.asarray(value == value.max(axis=0))
    if rule.priority in (index, slow_index):
        return _highest_index(rule, clock, pulls, mean)
    if rule.priority in (steady_index, steady_kl_index):
        value = _steady(rule, pulls, mean)
    else:
        value = _call_priority(rule, clock, pulls, mean)
    return np.asarray(value == value.max(axis=0))


def _steady(rule: Rule, pulls: Ints, mean: FloatArray) -> FloatArray:
    """Indices of a candidate's own rewards alone: the same operations as those of the scalar functions."""
    (width,) = rule.parameters
    if rule.priority is steady_index:
        with np.errstate(divide="ignore"):
            return np.where(pulls > 0, mean + np.sqrt(width / pulls), -np.inf)
    means, which = np.unique(mean, return_inverse=True)
    code = pulls * np.int64(len(means)) + which.reshape(mean.shape)
    _, where, back = np.unique(code, return_index=True, return_inverse=True)
    pairs = zip(pulls.flat[where].tolist(), mean.flat[where].tolist(), strict=True)
    return np.asarray(np.array([_kl_index(n, m, width) for n, m in pairs])[back.reshape(pulls.shape)])


@lru_cache(maxsize=1 << 18)
def _kl_index(pulls: int, mean: float, width: float) -> float:
    return steady_kl_index(1, 0.0, pulls, mean, 0.5, 0.5, 1, width)


def _highest_index(rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray) -> Mask:
    slow = rule.priority is slow_index
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
    before, precision = flint.ctx.prec, 128
    try:
        while True:
            flint.ctx.prec = precision
            t = flint.arb(clock)
            scale = flint.arb(constant) * t.log() * (t.sqrt() if slow else 1)
            difference = flint.arb(mean) + (scale / pulls).sqrt() - flint.arb(other_mean) - (scale / others).sqrt()
            if difference > 0:
                return True
            if difference < 0:
                return False
            precision *= 2
    finally:
        flint.ctx.prec = before


def _call_priority(rule: Rule, clock: Ints, pulls: Ints, mean: FloatArray) -> FloatArray:
    """The scalar priority, once for each different (clock, pulls, mean)."""
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
    """The priority of a rule that looks at siblings, once for each different candidate of each different state."""
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
    log = ln(time) if time > 0 else -math.inf
    try:
        value = rule.priority(time, log, pulls, mean, 0.5, 0.5, count, *rest)
    except Exception as problem:
        raise broken_rule(rule, time, pulls, mean, problem) from problem
    if not isinstance(value, int | float | np.number) or value != value:
        raise broken_rule(rule, time, pulls, mean, value)
    return float(value)


def _ln(clock: Ints) -> FloatArray:
    """The logarithms of whole numbers from 1."""
    return np.asarray(_logarithms(int(clock.max(initial=1)).bit_length())[clock])


@cache
def _logarithms(bits: int) -> FloatArray:
    """A table of ln t for t < 2^bits; that of 0 is never asked for."""
    return np.array([0.0, *(ln(t) for t in range(1, 1 << bits))])
