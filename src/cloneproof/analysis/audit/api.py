"""The audit: whether an agent can profit from registering copies, and how sure that is.

1. The question becomes cases, one for each agent and horizon (`question`, `cases`).
2. Best response in each: all vectors of copies up to a cap, ladders 2, 4, 8, .., and whatever more makes the search
   complete; by exact engines where they apply, else by paired samples (`search`).
3. Verdict (`conclusion`): `exploitable` with a witness whose gain is surely above the tolerance; `clone-proof` where
   an argument covers every number of copies (`proof`); else `undecided`.
4. Deviations apart: withholding, two accounts, a cost per copy (`search.other_deviations`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

from cloneproof._checks import whole
from cloneproof.analysis.audit.cases import MechanismOrFactory
from cloneproof.analysis.audit.conclusion import conclude
from cloneproof.analysis.audit.deadline import Deadline, ProgressCallback
from cloneproof.analysis.audit.dominance.all_agents import dominance_audit
from cloneproof.analysis.audit.question import checked_budget, checked_question
from cloneproof.analysis.audit.search.exact_search import exact_result, honest_evaluations
from cloneproof.analysis.audit.search.other_deviations import other_deviations
from cloneproof.analysis.audit.search.refinement import refine
from cloneproof.analysis.audit.search.results import SearchResult
from cloneproof.analysis.audit.search.sampling import confirm_heuristics, sampled_results
from cloneproof.analysis.audit.verdict import Audit
from cloneproof.errors import EngineError, brief, did_you_mean
from cloneproof.market.market import Market
from cloneproof.mechanisms.online.session import checked_seed

OpponentsName = Literal["market", "any"]
DRAFT = "the search is done; there was no time to enclose the best deviation in ball arithmetic"


def audit(
    market: Market,
    mechanism: MechanismOrFactory,
    agent: str | None = None,
    max_copies: int = 4,
    opponents: OpponentsName = "market",
    withhold: bool = False,
    tolerance: float = 0.0,
    horizons: str | Sequence[int] | None = None,
    split: bool = False,
    copy_cost: bool | None = None,
    budget_seconds: float | None = None,
    runs: int | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    draft: Callable[[Audit], None] | None = None,
) -> Audit:
    """Try to game the mechanism; the verdict, the best deviation found, and the scope of both.

    agent           whose deviations; None: everybody's, one at a time
    max_copies      every vector with up to so many of each original is tried, besides the ladders
    opponents       "market": the others are honest and have their priors; "any": dominance over all opponents
    tolerance       the gain, relative to the honest payoff, that counts as none
    horizons        "1:500" or a list; a mechanism given as a function of the market is derived anew for each
    withhold, split, copy_cost    deviations that are reported apart, and do not change the verdict
    budget_seconds, runs, seed    limits of the search, a share for each agent; pairs of runs for a candidate and seed,
                    where it samples
    progress        called with (done, total, what)
    draft           called with the audit as it stands after an exact search, before the best is enclosed in balls:
                    for those who cannot wait for that

    >>> from cloneproof import Agent, Discrete, Market, mechanism
    >>> market = Market([Agent("ana", 2, Discrete([0, 1], [0.5, 0.5]))], horizon=7)
    >>> a = audit(market, mechanism("ucb1"))
    >>> a.verdict, a.worst.copies, round(a.worst.gain.value, 9)
    ('exploitable', (2, 1), 0.25)
    >>> audit(market, mechanism("etc", arm_rounds=1)).verdict
    'clone-proof'
    """
    if opponents not in get_args(OpponentsName):
        known = get_args(OpponentsName)
        raise EngineError(
            f"unknown opponents {brief(opponents)}; {did_you_mean(str(opponents), known)}known are {', '.join(known)}"
        )
    checked_seed(seed)
    if runs is not None and (whole(runs) is None or runs < 1):
        raise EngineError(f"expected runs to be a whole number from 1, got {brief(runs)}; give e.g. 1000")
    question = checked_question(market, mechanism, agent, max_copies, tolerance, horizons)
    clock = Deadline(checked_budget(budget_seconds), progress)
    if opponents == "any":
        if horizons is not None or withhold or split or copy_cost:
            raise EngineError(
                "opponents='any' expects neither horizons nor withhold, split or copy_cost; ask for those against "
                "the market"
            )
        return dominance_audit(question, clock)
    cap, slack, agents = question.max_copies, question.tolerance, question.searched
    honest = honest_evaluations(agents[0])
    results: Sequence[SearchResult]
    if honest is None:
        results = sampled_results(agents, cap, slack, runs, seed, clock)
    else:
        shares = range(len(agents), 0, -1)  # of what is left of the budget, for each agent in turn
        exact = [
            exact_result(cases, *honest, cap, slack, clock.share(parts))
            for cases, parts in zip(agents, shares, strict=True)
        ]
        if draft is not None:
            draft(conclude(question, exact, {}, [DRAFT], clock.seconds))
        refine(exact, slack, clock)
        confirm_heuristics(exact, slack, runs, seed, clock)
        results = exact
    apart, notes = other_deviations(results, cap, slack, withhold, split, bool(copy_cost), clock)
    return conclude(question, results, apart, notes, clock.seconds)
