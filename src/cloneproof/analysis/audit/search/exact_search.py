"""Best response by exact engines: honest payoffs at all horizons, then every vector of copies.

The search is in floats; `proven` repeats a deviation in ball arithmetic, where the closed form has one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cloneproof.analysis.audit.copy_vectors import CopyVector
from cloneproof.analysis.audit.judgement import is_open, simplest_of, witness
from cloneproof.analysis.audit.proof.theorems import elementary
from cloneproof.analysis.audit.question import Deadline, Question
from cloneproof.analysis.audit.verdict import SampledDeviation, Witness
from cloneproof.analysis.evaluate import EngineName, evaluate, evaluate_horizons
from cloneproof.engines.estimate import Estimate, Evaluation
from cloneproof.errors import EngineError
from cloneproof.market.copies import full_copies
from cloneproof.market.rewards import deterministic

LONG = {"closed-form": 0.5, "tree": 2.0, "auto": 0.5}  # seconds for a rung after which a ladder is not climbed further
PART = 0.05  # or that part of a budget, if it is more
MOST_REFINED = 40  # of those too near the tolerance
MOST_DIGITS = 10.0  # of a number of states that the tree need not be asked about
HorizonPayoffs = dict[int, Estimate]


@dataclass
class SearchResult:
    """One agent's deviations: what each was found to be worth, and what was left out and why."""

    agent: str
    engine: str
    honest: HorizonPayoffs
    found: dict[CopyVector, list[Witness]] = field(default_factory=dict)
    left_out: dict[CopyVector, str] = field(default_factory=dict)
    samples: dict[CopyVector, SampledDeviation] = field(default_factory=dict)

    @property
    def witnesses(self) -> list[Witness]:
        """All of them."""
        return [one for each in self.found.values() for one in each]

    def at(self, horizon: int) -> list[Witness]:
        """Those of one horizon."""
        return [one for one in self.witnesses if one.horizon == horizon]


def honest_evaluations(question: Question) -> tuple[dict[int, Evaluation], EngineName] | None:
    """Everybody honest at every horizon, and the engine that could do it; None where no exact engine can."""
    engine: EngineName = "closed-form" if _too_many_states(question) else "auto"
    try:
        found = evaluate_horizons(
            question.market, lambda own: question.mechanisms[own.horizon], question.horizons, engine=engine
        )
    except EngineError:
        return None
    engines = {evaluation.engine for evaluation in found.values()}
    if engines == {"closed-form"}:
        return found, "closed-form"
    return found, "tree" if engines == {"tree"} else "auto"


def _too_many_states(question: Question) -> bool:
    """Whether a look at the size is enough to know that the tree would refuse, which can take it seconds.

    Random rewards leave about T^(2a - 1) / (2a - 1)! states of pulls and successes of a arms, unless a rule commits.
    """
    market = question.market
    sure = market.family.quantile is deterministic.quantile
    sure = sure or all(agent.support is not None and set(agent.support) <= {0.0, 1.0} for agent in market.agents)
    if sure or any(rule.commits for chosen in question.mechanisms.values() for rule in chosen.rules):
        return False
    power = 2 * market.originals - 1
    return power * math.log10(max(question.horizons)) - math.lgamma(power + 1) / math.log(10) > MOST_DIGITS


def search(
    question: Question,
    agent: str,
    honest: HorizonPayoffs,
    engine: EngineName,
    vectors: Iterable[CopyVector],
    ladders: Iterable[list[CopyVector]],
    clock: Deadline,
) -> SearchResult:
    """Evaluate the vectors, then climb the ladders until an engine refuses or a rung takes too long."""
    result = SearchResult(agent, engine, honest)
    listed, rungs = list(vectors), [list(ladder) for ladder in ladders]
    total, done = len(listed) + sum(map(len, rungs)), 0
    long = max(LONG[engine], PART * (clock.budget or 0.0))
    for vector in listed:
        _try(question, result, vector, clock)
        done += 1
        clock.tell(done, total, f"{agent}: copies {vector}")
    for ladder in rungs:
        for number, vector in enumerate(ladder):
            start = time.perf_counter()
            fine = _try(question, result, vector, clock)
            done += 1
            clock.tell(done, total, f"{agent}: copies {vector}")
            if fine and time.perf_counter() - start <= long:
                continue
            why = result.left_out.get(vector, f"copies {vector} took more than {long:g} s; a larger budget goes on")
            for beyond in ladder[number + 1 :]:
                if beyond not in result.found:
                    result.left_out.setdefault(beyond, why)
            break
    return result


