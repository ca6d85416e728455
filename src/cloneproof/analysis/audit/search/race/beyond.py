"""Beyond the planned candidates: where the gain of the best rises, the search goes on around it.

A coordinate search on the numbers of copies (compass search: Kolda, Lewis and Torczon 2003): from the best vector of an
agent at a horizon each number, and all of them together, are multiplied and divided by a factor; if none of these is
better, by a smaller factor, at last by one copy more or less. Each round of it is a generation of candidates with a
seed of its own, so that no error level is lost (`levels`). What a generation drew decides where the search goes, and
nothing else rests on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds
from cloneproof.analysis.audit.search.race.candidates import RaceEntry
from cloneproof.analysis.audit.search.race.state import Race
from cloneproof.market.copies import MOST_ARMS

FACTORS = (2.0, 1.5, 1.25, 1.0)  # of the numbers of copies; the last one is a step of one copy
MOST_GENERATIONS = 12
RISES = 3.0  # standard errors
NEAR = 0.1  # of the tolerance: what gains less is not pursued


@dataclass
class SearchSteps:
    """Where the search around the best stands: for each case the best vector so far, and which factor is next."""

    best: dict[AuditCase, CopyVector] = field(default_factory=dict)
    factors: dict[AuditCase, int] = field(default_factory=dict)

    def next_generation(self, state: Race) -> list[RaceEntry]:
        """The vectors around the best ones that were not tried; none where no gain rises, or none can be bettered."""
        if len(state.generations) > MOST_GENERATIONS:
            return []
        generation = []
        for case in dict.fromkeys(entry.case for entry in state.planned):
            best = best_of_case(state, case)
            if best is not None and (case in self.best or rises(state, best)):
                moved = self.best.get(case) != best.copies
                self.best[case], begin = best.copies, 0 if moved else self.factors[case]
                generation += self._around(state, best, begin)
        return generation

    def _around(self, state: Race, best: RaceEntry, begin: int) -> list[RaceEntry]:
        """The new ones at the first factor that has any."""
        for number in range(begin, len(FACTORS)):
            self.factors[best.case] = number + 1
            vectors = dict.fromkeys(neighbours(best.case.kinds, best.copies, FACTORS[number]))
            around = [RaceEntry(best.case, vector) for vector in vectors]
            new = [entry for entry in around if entry not in state.numbers and entry.arms <= MOST_ARMS]
            if new:
                return new
        self.factors[best.case] = len(FACTORS)
        return []


def best_of_case(state: Race, case: AuditCase) -> RaceEntry | None:
    """The deviation of a case whose gain less a standard error is largest."""
    seen = [entry for entry in state.looks if entry.case is case and entry.attacks]
    return max(seen, key=lambda each: state.looks[each].witness.gain.value - state.looks[each].error, default=None)


def rises(state: Race, entry: RaceEntry) -> bool:
    """Whether the gain is clearly above nothing, or clearly above that of half the copies; and not far from paying."""
    draws = state.looks[entry]
    gain, error = draws.witness.gain.value, RISES * draws.error
    near = NEAR * state.tolerance * max(0.0, draws.witness.honest.value)
    half = state.looks.get(RaceEntry(entry.case, tuple(math.ceil(number / 2) for number in entry.copies)))
    if gain > max(error, near):
        return True
    rise = 0.0 if half is None else gain - half.witness.gain.value
    return half is not None and rise > error + RISES * half.error and gain + rise > near


def neighbours(kinds: OriginalKinds, vector: CopyVector, factor: float) -> Iterator[CopyVector]:
    """The vectors with one number, or all, multiplied or divided by the factor, by one at least; honesty is none.

    >>> list(neighbours(OriginalKinds((0, 0)), (4, 1), 2.0))
    [(8, 1), (2, 1), (4, 2), (8, 2), (2, 1)]
    """
    more = [max(number + 1, round(number * factor)) for number in vector]
    fewer = [max(1, min(number - 1, round(number / factor))) for number in vector]
    changed = [(*vector[:k], numbers[k], *vector[k + 1 :]) for k in range(len(vector)) for numbers in (more, fewer)]
    both = [tuple(more), tuple(fewer)] if len(vector) > 1 else []
    for each in (*changed, *both):
        if each not in (vector, kinds.honest):
            yield kinds.sorted(each)
