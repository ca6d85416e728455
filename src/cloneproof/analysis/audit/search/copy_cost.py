"""A cost per copy: how large a fee for each extra arm would make honesty the best of what was searched."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cloneproof.analysis.audit.verdict import Witness
from cloneproof.engines.estimate import Estimate


def smallest_copy_cost(tried: Iterable[Witness]) -> tuple[Estimate, Witness] | None:
    """The smallest cost per extra arm at which no deviation tried pays, and the deviation that sets it.

    None where none pays anyway (within its error). With a cost c a deviation of e extra arms gains gain - c e, so the
    answer is the largest gain per extra arm.
    """
    best: tuple[Estimate, Witness] | None = None
    for witness in tried:
        extra, gain = sum(witness.copies) - len(witness.copies), witness.gain
        if extra <= 0 or gain.high <= 0 or gain.value <= 0:
            continue
        cost = replace(gain, value=gain.value / extra, error=gain.error / extra)
        if best is None or cost.value > best[0].value:
            best = cost, witness
    return best
