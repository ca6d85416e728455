"""The audit: whether an agent can profit from registering copies, and how sure that is.

1. Copies: all vectors up to a cap, ladders 2, 4, 8, .., and whatever more makes the search complete (`vectors`,
   `coverage`).
2. Best response: exact engines where they apply (`exact`), else paired samples (`sampled`).
3. Verdict: `exploitable` with a witness whose gain is surely above the tolerance; `clone-proof` where an argument
   covers every number of copies (`arguments`, `ceiling`); else `undecided`.
4. Deviations apart: withholding, two accounts, a cost per copy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, get_args

from cloneproof._checks import whole
from cloneproof.analysis.audit.copy_vectors import grid, ladders
from cloneproof.analysis.audit.dominance.check import dominance
from cloneproof.analysis.audit.dominance.epochs import dominance_in_epochs
from cloneproof.analysis.audit.judgement import NEARLY, best_of, pays, simplest_of
from cloneproof.analysis.audit.proof.coverage import coverage, more_vectors
from cloneproof.analysis.audit.question import (
    Deadline,
    MechanismOrFactory,
    ProgressCallback,
    Question,
    checked_budget,
    checked_question,
)
from cloneproof.analysis.audit.scope import Cells, scope_of
from cloneproof.analysis.audit.search.exact_search import SearchResult, honest_evaluations, refine, relabelled, search
from cloneproof.analysis.audit.search.other_deviations import deviations_apart
from cloneproof.analysis.audit.search.sampling import confirm_guesses, sampled_results
from cloneproof.analysis.audit.verdict import Audit, Verdict, Witness
from cloneproof.analysis.evaluate import EngineName
from cloneproof.engines.estimate import Evaluation
from cloneproof.errors import EngineError, brief, did_you_mean
from cloneproof.market.market import Market
from cloneproof.mechanisms.mechanism import Mechanism
from cloneproof.mechanisms.online.opening import checked_seed

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
    >>> found = audit(market, mechanism("ucb1"))
    >>> found.verdict, found.worst.copies, round(found.worst.gain.value, 9)
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
        return _against_any(question, clock)
    honest = honest_evaluations(question)
    if honest is None:
        results = sampled_results(question, runs, seed, clock)
    else:
        names = list(dict.fromkeys(question.representatives.values()))
        results = [_exact(question, name, honest, clock.share(len(names) - k)) for k, name in enumerate(names)]
        if draft is not None:
            draft(_concluded(question, _everybodys(question, results), {}, [DRAFT], clock))
        refine(question, results, clock)
        confirm_guesses(question, results, runs, seed, clock)
    apart, notes = deviations_apart(question, results, withhold, split, bool(copy_cost), clock)
    return _concluded(question, _everybodys(question, results), apart, notes, clock)


def _everybodys(question: Question, results: list[SearchResult]) -> list[SearchResult]:
    """The findings for all agents, out of those for one of each kind."""
    return [
        one if one.agent == name else relabelled(one, name)
        for name, like in question.representatives.items()
        for one in results
        if one.agent == like
    ]


def _exact(
    question: Question, agent: str, honest: tuple[dict[int, Evaluation], EngineName], clock: Deadline
) -> SearchResult:
    payoffs = {horizon: evaluation.payoff[agent] for horizon, evaluation in honest[0].items()}
    kinds = question.kinds(agent)
    vectors, _ = grid(kinds, question.max_copies)
    more = more_vectors(question, agent, payoffs)
    rungs = ladders(kinds, max(question.horizons))
    return search(question, agent, payoffs, honest[1], dict.fromkeys([*vectors, *more]), rungs, clock)


def _concluded(
    question: Question, results: list[SearchResult], apart: dict[str, Witness], notes: list[str], clock: Deadline
) -> Audit:
    tried = [one for result in results for one in result.witnesses]
    if not tried:
        reasons = dict.fromkeys(why for result in results for why in result.left_out.values())
        raise EngineError("no deviation could be evaluated: " + "; ".join(list(reasons)[:3]))
    cells = {(r.agent, h): coverage(question, r, h) for r in results for h in question.horizons if h in r.honest}
    paying = [one for one in tried if pays(one, question.tolerance)]
    verdict: Verdict
    if paying:
        verdict, worst = "exploitable", _shown(paying)
        notes += _contradictions(paying, cells)
    elif len(cells) == len(question.agents) * len(question.horizons) and all(c.argument for c in cells.values()):
        verdict, worst = "clone-proof", best_of(tried)
    else:
        verdict, worst = "undecided", max(tried, key=lambda one: one.gain.high / max(one.honest.value, 1e-300))
    return Audit(
        mechanism=question.mechanisms[worst.horizon],
        market=question.market,
        verdict=verdict,
        worst=worst,
        scope=scope_of(question, verdict, worst, results, cells),
        tolerance=question.tolerance,
        tried=tuple(tried),
        by_horizon=_by_horizon(tried),
        apart=apart,
        notes=tuple(notes),
        samples=tuple(one for result in results for one in result.samples.values()),
        seconds=clock.seconds,
    )


def _shown(paying: list[Witness]) -> Witness:
    """The simplest of the best; one that is more than floats, where there is one as good."""
    simplest = simplest_of(paying)
    firm = [one for one in paying if one.gain.kind != "estimated"]
    good = [one for one in firm if one.relative_gain >= simplest.relative_gain * (1 - NEARLY)]
    return simplest_of(good) if good else simplest


def _by_horizon(tried: list[Witness]) -> dict[int, Witness]:
    together: dict[int, list[Witness]] = {}
    for one in tried:
        together.setdefault(one.horizon, []).append(one)
    return {horizon: best_of(together[horizon]) for horizon in sorted(together)}


def _contradictions(paying: list[Witness], cells: Cells) -> list[str]:
    """An argument that says clone-proof where a deviation pays is a fault of ours, and is shown, not hidden."""
    wrong = [one for one in paying if cells[one.agent, one.horizon].argument is not None]
    return [
        f"contradiction, please report: copies {one.copies} of {one.agent} pay at horizon {one.horizon}, against this "
        f"argument: {cells[one.agent, one.horizon].argument}"
        for one in wrong[:3]
    ]


def _against_any(question: Question, clock: Deadline) -> Audit:
    """Dominance: every strategy and every realisation of the others, one agent at a time."""
    mechanism: Mechanism = question.mechanisms[question.horizons[0]]
    names = list(dict.fromkeys(question.representatives.values()))
    sweep = dominance_in_epochs if mechanism.clearing.planned_epochs else dominance
    found = [sweep(question.market, mechanism, name, question.max_copies, question.tolerance) for name in names]
    if len(question.agents) == 1:
        return found[0]
    return _together(question, dict(zip(names, found, strict=True)), clock)


def _together(question: Question, found: dict[str, Audit], clock: Deadline) -> Audit:
    """One audit out of those of several agents; agents of equal priors stand as the first of them does."""
    order: list[Verdict] = ["clone-proof", "undecided", "exploitable"]
    verdict = max((each.verdict for each in found.values()), key=order.index)
    deciding = [each for each in found.values() if each.verdict == verdict]
    worst = best_of(each.worst for each in deciding)
    twins = [f"{name} stands as {like} does" for name, like in question.representatives.items() if name != like]
    scope = " ".join([*(f"{name}: {each.scope}" for name, each in found.items()), *twins])
    return replace(
        next(each for each in deciding if each.worst is worst),
        verdict=verdict,
        scope=scope,
        tried=tuple(one for each in found.values() for one in each.tried),
        notes=tuple(dict.fromkeys(text for each in found.values() for text in each.notes)),
        seconds=clock.seconds,
    )
