"""First looks: a few pairs of each candidate, spread over agents and rungs with large rungs early (`look_order`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cloneproof._randomness import substream
from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.search.race.candidates import RaceEntry
from cloneproof.analysis.audit.search.race.levels import LOOKS, generation_share
from cloneproof.analysis.audit.search.race.look_order import in_turn, rung_rank
from cloneproof.analysis.audit.search.race.state import FEW, Race
from cloneproof.analysis.paired_runs import PassLength

FIRST = 16  # pairs of a look, if it is not dear
LOOK, DEAR_LOOK = 0.02, 0.15  # of what is left of a budget: for one look, and for one with few pairs
MANY_PASSES = 4  # whole passes, from which on they are drawn in place of short ones
GENERATIONS = 2  # the stream of their seeds; that of confirmations is 1
LONGEST_PASS = 64  # strata that a look takes in, under a budget


def look(state: Race, entry: RaceEntry) -> bool:
    """A first look, unless it is too dear for what is left; whether there was one."""
    market = id(entry.case.market)
    strata = state.short[market]
    pairs, stratify = max(FIRST, strata), True
    if state.budget is not None:
        left, cost = state.deadline.left or 0.0, _guessed_cost(state, entry)
        stratify = strata <= LONGEST_PASS and strata * cost <= LOOK * left
        pairs = max(FIRST, strata) if stratify else FIRST
        if not state.looks or pairs * cost > LOOK * left:  # the first one tells what pairs cost
            pairs, stratify = FEW, strata <= FEW // 2
        if state.looks and pairs * cost > DEAR_LOOK * left:
            return False
    short = stratify and strata < state.strata[market]
    search(state, entry, min(pairs, state.most), "short" if short else stratify)
    return True


def is_dear(state: Race, entry: RaceEntry) -> bool:
    """Whether even few pairs of it take more than a look should."""
    if state.budget is None or not state.looks:
        return False
    return FEW * _guessed_cost(state, entry) > LOOK * (state.deadline.left or 0.0)


def search(state: Race, entry: RaceEntry, pairs: int, stratify: PassLength = True) -> None:
    """Bring a candidate to so many pairs, from its generation's seed; whole passes replace short ones."""
    before, whole = state.looks.get(entry), state.strata[id(entry.case.market)]
    if before is not None:
        stratify = state.passes(entry, before.totals)
        if stratify is not True and whole > 1 and pairs >= MANY_PASSES * whole:
            before, stratify = None, True
    number = state.numbers[entry]
    level = LOOKS * state.alpha * generation_share(number) / len(state.generations[number])
    seed = state.seed if number == 0 else substream(GENERATIONS, state.seed, number) >> 1
    state.looks[entry] = state.draw(entry, pairs, before, seed, level * state.share(entry, stratify), stratify)
    state.tell(f"{entry.case.name}: {state.looks[entry].pairs} pairs of copies {entry.copies}")


def _guessed_cost(state: Race, entry: RaceEntry) -> float:
    """Of a pair of an unknown candidate, in proportion to the arms and rounds of the nearest one that is known."""
    if not state.looks:
        return 0.0
    near = min(state.looks, key=lambda other: abs(math.log(other.arms / entry.arms)))
    return state.looks[near].cost * entry.arms / near.arms * entry.case.horizon / near.case.horizon


def in_order(candidates: Sequence[RaceEntry]) -> list[RaceEntry]:
    """The order of first looks: cases in turn, and of each the rungs that `look_order` puts first."""
    by_case: dict[AuditCase, list[RaceEntry]] = {}
    for entry in candidates:
        by_case.setdefault(entry.case, []).append(entry)
    return in_turn(sorted(of_case, key=lambda entry: rung_rank(entry.copies)) for of_case in by_case.values())