def relabelled(result: SearchResult, agent: str) -> SearchResult:
    """The same findings for an agent that has the same priors, under a mechanism that cannot tell them apart."""

    def own(one: Witness) -> Witness:
        return replace(one, agent=agent, all_copies=full_copies(one.market.agents, {agent: one.copies}))

    found = {vector: [own(one) for one in each] for vector, each in result.found.items()}
    return replace(result, agent=agent, found=found, samples={})


def payoffs(question: Question, agent: str, engine: EngineName, copies: CopyVector) -> HorizonPayoffs:
    """The agent's payoff with these copies at every horizon."""
    found = evaluate_horizons(
        question.market,
        lambda own: question.mechanisms[own.horizon],
        question.horizons,
        {agent: copies},
        engine,
    )
    return {horizon: evaluation.payoff[agent] for horizon, evaluation in found.items()}


def _try(question: Question, result: SearchResult, vector: CopyVector, clock: Deadline) -> bool:
    """Evaluate one vector; whether it came to something."""
    if vector in result.found:
        return True
    if clock.spent:
        result.left_out[vector] = f"the budget of {clock.budget:g} s was spent"
        return False
    engine: EngineName = result.engine  # type: ignore[assignment]
    for smaller, why in result.left_out.items() if engine == "tree" else ():
        if all(few <= many for few, many in zip(smaller, vector, strict=True)):
            result.left_out[vector] = why  # the tree only grows with the arms
            return False
    try:
        copied = payoffs(question, result.agent, engine, vector)
    except EngineError as refusal:
        result.left_out[vector] = str(refusal)
        return False
    result.found[vector] = [
        witness(question, result.agent, horizon, vector, result.honest[horizon], own) for horizon, own in copied.items()
    ]
    return True


def refine(question: Question, results: list[SearchResult], clock: Deadline) -> None:
    """Repeat in balls the best of each agent, and whatever lies too near the tolerance to tell, fewest arms first.

    The best of all is repeated even where the budget is spent: without it a search would have been for nothing.
    """
    every = [(r, one) for r in results for one in r.witnesses if not _needless(question, one)]
    best = [(result, simplest_of(result.witnesses)) for result in results if result.found]
    best.sort(key=lambda pair: -pair[1].relative_gain)
    unclear = [(result, one) for result, one in every if is_open(one, question.tolerance)]
    wanted = best + sorted(unclear, key=lambda pair: sum(pair[1].copies))[:MOST_REFINED]
    known: dict[int, dict[str, Estimate]] = {}
    done: set[tuple[str, CopyVector, int]] = set()
    for number, (result, one) in enumerate(wanted):
        key = (one.agent, one.copies, one.horizon)
        late = clock.spent and number > 0
        better = None if late or key in done else proven(question, one, known)
        done.add(key)
        if better is not None:
            result.found[one.copies] = [better if old is one else old for old in result.found[one.copies]]


def _needless(question: Question, one: Witness) -> bool:
    """Whether an elementary argument says already that it cannot pay."""
    running = question.mechanisms[one.horizon].at_horizon(len(one.market.agents), one.horizon)
    return elementary(one.market, running, question.agent(one.agent)) is not None


def proven(question: Question, old: Witness, known: dict[int, dict[str, Estimate]] | None = None) -> Witness | None:
    """The same deviation with enclosures in ball arithmetic; None where the closed form has none.

    `known` keeps everybody's honest payoffs by horizon, for the next deviation in the same markets.
    """
    known = {} if known is None else known
    mechanism = question.mechanisms[old.horizon]
    try:
        if old.horizon not in known:
            known[old.horizon] = evaluate(old.market, mechanism, arithmetic="ball").payoff
        copied = evaluate(old.market, mechanism, old.all_copies, arithmetic="ball").payoff[old.agent]
    except EngineError:
        return None
    before = known[old.horizon][old.agent]
    return replace(old, honest=before, copied=copied, gain=copied - before)
