"""Whether a search was complete: for one agent at one horizon, the argument that covers what was not searched.

In this order: an elementary argument; a computation (every vector of fewer than k arms was found not to pay, and k or
more arms cannot by their ceiling); a theorem.
"""

from __future__ import annotations

from dataclasses import dataclass

from cloneproof.analysis.audit.copy_vectors import CopyVector, all_below, of_sum
from cloneproof.analysis.audit.judgement import does_not_pay
from cloneproof.analysis.audit.proof import theorems as arguments
from cloneproof.analysis.audit.proof.gain_ceiling import arms_that_suffice, ceiling
from cloneproof.analysis.audit.question import Question
from cloneproof.analysis.audit.search.exact_search import SearchResult
from cloneproof.engines.estimate import Estimate
from cloneproof.mechanisms.mechanism import Mechanism

MOST_MORE = 200  # vectors beyond the grid that a search takes in for the sake of completeness
MANY_HORIZONS = 20  # beyond so many horizons nothing is taken in


@dataclass(frozen=True)
class Coverage:
    """Why nothing was missed (None: something may have been, `why_not`), and the gain that was not ruled out then."""

    argument: str | None
    not_ruled_out: float
    why_not: str = ""


def more_vectors(question: Question, agent: str, honest: dict[int, Estimate]) -> list[CopyVector]:
    """The vectors that would make the search complete at every horizon, where they are few enough."""
    if len(question.horizons) > MANY_HORIZONS:
        return []
    most = 0
    for horizon, market in question.markets.items():
        own, running = question.agent(agent), _running(question, horizon)
        if arguments.elementary(market, running, own) is None:
            most = max(most, arms_that_suffice(market, running, own, honest[horizon], question.tolerance) or 0)
    return all_below(question.kinds(agent), most, MOST_MORE) or []


def coverage(question: Question, searched: SearchResult, horizon: int) -> Coverage:
    """The argument for one agent at one horizon."""
    market, running = question.markets[horizon], _running(question, horizon)
    agent, honest = question.agent(searched.agent), searched.honest[horizon]
    simple = arguments.elementary(market, running, agent)
    if simple is not None:
        return Coverage(simple, 0.0)
    arms = first_unsearched(question, searched)
    bound = ceiling(market, running, agent, arms)
    unclear = [one for one in searched.at(horizon) if not does_not_pay(one, question.tolerance)]
    finite = bound <= honest.low * (1 + question.tolerance)
    if finite and not unclear:
        return Coverage(
            f"every vector of fewer than {arms} arms was evaluated, and {arms} or more explore too long: with a "
            f"commitment that never errs they would earn at most {bound:.6g}, honesty earns {honest.value:.6g}",
            0.0,
        )
    proved = arguments.theorem(market, running, agent)
    if proved is not None:
        return Coverage(proved, 0.0)
    doubtful = max([0.0, *(one.gain.high for one in unclear)])
    if finite:
        return Coverage(None, doubtful, f"{len(unclear)} of the gains are too near the tolerance to tell")
    most = min(bound, market.share * market.horizon * market.family.high)
    return Coverage(None, max(doubtful, most - honest.low), f"no argument covers {arms} or more arms")


def first_unsearched(question: Question, searched: SearchResult) -> int:
    """The smallest number of arms of which a vector was not evaluated."""
    kinds = question.kinds(searched.agent)
    arms = kinds.count + 1
    while all(vector in searched.found for vector in of_sum(kinds, arms)):
        arms += 1
    return arms


def _running(question: Question, horizon: int) -> Mechanism:
    return question.mechanisms[horizon].at_horizon(len(question.market.agents), horizon)
