"""The search after the first looks: successive halving, then optimism.

*Successive halving* (Karnin, Koren and Somekh 2013; Jamieson and Talwalkar 2016): the half of the candidates that
promises most gets twice the pairs, again and again. *Optimism*: then the pairs go to whoever leaves room for the
largest gain, so that the bound of what the tried deviations gain falls. In between, where the gain of the best still
rises, the search goes on around it (`beyond`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cloneproof.analysis.audit.judgement import does_not_pay
from cloneproof.analysis.audit.search.race.beyond import SearchSteps
from cloneproof.analysis.audit.search.race.candidates import Draws, RaceEntry
from cloneproof.analysis.audit.search.race.confirmation import found
from cloneproof.analysis.audit.search.race.forecast import pairs_until_ruled_out
from cloneproof.analysis.audit.search.race.levels import NONE, OF_GAIN
from cloneproof.analysis.audit.search.race.looks import is_dear, look, search
from cloneproof.analysis.audit.search.race.state import Race

GROWTH, MOST_GROWTH = 2, 8  # of a candidate's pairs from turn to turn, where it may pay; where it does not
SPARE = 1.1  # of what a forecast says
TURN = 0.5  # of what is left, for one turn


def run_search(state: Race, waiting: list[RaceEntry]) -> None:
    """Looks, halving, optimism, with confirmations in between, until somebody surely pays or nothing is left."""
    later: list[RaceEntry] = []
    dear: list[RaceEntry] = []
    for entry in waiting:
        if state.looks and state.deadline.spent:
            return
        if is_dear(state, entry):
            later.append(entry)
        elif not look(state, entry):
            dear.append(entry)
        elif found(state):
            return
    for entry in later:
        if state.deadline.spent or found(state, part=1.0):
            return
        if not look(state, entry):
            dear.append(entry)
    if found(state, part=1.0) or halve(state, state.candidates) or found(state, part=1.0) or search_beyond(state):
        return
    while not state.deadline.spent and _most_open(state, dear):
        if found(state, part=1.0):
            return


def halve(state: Race, among: Sequence[RaceEntry]) -> bool:
    """Twice the pairs for the half that promises most, again and again; whether somebody surely pays."""
    left = [entry for entry in open_candidates(state, among) if entry.attacks]
    left.sort(key=lambda entry: promise(state, entry))
    while len(left) > 1:
        left = left[: len(left) // 2]
        for entry in left:
            if turn(state, entry) and found(state):
                return True
        left.sort(key=lambda entry: promise(state, entry))
    return False


def _most_open(state: Race, dear: list[RaceEntry]) -> bool:
    """A turn of whoever leaves room for the largest gain, or else a look that was too dear; whether there was any."""
    by_room = sorted(open_candidates(state, state.bounding), key=lambda entry: room(state, entry), reverse=True)
    return any(turn(state, entry) for entry in by_room) or (bool(dear) and look(state, dear.pop(0)))


def search_beyond(state: Race) -> bool:
    """Neighbours of the best, where its gain rises (`beyond`); whether somebody surely pays."""
    steps = SearchSteps()
    while not state.deadline.spent and (generation := steps.next_generation(state)):
        state.add(generation)
        for entry in generation:
            if state.deadline.spent:
                return False
            if look(state, entry) and found(state):
                return True
        if halve(state, generation) or found(state):
            return True
    return False


def open_candidates(state: Race, among: Iterable[RaceEntry]) -> list[RaceEntry]:
    """Those looked at of whom it is not known that they do not pay."""
    seen = (entry for entry in among if entry in state.looks)
    return [entry for entry in seen if not does_not_pay(state.looks[entry].alone, state.tolerance)]


def promise(state: Race, entry: RaceEntry) -> float:
    """What it would cost to know that it pays, if its gain is a standard error more than it seems."""
    draws = state.looks[entry]
    excess = draws.excess(state.tolerance) + draws.error
    return draws.cost * draws.pairs_until_known(excess, state.alpha, state.bounds)


def room(state: Race, entry: RaceEntry) -> float:
    """The largest relative gain that is not ruled out."""
    witness = state.looks[entry].alone
    return witness.gain_at_most / max(witness.honest.value, 1e-300)


def turn(state: Race, entry: RaceEntry) -> bool:
    """More pairs, as far as they are affordable; whether there were any."""
    pairs, before = affordable(state, entry), state.looks[entry].pairs
    if pairs <= before:
        return False
    search(state, entry, pairs)
    return state.looks[entry].pairs > before


def affordable(state: Race, entry: RaceEntry) -> int:
    """The pairs of its next turn in all; no more than it has where the budget affords nothing worth a turn."""
    draws = state.looks[entry]
    wanted = min(state.most, _wanted(state, draws))
    if state.deadline.left is None:
        return wanted
    within = draws.pairs + int(state.deadline.left * TURN / draws.cost)
    return min(wanted, within) if within >= draws.pairs + max(1, draws.pairs // 4) else draws.pairs


def _wanted(state: Race, draws: Draws) -> int:
    """Twice the pairs; or as many as it seems to take until it surely does not pay."""
    room = -draws.excess(state.tolerance)
    level = NONE * OF_GAIN * state.alpha
    forecast = pairs_until_ruled_out(draws.totals.estimands, draws.variance, room, level, state.bounds)
    if math.isinf(forecast):
        return GROWTH * max(1, draws.pairs)
    least = draws.pairs + max(1, draws.pairs // 4)
    return int(max(least, min(SPARE * forecast, MOST_GROWTH * draws.pairs)))
