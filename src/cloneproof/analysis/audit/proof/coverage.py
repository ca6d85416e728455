"""Whether a search was complete: for one agent at one horizon, the argument that covers what was not searched.

In this order: an elementary argument; sampled worlds that stand for all vectors (`arms_in_play`); a computation (every
vector of fewer than k arms was found not to pay, and k or more arms cannot by their ceiling); a theorem; for a rule on
slots, the concavity check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from cloneproof.analysis.audit.cases import AuditCase
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds, all_below, of_sum
from cloneproof.analysis.audit.judgement import does_not_pay
from cloneproof.analysis.audit.proof.arms_in_play import arms_in_play
from cloneproof.analysis.audit.proof.gain_ceiling import arms_that_suffice, ceiling
from cloneproof.analysis.audit.proof.scan import scan_theorem
from cloneproof.analysis.audit.proof.slot_concavity import slot_concavity
from cloneproof.analysis.audit.proof.theorems import theorem
from cloneproof.analysis.audit.search.results import SampledResult, SearchResult

MOST_MORE = 200  # vectors beyond the grid that a search takes in for the sake of completeness
MANY_HORIZONS = 20  # beyond so many horizons nothing is taken in


@dataclass(frozen=True)
class Coverage:
    """Why nothing was missed (None: something may have been, `why_not`), and the gain that was not ruled out then.

    `sampled` says that the argument rests on samples, so that it holds at 99 % and not surely.
    """

    argument: str | None
    not_ruled_out: float
    why_not: str = ""
    sampled: bool = False


def more_vectors(result: SearchResult, tolerance: float) -> list[CopyVector]:
    """The vectors that would make the search complete at every horizon, where they are few enough."""
    if len(result.cases) > MANY_HORIZONS:
        return []
    open_cases = [case for case in result.cases if case.horizon not in result.arguments]
    sufficient = [arms_that_suffice(case, result.honest[case.horizon], tolerance) or 0 for case in open_cases]
    return all_below(result.cases[0].kinds, max(sufficient, default=0), MOST_MORE) or []


def coverage(case: AuditCase, result: SearchResult, tolerance: float) -> Coverage:
    """The argument for one case of a search."""
    if case.horizon in result.arguments:
        return Coverage(result.arguments[case.horizon], 0.0)
    if isinstance(result, SampledResult) and result.covers:
        return _by_worlds(case, result, tolerance)
    honest = result.honest[case.horizon]
    arms = first_unsearched(case.kinds, result)
    bound = ceiling(case, arms)
    unclear = [witness for witness in result.at(case.horizon) if not does_not_pay(witness, tolerance)]
    finite = bound <= honest.low * (1 + tolerance)
    if finite and not unclear:
        return Coverage(
            f"every vector of fewer than {arms} arms was evaluated, and {arms} or more explore too long: with a "
            f"commitment that never errs they would earn at most {bound:.6g}, honesty earns {honest.value:.6g}",
            0.0,
        )
    proof = scan_theorem(case) or theorem(case) or slot_concavity(case, honest, tolerance)
    if proof is not None:
        return Coverage(proof, 0.0)
    doubtful = max([0.0, *(witness.gain_at_most for witness in unclear)])
    if finite:
        return Coverage(None, doubtful, f"{len(unclear)} of the gains are too near the tolerance to tell")
    most = min(bound, _earned_at_most(case))
    tried = "" if unclear else "none of those tried pays, but "
    return Coverage(None, max(doubtful, most - max(0.0, honest.low)), f"{tried}no argument covers {arms} or more arms")


def _by_worlds(case: AuditCase, result: SampledResult, tolerance: float) -> Coverage:
    """The corollary of `arms_in_play`, from bounds that hold together."""
    most = max((math.inf if bound is None else bound for bound in result.at_most.values()), default=math.inf)
    kinds = {witness.gain.kind for witness in result.witnesses}
    sure = "at 99 % in the limit of many runs" if "asymptotic" in kinds else "at 99 %"
    arms = arms_in_play(case)
    if most <= tolerance:
        return Coverage(
            f"at most {arms} arms of the agent come into play, a random {arms} of those registered, so every vector of "
            f"more is an average over the {len(result.at_most)} worlds with {arms} arms or fewer that were sampled "
            f"(docs/audit.md; the proof is ours), and none of these gains more than {100 * tolerance:.3g} % of the "
            f"honest payoff, {sure}",
            0.0,
            sampled=True,
        )
    honest = result.honest[case.horizon]
    room = min(most * max(0.0, honest.high), _earned_at_most(case) - max(0.0, honest.low))
    why = f"of the {len(result.at_most)} worlds that stand for every vector, some may gain more than the tolerance"
    return Coverage(None, room, why)


def _earned_at_most(case: AuditCase) -> float:
    """What the agent earns if every round serves its best possible mean."""
    best = 1.0 if case.agent.support is None else max(case.agent.support)
    return case.market.share * case.market.horizon * best


def first_unsearched(kinds: OriginalKinds, result: SearchResult) -> int:
    """The smallest number of arms of which a vector was not evaluated."""
    arms = kinds.count + 1
    while all(vector in result.evaluated for vector in of_sum(kinds, arms)):
        arms += 1
    return arms
