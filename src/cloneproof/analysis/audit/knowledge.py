"""The ceiling of knowledge: whatever a list gains, naming the best item alone gains as much.

Under two levels whose upper one is a steady index of an agent's own rewards (`Mechanism.bounded_by_knowledge`), no list
of an agent's items earns more than its best original listed alone, whatever the means, the others and the horizon
(docs/textbook/knowledge.md). So no copies and no withholding gain more than

    E[pay of the best original alone] - E[pay of honesty].

Under other two-level mechanisms, and on pages, the same number is measured and not proven, and the audit compares it
with what it tried. A list serves all segments: the ceiling is the sum of theirs, with the best original of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.audit.question import AuditCase, Question
from cloneproof.analysis.audit.result import Audit, KnowledgeGain
from cloneproof.analysis.audit.search_result import best_of
from cloneproof.analysis.deviations import Names, honesty
from cloneproof.analysis.gain import exact_gain, gain_columns, sample_worlds
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, weighted_sum
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.monte_carlo.statistics import gain_bounds, served_bounds
from cloneproof.errors import EngineError

BEFORE = 4 / 3  # a search has three quarters of the time, and the ceiling the rest


def with_knowledge(audit: Audit, question: Question, search: Search, clock: Deadline) -> Audit:
    """Return the audit with the largest ceiling of its agents at the last horizon, if it is asked for and in time."""
    cases, found = [own[-1] for own in question.searched], list[KnowledgeGain]()
    if not asks_for_ceiling(question) or audit.verdict == "clone-proof" or clock.spent:
        return audit
    for number, case in enumerate(cases):
        try:
            found.append(knowledge_gain(case, search, clock.share(len(cases) - number)))
        except EngineError:
            return audit  # a ceiling of some agents is none of the mechanism
    most = max(found, key=lambda each: each.relative_gain)
    tried = [each for each in audit.tried if (each.agent, each.horizon) == (most.agent, most.horizon)]
    if tried and (best := best_of(tried)).gain.low > most.gain.high:
        most = replace(most, beaten_by=best.copies)
    ceiling = audit.gain_at_most
    if ceiling is None and all(each.proven for each in found):
        ceiling = max((each.gain for each in found), key=lambda gain: gain.high)
    return replace(audit, knowledge=most, gain_at_most=ceiling)


def asks_for_ceiling(question: Question) -> bool:
    """Return whether agents are compared in every round, by all of their own rewards."""
    if question.opponents == "any" or question.box is not None:
        return False
    running = [case.running for own in question.searched for case in own[-1].by_segment.values()]
    compares = all(part.goes_on_comparing and not part.uniform_agents and not part.draws for part in running)
    return compares and all(part.scoring.counts_all and part.unchanging for part in running)


def is_proven(case: AuditCase) -> bool:
    """Return whether the theorem's conditions hold: rewards of at least 0, in time, in one place."""
    market = case.market
    plain = market.positions is None and market.delays == "none" and market.family.low >= 0
    return plain and all(in_segment.running.bounded_by_knowledge for in_segment in case.by_segment.values())


def knowledge_gain(case: AuditCase, search: Search, clock: Deadline) -> KnowledgeGain:
    """Return what an agent gains that lists its best original alone, by an exact engine or else by pairs of runs."""
    try:
        with clock.share(2).for_engines():
            numbers = exact_gain(*case.under, Names(case.name)).numbers
    except EngineError:
        parts = [_sampled(in_segment, search, clock) for in_segment in case.by_segment.values()]
        honest, paid, gain = (weighted_sum([(1.0, part[k]) for part in parts]) for k in range(3))
        numbers = honest, paid, gain
    return KnowledgeGain(*numbers, case.name, case.horizon, is_proven(case))


def _sampled(case: AuditCase, search: Search, clock: Deadline) -> list[Estimate]:
    """Return both payoffs and the gain from worlds with the same means and random numbers."""
    market, place = case.market, [agent.name for agent in case.market.agents].index(case.name)
    worlds = [deviation.sampled(market) for deviation in (honesty(market, case.name), Names(case.name))]

    def observe(_: FloatArray, __: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
        gain, honest, paid = gain_columns(*(outcomes.served[:, place] for outcomes in played))
        return np.column_stack([honest, paid, gain])

    served = served_bounds(market, case.name)
    bounds = [served, served, gain_bounds(market, case.name)]
    return list(sample_worlds(market, case.mechanism, worlds, observe, bounds, search, clock))
