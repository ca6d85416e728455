"""Confirmation: whoever seems to pay is sampled afresh, from another seed and at a level of its own (`levels`).

That happens at any time of the search: whenever a candidate seems to pay, and to be known to for no more than the work
so far (or half of what is left of a budget, where it stands out; after the halving all that is left).
"""

from __future__ import annotations

import math

from cloneproof._randomness import substream
from cloneproof.analysis.audit.search.race.candidates import RaceEntry
from cloneproof.analysis.audit.search.race.levels import confirmation_level
from cloneproof.analysis.audit.search.race.state import FEW, Race

CONFIRMATIONS = 1  # the stream of their seeds
CLEAR = 2.0  # standard errors


def found(state: Race, part: float = 0.5) -> bool:
    """Whether somebody surely pays, by the search itself or after a confirmation that is near."""
    return state.anybody_pays() or confirm_if_near(state, part)


def confirm_if_near(state: Race, part: float) -> bool:
    """Sample afresh whoever seems to pay, and to be known to for no more than the work so far; whether one does."""
    while not state.deadline.spent:
        costs = {entry: cost_of_confirmation(state, entry) for entry in state.looks if entry.attacks}
        entry = min(costs, key=lambda each: costs[each], default=None)
        if entry is None or costs[entry] > worth_confirming(state, entry, part):
            return False
        confirm(state, entry)
        if state.anybody_pays():
            return True
    return False


def worth_confirming(state: Race, entry: RaceEntry, part: float) -> float:
    """The most that a confirmation may cost: the work so far; that part of what is left, for what stands out."""
    draws = state.confirmations.get(entry) or state.looks[entry]
    clear = draws.excess(state.tolerance) > CLEAR * draws.error
    return max(state.work, part * (state.deadline.left or 0.0)) if clear else state.work


def cost_of_confirmation(state: Race, entry: RaceEntry) -> float:
    """The forecast, from the fresh pairs where there are some."""
    fresh = state.confirmations.get(entry)
    draws = fresh or state.looks[entry]
    excess = draws.excess(state.tolerance) - draws.error / 2
    wanted = draws.pairs_until_known(excess, confirmation_level(state.alpha, 1) / 2, state.bounds)
    done = 0 if fresh is None else fresh.pairs
    if done >= state.most or wanted > 4 * state.most:
        return math.inf
    return draws.cost * max(wanted - done, done / 4, 1.0)


def confirm(state: Race, entry: RaceEntry) -> None:
    """Half of the fresh pairs that are still forecast, at least a quarter more than there are."""
    fresh = state.confirmations.get(entry)
    done = 0 if fresh is None else fresh.pairs
    cost = (fresh or state.looks[entry]).cost
    pairs = min(state.most, done + max(FEW, done // 4, math.ceil(cost_of_confirmation(state, entry) / cost / 2)))
    if fresh is None:
        rank = len(state.confirmations) + 1
        seed = substream(CONFIRMATIONS, state.seed, rank) >> 1
        level, stratify = confirmation_level(state.alpha, rank), 2 * pairs >= state.strata[id(entry.case.market)]
    else:
        level, seed, stratify = 2 * (1 - fresh.sample.confidence), fresh.sample.seed, True
    state.confirmations[entry] = state.draw(entry, pairs, fresh, seed, level, stratify)
    state.tell(f"{entry.case.name}: {state.confirmations[entry].pairs} fresh pairs of copies {entry.copies}")
