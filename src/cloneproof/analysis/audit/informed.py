"""Informed agents: what it is worth to know one's means before registering, to the agent and to the platform.

An *informed* agent chooses the best copies for each realisation. With v its realised means and pi(c | v) its payoff if
it registers c (others honest, with their priors), its payoff is the sum over v of P(v) max over c of pi(c | v), and its
gain is that minus the sum of P(v) pi(1, .., 1 | v). Given v the means are points, so any exact engine can answer. Under
a scan over slots (reservoirs) the best original alone is a best response at every v, whatever the others do
(docs/textbook/reservoir.md, section 9). Under other mechanisms a few registrations are tried.

*Naming.* An agent that names its best original with accuracy a registers one original alone: the best one with chance
a, otherwise another one, each as likely. So its list is one item, whose mean has the law

    a P(best = x) + (1 - a) (sum over k of P(v_k = x) - P(best = x)) / (l - 1)        (l originals),

and where priors are discrete and an exact engine takes the market, the gain is exact. The platform's regret, against
the best original whether it is registered or not, is what it was less what all agents together earn more. Elsewhere,
and for continuous priors, worlds are sampled: the same draws with and without naming.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np

from cloneproof._arrays import FloatArray
from cloneproof.analysis.audit.copy_vectors import CopyVector, OriginalKinds
from cloneproof.analysis.audit.gained import InformedGain, InformedResponse, Naming
from cloneproof.analysis.audit.question import AgentCases, AuditCase, epoch_cases
from cloneproof.analysis.audit.search_result import ExactResult, SearchResult
from cloneproof.analysis.audit.strategies import payoffs
from cloneproof.analysis.audit.theorems import is_scan
from cloneproof.analysis.audit.worlds import World, sample_worlds
from cloneproof.analysis.evaluate import ExactEngine, exact_evaluations
from cloneproof.analysis.search import Search
from cloneproof.engines.deadline import Deadline
from cloneproof.engines.estimate import Estimate, Evaluation, weighted_sum
from cloneproof.engines.monte_carlo.job import Outcomes
from cloneproof.engines.monte_carlo.statistics import gain_bounds, regret_bounds, served_bounds
from cloneproof.errors import EngineError
from cloneproof.laws.means import multisets
from cloneproof.market.market import Agent, Market, full_copies
from cloneproof.market.priors import Discrete

MOST_REALISATIONS = 256  # More realisations of an agent's means are not enumerated.
ACCURACIES = (1.0, 0.85, 0.7)  # of naming one's best original


def realised_means(agent: Agent, alike: Sequence[Hashable]) -> list[tuple[float, tuple[float, ...]]]:
    """Return every realisation of the agent's means with its probability; equal marks in `alike` can be exchanged.

    Of originals that are alike, the larger mean comes first.

    >>> from cloneproof.market.priors import Discrete
    >>> realised_means(Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), [0, 0])
    [(0.25, (0.0, 0.0)), (0.5, (1.0, 0.0)), (0.25, (1.0, 1.0))]
    """
    groups: dict[Hashable, list[int]] = {}
    for position, mark in enumerate(alike):
        groups.setdefault(mark, []).append(position)
    atoms = {mark: agent.priors[positions[0]].atoms for mark, positions in groups.items()}
    sizes = [math.comb(len(own) + len(groups[mark]) - 1, len(groups[mark])) for mark, own in atoms.items() if own]
    if len(sizes) < len(atoms) or math.prod(sizes) > MOST_REALISATIONS:
        raise EngineError(
            f"expected discrete priors with at most {MOST_REALISATIONS} realisations of the agent's means, got "
            f"{'a continuous one' if len(sizes) < len(atoms) else math.prod(sizes)}; use prior.discretised(3)"
        )
    found = []
    for parts in product(*(multisets(atoms[mark] or (), len(places)) for mark, places in groups.items())):
        means = [0.0] * agent.count
        for positions, (_, counts) in zip(groups.values(), parts, strict=True):
            values = [value for value, number in reversed(counts) for _ in range(number)]
            for position, value in zip(positions, values, strict=True):
                means[position] = value
        found.append((math.prod(chance for chance, _ in parts), tuple(means)))
    return found


def informed_gain(
    results: Iterable[SearchResult], search: Search, clock: Deadline
) -> tuple[InformedGain | None, list[str]]:
    """Return the largest relative gain of an informed agent, with what naming is worth; and who was not evaluated."""
    gains: list[tuple[InformedGain, AuditCase, ExactEngine]] = []
    notes = []
    for result in results:
        engine: ExactEngine = result.engine if isinstance(result, ExactResult) else "auto"
        try:
            found = _known_gains(result, engine, search, clock)
        except EngineError as refusal:
            notes.append(f"informed: {result.agent} was not evaluated: {refusal.reason}")
            continue
        cases = {case.horizon: case for case in result.cases}
        gains += [(each, cases[each.horizon], engine) for each in found]
    if not gains:
        return None, notes
    best, case, engine = max(gains, key=lambda each: each[0].relative_gain)
    if not best.naming:
        try:
            best = _with_naming(best, case, engine, search, clock)
        except EngineError as refusal:
            notes.append(f"informed: what naming does to the regret was not computed: {refusal.reason}")
    return best, notes


def _known_gains(result: SearchResult, engine: ExactEngine, search: Search, clock: Deadline) -> list[InformedGain]:
    """Return the gains at every horizon by an exact engine, or else that at the last horizon by samples."""
    if isinstance(result, ExactResult) or (result.engine == "argument" and all(map(best_alone_suffices, result.cases))):
        try:
            return informed_gains(result.cases, engine, search.copies, clock)
        except EngineError:
            if clock.spent:
                raise
    return [sampled_naming(result.cases[-1], search, clock)]


def _with_naming(
    found: InformedGain, case: AuditCase, engine: ExactEngine, search: Search, clock: Deadline
) -> InformedGain:
    try:
        with clock.for_engines():
            regret, naming = exact_naming(case, engine)
        return replace(found, regret=regret, naming=naming)
    except EngineError:
        sampled = sampled_naming(case, search, clock)
        return replace(found, regret=sampled.regret, naming=sampled.naming)


def informed_gains(cases: AgentCases, engine: ExactEngine, max_copies: int, clock: Deadline) -> list[InformedGain]:
    """Return the gain at every horizon."""
    agent, kinds = cases[0].agent, cases[0].kinds
    complete = all(map(best_alone_suffices, cases))
    realised = realised_means(agent, kinds.labels)
    found: dict[int, list[InformedResponse]] = {case.horizon: [] for case in cases}
    for number, (chance, means) in enumerate(realised):
        if clock.spent:
            raise EngineError(f"the budget was spent after {number} of {len(realised)} realisations of its means")
        at_means = tuple(replace(case, market=case.market.at({case.name: means})) for case in cases)
        honest = payoffs(at_means, engine, kinds.honest)
        best = {horizon: (payoff, kinds.honest) for horizon, payoff in honest.items()}
        alone = tuple(int(k == means.index(max(means))) for k in range(kinds.count))
        for vector in [alone] if complete else informed_vectors(kinds, means, max_copies):
            for horizon, payoff in payoffs(at_means, engine, vector).items():
                if payoff.value > best[horizon][0].value:
                    best[horizon] = payoff, vector
        for horizon, (payoff, vector) in best.items():
            found[horizon].append(InformedResponse(means, chance, vector, honest[horizon], payoff))
        clock.tell(number + 1, len(realised), f"{agent.name}, informed: means {means}")
    gains = []
    for horizon, responses in found.items():
        honestly = weighted_sum([(each.chance, each.honest) for each in responses])
        informed = weighted_sum([(each.chance, each.best) for each in responses])
        gain = informed - honestly
        gains.append(InformedGain(agent.name, horizon, honestly, informed, gain, tuple(responses), complete))
    return gains


def best_alone_suffices(case: AuditCase) -> bool:
    """Return whether the best original alone is always a best response: a scan over slots in every epoch."""
    family = case.market.family
    return family.low >= 0 and family.high <= 1 and all(is_scan(epoch.running) for epoch in epoch_cases(case))


def informed_vectors(kinds: OriginalKinds, means: Sequence[float], max_copies: int) -> list[CopyVector]:
    """Vectors of 0, 1, 2 or the cap for each original, without honesty; equal originals in falling order.

    >>> informed_vectors(OriginalKinds((0, 0)), (0.8, 0.2), 2)[:4]
    [(0, 1), (0, 2), (1, 0), (1, 2)]
    >>> informed_vectors(OriginalKinds((0, 0)), (0.8, 0.8), 2)
    [(1, 0), (2, 0), (2, 1), (2, 2)]
    """
    marks = list(zip(kinds.labels, means, strict=True))
    equal = OriginalKinds(tuple(marks.index(mark) for mark in marks))
    numbers = sorted({0, 1, min(2, max_copies), max_copies})
    every = product(numbers, repeat=kinds.count)
    return [vector for vector in every if any(vector) and equal.canonical(vector) and vector != kinds.honest]


def named_prior(agent: Agent, accuracy: float) -> Discrete:
    """Return the law of the mean of the original that an agent names, right with this chance.

    >>> named_prior(Agent("ana", 2, Discrete([0, 1], [0.5, 0.5])), 0.5)
    Discrete(values=(0.0, 1.0), weights=(0.5, 0.5))
    """
    if agent.support is None:
        raise EngineError("expected discrete priors for an exact engine, got a continuous one; sample instead")
    laws = [
        ({value: Fraction(weight) for value, weight in law}, number)
        for law, number in Counter(prior.atoms or () for prior in agent.priors).items()
    ]
    weights, below, right = [], Fraction(0), Fraction(accuracy)
    for value in agent.support:
        up_to, every = Fraction(1), Fraction(0)
        for law, number in laws:
            total = sum(law.values(), Fraction(0))
            up_to *= (sum((law[atom] for atom in law if atom <= value), Fraction(0)) / total) ** number
            every += number * law.get(value, Fraction(0)) / total
        best = up_to - below
        other = (every - best) / (agent.count - 1) if agent.count > 1 else best
        weights.append(float(right * best + (1 - right) * other))
        below = up_to
    return Discrete(agent.support, weights)


def exact_naming(case: AuditCase, engine: ExactEngine) -> tuple[Estimate, tuple[Naming, ...]]:
    """Return the honest regret and what naming is worth at each accuracy, by an exact engine."""
    market, whole = case.market, 1 / case.market.share

    def evaluation(namers: Iterable[str], accuracy: float) -> Evaluation:
        agents = [
            Agent(each.name, 1, named_prior(each, accuracy)) if each.name in namers else each for each in market.agents
        ]
        named = market.with_agents(agents), case.mechanism
        evaluations, _ = exact_evaluations([named], full_copies(agents, None), engine)
        return evaluations[case.horizon]

    def regret(named: Evaluation) -> Estimate:
        less = [(-whole, payoff) for payoff in named.payoff.values()]
        return weighted_sum([(1, honest.regret), *((whole, payoff) for payoff in honest.payoff.values()), *less])

    honest = evaluation((), 1.0)
    own, everybody = honest.payoff[case.name], [each.name for each in market.agents]
    rows = []
    for accuracy in ACCURACIES:
        one, all_of_them = evaluation([case.name], accuracy), evaluation(everybody, accuracy)
        rows.append(Naming(accuracy, own, one.payoff[case.name] - own, regret(one), regret(all_of_them)))
    return honest.regret, tuple(rows)


def sampled_naming(case: AuditCase, search: Search, clock: Deadline) -> InformedGain:
    """Return the same by samples, and with it what an agent gains that registers its best original alone.

    Of an agent that errs, the worlds in which it is right and in which it is wrong are both played.
    """
    market, agent = case.market, [each.name for each in case.market.agents].index(case.name)
    everybody = range(len(market.agents))
    lists = [((), 1.0), ((agent,), 1.0), ((agent,), 0.0), *((everybody, accuracy) for accuracy in ACCURACIES)]
    worlds = [_naming_world(market, namers, accuracy) for namers, accuracy in lists]

    def observe(_: FloatArray, __: FloatArray, played: Sequence[Outcomes]) -> FloatArray:
        honest, right, wrong, *named = played
        before, best, other = (each.served[:, agent] for each in (honest, right, wrong))
        gains = [accuracy * best + (1 - accuracy) * other - before for accuracy in ACCURACIES]
        regrets = [accuracy * right.regret + (1 - accuracy) * wrong.regret for accuracy in ACCURACIES]
        return np.column_stack([before, best, *gains, honest.regret, *regrets, *(each.regret for each in named)])

    served, gained, lost = served_bounds(market, case.name), gain_bounds(market, case.name), regret_bounds(market)
    rows = len(ACCURACIES)
    bounds = [served, served, *[gained] * rows, *[lost] * (2 * rows + 1)]
    numbers = 2 * len(market.agents)
    found = sample_worlds(market, case.mechanism, worlds, numbers, observe, bounds, search, clock)
    honest, informed, *rest = found
    gains, regret, one, everyone = rest[:rows], rest[rows], rest[rows + 1 : 2 * rows + 1], rest[2 * rows + 1 :]
    naming = [
        Naming(accuracy, honest, *each)
        for accuracy, each in zip(ACCURACIES, zip(gains, one, everyone, strict=True), strict=True)
    ]
    complete = best_alone_suffices(case)
    return InformedGain(case.name, case.horizon, honest, informed, gains[0], (), complete, regret, tuple(naming))


def _naming_world(market: Market, namers: Sequence[int], accuracy: float) -> World:
    """Return the world in which these agents register, as their first original, the one that they name, and no other.

    Two uniform numbers for each agent say whether it errs, and which other original it takes.
    """
    ends = np.cumsum([0, *(agent.count for agent in market.agents)])

    def means(drawn: FloatArray, levels: FloatArray) -> FloatArray:
        changed, runs = drawn.copy(), np.arange(len(drawn))
        for agent in namers:
            own, count = drawn[:, ends[agent] : ends[agent + 1]], market.agents[agent].count
            errs, which = levels[:, 2 * agent] >= accuracy, levels[:, 2 * agent + 1]
            steps = 1 + np.floor(which * (count - 1)).astype(np.int64)
            place = (own.argmax(axis=1) + np.where(errs, steps, 0)) % count
            changed[:, ends[agent]] = own[runs, place]
            changed[runs, ends[agent] + place] = own[:, 0]
        return changed

    alone = {market.agents[k].name: (1, *(0,) * (market.agents[k].count - 1)) for k in namers}
    return World(market, full_copies(market.agents, alone), means)
