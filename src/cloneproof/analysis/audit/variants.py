"""Variants: an agent registers near-copies of each of its items, and what that gains.

In place of each original it registers some variants, which have a spread or may be new (`deviations.Variants`). Both
worlds, honest and with variants, are sampled on the same random numbers.

Ceilings are those of docs/textbook/variants.md. With new items it is E[H_(l + N)] - H_l, by an exact engine. With a
spread it is the average over the sampled worlds of eps T (1 + M kappa_n v), where eps and v are those of the world and
M, the own tests to be expected, is at most the sum over j < s of f^j, f the chance that a draw from the list fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from cloneproof._arrays import FloatArray
from cloneproof.analysis.audit.question import AuditCase
from cloneproof.analysis.audit.result import NearCopyGain
from cloneproof.analysis.audit.theorems import scan_theorem
from cloneproof.analysis.deviations import Variants, columns_of, honesty
from cloneproof.analysis.gain import exact_payoffs, gain_columns, sample_worlds
from cloneproof.analysis.search import Search
from cloneproof.bounds import novelty_gain_ceiling, variant_gain_ceiling
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.monte_carlo.statistics import Bounds
from cloneproof.errors import EngineError
from cloneproof.market.market import Agent
from cloneproof.mechanisms.online.slots import passing_count


def variant_gain(case: AuditCase, search: Search, clock: Deadline) -> NearCopyGain:
    """Return what an agent gains that registers variants of each of its originals, and the ceiling if one is known."""
    market, number = case.market, search.variants
    variants = Variants(case.name, number, search.spread, search.new)
    worlds = [honesty(market, case.name).sampled(market), variants.sampled(market)]
    place, own = [agent.name for agent in market.agents].index(case.name), columns_of(market, case.name)
    bounded = search.new is None and not market.places and _distance_counts(case)

    def observe(drawn: FloatArray, levels: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
        columns = [*gain_columns(*(outcomes.served[:, place] for outcomes in played))]
        if bounded:
            means = worlds[1].means(drawn, levels)[:, own.start : own.start + case.agent.count * number]
            columns.append(_distance_ceilings(case, np.repeat(drawn[:, own], number, axis=1), means))
        return np.column_stack(columns)

    most = market.share * market.most_rounds
    bounds = [Bounds(-most, most), Bounds(0.0, most), Bounds(0.0, most), Bounds(0.0, most)][: 3 + bounded]
    gain, honest, paid, *ceilings = sample_worlds(market, case.mechanism, worlds, observe, bounds, search, clock)
    ceiling = next(iter(ceilings), None) if search.new is None else _novelty_ceiling(case, number, search.new)
    return NearCopyGain(honest, paid, gain, case.name, case.horizon, number, search.spread, search.new, ceiling)


def _distance_counts(case: AuditCase) -> bool:
    """Return whether the ceiling by distance is proven: a flat scan whose scores are counts of coins."""
    running = case.running
    flat = running.flat and not running.in_epochs
    return flat and running.arm.binarise and scan_theorem(case) is not None


def _distance_ceilings(case: AuditCase, originals: FloatArray, means: FloatArray) -> FloatArray:
    """Return the ceiling of each world, and no more than all rounds at its best mean."""
    rule, rounds = case.running.arm, case.market.share * case.horizon
    pulls, passing, lists = rule.explore, passing_count(rule), [originals, means]
    failing = [scipy.special.bdtr(passing - 1, pulls, listed).mean(axis=1) for listed in lists]
    tests = (np.maximum(*failing)[:, None] ** np.arange(rule.draws)).sum(axis=1)
    distances, both = np.abs(means - originals).max(axis=1), np.concatenate(lists, axis=1)
    ceilings = []
    for distance, low, high, expected in zip(distances, both.min(axis=1), both.max(axis=1), tests, strict=True):
        most = variant_gain_ceiling(float(distance), 1, pulls, float(low), float(high), float(expected))
        ceilings.append(rounds * min(most, float(high)))
    return np.array(ceilings)


def _novelty_ceiling(case: AuditCase, number: int, new: float) -> Estimate | None:
    """Return E[H_(l + N)] - H_l if copies and withholding never pay and the closed form takes all these markets."""
    if scan_theorem(case) is None:
        return None
    market, agent = case.market, case.agent
    payoffs = []
    for more in range(agent.count * number + 1):
        larger = Agent(agent.name, agent.count + more, agent.priors[0])
        bigger = market.with_agents([larger if other.name == agent.name else other for other in market.agents])
        try:
            paid = exact_payoffs([(bigger, case.mechanism)], honesty(bigger, agent.name), "closed-form")
        except EngineError:
            return None
        payoffs.append(paid[case.horizon].total)
    error = 2 * max(payoff.error for payoff in payoffs)
    most = novelty_gain_ceiling([payoff.value for payoff in payoffs], new)
    return replace(payoffs[0], value=most, error=error)
