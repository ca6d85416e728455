"""Variants: an agent registers near-copies of each of its items, and what that gains.

In place of each original it registers some variants. With a *spread*, the log-odds of a variant's mean are those of its
original and a normal error of that standard deviation; otherwise a variant is a *new* item of the same prior with some
chance, and else an exact copy. Both worlds, honest and with variants, are sampled on the same random numbers.

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
from cloneproof.analysis.audit.gained import NearCopyGain
from cloneproof.analysis.audit.question import AuditCase
from cloneproof.analysis.audit.theorems import scan_theorem
from cloneproof.analysis.audit.worlds import World, sample_worlds
from cloneproof.analysis.evaluate import exact_evaluations
from cloneproof.analysis.search import Search
from cloneproof.bounds import novelty_gain_ceiling, variant_gain_ceiling
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.monte_carlo.statistics import Bounds
from cloneproof.errors import EngineError
from cloneproof.market.market import Agent, full_copies
from cloneproof.market.priors import Prior


def variant_gain(case: AuditCase, search: Search, clock: Deadline) -> NearCopyGain:
    """Return what an agent gains that registers variants of each of its originals, and the ceiling if one is known."""
    market, agent, number = case.market, case.agent, search.variants
    place = [each.name for each in market.agents].index(case.name)
    begin = sum(each.count for each in market.agents[:place])
    own = slice(begin, begin + agent.count)
    listed = Agent(agent.name, prior=[prior for prior in agent.priors for _ in range(number)])

    def varied(drawn: FloatArray, levels: FloatArray) -> FloatArray:
        made = variants_of(np.repeat(drawn[:, own], number, axis=1), listed.priors, levels, search)
        return np.concatenate([drawn[:, :begin], made, drawn[:, own.stop :]], axis=1)

    agents = [listed if each.name == case.name else each for each in market.agents]
    worlds = [
        World(market, full_copies(market.agents, None), lambda drawn, _: drawn),
        World(market.with_agents(agents), full_copies(agents, None), varied),
    ]
    bounded = search.new is None and not market.places and _distance_counts(case)

    def observe(drawn: FloatArray, levels: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
        honest, other = (each.served[:, place] for each in played)
        columns = [honest, other, other - honest]
        if bounded:
            means = varied(drawn, levels)[:, begin : begin + listed.count]
            columns.append(_distance_ceilings(case, np.repeat(drawn[:, own], number, axis=1), means))
        return np.column_stack(columns)

    most = market.share * market.most_rounds
    bounds = [Bounds(0.0, most), Bounds(0.0, most), Bounds(-most, most), Bounds(0.0, most)][: 3 + bounded]
    honest, paid, gain, *ceilings = sample_worlds(
        market, case.mechanism, worlds, 2 * listed.count, observe, bounds, search, clock
    )
    ceiling = next(iter(ceilings), None) if search.new is None else _novelty_ceiling(case, number, search.new)
    return NearCopyGain(case.name, case.horizon, number, search.spread, search.new, honest, paid, gain, ceiling)


def variants_of(means: FloatArray, priors: Sequence[Prior], levels: FloatArray, search: Search) -> FloatArray:
    """Return the means of variants of these originals (runs x variants), by two uniform numbers for each.

    >>> variants_of(np.array([[0.5]]), [], np.array([[0.84134475, 0.5]]), Search(spread=1.0)).round(3)
    array([[0.731]])
    """
    first, second = levels[:, : means.shape[1]], levels[:, means.shape[1] :]
    if search.new is None:
        odds = scipy.special.logit(means) + (search.spread or 0.0) * scipy.special.ndtri(first)
        return np.asarray(scipy.special.expit(odds))
    made = means.copy()
    for run, item in np.argwhere(first < search.new):
        made[run, item] = priors[item].quantile(float(second[run, item]))
    return made


def _distance_counts(case: AuditCase) -> bool:
    """Return whether the ceiling by distance is proven: a flat scan whose scores are counts of coins."""
    running = case.running
    flat = running.agent is None and not running.clearing.planned_epochs
    return flat and running.arm.binarise and scan_theorem(case) is not None


def _distance_ceilings(case: AuditCase, originals: FloatArray, means: FloatArray) -> FloatArray:
    """Return the ceiling of each world, and no more than all rounds at its best mean."""
    rule, rounds = case.running.arm, case.market.share * case.horizon
    pulls, threshold = rule.explore, rule.slots.threshold
    lists = [originals, means]
    failing = [
        np.ones(len(each)) if threshold is None else scipy.special.bdtr(threshold - 1, pulls, each).mean(axis=1)
        for each in lists
    ]
    tests = (np.maximum(*failing)[:, None] ** np.arange(rule.draws)).sum(axis=1)
    distances, both = np.abs(means - originals).max(axis=1), np.concatenate(lists, axis=1)
    found = []
    for distance, low, high, expected in zip(distances, both.min(axis=1), both.max(axis=1), tests, strict=True):
        most = variant_gain_ceiling(float(distance), 1, pulls, float(low), float(high), float(expected))
        found.append(rounds * min(most, float(high)))
    return np.array(found)


def _novelty_ceiling(case: AuditCase, number: int, new: float) -> Estimate | None:
    """Return E[H_(l + N)] - H_l if copies and withholding never pay and the closed form takes all these markets."""
    if scan_theorem(case) is None:
        return None
    market, agent = case.market, case.agent
    payoffs = []
    for more in range(agent.count * number + 1):
        larger = Agent(agent.name, agent.count + more, agent.priors[0])
        agents = [larger if each.name == agent.name else each for each in market.agents]
        world = (market.with_agents(agents), case.mechanism)
        try:
            evaluations, _ = exact_evaluations([world], full_copies(agents, None), "closed-form")
        except EngineError:
            return None
        payoffs.append(evaluations[case.horizon].payoff[agent.name])
    error = 2 * max(each.error for each in payoffs)
    most = novelty_gain_ceiling([each.value for each in payoffs], new)
    return replace(payoffs[0], value=most, error=error)
