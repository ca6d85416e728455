"""Tables over rounds, one for the process: what a UCB index needs, so that no kernel takes a logarithm.

An index is mean + sqrt(f(t) / n) with f(t) = c ln t, or c sqrt(t) ln t for the slow rule. `exact` holds f as the rules
of `mechanisms.rules` compute it, bit for bit; `root` its square root, with which an index is nearly a line,
mean + root(t) / sqrt(n), that two multiplications evaluate.
"""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.mechanisms.logarithm import ln
from cloneproof.mechanisms.rule import Rule

_lock = threading.Lock()  # chunks run on threads
_logarithms = np.zeros(1)
_reciprocals: tuple[FloatArray, FloatArray] = (np.zeros(1), np.zeros(1))


class BonusTable(NamedTuple):
    """f(t) and its root for clocks 0 .. horizon; clock 0 is never looked at."""

    exact: FloatArray
    root: FloatArray


def logarithms(horizon: int) -> FloatArray:
    """`ln(t)` at position t, at least up to the horizon."""
    global _logarithms  # noqa: PLW0603 (a cache: the numbers in it never change, there are only more of them)
    with _lock:
        if len(_logarithms) <= horizon:
            _logarithms = np.array([-math.inf] + [ln(t) for t in range(1, horizon + 1)])
        return _logarithms


def reciprocals(horizon: int) -> tuple[FloatArray, FloatArray]:
    """1/n and 1/sqrt(n) at position n, at least up to the horizon; both infinite at 0."""
    global _reciprocals  # noqa: PLW0603 (a cache, as above)
    with _lock:
        if len(_reciprocals[0]) <= horizon:
            with np.errstate(divide="ignore"):
                numbers = np.arange(horizon + 1, dtype=np.float64)
                _reciprocals = 1 / numbers, 1 / np.sqrt(numbers)
        return _reciprocals


def bonus(rule: Rule, horizon: int) -> BonusTable:
    """The bonus of a rule named ucb or slow-ucb; sqrt and products are correctly rounded in NumPy as in Python."""
    logs = logarithms(horizon)[: horizon + 1]
    (constant,) = rule.parameters
    if rule.name == "slow-ucb":
        exact = constant * np.sqrt(np.arange(horizon + 1, dtype=np.float64)) * np.maximum(logs, 0.0)
    else:
        exact = constant * np.maximum(logs, 0.0)
    return BonusTable(exact, np.sqrt(exact))
