"""Whether a deviation pays, and how sure that is.

A gain counts as above the tolerance only where its whole enclosure lies there: an enclosure in balls, a confidence
sequence, or floats with a counted bound of roundings that the gain exceeds a thousandfold. The bound is a count of
operations, not a proof of each, so it gets that margin; a heuristic error, as of a quadrature, decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from cloneproof.analysis.audit.verdict import Witness

MARGIN = 1000.0
NEARLY = 0.01  # gains that differ by so small a part are as good as each other, and the simpler one is shown


def pays(witness: Witness, tolerance: float) -> bool:
    """Whether the gain is surely above the tolerance."""
    error = _gain_error(witness)
    return error is not None and witness.gain.value - error > tolerance * _honest_bound(witness, +1)


def does_not_pay(witness: Witness, tolerance: float) -> bool:
    """Whether the gain is surely at most the tolerance."""
    error = _gain_error(witness)
    return error is not None and witness.gain.value + error <= tolerance * _honest_bound(witness, -1)


def is_open(witness: Witness, tolerance: float) -> bool:
    """Whether neither is sure."""
    return not pays(witness, tolerance) and not does_not_pay(witness, tolerance)


def relative_gain_at_most(witness: Witness) -> float | None:
    """The relative gain that it surely does not exceed (0 where it pays nothing); None where its error is heuristic."""
    error = _gain_error(witness)
    if error is None:
        return None
    least = _honest_bound(witness, -1)
    most = min(witness.gain.value + error, witness.earned_at_most - least)
    if most <= 0:
        return 0.0
    return most / least if least > 0 else math.inf


def best_of(witnesses: Iterable[Witness]) -> Witness:
    """The largest gain relative to honesty; of those, the fewest arms."""
    return max(witnesses, key=lambda witness: (witness.relative_gain, -sum(witness.copies)))


def simplest_of(witnesses: Iterable[Witness]) -> Witness:
    """The fewest arms whose relative gain is within a hundredth of the largest: the witness to show, and to certify."""
    listed = list(witnesses)
    largest = best_of(listed).relative_gain
    enough = largest - NEARLY * abs(largest) if math.isfinite(largest) else largest
    nearly_best = (witness for witness in listed if witness.relative_gain >= enough)
    return min(nearly_best, key=lambda witness: (sum(witness.copies), witness.horizon))


def _gain_error(witness: Witness) -> float | None:
    """The error with its margin; None where it is heuristic, and bounds nothing."""
    gain = witness.gain
    if gain.kind != "estimated":
        return gain.error
    return None if gain.heuristic else MARGIN * gain.error


def _honest_bound(witness: Witness, side: int) -> float:
    """The upper (+1) or lower (-1) end of the honest payoff, with its margin."""
    margin = MARGIN if witness.honest.kind == "estimated" else 1.0
    return max(0.0, witness.honest.value + side * margin * witness.honest.error)
