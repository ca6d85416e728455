"""Whether a deviation pays: witnesses, and how sure their gains are.

A gain counts as above the tolerance only where its whole enclosure lies there: an enclosure in balls, a confidence
sequence, or floats with a counted bound of roundings that the gain exceeds a thousandfold. The bound is a count of
operations, not a proof of each, so it gets that margin; a quadrature's error is a guess, and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.engines.estimate import Estimate
from cloneproof.market.copies import full_copies

MARGIN = 1000.0
NEARLY = 0.01  # gains that differ by so small a part are as good as each other, and the simpler one is shown
GUESSED = "two resolutions"  # in the method of an error that was guessed


def witness(
    question: Question, agent: str, horizon: int, copies: CopyVector, honest: Estimate, copied: Estimate
) -> Witness:
    """A deviation against honest others, from the two payoffs."""
    market = question.markets[horizon]
    return Witness(agent, copies, honest, copied, copied - honest, market, full_copies(market.agents, {agent: copies}))


def pays(found: Witness, tolerance: float) -> bool:
    """Whether the gain is surely above the tolerance."""
    return _slack(found) is not None and found.gain.value - (_slack(found) or 0.0) > tolerance * _honest(found, +1)


def does_not_pay(found: Witness, tolerance: float) -> bool:
    """Whether the gain is surely at most the tolerance."""
    return _slack(found) is not None and found.gain.value + (_slack(found) or 0.0) <= tolerance * _honest(found, -1)


def is_open(found: Witness, tolerance: float) -> bool:
    """Whether neither is sure."""
    return not pays(found, tolerance) and not does_not_pay(found, tolerance)


def best_of(witnesses: Iterable[Witness]) -> Witness:
    """The largest gain relative to honesty; of those, the fewest arms."""
    return max(witnesses, key=lambda one: (one.relative_gain, -sum(one.copies)))


def simplest_of(witnesses: Iterable[Witness]) -> Witness:
    """The fewest arms whose relative gain is within a hundredth of the largest: the witness to show, and to certify."""
    listed = list(witnesses)
    largest = best_of(listed).relative_gain
    enough = largest - NEARLY * abs(largest) if math.isfinite(largest) else largest
    return min((one for one in listed if one.relative_gain >= enough), key=lambda one: (sum(one.copies), one.horizon))


def _slack(found: Witness) -> float | None:
    gain = found.gain
    if gain.kind != "estimated":
        return gain.error
    return None if GUESSED in gain.method else MARGIN * gain.error


def _honest(found: Witness, side: int) -> float:
    margin = MARGIN if found.honest.kind == "estimated" else 1.0
    return max(0.0, found.honest.value + side * margin * found.honest.error)
