"""Comparisons for checks: yes, no, or open where error bounds leave it so; and arithmetic on estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter

from cloneproof.audits.deviations import CopiesOf
from cloneproof.audits.gain import Finding, exact_gain
from cloneproof.laws.arithmetic import at_most_products
from cloneproof.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.runs.estimate import ErrorKind, Estimate

MOST_PRODUCTS = 1e12  # of a law: minutes, for the paper's longest horizons
AUDITED = {"clone-proof": True, "exploitable": False, "undecided": None}  # whether none pay, by an audit's verdict


def all_of(answers: Sequence[bool | None]) -> bool | None:
    """Return whether all hold: no where one does not, open where one is open.

    >>> all_of([True, None]), all_of([None, False]), all_of([])
    (None, False, True)
    """
    if any(answer is False for answer in answers):
        return False
    return None if any(answer is None for answer in answers) else True


def above(estimate: Estimate, bound: float = 0.0) -> bool | None:
    """Return whether the number is above the bound: open where its interval contains the bound.

    >>> above(Estimate(1.0, 0.5, "exact", "")), above(Estimate(1.0, 2.0, "exact", ""))
    (True, None)
    """
    return True if estimate.low > bound else False if estimate.high <= bound else None


def at_most(estimate: Estimate, bound: float = 0.0, rounding: float = 0.0) -> bool | None:
    """Return whether the number is at most the bound; an interval that sticks out by no more than `rounding` counts."""
    return True if estimate.high <= bound + rounding else False if estimate.low > bound else None


def agrees(estimate: Estimate, expected: float, slack: float = 0.0) -> bool:
    """Return whether an expected number lies in the interval, widened by the slack that the expectation itself has."""
    return estimate.low - slack <= expected <= estimate.high + slack


by_value, by_low, by_high = attrgetter("value"), attrgetter("low"), attrgetter("high")  # keys of estimates


def part_of(estimate: Estimate, whole: float, rounding: float = 0.0) -> Estimate:
    """Return an estimate as a part of a number."""
    return replace(estimate, value=estimate.value / whole, error=estimate.error / whole + rounding)


def size(estimate: Estimate) -> Estimate:
    """Return the absolute value."""
    return replace(estimate, value=abs(estimate.value))


def rounded(value: float, relative: float = 1e-9, kind: ErrorKind = "exact", method: str = "floats") -> Estimate:
    """Return a number whose only error is that part of it."""
    return Estimate(value, relative * abs(value), kind, method)


def by_law(market: Market, mechanism: Mechanism, copies: tuple[int, ...]) -> Finding:
    """Return what Ana is paid for copies and for honest registration, and the difference, by the closed form."""
    with at_most_products(MOST_PRODUCTS):
        return exact_gain(market, mechanism, CopiesOf("ana", copies), "law")
