"""Further deviations, reported apart: they are outside the paper's claim, and do not change the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from cloneproof.analysis.audit.copy_vectors import withholding_vectors
from cloneproof.analysis.audit.deadline import Deadline
from cloneproof.analysis.audit.judgement import best_of, does_not_pay, pays
from cloneproof.analysis.audit.search.copy_cost import smallest_copy_cost
from cloneproof.analysis.audit.search.exact_search import search
from cloneproof.analysis.audit.search.refinement import enclose
from cloneproof.analysis.audit.search.results import ExactResult, SearchResult
from cloneproof.analysis.audit.search.splitting import account_names, best_split
from cloneproof.analysis.audit.verdict import Witness
from cloneproof.engines.time_limit import engine_time
from cloneproof.errors import OutOfTimeError

OtherDeviations = tuple[dict[str, Witness], list[str]]  # the best of each kind asked for, and sentences about them


def other_deviations(
    results: Sequence[SearchResult],
    max_copies: int,
    tolerance: float,
    withhold: bool,
    split: bool,
    copy_cost: bool,
    clock: Deadline,
) -> OtherDeviations:
    """The best of each kind asked for, and a sentence about each."""
    best: dict[str, Witness] = {}
    notes: list[str] = []
    exact = [result for result in results if isinstance(result, ExactResult)]
    if (withhold or split) and len(exact) < len(results):
        notes.append("withholding and splitting are tried by exact engines only, and none applies here")
    parts: list[OtherDeviations] = []
    if withhold:
        parts.append(_withholding(exact, max_copies, tolerance, clock))
    if split:
        parts.append(_splitting(exact, tolerance, clock))
    if copy_cost:
        parts.append(_copy_cost(results))
    for witnesses, sentences in parts:
        best |= witnesses
        notes += sentences
    return best, notes


def _withholding(exact: Sequence[ExactResult], max_copies: int, tolerance: float, clock: Deadline) -> OtherDeviations:
    cases = {}
    witnesses: list[Witness] = []
    for result in exact:
        withheld = replace(result, evaluated={}, left_out={}, samples={})
        search(withheld, withholding_vectors(result.cases[0].kinds, max_copies), [], clock)
        witnesses += withheld.witnesses
        cases[result.agent] = result.cases
    if not witnesses:
        return {}, ["withholding: nothing to try, the agents have one original each"]
    best = best_of(witnesses)
    with engine_time(clock.left), suppress(OutOfTimeError):
        best = enclose(cases[best.agent], best) or best
    note = f"withholding: registering {best.copies} as {best.agent} {_worth(best, tolerance)}"
    return {"withholding": best}, [note]


def _splitting(exact: Sequence[ExactResult], tolerance: float, clock: Deadline) -> OtherDeviations:
    witnesses: list[Witness] = []
    notes: list[str] = []
    for result in exact:
        witness, missing = best_split(result, clock)
        notes += missing[:3]
        witnesses += [] if witness is None else [witness]
    if not witnesses:
        return {}, notes
    best = best_of(witnesses)
    arms = {each.name: each.count for each in best.market.agents}
    first, second = (arms[account] for account in account_names(best.agent))
    notes.append(
        f"splitting: {best.agent} under two names, with {first} and {second} arms and the originals registered "
        f"{best.copies} times in all, {_worth(best, tolerance)}"
    )
    return {"splitting": best}, notes


def _copy_cost(results: Sequence[SearchResult]) -> OtherDeviations:
    dearest = smallest_copy_cost(witness for result in results for witness in result.witnesses)
    if dearest is None:
        return {}, ["copy cost: none is needed, no deviation tried pays"]
    cost, witness = dearest
    note = (
        f"copy cost: {cost.value:.6g} for each extra arm (error {cost.error:.1e}) makes honesty the best of "
        f"what was tried; copies {witness.copies} of {witness.agent} set it"
    )
    return {"copy cost": witness}, [note]


def _worth(witness: Witness, tolerance: float) -> str:
    gain, part = witness.gain.value, witness.relative_gain
    text = f"changes the payoff by {gain:+.6g} ({part:+.2%}) at horizon {witness.horizon}"
    if pays(witness, tolerance):
        return text + ": it pays"
    return text + (": it does not pay" if does_not_pay(witness, tolerance) else ": undecided")
