"""Further deviations, reported apart: they are outside the paper's claim, and do not change the verdict."""

from __future__ import annotations

from cloneproof.analysis.audit.copy_vectors import withheld
from cloneproof.analysis.audit.judgement import best_of, does_not_pay, pays
from cloneproof.analysis.audit.question import Deadline, Question
from cloneproof.analysis.audit.search.copy_cost import smallest_copy_cost
from cloneproof.analysis.audit.search.exact_search import SearchResult, proven, search
from cloneproof.analysis.audit.search.splitting import best_split
from cloneproof.analysis.audit.verdict import Witness


def deviations_apart(
    question: Question, results: list[SearchResult], withhold: bool, split: bool, copy_cost: bool, clock: Deadline
) -> tuple[dict[str, Witness], list[str]]:
    """The best of each kind asked for, and a sentence about each."""
    apart: dict[str, Witness] = {}
    notes: list[str] = []
    exact = [result for result in results if result.engine in ("closed-form", "tree", "auto")]
    if (withhold or split) and len(exact) < len(results):
        notes.append("withholding and splitting are tried by exact engines only, and none applies here")
    if withhold:
        best = _withholding(question, exact, clock)
        if best is None:
            notes.append("withholding: nothing to try, the agents have one original each")
        else:
            apart["withholding"] = best
            notes.append(f"withholding: registering {best.copies} as {best.agent} {_worth(question, best)}")
    if split:
        found = []
        for result in exact:
            best, missing = best_split(question, result.agent, result.honest, result.engine, clock)  # type: ignore[arg-type]
            notes += missing[:3]
            found += [] if best is None else [best]
        if found:
            apart["splitting"] = best = best_of(found)
            accounts = [each.count for each in best.market.agents if each.name.startswith(best.agent)]
            notes.append(
                f"splitting: {best.agent} under two names, with {' and '.join(map(str, accounts[:2]))} arms and the "
                f"originals registered {best.copies} times in all, {_worth(question, best)}"
            )
    if copy_cost:
        dearest = smallest_copy_cost(one for result in results for one in result.witnesses)
        if dearest is None:
            notes.append("copy cost: none is needed, no deviation tried pays")
        else:
            cost, apart["copy cost"] = dearest
            notes.append(
                f"copy cost: {cost.value:.6g} for each extra arm (error {cost.error:.1e}) makes honesty the best of "
                f"what was tried; copies {apart['copy cost'].copies} of {apart['copy cost'].agent} set it"
            )
    return apart, notes


def _withholding(question: Question, exact: list[SearchResult], clock: Deadline) -> Witness | None:
    tried: list[Witness] = []
    for result in exact:
        vectors = withheld(question.kinds(result.agent), question.max_copies)
        found = search(question, result.agent, result.honest, result.engine, vectors, [], clock)  # type: ignore[arg-type]
        tried += found.witnesses
    if not tried:
        return None
    best = best_of(tried)
    return proven(question, best) or best


def _worth(question: Question, found: Witness) -> str:
    text = f"changes the payoff by {found.gain.value:+.6g} ({found.relative_gain:+.2%}) at horizon {found.horizon}"
    if pays(found, question.tolerance):
        return text + ": it pays"
    return text + (": it does not pay" if does_not_pay(found, question.tolerance) else ": undecided")
