"""What a race came to, case by case."""

from __future__ import annotations

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.judgement import pays, relative_gain_at_most
from cloneproof.analysis.audit.search.race.candidates import Draws, RaceEntry
from cloneproof.analysis.audit.search.race.state import Race
from cloneproof.analysis.audit.search.results import SampledResult


def race_results(state: Race) -> dict[AuditCase, SampledResult]:
    """What is known, case by case; an honest payoff is that of the candidate that knows it best."""
    results = {entry.case: SampledResult((entry.case,)) for entry in state.candidates}
    for number, generation in enumerate(state.generations):
        for entry in generation if number else ():
            results[entry.case].added.append(entry.copies)
    bounding = set(state.bounding)
    seen = _seen_generations(state, bounding)
    for entry in state.looks:
        result, draws = results[entry.case], known(state, entry)
        result.samples[entry.copies] = draws.sample
        if entry.attacks:
            result.evaluated[entry.copies] = [draws.witness]
        else:
            result.worlds[entry.copies] = draws.witness
        if entry in bounding:
            result.at_most[entry.copies] = _bound(state.looks[entry], state.numbers[entry] in seen)
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


def _seen_generations(state: Race, bounding: set[RaceEntry]) -> set[int]:
    """The generations of which every candidate that bounds something was looked at."""
    missing = {state.numbers[entry] for entry in bounding if entry not in state.looks}
    return set(range(len(state.generations))) - missing


def _bound(draws: Draws, seen: bool) -> float | None:
    """Of the upper ends whose largest bounds what any candidate of a generation gains, if all of it was seen or not."""
    return relative_gain_at_most(draws.alone if seen else draws.witness)
