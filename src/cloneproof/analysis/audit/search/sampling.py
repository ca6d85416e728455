"""What is sampled: everything where no exact engine applies, or the best find of a quadrature, to make sure of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from cloneproof.analysis.audit.copy_vectors import CopyVector, grid, ladders
from cloneproof.analysis.audit.judgement import GUESSED, best_of, witness
from cloneproof.analysis.audit.proof import theorems as arguments
from cloneproof.analysis.audit.question import Deadline, Question
from cloneproof.analysis.audit.search.exact_search import SearchResult
from cloneproof.analysis.audit.search.race import RaceEntry, race
from cloneproof.engines.estimate import Estimate
from cloneproof.errors import EngineError

MOST_SAMPLED_HORIZONS = 50
MOST_STEPPED = 10**8  # rounds of a run; the table of their logarithms takes 0.8 GB
FASTEST = 10**8  # rounds a second, more than any kernel plays


def sampled_results(question: Question, runs: int | None, seed: int, clock: Deadline) -> list[SearchResult]:
    """One race of all agents and horizons, but for those whom an elementary argument covers."""
    if len(question.horizons) > MOST_SAMPLED_HORIZONS:
        raise EngineError(
            f"expected at most {MOST_SAMPLED_HORIZONS} horizons where no exact engine applies, got "
            f"{len(question.horizons)}; ask for fewer, or for shorter ones"
        )
    results: list[SearchResult] = []
    candidates: list[RaceEntry] = []
    for agent in dict.fromkeys(question.representatives.values()):
        for horizon, market in question.markets.items():
            running = question.mechanisms[horizon].at_horizon(len(market.agents), horizon)
            argument = arguments.elementary(market, running, question.agent(agent))
            if argument is not None and running.scoring.max_arms is None:
                results.append(_argued(question, agent, horizon, argument))
            else:
                candidates += [RaceEntry(agent, horizon, own) for own in _vectors(question, agent, horizon)]
    _check_size(question, [one.horizon for one in candidates], clock)
    budget = None if clock.left is None else max(clock.left, 1e-3)
    return results + race(question, candidates, runs, seed, clock, budget)


def _check_size(question: Question, horizons: Iterable[int], clock: Deadline) -> None:
    """Refuse what cannot come to anything: runs too long to be stepped, or of which a budget affords not one pair."""
    for horizon in set(horizons):
        if not any(rule.commits for rule in question.mechanisms[horizon].rules):  # a commitment costs no rounds
            if horizon > MOST_STEPPED:
                raise EngineError(
                    f"expected runs of at most {MOST_STEPPED} rounds where each round is stepped, got {horizon}; "
                    "ask for a shorter horizon"
                )
            seconds = 2 * horizon / FASTEST
            if clock.budget is not None and seconds > clock.budget:
                raise EngineError(
                    f"one pair of runs of {horizon} rounds takes at least {seconds:.1g} s, more than the budget of "
                    f"{clock.budget:g} s; give more time, or ask for a shorter horizon"
                )


def _argued(question: Question, agent: str, horizon: int, argument: str) -> SearchResult:
    """A first copy, whose gain is nothing by an argument; what the payoff is, nobody had to find out."""
    market, vector = question.markets[horizon], _vectors(question, agent, horizon)[0]
    half = market.share * market.horizon / 2  # means lie in [0, 1]
    payoff = Estimate(half, half, "proven", "between none and all of the rounds at a mean of 1")
    same = witness(question, agent, horizon, vector, payoff, payoff)
    same = replace(same, gain=Estimate(0.0, 0.0, "proven", f"an argument: {argument}"))
    return SearchResult(agent, "argument", {horizon: payoff}, {vector: [same]})


def confirm_guesses(
    question: Question, results: list[SearchResult], runs: int | None, seed: int, clock: Deadline
) -> None:
    """Where the errors are guesses, sample the most promising deviation of each agent."""
    guessed = [r for r in results if r.found and any(GUESSED in one.gain.method for one in r.witnesses)]
    for result in guessed:
        best = best_of(result.witnesses)
        if best.gain.value > 0 and not clock.spent:
            one = RaceEntry(result.agent, best.horizon, best.copies)
            (found,) = race(question, [one], runs, seed, clock, clock.left, len(guessed))
            result.samples |= found.samples
            for vector, own in found.found.items():
                result.found[vector] = [own[0] if w.horizon == best.horizon else w for w in result.found[vector]]


def _vectors(question: Question, agent: str, horizon: int) -> list[CopyVector]:
    """The grid and the ladders, fewest arms first: the dear ones are the first to fall to a budget."""
    kinds = question.kinds(agent)
    rungs = [vector for ladder in ladders(kinds, horizon) for vector in ladder]
    return sorted({*grid(kinds, question.max_copies)[0], *rungs}, key=lambda vector: (sum(vector), vector))
