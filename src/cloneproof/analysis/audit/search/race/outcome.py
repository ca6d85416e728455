"""What a race came to, case by case."""

from __future__ import annotations

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.judgement import pays, relative_gain_at_most
from cloneproof.analysis.audit.search.race.candidates import Draws, RaceEntry
from cloneproof.analysis.audit.search.race.levels import NONE
from cloneproof.analysis.audit.search.race.state import Race
from cloneproof.analysis.audit.search.results import SampledResult


def race_results(state: Race) -> dict[AuditCase, SampledResult]:
    """What is known, case by case; an honest payoff is that of the candidate that knows it best."""
    results = {entry.case: SampledResult((entry.case,)) for entry in state.candidates}
    for entry in state.looks:
        result, draws = results[entry.case], known(state, entry)
        result.evaluated[entry.copies], result.samples[entry.copies] = [draws.witness], draws.sample
        result.at_most[entry.copies] = _bound(state, entry)
        best = result.honest.get(entry.case.horizon)
        if best is None or draws.witness.honest.error < best.error:
            result.honest[entry.case.horizon] = draws.witness.honest
    why = f"too dear for a budget of {state.budget or 0.0:.3g} s"
    if state.anybody_pays():
        why = "the search ended with one that pays"
    for entry in state.candidates:
        if entry not in state.looks:
            results[entry.case].left_out[entry.copies] = why
    return results


def known(state: Race, entry: RaceEntry) -> Draws:
    """What there is to say of a candidate: its fresh pairs if they know more, or that it pays."""
    look, fresh = state.looks[entry], state.confirmations.get(entry)
    if fresh is None:
        return look
    better = pays(fresh.witness, state.tolerance) or fresh.witness.gain.error <= look.witness.gain.error
    return fresh if better else look


def _bound(state: Race, entry: RaceEntry) -> float | None:
    """Of the upper ends whose largest bounds what any candidate gains."""
    draws = state.looks[entry]
    if len(state.looks) == len(state.candidates):
        return relative_gain_at_most(draws.alone)
    level = NONE * state.alpha / len(state.candidates)
    return relative_gain_at_most(state.alone(entry, draws.witness, draws.totals, level))
