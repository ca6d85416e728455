"""Why no copies pay one agent at one horizon: by a proof of the mechanism's, or by a search that left nothing out.

A search is complete where no vector of fewer than k arms pays, and those of k or more cannot, because of what they earn
at most (`Proof.earns`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from cloneproof.audits.copy_vectors import CopyVector, OriginalKinds, all_below, of_sum
from cloneproof.audits.gain import Payoff
from cloneproof.audits.question import AuditCase, Question, most_earned
from cloneproof.audits.search_result import Argument, KnownArguments, SearchResult, does_not_pay
from cloneproof.market.market import MOST_ARMS
from cloneproof.runs.estimate import Estimate

MOST_MORE = 200  # A search takes in at most this many vectors beyond the grid to become complete.
ANYBODY = "no proof covers any opponents, of whom only some lists were tried"


def from_proof(case: AuditCase, tolerance: float, honest: Estimate | None) -> Argument | None:
    """Return what the mechanism's proof comes to in a case; None if it says nothing about copies, or not yet.

    If they may gain something, that is compared with a lower bound of the honest payoff: agents that are alike earn at
    least the average mean in their part of the rounds; for others there must be an honest payoff that a search
    evaluated. A bound that is not proven is within no tolerance.
    """
    proof = case.proof
    if not proof.settles:
        return None
    most, words = proof.most, proof.words
    if most is None or (not most.heuristic and most.high == 0):
        return Argument(words if most is None else f"{words}; {most.method}", proof=proof)
    alike = _earned_by_alike(case)
    if alike is None and honest is None:
        return None
    low = 0.0 if honest is None else max(0.0, honest.low)
    least, words = max(alike or 0.0, low), f"{words}; {gains_at_most(most)}"
    if most.heuristic:
        return Argument(words, False, most_earned(case.market, case.name) - low, proof)
    if most.high <= tolerance * least:
        words = f"{words}, of an honest payoff of at least {least:.4g}" if tolerance else words
        return Argument(words, True, most.high, proof)
    return Argument(f"{words}; set a tolerance above 0 to allow this", False, most.high, proof)


def gains_at_most(most: Estimate) -> str:
    """Return a sentence such as "copies and withholding gain at most 0.002 rewards in all"."""
    sure = f" ({most.method})" if most.heuristic else ""
    return f"copies and withholding gain at most {most.high:.3g} rewards in all{sure}"


def _earned_by_alike(case: AuditCase) -> float | None:
    """Return what an agent earns at least that is like all others; None if they differ."""
    earned = 0.0
    for market in case.market.by_segment.values():
        own = market.agents[case.place]
        if any(other.priors != own.priors for other in market.agents):
            return None
        earned += market.share * market.horizon * own.priors[0].mean / len(market.agents)
    return earned


def more_vectors(case: AuditCase, honest: Payoff, known: bool, tolerance: float) -> list[CopyVector]:
    """Return the vectors that would make the search complete, if they are few enough."""
    most = max(case.agent.count + 1, min(MOST_ARMS, case.horizon + 1))
    enough = None if known else case.proof.from_arms(honest.total.low * (1 + tolerance), most)
    return all_below(case.kinds, enough or 0, MOST_MORE) or []


def from_search(case: AuditCase, tolerance: float, result: SearchResult) -> Argument:
    """Return what a search comes to: every vector of few arms was evaluated, and more arms explore too long; or not."""
    assert result.honest is not None
    honest, arms = result.honest.total, first_unsearched(case.kinds, result)
    unclear = [witness for witness in result.witnesses if not does_not_pay(witness, tolerance)]
    earned = math.inf if case.proof.earns is None else case.proof.earns(arms)
    doubtful = max([0.0, *(witness.gain_at_most for witness in unclear)])
    if earned > honest.low * (1 + tolerance):
        room = min(earned, most_earned(case.market, case.name)) - max(0.0, honest.low)
        tried = "" if unclear else "none of those tried pays, but "
        return Argument(f"{tried}no argument covers {arms} or more arms", False, max(doubtful, room))
    if unclear:
        return Argument(f"{len(unclear)} of the gains are too near the tolerance to tell", False, doubtful)
    gained = "" if tolerance else " and gains no more than 1e-12 of the payoff"
    return Argument(
        f"every vector of fewer than {arms} arms was evaluated{gained}, and {arms} or more explore too long: with a "
        f"commitment that never errs they would earn at most {earned:.6g}, honesty earns {honest.value:.6g}"
    )


def first_unsearched(kinds: OriginalKinds, result: SearchResult) -> int:
    """Return the smallest number of arms of a vector that was not evaluated."""
    arms = kinds.count + 1
    while all(vector in result.evaluated for vector in of_sum(kinds, arms)):
        arms += 1
    return arms


def before_search(question: Question) -> KnownArguments:
    """Return the argument of each case of which something is known before a search."""
    # Against any opponents honesty may earn next to nothing, so that no ceiling is within a tolerance.
    tolerance = question.tolerance if question.opponents == "market" else 0.0
    asked = {case: from_proof(case, tolerance, None) for case in question.searched}
    return {case: argument for case, argument in asked.items() if argument is not None}


def _found(result: SearchResult, tolerance: float) -> Argument:
    """Return the first argument that settles a case; if none does, what bounds the gains of copies."""
    case, honest = result.case, result.honest
    assert honest is not None
    proven = from_proof(case, tolerance, honest.total)
    if proven is not None and proven.settles and (case.proof.same or case.proof.on_slots or case.market.segments):
        return proven
    searched = from_search(case, tolerance, result)
    return searched if searched.settles or proven is None else proven


def against_anybody(case: AuditCase, argument: Argument | None) -> bool:
    """Return whether an argument settles the case whatever the others are and register.

    Proofs are about any opponents whose means and strategies do not depend on which of the agent's originals is better.
    A search is where the others cannot reach the agent: its rounds are given.
    """
    return argument is not None and argument.settles and (argument.proof is not None or case.proof.apart)


def _against_any(case: AuditCase, known: Argument | None, found: Argument) -> Argument:
    """Return the argument that holds against any opponents; else one that leaves everything open."""
    if found.on_slots:
        return found
    if against_anybody(case, found):
        alone = found.proof is None and case.agents > 1
        return replace(found, words=f"the others do not change its rounds; {found.words}") if alone else found
    if known is not None and against_anybody(case, known):
        return known
    return Argument(ANYBODY, False, most_earned(case.market, case.name))


def after_search(question: Question, known: KnownArguments, results: Iterable[SearchResult]) -> KnownArguments:
    """Return the argument of each case with an honest payoff: the one its result rests on, or the first that holds.

    Against any opponents an argument about the market's is none.
    """
    covered = {
        result.case: result.argument or _found(result, question.tolerance)
        for result in results
        if result.honest is not None
    }
    if question.opponents == "any":
        covered |= {
            case: _against_any(case, known.get(case), covered[case]) for case in question.searched if case in covered
        }
    return covered
